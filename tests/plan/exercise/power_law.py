"""A mechanism in one file, as an exercise: power-law noise for one count.

The proof is power_law.md, beside this file: that and a check that is complete make it proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from discreet.noise.law import Rounded
from discreet.noise.laws import Polynomial
from discreet.privacy.guarantee import Basis
from discreet.tables.mechanisms.mechanism import MARGIN, Request
from discreet.tables.mechanisms.smooth import SmoothNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw(SmoothNoise):
    """Simple to prove; `polynomial` has less noise."""

    name: ClassVar[str] = "power-law"
    proof: ClassVar[str] = "power_law.md"
    basis: ClassVar[Basis] = "proved"
    laws: ClassVar[tuple[type[Rounded], ...]] = (Polynomial,)

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        p = ask.epsilon * (1 - MARGIN) / ask.b - 1
        if p <= 2:
            raise ask.refuse(cls, f"epsilon > 3 ln(1 + alpha) = {3 * ask.b:.4g}", "Raise epsilon, or lower alpha.")
        factor = (1 + MARGIN) / float(ask.unit.alpha)
        return cls(unit=ask.unit, loss=ask.loss, calibration="tight", law=Polynomial(p), factor=factor)
