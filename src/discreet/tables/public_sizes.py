"""A public table of sizes: some workplace attributes, the jobs of each cell and, where known, its largest workforce."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.data.frames import as_text, collect, open_frame
from discreet.data.lineage import with_levels
from discreet.data.schema import Schema
from discreet.words.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.delimited import Reading


def read_sizes(source: object, schema: Schema) -> tuple[pa.Table, bool]:
    """A file or a frame of public sizes with a column `largest`, and whether that only stands for the whole cell.

    Levels that follow from codes of the table by the schema's hierarchies are columns too.
    """
    name = source.name if isinstance(source, Path) else Path(source).name if isinstance(source, str) else "sizes"
    readings: dict[str, Reading] = dict.fromkeys(schema.workplace_attributes, "text")
    frame = open_frame(source, readings=readings)
    frame = as_text(frame, [name for name in frame.collect_schema() if name in readings])
    table = with_levels(collect(frame, step="read public sizes"), schema)
    if "jobs" not in table.column_names:
        raise DataError(
            f"{name!r} has no column 'jobs'; it has: {', '.join(table.column_names)}.",
            "Public sizes have some workplace attributes and `jobs`, and may have `largest`.",
            "Rename the column.",
            about="sizes",
        )
    if "at_most" in table.column_names:
        _refuse_bounds(table, name)
    is_bound = "largest" not in table.column_names
    table = table.append_column("largest", table["jobs"]) if is_bound else table
    return numeric(table, name), is_bound


def numeric(table: pa.Table, name: str) -> pa.Table:
    """The table, found to hold sizes of cells."""
    import pyarrow as pa

    for column_name in ("jobs", "largest"):
        column = table[column_name]
        if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise DataError(
                f"Column {column_name!r} of {name!r} is not a number in every row.",
                "Sizes are numbers of jobs.",
                "Correct it.",
                about="sizes",
            )
    jobs, largest = (np.array(table[each], dtype=np.float64) for each in ("jobs", "largest"))
    faults = {
        "is not a number of jobs. Sizes are finite numbers from 0 on": ~(np.isfinite(jobs) & (jobs >= 0)),
        "does not fit the cell. The largest establishment has from 1 to all jobs of a cell that has any": ~(
            (largest <= jobs) & ((largest > 0) | (jobs == 0))
        ),
    }
    for each, (fault, wrong) in zip(("jobs", "largest"), faults.items(), strict=True):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{each} = {table[each][row]} in row {row + 1} of {name!r} {fault}.",
                remedy="Correct it.",
                about="sizes",
            )
    return table


def _refuse_bounds(table: pa.Table, name: str) -> None:
    """Refuse a public bound that bounds nothing."""
    import pyarrow as pa

    column = table["at_most"]
    number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    least = np.array(table["largest"] if "largest" in table.column_names else np.zeros(len(table)), dtype=np.float64)
    if column.null_count or not number or not (np.array(column, dtype=np.float64) >= least).all():
        raise DataError(
            f"Column 'at_most' of {name!r} is not a number from `largest` on in every row.",
            "It is the most workers that an establishment of the cell can have, and intervals rest on it.",
            "Correct it, or leave it out.",
            about="sizes",
        )
