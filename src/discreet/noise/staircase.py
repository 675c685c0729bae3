"""The staircase law with growing steps: a plateau, then rings of constant density, each e^-drop times the one within.

Ring j = 0, 1, ... ends at edge(j), edge(0) = plateau and edge(j + 1) = w edge(j) + 1, w = 1 + growth. A point that is
dilated by at most w and moved by at most 1 enters no ring but the next. The first ring has the width A = 1 + growth
plateau, and each further one w times that of the one before, so every sum has a closed form. Geng and Viswanath (2016,
doi:10.1109/TIT.2015.2504967) have the law without growth. Proof: docs/proofs/staircase.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.noise.law import Symmetric, require

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from discreet.arrays import Vector

FARTHEST = 1e6
MOST_EDGES = 4000


@dataclass(frozen=True, slots=True)
class Staircase(Symmetric):
    """Density proportional to exp(-drop * ring(|z|)), for drop > ln(1 + growth)."""

    drop: float
    growth: float
    plateau: float

    def __post_init__(self) -> None:
        d, g, p = self.drop, self.growth, self.plateau
        exists = math.isfinite(d + g + p) and g > 0 and p >= 0 and d > math.log1p(g)
        require(exists, str(self), "growth > 0, plateau >= 0 and drop > ln(1 + growth)")

    @property
    def jumps(self) -> Vector:
        """The edges, as far as outputs are examined."""
        count = math.ceil(math.log1p(FARTHEST * self.growth) / self._b) + 1
        return self._edge(np.arange(min(max(count, 2), MOST_EDGES), dtype=np.float64))

    @property
    def mean_abs(self) -> float:
        if self.drop <= 2 * self._b:
            return math.inf
        g, A, (v0, v1, _) = self.growth, self._width, self._sums
        rings = (self.plateau + A / 2) * v0 + (A + A * g / 2) * v1
        return (self.plateau**2 / 2 + self._first * rings) / self._mass

    @property
    def variance(self) -> float:
        if self.drop <= 3 * self._b:
            return math.inf
        p, g, A, (v0, v1, v2) = self.plateau, self.growth, self._width, self._sums
        rings = (p**2 + A * p + A**2 / 3) * v0
        rings += A * (2 * p + A + p * g + 2 * A * g / 3) * v1 + A**2 * (1 + g + g**2 / 3) * v2
        return (p**3 / 3 + self._first * rings) / self._mass

    def log_density(self, z: ArrayLike) -> Vector:
        x = np.abs(np.asarray(z, dtype=np.float64))
        return np.asarray(-self.drop * self._ring(x) - math.log(2 * self._mass))

    def excess(self, x: Vector) -> Vector:
        """Of the own ring, and of those beyond its edge, which are those beyond the plateau times w^j."""
        j, (v0, v1, _) = self._ring(x), self._sums
        left = self._edge(j) - x
        own = np.exp(-self.drop * j) * left**2 / 2
        mean = self._width * np.exp(j * self._b) * ((1 + self.growth / 2) * v1 + v0 / 2)
        return np.asarray((own + self._first * np.exp(j * self._log_ratio) * (left * v0 + mean)) / self._mass)

    @property
    def _b(self) -> float:
        return math.log1p(self.growth)

    @property
    def _width(self) -> float:
        """A, the width of the first ring."""
        return 1 + self.plateau * self.growth

    @property
    def _log_ratio(self) -> float:
        """ln rho, the mass of a ring over that of the one within."""
        return self._b - self.drop

    @property
    def _first(self) -> float:
        """The mass of the first ring, where the plateau has the density 1."""
        return self._width * math.exp(-self.drop)

    @property
    def _sums(self) -> tuple[float, float, float]:
        """The sums of rho^m v^i for i = 0, 1, 2, v = (w^m - 1) / growth; the last ones where they are finite."""
        rho, w = math.exp(self._log_ratio), 1 + self.growth
        v0 = -1 / math.expm1(self._log_ratio)
        v1 = -rho * v0 / math.expm1(self._log_ratio + self._b)
        return v0, v1, -rho * (2 * w * v1 + v0) / math.expm1(self._log_ratio + 2 * self._b)

    @property
    def _mass(self) -> float:
        return self.plateau + self._first * self._sums[0]

    def _ring(self, x: Vector) -> Vector:
        steps = np.log1p((x - self.plateau) * self.growth / self._width) / self._b
        return np.asarray(np.maximum(np.ceil(steps), 0.0))

    def _edge(self, j: Vector) -> Vector:
        return np.asarray(self.plateau + self._width / self.growth * np.expm1(j * self._b))

    def _beyond(self, j: Vector) -> Vector:
        """The mass beyond edge(j), where the plateau has the density 1."""
        return np.asarray(self._first * self._sums[0] * np.exp(j * self._log_ratio))

    def _tail(self, x: Vector) -> Vector:
        j = self._ring(x)
        own = np.exp(-self.drop * j) * np.maximum(self._edge(j) - x, 0.0)
        return np.asarray((own + self._beyond(j)) / (2 * self._mass))

    def _tail_inverse(self, t: Vector) -> Vector:
        mass = 2 * self._mass * np.asarray(t)
        steps = (np.log(mass) - math.log(self._first * self._sums[0])) / self._log_ratio
        j = np.maximum(np.ceil(steps), 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            x = self._edge(j) - (mass - self._beyond(j)) * np.exp(self.drop * j)
        return np.asarray(np.where(mass > 0, np.maximum(x, 0.0), np.inf))

    def _centre(self, x: Vector) -> Vector:
        return np.asarray(2 * self._cell(np.zeros_like(x), x))

    def _cell(self, a: Vector, w: Vector) -> Vector:
        """Pieces of the two rings at the ends, and the rings between: nothing cancels."""
        a, b = np.broadcast_arrays(a, a + w)
        first, last = self._ring(a), self._ring(b)
        inside = np.exp(-self.drop * first) * w
        out = np.exp(-self.drop * first) * np.maximum(self._edge(first) - a, 0.0)
        into = np.exp(-self.drop * last) * np.maximum(b - self._edge(last - 1), 0.0)
        between = self._beyond(first) * -np.expm1(np.maximum(last - 1 - first, 0.0) * self._log_ratio)
        return np.asarray(np.where(first == last, inside, out + into + between) / (2 * self._mass))
