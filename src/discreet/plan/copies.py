"""Sources of a plan that hold the same rows under two budgets: a copy of a file, a view of a table.

This is for the owner of the data alone: whether two tables are the same is as confidential as their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.frames import open_frame, working
from discreet.data.scans import tables_in
from discreet.plan.confidential import Confidential
from discreet.plan.file import PlanFile, PlanSource

if TYPE_CHECKING:
    from discreet.data.frames import Frame

FEWEST = 2
"""Columns that two tables must have in common before they are compared: one alone may be the same by chance."""


def twins(file: PlanFile) -> Iterator[str]:
    """A warning for each pair of sources with budgets of their own and the same rows in the columns they share."""
    frames = {source.name: _texts(source) for source in file.sources} if len(file.accounts) > 1 else {}
    for one, other in combinations([source for source in file.sources if source.name in frames], 2):
        mine, theirs = frames[one.name], frames[other.name]
        common = sorted({*mine.collect_schema().names()} & {*theirs.collect_schema().names()})
        if one.dataset == other.dataset or len(common) < FEWEST:
            continue
        if _held(mine, common) == _held(theirs, common):
            yield (
                f"Sources {one.name!r} and {other.name!r} hold the same rows in all columns that both have, and have "
                f"budgets of their own ({one.dataset!r}, {other.dataset!r}). All releases of one data set are paid "
                f"from one budget. Give both the same dataset."
            )


def _texts(source: PlanSource) -> Frame:
    """All columns as text, so a CSV file and a Parquet file of the same rows are equal."""
    import narwhals.stable.v2 as nw

    place = Confidential(source).path
    if isinstance(place, Path) and place.is_dir():
        place, *_ = tables_in(place, None, None)
    return open_frame(place).select(nw.all().cast(nw.String))


def _held(frame: Frame, columns: list[str]) -> Any:
    """The content of some columns of a table, for any order of its rows."""
    native = frame.select(columns).to_native()  # files and databases are tables of DuckDB
    with working("compare sources", frame):
        return native.query("t", "SELECT count(*), sum(hash(t)), bit_xor(hash(t)) FROM t").fetchall()
