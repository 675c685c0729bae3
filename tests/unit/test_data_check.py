"""The owner's look at a table finds what a release refuses, in the rows where it is, and no value leaves it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from discreet.cli.data import data as command
from discreet.data.histories import read_histories
from discreet.data.jobs import read_jobs
from discreet.data.schema import Schema
from discreet.data_check import check_data
from discreet.words.errors import DataError
from faults_of import about

SCHEMA = Schema(["place"], {"sex": ["f", "m"]}, establishment="firm", worker="person")
SOUND: dict[str, list[Any]] = {
    "firm": ["F1", "F1", "F2", "F2", "F3"],
    "person": ["Ann", "Bob", "Cyd", "Dee", "Eve"],
    "place": ["north", "north", "south", "south", "south"],
    "sex": ["f", "m", "f", "m", "f"],
}
PLACES = {"firm": ["F1", "F2", "F3"], "place": ["north", "south", "south"]}


def changed(column: str, row: int, value: Any, table: dict[str, list[Any]] = SOUND) -> dict[str, list[Any]]:
    return table | {column: [value if i == row else old for i, old in enumerate(table[column])]}


def more(**row: Any) -> dict[str, list[Any]]:
    return {name: [*values, row[name]] for name, values in SOUND.items()}


COUNTED = {"firm": ["F1", "F2", "F2", "F2"], "place": ["n", "s", "s", "s"], "n": [3, -1, 4, 4]}

CASES: dict[str, tuple[dict[str, Any], list[tuple[int, ...]]]] = {
    "nothing": ({"source": SOUND}, []),
    "a missing value": ({"source": changed("sex", 1, None)}, [(2,)]),
    "an unknown category": ({"source": changed("sex", 3, "x")}, [(4,)]),
    "a changed place": ({"source": changed("place", 2, "north")}, [(3, 4)]),
    "two jobs": ({"source": more(firm="F3", person="Ann", place="south", sex="f")}, [(1, 6)]),
    "more jobs than allowed": (
        {"source": more(firm="F3", person="Ann", place="south", sex="f"), "allow_multiple": 1},
        [(1, 6)],
    ),
    "one person of two kinds": (
        {"source": more(firm="F3", person="Ann", place="south", sex="m"), "allow_multiple": True},
        [(1, 6)],
    ),
    "no such firm": ({"source": changed("firm", 4, "F9"), "workplaces": PLACES}, [(5,)]),
    "a firm listed twice": (
        {"source": SOUND, "workplaces": {"firm": ["F1", "F2", "F3", "F3"], "place": list("nsss")}},
        [(3, 4)],
    ),
    "a place unlike the list": ({"source": changed("place", 4, "north"), "workplaces": PLACES}, [(5,)]),
    "counted rows": ({"source": COUNTED, "schema": Schema(["place"], {}, "firm", size="n")}, [(3, 4), (2,)]),
    "several at once": ({"source": changed("sex", 0, "x") | {"place": [None, *SOUND["place"][1:]]}}, [(1,), (1,)]),
    "no such column": ({"source": {"firm": ["F1"], "person": ["Ann"]}}, [(), ()]),
    "no rows": ({"source": {name: pa.array([], pa.string()) for name in SOUND}}, [()]),
}


@pytest.mark.parametrize("case", CASES)
def test_it_finds_what_a_release_refuses_and_where(case: str) -> None:
    """The same faults in the same words, each with its rows: nothing more, nothing less."""
    asked, rows = CASES[case]
    asked = {"schema": SCHEMA} | asked
    refused: list[str] = []
    try:
        read_jobs(**asked)
    except DataError as error:
        refused = [str(fault.asked) for fault in error.faults]
    found = check_data(**asked)
    at_fault = [one for one in found.findings if one.refused]
    told = [str(one.fault.asked).replace(" of data ", " of jobs ").replace("data has", "jobs has") for one in at_fault]
    assert sorted(told) == sorted(refused)
    assert [one.rows for one in at_fault] == rows
    assert found.refused is bool(refused)
    said = json.dumps(found.to_dict())
    assert not any(name in said for name in ("Ann", "Eve", "F9", "north"))


QUARTERS = ("2024Q1", "2024Q2", "2024Q3")
HELD: dict[str, list[Any]] = {
    "firm": ["F1", "F1", "F2", "F2", "F1"],
    "person": ["Ann", "Ann", "Cyd", "Cyd", "Bob"],
    "place": ["north", "north", "south", "south", "north"],
    "sex": ["f", "f", "f", "f", "m"],
    "quarter": ["2024Q1", "2024Q2", "2024Q1", "2024Q2", "2024Q2"],
}
OF_QUARTERS: dict[str, tuple[dict[str, Any], list[tuple[int, ...]]]] = {
    "nothing": ({"source": HELD}, []),
    "no quarter": ({"source": changed("quarter", 1, None, HELD)}, [(2,)]),
    "an unknown quarter": ({"source": changed("quarter", 1, "2024Q4", HELD)}, [(2,)]),
    "a firm that moved between quarters": ({"source": changed("place", 3, "north", HELD)}, [(3, 4)]),
    "two jobs in two quarters": (
        {"source": {name: [*HELD[name], *more] for name, more in {
            "firm": ["F2", "F2"], "person": ["Ann", "Ann"], "place": ["south", "south"], "sex": ["f", "f"],
            "quarter": ["2024Q1", "2024Q2"]}.items()}},
        [(1, 2, 6, 7)],
    ),
    "no such firm": ({"source": changed("firm", 4, "F9", HELD), "workplaces": PLACES}, [(5,)]),
    "a firm listed twice": (
        {"source": HELD, "workplaces": {"firm": ["F1", "F2", "F3", "F3"], "place": list("nsss")}}, [(3, 4)],
    ),
    "another kind of worker": ({"source": changed("sex", 2, "x", HELD)}, [(3,)]),
    "quarters out of order": ({"source": HELD, "quarters": ("2024Q2", "2024Q1")}, [()]),
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        case if number % 2 else pytest.param(case, marks=pytest.mark.full_size)
        for number, case in enumerate(OF_QUARTERS, start=1)
    ],
)
def test_it_finds_what_flows_refuse_and_where(case: str) -> None:
    asked, rows = OF_QUARTERS[case]
    asked = {"schema": SCHEMA, "quarters": QUARTERS} | asked
    refused: set[str] = set()
    try:
        read_histories(**asked)
    except DataError as error:
        refused = {str(fault.asked) for fault in error.faults}
    found = check_data(**asked)
    told = {str(one.fault.asked).replace("of data ", "of jobs ") for one in found.findings if one.refused}
    assert told >= refused and bool(told) == bool(refused)  # a release stops at the first quarter with a fault
    assert [one.rows for one in found.findings if one.refused] == rows
    assert all(one.count == len(one.rows) for one in found.findings if one.rows)
    empty = [one for one in found.findings if "No row is of quarter '2024Q3'" in str(one.fault.asked)]
    assert len(empty) == (case not in ("no quarter", "an unknown quarter", "quarters out of order")
                          and "moved" not in case)  # fmt: skip


def test_what_changes_from_quarter_to_quarter_is_no_period_of_histories() -> None:
    """Their time tells the rows of one job apart; without it the same column is asked about."""
    rows = {"workplace": [1, 1], "worker": [7, 7], "quarter": ["2024Q1", "2024Q2"], "pay": [10, 12]}
    schema = Schema([], {}, unused=["pay"])
    found = check_data(rows, schema=schema, quarters=["2024Q1", "2024Q2"])
    assert "pay" not in {one.fault.about for one in found.findings}
    asked = check_data(rows, schema=Schema([], {}, unused=["pay", "quarter"]), allow_multiple=True)
    assert "pay" in {one.fault.about for one in asked.findings}


def test_the_command_checks_histories(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("firm,person,when\nF1,Ann,1\nF1,Ann,2\nF1,Bob,9\n")
    names = ["--establishment", "firm", "--worker", "person", "--time", "when", "--quarters"]
    told = CliRunner().invoke(command, ["check", str(path), *names, "1, 2,3", "--json"])
    assert told.exit_code == 1, told.output
    wrong = [one for one in json.loads(told.stdout)["findings"] if one["refused"]]
    assert [one["rows"] for one in wrong] == [[4]]
    assert CliRunner().invoke(command, ["check", str(path), *names, "1,2,9"]).exit_code == 0
    with pytest.raises(DataError, check=about("schema")):
        check_data(HELD, quarters=QUARTERS)
    with pytest.raises(DataError, check=about("workers")):
        check_data(HELD, quarters=QUARTERS, schema=SCHEMA, workers={"person": ["Ann"]})


def test_rows_of_a_csv_file_are_those_of_a_spreadsheet(tmp_path: Path) -> None:
    path, rows = tmp_path / "jobs.csv", tmp_path / "faults.csv"
    path.write_text("firm,person,place,sex\nF1,Ann,06001,f\nF1,Bob,06001,?\nF2,Cyd,6001,f\n")
    names = ["--establishment", "firm", "--worker", "person", "--workplace-attribute", "place"]
    told = CliRunner().invoke(
        command, ["check", str(path), *names, "--worker-attribute", "sex=f,m", "--faults", str(rows)]
    )
    assert told.exit_code == 1, told.output
    assert told.stdout.startswith("For the owner of the data alone, and no part of any release.")
    listed = list(csv.DictReader(rows.open()))
    assert [(line["row"], line["refused"], line["finding"].split("'")[1]) for line in listed] == [
        ("3", "yes", "sex"), ("3", "no", "sex"), ("4", "no", "place"),
    ]  # fmt: skip
    assert rows.stat().st_mode & 0o777 == 0o600
    for value in ("Ann", "06001", "F2"):
        assert value not in told.stdout + rows.read_text()
    path.write_text(path.read_text().replace("?", "m").replace(",6001", ",06001"))
    again = CliRunner().invoke(command, ["check", str(path), *names, "--worker-attribute", "sex=f,m", "--json"])
    assert (again.exit_code, json.loads(again.stdout)["findings"]) == (0, [])


def test_the_list_of_rows_replaces_nothing_and_stays_away_from_releases(tmp_path: Path) -> None:
    found = check_data({"x": ["a", "A"]})
    (tmp_path / "mine.csv").write_text("my own\n")
    out = tmp_path / "out"
    (out / "jobs").mkdir(parents=True)
    (out / "jobs" / "release.json").write_text("{}")
    for path in (tmp_path / "mine.csv", out / "faults.csv", out / "jobs" / "faults.csv", out / "jobs" / "a" / "f.csv"):
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(DataError) as refused:
            found.write(path)
        assert refused.value.about == "faults"
        assert sorted(tmp_path.rglob("*")) == before
    assert found.write(tmp_path / "faults.csv") == found.write(tmp_path / "faults.csv")
    assert (tmp_path / "mine.csv").read_text() == "my own\n"


@pytest.mark.parametrize(
    ("column", "values", "rows"),
    [
        ("x", ["a", None, "b"], (2,)),
        ("x", ["a", "N/A", "b"], (2,)),
        ("x", ["East", "west", "east"], (1, 3)),
        ("x", ["1,5", "2,25", "7"], (1, 2)),
        ("x", ["1'000", "12 345", "7"], (1, 2)),
        ("x", ["07001", "7001", "10001", "a"], (2,)),
        ("x", ["a", "x", "b"], (2,)),
    ],
)
def test_what_is_odd_is_told_without_a_schema(column: str, values: list[Any], rows: tuple[int, ...]) -> None:
    found = check_data({column: values})
    assert not found.refused
    assert [(one.fault.about, one.rows) for one in found.findings] == [(column, rows)]


def test_rows_that_are_there_twice_are_odd() -> None:
    (one,) = check_data({"a": ["p", "q", "p"], "b": [1, 2, 1]}).findings
    assert one.rows == (1, 3)


def test_a_public_column_that_holds_the_response_is_told() -> None:
    rows = {"y": [float(i % 13) / 13 for i in range(40)], "g": ["a", "b"] * 20}
    asked: dict[str, Any] = {"response": "y", "public": ["g", "again"], "bounds": (0, 1)}
    found = check_data(rows | {"again": [2 * y for y in rows["y"]]}, **asked)
    assert any(one.fault.about == "response" and "'again'" in one.said() for one in found.findings)
    assert "0.5" not in json.dumps(found.to_dict())


PLACED = {
    "titles and blank lines": ("Jobs of 2026\nfrom the register\n\n{names}\n\n{one}\n\n\n{two}\n", [9]),
    "a line break in quotes": ('{names}\nF0,"Al\n\nan",06001,f\n{one}\n{two}\n', [6]),
    "a separator line": ("sep=,\n{names}\n{one}\n{two}\n", [4]),
    "Windows": ("{names}\r\n{one}\r\n\r\n{two}\r\n", [4]),
}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("case", PLACED)
def test_a_row_is_told_by_the_line_where_an_editor_shows_it(tmp_path: Path, case: str, encoding: str) -> None:
    text, expected = PLACED[case]
    path, bad = tmp_path / "jobs.csv", "F2,Cyd,06037,?"
    path.write_bytes(text.format(names="firm,person,place,sex", one="F1,Ann,06001,f", two=bad).encode(encoding))
    lines = path.read_bytes().decode(encoding).splitlines()
    found = check_data(path, schema=SCHEMA)
    (one,) = [each for each in found.findings if each.refused]
    assert [lines[row - 1] for row in one.rows] == [bad]
    assert list(one.rows) == expected


def test_rows_of_several_files_are_told_by_file(tmp_path: Path) -> None:
    for name, kind in (("a", "f"), ("b", "?")):
        (tmp_path / f"{name}.csv").write_text(f"firm,person,place,sex\n\nF{name},P{name},06001,{kind}\n")
    found = check_data(str(tmp_path / "*.csv"), schema=SCHEMA)
    assert [(one.table, one.rows) for one in found.findings if one.refused] == [("b.csv", (3,))]


def test_a_line_that_cannot_be_read_has_its_number_in_the_list(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("firm,person,place,sex\nF1,Ann,06001,f\nF1,Bob,06001,f,1\n")
    (one,) = check_data(tmp_path / "jobs.csv", schema=SCHEMA).findings
    assert (one.count, one.rows) == (None, (3,))


def test_rows_of_a_response_are_told(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("\ny,g\n0.5,a\n\n7,b\nsick,a\n0.25,b\n")
    found = check_data(tmp_path / "rows.csv", response="y", public=["g"], bounds=(0, 1))
    assert [one.rows for one in found.findings if one.fault.about == "response"] == [(5,), (6,)]


def test_a_size_that_is_too_large_has_its_row_and_a_sum_has_none() -> None:
    schema = Schema([], {}, "firm", size="n")
    for sizes, rows in (([1, 2**53], (2,)), ([2**52, 2**52], ())):
        (one,) = check_data({"firm": ["a", "b"], "n": sizes}, schema=schema).findings
        assert (one.refused, one.rows) == (True, rows)


def test_rows_that_are_cut_at_the_cap_are_told_to_the_owner() -> None:
    """A release may not say how many there are: it is part of the data."""
    schema = Schema([], {}, "firm", "person", magnitudes={"pay": {"cap": 10, "beyond": "clip"}})
    table = {"firm": ["a", "a", "b"], "person": [1, 2, 3], "pay": [10.4, 3.0, 9e5]}
    (one,) = check_data(table, schema=schema).findings
    assert (one.refused, one.count, one.rows, one.fault.about) == (False, 2, (1, 3), "magnitudes.pay")
    assert "cut" in one.said()
    assert not check_data(table | {"pay": [9.4, 3.0, 9.0]}, schema=schema).findings
