"""The published numbers that alarms of a plan compare, by cell, with their ends at any level.

Of a release of the plan they are read from its files; of another plan's, from its table and the constants it states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from discreet.arrays import Vector
from discreet.plan.kinds.counts import CountRequest
from discreet.plan.kinds.flows import FlowRequest
from discreet.plan.kinds.summaries import SummaryRequest
from discreet.plan.readers import drawn_table, shown_tables
from discreet.release.files import MANIFEST
from discreet.release.folder import open_release
from discreet.tables.reopened import from_constants
from discreet.words.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.utility.paired import Ends

LEFT_OUT = "left_out"
"""A column of an earlier table: 1 where a rule of the agency leaves the number out."""

Compared: TypeAlias = CountRequest | FlowRequest | SummaryRequest


class EarlierTable(NamedTuple):
    """A table of another plan: what its release says of it, and its research form."""

    about: Mapping[str, Any]
    table: pa.Table


class Numbers(NamedTuple):
    """Published numbers by cell, and their ends at any level."""

    cells: list[tuple[str, ...]]
    values: Vector
    ends: Ends


def numbers_of(request: Compared, folder: Path, by: tuple[str, ...], value: str) -> Numbers:
    """Numbers of a release of the plan, from its published files; none where a rule of the agency leaves one out."""
    if isinstance(request, SummaryRequest):
        return _estimates(request.published(folder))
    if isinstance(request, FlowRequest):
        table = request.published(folder, "research")
        seen = table if request.release.suppress is None else request.published(folder, "basic")
        numbers = [
            np.nan if shown is None else each
            for shown, each in zip(seen[value].to_pylist(), table[value].to_pylist(), strict=True)
        ]
        return Numbers(_cells(table, by), np.array(numbers, dtype=np.float64), _flow_ends(request, table, value))
    drawn = [drawn_table(request, folder, number) for number in range(len(request.queries))]
    found = next(each for each in (*drawn, *request.sums(drawn)) if each.by == by)
    assert found.ends is not None  # of the research form
    values = found.counts.ravel().astype(np.float64)
    if request.release.suppress is not None:
        names = [tuple(each) for _, each in request.places]
        values[shown_tables(request, folder)[names.index(by)].left_out.ravel()] = np.nan
    return Numbers(_cells(found.to_arrow(), by), values, found.ends)


def _estimates(table: pa.Table) -> Numbers:
    """Estimates of a model that have a standard error, with ends that allow for the tails of noise."""
    from discreet.utility.model_changes import quantile

    rows = [row for row in table.to_pylist() if row["std_error"] is not None]
    values, errors = (np.array([row[name] for row in rows], dtype=np.float64) for name in ("estimate", "std_error"))

    def ends(level: float) -> tuple[Vector, Vector]:
        far = quantile(1 - level) * errors
        return values - far, values + far

    return Numbers([(str(row["group"] or row["effect"]), str(row["term"])) for row in rows], values, ends)


def _flow_ends(request: FlowRequest, table: pa.Table, value: str) -> Ends:
    asked = {"epsilon": request.release.epsilon, "scale_share": request.release.scale_share}

    def ends(level: float) -> tuple[Vector, Vector]:
        again = request.query.prepare(**asked, level=level).again(table)
        return next(each.ends for each in again.statistics() if each.name == value)

    return ends


def read_earlier(path: Path, name: str) -> EarlierTable:
    """The table of a release in the output folder of another plan, whose files are as they were released."""
    release = open_release(path / name)
    tables = [of for of in release.tables("research") if "noise" in of.about]
    if len(tables) != 1:
        raise DataError(
            f"{name!r} of that folder has {len(tables)} drawn tables in the research form.",
            "One table is compared with one.",
            "Name a release of one table of counts or sums.",
            about="early",
        )
    [of] = tables
    digest = sha256((path / name / MANIFEST).read_bytes()).hexdigest()
    about = {**of.about, "release": name, "dataset": release.dataset, MANIFEST: digest}
    table = of.read()
    if release.about["parameters"].get("suppress"):
        shown = next(each for each in release.tables("basic") if each.place == of.place).read()
        value = "count" if "count" in shown.column_names else "sum"
        table = table.append_column(LEFT_OUT, shown[value].is_null().cast("int8"))
    return EarlierTable(about, table)


def numbers_of_earlier(earlier: EarlierTable, late: CountRequest, by: tuple[str, ...]) -> Numbers:
    """Numbers of another plan's table; the constants of its noise are those that its release states."""
    query, level = late.queries[table_number(late, by)], float(late.release.level)
    about: Any = {"level": level, "bounds_size": query.bounds_size}
    found = from_constants(earlier.about, earlier.table, late.guarantee.unit, **about)
    assert found.ends is not None
    values = found.counts.ravel().astype(np.float64)
    if LEFT_OUT in earlier.table.column_names:
        values[np.array(earlier.table[LEFT_OUT], dtype=np.bool_)] = np.nan
    return Numbers(_cells(earlier.table, by), values, found.ends)


def table_number(request: CountRequest, by: Sequence[str]) -> int:
    return [list(query.by) for query in request.queries].index(list(by))


def _cells(table: pa.Table, by: Sequence[str]) -> list[tuple[str, ...]]:
    if not by:
        return [()] * len(table)
    return list(zip(*([str(each) for each in table[name].to_pylist()] for name in by), strict=True))
