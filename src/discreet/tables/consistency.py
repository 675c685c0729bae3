"""Tables of one release made to agree, in non-negative integers: post-processing that costs nothing.

The finest table has every attribute of the others, so each other table is a sum of its cells. The fine counts are
moved as little as weighted least squares allows. A cell's weight has to follow the size of its noise, which is
confidential, and a weight that follows the noise itself makes totals fall: cells that drew low would be trusted more.
So the shares in which a gap is handed out follow fitted counts, while how far each table is trusted follows public
numbers alone; then the total is a fixed combination of draws, and as unbiased as they are (docs/proofs/consistency.md).
Negative counts are projected away from the total down, keeping it; remainders are handed out so that integers add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.errors import DataError
from discreet.tables.expected import MOST_WORKERS
from discreet.tables.mechanisms.mechanism import Mechanism

if TYPE_CHECKING:
    from discreet.tables.release import CountRelease

RAKES = 20
"""Rounds in which sums across the levels are brought back after negative counts were taken away."""

REFITS = 2
"""How often the shares in which gaps are handed out are taken from the counts fitted before."""

NOTE = "All tables of the release were made to agree by weighted least squares, in non-negative integers that add up"


def consistent(
    tables: Sequence[CountRelease],
    mechanisms: Sequence[Mechanism],
    ends: Sequence[tuple[Vector, Vector]],
) -> tuple[CountRelease, ...]:
    """The same tables, each a sum of the finest one's integers.

    `ends` are each table's intervals with half the probability to fail. A consistent count's interval is its own of
    these, cut at the upper end of the count above it, and widened where need be to hold the count.
    """
    finest = finest_of([table.by for table in tables])
    fine = tables[finest]
    others = [i for i in range(len(tables)) if i != finest]
    members = {i: _members(fine, tables[i]) for i in others}
    if not others:
        return (replace(fine, guarantee=fine.guarantee.noted(NOTE), counts=np.maximum(fine.counts, 0)),)
    sums = [
        (members[i], tables[i].counts.ravel(), trust(mechanisms[i], mechanisms[finest], members[i])) for i in others
    ]
    fixed = mechanisms[finest].fixed
    x, shares = fine.counts.ravel().astype(np.float64), np.ones(fine.counts.size)
    for _ in range(1 if fixed else 1 + REFITS):
        x = least_squares(fine.counts.ravel(), shares, sums)
        if not fixed:
            shares = spread(x.reshape(fine.counts.shape), mechanisms[finest]).ravel() ** 2
    chain = _chain([tables[i].by for i in others], others)
    whole = _whole(x, shares, [members[i] for i in chain], [members[i] for i in others if i not in chain])
    counts = {i: np.bincount(members[i], whole, tables[i].counts.size).astype(np.int64) for i in others}
    counts[finest] = whole
    found = []
    for i, table in enumerate(tables):
        count = counts[i].reshape(table.counts.shape)
        lower, upper = ends[i]
        above = _above(i, tables, ends)
        upper = upper if above is None else np.fmin(upper, above)
        lower = np.fmin(lower, upper) if above is None else np.where(np.isnan(lower), 0.0, np.fmin(lower, upper))
        found.append(
            replace(
                table,
                counts=count,
                lower=np.minimum(lower, count),
                upper=np.maximum(upper, count),
                guarantee=table.guarantee.noted(NOTE),
            )
        )
    return tuple(found)


def trust(mechanism: Mechanism, finest: Mechanism, member: Integers) -> Vector:
    """A sum's variance over that of the fine counts in it, from public numbers.

    The largest establishment of k fine cells is that of one of them, so the ratio is from 1/k to 1 times that of the
    two mechanisms. With 2/(k + 1), k the most fine cells of a sum, no sum becomes worse than its own draw, whatever the
    ratio is.
    """
    size = np.array([MOST_WORKERS])
    ratio = float((mechanism.expected_error(size, size) / finest.expected_error(size, size))[0]) ** 2
    inside = np.bincount(member).astype(np.float64)
    return ratio * (1 / inside if finest.fixed else np.full_like(inside, 2 / (inside.max() + 1)))


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


def spread(counts: Vector, mechanism: Mechanism) -> Vector:
    """A public stand-in for each count's standard error: the row's fitted sum in place of the largest size."""
    row = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return np.broadcast_to(mechanism.expected_error(row, row), counts.shape)


def least_squares(fine: Integers, variance: Vector, sums: Sequence[tuple[Integers, Integers, Vector]]) -> Vector:
    """The fine counts that fit all tables best.

    Each of `sums` is (membership, counts, ratio): a sum's variance is `ratio` times that of the fine counts in it.
    """
    from scipy import sparse
    from scipy.sparse.linalg import cg

    n = fine.size
    sizes = [counts.size for _, counts, _ in sums]
    rows = np.concatenate([member + start for (member, _, _), start in zip(sums, np.cumsum([0, *sizes]), strict=False)])
    A = sparse.csr_matrix((np.ones(rows.size), (rows, np.tile(np.arange(n), len(sums)))), shape=(sum(sizes), n))
    gap = np.concatenate([counts for _, counts, _ in sums]) - A @ fine
    # In the sums, not in the fine counts: x = fine + V A' (A V A' + D)^-1 gap, a small and nearly diagonal system.
    K = A @ sparse.diags(variance) @ A.T
    K = K + sparse.diags(np.concatenate([ratio for _, _, ratio in sums]) * K.diagonal())
    solved, _ = cg(K, gap, rtol=1e-12, M=sparse.diags(1 / K.diagonal()))
    fitted: Vector = fine + variance * (A.T @ solved)
    return fitted


def _chain(tables: Sequence[Sequence[str]], numbers: Sequence[int]) -> list[int]:
    """Tables of which each refines the one before, from the coarsest on."""
    found: list[int] = []
    last: set[str] = set()
    for by, number in sorted(zip(tables, numbers, strict=True), key=lambda pair: len(pair[0])):
        if last <= {*by}:
            found, last = [*found, number], {*by}
    return found


def _whole(x: Vector, variance: Vector, levels: Sequence[Integers], across: Sequence[Integers]) -> Integers:
    """Non-negative integers near `x`: the total first, then the sums of each of `levels` within those before.

    Sums `across` these levels are kept too, as far as the integers and zero allow.
    """
    parent, total = np.zeros(x.size, dtype=np.int64), np.rint(np.maximum(x.sum(keepdims=True), 0.0)).astype(np.int64)
    for member in levels:
        total = _round(_summed(x, member), _summed(variance, member), parent, member, total)
        parent = member
    fine = project(x, parent, totals=total, weights=variance)
    if across:
        goals = [(member, np.maximum(_summed(x, member), 0.0)) for member in across]
        for _ in range(RAKES):
            for member, goal in (*goals, (parent, total)):
                now = _summed(fine, member)
                fine = fine * np.divide(goal, now, out=np.ones_like(now), where=now > 0)[member]
    return round_to_totals(fine, parent)


def _summed(x: Vector, member: Integers) -> Vector:
    return np.asarray(np.bincount(member, x), dtype=np.float64)


def _round(value: Vector, weight: Vector, parent: Integers, member: Integers, total: Integers) -> Integers:
    """The sums of one level as integers that add up to those of the level before."""
    group = np.zeros(value.size, dtype=np.int64)
    group[member] = parent
    return round_to_totals(project(value, group, totals=total, weights=weight), group)


def _above(i: int, tables: Sequence[CountRelease], ends: Sequence[tuple[Vector, Vector]]) -> Vector | None:
    """For each count of a table the upper end of the count that it is part of, in the table just above it."""
    above = [j for j, table in enumerate(tables) if {*table.by} < {*tables[i].by}]
    if not above:
        return None
    j = max(above, key=lambda j: tables[j].counts.size)
    return ends[j][1].ravel()[_members(tables[i], tables[j])].reshape(tables[i].counts.shape)


def project(
    x: Vector, groups: Integers, *, totals: Vector | Integers | None = None, weights: Vector | None = None
) -> Vector:
    """The nearest non-negative numbers with a given sum in every group, or their own where that is not below zero.

    Squares are over `weights`, the variances of `x`, so that what varies more gives more.
    """
    weights = np.ones_like(x) if weights is None else weights
    order = np.lexsort((-x / weights, groups))
    value, group, weight = x[order], groups[order], weights[order]
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    lengths = np.diff(np.r_[starts, len(group)])
    own = np.maximum(np.add.reduceat(value, starts), 0.0)
    goal = np.repeat(own if totals is None else totals[group[starts]], lengths)
    running, share = (_within(numbers, starts, lengths) for numbers in (value, weight))
    level = (running - goal) / share
    kept = np.add.reduceat((value > level * weight).astype(np.int64), starts)
    threshold = level[starts + np.maximum(kept, 1) - 1]
    out = np.empty_like(x)
    out[order] = np.maximum(value - np.repeat(threshold, lengths) * weight, 0.0)
    return out


def _within(numbers: Vector, starts: Integers, lengths: Integers) -> Vector:
    """Running sums that begin anew with every group."""
    running = np.cumsum(numbers)
    return np.asarray(running - np.repeat(running[starts] - numbers[starts], lengths))


def round_to_totals(x: Vector, groups: Integers) -> Integers:
    """Integers within one of `x` whose sums are the rounded sums of every group.

    Each is the step of the rounded running sum, so that any run of neighbours keeps its sum within one as well: what
    is sorted alike in every group adds up across the groups.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.r_[True, groups[order][1:] != groups[order][:-1]])
    lengths = np.diff(np.r_[starts, len(order)])
    steps = np.rint(_within(x[order], starts, lengths)).astype(np.int64)
    before = np.r_[0, steps[:-1]]
    before[starts] = 0
    whole = np.empty(len(x), dtype=np.int64)
    whole[order] = np.maximum(steps - before, 0)
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
