"""Folders of Parquet files, partitioned or not: every engine reads the same columns, or refuses in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.data import engines
from discreet.words.errors import DataError


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Iterator[engines.Engine]:
    if request.param == "spark":
        yield request.getfixturevalue("spark")
    else:
        with engines.open("duckdb") as found:
            yield found


def write(folder: Path, **columns: list[Any]) -> Path:
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"worker": [1, 2], **columns}), folder / "part.parquet")
    return folder


def rows(engine: engines.Engine, path: Path) -> dict[str, list[Any]]:
    found = engine.read(str(path)).collect("pyarrow").to_native()
    return {name: found[name].to_pylist() for name in sorted(found.column_names)}


def test_folders_below_the_path_are_columns_of_text(engine: engines.Engine, tmp_path: Path) -> None:
    write(tmp_path / "jobs" / "state=06" / "year=2020")
    assert rows(engine, tmp_path / "jobs") == {"state": ["06"] * 2, "worker": [1, 2], "year": ["2020"] * 2}


@pytest.mark.parametrize(("name", "values"), [("state", ["06", "48"]), ("State", [6, 6])], ids=["text", "number"])
def test_a_column_of_files_and_of_folders_is_refused(
    engine: engines.Engine, name: str, values: list[Any], tmp_path: Path
) -> None:
    write(tmp_path / "jobs" / "state=06")
    write(tmp_path / "jobs" / "state=48", **{name: values})
    with pytest.raises(DataError) as refused:
        engine.read(str(tmp_path / "jobs"))
    assert refused.value.faults[0].about == "source" and "'state'" in str(refused.value)


@pytest.mark.parametrize("named", [True, False], ids=["column", "no column"])
@pytest.mark.parametrize("place", ["", "part.parquet"], ids=["folder", "file"])
def test_folders_above_the_path_are_no_columns(engine: engines.Engine, named: bool, place: str, tmp_path: Path) -> None:
    own = {"state": ["01", "02"]} if named else {}
    folder = write(tmp_path / "state=07" / "jobs", **own)
    assert rows(engine, folder / place) == {**own, "worker": [1, 2]}


def test_folders_both_above_and_below_the_path_are_refused(engine: engines.Engine, tmp_path: Path) -> None:
    write(tmp_path / "year=2020" / "jobs" / "state=06")
    with pytest.raises(DataError) as refused:
        engine.read(str(tmp_path / "year=2020" / "jobs"))
    assert refused.value.faults[0].about == "source" and "'year=2020'" in str(refused.value)
