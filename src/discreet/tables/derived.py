"""Tables that are sums of one that was drawn: they cost nothing of their own.

The interval of a sum rests on the variances of the noise in it, which are confidential. But the largest establishments
x_i of the m cells of a sum are at most their counts, which add up to N, and none is larger than X. So the sum of x_i^2
is at most N X. So the noise of the sum has a root mean square of at most sqrt(a^2 N X + c^2 m), a and c the mechanism's
constants, and Chebyshev's inequality bounds it. X is bounded by the cells' own upper ends (docs/proofs/consistency.md).
A sum of one cell is that cell's number, and has its interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.hierarchy import covers
from discreet.data.lineage import Lineage, parent_column
from discreet.data.schema import Label
from discreet.tables.consistency import NOTE as AGREE
from discreet.tables.consistency import SIGNED, members_of
from discreet.tables.intervals.quantiles import not_below_zero
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.order import ordered
from discreet.tables.query import CountQuery
from discreet.tables.release import CountRelease
from discreet.words.caveats import CHEBYSHEV

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST = 0.05
"""The share of the probability to fail that pays for the bound of the largest establishment."""

NOTE = "The table by {} was not drawn: it is a sum of the one by {}. Its intervals hold at least so often: " + CHEBYSHEV


def source_of(query: CountQuery, drawn: Sequence[CountQuery], tables: Sequence[CountRelease]) -> int:
    """The drawn table with the fewest counts of which the table is a sum."""
    chains = query.jobs.schema.hierarchies
    able = [i for i, other in enumerate(drawn) if covers(other.by, query.by, chains)]
    return min(able, key=lambda i: tables[i].counts.size)


def sums_of(
    fine: CountRelease, query: CountQuery, mechanism: Mechanism, *, bounded: bool, level: float
) -> CountRelease:
    """The table of `query` as sums of the published counts of `fine`, whose noise is the mechanism's."""
    empty = replace(
        fine,
        keys=coarse_keys(fine, query.workplace_by),
        worker_by=query.worker_by,
        levels=tuple(dict.fromkeys(_kept(fine, query.worker_by, level) for level in fine.levels)),
        largest=None,
        at_most=None,
        parameters={},
    )
    shape = (len(empty.keys) if query.workplace_by else 1, len(empty.levels))
    coarse = replace(empty, counts=np.zeros(shape, dtype=np.int64), lineage=_above(fine, empty.keys))
    member = members_of(fine, coarse)
    counts = summed(fine.counts, member, shape)
    number = fine.establishments
    if number is not None:
        rows = member.reshape(fine.counts.shape)[:, 0] // shape[1]
        number = summed(number, rows, (shape[0], 1))[:, 0]

    ends = partial(_ends, fine, counts, member, mechanism, bounded)
    lower, upper = ends(level)
    note = NOTE.format(" x ".join(query.by) or "nothing", " x ".join(fine.by))
    guarantee = fine.guarantee.noted(note)
    found = replace(coarse, counts=counts, lower=lower, upper=upper, ends=ends)
    return replace(found, establishments=number, guarantee=guarantee)


def agreeing(table: CountRelease, finest: CountRelease, source: CountRelease) -> CountRelease:
    """The same table, its counts sums of a finest table that was made to agree with others.

    `source` is the table that it was a sum of, made to agree too.
    """
    counts = summed(finest.counts, members_of(finest, table), table.counts.shape)
    lower, upper = np.fmin(table.lower, counts), np.fmax(table.upper, counts)
    told = np.isfinite(table.lower)
    ends = np.where(told, lower, table.lower), np.where(told, upper, table.upper)
    lower, upper = _of_one(ends, (source.lower, source.upper), members_of(source, table))
    return replace(
        table,
        counts=counts,
        lower=lower,
        upper=upper,
        guarantee=table.guarantee.noted(SIGNED if SIGNED in finest.guarantee.notes else AGREE),
    )


def summed(counts: Integers, member: Integers, shape: tuple[int, int]) -> Integers:
    """Sums of fine counts, exact in whole numbers."""
    found = np.zeros(shape[0] * shape[1], dtype=np.int64)
    np.add.at(found, member, counts.ravel())
    return found.reshape(shape)


def coarse_keys(fine: CountRelease, names: Sequence[str]) -> pa.Table:
    """The workplace cells of a coarser table, in their order."""
    import pyarrow as pa

    if not names:
        return fine.keys.select([])
    columns = {name: parent_column(fine.keys, name, fine.lineage) for name in names}
    return ordered(pa.table(columns).group_by(list(names)).aggregate([]).select(list(names)))


def _above(fine: CountRelease, keys: pa.Table) -> Lineage | None:
    return None if fine.lineage is None else fine.lineage.within(keys)


def _kept(fine: CountRelease, names: Sequence[str], level: tuple[Label, ...]) -> tuple[Label, ...]:
    return tuple(level[fine.worker_by.index(name)] for name in names)


def _ends(
    fine: CountRelease, counts: Integers, member: Integers, mechanism: Mechanism, bounded: bool, level: float
) -> tuple[Vector, Vector]:
    """Those of the cell itself where there is one, else by Chebyshev's inequality."""
    found = _by_squares(fine, counts, member, mechanism, level=level, bounded=bounded)
    return found if fine.ends is None else _of_one(found, fine.ends(level), member)


def bounds_sums(mechanism: Mechanism, *, level: float) -> bool:
    """Whether its noise has a variance, and counts have upper ends of the level that bounds the largest establishment.

    Both follow from its constants: an end is missing for all counts or for none.
    """
    most = mechanism.most_workers(np.zeros((1, 1)), miss=(1 - level) * LARGEST)
    return mechanism.square_bound is not None and bool(np.isfinite(most).all())


def _of_one(found: tuple[Vector, Vector], ends: tuple[Vector, Vector], member: Integers) -> tuple[Vector, Vector]:
    """What was found, but the ends of the fine count where a sum has no other: how many it has is public."""
    alone = np.flatnonzero(np.bincount(member, minlength=found[0].size)[member] == 1)
    for whole, fine in zip(found, ends, strict=True):
        whole.reshape(-1)[member[alone]] = fine.ravel()[alone]
    return found


def _by_squares(
    fine: CountRelease, counts: Integers, member: Integers, mechanism: Mechanism, *, level: float, bounded: bool
) -> tuple[Vector, Vector]:
    """All N >= 0 with |M - N| <= sqrt((a^2 N X + c^2 m) / miss), M the sum of draws; none where nothing is known."""
    nothing = np.full(counts.shape, np.nan)
    known = mechanism.square_bound if fine.counts.shape[1] == 1 and bounded else None
    if known is None:
        return nothing, nothing.copy()
    miss = 1 - level
    cells = np.bincount(member, minlength=counts.size).reshape(counts.shape)
    most = mechanism.most_workers(fine.counts.astype(np.float64), miss=miss * LARGEST)
    largest = np.zeros(counts.size)
    np.maximum.at(largest, member, most)
    slope = known[0] ** 2 * largest.reshape(counts.shape) / (miss * (1 - LARGEST))
    start = known[1] ** 2 * cells / (miss * (1 - LARGEST))
    # (M - N)^2 <= slope N + start is a quadratic in N.
    half = counts + slope / 2
    with np.errstate(invalid="ignore"):  # where a fine count has no upper end, nothing bounds the sum
        root = np.sqrt(np.maximum(slope * counts + slope**2 / 4 + start, 0.0))
        lower, upper = not_below_zero(half - root, half + root)
    return np.where(np.isnan(lower), 0.0, lower), np.where(np.isnan(upper), np.inf, upper)
