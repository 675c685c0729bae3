"""Skewness of a part's estimate, and its correction.

A part's estimate is a weighted sum of errors. If these are skewed, so is the sum, by `estimate`, and it moves together
with the part's own error variance, by `ratio`. Both are third moments over the third power of a deviation: about the
errors' skewness over the root of the part's rows. Hall's transformation (1992, after Johnson 1978) makes a ratio with
such moments normal to the first order. Everything here is a function of the part's own rows: it costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.bayes.conjugate import Marginals, Parts

MOST = 1.0  # what more skewed parts count as: the expansion is for small moments
FAR = 8.0  # deviations; further out a probability says nothing more


@dataclass(frozen=True, slots=True)
class Skewness:
    """Standardised third moments, one for each part and column; 0 where a part has none."""

    estimate: Matrix
    ratio: Matrix


def skewness(block: Matrix, parts: Parts, columns: Integers) -> Skewness:
    """Of each part's least squares estimates, from the rows [X y] of its block."""
    asked, back = np.unique(columns, return_inverse=True)
    X, y = block[:, :, :-1], block[:, :, -1]
    inverse = parts.inverse
    with np.errstate(all="ignore"):
        rows = inverse[:, asked]
        weight = X @ (inverse @ np.swapaxes(rows / np.sqrt((rows**2).sum(axis=-1))[..., None], 1, 2))
        error = y - (X @ parts.least_squares()[..., None])[..., 0]
        cubes = ((error / np.sqrt((error**2).sum(axis=1) / parts.rows)[:, None]) ** 3)[..., None]
        found = [(weight**3 * cubes).sum(axis=1), (weight * cubes).sum(axis=1) / parts.rows[:, None]]
        return Skewness(*(np.where(np.isfinite(g), np.clip(g, -MOST, MOST), 0.0)[:, back] for g in found))


@dataclass(frozen=True, slots=True)
class Straightened:
    """Posteriors whose probabilities are those of an estimate that is not skewed."""

    posterior: Marginals
    skewness: Skewness

    def cdf(self, b: Vector) -> Matrix:
        from scipy.special import ndtr, ndtri

        t = np.clip(ndtri(np.clip(self.posterior.cdf(b), 0.0, 1.0)), -FAR, FAR)  # a sum of shares may be above 1
        c = (3 * self.skewness.ratio - self.skewness.estimate) / 6
        return np.asarray(ndtr(t - self.skewness.estimate / 6 - c * t**2 + c**2 * t**3 / 3))

    def quantile(self, q: Vector) -> Matrix:
        return self.posterior.quantile(q)
