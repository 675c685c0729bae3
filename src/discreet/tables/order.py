"""The order of cells, the same from every engine, and their numbers as arrays.

Engines hand over rows in any order and in types of their own. Here keys get one type and one order. No query here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers
from discreet.data.columns import column_of, integers_of
from discreet.words.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS = "^-?[0-9]{1,18}$"
MOST_CODES = 2**62
"""Numbers that may stand for the keys of a cell while cells are sorted."""


def counts_of(column: pa.ChunkedArray) -> Integers:
    """Counts as an array; refused where they are too many."""
    import pyarrow as pa

    try:
        return integers_of(column)
    except pa.ArrowInvalid:
        raise DataError(
            "The jobs of a cell are more than 2^63 - 1.", "Counts have 64 bits.", "Check the sizes.", about="source"
        ) from None


def plain_keys(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Keys in the one type that codes have: engines differ in the width of text."""
    import pyarrow as pa

    fields = [pa.field(f.name, pa.string()) if f.name in keys else f for f in table.schema]
    return table.cast(pa.schema(fields))


def ordered(keys: pa.Table) -> pa.Table:
    """Keys, all of which differ, in the one type and the order of cells."""
    plain = plain_keys(keys, keys.column_names).combine_chunks()
    return plain.take(column_of(order_of([plain[name].combine_chunks() for name in plain.column_names], len(plain))))


def order_of(keys: Sequence[pa.Array], rows: int) -> Integers:
    """The places of the sorted rows, whose keys all differ: one number represents the keys of a row, in their order.

    Numbers that fill their range are put in their places; only others are compared.
    """
    code, size = _ranks(keys[0]) if keys else (np.zeros(rows, dtype=np.int64), 1)
    for key in keys[1:]:
        rank, ranks = _ranks(key)
        if size * ranks > MOST_CODES:
            (code, size), (rank, ranks) = _dense(code), _dense(rank)
        code, size = code * ranks + rank, size * ranks
    if size > 4 * rows:
        return np.argsort(code)
    at = np.full(size, -1, dtype=np.int64)
    at[code] = np.arange(rows)
    return at[at >= 0]


def _ranks(key: pa.Array) -> tuple[Integers, int]:
    """Whole numbers in the order of a key, from 0 to below the second answer; nulls come last."""
    coded = key.dictionary_encode()
    words = coded.dictionary
    place = np.empty(len(words) + 1, dtype=np.int64)
    place[_order_of_codes(words)] = np.arange(len(words))
    place[-1] = len(words)
    codes = coded.indices.fill_null(column_of(np.array([len(words)], dtype=np.int32))[0])
    return place[np.from_dlpack(codes)], len(words) + 1


def _order_of_codes(words: pa.Array) -> Integers:
    """The places of codes in their order: that of whole numbers where all of them are, 9 before 10, else of text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    by = {"word": words}
    if len(words) and pc.all(pc.match_substring_regex(words, NUMBERS)).as_py():
        by = {"number": words.cast(pa.int64()), **by}
    found = pc.sort_indices(pa.table(by), sort_keys=[(name, "ascending") for name in by])
    return np.from_dlpack(found).astype(np.int64)


def _dense(code: Integers) -> tuple[Integers, int]:
    """The same order in as few numbers as there are."""
    found, rank = np.unique(code, return_inverse=True)
    return rank, found.size
