"""Private sums of bounded numbers, one for each part of a data set, exact on a public grid.

Each number is clipped to [0, span] and rounded to whole steps of a grid before anything is added. So the sum is an
integer, and a replaced row changes it by at most the steps in the span. Rounding costs nothing: these are whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.bayes.reach import BAND
from discreet.noise.laws import Laplace
from discreet.noise.sampler import add_noise
from discreet.privacy.losses import upward

if TYPE_CHECKING:
    from discreet.noise.source import Source

BITS = 30  # of the grid: steps in a span; two thousand million parts still add up exactly in 64 bits


@dataclass(frozen=True, slots=True)
class LaplaceSums:
    """Sums with Laplace noise of the given scales."""

    value: Vector
    scale: Vector

    @property
    def reach(self) -> Vector:
        """The noise is smaller than this with probability 0.95."""
        return np.asarray(-self.scale * math.log(1 - BAND))


def noisy_sums(values: Matrix, *, span: float, epsilons: Sequence[Fraction], source: Source) -> LaplaceSums:
    """The sum of each column of `values`, clipped to [0, span], with Laplace(span / its epsilon) noise."""
    grid = 2.0 ** (math.ceil(math.log2(span)) - BITS)
    steps = math.ceil(span / grid)
    totals = whole_steps(values, grid, steps).sum(axis=0)
    scales = {epsilon: upward(steps / epsilon) for epsilon in set(epsilons)}
    scale = np.array([scales[epsilon] for epsilon in epsilons])
    noisy = add_noise(totals, Laplace(), scale=scale, source=source)
    return LaplaceSums(np.asarray(noisy * grid, dtype=np.float64), scale * grid)


def whole_steps(values: Matrix, grid: float, steps: int) -> Integers:
    """Each value in whole steps of the grid, from 0 to `steps`; what is not a number counts 0."""
    with np.errstate(all="ignore"):  # a value too large to be counted in steps is clipped like any other
        found = np.clip(np.rint(values / grid), 0, steps)
    return np.where(np.isnan(found), 0.0, found).astype(np.int64)
