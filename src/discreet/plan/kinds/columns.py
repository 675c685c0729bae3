"""Columns of published tables, compared whatever their types: a CSV file knows text and numbers alone.

All of it stays in Arrow, because a national programme has millions of rows in each of its files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.codes import Label, code

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.arrays import Vector


def equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """Whether two columns hold the same."""
    import pyarrow.types as kinds

    if kinds.is_floating(one.type) or kinds.is_floating(other.type):
        return bool(np.array_equal(_numbers(one), _numbers(other), equal_nan=True))
    return bool(texts(one).equals(texts(other)))


def close(stated: pa.ChunkedArray, found: pa.ChunkedArray) -> bool:
    """Whether two columns are equal, numbers up to the last digits."""
    import pyarrow.types as kinds

    if not kinds.is_floating(found.type):
        return equal(stated, found)
    a, b = _numbers(stated), _numbers(found)
    return len(a) == len(b) and bool(np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))


def alike(found: Any, stated: Any) -> bool:
    """Whether two sets of constants are equal up to the last digits."""
    if isinstance(found, dict):
        return (
            isinstance(stated, dict)
            and found.keys() == stated.keys()
            and all(alike(found[name], stated[name]) for name in found)
        )
    if isinstance(found, list):
        return isinstance(stated, list) and len(found) == len(stated) and all(map(alike, found, stated))
    if isinstance(found, float):
        return isinstance(stated, float | int) and bool(np.isclose(found, stated, rtol=1e-9))
    return bool(found == stated)


def relabelled(stated: pa.Table, found: pa.Table, attributes: Iterable[str]) -> bool:
    """Whether each code has one label."""
    return all(len(distinct([found[name], stated[name]])) == len(distinct([found[name]])) for name in attributes)


def distinct(columns: Sequence[pa.ChunkedArray]) -> pa.Table:
    """The rows of some columns as text, each once."""
    import pyarrow as pa

    names = [str(number) for number in range(len(columns))]
    rows = pa.table([texts(column) for column in columns], names=names)
    return rows.group_by(names, use_threads=False).aggregate([])


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables of distinct rows hold the same rows, in any order."""
    import pyarrow as pa

    both = pa.concat_tables([one, other])
    together = both.group_by(both.column_names, use_threads=False).aggregate([])
    return len(one) == len(other) == len(together)


def repeats(column: pa.ChunkedArray, kind: Sequence[Label]) -> bool:
    """Whether a column is `kind` over and over."""
    import pyarrow as pa

    values = pa.chunked_array([pa.array([code(value) for value in kind], pa.string())])
    return bool(texts(column).equals(values.take(pa.array(np.arange(len(column)) % len(kind)))))


def text(value: object) -> str:
    """A category as a CSV file writes it."""
    return "" if value is None else code(value) if isinstance(value, bool) else str(value)


def texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same of a whole column."""
    import pyarrow as pa
    import pyarrow.types as kinds

    plain = (kinds.is_string, kinds.is_large_string, kinds.is_boolean, kinds.is_integer, kinds.is_null)
    if any(is_kind(column.type) for is_kind in plain):
        return column.cast(pa.string()).fill_null("")
    return pa.chunked_array([pa.array([text(value) for value in column.to_pylist()], pa.string())])


def _numbers(column: pa.ChunkedArray) -> Vector:
    import pyarrow as pa

    numbers: Vector = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    return numbers
