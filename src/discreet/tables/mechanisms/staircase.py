"""Staircase noise for one count: less than `polynomial` from an epsilon of about 2 on. docs/proofs/staircase.md.

Noise S Z, S = max(alpha x, 1), Z constant on a plateau and on rings around it, whose widths grow by 1 + alpha. Between
neighbours the distance from the centre, in units of S, is dilated by at most 1 + alpha and moved by at most 1: one edge
is passed at most. Notation: b = ln(1 + alpha).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from discreet.noise.law import Rounded
from discreet.noise.staircase import Staircase
from discreet.privacy.guarantee import Basis
from discreet.tables.mechanisms.mechanism import LEAST_GROWTH, MARGIN, Request
from discreet.tables.mechanisms.smooth import SEARCHED, SmoothNoise

STEPS = 80
"""Of the golden section that finds the plateau: any plateau keeps the promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaircaseNoise(SmoothNoise):
    """An edge costs epsilon - b; the change of scale at most b. The plateau is that of the least mean error."""

    name: ClassVar[str] = "staircase"
    proof: ClassVar[str] = "docs/proofs/staircase.md"
    basis: ClassVar[Basis] = "proved"
    amounts: ClassVar[bool] = True
    searched: ClassVar[tuple[float, float] | None] = SEARCHED
    laws: ClassVar[tuple[type[Rounded], ...]] = (Staircase,)

    @classmethod
    def lacks(cls, ask: Request) -> str:
        if ask.b < LEAST_GROWTH:
            return f"ln(1 + alpha) of at least {LEAST_GROWTH:.3g}"
        drop, growth = cls._drop(ask)
        enough = drop > 2 * math.log1p(growth)
        return "" if enough else f"epsilon > 3 ln(1 + alpha) = {3 * ask.b:.4g} for its error to be finite"

    @classmethod
    def _drop(cls, ask: Request) -> tuple[float, float]:
        """What a step of the staircase falls by, and by how much steps grow."""
        # Scales are rounded: their ratio may be a little more than 1 + alpha, and the shift a little more than 1.
        growth = float(ask.unit.alpha) * (1 + MARGIN)
        return ask.epsilon * (1 - MARGIN) - math.log1p(growth), growth

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        ask.only_tight(cls)
        if lacking := cls.lacks(ask):
            raise ask.refuse(cls, lacking)
        drop, growth = cls._drop(ask)
        law = Staircase(drop, growth, _plateau(drop, growth))
        return cls(unit=ask.unit, loss=ask.loss, calibration="tight", law=law, factor=1 + MARGIN)


def _plateau(drop: float, growth: float) -> float:
    """The plateau of the least mean error before rounding, in [0, 1]."""

    def error(plateau: float) -> float:
        return Staircase(drop, growth, plateau).mean_abs

    low, high, share = 0.0, 1.0, (math.sqrt(5) - 1) / 2
    for _ in range(STEPS):
        left, right = high - share * (high - low), low + share * (high - low)
        low, high = (low, right) if error(left) <= error(right) else (left, high)
    return (low + high) / 2
