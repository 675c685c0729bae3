"""The size of each cell's largest establishment, published with noise of its own; it allows narrow intervals.

x, the largest workforce of a workplace cell, sets the scale of the noise and is confidential. ln max(x, m/alpha) of all
workplace cells together moves by at most b = ln(1 + alpha), because an establishment lies in one of them. m is 1, or
more if one worker may move it by b/2 only. So a share of epsilon pays for a noisy x of every cell at once: the
published size is y = max(x, m/alpha) e^(l L), L ~ Laplace(1). Noise |e| of a count is at most factor max(alpha x, m)
|Z|, that is factor alpha y |Z| e^(-l L), whose last two factors have a known law whatever x is (docs/proofs/sizes.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Vector
from discreet.privacy.guarantee import Basis
from discreet.privacy.losses import Number, Pure, exact, shown
from discreet.privacy.units import Establishments
from discreet.tables.mechanisms.log_laplace import LogLaplace
from discreet.tables.mechanisms.mechanism import LEAST_GROWTH, MARGIN, Mechanism, one_worker_floor
from discreet.words.errors import Infeasible, PrivacyError
from discreet.words.faults import Argument
from discreet.words.voices import Symbol

PROOF = "docs/proofs/sizes.md"
NOTE = (
    "Of the loss, {} paid for a noisy size of every cell's largest establishment, from which intervals are computed "
    f"({PROOF})"
)
MOST_EXPONENT = 4.0
"""Beyond, a size would be off by a factor of a million as often as one time in forty."""


def share_of(scale_share: Number, epsilon: Fraction) -> Fraction:
    """The part of epsilon that pays for sizes."""
    share = exact(scale_share, name="scale_share")
    if not 0 <= share < 1:
        raise PrivacyError(
            (Argument("scale_share", Symbol(f"{shown(share)}")), " is not a share of epsilon."),
            "It is from 0 to below 1; the rest pays for the counts.",
            ("Use for example ", Argument("scale_share", 0.1), ", or leave it out."),
            about="scale_share",
        )
    return share * epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySizes(LogLaplace):
    """Noise that multiplies the largest workforce of every workplace cell, or `offset` if larger, under one loss."""

    shrink: float = 1.0

    name: ClassVar[str] = "noisy-sizes"
    proof: ClassVar[str] = PROOF
    basis: ClassVar[Basis] = "proved"
    stated_constants: ClassVar[tuple[str, ...]] = ("exponent", "floor")

    def own_constants(self) -> dict[str, Any]:
        return LogLaplace.own_constants(self) | {"of": "max(largest, floor / alpha)"}

    def centre(self, count: Vector) -> Vector:
        return np.log(np.maximum(count, self.offset))

    def median(self, count: Vector) -> tuple[Vector, float]:
        return np.maximum(count, self.offset), 0.0


def sizes_for(mechanism: Mechanism, epsilon: Fraction) -> NoisySizes:
    """The noisy sizes that go with a mechanism, if its scale is confidential at all."""
    if mechanism.sized:
        return noisy_sizes(mechanism.unit, epsilon, step=mechanism.step)
    raise PrivacyError(
        f"scale_share with {mechanism.name}: sizes would be paid for and not used, because the "
        "scale of its noise is public or grows with the count.",
        remedy="Leave scale_share out, or use the default mechanism.",
        about="scale_share",
    )


def noisy_sizes(unit: Establishments, epsilon: Fraction, *, step: int = 1) -> NoisySizes:
    """The mechanism that publishes every workplace cell's largest workforce, or amount, for `epsilon` in all."""
    if unit.log_growth < LEAST_GROWTH:
        raise Infeasible(
            (
                "scale_share with ",
                Argument("alpha", Symbol(f"{shown(unit.alpha)}")),
                f": sizes need ln(1 + alpha) of at least {LEAST_GROWTH:.3g}, because numbers have no more digits.",
            ),
            remedy="Raise alpha, or leave scale_share out.",
            about="scale_share",
        )
    exponent = unit.log_growth / float(epsilon) * (1 + MARGIN)
    if exponent > MOST_EXPONENT:
        raise Infeasible(
            (
                "scale_share leaves ",
                Argument("epsilon", Symbol(f"{shown(epsilon)}")),
                " for the sizes of the largest establishments, with noise that leaves no information.",
            ),
            f"It needs ln(1 + alpha) / {MOST_EXPONENT:g} = {unit.log_growth / MOST_EXPONENT:.3g} or more.",
            "Raise scale_share or epsilon, lower alpha, or leave it out.",
            about="scale_share",
        )
    floor = one_worker_floor(unit) * step
    return NoisySizes(unit=unit, loss=Pure(epsilon), calibration="tight", exponent=exponent, floor=floor, step=step)
