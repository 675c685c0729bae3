"""Intervals that contradict each other: which of them give way, so that all others can be met.

Every interval fails with a small probability. Where one has failed, perhaps no numbers meet all of them, and scaling
would spread its error over many sums. A linear programme moves ends as little as possible, measured in widths of their
intervals. Ends are then set free one at a time, each time the one without which least is left to move, until nothing is
(Chinneck 2001, "Fast heuristics for the maximum feasible subsystem problem"). Only sums that share cells with a missed
one, directly or through others, are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from discreet.arrays import Integers, Mask, Vector
from discreet.synthetic.margins import Margin

MOST_CELLS, MOST_FREE = 100_000, 100
"""Cells of one programme and ends that are set free, at most. Where there are more, all stay as they are, and what is
missed is counted. Work is counted and not timed, so that every machine ends alike."""

CANDIDATES, FEW_CELLS = 12, 10_000
"""Ends of either kind that are tried in turn; with more cells than that, only the first."""

SMALL = 1e-6


def reconciled(margins: Sequence[Margin], values: Integers, possible: Mask) -> list[Margin]:
    """The margins, with a few ends moved so that they can be met together, where that is found to be possible."""
    starts = np.cumsum([0, *(len(margin.target) for margin in margins)])
    cells, sums = _incidence(margins, starts, possible)
    missed = np.concatenate([margin.outside(values) for margin in margins])
    lower, upper = (np.concatenate([getattr(margin, end) for margin in margins]) for end in ("lower", "upper"))
    part = _parts(cells, sums, len(values), int(starts[-1]))
    for one in np.unique(part[missed]).tolist():
        here = np.flatnonzero(part == one)
        kept = part[sums] == one
        moved = _moved(*_columns(cells[kept], np.searchsorted(here, sums[kept])), lower[here], upper[here])
        if moved is not None:
            lower[here], upper[here] = np.maximum(lower[here] - moved[0], 0.0), upper[here] + moved[1]
    return [
        replace(margin, lower=lower[a:b], upper=upper[a:b])
        for margin, a, b in zip(margins, starts[:-1], starts[1:], strict=True)
    ]


def _incidence(margins: Sequence[Margin], starts: Integers, possible: Mask) -> tuple[Integers, Integers]:
    """Pairs of a cell and a sum that counts it; sums of all margins are numbered through."""
    inside = [np.flatnonzero((margin.group >= 0) & possible) for margin in margins]
    sums = [margin.group[at] + start for margin, at, start in zip(margins, inside, starts, strict=False)]
    return np.concatenate(inside), np.concatenate(sums)


def _parts(cells: Integers, sums: Integers, n: int, count: int) -> Integers:
    """The part of each sum: sums are in one part if they share cells, directly or through others."""
    graph = sparse.coo_array((np.ones(len(cells), dtype=np.int8), (cells, n + sums)), shape=(n + count, n + count))
    return np.asarray(sparse.csgraph.connected_components(graph, directed=False)[1][n:], dtype=np.int64)


def _columns(cells: Integers, sums: Integers) -> tuple[Integers, Integers]:
    """The pairs with cells numbered through, one for all cells that are in the same sums."""
    order = np.lexsort((sums, cells))
    cells, sums = cells[order], sums[order]
    number = np.unique(cells, return_inverse=True)[1]
    place = np.arange(len(cells)) - np.searchsorted(cells, cells)
    of = np.full((int(number.max(initial=-1)) + 1, int(place.max(initial=0)) + 1), -1, dtype=np.int64)
    of[number, place] = sums
    found, at = np.nonzero((unique := np.unique(of, axis=0)) >= 0)
    return found, unique[found, at]


def _moved(cells: Integers, sums: Integers, lower: Vector, upper: Vector) -> tuple[Vector, Vector] | None:
    """How far lower ends go down and upper ends go up, in whole numbers."""
    n, width = int(cells.max(initial=-1)) + 1, np.where(np.isfinite(upper), upper - lower, 0.0) + 1
    if not 0 < n <= MOST_CELLS:
        return None
    least, most = np.flatnonzero(lower > 0), np.flatnonzero(np.isfinite(upper))
    table = sparse.csr_array((np.ones(len(cells)), (sums, cells)), shape=(len(lower), n))
    ends = sparse.vstack([-table[least], table[most]])
    k = ends.shape[0]
    A = sparse.hstack([ends, -sparse.eye_array(k)], format="csr")
    b, price = np.concatenate([-lower[least], upper[most]]), 1 / np.concatenate([width[least], width[most]])
    free = _fewest(A, b, price)
    found = None if free is None else _slack(A, b, np.where(free, price, price / SMALL))
    if found is None:
        return None
    down, up = np.zeros(len(lower)), np.zeros(len(lower))
    down[least], up[most] = np.split(np.ceil(found[0] - SMALL).clip(0.0), [len(least)])
    return down, up


def _fewest(A: sparse.csr_array, b: Vector, price: Vector) -> Mask | None:
    """Few ends without which all others can be met."""
    free = np.zeros(len(b), dtype=np.bool_)
    while (found := _slack(A, b, np.where(free, 0.0, price))) is not None and free.sum() < MOST_FREE:
        slack, dual = np.where(free, 0.0, found[0]), found[1]
        moved = slack > SMALL
        if not moved.any():
            return free
        ranks = (np.where(moved, slack * dual, 0.0), np.where(moved, 0.0, dual))
        tried = [at for rank in ranks for at in np.argsort(-rank, kind="stable")[:CANDIDATES].tolist() if rank[at] > 0]
        tried, left = tried[: 1 if A.shape[1] > FEW_CELLS else None], list[float]()
        for at in tried if len(tried) > 1 else ():
            cost = np.where(free, 0.0, price)
            cost[at] = 0.0
            other = _slack(A, b, cost)
            left.append(np.inf if other is None else float(cost @ other[0]))
        free[tried[int(np.argmin(left)) if left else 0]] = True
    return None


def _slack(A: sparse.csr_array, b: Vector, price: Vector) -> tuple[Vector, Vector] | None:
    """How far ends must move so that all are met, at the least price, and what the last unit of each costs."""
    n = A.shape[1] - len(b)
    solved = linprog(np.concatenate([np.zeros(n), price]), A_ub=A, b_ub=b, method="highs")
    return (solved.x[n:], np.abs(solved.ineqlin.marginals)) if solved.success else None
