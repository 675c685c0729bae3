"""Noise for all d counts of the same establishments under one epsilon, for the weak definition: docs/proofs/rings.md.

Weakly, an establishment gains at most s_c workers of kind c and S in all. Rings of the norm g(z+) + g(z-), g(y) =
max(max y_c / s_c, sum y_c / S), depend on both. Kinds that are small in every establishment get little noise, and small
establishments no more than that of one worker. The norm's ball lies between those of one kind and of the sum, which
gives bounds: a coordinate over s_c is at most uniform on balls, and the sizes of all together are at most S times the
radius.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.noise.rings import COARSE, Rings, table
from discreet.noise.sampler import add, draw_within
from discreet.noise.source import Source
from discreet.privacy.guarantee import Basis
from discreet.tables.intervals.quantiles import OUTWARD, pivot_quantile, plausible
from discreet.tables.mechanisms.joint_rings import JointRings
from discreet.tables.mechanisms.mechanism import CellSizes, Request
from discreet.tables.mechanisms.smooth import SmoothNoise

if TYPE_CHECKING:
    from discreet.tables.expected import Kinds
    from discreet.tables.sizes import NoisySizes


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakJoint(JointRings):
    """Rings whose volume and radius need not change together. `draw` takes x_c of every kind and, last, of all."""

    name: ClassVar[str] = "weak-joint"
    basis: ClassVar[Basis] = "proved"
    coupled: ClassVar[bool] = False
    strong_by_kind: ClassVar[bool] = False
    by_kinds: ClassVar[bool] = True

    @classmethod
    def needed(cls, cells: int) -> int:
        return cells + 1

    @classmethod
    def room(cls, ask: Request) -> Fraction:
        """Far out a step that loses epsilon is one ring longer than ln(1 + alpha)."""
        return 1 + Fraction(min(COARSE / ask.b, 0.25))

    @property
    def joint(self) -> bool:
        return True

    def scales(self, largest: Integers | Vector) -> tuple[Vector, Vector]:
        """s_c of every kind, and S, from x_c and, in the last column, all workers'; of one kind from x alone."""
        found = self.scale(np.asarray(largest, dtype=np.float64))
        return (found[:, :-1], found[:, -1]) if found.ndim > 1 else (found[:, None], found)

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        own, whole = self.scales(largest)
        noise = draw_within(cast(Rings, self.law), scale=own, total=whole, source=source)
        return add(count, noise.reshape(count.shape))

    def draw_apart(self, count: Integers, largest: Integers, source: Source) -> Integers:
        """The same where nothing bounds the sum: the ball is the hull of a box and its negative."""
        own = self.scale(largest.astype(np.float64))
        return add(count, draw_within(cast(Rings, self.law), scale=own, total=own.sum(axis=1), source=source))

    def integer_error(self, count: Vector, largest: Vector) -> Vector:
        """At most: of a cell whose kinds are not known, by the sum alone; exact where all scales are one worker's."""
        scale = self.scale(largest)
        exact = scale <= self.factor
        return np.asarray(np.where(exact, SmoothNoise.integer_error(self, count, largest), scale * self.law.mean_abs))

    def mean_of(self, kinds: Kinds, cells: CellSizes) -> tuple[Vector, Mask]:
        return self.integer_error(cells.jobs, cells.largest), self.scale(cells.largest) > self.factor

    def _bounded_ends(self, counts: Vector, *, level: float) -> tuple[Vector, Vector]:
        """x_c is at most the cell's own count, and so is what s_c follows."""
        return plausible(counts, self.factor * self._quantile(level), self.share, self.floor)

    def half_width(
        self, published: Integers | Vector, sizes: NoisySizes, *, level: float, beside: float | None = None
    ) -> Vector:
        size = float(self.unit.alpha) * (np.asarray(published, dtype=np.float64) + 0.5)
        within = np.inf if beside is None else self._quantile(beside)
        wide = Cylinders(cast(Rings, self.law))
        return np.asarray(self.factor * size * pivot_quantile(wide, sizes.exponent, level, within) * OUTWARD + 0.5)

    def _quantile(self, level: float) -> float:
        return cylinder_quantile(cast(Rings, self.law), 1 - level)

    def _sum_quantile(self, miss: float) -> float:
        return cylinder_quantile(cast(Rings, self.law), miss)


@dataclass(frozen=True, slots=True)
class Cylinders:
    """The widest law that one coordinate of a law of rings can have in a norm that is 1 at the ends of its axis.

    Sections of a symmetric convex body never grow outward, so P(|z_c| > t) is at most 1 - t of a ball of radius 1.
    """

    law: Rings

    def beyond(self, x: Vector) -> Vector:
        radius, chance = table(self.law).balls
        column = np.asarray(x, dtype=np.float64).reshape(-1, 1)
        parts = [np.maximum(1 - column[at : at + 512] / radius, 0.0) @ chance for at in range(0, len(column), 512)]
        return np.concatenate(parts).reshape(np.shape(x))


@lru_cache(maxsize=64)
def cylinder_quantile(law: Rings, miss: float) -> float:
    """q with P(|z_c| > q s_c) <= miss for every kind and every norm of the mechanism, and of the sum for S."""
    low, high, wide = 0.0, 1.0, Cylinders(law)
    while wide.beyond(np.array([high]))[0] > miss:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if wide.beyond(np.array([middle]))[0] > miss else (low, middle)
    return high * OUTWARD
