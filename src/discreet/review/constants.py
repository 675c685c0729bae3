"""The mechanisms of a bundle's tables, made again from the constants that it states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from discreet.archive.findings import RefutedError
from discreet.privacy.losses import Loss, Pure, exact, from_dict, loss
from discreet.privacy.units import Establishments
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.registry import named
from discreet.tables.sizes import NoisySizes


def stated(table: Mapping[str, Any], unit: Establishments) -> Iterator[Mechanism]:
    """The mechanisms of a table with the constants that are stated, each promising what it costs."""
    share, noise = exact(table.get("scale_share", 0), name="scale_share"), table["noise"]
    if ("sizes" in noise) != (share > 0):
        raise RefutedError("sizes of establishments are paid for and not stated, or stated and not paid for")
    mechanism = _mechanism(table, unit, 1 - share)
    yield mechanism
    if share:
        paid = Pure(stated_loss(table["loss"]).amounts["epsilon"] * share)
        yield _sizes(noise, mechanism, paid)


def _mechanism(table: Mapping[str, Any], unit: Establishments, share: Fraction) -> Mechanism:
    """The mechanism with the constants that are stated, promising what one of its counts costs."""
    whole = stated_loss(table["loss"])
    found = named(table["mechanism"]).stated(table["noise"], unit=unit, loss=whole, calibration=table["calibration"])
    if found.step != table.get("cap", 1):
        raise RefutedError(
            f"the noise is for amounts capped at {found.step:,}, and {table.get('cap', 1):,} is declared"
        )
    d = found.law.dimension
    if d not in (1, table["levels"]):
        raise RefutedError(f"the noise is for {d} counts of a cell, which has {table['levels']}")
    shares = int(table["levels"]) if d == 1 else 1
    amounts = {name: amount / shares for name, amount in whole.amounts.items()}
    amounts["epsilon"] *= share
    promised = loss(**amounts)
    found = found.promising(promised)
    if (found.unit, found.loss) != (unit, promised):
        raise RefutedError(
            f"the noise promises {found.loss} by {found.unit.key}, and {promised} by {unit.key} is claimed"
        )
    return found


def _sizes(noise: Mapping[str, Any], mechanism: Mechanism, paid: Loss) -> NoisySizes:
    """Noisy sizes, whose floor is at least that of the counts: their intervals rest on it."""
    found = NoisySizes.stated(noise["sizes"], unit=mechanism.unit, loss=paid, calibration="tight")
    if found.floor < mechanism.sizes_floor:
        raise RefutedError(f"sizes of establishments have the floor {found.floor}, and the counts {noise['floor']}")
    return found


def stated_loss(amounts: Mapping[str, str]) -> Loss:
    return from_dict(dict(amounts))
