"""A mechanism in one file, as an exercise: power-law noise for one count.

Noise S/alpha Z, S = max(alpha x, 1), Z of density proportional to (1 + |z|)^-p. Between neighbours the centre moves by
u <= alpha, in units of the smaller scale, and the scale by w in [1, 1 + alpha]. With r the distance of an output from
its centre, the loss is at most p ln(1 + u) + ln w in one direction, because 1 + (r + u)/w <= (1 + u)(1 + r), and at
most p ln(1 + alpha) in the other, because 1 + w r + u <= (1 + alpha)(1 + r). So p = epsilon/b - 1, b = ln(1 + alpha).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from discreet.noise.law import Rounded
from discreet.noise.laws import Polynomial
from discreet.tables.mechanisms.mechanism import MARGIN, Request
from discreet.tables.mechanisms.smooth import SmoothNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw(SmoothNoise):
    """Simple to prove; `polynomial` has less noise."""

    name: ClassVar[str] = "power-law"
    proof: ClassVar[str] = "the opening of power_law.py"
    laws: ClassVar[tuple[type[Rounded], ...]] = (Polynomial,)

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        p = ask.epsilon * (1 - MARGIN) / ask.b - 1
        if p <= 2:
            raise ask.refuse(cls, f"epsilon > 3 ln(1 + alpha) = {3 * ask.b:.4g}", "Raise epsilon, or lower alpha.")
        factor = (1 + MARGIN) / float(ask.unit.alpha)
        return cls(unit=ask.unit, loss=ask.loss, calibration="tight", law=Polynomial(p), factor=factor)
