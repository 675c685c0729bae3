"""Smooth Laplace: noise k S L, L ~ Laplace(1), S = max(alpha x, 1), which promises epsilon and delta.

Between neighbours the centre moves by at most u = 1 / k, in units of the smaller scale, and the scale by a ratio w of 1
to 1 + alpha. The worst ratio is one of the two ends; docs/proofs/smooth-laplace.md proves it, and `privacy.verify`
looks for worse pairs without using it. Notation: b = ln(1 + alpha).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from discreet.noise.law import Rounded
from discreet.noise.laws import Laplace
from discreet.privacy.guarantee import Basis, is_tight
from discreet.privacy.losses import Number, exact
from discreet.tables.expected import three_digits
from discreet.tables.mechanisms.mechanism import MARGIN, Mechanism, Request
from discreet.tables.mechanisms.polynomial import PolynomialNoise
from discreet.tables.mechanisms.search import least
from discreet.tables.mechanisms.smooth import SEARCHED, SmoothNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothLaplace(SmoothNoise):
    """The Tables paper's law, with its constants where they are enough, or with the least for the exact delta."""

    name: ClassVar[str] = "smooth-laplace"
    proof: ClassVar[str] = "docs/proofs/smooth-laplace.md"
    basis: ClassVar[Basis] = "proved"
    needs_delta: ClassVar[bool] = True
    searched: ClassVar[tuple[float, float] | None] = SEARCHED
    laws: ClassVar[tuple[type[Rounded], ...]] = (Laplace,)
    plainer: ClassVar[tuple[type[Mechanism], ...]] = (PolynomialNoise,)

    @classmethod
    def lacks(cls, ask: Request) -> str:
        growth, aim = cls._aim(ask)
        if not is_tight(ask.calibration):
            needed = 2 * math.log(1 / ask.delta) * ask.b
            if ask.epsilon < needed:
                return f"epsilon >= 2 ln(1/delta) ln(1 + alpha) = {needed:.4g}"
            reached = laplace_delta(ask.epsilon / 2 * (1 + MARGIN / 2**10), growth, ask.epsilon)
            if reached > aim:
                enough = three_digits(math.exp(reached) * (1 + 1e-5), up=True)
                return f"delta >= {enough:g}, which its constants reach although their condition holds"
        elif aim <= (lowest := delta_floor(math.expm1(growth), ask.epsilon)):
            least_delta = three_digits(math.exp(lowest), up=True)
            return f"delta > {least_delta:g}, which a change of scale by 1 + alpha alone uses up"
        return ""

    @classmethod
    def room(cls, ask: Request) -> Fraction:
        return Fraction(101, 100) if is_tight(ask.calibration) else Fraction(1)

    @classmethod
    def _aim(cls, ask: Request) -> tuple[float, float]:
        """By how much a logarithm of a scale may grow, and the logarithm of the delta that is left for the noise."""
        # Scales are rounded: they may change by a little more than 1 + alpha, and the count by a little more than one.
        growth = ask.b + MARGIN / 2**10
        return growth, math.log(ask.delta) - 1e-6 - MARGIN / 2**15 * (ask.epsilon + growth) / math.expm1(growth)

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        if lacking := cls.lacks(ask):
            raise ask.refuse(cls, lacking)
        if not is_tight(ask.calibration):
            return cls._with(ask, 2 / ask.epsilon)
        growth, aim = cls._aim(ask)
        alpha = math.expm1(growth)
        low = 1 / (ask.epsilon - 2 * math.log1p(-ask.delta))
        high = 1 / min(ask.epsilon, alpha * (aim - delta_floor(alpha, ask.epsilon)))
        k = least(lambda k: laplace_delta(1 / k, growth, ask.epsilon) - aim, low, high)
        return cls._with(ask, k * (1 + MARGIN))

    @classmethod
    def _with(cls, ask: Request, k: float) -> Self:
        return cls(unit=ask.unit, loss=ask.loss, calibration=ask.calibration, law=Laplace(), factor=k)


def least_epsilon(*, alpha: Number, delta: Number) -> float:
    """Table 2 of the paper: the smallest epsilon of paper-calibrated Smooth Laplace, 2 ln(1/delta) ln(1 + alpha).

    The first half of the printed table follows from delta = 0.005, not from the 0.05 in its heading.
    """
    return 2 * math.log(1 / float(exact(delta))) * math.log1p(float(exact(alpha)))


def laplace_delta(shift: float, log_ratio: float, epsilon: float) -> float:
    """The logarithm of the worst delta at `epsilon` of Laplace noise, over all ratios."""
    u, b, alpha = shift, log_ratio, math.expm1(log_ratio)
    w = 1 + alpha
    level = -math.expm1(-max(u - epsilon, 0.0) / 2)
    drawn = u + w * (b - epsilon)
    if b - epsilon > u:
        centre = w - math.exp(epsilon) + alpha * (math.expm1(-drawn / alpha) + math.expm1((2 * u - drawn) / alpha)) / 2
    else:
        centre = alpha * _bend(max(drawn, 0.0) / alpha) - (w + 1) * _bend(max(drawn, 0.0) / (w + 1))
        centre /= 2
    if u <= epsilon + b:
        tails = delta_floor(alpha, epsilon) + _log_cosh(u / alpha)
    else:
        q = (u - epsilon - b) / (w + 1)
        far = math.exp(-(epsilon + b + u) / alpha)
        tails = math.log(-math.expm1(-q) + alpha / w * (math.exp(-q) + far) / 2)
    return max(tails, _log(level), _log(centre))


def delta_floor(alpha: float, epsilon: float) -> float:
    """The logarithm of the delta that a change of scale by 1 + alpha alone takes: no Laplace noise goes below."""
    return math.log(alpha / (1 + alpha)) - (epsilon + math.log1p(alpha)) / alpha


def _bend(x: float) -> float:
    """x + e^-x - 1, with its digits for small x too."""
    if x > 0.1:
        return x + math.expm1(-x)
    return x**2 / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6 * (1 - x / 7 * (1 - x / 8))))))


def _log_cosh(x: float) -> float:
    return x - math.log(2) + math.log1p(math.exp(-2 * x))


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
