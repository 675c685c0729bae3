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

from discreet.columns import column_of, column_of_words

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
    return {name: hashlib.sha256(canonical(table)).hexdigest() for name, table in tables_of(value).items()}


def canonical(table: pa.Table) -> bytes:
    """A table as an Arrow stream that depends on its columns and values only."""
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
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V5, compression=None)
    with pa.ipc.new_stream(sink, plain.schema, options=options) as stream:
        stream.write_table(plain)
    return bytes(sink.getvalue())


def _whole(column: Any) -> Any:
    """An array of its own: no offset into a longer one, and one way to write a number that is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), column_of(np.array([np.nan]))[0].cast(column.type), column)
    return pa.concat_arrays([column, column.slice(0, 0)])
