"""The least scale of noise that keeps pace with growth: exact for small workforces, in proportion beyond.

An establishment of y workers may gain g(y) = max(floor(alpha y), 1) in one step. The scale c(x) of a cell whose largest
establishment has x workers is the least one with

    c(x) >= every gain that ends at x or below,        c(x + g(x)) <= (1 + alpha) c(x).

It is at most max(alpha x / (1 + alpha), 1), which has both properties, and is 1 as long as no gain of two is near:
workforces are whole numbers, and one of 19 gains one worker at alpha = 0.1, not 1.9 (docs/proofs/rings.md).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.arrays import Vector

TABLED = 50
"""Workforces up to so many times 1/alpha have a scale of their own; beyond, that is below one per cent."""

MOST_TABLED = 20_000


def paced(alpha: Fraction, largest: Vector) -> Vector:
    """c(x) for the size x of every cell's largest establishment, rounded up to whole workers; not below nobody."""
    x = np.maximum(np.ceil(np.asarray(largest, dtype=np.float64)), 0.0)
    table = _table(alpha)
    beyond = np.maximum(float(alpha / (1 + alpha)) * x, 1.0)
    place = np.nan_to_num(np.minimum(x, len(table) - 1)).astype(np.int64)  # a size that is not known has no scale
    return np.asarray(np.where(x < len(table), table[place], beyond))


@lru_cache(maxsize=64)
def _table(alpha: Fraction) -> Vector:
    """c(x) for x below some size, from there down."""
    size = math.ceil(TABLED / alpha)
    if size > MOST_TABLED:
        return np.ones(1)
    gain = [max(math.floor(alpha * y), 1) for y in range(size)]
    most = np.ones(size)
    for y, gained in enumerate(gain):
        if y + gained < size:
            most[y + gained] = gained  # beyond alpha = 1 some are passed over, and what is ahead covers them
    most = np.maximum.accumulate(most)
    share, growth = float(alpha / (1 + alpha)), float(1 + alpha)
    scale = np.empty(size)
    for x in range(size - 1, -1, -1):
        after = x + gain[x]
        ahead = scale[after] if after < size else max(share * after, 1.0)
        scale[x] = max(most[x], ahead / growth)
    return scale
