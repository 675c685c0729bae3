"""Arrays as columns of Arrow: what `pyarrow.array` and `to_numpy` would have made, without loading pandas."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from discreet.data.columns import column_of, column_of_words, doubles_of, integers_of, words_of
from discreet.release.known_data import LINES, digest_of


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.float64])
@pytest.mark.parametrize("size", [0, 1, 8, 9, 1000])
def test_numbers_are_those_of_arrow(kind: type, size: int) -> None:
    rng = np.random.default_rng(size)
    values, missing = rng.integers(-100, 100, size=2 * size)[::2].astype(kind), rng.random(size) < 0.3
    assert column_of(values).equals(pa.array(values))
    assert column_of(values, missing=missing).equals(pa.array(values, mask=missing))
    assert column_of(values, missing=np.zeros(size, dtype=np.bool_)).null_count == 0


@pytest.mark.parametrize("values", [["a", "", "ü 北京", "\0"], [], [3, 1, 2], [True, False]])
def test_words_are_those_of_arrow(values: list[object]) -> None:
    assert column_of_words(values).equals(pa.array(values, pa.string()) if not values else pa.array(values))


def test_columns_come_back_piece_by_piece() -> None:
    """Pieces that begin within a longer array, with nulls on both sides of their ends."""
    whole = pa.array([7, None, 2**53 + 1, 4, None, 6, 0, -1, None, 9])
    pieces = pa.chunked_array([whole.slice(1, 4), whole.slice(5, 0), whole.slice(3, 7)])
    expected = [np.nan if value is None else float(value) for value in pieces.to_pylist()]
    np.testing.assert_array_equal(doubles_of(pieces), expected)
    full = pa.chunked_array([whole.slice(2, 2), whole.slice(5, 3)])
    assert integers_of(full).tolist() == full.to_pylist()
    assert words_of(pa.chunked_array([["b", "a"], ["b"]])).tolist() == ["b", "a", "b"]
    assert words_of(pa.chunked_array([["b", None]])).tolist() == ["b", "None"]
    with pytest.raises(pa.ArrowInvalid):
        integers_of(pa.chunked_array([pa.array([2**63], pa.uint64())]))


def test_a_note_of_data_is_the_hash_of_their_sorted_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes are kept for years, so however lines are joined, the hash is that of the text in one piece."""
    table = pa.table({"workplace": [10, 9, 100, None], "n": [3, 1, 2, 5]})
    lines = sorted(
        f"{'' if place is None else place}\0{n}" for place, n in zip(*table.to_pydict().values(), strict=True)
    )
    expected = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert len(table) < LINES and digest_of(table) == expected
    monkeypatch.setattr("discreet.release.known_data.LINES", 3)
    assert digest_of(table) == expected
    assert digest_of(table.slice(0, 0)) == hashlib.sha256(b"").hexdigest()


def test_a_release_loads_no_pandas(tmp_path) -> None:
    """30 MiB of every process that reads cells of a file, where pandas is installed."""
    code = (
        "import sys, duckdb, discreet as dc\n"
        "duckdb.sql('''COPY (SELECT i AS worker, i // 9 AS workplace, 's' || i // 90 AS sector, "
        "['f', 'm'][1 + i % 2] AS sex FROM range(900) r(i)) TO 'jobs.parquet' ''')\n"
        "schema = dc.Schema(['sector'], {'sex': ['f', 'm']})\n"
        "session = dc.Session(dc.read_jobs('jobs.parquet', schema=schema), unit=dc.Establishments('0.1'), budget=9)\n"
        "for by in (['sector'], ['sector', 'sex']): session.count(by=by).release(epsilon=3).to_arrow()\n"
        "print('pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert found.stdout.split() == ["False"]
