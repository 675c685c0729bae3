"""The mechanisms of a bundle's tables, made again from the constants that it states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from discreet.archive.findings import RefutedError
from discreet.noise.laws import GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.privacy.losses import Loss, Pure, exact, from_dict, loss
from discreet.privacy.units import Establishments
from discreet.tables.mechanisms import LogLaplace, NoiseLaw, SmoothNoise

LAWS: Mapping[str, Callable[..., NoiseLaw]] = {
    law.__name__: law for law in (Laplace, GeneralisedCauchy, Polynomial, RadialPolynomial)
}


def stated(table: Mapping[str, Any], unit: Establishments) -> Iterator[SmoothNoise | LogLaplace]:
    """The mechanisms of a table with the constants that are stated, each promising what it costs."""
    share, noise = exact(table.get("scale_share", 0), name="scale_share"), table["noise"]
    if ("sizes" in noise) != (share > 0):
        raise RefutedError("sizes of establishments are paid for and not stated, or stated and not paid for")
    yield _mechanism(table, unit, 1 - share)
    if share:
        paid = Pure(stated_loss(table["loss"]).amounts["epsilon"] * share)
        yield _sizes(noise, unit, paid)


def _mechanism(table: Mapping[str, Any], unit: Establishments, share: Fraction) -> SmoothNoise | LogLaplace:
    """The mechanism with the constants that are stated, promising what one of its counts costs."""
    noise = table["noise"]
    law = LAWS[noise["law"]](**noise["parameters"])
    shares = int(table["levels"]) if law.dimension == 1 else 1
    if law.dimension not in (1, table["levels"]):
        raise RefutedError(f"the noise is for {law.dimension} counts of a cell, which has {table['levels']}")
    amounts = {name: amount / shares for name, amount in stated_loss(table["loss"]).amounts.items()}
    amounts["epsilon"] *= share
    if table["mechanism"] == "log-laplace":
        return LogLaplace(unit, loss(**amounts), noise["exponent"], noise["shrink"], table["calibration"], "")
    sizes = {"factor": noise["factor"], "floor": noise["floor"]}
    return SmoothNoise(
        table["mechanism"], unit, loss(**amounts), law, calibration=table["calibration"], proof="", **sizes
    )


def _sizes(noise: Mapping[str, Any], unit: Establishments, paid: Loss) -> LogLaplace:
    """Noisy sizes, whose floor is at least that of the counts: their intervals rest on it."""
    exponent, floor = noise["sizes"]["exponent"], noise["sizes"]["floor"]
    if floor < noise["floor"]:
        raise RefutedError(f"sizes of establishments have the floor {floor}, and the counts {noise['floor']}")
    return LogLaplace(unit, paid, exponent, 1.0, "tight", "", name="noisy-sizes", floor=floor)


def stated_loss(amounts: Mapping[str, str]) -> Loss:
    return from_dict(dict(amounts))
