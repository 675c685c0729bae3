"""The relational step under flows: the four kinds of jobs, jobs created and the largest workforces, in one query.

One group-by finds the spell of every job: the set of quarters in which its worker has it, as a number with one bit per
quarter. Rows that are there twice add nothing to a set, so no pass is needed to drop them. The bits of the quarter
before, the quarter and the one after tell the job's kind (`histories.KINDS`). Then come the two group-bys of
`tables.cells`: jobs by establishment, with one counter per kind and quarter, and establishments by cell. No noise here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers
from discreet.data.codes import Codes
from discreet.data.columns import column_of
from discreet.data.frames import collect, sets_of, working
from discreet.data.histories import CAME, KINDS, LEFT, PASSED, STAYED, Histories
from discreet.data.schema import Label
from discreet.noise.flow_body import COORDINATES
from discreet.tables.order import counts_of, order_of, plain_keys
from discreet.words.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.frames import Frame

BEFORE, NOW, AFTER = 1, 2, 4
BITS = {STAYED: BEFORE + NOW + AFTER, PASSED: NOW, CAME: NOW + AFTER, LEFT: BEFORE + NOW}
"""The three bits of a job of the quarter, by its kind."""

QUARTERS_PER_PASS = 12
"""Quarters of one query. More take more passes, because counters are kept for every establishment at once."""


@dataclass(frozen=True, slots=True)
class FlowCells:
    """Confidential: the five numbers of every cell, added up over quarters; its largest workforce of every quarter.

    The number of its establishments is public.
    """

    keys: pa.Table
    vectors: Integers
    largest: Integers
    establishments: Integers


def statistics(histories: Histories, quarters: Label | Sequence[Label], by: Sequence[str]) -> FlowCells:
    """Jobs by kind and jobs created of every cell, added up over quarters, and its largest workforce of each."""
    asked = (quarters,) if isinstance(quarters, str | int) else tuple(quarters)
    step = f"flows by {', '.join(by) or 'nothing'}"
    found = []
    for start in range(0, len(asked), QUARTERS_PER_PASS):
        some = asked[start : start + QUARTERS_PER_PASS]
        with working(step):
            query = _by_cell(histories, some, by)
        found.append(_assembled(collect(query, step=step), by, len(some)))
    histories.jobs.files.refuse_changes()
    first = found[0]
    if not all(each.keys.equals(first.keys) for each in found):
        changed = "The data changed while they were read."
        raise EngineError(changed, "Nothing was computed.", "Run it again on a fixed copy.", about="source")
    vectors = reduce(add, (each.vectors for each in found))
    return FlowCells(first.keys, vectors, np.hstack([each.largest for each in found]), first.establishments)


def _spells(histories: Histories, quarters: Sequence[Label]) -> Frame:
    """One row per worker at an establishment, with the set of those of `quarters` in which the job exists."""
    import narwhals.stable.v2 as nw

    time, rows = nw.col(histories.time), histories.jobs.table
    if len(quarters) < len(histories.quarters):
        rows = rows.filter(time.is_in(Codes.of(quarters)))
    members = {f"__in{i}": time == quarter for i, quarter in enumerate(Codes.of(quarters))}
    return sets_of(rows, members, by=[str(histories.schema.worker), histories.schema.establishment], name="__spell")


def _by_cell(histories: Histories, quarters: Sequence[Label], by: Sequence[str]) -> Frame:
    """One row per cell: its establishments, sums of the four kinds and of jobs created, the largest of each quarter."""
    import narwhals.stable.v2 as nw

    key, at = histories.schema.establishment, histories.inside(quarters[0])
    spells = _spells(histories, histories.quarters[at - 1 : at + len(quarters) + 1])
    each = range(len(quarters))
    spells = spells.with_columns(**{f"__bits{i}": nw.col("__spell") // 2**i % 8 for i in each})
    counters = {
        f"__{kind}{i}": nw.when(nw.col(f"__bits{i}") == BITS[name]).then(nw.lit(1))
        for i in each
        for kind, name in enumerate(KINDS)
    }
    firms = spells.select(key, **counters).group_by(key).agg(nw.col(*counters).count())
    firms = histories.establishments.select(key, *by).join(firms, on=key, how="left")
    one = [] if by else [nw.lit(0).alias("__one")]  # something to group by
    firms = firms.select(*by, *one, nw.col(*counters).fill_null(0))

    def jobs(name: str, i: int) -> nw.Expr:
        return nw.col(f"__{KINDS.index(name)}{i}")

    def added(terms: Sequence[nw.Expr]) -> nw.Expr:
        return reduce(add, terms)

    pairs = [(jobs(CAME, i), jobs(LEFT, i)) for i in each]  # compared first: a count of Polars has no sign
    created = added([nw.when(came > left).then(came - left).otherwise(nw.lit(0)) for came, left in pairs])
    sums = {f"__sum{k}": added([jobs(name, i) for i in each]) for k, name in enumerate(KINDS)}
    sums[f"__sum{len(KINDS)}"] = created
    sizes = {f"__max{i}": added([jobs(name, i) for name in KINDS]) for i in each}
    firms = firms.select(*(by or ["__one"]), **sums, **sizes)
    return firms.group_by(*(by or ["__one"])).agg(
        nw.len().alias("__establishments"), nw.col(*sums).sum(), nw.col(*sizes).max()
    )


def _assembled(table: pa.Table, by: Sequence[str], quarters: int) -> FlowCells:
    """Arrays in the order of the keys."""
    plain = plain_keys(table, by)
    order = order_of([plain[name].combine_chunks() for name in by], len(plain))
    sums, sizes = ([f"__{kind}{i}" for i in range(n)] for kind, n in (("sum", len(COORDINATES)), ("max", quarters)))
    vectors, largest = (np.column_stack([counts_of(plain[name])[order] for name in some]) for some in (sums, sizes))
    keys = plain.select(list(by)).combine_chunks().take(column_of(order))
    return FlowCells(keys, vectors, largest, counts_of(plain["__establishments"])[order])
