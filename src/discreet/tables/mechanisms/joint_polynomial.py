"""Polynomial noise for all d counts of the same establishments, under one epsilon: docs/proofs/polynomial.md.

The law is a function of the L1 radius R. Intervals need quantiles of one coordinate and of the sum of all, given as
shares of R whose laws are known; they are rounded outward (docs/proofs/intervals.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias, cast

import numpy as np
from scipy import special

from discreet.arrays import Vector
from discreet.noise.law import Rounded
from discreet.noise.laws import Polynomial, RadialPolynomial
from discreet.noise.rings import Rings
from discreet.privacy.guarantee import Basis
from discreet.tables.intervals.quantiles import OUTWARD, not_below_zero
from discreet.tables.mechanisms.polynomial import PolynomialNoise
from discreet.tables.mechanisms.smooth import SmoothNoise

Radial: TypeAlias = RadialPolynomial | Rings
CELLS = 2**14
"""Of the logarithm of a radius, in each of which the largest one counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointPolynomialNoise(PolynomialNoise):
    """The radial law of d dimensions; for one count the same as `polynomial`."""

    name: ClassVar[str] = "joint-polynomial"
    basis: ClassVar[Basis] = "proved"
    vector: ClassVar[bool] = True
    laws: ClassVar[tuple[type[Rounded], ...]] = (Polynomial, RadialPolynomial)

    @property
    def share(self) -> float:
        """The scale of noise is at most `factor` times so many times the largest establishment, or times the floor."""
        return float(self.unit.alpha)

    @classmethod
    def law_of(cls, p: float, d: int, core: float) -> Rounded:
        return Polynomial(p, core) if d == 1 else RadialPolynomial(p, d, core)

    def _bounded_ends(self, counts: Vector, *, level: float) -> tuple[Vector, Vector]:
        """Half of the error probability bounds the cell's whole count, and so the scale; half bounds each count."""
        if not self.joint:
            return SmoothNoise._bounded_ends(self, counts, level=level)
        own = self.reach(self.most_workers(counts, miss=(1 - level) / 2), level=level)[:, None]
        return not_below_zero(counts - own, counts + own)

    def most_workers(self, counts: Vector, *, miss: float) -> Vector:
        if not self.joint:
            return SmoothNoise.most_workers(self, counts, miss=miss)
        share, d, total = self.share, counts.shape[1], counts.sum(axis=1)
        reach = self.factor * self._sum_quantile(miss)
        # Each of the d counts was rounded by at most 1/2.
        widest = (total + d / 2) / (1 - reach * share) if reach * share < 1 else np.full_like(total, np.inf)
        return np.asarray(np.maximum(widest, total + d / 2 + reach * self.floor) * OUTWARD)

    def _quantile(self, level: float) -> float:
        if not self.joint:
            return SmoothNoise._quantile(self, level)
        return coordinate_quantile(cast("Radial", self.law), (1 - level) / 2)

    def _sum_quantile(self, miss: float) -> float:
        return sum_quantile(cast("Radial", self.law), miss)


@lru_cache(maxsize=64)
def coordinate_quantile(law: Radial, miss: float) -> float:
    """q with P(|Z_1| > q) <= miss: given the radius R, |Z_1| / R is Beta(1, d - 1)."""
    return _radial_quantile(law, miss, lambda share: (1 - share) ** (law.d - 1))


@lru_cache(maxsize=64)
def sum_quantile(law: Radial, miss: float) -> float:
    """q with P(|Z_1 + ... + Z_d| > q) <= miss.

    Of d exponential magnitudes k have a plus, k binomial; the plus side's share of R is Beta(k, d - k).
    """
    d, far = law.d, 8 * math.sqrt(law.d)
    plus = range(max(1, math.ceil(d / 2 - far)), min(d, math.floor(d / 2 + far) + 1))
    ways = [math.comb(d, k) for k in plus]
    k, chance = np.array(plus)[:, None], np.array([way / 2**d for way in ways])[:, None]
    rest = (2**d - sum(ways)) / 2**d  # the sum is taken as R, which it is at most

    def beyond(share: Vector) -> Vector:
        return np.asarray(rest + 2 * (chance * special.betainc(k, d - k, (1 - share) / 2)).sum(axis=0))

    return _radial_quantile(law, miss, beyond)


def _radial_quantile(law: Radial, miss: float, beyond: Callable[[Vector], Vector]) -> float:
    """The least q of a grid with P(X > q) <= miss, X / R independent of R and P(X > share R) = `beyond`(share).

    P(X > q) grows with R. In every cell of the logarithm of R the value at the upper end is used, with the exact
    probability of the cell, so the sum is an upper bound.
    """
    near, far = np.log(law.radius_range).tolist()
    edges = np.linspace(near, far, CELLS + 1)
    survival = law.radius_survival(np.exp(edges))
    cell, last = -np.diff(survival), survival[-1]
    given = beyond(np.exp(-(edges[1:] - edges[0])))  # by how many cells the radius is ahead of q

    def bound(at: int) -> float:
        return float(cell[at:] @ given[: CELLS - at] + last) * OUTWARD

    low, high = 0, CELLS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= miss else (middle + 1, high)
    return math.exp(edges[low]) * OUTWARD if bound(low) <= miss else math.inf
