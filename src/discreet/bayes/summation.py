"""A private sum of bounded numbers, one for each part of a data set, exact on a public grid.

Each number is clipped to [0, span] and rounded to whole steps of a grid before anything is added, so the sum is an
integer that a replaced row changes by at most the steps in the span. Rounding costs nothing: the span is whole steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Vector
from discreet.bayes.spending import upward
from discreet.noise.laws import Laplace
from discreet.noise.sampler import draw_integers

if TYPE_CHECKING:
    from discreet.noise.source import Source

BITS = 30  # of the grid: steps in a span; two thousand million parts still add up exactly in 64 bits
BAND = 0.95


@dataclass(frozen=True, slots=True)
class NoisySum:
    """A sum with Laplace noise of the given scale."""

    value: float
    scale: float

    @property
    def reach(self) -> float:
        """The noise is smaller than this with probability 0.95."""
        return -self.scale * math.log(1 - BAND)


def noisy_sum(values: Vector, *, span: float, epsilon: Fraction, source: Source) -> NoisySum:
    """The sum of `values` clipped to [0, span], with Laplace(span / epsilon) noise."""
    grid = 2.0 ** (math.ceil(math.log2(span)) - BITS)
    steps = math.ceil(span / grid)
    total = np.clip(np.rint(values / grid), 0, steps).astype(np.int64).sum()
    scale = upward(steps / epsilon)
    return NoisySum(float(total + draw_integers(Laplace(), scale=scale, source=source)) * grid, scale * grid)
