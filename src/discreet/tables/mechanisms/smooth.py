"""Noise in proportion to the smooth sensitivity: count + factor * max(alpha * largest, floor) * Z.

The common parts of all laws of Z: the scale, the draw, expected errors and intervals. The file of each mechanism
chooses `factor` and the law. x, the largest establishment, is confidential. But x is at most the cell's true count, so
a count n is plausible for a published m only if |m - n| <= q factor max(alpha n, floor) + 1/2, q the law's quantile
(docs/proofs/intervals.md). With noisy sizes, |e| <= factor alpha y |Z| e^(-l L) (docs/proofs/sizes.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.noise.law import Rounded
from discreet.noise.sampler import add_noise
from discreet.noise.source import Source
from discreet.privacy.guarantee import Calibration
from discreet.privacy.losses import Loss
from discreet.privacy.units import Establishments, is_weak
from discreet.tables.intervals.quantiles import OUTWARD, line_quantile, pivot_quantile, plausible
from discreet.tables.mechanisms.mechanism import CellSizes, Mechanism

if TYPE_CHECKING:
    from discreet.tables.expected import Kinds
    from discreet.tables.sizes import NoisySizes

SEARCHED = (2.0**-16, 500.0)
"""Below, a rounded scale can lose more than the margin; above, e^epsilon and its noise exceed the range of doubles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothNoise(Mechanism):
    """Noise in proportion to the smooth sensitivity.

    Attributes
    ----------
    floor : the step of one worker, or more where that is to take half of the loss only.
    laws : those that Z may have.
    """

    law: Rounded
    factor: float
    floor: float = 1.0

    sized: ClassVar[bool] = True
    stated_constants: ClassVar[tuple[str, ...]] = ("factor", "floor")
    laws: ClassVar[tuple[type[Rounded], ...]]

    @classmethod
    def stated(cls, noise: Mapping[str, Any], *, unit: Establishments, loss: Loss, calibration: Calibration) -> Self:
        law = {law.__name__: law for law in cls.laws}[noise["law"]](**noise["parameters"])
        own = {name: noise[name] for name in cls.stated_constants} | {"step": noise.get("step", 1)}
        return cls(unit=unit, loss=loss, calibration=calibration, law=law, **own)

    def of_amounts(self, cap: int) -> Self:
        """The same noise for sums of which one worker adds at most `cap`: the law is one of amounts over the cap."""
        if not self.amounts:
            return Mechanism.of_amounts(self, cap)
        return replace(self, floor=self.floor * cap, step=cap)

    @property
    def joint(self) -> bool:
        return self.law.dimension > 1

    @property
    def sizes_floor(self) -> float:
        return self.floor

    @property
    def square_bound(self) -> tuple[float, float] | None:
        """Rounding adds at most 1/2 to a root mean square s sd(Z), s the scale; docs/proofs/consistency.md."""
        if not np.isfinite(self.variance):
            return None
        sd = self.factor * float(np.sqrt(self.variance)) * OUTWARD
        least = sd * self.floor
        return sd * float(self.unit.alpha) * float(np.sqrt(1 + 1 / least)), least + 0.5

    @property
    def variance(self) -> float:
        """That of Z, or the largest that it has."""
        return self.law.variance

    def scale(self, largest: Vector) -> Vector:
        return self.factor * np.maximum(float(self.unit.alpha) * largest, self.floor)

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        return add_noise(count, self.law, scale=self.scale(largest.astype(np.float64)), source=source)

    def expected_error(self, count: Vector, largest: Vector) -> Vector:
        return self.scale(largest) * self.law.mean_abs

    def integer_error(self, count: Vector, largest: Vector) -> Vector:
        scale, place = np.unique(self.scale(largest), return_inverse=True)
        return self.law.mean(scale)[place].reshape(np.shape(largest))

    def mean_of(self, kinds: Kinds, cells: CellSizes) -> tuple[Vector, Mask]:
        jobs, largest = cells.jobs, cells.largest
        follows = float(self.unit.alpha) * largest > self.floor
        if is_weak(self.unit.strength) and kinds.some and not self.joint:
            return self._by_kinds(jobs, largest, kinds.levels), follows
        return self.integer_error(jobs, largest), follows & (not cells.known)

    def _by_kinds(self, jobs: Vector, largest: Vector, levels: int) -> Vector:
        """The most that the mean error of a cell's counts can be where noise follows the workers of one kind.

        One establishment has x_v of kind v: at most `largest`, and all x_v together at most `jobs`. Rounding lowers the
        error, and before it the error is convex in x_v: it is largest if as many kinds as there are jobs for have
        `largest`, and the others none.
        """
        share = np.minimum(jobs / np.maximum(largest, 1.0) / levels, 1.0)
        none = self.expected_error(jobs, np.zeros_like(largest))
        rounded = none + share * (self.expected_error(jobs, largest) - none)
        return np.minimum(self.integer_error(jobs, largest), rounded)

    def ends(self, counts: Vector, *, level: float, bounded: bool) -> tuple[Vector, Vector]:
        if not bounded:
            return np.full_like(counts, np.nan), np.full_like(counts, np.nan)
        return self._bounded_ends(counts, level=level)

    def _bounded_ends(self, counts: Vector, *, level: float) -> tuple[Vector, Vector]:
        """The ends where a count is at least the size that sets its noise."""
        return plausible(counts, self.factor * self._quantile(level), float(self.unit.alpha), self.floor)

    def half_width(
        self, published: Integers | Vector, sizes: NoisySizes, *, level: float, beside: float | None = None
    ) -> Vector:
        """A size was rounded by at most 1/2, and so was the count; the floor of sizes is at least ours."""
        size = float(self.unit.alpha) * (np.asarray(published, dtype=np.float64) + 0.5)
        within = np.inf if beside is None else self._quantile(beside)
        reach = size * pivot_quantile(self.law, sizes.exponent, level, within)
        return np.asarray(self.factor * reach * OUTWARD + 0.5)

    def reach(self, most: Vector, *, level: float) -> Vector:
        return np.asarray(self.scale(most) * OUTWARD * self._quantile(level) + 0.5)

    def _quantile(self, level: float) -> float:
        """q with P(|Z| <= q) of one coordinate, in the event on which the ends of the counts rest."""
        return line_quantile(self.law, level)

    def scaled(self, share: float) -> Self:
        return replace(self, factor=self.factor * share)
