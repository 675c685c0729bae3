"""The bias of small parts, corrected by their halves.

A statistic of m rows is off by about c / m, c a number of the data: curvature, far values or skewness make it large. A
part is off by c / m and its halves by 2 c / m, so their difference estimates c / m. A part's posterior is shifted by it
(by 1 - 1 / M of it: the whole data are off by c / n themselves). A probability near 1/2 is off by a / sqrt(m), whatever
the reason is, so its halves' are off by sqrt(2) times that (`Extrapolated`). This costs no privacy: halves are rows of
the same part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.models.bayes.conjugate import Marginals

LEAST_HALF = 4  # rows of a half for each of its p + 1 numbers; below, halves are too far off to correct anything


@dataclass(frozen=True, slots=True)
class Shifted:
    """Posteriors that are moved down by `by`, one number for each part and column."""

    posterior: Marginals
    by: Matrix

    def cdf(self, b: Vector) -> Matrix:
        return self.posterior.cdf(b + self.by)

    def quantile(self, q: Vector) -> Matrix:
        return self.posterior.quantile(q) - self.by


@dataclass(frozen=True, slots=True)
class Extrapolated:
    """Probabilities of parts from those of their halves: 1/2 + 2 (p - 1/2) - sqrt(2) (h - 1/2), cut to [0, 1].

    Let t be the deviations of a part between a cut-off near the middle and the truth. On average p is 1/2 + t k + a /
    sqrt(m), and h, the mean of the halves', is 1/2 + t k / sqrt(2) + a sqrt(2 / m). So a cancels and t k stays.

    Attributes
    ----------
    whole, half : posteriors of the parts, and of first and second halves, one after the other.
    usable : whether both halves of a part say something, one for each part and column.
    """

    whole: Marginals
    half: Marginals
    usable: Mask

    def cdf(self, b: Vector) -> Matrix:
        p, h = self.whole.cdf(b), self.half.cdf(b).reshape(2, len(self.usable), -1).mean(axis=0)
        return np.where(self.usable, np.clip(extrapolated(p, h), 0.0, 1.0), p)

    def quantile(self, q: Vector) -> Matrix:
        return self.whole.quantile(q)


def extrapolated(p: Matrix, h: Matrix) -> Matrix:
    """The parts' answers without the error of their normal approximation, from parts and halves."""
    return np.asarray(0.5 + 2 * (p - 0.5) - math.sqrt(2) * (h - 0.5))


def corrects(rows: int, parts: int, coefficients: int) -> bool:
    """Whether the halves of these parts are large enough."""
    return parts > 1 and rows // parts // 2 >= LEAST_HALF * (coefficients + 1)


def lost(rows: int, parts: int, coefficients: int, one_in: float = 0.0) -> float:
    """Variance that working in parts adds, in units of the posterior's, for normal data: h / (h - p - 1) - 1.

    h are the rows that least squares is done in: those of a half if these correct, else those of a part. If one row in
    more than p + 1 carries the coefficient, `one_in` is used instead.
    """
    h = rows // parts // (2 if corrects(rows, parts, coefficients) else 1)
    numbers = max(coefficients + 1, one_in)
    return (1 - 1 / parts) * numbers / max(h - numbers, 1)


def halves(block: Matrix, rows: Integers) -> tuple[Matrix, Integers]:
    """The first halves of all parts, then the second ones, and how many rows each has."""
    pair = [block[:, : block.shape[1] // 2 * 2 : 2], block[:, 1::2]]
    return np.concatenate(pair), np.concatenate([rows // 2, rows // 2])


def drift(
    posterior: Callable[[Matrix, Integers], Marginals], whole: Marginals, block: Matrix, rows: Integers, columns: int
) -> Matrix:
    """The difference of the halves of a part from the part, one number for each part and column.

    0 if a half has no answer.

    An odd last row of a block is left out of the halves.
    """
    parts = len(block)
    half = posterior(*halves(block, rows))
    low, middle, high = (half.quantile(np.full(columns, q)) for q in (0.25, 0.5, 0.75))
    own = whole.quantile(np.full(columns, 0.5))
    with np.errstate(all="ignore"):
        first, second = middle[:parts], middle[parts:]
        found = (1 - 1 / parts) * ((first + second) / 2 - own)
        usable = (low < high).reshape(2, parts, -1).all(axis=0) & np.isfinite(found)
    return np.where(usable, found, 0.0)
