"""The one relational step under every table of counts: cells, their counts and their largest establishments.

Haney et al. (2017): x_v is the largest number of workers that one establishment has in cell v; x_total, for cells
that share establishments, is the largest establishment's whole workforce. Aggregates leave the engine, rows do not.
No noise here.

The plan has two group-bys and no more: jobs by establishment, with one counter per worker level, then establishments
by workplace cell. An establishment has one value of each workplace attribute. So the first needs no other key if the
public list of establishments gives the attributes. The wide counters give every level's sum and maximum, and those of
the whole workforce, in the same pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet.arrays import Integers
from discreet.data.columns import column_of
from discreet.data.frames import collect, missing, refuse, working
from discreet.data.jobs import Jobs
from discreet.data.lineage import Lineage
from discreet.data.schema import Label
from discreet.tables.attributes import values_kept
from discreet.tables.grouping import grouped
from discreet.tables.order import counts_of, order_of, plain_keys
from discreet.words.errors import DataError, EngineError
from discreet.words.faults import Fault, Key, Subject, Value

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.frames import Frame

LEVELS_PER_PASS = 48
"""Counters of one query. More levels take more passes, because counters are kept for every establishment at once."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cells:
    """Confidential statistics of the cells, sorted by their keys.

    Attributes
    ----------
    keys : one row per workplace cell that exists, one column per workplace attribute. Public.
    worker_by : the worker attributes, shape (k,).
    levels : the d combinations of their values; one empty combination if there are no worker attributes. Public.
    counts : jobs, or amounts of a magnitude, shape (cells, d).
    largest : x_v, the largest establishment's jobs in each cell, shape (cells, d).
    largest_total : x_total, the largest establishment's whole workforce, shape (cells,). A filter of worker attributes
        does not lower it: under the strong definition an establishment may grow by a share of its whole workforce.
    establishments : how many there are in the workplace cell, with jobs or without, shape (cells,). Public.
    lineage : the parents of the keys' codes, where hierarchies are declared. Public.
    unions : the largest establishment's jobs in every set of levels, shape (cells, 2^d), if requested: level c is in
        the set of column A if bit c of A is 1.
    second, second_total : the second largest establishment's, as `largest` and `largest_total`, if asked for, or 0.
    """

    keys: pa.Table
    worker_by: tuple[str, ...]
    levels: tuple[tuple[Label, ...], ...]
    counts: Integers
    largest: Integers
    largest_total: Integers
    establishments: Integers
    lineage: Lineage | None = None
    unions: Integers | None = None
    second: Integers | None = None
    second_total: Integers | None = None

    def pairs(self, largest: Integers) -> Integers:
        """The two largest sizes on a last axis, where the second ones were asked for."""
        return np.stack([largest, cast("Integers", self.second)], axis=-1)

    def take(self, rows: Integers) -> Cells:
        """These cells, each as often as it is named."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        taken: dict[str, Any] = {name: x[rows] for name, x in own.items() if isinstance(x, np.ndarray)}
        return replace(self, keys=self.keys.take(column_of(rows)), **taken)

    def __repr__(self) -> str:
        by = ", ".join([*self.keys.column_names, *self.worker_by]) or "nothing"
        return f"Cells by {by}: {len(self.counts):,} workplace cells x {len(self.levels)} levels, confidential"


def cell_statistics(
    jobs: Jobs,
    *,
    workplace_by: Sequence[str] = (),
    worker_by: Sequence[str] = (),
    where: Mapping[str, Label | Sequence[Label]] | None = None,
    largest_establishment: int | None = None,
    most_counts: int | None = None,
    magnitude: str | None = None,
    unions: bool = False,
    second: bool = False,
    second_total: bool = False,
) -> Cells:
    """Count jobs in every workplace cell that exists, by every combination of the workers' attributes.

    `where` keeps the listed values of an attribute. A filter on a workplace attribute drops establishments. A filter on
    a worker attribute drops jobs but no establishment, because the existence of establishments is public. Jobs of an
    establishment whose whole workforce is above `largest_establishment` are not counted. More than `most_counts` counts
    are refused. With a `magnitude`, its amounts are added up instead of jobs. With `unions`, the largest
    establishment's jobs in every set of levels are also computed; there are 2^d sets, so d is small. With `second`,
    those of the second largest are, with `second_total` its jobs in all.
    """
    allowed = _allowed(jobs, workplace_by, worker_by, where or {})
    domains = {**jobs.schema.worker_attributes, **allowed}
    levels = tuple(product(*(domains[name] for name in worker_by)))
    step = f"cells by {', '.join([*workplace_by, *worker_by]) or 'nothing'}"
    blocks: list[pa.Table] = []
    whole = not worker_by and not jobs.schema.worker_attributes.keys() & allowed.keys()
    asked = (largest_establishment, magnitude, unions, second)
    with working(step):
        rows = jobs.table if whole else _levelled(jobs, worker_by, allowed)
        for start in range(0, len(levels), LEVELS_PER_PASS):
            block = range(start, min(start + LEVELS_PER_PASS, len(levels)))
            within = () if whole else block
            query = _by_cell(jobs, rows, workplace_by, within, allowed, *asked, second_total and start == 0)
            blocks.append(collect(query, step=step))
            counts = len(blocks[0]) * len(levels)
            if most_counts is not None and counts > most_counts:
                raise DataError(
                    f"A table of {step} has {len(blocks[0]):,} workplace cells x {len(levels):,} levels, {counts:,} "
                    f"counts; at most {most_counts:,} are allowed.",
                    remedy=("Leave out an attribute, or filter with ", Key("where"), "."),
                    about="by",
                )
    jobs.files.refuse_changes()
    found = _assemble(blocks, tuple(workplace_by), tuple(worker_by), levels)
    if unions and whole:
        found = replace(found, unions=np.column_stack([np.zeros_like(found.largest_total), found.largest_total]))
    return found if jobs.lineage is None else replace(found, lineage=jobs.lineage.within(found.keys))


def _allowed(
    jobs: Jobs, workplace_by: Sequence[str], worker_by: Sequence[str], where: Mapping[str, Label | Sequence[Label]]
) -> dict[str, tuple[Label, ...]]:
    """The values of `where` as tuples, after every name and value was found to be possible."""
    schema = jobs.schema
    faults: list[Fault] = []
    allowed: dict[str, tuple[Label, ...]] = {}
    for kind, names, known in (
        ("workplace", workplace_by, schema.workplace_attributes),
        ("worker", worker_by, schema.worker_attributes),
        ("workplace or worker", where, [*schema.workplace_attributes, *schema.worker_attributes]),
    ):
        about = f"{kind}_by" if kind in ("workplace", "worker") else "where"
        faults += [
            missing(name, known, name=f"the {kind} attributes of {jobs.name}", about=about)
            for name in names
            if name not in known
        ]
        if len(set(names)) < len(names):
            twice = f"A {kind} attribute is named twice in {', '.join(names)}."
            faults.append(Fault(about, twice, remedy="Name it once."))
    refuse(faults)
    for name, values in values_kept(schema, where).items():
        domain = schema.worker_attributes.get(name)
        allowed[name] = values if domain is None else tuple(value for value in domain if value in values)
    return allowed


def refuse_absent(jobs: Jobs, where: Mapping[str, Sequence[Label]]) -> None:
    """Refuse a filter for values of workplace attributes that no establishment has, before anything is paid.

    The places of establishments are public, so an empty place reveals nothing about any workforce.
    """
    import narwhals.stable.v2 as nw

    listed = jobs.listed
    faults = []
    for name in (name for name in jobs.schema.workplace_attributes if name in where):
        kept = listed.filter(nw.col(name).is_in(where[name])).select(name).unique()
        found = {*collect(kept, step=f"places with {name}")[name].to_pylist()}
        faults += [
            Fault(
                f"where.{name}",
                (Subject(Key("where", name)), " asks for ", Value(value), ", and no establishment has it."),
                "Which establishments exist is public.",
                "Use a value that one of them has.",
            )
            for value in where[name]
            if value not in found
        ]
    refuse(faults)


def _levelled(jobs: Jobs, worker_by: Sequence[str], allowed: Mapping[str, Sequence[Label]]) -> Frame:
    """Jobs with the number of their level, counted as `product` does; null where `where` drops the job."""
    import narwhals.stable.v2 as nw

    domains = {**jobs.schema.worker_attributes, **allowed}
    level, stride = nw.lit(0), 1
    for name in reversed(worker_by):
        first, *rest = domains[name]
        position: nw.Expr = nw.when(nw.col(name) == first).then(nw.lit(0))
        for i, value in enumerate(rest, start=1):
            position = nw.when(nw.col(name) == value).then(nw.lit(i * stride)).otherwise(position)
        level, stride = level + position, stride * len(domains[name])
    others = [name for name in jobs.schema.worker_attributes if name in allowed and name not in worker_by]
    for name in others:
        level = nw.when(nw.col(name).is_in(allowed[name])).then(level)
    return jobs.frame.with_columns(level.alias("__level"))


def _by_cell(
    jobs: Jobs,
    rows: Frame,
    workplace_by: Sequence[str],
    block: Sequence[int],
    allowed: Mapping[str, Sequence[Label]],
    largest_establishment: int | None,
    magnitude: str | None,
    unions: bool,
    second: bool,
    second_total: bool,
) -> Frame:
    """One row per workplace cell: establishments, the largest workforce, and sum and maximum of a block of levels.

    An empty block asks for the whole workforce's sum alone: its maximum is the largest workforce.
    """
    import narwhals.stable.v2 as nw

    schema, listed = jobs.schema, jobs.known if jobs.workplaces is None else jobs.workplaces
    kept = [nw.col(name).is_in(allowed[name]) for name in schema.workplace_attributes if name in allowed]
    own = [schema.establishment]
    if listed is None:
        own += workplace_by
        rows = rows.filter(*kept) if kept else rows
    elif kept:
        listed = listed.filter(*kept)

    amount = magnitude or schema.size
    weight = nw.lit(1) if amount is None else nw.col(amount)
    counters: dict[str, nw.Expr] = {f"__n{i}": nw.when(nw.col("__level") == i).then(weight) for i in block}
    counters["__all"] = weight
    reduce = "count" if amount is None else "sum"
    counted = [getattr(nw.col(name), reduce)() for name in counters]
    firms = rows.select(*own, **counters).group_by(*own).agg(*counted)
    if largest_establishment is not None:
        small = nw.col("__all") <= largest_establishment
        firms = firms.with_columns(nw.when(small).then(nw.col(name)).alias(name) for name in counters)
    if listed is not None:
        firms = listed.select(schema.establishment, *workplace_by).join(firms, on=schema.establishment, how="left")
    one = [] if workplace_by else [nw.lit(0).alias("__one")]  # something to group by
    summed = {f"__sum{i}": f"__n{i}" for i in block} or {"__sum": "__all"}
    firms = firms.select(*workplace_by, *one, nw.col(*counters).fill_null(0))
    maxima = {"__all": "__all", **{f"__max{i}": f"__n{i}" for i in block}}
    if unions and block:
        sets = {f"__union{some}": [f"__n{i}" for i in block if some >> i & 1] for some in range(1, 2 ** len(block))}
        firms = firms.with_columns(
            **{name: sum(map(nw.col, kinds[1:]), nw.col(kinds[0])) for name, kinds in sets.items()}
        )
        maxima |= {name: name for name in sets}
    seconds = {f"__second{name}": name for name in summed.values()} if second else {}
    seconds |= {"__whole": "__all"} if second_total else {}
    return grouped(firms, workplace_by or ["__one"], sums=summed, maxima=maxima, seconds=seconds)


def _assemble(
    blocks: Sequence[pa.Table],
    workplace_by: tuple[str, ...],
    worker_by: tuple[str, ...],
    levels: tuple[tuple[Label, ...], ...],
) -> Cells:
    """Dense arrays in the order of the keys, the same from every engine."""
    tables = [plain_keys(table, workplace_by) for table in blocks]
    by = list(workplace_by)
    orders = [order_of([table[name].combine_chunks() for name in by], len(table)) for table in tables]
    keys, *others = [
        table.select(by).combine_chunks().take(column_of(order)) for table, order in zip(tables, orders, strict=True)
    ]
    if not all(other.equals(keys) for other in others):
        changed = "The data changed while they were read."
        raise EngineError(changed, "Nothing was computed.", "Run it again on a fixed copy.", about="source")

    def columns(kind: str) -> Integers:
        found = [
            (at, name) for at, table in enumerate(tables) for name in table.column_names if name.startswith(f"__{kind}")
        ]
        out = np.empty((len(tables[0]), len(found)), dtype=np.int64)
        for i, (at, name) in enumerate(found):
            np.take(counts_of(tables[at][name]), orders[at], out=out[:, i], mode="clip")  # places exist: no check
        return out

    total = columns("all")[:, 0]
    largest = columns("max")
    largest = largest if largest.shape[1] else total[:, None]
    second, whole = columns("second"), columns("whole")
    return Cells(
        keys=keys,
        worker_by=worker_by,
        levels=levels,
        counts=columns("sum"),
        largest=largest,
        largest_total=total,
        establishments=columns("establishments")[:, 0],
        unions=np.column_stack([np.zeros_like(total), joined]) if (joined := columns("union")).size else None,
        second=second if second.shape[1] else None,
        second_total=whole[:, 0] if whole.size else None,
    )
