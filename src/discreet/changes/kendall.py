"""Kendall's tau-b with the normal test for tied data and a continuity correction.

SciPy has the same tau; its p-value leaves the correction out, with which the paper's figures agree (they equal R's
`cor.test(continuity = TRUE)` and its package Kendall).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from discreet.arrays import Vector
from discreet.words.errors import DataError


@dataclass(frozen=True, slots=True)
class Kendall:
    """Rank correlation `tau` of `n` pairs and its two-sided p-value."""

    tau: float
    p: float
    n: int


def kendall(x: ArrayLike, y: ArrayLike) -> Kendall:
    """Are two rankings related? All pairs are compared, so this is for tens of methods, not for data."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    n = len(x)
    if n < 3 or len(y) != n:
        raise DataError(
            f"Kendall's tau needs three pairs and got {n} and {len(y)} values.", "Rank more methods.", about="x"
        )
    s = (np.sign(x[:, None] - x) * np.sign(y[:, None] - y)).sum() / 2
    pairs = n * (n - 1)
    (x1, x2, x3), (y1, y2, y3) = _ties(x), _ties(y)
    if x1 == pairs or y1 == pairs:
        raise DataError(
            "Kendall's tau is undefined when all values are equal.", remedy="Give a ranking that differs.", about="x"
        )
    tau = 2 * s / np.sqrt((pairs - x1) * (pairs - y1))
    variance = (pairs * (2 * n + 5) - x3 - y3) / 18 + x1 * y1 / (2 * pairs)
    variance += x2 * y2 / (9 * pairs * (n - 2))
    z = max(abs(s) - 1, 0) / np.sqrt(variance)
    return Kendall(tau=float(tau), p=float(2 * ndtr(-z)), n=n)


def _ties(values: Vector) -> tuple[float, float, float]:
    """Sums of t(t-1), t(t-1)(t-2) and t(t-1)(2t+5) over the groups of equal values."""
    t = np.unique(values, return_counts=True)[1].astype(float)
    return (t * (t - 1)).sum(), (t * (t - 1) * (t - 2)).sum(), (t * (t - 1) * (2 * t + 5)).sum()
