"""A table of plain Python columns as every kind of data that a door takes, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

Columns = Mapping[str, Sequence[Any]]


def arrow(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(values, from_pandas=False) for name, values in columns.items()})


def _pandas(columns: Columns, path: Path) -> Any:
    return arrow(columns).to_pandas()


def _pandas_of_arrow(columns: Columns, path: Path) -> Any:
    import pandas

    return arrow(columns).to_pandas(types_mapper=pandas.ArrowDtype)


def _pandas_backwards(columns: Columns, path: Path) -> Any:
    frame = arrow(columns).to_pandas()
    return frame.set_index(frame.index[::-1])


def _polars(columns: Columns, path: Path) -> Any:
    import polars

    return polars.from_arrow(arrow(columns))


def _lazy(columns: Columns, path: Path) -> Any:
    return _polars(columns, path).lazy()


def _duckdb(columns: Columns, path: Path) -> Any:
    import duckdb

    return duckdb.connect().from_arrow(arrow(columns))


def _numpy(columns: Columns, path: Path) -> Any:
    return {name: column.to_numpy() for name, column in zip(columns, arrow(columns).columns, strict=True)}


def _csv(columns: Columns, path: Path) -> Any:
    pyarrow.csv.write_csv(arrow(columns), path / "world.csv")
    return path / "world.csv"


def _parquet(columns: Columns, path: Path) -> Any:
    pyarrow.parquet.write_table(arrow(columns), path / "world.parquet")
    return str(path / "world.parquet")


def _chunks(columns: Columns, path: Path) -> Any:
    table = arrow(columns)
    return pa.concat_tables([table.slice(0, len(table) // 3), table.slice(len(table) // 3)])


KINDS: dict[str, Callable[[Columns, Path], Any]] = {
    "pandas": _pandas,
    "pandas of Arrow": _pandas_of_arrow,
    "pandas, index backwards": _pandas_backwards,
    "polars": _polars,
    "polars, lazy": _lazy,
    "duckdb": _duckdb,
    "numpy": _numpy,
    "arrow in pieces": _chunks,
    "csv": _csv,
    "parquet": _parquet,
}
"""Every kind but the Arrow table itself, to which they are compared."""
