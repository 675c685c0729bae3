"""Published counts of worker kinds drawn towards the shape of their group: post-processing that costs nothing.

The shape of a group (say, of a sector) is the sum of many published cells and nearly free of noise. A cell's own
shape differs from it for two reasons: noise, which is alike for all kinds, and true variation, which is larger for
kinds near one half. A regression of squared deviations on s (1 - s) separates the two without the confidential scale:
the intercept is noise, the slope is variation, and their ratio gives the weight (empirical Bayes). Helps where noise
outweighs variation (small epsilon), and does little or harm where it does not: docs/explanation/tables-paper.md.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Integers, Vector

CLASSES = 12
"""Size classes of cells, each with its own weight."""


def shrink(counts: Integers, groups: Integers) -> Vector:
    """Counts of shape (cells, kinds) drawn towards the shape of each cell's group; sums of cells stay as they are."""
    total = np.maximum(counts.sum(axis=1), 1).astype(np.float64)[:, None]
    shape = _shapes(counts, groups)[groups]
    deviation = counts / total - shape
    variation = shape * (1 - shape)
    edges = np.quantile(total, np.linspace(0, 1, CLASSES + 1)[1:-1])
    size = np.searchsorted(edges, total[:, 0])
    weight = np.ones_like(deviation)
    for i in np.unique(size):
        rows = size == i
        weight[rows] = _weight(deviation[rows], variation[rows])
    moved = shape + weight * deviation
    return np.asarray(total * (moved + (1 - moved.sum(axis=1, keepdims=True)) * shape))


def _shapes(counts: Integers, groups: Integers) -> Vector:
    sums = np.stack([np.bincount(groups, column) for column in counts.T], axis=1)
    sums = np.maximum(sums, 1e-9)
    return np.asarray(sums / sums.sum(axis=1, keepdims=True))


def _weight(deviation: Vector, variation: Vector) -> Vector:
    """variation / (noise + variation), both estimated from squared deviations whose extremes are cut."""
    from scipy.optimize import nnls

    squared = deviation**2
    squared = np.minimum(squared, np.quantile(squared, 0.99))
    design = np.stack([np.ones(variation.size), variation.ravel()], axis=1)
    (noise, slope), _ = nnls(design, squared.ravel())
    return np.asarray(slope * variation / np.maximum(noise + slope * variation, 1e-300))
