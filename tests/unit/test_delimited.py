"""CSV files as people write them: read as they are meant, or refused with the way to write them again."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet.data.frames import collect, open_frame
from discreet.data.jobs import read_jobs
from discreet.data.row_checks import refuse_values_for_names
from discreet.data.schema import Schema
from discreet.models.linear.private.owner import look
from discreet.models.linear.private.release import release_mixed
from discreet.models.mixed import mixed
from discreet.privacy.units import Establishments
from discreet.session import Session
from discreet.words.errors import DataError
from faults_of import about

NAMES = ("firm", "person", "place", "code", "sex")
ROWS = [
    ("F01", "001", "06001", "47.10", "female"),
    ("F01", "002", "06001", "47.10", "male"),
    ("F02", "003", "Zürich", "10", "male"),
    ("F03", "004", "06001", "31-33", "female"),
]
SCHEMA = Schema(["place", "code"], {"sex": ["female", "male"]}, establishment="firm", worker="person", unused=["*"])


def text(
    rows: list[tuple[str, ...]] = ROWS, names: tuple[str, ...] = NAMES, *, mark: str = ",", end: str = "\n"
) -> str:
    return end.join(mark.join(row) for row in (names, *rows)) + end


def zipped() -> bytes:
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
        archive.writestr("jobs.csv", text())
    return packed.getvalue()


READ = {
    "plain.csv": text().encode(),
    "semicolons.csv": text(mark=";").encode(),
    "tabs.tsv": text(mark="\t").encode(),
    "bars.txt": text(mark="|").encode(),
    "mark.csv": text().encode("utf-8-sig"),
    "sixteen.csv": text(mark="\t").encode("utf-16"),
    "announced.csv": ("sep=;\r\n" + text(mark=";", end="\r\n")).encode(),
    "macintosh.csv": text(end="\r").encode(),
    "blank lines.csv": ("\n" + text().replace("\n", "\n\n")).encode(),
    "spaces.csv": text([tuple(f" {one}\u00a0" for one in row) for row in (NAMES, *ROWS)], ()).lstrip("\n").encode(),
    "quotes.csv": text([tuple(f'"{cell}"' for cell in row) for row in ROWS]).encode(),
    "index.csv": text([(str(i), *row) for i, row in enumerate(ROWS)], ("", *NAMES)).encode(),
    "last separator.csv": text().replace("\n", ",\n").encode(),
    "packed.csv.gz": gzip.compress(text().encode()),
    "packed.csv.zst": pa.compress(text().encode(), codec="zstd", asbytes=True),
    "it's 100 % 'odd'.csv": text().encode(),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_is_meant_is_read(tmp_path: Path, name: str) -> None:
    """Codes keep their zeros and points, and the release has one cell for each place and code."""
    (tmp_path / name).write_bytes(READ[name])
    session = Session(read_jobs(tmp_path / name, schema=SCHEMA), unit=Establishments("0.1"), budget=2)
    table = session.count(by=["place", "code"]).release(epsilon=2).to_arrow()
    found = set(zip(table["place"].to_pylist(), table["code"].to_pylist(), strict=True))
    assert {("06001", "47.10"), ("Zürich", "10"), ("06001", "31-33")} <= found
    assert {place for place, _ in found} == {"06001", "Zürich"}


REFUSED = {
    "latin.csv": (text().encode("latin-1"), "line 4", "Save it as UTF-8"),
    "latin.csv.gz": (gzip.compress(text().encode("latin-1")), "line 4", "Save it as UTF-8"),
    "latin name.csv": (text(names=(*NAMES[:4], "sexé")).encode("latin-1"), "line 1", "Save it as UTF-8"),
    "other end first.csv": (b"\xfe\xff" + text().encode("utf-16-be"), "not UTF-8", "Save it as UTF-8"),
    "without a mark.csv": (text().encode("utf-16-le"), "not UTF-8", "Save it as UTF-8"),
    "thirty-two.csv": (text().encode("utf-32"), "not UTF-8", "Save it as UTF-8"),
    "zeros.csv": (text().replace("F02", "F\x0002").encode(), "not UTF-8", "Save it as UTF-8"),
    "colons.csv": (text(mark=":").encode(), "one column", "Write the file with one of these"),
    "capitals.csv": (text(names=tuple(map(str.title, NAMES))).encode(), "It has 'Firm'", "Name the columns"),
    "below a title.csv": (f"Jobs,,,,\n,,,,\n{text()}".encode(), "none of the columns", "Make it the first line"),
    "no names.csv": (text().partition("\n")[2].encode(), "none of the columns", "Make it the first line"),
    "a place in two.csv": (text().replace("Zürich", "Zug, ZG").encode(), "line 4 has 6", "Correct the line"),
    "a note below.csv": (f"{text()}Source: register\n".encode(), "line 6 has 1", "Correct the line"),
    "two ends.csv": ((text() + "F9,9,06001,10,male\r\n").encode(), "CR LF", "Write it again with one"),
    "twice.csv": (text(names=("firm", "person", "place", "sex", "sex")).encode(), "one name", "Rename one"),
    "fractions.csv": (text([(r[0], f"1.{r[1]}E+17", *r[2:]) for r in ROWS]).encode(), "Float64", "format the column"),
    "empty.csv": (b"", "is empty", "Check the export"),
    "no rows.csv": (text([]).encode(), "no rows", "Check the export"),
    "jobs.xlsx": (zipped(), "workbook", "CSV UTF-8"),
    "a workbook.csv": (zipped(), "workbook", "CSV UTF-8"),
    "an old workbook.csv": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 64, "workbook", "CSV UTF-8"),
    "jobs.csv.zip": (zipped(), "archive", ".csv.gz"),
    "compressed.csv": (gzip.compress(text().encode()), "gzip", "Rename it to .csv.gz"),
    "by zstd.csv": (pa.compress(text().encode(), codec="zstd", asbytes=True), "zstd", "Rename it to .csv.zst"),
    "not compressed.csv.gz": (text().encode(), "not compressed", "Rename it to .csv"),
    "columns.csv": (b"PAR1" + bytes(40) + b"PAR1", "Parquet", "Rename it to .parquet"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_a_guess_is_refused_with_the_way_out(tmp_path: Path, name: str) -> None:
    content, asked, remedy = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as refused:
        read_jobs(tmp_path / name, schema=SCHEMA)
    (fault,) = refused.value.faults
    assert fault.about == "source"
    assert asked in str(fault.asked) + str(fault.possible)
    assert remedy in str(fault.remedy)
    said = str(refused.value)
    assert not any(cell in said for row in ROWS for cell in (row[0], row[1], row[2], "F9", "Zug"))


def test_a_columns_type_follows_the_schema_and_no_row(tmp_path: Path) -> None:
    """Whole numbers are labels, or text where the domain is; numbers are numbers whatever a row holds."""
    path = tmp_path / "coded.csv"
    path.write_text("firm,person,sex,day,big,y\n1,1,1,2026-01-01,12345678901234567890123,2\n2,A,2,2026-01-02,7,x\n")
    typed = open_frame(path, readings={"firm": "key", "sex": "text", "day": "text", "big": "text", "y": "number"})
    assert collect(typed, step="rows").to_pylist() == [
        {"firm": "1", "person": "1", "sex": "1", "day": "2026-01-01", "big": "12345678901234567890123", "y": 2.0},
        {"firm": "2", "person": "A", "sex": "2", "day": "2026-01-02", "big": "7", "y": None},
    ]
    jobs = Schema([], {"sex": ["1", "2"]}, establishment="firm", worker="person", unused=["*"])
    assert read_jobs(path, schema=jobs).validated
    assert read_jobs(path, schema=replace(jobs, worker_attributes={"sex": [1, 2]})).validated
    places = tmp_path / "places.csv"
    places.write_text("firm\n1\n2\nnew\n")
    assert read_jobs(path, workplaces=places, schema=jobs).validated


def test_an_establishment_is_not_split_by_a_space(tmp_path: Path) -> None:
    """Two spellings of one key would be two establishments, each with half of the protection."""
    (tmp_path / "spaces.csv").write_text("firm,person\nF1,a\nF1 ,b\n\tF1,c\n")
    table = collect(open_frame(tmp_path / "spaces.csv").select("firm").unique(), step="firms")
    assert table.to_pydict() == {"firm": ["F1"]}


def test_no_row_is_taken_for_a_remark_and_no_quote_is_guessed(tmp_path: Path) -> None:
    """DuckDB would find out what begins a remark, and what quotes, from the rows themselves."""
    rows = [("#F01" if i % 40 == 0 else "F02", f"{i:03}", "06001", "10", "male") for i in range(200)]
    path = tmp_path / "jobs.csv"
    path.write_text(text(rows))
    found = collect(read_jobs(path, schema=SCHEMA, validate=False).table, step="rows")
    assert found.num_rows == 200
    assert found["firm"].to_pylist().count("#F01") == 5
    for broken in (text(rows) + "# a remark\n", text([*rows[:50], ('"F02', *rows[50][1:]), *rows[51:]])):
        path.write_text(broken)
        with pytest.raises(DataError, check=about("source")) as caught:
            read_jobs(path, schema=SCHEMA)
        assert "remark" not in str(caught.value)


def test_files_that_are_read_together_are_written_in_one_way(tmp_path: Path) -> None:
    """What is wrong is told by the file's name, and no row of it is shown."""
    (tmp_path / "a.csv").write_text(text(ROWS[:2]))
    others = {
        "another name": text(ROWS[2:], (*NAMES[:4], "gender")).encode(),
        "one name more": text([(*row, "1") for row in ROWS[2:]], (*NAMES, "n")).encode(),
        "no names": text(ROWS[2:]).partition("\n")[2].encode(),
        "another encoding": text(ROWS[2:]).encode("utf-16"),
        "Latin-1": text(ROWS[2:]).encode("latin-1"),
        "a field too many": (text(ROWS[2:]) + "F9,9,06001,10,male,1\n").encode(),
    }
    for content in others.values():
        (tmp_path / "b.csv").write_bytes(content)
        with pytest.raises(DataError, check=about("source")) as refused:
            read_jobs(str(tmp_path / "*.csv"), schema=SCHEMA)
        said = str(refused.value)
        assert "b.csv" in said
        assert not any(cell in said for cell in ("F02", "003", "Zürich", "F9", "SELECT"))
    (tmp_path / "b.csv").write_text(text([row[::-1] for row in ROWS[2:]], NAMES[::-1], mark=";"))
    jobs = read_jobs(str(tmp_path / "*.csv"), schema=SCHEMA, validate=True)
    assert sorted(collect(jobs.table.select("person"), step="rows")["person"].to_pylist()) == [
        "001",
        "002",
        "003",
        "004",
    ]


def test_a_first_row_is_never_shown_for_names(tmp_path: Path) -> None:
    """A file without a line of names: its first row is confidential, in a table of jobs and in a model's rows."""
    path = tmp_path / "rows.csv"
    path.write_text("45.5,Zürich,Acme\n50.25,Bern,Acme\n" * 30)
    ask: dict[str, Any] = {"public": ["g", "t"], "bounds": (0, 100), "epsilon": 1, "seed": 1}
    doors: list[Callable[[], object]] = [
        lambda: read_jobs(path, schema=SCHEMA),
        lambda: release_mixed("y ~ (1 | g)", path, **ask),
        lambda: release_mixed("y ~ lag(y, 1) + (1 | g)", path, series=["g"], time="t", **ask),
        lambda: release_mixed("y ~ log_size(g) + (1 | g)", path, **ask),
        lambda: mixed("y ~ x + (1 | g)", path),
        lambda: look(path, response="y", public=["g"], bounds=(0, 1)),
        lambda: refuse_values_for_names(open_frame(path)),
    ]
    for door in doors:
        with pytest.raises(DataError) as refused:
            door()
        assert not any(cell in str(refused.value) for cell in ("45.5", "Zürich", "Acme"))
    path.write_text("wage,g\n45.5,Bern\n" * 2)
    with pytest.raises(DataError) as refused:
        release_mixed("y ~ (1 | g)", path, **ask)
    assert "wage" in str(refused.value), "names that are names are a help"


@pytest.mark.parametrize(
    ("spelled", "kind"),
    [
        (["2019-11-05", "2019-11-22"], "date32[day]"),
        (["2019/11/05", "2019/11/22"], "timestamp[us]"),
        (["2019-11-05T13:00:00", "2019-11-22T14:00:00"], "timestamp[us]"),
        (["05-11-2019 00:00:00", "06-11-2019 00:00:00"], "string"),
        (["11/05/2019 01:00:00 PM", "11/22/2019 02:00:00 PM"], "string"),
        (["05-11-19 00:00:00", "22-11-19 00:00:00"], "string"),
        (["05-11-19", "22-11-19"], "string"),
        (["05/11/19", "22/11/19"], "string"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else each,
)
def test_only_a_year_of_four_digits_in_front_makes_a_date(spelled: list[str], kind: str, tmp_path: Path) -> None:
    """Red before: 05-11-19 with a time was a day of 2005, and without one a day of the year 5."""
    (tmp_path / "days.csv").write_text("when,y\n" + "".join(f"{one},{i}\n" for i, one in enumerate(spelled)))
    found = collect(open_frame(str(tmp_path / "days.csv")), step="rows")["when"]
    assert str(found.type) == kind
    if kind == "string":
        assert found.to_pylist() == spelled
