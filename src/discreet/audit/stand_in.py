"""Establishments that stand in for confidential ones: of a published table's shape, sizes as skewed as in LODES.

Only published numbers and declared shapes enter, so everything computed from them reveals nothing beyond the release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.schema import Label
from discreet.simulate.lodes import SHAPE
from discreet.tables.baseline.establishments import Histograms

if TYPE_CHECKING:
    import pyarrow as pa

MOST_JOBS = 3e8
"""Jobs that are simulated; more than a nation has are noise."""


def same_shape(
    counts: Integers,
    worker_by: tuple[str, ...],
    levels: tuple[tuple[Label, ...], ...],
    keys: pa.Table,
    rng: np.random.Generator,
    *,
    number: Integers | None = None,
    sigma: float = SHAPE.size_sigma,
) -> Histograms:
    """Establishments that together have about `counts` jobs in each cell, of lognormal sizes.

    Amounts are divided in the same way, among a `number` of establishments that is known or supposed.
    """
    import pyarrow as pa

    total = counts.sum(axis=1)
    expected = rng.poisson(total * SHAPE.establishments / SHAPE.jobs) if number is None else number
    number = np.clip(expected, 1, np.maximum(total, 1))
    start = np.concatenate([[0], np.cumsum(number)[:-1]])
    weight = np.exp(sigma * rng.standard_normal(number.sum()))
    share = weight / np.repeat(np.add.reduceat(weight, start), number)
    size = np.floor(np.repeat(total, number) * share).astype(np.int64)
    largest = _first_largest(share, start, number)
    size[largest] += total - np.add.reduceat(size, start)  # what rounding left over
    kinds = np.repeat(counts / total[:, None], number, axis=0)
    return Histograms(
        keys=keys,
        worker_by=worker_by,
        levels=levels,
        establishment=pa.nulls(len(size)),
        start=start,
        counts=rng.multinomial(size, kinds) if counts.shape[1] > 1 else size[:, None],
        size=size,
    )


def _first_largest(values: Vector, start: Integers, number: Integers) -> Integers:
    order = np.lexsort((-values, np.repeat(np.arange(len(start)), number)))
    return order[start]
