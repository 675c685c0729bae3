"""Writing is all or nothing."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.simulate import stream
from discreet.words.errors import DataError, DiscreetError
from faults_of import about


def batches(n=3, fail_after=None):
    for k in range(n):
        if k == fail_after:
            raise ZeroDivisionError
        yield "left", pa.record_batch({"k": [k, k]})
        yield "right", pa.record_batch({"name": stream.categories(pa.array([0, 1]).to_numpy(), ["a", "b"])})


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_every_stream_becomes_a_file(tmp_path):
    seen = []
    done = stream.write(
        tmp_path / "new" / "data",
        batches(),
        about={"seed": 5},
        total=12,
        progress=lambda step, share: seen.append((step, share)),
    )
    assert done == {"seed": 5, "rows": {"left": 6, "right": 6}}
    assert json.loads((tmp_path / "new" / "data" / "about.json").read_text()) == done
    assert pq.read_table(tmp_path / "new" / "data" / "left.parquet")["k"].to_pylist() == [0, 0, 1, 1, 2, 2]
    assert pq.read_table(tmp_path / "new" / "data" / "right.parquet")["name"].to_pylist() == ["a", "b"] * 3
    assert seen == [(f"{rows} of 12 rows", rows / 12) for rows in range(2, 13, 2)]


def test_an_empty_directory_is_used(tmp_path):
    (tmp_path / "data").mkdir()
    stream.write(tmp_path / "data", batches(), about={}, total=12)
    assert names(tmp_path) == ["data"]
    assert names(tmp_path / "data") == ["about.json", "left.parquet", "right.parquet"]


@pytest.mark.parametrize("fail_after", [0, 1, 2])
def test_a_failure_leaves_nothing(tmp_path, fail_after):
    with pytest.raises(ZeroDivisionError):
        stream.write(tmp_path / "data", batches(fail_after=fail_after), about={}, total=12)
    assert names(tmp_path) == []


def test_an_interruption_leaves_nothing(tmp_path):
    def stop(step, share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream.write(tmp_path / "data", batches(), about={}, total=12, progress=stop)
    assert names(tmp_path) == []


def test_something_there_is_never_overwritten(tmp_path):
    (tmp_path / "kept.txt").write_text("mine")
    with pytest.raises(DataError, check=about("folder")):
        stream.write(tmp_path, batches(), about={}, total=12)
    with pytest.raises(DataError, check=about("folder")):
        stream.write(tmp_path / "kept.txt", batches(), about={}, total=12)
    assert names(tmp_path) == ["kept.txt"]
    assert (tmp_path / "kept.txt").read_text() == "mine"


def test_the_same_request_finds_its_data_and_leaves_them(tmp_path):
    first = stream.write(tmp_path / "data", batches(), about={"seed": 1, "shape": (1, 2)}, total=12)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
    assert stream.write(tmp_path / "data", batches(), about={"seed": 1, "shape": (1, 2)}, total=12) == first
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()} == before
    assert names(tmp_path) == ["data"]
    with pytest.raises(DataError, check=about("folder")):
        stream.write(tmp_path / "data", batches(), about={"seed": 2, "shape": (1, 2)}, total=12)
    with pytest.raises(DataError, check=about("folder")):  # the same request, but somebody changed what it wrote
        stream.write(tmp_path / "data", batches(2), about={"seed": 1, "shape": (1, 2)}, total=12)
    (tmp_path / "data" / "more.txt").write_text("mine")
    with pytest.raises(DataError, check=about("folder")):
        stream.write(tmp_path / "data", batches(), about={"seed": 1, "shape": (1, 2)}, total=12)


def test_an_unwritable_place_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DiscreetError, check=about("folder")):
        stream.write(tmp_path / "file" / "below", batches(), about={}, total=12)


def test_a_file_holds_each_label_where_it_is_used(tmp_path):
    labels = [f"a county with a long name {i}" for i in range(2_000)]
    parts = [np.arange(k, k + 20) for k in range(0, 2_000, 20)]
    stream.write(
        tmp_path / "d",
        (("all", pa.record_batch({"c": stream.categories(p, labels)})) for p in parts),
        about={},
        total=1,
    )
    path = tmp_path / "d" / "all.parquet"
    assert pq.read_table(path)["c"].to_pylist() == labels
    stored = pq.read_metadata(path)
    assert sum(stored.row_group(i).column(0).total_uncompressed_size for i in range(100)) < 3 * sum(map(len, labels))
