"""Workforces of establishments, drawn from a declared shape: lognormal sizes, as many as are public or expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.simulate.lodes import SHAPE
from discreet.words.errors import DataError
from discreet.words.faults import Argument

SHARING = 30
"""Rounds in which what is above a cap is given to others, at most."""


@dataclass(frozen=True, slots=True)
class SizeShape:
    """Declared facts about establishments that a release does not give; they are public, never learned from the data.

    Attributes
    ----------
    mean : jobs per establishment.
    sigma : standard deviation of the logarithm of a size.
    """

    mean: float = SHAPE.jobs / SHAPE.establishments
    sigma: float = SHAPE.size_sigma

    def __post_init__(self) -> None:
        for name, value, most in (("mean", self.mean, 1e9), ("sigma", self.sigma, 10.0)):
            if not (isinstance(value, int | float) and 0 < value <= most):
                raise DataError(
                    (Argument(name, value), " is no shape of establishments."),
                    f"It is a number above 0 and at most {most:g}.",
                    "Leave it out for the shape of the LODES data.",
                    about=name,
                )


def number(jobs: Integers, shape: SizeShape, rng: np.random.Generator) -> Integers:
    """The number of establishments of each cell, if that is not public: at least one where there is a job."""
    drawn = rng.poisson(jobs / shape.mean)
    return np.clip(drawn, np.minimum(jobs, 1), jobs)


def workforces(
    jobs: Integers,
    establishments: Integers,
    shape: SizeShape,
    rng: np.random.Generator,
    *,
    largest: Vector | None = None,
) -> Integers:
    """Sizes of all establishments, cell by cell, that add up to the jobs of each cell.

    `largest` is the most that an establishment of a cell has, where something is published about it.
    """
    cell = np.repeat(np.arange(len(jobs)), establishments)
    first = np.minimum(jobs, establishments)  # one job each, as far as they go
    place = np.arange(len(cell)) - np.repeat(np.cumsum(establishments) - establishments, establishments)
    one = (place < first[cell]).astype(np.int64)
    weight = np.exp(shape.sigma * rng.standard_normal(len(cell)))
    most = np.full(len(cell), np.inf)
    if largest is not None:
        even = np.ceil(np.divide(jobs, establishments, out=np.zeros(len(jobs)), where=establishments > 0))
        most = np.maximum(np.nan_to_num(largest, nan=np.inf), even)[cell]
    return one + shared(jobs - first, cell, weight, np.where(one > 0, np.maximum(most - 1, 0), 0))


def shared(totals: Integers, cell: Integers, weight: Vector, most: Vector) -> Integers:
    """Whole numbers in proportion to weights, none above `most`, that add up to the total of each cell.

    Members of a cell are neighbours. If all of `most` together are less than the total, the rest goes to the first
    member.
    """
    got, left = np.zeros(len(cell), dtype=np.int64), totals.astype(np.int64)
    filled, first = np.unique(cell, return_index=True)
    room = np.where(np.isfinite(most), most, float(2**52))
    for _ in range(SHARING):
        weights = np.where((got < room) & (left[cell] > 0), weight, 0.0)
        whole = np.bincount(cell, weights=weights, minlength=len(totals))
        if not whole.any():
            break
        share = np.divide(left, whole, out=np.zeros(len(totals)), where=whole > 0)[cell] * weights
        # Running totals are rounded, so that a cell's shares add up to what is left.
        running = np.cumsum(share)
        start = np.zeros(len(totals))
        start[filled] = running[first] - share[first]
        ends = np.floor(running - start[cell] + 0.5)
        fresh = np.diff(ends, prepend=0.0)
        fresh[first] = ends[first]
        fresh = np.clip(fresh, 0, room - got).astype(np.int64)
        got += fresh
        left = left - np.bincount(cell, weights=fresh, minlength=len(totals)).astype(np.int64)
    got[first] += left[filled]
    return got
