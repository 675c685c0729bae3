"""One table in a file, as a release keeps it: written, read, and the names of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import pyarrow as pa


WORDS = ("quality", "effect", "group", "term", "flag")
"""Columns of words, whatever those of one table look like: a group may be called True, or 007."""


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table in the format that its name ends in."""
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path, compression="zstd")


def column_names(path: Path) -> list[str]:
    """The columns of a table that `write_table` wrote."""
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".csv":
        with pyarrow.csv.open_csv(path) as file:
            return list(file.schema.names)
    return list(pyarrow.parquet.read_schema(path).names)


def read_table(
    file: Path | BinaryIO,
    *,
    kind: str,
    attributes: Sequence[str],
    columns: Sequence[str] | None = None,
    coded: Sequence[str] = (),
) -> pa.Table:
    """Read a table that `write_table` wrote, or some of its columns; attributes are text.

    Text of a Parquet file in the columns `coded` stays as it is kept there, in numbers and a list of words.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if kind != "csv":
        # `read_table` of Arrow would load what reads folders of many files.
        with pyarrow.parquet.ParquetFile(file, read_dictionary=[*coded]) as found:
            table = found.read(columns=columns)
        table = table if columns is None else table.select(columns)
        text = (pa.types.is_string, pa.types.is_dictionary)
        codes = [f for f in table.schema if f.name in attributes]
        numbers = {f.name for f in codes if not any(is_kind(f.type) for is_kind in text)}
        fields = [f.with_type(pa.string()) if f.name in numbers else f for f in table.schema]
        return table.cast(pa.schema(fields)) if numbers else table  # earlier versions wrote codes as numbers
    types = {
        **dict.fromkeys(attributes, pa.string()),
        "count": pa.int64(),
        "sum": pa.int64(),
        "at_most": pa.float64(),
        "lower": pa.float64(),
        "upper": pa.float64(),
        **dict.fromkeys(WORDS, pa.string()),
    }
    options = pyarrow.csv.ConvertOptions(column_types=types, include_columns=columns)
    return pyarrow.csv.read_csv(file, convert_options=options)
