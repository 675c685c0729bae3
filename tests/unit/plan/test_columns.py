"""Columns compared in Arrow give what comparing their values as text one by one gives."""

from __future__ import annotations

import datetime as dt
from itertools import product

import pyarrow as pa
import pytest

from discreet.plan.kinds.columns import close, distinct, equal, relabelled, repeats, same_rows, text, texts

COLUMNS = [
    pa.array(["a", "", None, "b"]),
    pa.array(["a", None, "", "b"], pa.large_string()),
    pa.array(["a", "b", "a", "b"]).dictionary_encode(),
    pa.array(["a", "b", "a", "b"]),
    pa.array([1, None, -3, 2**62]),
    pa.array(["1", "", "-3", str(2**62)]),
    pa.array([1, 0, 3, 4], pa.uint8()),
    pa.array([True, False, None, True]),
    pa.array(["true", "false", "", "true"]),
    pa.array([None] * 4, pa.null()),
    pa.array([dt.date(2026, 1, 1)] * 4),
    pa.array(["2026-01-01"] * 4),
]


@pytest.mark.parametrize("one, other", list(product(COLUMNS, repeat=2)))
def test_equal_as_their_texts_are(one: pa.Array, other: pa.Array) -> None:
    a, b = pa.chunked_array([one.slice(0, 1), one.slice(1)]), pa.chunked_array([other])
    said = [[text(value) for value in column.to_pylist()] for column in (a, b)]
    assert texts(a).to_pylist() == said[0]
    assert equal(a, b) is close(a, b) is (said[0] == said[1])
    assert len(distinct([a, b])) == len(set(zip(*said, strict=True)))
    assert same_rows(distinct([a]), distinct([b])) is (set(said[0]) == set(said[1]))


def test_numbers_are_compared_as_numbers() -> None:
    ends, whole = pa.chunked_array([[1.0, None, 3.0]]), pa.chunked_array([[1, None, 3]])
    assert equal(ends, whole) and close(ends, ends)
    assert not equal(ends, pa.chunked_array([[1.0, None, 3.0 + 1e-12]]))
    assert close(pa.chunked_array([[1.0, None, 3.0 + 1e-12]]), ends)
    assert not equal(ends, pa.chunked_array([[1.0, 2.0, 3.0]]))
    assert not equal(ends, pa.chunked_array([[1.0, None]])) and not close(ends, pa.chunked_array([[1.0, None]]))


def test_kinds_over_and_over_and_labels() -> None:
    assert repeats(pa.chunked_array([["f", "m", "f", "m"]]), ["f", "m"])
    assert repeats(pa.chunked_array([["true", "true"]]), [True])
    assert not repeats(pa.chunked_array([["f", "m", "m", "f"]]), ["f", "m"])
    codes, labels = pa.table({"place": ["1", "2", "1"]}), pa.table({"place": ["one", "two", "one"]})
    assert relabelled(labels, codes, ["place"])
    assert not relabelled(pa.table({"place": ["one", "two", "two"]}), codes, ["place"])
