"""Laplace noise that does not hide an establishment: kept to show what goes wrong. See docs/proofs/baselines.md.

"edge-laplace" adds Laplace(1/eps) and protects single jobs; "node-truncation" drops establishments above theta and adds
Laplace(theta/eps); "down-sensitivity" scales by the largest establishment itself, which no definition covers because
the scale is a function of the data. The tight noise is that of integers, the paper's is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.noise.laws import DiscreteLaplace, Laplace
from discreet.noise.sampler import add_noise
from discreet.noise.source import Source
from discreet.privacy.guarantee import Basis, Calibration, is_tight
from discreet.privacy.losses import Loss, upward
from discreet.privacy.units import EstablishmentNodes, Establishments
from discreet.tables.intervals.quantiles import OUTWARD, not_below_zero
from discreet.tables.mechanisms.mechanism import CellSizes, Follows, Mechanism, Request

if TYPE_CHECKING:
    from discreet.tables.expected import Kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(Mechanism):
    """Laplace noise of one width. Its `unit` is that of a comparison, which it does not keep."""

    law: Laplace | DiscreteLaplace
    width: float

    proof: ClassVar[str] = "docs/proofs/baselines.md"
    hides_establishments: ClassVar[bool] = False
    halves: ClassVar[bool] = False
    stated_constants: ClassVar[tuple[str, ...]] = ("width",)

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        return cls._of_width(ask, 1 / ask.loss.amounts["epsilon"])

    @classmethod
    def _of_width(cls, ask: Request, width: Fraction) -> Self:
        law = DiscreteLaplace() if is_tight(ask.calibration) else Laplace()
        return cls(unit=ask.unit, loss=ask.loss, calibration=ask.calibration, law=law, width=upward(width))

    @classmethod
    def stated(cls, noise: Mapping[str, Any], *, unit: Establishments, loss: Loss, calibration: Calibration) -> Self:
        law = {law.__name__: law for law in (Laplace, DiscreteLaplace)}[noise["law"]]()
        return cls(unit=unit, loss=loss, calibration=calibration, law=law, width=noise["width"])

    @property
    def follows(self) -> Follows:
        return "nothing"

    def scale(self, largest: Vector) -> Vector:
        return self.width * np.ones_like(largest)

    def draw(self, count: Integers, largest: Integers, source: Source) -> Integers:
        return add_noise(count, self.law, scale=self.scale(largest.astype(np.float64)), source=source)

    def expected_error(self, count: Vector, largest: Vector) -> Vector:
        scale = self.scale(largest)
        return self.law.mean(scale) if isinstance(self.law, DiscreteLaplace) else scale

    def integer_error(self, count: Vector, largest: Vector) -> Vector:
        scale, place = np.unique(self.scale(largest), return_inverse=True)
        return self.law.mean(scale)[place].reshape(np.shape(largest))

    def mean_of(self, kinds: Kinds, cells: CellSizes) -> tuple[Vector, Mask]:
        return self.integer_error(cells.jobs, cells.largest), np.zeros(len(cells.jobs), dtype=np.bool_)

    def ends(self, counts: Vector, *, level: float, bounded: bool) -> tuple[Vector, Vector]:
        law, width = self.law, self.width
        laplace = width * -math.log(1 - level) * OUTWARD + 0.5
        reach = law.reach(level, width) if isinstance(law, DiscreteLaplace) else laplace
        return not_below_zero(counts - reach, counts + reach)

    def scaled(self, share: float) -> Self:
        return replace(self, width=self.width * share)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeLaplace(Baseline):
    """Protects single jobs."""

    name: ClassVar[str] = "edge-laplace"
    basis: ClassVar[Basis] = "proved"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTruncation(Baseline):
    """Protects whole establishments of at most theta workers, and counts no other."""

    name: ClassVar[str] = "node-truncation"
    basis: ClassVar[Basis] = "proved"

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        theta = EstablishmentNodes(ask.theta).theta
        return replace(cls._of_width(ask, theta / ask.loss.amounts["epsilon"]), theta=theta)

    @property
    def follows(self) -> Follows:
        return "left out"

    def mean_of(self, kinds: Kinds, cells: CellSizes) -> tuple[Vector, Mask]:
        missing, certain = cells.parts or self.left_out(cells.jobs, cells.largest)
        exact = (missing == 0) | (certain & (cells.known and not kinds.some))
        return self.with_dropped(missing, kinds.levels), ~exact

    def left_out(self, jobs: Vector, largest: Vector) -> tuple[Vector, Mask]:
        """Only the largest establishment's size is known.

        If the others together have at most theta jobs, it is the only one that can be above.
        """
        theta = cast(int, self.theta)
        alone = jobs - largest <= theta
        return np.where(largest <= theta, 0.0, np.where(alone, largest, jobs)), (largest <= theta) | alone

    def with_dropped(self, missing: Vector, levels: int) -> Vector:
        """The mean error of a cell's counts of which `missing` jobs are left out; at most this for several levels.

        A count that lacks b jobs has E|J - b| = b + e^(-b/s) E|J| under either Laplace law, which is convex in b: the
        mean is largest if all of them are of one kind.
        """
        noise = self.law.mean(np.array([self.width]))
        one = missing + np.exp(-missing / self.width) * noise
        return np.asarray((one + (levels - 1) * noise) / levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class DownSensitivity(Baseline):
    """A scale that follows the data, which is why no definition covers it."""

    name: ClassVar[str] = "down-sensitivity"
    basis: ClassVar[Basis] = "as published"

    @classmethod
    def calibrate(cls, ask: Request) -> Self:
        return cls._of_width(replace(ask, calibration="paper"), 1 / ask.loss.amounts["epsilon"])

    def scale(self, largest: Vector) -> Vector:
        return self.width * np.maximum(largest, 1.0)

    def ends(self, counts: Vector, *, level: float, bounded: bool) -> tuple[Vector, Vector]:
        return np.full_like(counts, np.nan), np.full_like(counts, np.nan)
