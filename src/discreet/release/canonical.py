"""Canonical bytes of a released value: the ledger keeps their SHA-256, so it can show later what was paid for.

A value is one or more Arrow tables. Two tables with the same columns and values have the same bytes. Chunks are joined,
dictionaries are written out, and metadata are dropped. A column with nulls becomes two columns: the values, and which
of them are present. The bytes are those of an Arrow stream, so any reader of Arrow can take them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.columns import column_of, column_of_words

if TYPE_CHECKING:
    import pyarrow as pa

VALUE = "value"


def tables_of(value: Any) -> Mapping[str, pa.Table]:
    """The tables of a value by name: its own, or those of its members, or a column of plain numbers."""
    import pyarrow as pa

    if isinstance(value, pa.Table):
        return {VALUE: value}
    if hasattr(value, "to_arrow"):
        return {VALUE: value.to_arrow()}
    if isinstance(value, Sequence) and value and all(hasattr(part, "to_arrow") for part in value):
        return {f"{VALUE}-{i}": part.to_arrow() for i, part in enumerate(value, start=1)}
    return {VALUE: pa.table({VALUE: pa.array(np.ravel(np.asarray(value)))})}


def fingerprints(value: Any) -> dict[str, str]:
    """SHA-256 of the canonical bytes of each of a value's tables."""
    return {name: _hash(table) for name, table in tables_of(value).items()}


def canonical(table: pa.Table) -> bytes:
    """A table as an Arrow stream that depends on its columns and values only."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    _write(table, sink)
    return bytes(sink.getvalue())


def _hash(table: pa.Table) -> str:
    """SHA-256 of the canonical bytes, which are hashed piece by piece and never held."""
    import pyarrow as pa

    sink = _Hashing()
    with pa.PythonFile(sink, mode="w") as file:
        _write(table, file)
    return sink.whole.hexdigest()


class _Hashing:
    """A file that keeps the hash of what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.whole = hashlib.sha256()

    def write(self, piece: bytes) -> int:
        self.whole.update(piece)
        return len(piece)

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True


def _write(table: pa.Table, sink: Any) -> None:
    import pyarrow as pa

    columns: dict[str, Any] = {}
    zero, empty = column_of(np.zeros(1, dtype=np.int64))[0], column_of_words([""])[0]
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_large_string(column.type):
            column = column.cast(pa.string())
        columns[name] = column
        if column.null_count:
            columns[name] = column.fill_null(empty if pa.types.is_string(column.type) else zero.cast(column.type))
            columns[f"{name} is there"] = column.is_valid()
    plain = pa.table({name: _whole(column) for name, column in columns.items()}).combine_chunks()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V5, compression=None)
    with pa.ipc.new_stream(sink, plain.schema, options=options) as stream:
        stream.write_table(plain)


def _whole(column: Any) -> Any:
    """An array of its own: no offset into a longer one, and one way to write a number that is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type) and pc.any(absent := pc.is_nan(column)).as_py():
        column = pc.if_else(absent, column_of(np.array([np.nan]))[0].cast(column.type), column)
    return column if _alone(column) else pa.concat_arrays([column, column.slice(0, 0)])


def _alone(column: Any) -> bool:
    """Whether numbers fill their memory, so that there is nothing of a longer array around them."""
    import pyarrow as pa

    number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return number and not column.offset and column.buffers()[1].size * 8 == len(column) * column.type.bit_width
