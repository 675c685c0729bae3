"""Opening engines: settings that are obeyed, and errors that say what to install or to change."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet.data import engines
from discreet.data.engines.spark import require_java
from discreet.data.frames import collect
from discreet.words.errors import DataError, EngineError, MissingExtra, PlanError
from faults_of import about


def test_an_unknown_engine_is_told_the_known_ones() -> None:
    with pytest.raises(PlanError, check=about("engine")):
        engines.open("dask")  # type: ignore[arg-type]


def test_duckdb_obeys_its_settings(tmp_path: Path) -> None:
    with engines.open("duckdb", memory_limit="100MB", threads=1, temp_directory=tmp_path / "spill") as engine:
        settings = "SELECT current_setting('threads'), current_setting('temp_directory')"
        assert engine.connection.execute(settings).fetchone() == (1, str(tmp_path / "spill"))  # type: ignore[attr-defined]


def test_duckdb_keeps_off_the_standard_output() -> None:
    """Its progress bar would break what a program reads from there; `python -c` is where it is on."""
    code = """
from discreet.data import engines
from discreet.data.frames import open_frame
for frame in (engines.open("duckdb").read({"x": [1]}), open_frame({"x": [1]})):
    bar = "SELECT current_setting('enable_progress_bar') AS bar"
    print(frame.to_native().query("t", bar).fetchall()[0][0])
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "False"]


def test_duckdb_spills_instead_of_failing(tmp_path: Path) -> None:
    """A million groups of text need about 100 MB; with 30 MB they go to disk, without a disk they do not fit."""
    numbers = "SELECT range AS id, 'establishment number ' || range AS label FROM range(1000000)"

    def groups(engine: Any) -> int:
        kept = engine.keep(engine.read(engine.connection.sql(numbers)), "numbers")
        counted = kept.group_by("label").agg(nw.col("id").max()).select(nw.len().alias("n"))
        return int(collect(counted, step="groups")["n"][0].as_py())

    with engines.open("duckdb", memory_limit="30MB", threads=1, temp_directory=tmp_path) as engine:
        assert groups(engine) == 1_000_000
    with (
        engines.open("duckdb", memory_limit="30MB", threads=1, temp_directory="") as engine,
        pytest.raises(EngineError, check=about("engine.memory", naming=("OutOfMemoryException",))),
    ):
        groups(engine)


def test_a_database_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, check=about("database", naming=("absent/jobs.duckdb",))):
        engines.open("duckdb", database=tmp_path / "absent" / "jobs.duckdb")
    with pytest.raises(EngineError, check=about("database", naming=("memory_limit", "much"))):
        engines.open("duckdb", memory_limit="much")
    assert not list(tmp_path.iterdir())


def test_files_are_read_into_memory(tmp_path: Path) -> None:
    table = pa.table({"place": pa.array(["a", "b"]).dictionary_encode(), "n": [1, 2]})
    parquet.write_table(table, tmp_path / "cells.parquet")
    engine = engines.open("memory")
    frame = engine.read(tmp_path / "cells.parquet")
    assert isinstance(frame.to_native(), pa.Table)
    assert frame.collect_schema()["place"] == nw.String
    assert collect(frame, step="read").to_pylist() == table.to_pylist()


@pytest.mark.parametrize("name", ["duckdb", "memory", pytest.param("spark", marks=pytest.mark.spark)])
def test_csv_keeps_leading_zeros_and_folders_are_columns(
    name: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = request.getfixturevalue("spark") if name == "spark" else engines.open(name)
    with gzip.open(tmp_path / "firms.csv.gz", "wt") as file:
        file.write("firm,state,size,share\n1,37,10,0.5\n2,06,20,1\n")
    rows = collect(engine.read(str(tmp_path / "firms.csv.gz")).sort("firm"), step="firms").to_pylist()
    assert rows == [
        {"firm": 1, "state": "37", "size": 10, "share": 0.5},
        {"firm": 2, "state": "06", "size": 20, "share": 1.0},
    ]
    (tmp_path / "jobs" / "state=06").mkdir(parents=True)
    parquet.write_table(pa.table({"n": [3]}), tmp_path / "jobs" / "state=06" / "part.parquet")
    (row,) = collect(engine.read(str(tmp_path / "jobs")), step="jobs").to_pylist()
    assert row == {"n": 3, "state": "06"}
    with pytest.raises(DataError, check=about("source", None, naming=("absent.parquet",))):
        engine.read(str(tmp_path / "absent.parquet"))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, check=about("source", None, naming=("broken.parquet",))):
        engine.read(str(tmp_path / "broken.parquet"))


def test_without_java_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        MissingExtra, check=about("extra", naming=("apt install openjdk-17", "brew install openjdk@17"))
    ):
        require_java()
    monkeypatch.setenv("JAVA_HOME", "/opt/nothing")
    with pytest.raises(MissingExtra, check=about("extra", naming=("JAVA_HOME='/opt/nothing'",))):
        require_java()


@pytest.mark.skipif(sys.platform == "win32", reason="writes a shell script in place of java")
@pytest.mark.parametrize(
    ("version", "fits"), [("1.8.0_392", False), ("11.0.2", False), ("17.0.15", True), ("21", True)]
)
def test_an_old_java_is_refused(version: str, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-16' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if fits:
        require_java()
    else:
        major = version.removeprefix("1.").partition(".")[0]
        with pytest.raises(MissingExtra, check=about("extra", naming=(f"version {major}",))):
            require_java()
