"""Rankings of workplace cells, and how far two of them agree.

Haney et al. (2017, section 10): Ranking 1 orders the cells of place x sector x ownership by all jobs, Ranking 2 by the
jobs of women with a college degree. Agreement is Spearman's rank correlation, ties at their average rank, overall and
within strata of places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.data.schema import Label
from discreet.words.errors import DataError

RANKING_2: Mapping[str, Label] = {"sex": "female", "education": "bachelor or more"}
"""The workers that Ranking 2 counts. Ranking 1 counts all."""


def levels_with(wanted: Mapping[str, Label], *, worker_by: Sequence[str], levels: Sequence[Sequence[Label]]) -> Mask:
    """The levels in which every attribute of `wanted` has its value, shape (d,)."""
    unknown = sorted(wanted.keys() - set(worker_by))
    if unknown:
        raise DataError(
            f"A ranking asks for {', '.join(unknown)}, but the table is by {', '.join(worker_by) or 'no attribute'}.",
            "Count by that attribute too.",
            about="wanted",
        )
    return np.array(
        [all(dict(zip(worker_by, level, strict=True))[k] == v for k, v in wanted.items()) for level in levels]
    )


def descending(counts: Vector | Integers) -> Integers:
    """The cells from the largest count to the smallest; cells that tie stay in their order."""
    return np.argsort(-counts, kind="stable")


def average_ranks(values: Vector | Integers) -> Vector:
    """Ranks from 1 for the smallest; equal values share the mean of their ranks."""
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(ties) - (ties - 1) / 2)[place])


def spearman(a: Vector | Integers, b: Vector | Integers) -> float:
    """Spearman's rank correlation; NaN where there are no two different values to rank."""
    return _cosine(_centred_ranks(a), _centred_ranks(b))


def spearman_by(tables: Matrix | Integers, reference: Vector | Integers, *, stratum: Integers, strata: int) -> Matrix:
    """The correlation of each row of `tables` with the reference: over all cells, then within each of the strata."""
    result = np.empty((len(tables), 1 + strata))
    for column, rows in enumerate([np.full(stratum.shape, True), *(stratum == s for s in range(strata))]):
        against = _centred_ranks(reference[rows])
        result[:, column] = [_cosine(_centred_ranks(table[rows]), against) for table in tables]
    return result


def _centred_ranks(values: Vector | Integers) -> Vector:
    return average_ranks(values) - (len(values) + 1) / 2


def _cosine(x: Vector, y: Vector) -> float:
    # Sums instead of x @ y: a threaded BLAS takes longer to start than these take to compute.
    scale = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return float((x * y).sum()) / scale if scale else float("nan")
