"""Errors of published counts beside the errors of noise infusion, the measure of Haney et al. (2017, section 10).

Arrays only. An error is the expected |published - true| of each cell, shape (cells,) or (cells, d), from any source: a
mechanism's closed form, infusion's expectation, or the mean over trials.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.utility.strata import sums

POINTS = 0.10


def l1_ratio(error: Matrix, reference: Matrix, *, stratum: Integers) -> Vector:
    """L1 error over the reference's, for all cells and for each stratum; NaN where a stratum has no error to divide."""
    top, bottom = (sums(e.reshape(len(e), -1).sum(axis=1), stratum=stratum) for e in (error, reference))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(bottom > 0, top / bottom, np.nan))


def within_points(error: Matrix, reference: Matrix, *, true: Integers, points: float = POINTS) -> float:
    """The share of the cells with jobs whose relative error exceeds the reference's by at most `points`."""
    filled = true > 0
    return float(np.mean(error[filled] - reference[filled] <= points * true[filled]))


def largest_share(*, true: Integers, largest: Integers) -> Vector:
    """The largest establishment's share of every cell that has jobs: the least relative error of node privacy."""
    filled = true > 0
    return np.asarray(largest[filled] / true[filled])
