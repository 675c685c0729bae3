"""Maxima of functions of many rows: golden section, and one point in each piece of a density with jumps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from discreet.arrays import Vector

POINTS = 1_000_000  # examined at a time
SAME = 1e-12
"""Jumps closer than this, relative to where they are, are one jump."""


def peaks(
    loss: Callable[[Vector, Vector, Vector], Vector], jumps: Vector, *, shift: Vector, ratio: Vector
) -> tuple[Vector, Vector]:
    """The largest |loss(z, shift, ratio)| of each pair and where it is; `jumps` are those of the positive half line."""
    edges = np.concatenate([-jumps[::-1], [0.0], jumps])
    best, where = np.empty(len(shift)), np.empty(len(shift))
    for rows in np.array_split(np.arange(len(shift)), len(shift) * 2 * edges.size // POINTS + 1):
        u, w = shift[rows, None], ratio[rows, None]
        both = np.sort(np.concatenate([np.broadcast_to(edges, (len(u), edges.size)), u + w * edges], axis=1), axis=1)
        z, width = (both[:, 1:] + both[:, :-1]) / 2, np.diff(both, axis=1)
        value = np.where(width > SAME * np.abs(z), np.abs(loss(z, u, w)), -np.inf)
        top = np.argmax(value, axis=1)[:, None]
        best[rows], where[rows] = (np.take_along_axis(array, top, axis=1)[:, 0] for array in (value, z))
    return best, where


def golden(function: Callable[[Vector], Vector], low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Golden-section maxima of a vectorised function, one bracket a row."""
    g = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        a, b = high - g * (high - low), low + g * (high - low)
        left = function(a) > function(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    z = (low + high) / 2
    return function(z), z
