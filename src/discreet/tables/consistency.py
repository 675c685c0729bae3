"""Tables of one release made to agree, in non-negative integers: post-processing that costs nothing.

The finest table has every attribute of the others, so each other table is a sum of its cells. The fine counts are
moved as little as weighted least squares allows, weights from public constants and published counts; negative ones
are projected away within the cells of the most detailed other table, keeping its totals; remainders are handed out
so that integers still add up. All tables are then sums of the same integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.errors import DataError
from discreet.tables.mechanisms import Baseline, LogLaplace, SmoothNoise

if TYPE_CHECKING:
    from discreet.tables.release import CountRelease

NOTE = "All tables of the release were made to agree by weighted least squares, in non-negative integers that add up"


def consistent(
    tables: Sequence[CountRelease], mechanisms: Sequence[SmoothNoise | LogLaplace | Baseline]
) -> tuple[CountRelease, ...]:
    """The same tables, each a sum of the finest one's integers."""
    finest = finest_of([table.by for table in tables])
    fine = tables[finest]
    others = [i for i in range(len(tables)) if i != finest]
    members = {i: _members(fine, tables[i]) for i in others}
    x = least_squares(
        fine.counts.ravel(),
        spread(fine.counts, mechanisms[finest]).ravel(),
        [(members[i], tables[i].counts.ravel(), spread(tables[i].counts, mechanisms[i]).ravel()) for i in others],
    )
    detailed = max(others, key=lambda i: tables[i].counts.size, default=None)
    groups = members[detailed] if detailed is not None else np.zeros(x.size, dtype=np.int64)
    whole = round_to_totals(project(x, groups), groups)
    counts = {i: np.bincount(members[i], whole, tables[i].counts.size).astype(np.int64) for i in others}
    counts[finest] = whole
    return tuple(
        replace(table, counts=counts[i].reshape(table.counts.shape), guarantee=table.guarantee.noted(NOTE))
        for i, table in enumerate(tables)
    )


def finest_of(tables: Sequence[Sequence[str]]) -> int:
    """Which of the tables, given by their attributes, has all attributes of the others."""
    finest = max(range(len(tables)), key=lambda i: len(tables[i]))
    for by in tables:
        if not set(by) <= set(tables[finest]):
            raise DataError(
                f"The table by {', '.join(by)} is not a sum of the one by {', '.join(tables[finest])}. Tables agree "
                "through one that has all attributes. Add such a table to the workload, or leave add_up out."
            )
    return finest


def spread(counts: Integers, mechanism: SmoothNoise | LogLaplace | Baseline) -> Vector:
    """A public stand-in for each count's standard error: the row's published sum in place of the largest size."""
    row = np.maximum(counts.sum(axis=1, keepdims=True), 1).astype(np.float64)
    return np.broadcast_to(mechanism.expected_error(row, row), counts.shape)


def least_squares(fine: Integers, fine_spread: Vector, sums: Sequence[tuple[Integers, Integers, Vector]]) -> Vector:
    """The fine counts that fit all tables best; each of `sums` is (membership, counts, spread)."""
    from scipy import sparse
    from scipy.sparse.linalg import cg

    if not sums:
        return fine.astype(np.float64)
    n, variance = fine.size, fine_spread**2
    sizes = [counts.size for _, counts, _ in sums]
    rows = np.concatenate([member + start for (member, _, _), start in zip(sums, np.cumsum([0, *sizes]), strict=False)])
    A = sparse.csr_matrix((np.ones(rows.size), (rows, np.tile(np.arange(n), len(sums)))), shape=(sum(sizes), n))
    gap = np.concatenate([counts for _, counts, _ in sums]) - A @ fine
    # In the sums, not in the fine counts: x = fine + V A' (A V A' + D)^-1 gap, a small and nearly diagonal system.
    K = A @ sparse.diags(variance) @ A.T + sparse.diags(np.concatenate([size for _, _, size in sums]) ** 2)
    solved, _ = cg(K, gap, rtol=1e-12, M=sparse.diags(1 / K.diagonal()))
    fitted: Vector = fine + variance * (A.T @ solved)
    return fitted


def project(x: Vector, groups: Integers) -> Vector:
    """The nearest non-negative numbers with the same (non-negative) sum in every group: a simplex for each."""
    order = np.lexsort((-x, groups))
    value, group = x[order], groups[order]
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    lengths = np.diff(np.r_[starts, len(group)])
    within = np.arange(len(group)) - np.repeat(starts, lengths)
    running = np.cumsum(value)
    running -= np.repeat(running[starts] - value[starts], lengths)
    goal = np.repeat(np.maximum(np.add.reduceat(value, starts), 0.0), lengths)
    level = (running - goal) / (within + 1)
    kept = np.add.reduceat((value > level).astype(np.int64), starts)
    threshold = level[starts + np.maximum(kept, 1) - 1]
    out = np.empty_like(x)
    out[order] = np.maximum(value - np.repeat(threshold, lengths), 0.0)
    return out


def round_to_totals(x: Vector, groups: Integers) -> Integers:
    """Integers within one of `x` whose sums are the rounded sums of every group: the largest remainders go up."""
    low = np.floor(x)
    remainder = x - low
    up = np.rint(np.bincount(groups, x)).astype(np.int64) - np.bincount(groups, low).astype(np.int64)
    order = np.lexsort((-remainder, groups))
    starts = np.searchsorted(groups[order], np.arange(len(up)))
    within = np.arange(len(x)) - starts[groups[order]]
    whole = low.astype(np.int64)
    whole[order] += within < up[groups[order]]
    return whole


def _members(fine: CountRelease, coarse: CountRelease) -> Integers:
    """For each fine count, in row order, the position of the coarse count it belongs to."""
    names = coarse.keys.column_names
    coarse_rows = {key: i for i, key in enumerate(_tuples(coarse, names))}
    rows = np.array([coarse_rows[key] for key in _tuples(fine, names)], dtype=np.int64)
    positions = [fine.worker_by.index(name) for name in coarse.worker_by]
    coarse_levels = {level: i for i, level in enumerate(coarse.levels)}
    levels = np.array([coarse_levels[tuple(level[p] for p in positions)] for level in fine.levels], dtype=np.int64)
    return (rows[:, None] * len(coarse.levels) + levels).ravel()


def _tuples(table: CountRelease, names: Sequence[str]) -> list[tuple[object, ...]]:
    if not names:
        return [()] * len(table.counts)
    return list(zip(*(table.keys[name].to_pylist() for name in names), strict=True))
