"""Rows as files of every kind, and as frames of every kind."""

from __future__ import annotations

import csv
import gzip
import io
import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from worlds.data import Row


def arrow(rows: Sequence[Row], columns: Sequence[str]) -> pa.Table:
    """The rows; a column of whole numbers where some are not is one of doubles."""
    found = {}
    for name in columns:
        values = [row[name] for row in rows]
        floats = any(isinstance(value, float) for value in values)
        mixed = any(isinstance(value, str) for value in values)
        if floats and not mixed:
            values = [None if value is None else float(value) for value in values]
        elif mixed:
            values = [None if value is None else str(value) for value in values]
        found[name] = pa.array(values, pa.string()) if all(value is None for value in values) else pa.array(values)
    return pa.table(found)


SERVER: list[str] = []
"""The address of a running PostgreSQL, while worlds may have tables there."""

ENDINGS = {"parquet": "%s.parquet", "folder": "%s", "duckdb": "data.duckdb::%s", "sqlite": "data.sqlite::%s"}


def placed(folder: Path, name: str, frame: str) -> str:
    """The place of a table of a world in a folder, as a plan there names it."""
    kind = frame.partition(" ")[0]
    if kind == "postgresql":
        return f"{SERVER[0]}::{_schema(folder)}.{name}"
    return f"data/{ENDINGS.get(kind, f'%s.{kind}') % name}"


def _schema(folder: Path) -> str:
    return f"w{sha256(str(folder.resolve()).encode()).hexdigest()[:16]}"


def written(rows: Sequence[Row], columns: Sequence[str], folder: Path, name: str, frame: str) -> str:
    """Write a table in a kind of file; its place, as a plan names it."""
    kind, _, how = frame.partition(" ")
    if kind.startswith("csv"):
        path = folder / f"{name}.{kind}"
        path.write_bytes(_csv(rows, columns, how, kind))
        return path.name
    table = arrow(rows, columns)
    match kind:
        case "parquet":
            pq.write_table(table, folder / f"{name}.parquet")
            return f"{name}.parquet"
        case "folder":
            (folder / name).mkdir()
            half = len(table) // 2
            for i, part in enumerate((table[:half], table[half:])):
                pq.write_table(part, folder / name / f"part-{i}.parquet")
            return name
        case "duckdb":
            with duckdb.connect(str(folder / "data.duckdb")) as base:
                base.register("given", table)
                base.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
            return f"data.duckdb::{name}"
        case "sqlite":
            _sqlite(table, folder / "data.sqlite", name)
            return f"data.sqlite::{name}"
        case "postgresql":
            _postgresql(table, f"{_schema(folder.parent)}.{name}")
            return f"{name} of the server"
    raise ValueError(frame)


def _postgresql(table: pa.Table, name: str) -> None:
    import psycopg

    named = {column: '"' + column.replace('"', '""') + '"' for column in table.column_names}
    kinds = [f"{named[field.name]} {_of_postgresql(field.type)}" for field in table.schema]
    rows = [*zip(*(table[column].to_pylist() for column in table.column_names), strict=True)]
    with psycopg.connect(SERVER[0], autocommit=True) as server, server.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {name.partition('.')[0]}")
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
        cursor.execute(f"CREATE TABLE {name} ({', '.join(kinds)})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


def _of_postgresql(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_string(kind):
        return "text"
    return "bigint" if pa.types.is_integer(kind) else "double precision"


def _packed(content: bytes, kind: str) -> bytes:
    if kind.endswith(".gz"):
        return gzip.compress(content, mtime=0)
    return pa.compress(content, codec="zstd", asbytes=True) if kind.endswith(".zst") else content


def _csv(rows: Sequence[Row], columns: Sequence[str], how: str, kind: str) -> bytes:
    mark, _, more = how.partition(" ")
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if more == "quoted" else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=mark, lineterminator="\r\n" if more == "crlf" else "\n", quoting=quoting)
    if any(sign in name for name in columns for sign in ",;|\t"):  # nobody could tell which one separates
        csv.writer(out, writer.dialect, quoting=csv.QUOTE_ALL).writerow(columns)
    else:
        writer.writerow(columns)
    writer.writerows([_cell(row[name]) for name in columns] for row in rows)
    encoded = out.getvalue().encode(more if more.startswith("utf") else "utf-8")
    return _packed(encoded, kind)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def _sqlite(table: pa.Table, path: Path, name: str) -> None:
    kinds = {column: _affinity(table.schema.field(column).type) for column in table.column_names}
    kept = [(c, pa.string() if pa.types.is_boolean(t) else t) for c, t in zip(kinds, table.schema.types, strict=True)]
    table = table.cast(pa.schema(kept))
    named = {column: '"' + column.replace('"', '""') + '"' for column in table.column_names}
    with sqlite3.connect(path) as base:
        base.execute(f'CREATE TABLE "{name}" ({", ".join(f"{named[c]} {kinds[c]}" for c in kinds)})')
        rows = zip(*(table[column].to_pylist() for column in table.column_names), strict=True)
        base.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(kinds))})', rows)
    base.close()


def _affinity(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return "TEXT"
    return "INTEGER" if pa.types.is_integer(kind) else "REAL"


def _words(table: pa.Table, to: Callable[[pa.ChunkedArray], Any]) -> pa.Table:
    """The table with its columns of text as another type of text."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(at, field.name, to(table.column(at)))
    return table


def _codes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary with an entry that no row has."""
    plain = column.combine_chunks()
    found = plain.unique().drop_null().to_pylist()
    entries = pa.array(["of no row", *found[::-1]], pa.string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.compute.index_in(plain, entries), entries)])


IN_MEMORY: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars, lazy": lambda table: pl.from_arrow(table).lazy(),
    "NumPy": lambda table: {
        name: np.asarray(table[name].to_pandas())
        for name in table.column_names
        if table[name].null_count < len(table) or not len(table)  # an array of nothing has no type
    },
    "lists": lambda table: table.to_pydict(),
    "duckdb": duckdb.from_arrow,
    "arrow in pieces": lambda table: pa.concat_tables([table[: len(table) // 3], table[len(table) // 3 :]]),
    "arrow, read in turns": lambda table: table.to_reader(2),
    "arrow, dictionaries": lambda table: _words(table, _codes),
    "arrow, large text": lambda table: _words(table, lambda column: column.cast(pa.large_string())),
    "arrow, views of text": lambda table: _words(table, lambda column: column.cast(pa.string_view())),
    "pandas, categories": lambda table: _words(table, _codes).to_pandas(),
    "pandas, other index": lambda table: (lambda frame: frame.set_index(frame.index[::-1]))(table.to_pandas()),
    "pandas, nullable": lambda table: table.to_pandas().convert_dtypes(),
    "pandas, objects": lambda table: table.to_pandas().astype(
        {name: object for name in table.column_names if pa.types.is_string(table.schema.field(name).type)}
    ),
    "polars, categories": lambda table: pl.from_arrow(_words(table, _codes)),
}
"""Frames that Python's doors take."""


def _of(make: Callable[[int], Any], to: Callable[[list[Any]], Any]) -> Callable[[pa.Table, str], Any]:
    """A pandas frame with another column, whose values are made by their number."""

    def made(table: pa.Table, column: str) -> Any:
        found = {name: table[name].to_pandas() for name in table.column_names}
        found[column] = to([make(i) for i in range(len(table))])
        return pd.DataFrame(found)

    return made


STRANGE: dict[str, Callable[[pa.Table, str], Any]] = {
    "whole numbers that no column holds": _of(lambda i: 2**70 + i, list),
    "half floats": _of(float, lambda values: np.array(values, "float16")),
    "periods": _of(lambda i: f"{2000 + i}Q1", lambda values: pd.PeriodIndex(values, freq="Q")),
    "far periods": _of(lambda i: f"{8000 + i % 999}", lambda values: pd.PeriodIndex(values, freq="Y")),
    "dates": _of(lambda i: date(2024, 1, 1 + i % 28), list),
    "moments": _of(lambda i: datetime(2024, 1, 1 + i % 28, tzinfo=UTC), list),
    "spans": _of(timedelta, list),
    "intervals": _of(lambda i: i % 7, lambda values: pd.IntervalIndex.from_breaks(range(len(values) + 1))),
    "decimals": _of(lambda i: Decimal(f"{i}.10"), list),
    "bytes": _of(lambda i: bytes([i % 256]), list),
    "lists": _of(lambda i: [i], list),
    "mappings": _of(lambda i: {"a": i}, list),
    "numbers and words": _of(lambda i: (i, str(i), 1.5)[i % 3], list),
    "objects": _of(lambda i: object(), list),
    "complex numbers": _of(complex, list),
    "sparse numbers": _of(lambda i: i % 2, pd.arrays.SparseArray),
    "nothing": _of(lambda i: None, list),
    "sets": _of(lambda i: {i}, list),
}
"""Columns of types that few have thought of."""
