"""The published numbers that alarms of a plan compare, by cell, with their ends at any level.

Of a release of the plan they are read from its files; of another plan's, from its table and the constants it states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.arrays import Vector
from discreet.privacy.units import Unit
from discreet.release.files import MANIFEST
from discreet.release.folder import open_release
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.reopened import from_constants
from discreet.words.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.utility.paired import Ends

ANEW = "Noise was drawn anew, so small differences mean nothing."

LEFT_OUT = "left_out"
"""A column of an earlier table: 1 where a rule of the agency leaves the number out."""


class EarlierTable(NamedTuple):
    """A table of another plan: what its release says of it, and its research form."""

    about: Mapping[str, Any]
    table: pa.Table


class Numbers(NamedTuple):
    """Published numbers by cell, and their ends at any level."""

    cells: list[tuple[str, ...]]
    values: Vector
    ends: Ends


class Both(NamedTuple):
    """Two numbers of each cell, and the ends of their change at any rate."""

    cells: list[tuple[str, ...]]
    early: Vector
    late: Vector
    ends: Ends


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


def numbers_of_earlier(
    earlier: EarlierTable,
    unit: Unit,
    by: Sequence[str],
    *,
    level: float,
    bounds_size: Callable[[Mechanism], bool],
) -> Numbers:
    """Numbers of another plan's table; the constants of its noise are those that its release states."""
    found = from_constants(earlier.about, earlier.table, unit, level=level, bounds_size=bounds_size)
    assert found.ends is not None
    values = found.counts.ravel().astype(np.float64)
    if LEFT_OUT in earlier.table.column_names:
        values[np.array(earlier.table[LEFT_OUT], dtype=np.bool_)] = np.nan
    return Numbers(cells_of(earlier.table, by), values, found.ends)


def cells_of(table: pa.Table, by: Sequence[str]) -> list[tuple[str, ...]]:
    if not by:
        return [()] * len(table)
    return list(zip(*([str(each) for each in table[name].to_pylist()] for name in by), strict=True))


def compared(early: Numbers, late: Numbers) -> Both:
    """The numbers of two releases by the cells that both have; their noise is independent."""
    from discreet.utility.between import matched
    from discreet.utility.paired import change_ends

    row = {cell: i for i, cell in enumerate(early.cells)}
    pairs = [(row[cell], i) for i, cell in enumerate(late.cells) if cell in row]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    known = np.isfinite(early.values[first] + late.values[second])
    first, second = first[known], second[known]
    apart = partial(change_ends, matched(early.ends, first), matched(late.ends, second), independent=True)
    cells = [late.cells[i] for i in second]
    return Both(cells, early.values[first], late.values[second], lambda rate: apart(rate=rate))


def within(before: Numbers, after: Numbers, change: Numbers) -> Both:
    """Two numbers of one release that were drawn together, with the ends of their change."""
    from discreet.utility.between import matched

    [seen] = np.isfinite(before.values + after.values + change.values).nonzero()
    ends = matched(change.ends, seen)
    cells = [change.cells[i] for i in seen]
    return Both(cells, before.values[seen], after.values[seen], lambda rate: ends(1 - rate))
