"""Polynomial noise for one count: a Laplace core and a power law beyond. The proof is docs/proofs/polynomial.md.

Notation: b = ln(1 + alpha), d counts under one epsilon, p the exponent of the power law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from discreet.noise.law import Rounded
from discreet.noise.laws import Polynomial
from discreet.privacy.guarantee import Basis
from discreet.tables.mechanisms.mechanism import MARGIN, Request, one_worker_floor
from discreet.tables.mechanisms.search import least
from discreet.tables.mechanisms.smooth import SmoothNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class PolynomialNoise(SmoothNoise):
    """Noise (S / alpha) Z with p = d + eps/b and the smallest core that the two conditions of the proof allow."""

    name: ClassVar[str] = "polynomial"
    proof: ClassVar[str] = "docs/proofs/polynomial.md"
    basis: ClassVar[Basis] = "proved"
    halves: ClassVar[bool] = False
    amounts: ClassVar[bool] = True
    laws: ClassVar[tuple[type[Rounded], ...]] = (Polynomial,)

    @classmethod
    def lacks(cls, ask: Request) -> str:
        d, b, budget = ask.cells, ask.b, ask.epsilon * (1 - MARGIN)
        if budget <= d * b:
            return f"epsilon > {f'{d} ' if d > 1 else ''}ln(1 + alpha) = {d * b:.4g}"
        if 2 * d + budget / b > ask.epsilon / MARGIN / 2**10:
            return f"(2 d + epsilon / ln(1 + alpha)) / epsilon below {1 / MARGIN / 2**10:.3g}"
        return ""

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        ask.only_tight(cls)
        if lacking := cls.lacks(ask):
            raise ask.refuse(cls, lacking)
        d, b, alpha = ask.cells, ask.b, float(ask.unit.alpha)
        budget = ask.epsilon * (1 - MARGIN)
        p = d + budget / b

        def psi(r: float, core: float) -> float:
            t = alpha * r
            return p * min(t, core) / (1 + core) + p * math.log1p(max(t - core, 0.0) / (1 + core))

        # The longest distances, and what each may cost: (2) and (3) of the proof, and the same for half of the loss.
        costs = {1.0: budget, math.exp(-b): budget - d * b}
        floor = one_worker_floor(ask.unit)
        if ask.unit.substitution:
            costs |= {1 / floor: budget / 2, math.exp(-b / 2) / floor: (budget - d * b) / 2}

        def excess(core: float) -> float:
            return max(psi(r, core) - cost for r, cost in costs.items())

        # Below the first a condition fails; at the second the core holds all distances and is long enough for each.
        low = min(alpha, math.sqrt(2 * d * b / p))
        high = max(alpha, *(p * alpha * r / cost for r, cost in costs.items()))
        # The sampler needs the last; a longer core keeps both conditions.
        core = max(least(excess, low, high), (d - 1) / (p - d) * (1 + MARGIN))
        return cls(
            unit=ask.unit,
            loss=ask.loss,
            calibration="tight",
            law=cls.law_of(p, d, core),
            factor=(1 + MARGIN) / alpha,
            floor=floor,
        )

    @classmethod
    def law_of(cls, p: float, d: int, core: float) -> Rounded:
        return Polynomial(p, core)
