"""Bounds that tables of one release give each other: they make intervals narrow and cost nothing.

A count is at most the count that it is part of. The largest establishment of a cell, which sets its noise, is that of
one of the finer cells in it. So it is no larger than the largest size that their counts allow. It is not known which
finer cell that is, but it does not depend on the noise, so only its bound has to be true (docs/proofs/consistency.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.arrays import Vector
from discreet.tables.consistency import members_of
from discreet.tables.intervals.quantiles import not_below_zero
from discreet.tables.prepared import Drawn, Prepared
from discreet.tables.query import CountQuery
from discreet.tables.release import CountRelease

ABOVE, BELOW = 0.02, 0.05
"""Shares of the probability to fail of the upper end of the count above, and of the bound by finer cells."""


def narrowed(
    queries: Sequence[CountQuery], ready: Sequence[Prepared], tables: Sequence[CountRelease], *, level: float
) -> list[tuple[Vector, Vector]]:
    """Intervals of the true counts of every table, from all of them."""
    found, miss = [], 1 - level
    drawn = [Drawn(table.counts, table.largest, table.at_most) for table in tables]
    for i, (query, part, table) in enumerate(zip(queries, ready, tables, strict=True)):
        above, below = _above(i, tables), _below(i, queries, ready)
        own = 1 - miss * (1 - ABOVE * (above is not None) - BELOW * (below is not None))
        lower, upper = query.ends(part, drawn[i])(own)
        if below is not None:
            fine = tables[below]
            most = ready[below].mechanism.most_workers(fine.counts.astype(np.float64), miss=miss * BELOW)
            rows = members_of(fine, table).reshape(fine.counts.shape)[:, 0] // table.counts.shape[1]
            largest = np.zeros(len(table.counts))
            np.maximum.at(largest, rows, most)
            reach = part.mechanism.reach(largest, level=own)[:, None]
            low, high = not_below_zero(table.counts - reach, table.counts + reach)
            lower, upper = np.fmax(lower, low), np.fmin(upper, high)
        if above is not None:
            most_above = queries[above].ends(ready[above], drawn[above])(1 - miss * ABOVE)[1]
            upper = np.fmin(upper, most_above.ravel()[members_of(table, tables[above])].reshape(upper.shape))
            lower = np.where(np.isnan(lower), 0.0, lower)
        found.append((np.fmin(lower, upper), upper))
    return found


def _above(i: int, tables: Sequence[CountRelease]) -> int | None:
    """The table just above: a count of table i is part of one of its counts."""
    above = [j for j, table in enumerate(tables) if tables[i].covers(table) and not table.covers(tables[i])]
    return max(above, key=lambda j: tables[j].counts.size) if above else None


def _below(i: int, queries: Sequence[CountQuery], ready: Sequence[Prepared]) -> int | None:
    """The table with the finest workplace cells in those of table i, if it counts all workers of each.

    Where sizes were paid for they tell more.
    """
    if ready[i].sizes is not None or not ready[i].mechanism.sized:
        return None
    finer = [
        j
        for j, (query, part) in enumerate(zip(queries, ready, strict=True))
        if query.nests(queries[i]) and query.where == queries[i].where and query.counts_everyone(part.mechanism)
    ]
    return max(finer, key=lambda j: sum(queries[j].nests(queries[k]) for k in finer)) if finer else None
