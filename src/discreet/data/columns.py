"""NumPy arrays as columns of Arrow, and back, without pandas.

`pyarrow.array`, `pyarrow.scalar` and `to_numpy` import pandas wherever it is installed, in case they are given or asked
for something of it: 30 MiB, and a fifth of a second of a process that needs none. What is read and published by the
million goes through these functions; small tables need not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Mask, Vector

if TYPE_CHECKING:
    import pyarrow as pa


def column_of(values: Any, *, missing: Mask | None = None) -> pa.Array:
    """Whole numbers or doubles as a column, of their own type; null where they are missing."""
    import pyarrow as pa

    plain = np.ascontiguousarray(values)
    there = None if missing is None or not missing.any() else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(plain.dtype), len(plain), [there, pa.py_buffer(plain)])


def column_of_words(values: Sequence[Any]) -> pa.Array:
    """A few words as a column; other labels become what Arrow makes of them."""
    import pyarrow as pa

    if not all(isinstance(value, str) for value in values):
        return pa.array(list(values))
    coded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, coded)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(coded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(coded))])


def integers_of(column: pa.ChunkedArray) -> Integers:
    """A column of whole numbers of any width, none of them null; `pyarrow.ArrowInvalid` where 64 bits do not hold one.

    It goes a piece at a time: only the answer is as long as the column.
    """
    import pyarrow as pa

    out, start = np.empty(len(column), dtype=np.int64), 0
    for chunk in column.chunks:
        out[start : start + len(chunk)] = np.from_dlpack(chunk.cast(pa.int64()))
        start += len(chunk)
    return out


def doubles_of(column: pa.ChunkedArray) -> Vector:
    """A column of numbers as doubles; NaN where it is null."""
    import pyarrow as pa

    out, start = np.empty(len(column)), 0
    for chunk in column.chunks:
        part = out[start : start + len(chunk)]
        cast = chunk.cast(pa.float64(), safe=False)
        there, values = cast.buffers()
        held = slice(cast.offset, cast.offset + len(cast))
        part[:] = np.frombuffer(values, dtype=np.float64)[held]
        if cast.null_count:
            part[np.unpackbits(np.frombuffer(there, dtype=np.uint8), bitorder="little")[held] == 0] = np.nan
        start += len(chunk)
    return out


def every_so_many(table: pa.Table, rows: int) -> pa.Table:
    """Every so manieth row of a table, from the first on; words that came in numbers are written out."""
    import pyarrow as pa

    kept = table.take(column_of(np.arange(0, len(table), rows)))
    plain = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in kept.schema]
    return kept.cast(pa.schema(plain))


def words_of(column: pa.ChunkedArray) -> Any:
    """A column of words, few of which differ, as an array of text."""
    coded = column.unify_dictionaries().combine_chunks().dictionary_encode()
    if coded.indices.null_count:
        return np.array(column.to_pylist(), dtype=np.str_)
    return np.array(coded.dictionary.to_pylist(), dtype=np.str_)[np.from_dlpack(coded.indices)]
