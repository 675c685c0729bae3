"""The border: what can be opened, what is refused, in which words, and that no value is among them."""

from __future__ import annotations

import datetime
import gzip
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dc
from discreet.data.frames import as_text, collect, open_frame, query_of, require, tally, working
from discreet.words.errors import DataError, EngineError
from faults_of import about

TABLE = pa.table({"state": ["06", "37"], "jobs": [3, 4]})


def rows(data: Any, **more: Any) -> list[dict[str, Any]]:
    return list(collect(open_frame(data, **more).sort("jobs"), step="rows").to_pylist())


def test_a_directory_and_a_glob_are_one_table(tmp_path: Path) -> None:
    for i in range(2):
        folder = tmp_path / "by county" / f"county=00{i}"
        folder.mkdir(parents=True)
        for path in (folder / "part.parquet", tmp_path / f"part{i}.parquet"):
            parquet.write_table(TABLE.slice(i, 1), path)
    counties = [{"county": f"00{i}"} for i in range(2)]
    assert rows(tmp_path / "by county") == [
        row | county for row, county in zip(TABLE.to_pylist(), counties, strict=True)
    ]
    assert rows(tmp_path / "part*.parquet") == TABLE.to_pylist()


def test_codes_in_csv_keep_their_zeros_even_far_down(tmp_path: Path) -> None:
    lines = ["state,jobs", *("37,1" for _ in range(30_000)), "06,2"]
    with gzip.open(tmp_path / "jobs.csv.gz", "wt") as file:
        file.write("\n".join(lines))
    frame = open_frame(tmp_path / "jobs.csv.gz")
    assert dict(frame.collect_schema()) == {"state": nw.String(), "jobs": nw.Int64()}
    assert rows(tmp_path / "jobs.csv.gz")[-1] == {"state": "06", "jobs": 2}


def test_a_duckdb_file_needs_a_table(tmp_path: Path) -> None:
    path = tmp_path / "a b's.duckdb"
    with duckdb.connect(path) as file:
        file.from_arrow(TABLE).create("counted jobs")
    assert rows(f"{path}::counted jobs") == rows(path, table="counted jobs") == TABLE.to_pylist()
    with pytest.raises(DataError, check=about(None, naming=("counted jobs",))):
        open_frame(path)
    with pytest.raises(DataError, check=about(None, naming=("'jobs'", "counted jobs"))):
        open_frame(f"{path}::jobs")


def test_frames_in_memory_are_scanned_by_duckdb_and_others_stay() -> None:
    frames = {
        "duckdb": [TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE), TABLE.to_pydict(), TABLE.to_reader()],
        "polars": [pl.from_arrow(TABLE).lazy()],  # type: ignore[union-attr]
        "pandas": [nw.from_native(TABLE.to_pandas())],
    }
    for engine, given in frames.items():
        for data in given:
            frame = open_frame(data)
            assert frame.implementation.name.lower() == engine
            assert collect(frame.sort("jobs"), step="rows").to_pylist() == TABLE.to_pylist()


def test_a_pandas_index_is_not_a_column() -> None:
    assert rows(TABLE.to_pandas().set_index(pd.Index([7, 9]))) == TABLE.to_pylist()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"PAR1 cut off", "jobs.parquet"),
        (b"", "jobs.parquet"),
        (b"no database", "jobs.duckdb::jobs"),
        (b"\x1f\x8bcut off", "jobs.csv.gz"),
    ],
)
def test_a_damaged_file_is_named(content: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / name.partition("::")[0]).write_bytes(content)
    with pytest.raises(DataError, check=about(None, naming=(name.partition("::")[0],))):
        open_frame(tmp_path / name)


def test_a_column_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    """DuckDB's binding answers it with an error of Python's."""
    path = tmp_path / "jobs.parquet"
    parquet.write_table(pa.table({"workplace": ["secret"]}), path)
    path.write_bytes(path.read_bytes().replace(b"workplace", b"workpl\xb9ce", 1))
    with pytest.raises(DataError, check=about(None, naming=("jobs.parquet",))) as refused:
        open_frame(path)
    assert "secret" not in str(refused.value)


def test_a_parquet_file_damaged_inside_fails_without_quoting_it(tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    secrets = [f"secret{i}" for i in range(5_000)]
    parquet.write_table(pa.table({"x": secrets}), path, compression="snappy", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[100:2_000] = bytes(1_900)
    path.write_bytes(content)
    with pytest.raises(EngineError, check=about("source", naming=("'longest'", path))) as caught:
        collect(open_frame(path).select(nw.col("x").str.len_chars().max()), step="longest")
    assert "secret" not in str(caught.value)


def test_a_wrong_path_is_told_with_near_misses(tmp_path: Path) -> None:
    parquet.write_table(TABLE, tmp_path / "jobs.parquet")
    with pytest.raises(DataError, check=about(None, naming=("/job.parquet'", "'jobs.parquet'"))):
        open_frame(tmp_path / "job.parquet")
    with pytest.raises(DataError, check=about(None, naming=("there is no file", "/jobs'"))):
        open_frame(tmp_path / "jobs")  # before, it ended in '', which is not a table
    with pytest.raises(DataError, check=about(None, naming=("'.xlsx'", "CSV UTF-8"))):
        open_frame("jobs.xlsx")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, check=about(None, naming=(tmp_path / "empty",))):
        open_frame(tmp_path / "empty")


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(DataError, check=about("salaries")):
        open_frame([1, 2], name="salaries")
    mixed = pd.DataFrame({"x": [1, "secret", 2.5]}, dtype=object)
    with pytest.raises(DataError, check=about(None, naming=("'x'", "jobs"))) as caught:
        open_frame(mixed, name="jobs")
    assert "secret" not in str(caught.value)
    twice = pd.DataFrame([[1, 2]], columns=["x", "x"])
    with pytest.raises(DataError, check=about(None)):
        open_frame(twice)


def test_missing_columns_and_wrong_types_are_told_together() -> None:
    with pytest.raises(DataError) as caught:
        require(open_frame(TABLE), {"Jobs": "integer", "state": "integer", "wage": "number"}, name="jobs")
    assert str(caught.value).splitlines() == [
        "Column 'Jobs' is not in jobs. It has: state, jobs. Did you mean 'jobs'?",
        "Column 'state' of jobs holds String, where whole numbers are needed. Numbers have a decimal point, and no "
        "mark for thousands. Cast it at the source, or write it so.",
        "Column 'wage' is not in jobs. It has: state, jobs. Rename a column or name another.",
    ]


def test_codes_are_spelled_and_numbers_stay() -> None:
    frame = open_frame({"a": [1, -20], "b": [True, False], "c": ["01", None], "d": [1.5, 2.0], "e": [7, 8]})
    assert collect(as_text(frame, ["a", "b", "c", "d"]), step="codes").to_pylist() == [
        {"a": "1", "b": "true", "c": "01", "d": 1.5, "e": 7},
        {"a": "-20", "b": "false", "c": None, "d": 2.0, "e": 8},
    ]


def test_a_failing_step_shows_its_query_and_no_value() -> None:
    data = open_frame({"x": ["secret", "2"]}).select(nw.col("x").cast(nw.Int64))
    with pytest.raises(EngineError) as caught:
        collect(data, step="numbers")
    assert "Step 'numbers' failed in the engine with ConversionException" in str(caught.value)
    assert query_of(data) in str(caught.value)
    assert "secret" not in str(caught.value)
    with pytest.raises(DataError, check=about("ours")), working("step"):
        raise DataError("It broke.", about="ours")


def test_threads_take_turns() -> None:
    frame = open_frame({"x": list(range(1_000))}).select(nw.col("x").sum())
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(int(collect(frame, step="sum")["x"][0].as_py()))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [499_500] * 8


@pytest.mark.parametrize("header", ["x,x,y", "x,X,y", "x,y,x", '"x","y","x"'])
def test_a_header_line_with_one_name_twice_is_refused(tmp_path: Path, header: str) -> None:
    path = tmp_path / "twice.csv"
    path.write_text(f"{header}\n1,2,3\n4,5,6\n")
    with pytest.raises(DataError, check=about(None, naming=("twice.csv",))):
        open_frame(path)


LINES = "worker,place,sex\n" + "".join(f"W{i},P{i % 5},{'mf'[i % 2]}\n" for i in range(50))


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.csv.gz"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (LINES + "SECRET,P1,m,x,y\n", "line 52 has 5 fields, and the first line, which names the columns, has 3"),
        (LINES + "SECRET\n", "line 52 has 1 field, and"),
        (LINES + "SECRET,P1\n" + LINES.partition("\n")[2], "line 52 has 2 fields, and"),
        ("worker,place,sex\nSECRET,P1\n" + LINES.partition("\n")[2], "line 2 has 2 fields, and"),
        (LINES + "SECRET,P1,m\r\nW,P1,m\n", "some lines end as on Windows"),
        (LINES.replace("\n", "\r\n") + "SECRET,P1,m\n", "some lines end as on Windows"),
    ],
    ids=["more", "fewer", "inside", "second", "windows", "unix"],
)
def test_the_line_that_spoils_a_csv_file_is_told_by_number(tmp_path: Path, name: str, content: str, words: str) -> None:
    raw = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    with pytest.raises(DataError) as caught:
        open_frame(tmp_path / name)
    assert words in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert "Correct the line" in str(caught.value) or "Write it again" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        LINES,
        LINES.replace("\n", "\r\n"),
        LINES.replace(",", ";"),
        "\ufeff" + LINES,
        LINES + "\n\n",
        LINES.replace("P1", '"P,1\n"'),
        LINES.replace("worker,", ",", 1),
        "worker\n1\n2\n",
    ],
    ids=["plain", "windows", "semicolons", "mark", "blank", "quoted", "unnamed", "one"],
)
def test_lines_that_spoil_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "jobs.csv").write_bytes(content.encode())
    read = collect(open_frame(tmp_path / "jobs.csv"), step="all")
    assert read.num_rows == (2 if content.startswith("worker\n") else 50)


@pytest.mark.parametrize(
    "name", ["a" * 300 + ".csv", "a\0b.csv", "b" * 300 + "/a.csv", "a\0b/a.csv", "*" * 300 + ".csv"], ids=range(5)
)
def test_what_cannot_be_a_path_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, check=about(None, naming=(Path(name).name,))):
        open_frame(tmp_path / name)


def test_names_that_end_in_numbers_are_no_duplicates(tmp_path: Path) -> None:
    path = tmp_path / "numbered.csv"
    path.write_text("x,x_1,x_2\n1,1,1\n4,5,6\n")
    assert open_frame(path).collect_schema().names() == ["x", "x_1", "x_2"]


def test_a_mapping_that_is_no_table_is_refused_without_being_quoted() -> None:
    with pytest.raises(DataError, check=about(None)) as caught:
        open_frame({"x": [10**400, 1]})
    assert "000000" not in str(caught.value)


def test_a_tally_of_a_frame_in_memory_quotes_no_value() -> None:
    """Narwhals runs it while it is built, before any engine does."""
    frame = open_frame(nw.from_native(pa.table({"n": [2**60 + 12345, 1]})))
    with pytest.raises(EngineError, check=about("source", naming=("'sizes'",))) as told:
        tally(frame, {"large": (nw.col("n").cast(nw.Float64).max() > 5).cast(nw.Int64)}, step="sizes")
    assert "1152921504606859321" not in str(told.value)


def test_a_script_that_ends_with_a_table_in_hand_prints_nothing(tmp_path: Path) -> None:
    """DuckDB would print a list of what is still held, after everything else."""
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    script = (
        "from discreet.data.frames import open_frame\nheld = open_frame('a.csv')\nnames = held.collect_schema().names()"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert (ended.stdout, ended.stderr) == ("", "")


HELD = """
import threading
from discreet.data import engines
from discreet.data.frames import collect, open_frame
table = {"x": [1, 2, 3]}
ready = threading.Event()
def work():
    engine = engines.open("duckdb")
    frame = engine.keep(engine.read(table), "x").filter(x=1)
    assert collect(frame, step="x").num_rows == 1
    ready.set()
    threading.Event().wait()
"""


@pytest.mark.parametrize(
    "held",
    [
        pytest.param("frame = open_frame(table)", id="by the script", marks=pytest.mark.full_size),
        pytest.param(
            "frame = open_frame(table)\n"
            "threading.Thread(target=lambda: ready.wait(600) and frame, daemon=True).start()",
            id="by a thread that waits",
            marks=pytest.mark.full_size,
        ),
        pytest.param(
            "threading.Thread(target=work, daemon=True).start(); ready.wait()", id="by a thread that works on"
        ),
    ],
)
def test_a_script_that_ends_with_a_table_in_hand_ends_without_a_word(held: str) -> None:
    """DuckDB's binding lists what is alive after the interpreter, as the frames of a daemon thread are."""
    done = subprocess.run([sys.executable, "-c", HELD + held], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_view_of_a_duckdb_file_is_read_once(tmp_path: Path) -> None:
    """One with a volatile function would have other rows in every query: those that are checked, and those counted."""
    with duckdb.connect(tmp_path / "rows.duckdb") as file:
        file.execute("CREATE TABLE jobs AS SELECT range AS a FROM range(1000)")
        file.execute("CREATE VIEW half AS SELECT a FROM jobs WHERE random() < 0.5")
        file.execute("CREATE VIEW again AS SELECT a FROM half")
    for name in ("half", "again"):
        frame = open_frame(tmp_path / "rows.duckdb", table=name)
        first, second = (collect(frame.sort("a"), step="rows")["a"].to_pylist() for _ in range(2))
        assert first == second
        assert 300 < len(first) < 700


def test_a_column_of_dates_is_told_as_such() -> None:
    """Quarters come as dates from a database; nothing about fractions helps there."""
    table = {"worker": [1], "workplace": [1], "place": ["a"], "quarter": [datetime.date(2024, 4, 1)]}
    with pytest.raises(DataError) as refusal:
        dc.read_histories(table, quarters=["2024Q1", "2024Q2", "2024Q3"], schema=dc.Schema(["place"], {}))
    assert "such as 2024Q2" in str(refusal.value) and "fractions" not in str(refusal.value)
