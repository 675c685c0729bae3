"""Smooth Gamma: noise k S Z, Z of density proportional to 1 / (1 + z^4), S = max(alpha x, 1).

Between neighbours the centre moves by at most u = 1 / k, in units of the smaller scale, and the scale by a ratio w of 1
to 1 + alpha. The worst ratio is one of the two ends; docs/proofs/smooth-gamma.md proves it, and `privacy.verify` looks
for worse pairs without using it. Notation: b = ln(1 + alpha).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

from discreet.noise.law import Rounded
from discreet.noise.laws import GeneralisedCauchy
from discreet.privacy.guarantee import Basis, is_tight
from discreet.tables.mechanisms.mechanism import MARGIN, Request
from discreet.tables.mechanisms.search import least
from discreet.tables.mechanisms.smooth import SEARCHED, SmoothNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothGamma(SmoothNoise):
    """The Tables paper's law, with its constants or with the least that keep epsilon."""

    name: ClassVar[str] = "smooth-gamma"
    proof: ClassVar[str] = "docs/proofs/smooth-gamma.md"
    basis: ClassVar[Basis] = "proved"
    searched: ClassVar[tuple[float, float] | None] = SEARCHED
    laws: ClassVar[tuple[type[Rounded], ...]] = (GeneralisedCauchy,)

    @classmethod
    def lacks(cls, ask: Request) -> str:
        if not is_tight(ask.calibration):
            return f"epsilon >= 4 ln(1 + alpha) = {4 * ask.b:.4g}" if ask.b > ask.epsilon / 4 else ""
        enough = ask.epsilon * (1 - MARGIN) > 3 * ask.b
        return "" if enough else f"epsilon > 3 ln(1 + alpha) = {3 * ask.b:.4g}"

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        if lacking := cls.lacks(ask):
            raise ask.refuse(cls, lacking)
        if not is_tight(ask.calibration):
            return cls._with(ask, 16 / ask.epsilon)
        budget = ask.epsilon * (1 - MARGIN)
        # Less noise lets the count itself lose epsilon; more than the sum of the two worst cases is never needed.
        low, high = math.expm1(budget) ** -0.25, 3**0.75 / (budget - 3 * ask.b)
        return cls._with(ask, least(lambda k: gamma_loss(1 / k, ask.b) - budget, low, high))

    @classmethod
    def _with(cls, ask: Request, k: float) -> Self:
        return cls(unit=ask.unit, loss=ask.loss, calibration=ask.calibration, law=GeneralisedCauchy(4.0), factor=k)


def gamma_loss(shift: float, log_ratio: float) -> float:
    """The worst loss of noise with density proportional to 1 / (1 + z^4), over all outputs and ratios.

    Either direction has one stationary output for each ratio: a crossing of a falling function.
    """
    u, worst = shift, 0.0
    for log_w in (0.0, log_ratio):
        w = math.exp(log_w)

        def outward(r: float, log_w: float = log_w) -> float:
            return 3 * math.log1p(u / r) + math.log1p(-min(u * r**3, 1 - 2.0**-53)) - 4 * log_w

        def inward(r: float, w: float = w) -> float:
            return w / r**3 - (r * w + u) ** -3 - u

        top = u ** (-1 / 3)
        r = _crossing(outward, min(top / 2, u / (2 * w ** (4 / 3))), top)
        worst = max(worst, _rise(r, (r + u) / w) + log_w)
        r = _crossing(inward, (w / (u + u**-3)) ** (1 / 3), (w / u) ** (1 / 3))
        worst = max(worst, _rise(r, r * w + u) - log_w)
    return worst


def _crossing(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function passes zero, by bisection of the logarithm: the loss is flat there."""
    low, high = math.log(low), math.log(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(math.exp(middle)) > 0 else (low, middle)
    return math.exp((low + high) / 2)


def _rise(r: float, further: float) -> float:
    """ln((1 + further^4) / (1 + r^4))."""
    if further > 1e60:
        return 4 * math.log(further) - math.log1p(r**4)
    return math.log1p((further - r) * (further + r) * (further**2 + r**2) / (1 + r**4))
