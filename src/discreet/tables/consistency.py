"""Tables of one release made to agree, in non-negative integers: post-processing that costs nothing.

The finest table has every attribute of the others, so each other table is a sum of its cells. The fine counts are
moved as little as weighted least squares allows. A cell's weight should depend on the size of its noise, which is
confidential. A weight that depends on the noise itself makes totals fall, because cells that drew low would be trusted
more. So the shares of a gap depend on fitted counts, or on noisy sizes if those were paid for. Without these a table is
trusted as a whole, by one number that no single draw moves. The total is then a combination of the tables' totals, and
as unbiased as they are (docs/proofs/consistency.md). Negative counts are projected away from the total down, keeping
it; remainders are handed out so that integers add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.hierarchy import Hierarchy, covers
from discreet.data.lineage import parent_column, positions
from discreet.tables.calibration import MOST_WORKERS
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.words.errors import DataError

if TYPE_CHECKING:
    from discreet.tables.release import CountRelease

RAKES = 20
"""Rounds in which sums across the levels are brought back after negative counts were taken away."""

REFITS = 2
"""The number of times that the shares of gaps are computed from the counts fitted before."""

CLOSE = 0.25
"""Noisy sizes tell where the noise is better than counts do if the noise on their logarithm is at most this."""

USUAL = 4.0
"""Gaps up to twice the usual size do not tell cells apart."""

MIDDLE = 0.455
"""The median of the square of a normal number."""

FULL = (0, 1, 2, 4)
"""So many cells with the most jobs may be full of small establishments without making any table worse."""

NOTE = "All tables of the release were made to agree by weighted least squares, in non-negative integers that add up"
SIGNED = "All tables of the release were made to agree by weighted least squares, in integers that add up"


def consistent(
    tables: Sequence[CountRelease],
    mechanisms: Sequence[Mechanism],
    ends: Sequence[tuple[Vector, Vector]],
    sizes: Sequence[Vector | Integers | None] | None = None,
    *,
    non_negative: bool = True,
) -> tuple[CountRelease, ...]:
    """The same tables, each a sum of the finest one's integers.

    `ends` are the intervals of each table's true counts; they are widened where need be to hold the published count.
    `sizes` are those of each table's largest establishments, by row, as far as they are known well. With `non_negative`
    no count is below zero, which gives totals near zero a bias.
    """
    note = NOTE if non_negative else SIGNED
    finest = next(i for i, table in enumerate(tables) if all(table.covers(other) for other in tables))
    fine = tables[finest]
    others = [i for i in range(len(tables)) if i != finest]
    members = {i: members_of(fine, tables[i]) for i in others}
    if not others:
        kept = np.maximum(fine.counts, 0) if non_negative else fine.counts
        return (replace(fine, guarantee=fine.guarantee.noted(note), counts=kept),)
    x, shares = fit(tables, mechanisms, members, finest, sizes)
    chain = _chain(tables, others)
    across = [members[i] for i in others if i not in chain]
    below = np.zeros_like(x) if non_negative else np.floor(x)
    margins = margins_of(fine) if non_negative else []
    whole = whole_numbers(x - below, shares, [members[i] for i in chain], across, margins) + below.astype(np.int64)
    counts = {i: np.bincount(members[i], whole, tables[i].counts.size).astype(np.int64) for i in others}
    counts[finest] = whole
    found = []
    for i, table in enumerate(tables):
        count = counts[i].reshape(table.counts.shape)
        lower, upper = ends[i]
        found.append(
            replace(
                table,
                counts=count,
                lower=np.minimum(lower, count),
                upper=np.maximum(upper, count),
                guarantee=table.guarantee.noted(note),
            )
        )
    return tuple(found)


def fit(
    tables: Sequence[CountRelease],
    mechanisms: Sequence[Mechanism],
    members: Mapping[int, Integers],
    finest: int,
    sizes: Sequence[Vector | Integers | None] | None = None,
) -> tuple[Vector, Vector]:
    """Fine counts that agree with all tables as well as possible, and stand-ins for their variances."""
    fine, mechanism = tables[finest].counts, mechanisms[finest]
    known = [None] * len(tables) if sizes is None else sizes
    x, shares = fine.ravel().astype(np.float64), np.ones(fine.size)
    public, largest = mechanism.fixed, explained(x, tables, members)
    for again in range(1 if public else 1 + REFITS):
        if again or known[finest] is not None:
            shares = spread(x.reshape(fine.shape), mechanism, known[finest]).ravel() ** 2
        if again and known[finest] is None:
            shares = np.minimum(shares, largest)
        sums = []
        for i, member in members.items():
            counts = _summed(x, member).reshape(tables[i].counts.shape)
            own = None if known[i] is None or known[finest] is None else spread(counts, mechanisms[i], known[i]) ** 2
            ratio = trust(mechanisms[i], mechanism, member, shares, own)
            sums.append((member, tables[i].counts.ravel(), ratio))
        x = least_squares(fine.ravel(), shares, sums)
    return x, shares


def explained(fine: Vector, tables: Sequence[CountRelease], members: Mapping[int, Integers]) -> Vector:
    """The most that gaps leave of each fine count's variance: their squares, over the number of counts in a sum.

    A cell of many jobs has much noise, or many small establishments and hardly any. In the first case its sums have
    gaps of the size of its noise. Squares of gaps up to `USUAL` times the usual give it no more than its share. They do
    not depend on the sign of noise, so totals stay without bias.
    """
    found, most = np.ones(fine.size), 0.0
    for i, member in sorted(members.items(), key=lambda each: tables[each[0]].counts.size):
        squares = (tables[i].counts.ravel() - _summed(fine, member)) ** 2 / np.bincount(member)
        most = USUAL * float(np.median(squares)) / MIDDLE
        found = np.maximum(found, squares[member])
    return np.maximum(found, most)


def trust(
    mechanism: Mechanism,
    finest: Mechanism,
    member: Integers,
    variance: Vector,
    own: Vector | None = None,
) -> Vector:
    """A sum's variance over that of the fine counts in it: one number for all sums of a table, if sizes are not known.

    The largest establishment of a sum is that of one of its fine cells. So the variance of the sum's own noise is the
    largest of theirs, times the ratio of the two mechanisms. `own` are variances of sums by sizes that are known: then
    sums that differ have numbers of their own, and one huge establishment says little about others. Without them the
    `FULL` cells with the most jobs may have many small establishments and hardly any noise: if the others alone say
    that sums are better than that, they are trusted so far.
    """
    ratio = _ratio(mechanism, finest)
    inside = np.bincount(member).astype(np.float64)
    if finest.fixed:
        return ratio / inside
    if own is not None:
        return np.clip(_by_size(own.ravel(), _summed(variance, member)), ratio / inside, ratio)
    order = np.argsort(variance)
    told = ratio * min(_alone(member, variance, order[: variance.size - full]) for full in FULL)
    return np.full(inside.size, np.clip(told, ratio / inside.max(), ratio))


def _by_size(own: Vector, cells: Vector) -> Vector:
    """Variances of sums over those of their cells, as far as they differ by more than the noise of their sizes."""
    logs = np.log(own / cells / (whole := own.sum() / cells.sum()))
    noise, found = 8 * CLOSE**2, float(np.mean(logs**2))  # a variance is twice a size, and its noise is Laplace's
    return np.asarray(whole * np.exp(logs * max(1 - noise / found, 0.0) if found else logs))


@lru_cache(maxsize=256)
def _ratio(mechanism: Mechanism, finest: Mechanism) -> float:
    """The variance of one mechanism over that of another, where establishments are large."""
    size = np.array([MOST_WORKERS])
    return float((mechanism.expected_error(size, size) / finest.expected_error(size, size))[0]) ** 2


def _alone(member: Integers, variance: Vector, cells: Integers) -> float:
    """The largest variance of each sum, all sums together, over that of all cells; of these `cells` alone."""
    found, total = np.zeros(member.max() + 1), float(variance[cells].sum())
    np.maximum.at(found, member[cells], variance[cells])
    return float(found.sum()) / total if total else 1.0


def finest_of(tables: Sequence[Sequence[str]], hierarchies: Sequence[Hierarchy] = ()) -> int:
    """Which of the tables, given by their attributes, has all attributes of the others, or levels below them."""
    finest = next((i for i, by in enumerate(tables) if all(covers(by, other, hierarchies) for other in tables)), None)
    if finest is None:
        widest = max(tables, key=lambda by: sum(covers(by, other, hierarchies) for other in tables))
        by = next(by for by in tables if not covers(widest, by, hierarchies))
        raise DataError(
            f"The table by {', '.join(by)} is not a sum of the one by {', '.join(widest)}.",
            "Tables agree through one that has all attributes, or levels below them in a declared hierarchy.",
            "Add such a table to the workload, declare the hierarchy, or leave add_up out.",
            about="tables",
        )
    return finest


def spread(counts: Vector, mechanism: Mechanism, largest: Vector | Integers | None = None) -> Vector:
    """A stand-in for each count's standard error: the row's fitted sum in place of the largest size, if unknown."""
    row = counts.sum(axis=1, keepdims=True) if largest is None else np.asarray(largest, dtype=np.float64)[:, None]
    row = np.maximum(row, 1.0)
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


def _chain(tables: Sequence[CountRelease], numbers: Sequence[int]) -> list[int]:
    """Tables of which each refines the one before, from the coarsest on."""
    found: list[int] = []
    for number in sorted(numbers, key=lambda i: (sum(tables[i].covers(tables[j]) for j in numbers), len(tables[i].by))):
        if not found or tables[number].covers(tables[found[-1]]):
            found.append(number)
    return found


Goal: TypeAlias = tuple[Integers, Vector]
"""Where each count belongs, and what the counts of each place add up to."""


def whole_numbers(
    x: Vector,
    variance: Vector,
    levels: Sequence[Integers],
    across: Sequence[Integers],
    margins: Sequence[Sequence[Integers]],
) -> Integers:
    """Non-negative integers near `x`: the total first, then the sums of each of `levels` within those before.

    Sums `across` these levels and by one attribute alone (`margins`) are kept too, as far as integers and zero allow.
    """
    parent, total = np.zeros(x.size, dtype=np.int64), np.rint(np.maximum(x.sum(keepdims=True), 0.0)).astype(np.int64)
    lines = [_goals(x, variance, line) for line in margins]
    for member in levels:
        total = _round(_summed(x, member), _summed(variance, member), parent, member, total, across, lines)
        parent = member
    fine = project(x, parent, totals=total, weights=variance)
    if across or (x < 0).any():
        goals = [(member, np.maximum(_summed(x, member), 0.0)) for member in across]
        goals += [line[-1] for line in lines]
        fine = raked(fine, variance, goals, (parent, total.astype(np.float64)))
    return round_across(fine, parent, across) if across else round_to_totals(fine, parent)


def _goals(x: Vector, variance: Vector, line: Sequence[Integers]) -> list[Goal]:
    """The sums by an attribute, and by the levels above it from the coarsest on, each within those before."""
    found: list[Goal] = []
    group, total = np.zeros(x.size, dtype=np.int64), np.maximum(x.sum(keepdims=True), 0.0)
    for member in line:
        above = np.zeros(int(member.max()) + 1, dtype=np.int64)
        above[member] = group
        total = project(_summed(x, member), above, totals=total, weights=_summed(variance, member))
        found, group = [*found, (member, total)], member
    return found


def raked(x: Vector, variance: Vector, goals: Sequence[Goal], last: Goal) -> Vector:
    """Non-negative numbers near `x` that add up to what each goal says, as far as zero allows, and to `last` exactly.

    In turn a gap is handed out by `variance`. A count that was zero may grow again.
    """
    shares = [(member, goal, _summed(variance, member)) for member, goal in (*goals, last)]
    for _ in range(RAKES):
        for member, goal, share in shares:
            x = np.maximum(x + variance * ((goal - _summed(x, member)) / share)[member], 0.0)
    return project(x, last[0], totals=last[1], weights=variance)


def margins_of(fine: CountRelease) -> list[list[Integers]]:
    """For every attribute of a table, to which of its values each count belongs; first the levels above it, if any."""
    cells, d = fine.counts.shape
    found = []
    for name in fine.keys.column_names:
        above = next((chain.levels for chain in _chains(fine) if name in chain.levels), (name,))
        rows = (parent_column(fine.keys, level, fine.lineage) for level in reversed(above))
        found.append([np.repeat(np.from_dlpack(column.indices).astype(np.int64), d) for column in rows])
    for i in range(len(fine.worker_by)):
        places = {value: at for at, value in enumerate(dict.fromkeys(level[i] for level in fine.levels))}
        found.append([np.tile(np.array([places[level[i]] for level in fine.levels], dtype=np.int64), cells)])
    return found


def _chains(fine: CountRelease) -> tuple[Hierarchy, ...]:
    return () if fine.lineage is None else fine.lineage.chains


def _summed(x: Vector, member: Integers) -> Vector:
    return np.asarray(np.bincount(member, x), dtype=np.float64)


def _round(
    value: Vector,
    weight: Vector,
    parent: Integers,
    member: Integers,
    total: Integers,
    across: Sequence[Integers],
    lines: Sequence[Sequence[Goal]],
) -> Integers:
    """The sums of one level as integers that add up to those of the level before, and nearly `across` them."""
    group, first = np.zeros(value.size, dtype=np.int64), np.zeros(value.size, dtype=np.int64)
    group[member], first[member] = parent, np.arange(member.size)
    whole = [other[first] for other in across if (other == other[first][member]).all()]
    near = project(value, group, totals=total, weights=weight)
    if (value < 0).any():
        known = [
            [(other[first], goal) for other, goal in line if (other == other[first][member]).all()] for line in lines
        ]
        near = raked(near, weight, [line[-1] for line in known if line], (group, total.astype(np.float64)))
    return round_across(near, group, whole) if whole else round_to_totals(near, group)


def project(
    x: Vector, groups: Integers, *, totals: Vector | Integers | None = None, weights: Vector | None = None
) -> Vector:
    """The nearest non-negative numbers with a given sum in every group, or their own where that is not below zero.

    Squares are divided by `weights`, the variances of `x`, so numbers that vary more change more.
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

    Each is the step of the rounded running sum, so any run of neighbours also keeps its sum within one: groups with the
    same order add up across the groups.
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


def round_across(x: Vector, groups: Integers, across: Sequence[Integers]) -> Integers:
    """Integers next to `x` whose sums are the rounded sums of every group, and nearly those of the sums `across` them.

    The groups are divided by one of these after the other, and at last into counts. What all counts of a part have lost
    or won by rounding so far decides what is rounded up.
    """
    total = np.rint(_summed(x, groups)).astype(np.int64)
    for member in (*sorted(across, key=lambda member: int(member.max())), np.arange(x.size)):
        _, first, part = np.unique(groups * (int(member.max()) + 1) + member, return_index=True, return_inverse=True)
        whole = [other[first] for other in across if (other == other[first][part]).all()]
        total, groups = _divided(_summed(x, part), groups[first], total, whole), part
    return total[groups]


def _divided(value: Vector, group: Integers, total: Integers, across: Sequence[Integers]) -> Integers:
    """Each group's total divided into integers next to `value`, whose order is that of the groups."""
    rounded = np.floor(value).astype(np.int64)
    lost = [np.zeros(int(member.max()) + 1) for member in across]
    starts = np.flatnonzero(np.r_[True, np.diff(group) > 0])
    more = total[group[starts]] - np.add.reduceat(rounded, starts)
    for parts, up in zip(np.split(np.arange(value.size), starts[1:]), more.tolist(), strict=True):
        left = value[parts] - rounded[parts]
        urgent = left + sum(short[member[parts]] for short, member in zip(lost, across, strict=True))
        chosen = np.argsort(-urgent, kind="stable")[:up]
        rounded[parts[chosen]] += 1
        left[chosen] -= 1
        for short, member in zip(lost, across, strict=True):
            np.add.at(short, member[parts], left)
    return rounded


def members_of(fine: CountRelease, coarse: CountRelease) -> Integers:
    """For each fine count, in row order, the position of the coarse count that contains it."""
    total = not coarse.keys.column_names  # a table of no columns forgets its only row
    rows = np.zeros(len(fine.counts), dtype=np.int64) if total else positions(fine.keys, coarse.keys, fine.lineage)
    places = [fine.worker_by.index(name) for name in coarse.worker_by]
    coarse_levels = {level: i for i, level in enumerate(coarse.levels)}
    levels = np.array([coarse_levels[tuple(level[p] for p in places)] for level in fine.levels], dtype=np.int64)
    return (rows[:, None] * len(coarse.levels) + levels).ravel()
