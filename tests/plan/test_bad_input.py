"""Bad input of a statistical programme, by plan and by Python: each refused clearly, and nothing spent."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.ledger import Ledger, Policy
from discreet.plan.owner import owner_notes
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.words.errors import DataError, DiscreetError, PlanError, PrivacyError

Rows = dict[str, list[Any]]
UNIT = dc.Establishments("0.1")
CAP = 1000


def good() -> Rows:
    """Three establishments of two states, in three quarters."""
    one = [(worker, worker % 3, worker % 3, "s0" if worker % 3 < 2 else "s1") for worker in range(12)]
    rows = [(*each, quarter) for quarter in ("2024Q1", "2024Q2", "2024Q3") for each in one]
    return {
        "worker": [row[0] for row in rows],
        "workplace": [row[1] for row in rows],
        "county": [f"c{row[2]}" for row in rows],
        "state": [row[3] for row in rows],
        "quarter": [row[4] for row in rows],
        "pay": [100 + row[0] for row in rows],
    }


def changed(column: str, row: int, value: Any) -> Callable[[Rows], Rows]:
    return lambda rows: rows | {column: [*rows[column][:row], value, *rows[column][row + 1 :]]}


def everywhere(column: str, value: Any, other: Any) -> Callable[[Rows], Rows]:
    return lambda rows: rows | {column: [other if each == value else each for each in rows[column]]}


def without(quarter: str) -> Callable[[Rows], Rows]:
    def cut(rows: Rows) -> Rows:
        kept = [i for i, name in enumerate(rows["quarter"]) if name != quarter]
        return {name: [values[i] for i in kept] for name, values in rows.items()}

    return cut


def twice_in_a_quarter(rows: Rows) -> Rows:
    """The first worker of the first quarter also works in the other state."""
    more = {"worker": 0, "workplace": 2, "county": "c2", "state": "s1", "quarter": "2024Q1", "pay": 5}
    return {name: [*values, more[name]] for name, values in rows.items()}


# what is wrong -> what it does to the rows, hierarchies, how rows above the cap are met, what the fault is about
PLACE = {"place": ["county", "state"]}
CASES: dict[str, tuple[Callable[[Rows], Rows], dict[str, Any], str, str]] = {
    "a circle in one hierarchy": (dict, {"place": ["county", "state", "county"]}, "refuse", "hierarchy.place"),
    "a circle of two hierarchies": (dict, PLACE | {"back": ["state", "county"]}, "refuse", "hierarchy"),
    "a county of two states": (changed("state", 0, "s1"), PLACE, "refuse", "source"),
    "a county without a state": (changed("state", 0, None), PLACE, "refuse", "source"),
    "a county that the lookup lacks": (
        dict, {"place": {"levels": ["county", "region"], "lookup": "ragged.csv"}}, "refuse", "hierarchy.place",
    ),
    "a region of two nations": (
        dict, {"place": {"levels": ["county", "region", "nation"], "lookup": "torn.csv"}}, "refuse", "hierarchy.place",
    ),
    "a level that is nowhere": (dict, {"place": ["county", "nation"]}, "refuse", "hierarchy.place"),
    "two hierarchies of one column": (
        dict, PLACE | {"zones": {"levels": ["county", "region"], "lookup": "torn.csv"}}, "refuse", "hierarchy",
    ),
    "a level that is a column and looked up": (
        dict, {"place": {"levels": ["county", "state"], "lookup": "whole.csv"}}, "refuse", "hierarchy.place",
    ),
    "a lookup that is not there": (
        dict, {"place": {"levels": ["county", "region"], "lookup": "nowhere.csv"}}, "refuse", "hierarchy.place",
    ),
    "a lookup without rows": (
        dict, {"place": {"levels": ["county", "region"], "lookup": "empty.csv"}}, "refuse", "hierarchy.place",
    ),
    "a code twice in the lookup, with two parents": (
        dict, {"place": {"levels": ["county", "region"], "lookup": "twice.csv"}}, "refuse", "hierarchy.place",
    ),
    "a code with blanks": (everywhere("county", "c0", "c0 "), PLACE, "refuse", "hierarchy.place"),
    "a parent with blanks": (everywhere("state", "s0", " s0"), PLACE, "refuse", "hierarchy.place"),
    "a parent of blanks alone": (everywhere("state", "s0", "  "), PLACE, "refuse", "hierarchy.place"),
    "an empty parent": (everywhere("state", "s0", ""), PLACE, "refuse", "hierarchy.place"),
    "a code in two Unicode forms": (
        lambda rows: everywhere("county", "c1", "e\u0301")(everywhere("county", "c0", "\xe9")(rows)), PLACE, "refuse",
        "hierarchy.place",
    ),
    "levels from the coarsest": (dict, {"place": ["state", "county"]}, "refuse", "hierarchy.place"),
    "one level": (dict, {"place": ["county"]}, "refuse", "hierarchy.place"),
    "codes shorter than the prefix": (
        dict, {"place": {"levels": ["county", "region"], "prefix": [5, 2]}}, "refuse", "hierarchy.place",
    ),
    "pay that is no number": (lambda rows: changed("pay", 3, float("nan"))(rows | {"pay": [*map(float, rows["pay"])]}),
                              PLACE, "clip", "source"),
    "pay beyond what doubles count": (changed("pay", 3, 2**53 + 1), PLACE, "refuse", "source"),
    "negative pay": (changed("pay", 3, -1), PLACE, "refuse", "source"),
    "pay a little below zero": (lambda rows: changed("pay", 3, -0.4)(rows | {"pay": [*map(float, rows["pay"])]}),
                                PLACE, "clip", "source"),
    "pay a little above the cap": (lambda rows: changed("pay", 3, CAP + 0.4)(rows | {"pay": [1.5] * len(rows["pay"])}),
                                   PLACE, "refuse", "source"),
    "missing pay": (changed("pay", 3, None), PLACE, "refuse", "source"),
    "infinite pay": (lambda rows: changed("pay", 3, float("inf"))(rows | {"pay": [*map(float, rows["pay"])]}),
                     PLACE, "refuse", "source"),
    "pay above the cap": (changed("pay", 3, CAP + 1), PLACE, "refuse", "source"),
}  # fmt: skip
HISTORIES = {
    "a quarter that is not declared": (changed("quarter", 0, "2025Q3"), "source"),
    "a row without a quarter": (changed("quarter", 0, None), "source"),
    "a worker in two states of one quarter": (twice_in_a_quarter, "source"),
}


def one_quarter(rows: Rows) -> Rows:
    return without("2024Q2")(without("2024Q3")(rows))


def schema(hierarchy: dict[str, Any], beyond: str) -> dict[str, Any]:
    return {
        "workplace_attributes": ["county", "state"],
        "worker_attributes": {},
        "magnitudes": {"pay": {"cap": CAP, "beyond": beyond}},
        "hierarchy": hierarchy,
        "unused": ["*"],
    }


def files(folder: Path, rows: Rows) -> None:
    pq.write_table(pa.table(rows), folder / "jobs.parquet")
    (folder / "empty.csv").write_text("")
    (folder / "twice.csv").write_text("county,region\nc0,west\nc0,east\nc1,west\nc2,west\n")
    (folder / "whole.csv").write_text("county,state\nc0,s0\nc1,s0\nc2,s1\n")
    (folder / "ragged.csv").write_text("county,region\nc0,west\nc1,west\n")
    (folder / "torn.csv").write_text("county,region,nation\nc0,west,a\nc1,west,b\nc2,east,b\n")


def plan(folder: Path, hierarchy: dict[str, Any], beyond: str, *, histories: bool = False) -> Path:
    levels = "\n".join(
        f"{name} = {json.dumps(value)}" if isinstance(value, list) else f"[hierarchy.{name}]\n"
        + "\n".join(f"{key} = {json.dumps(each)}" for key, each in value.items())
        for name, value in hierarchy.items()
    )  # fmt: skip
    quarters = 'quarters = ["2024Q1", "2024Q2", "2024Q3"]' if histories else ""
    asked = (
        'kind = "flows"\nquarter = "2024Q2"\nby = ["county"]'
        if histories
        else 'kind = "sum"\nof = "pay"\nby = ["county"]'
    )
    pay = "" if histories else f'[data.schema.magnitudes]\npay = {{ cap = {CAP}, beyond = "{beyond}" }}'
    text = f"""
[data]
source = "jobs.parquet"
{quarters}
[data.schema]
workplace_attributes = ["county", "state"]
worker_attributes = {{}}
unused = ["*"]
{pay}
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "jobs"
[[release]]
name = "first"
epsilon = 1
{asked}
[output]
folder = "out"
bundle = false
[hierarchy]
{levels}
"""
    (folder / "plan.toml").write_text(text)
    return folder / "plan.toml"


def by_plan(path: Path, contents: Callable[[Path], dict[str, bytes]]) -> DiscreetError:
    before = contents(path.parent)
    with pytest.raises(PlanError) as error:
        run(path)
    assert contents(path.parent) == before
    return error.value


@pytest.mark.parametrize("case", CASES)
def test_tables(case: str, tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    wrong, hierarchy, beyond, about = CASES[case]
    rows = one_quarter(good())
    files(tmp_path, wrong(rows))
    found = by_plan(plan(tmp_path, hierarchy, beyond), contents)
    key = about.split(".") if about.startswith("hierarchy") else ["data", about]
    assert [fault.place[: len(key)] for fault in found.faults] == [tuple(key)] * len(found.faults), found
    given = {
        name: value | {"lookup": str(tmp_path / value["lookup"])} if "lookup" in value else value
        for name, value in hierarchy.items()
    }
    with pytest.raises(DataError) as error:
        dc.read_jobs(tmp_path / "jobs.parquet", schema=dc.Schema.of(schema(given, beyond)))
    asked = (
        "magnitudes"
        if case in ("pay above the cap", "pay a little above the cap", "pay beyond what doubles count")
        else about.partition(".")[0]
    )
    assert (error.value.about or "").partition(".")[0] == asked


def test_what_is_good_is_not_refused(tmp_path: Path) -> None:
    files(tmp_path, one_quarter(good()))
    jobs = dc.read_jobs(tmp_path / "jobs.parquet", schema=dc.Schema.of(schema(PLACE, "refuse")))
    session = dc.Session(jobs, unit=UNIT, budget=4)
    session.sum("pay", "state").release(epsilon=1)
    assert session.remaining == dc.Pure(3)
    assert run(plan(tmp_path, PLACE, "refuse"), dry_run=True).check.releases


def test_pay_above_the_cap_is_cut_where_the_plan_says_so(tmp_path: Path) -> None:
    files(tmp_path, changed("pay", 3, CAP + 1)(one_quarter(good())))
    path = plan(tmp_path, PLACE, "clip")
    assert run(path, dry_run=True).check.releases
    (note,) = owner_notes(read_plan(path))
    assert "cut" in note and "1 of 12 rows" in note, "only the owner learns how many"
    files(tmp_path, one_quarter(good()))
    assert not owner_notes(read_plan(path))


@pytest.mark.parametrize("case", HISTORIES)
def test_histories(case: str, tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    wrong, about = HISTORIES[case]
    files(tmp_path, wrong(good()))
    found = by_plan(plan(tmp_path, PLACE, "refuse", histories=True), contents)
    assert {fault.place for fault in found.faults} <= {("data", about), ("data", "quarters")}, found
    with pytest.raises(DataError) as error:
        dc.read_histories(
            tmp_path / "jobs.parquet",
            quarters=["2024Q1", "2024Q2", "2024Q3"],
            schema=dc.Schema(["county", "state"], unused=["*"]),
        )
    assert error.value.about in (about, "quarters", "time", "quarter")


def test_two_jobs_in_a_quarter_are_told_as_such(tmp_path: Path) -> None:
    """A worker is in every quarter: a fault that says "once" would send the owner after sound rows."""
    files(tmp_path, twice_in_a_quarter(good()))
    with pytest.raises(PlanError) as error:
        run(plan(tmp_path, PLACE, "refuse", histories=True))
    (fault,) = error.value.faults
    assert fault.place == ("data", "source") and "of a quarter of jobs.parquet" in str(fault.asked)


def test_the_verdict_follows_what_the_owner_is_told(tmp_path: Path, command: Any) -> None:
    files(tmp_path, twice_in_a_quarter(good()))
    path = plan(tmp_path, PLACE, "refuse", histories=True)
    assert "The plan can be run." in command("check", path)[1], "it depends on no data"
    code, out, _ = command("check", path, "--owner")
    assert code == 2 and "The plan cannot be run on these data." in out and "can be run" not in out
    code, out, _ = command("check", path, "--owner", "--json")
    assert code == 2 and not json.loads(out)["can_run"]


def test_histories_have_no_amounts(tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    files(tmp_path, good())
    path = plan(tmp_path, PLACE, "refuse", histories=True)
    path.write_text(path.read_text().replace("[unit]", "[data.schema.magnitudes]\npay = { cap = 1000 }\n[unit]"))
    found = by_plan(path, contents)
    assert [fault.place for fault in found.faults] == [("data", "schema")]


def test_histories_have_no_list_of_workers(tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    """It would not be read."""
    files(tmp_path, good())
    path = plan(tmp_path, PLACE, "refuse", histories=True)
    path.write_text(path.read_text().replace("quarters =", 'workers = "jobs.parquet"\nquarters =', 1))
    found = by_plan(path, contents)
    assert [fault.place for fault in found.faults] == [("data", "workers")]


def test_a_quarter_that_is_missing(tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    """In the list of quarters; one that no row is of is released as any other, or its only job would be told."""
    files(tmp_path, without("2024Q2")(good()))
    path = plan(tmp_path, PLACE, "refuse", histories=True)
    text = path.read_text().replace('"2024Q1", "2024Q2", "2024Q3"]', '"2024Q1", "2024Q3", "2024Q4"]')
    path.write_text(text.replace('quarter = "2024Q2"', 'quarter = "2024Q3"'))
    found = by_plan(path, contents)
    assert [fault.place for fault in found.faults] == [("release", 0, "quarter")]
    table = dc.read_histories(
        tmp_path / "jobs.parquet",
        quarters=["2024Q1", "2024Q3", "2024Q4"],
        schema=dc.Schema(["county", "state"], unused=["*"]),
    )
    session = dc.Session(table, unit=UNIT, budget=4)
    with pytest.raises(DataError) as error:
        session.flows("2024Q3", "county").release(epsilon=1)
    assert error.value.about == "quarter" and session.remaining == dc.Pure(4)


@pytest.mark.parametrize("wrong", ["2024Q5", " 2024Q4", "2024Q4 ", "the fourth"])
def test_a_quarter_that_is_none(wrong: str, tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    """Among quarters that say when they are. Before, 2024Q5 was taken as the one after 2024Q3."""
    files(tmp_path, good())
    path = plan(tmp_path, PLACE, "refuse", histories=True)
    text = path.read_text().replace('"2024Q3"]', f'"2024Q3", "{wrong}"]')
    path.write_text(text.replace('quarter = "2024Q2"', 'quarter = "2024Q3"'))
    found = by_plan(path, contents)
    assert [fault.place for fault in found.faults] == [("data", "quarters")], found
    with pytest.raises(DataError) as error:
        dc.read_histories(
            tmp_path / "jobs.parquet",
            quarters=["2024Q1", "2024Q2", "2024Q3", wrong],
            schema=dc.Schema(["county", "state"], unused=["*"]),
        )
    assert error.value.about == "quarters"


def test_an_establishment_without_jobs_in_a_quarter_is_no_fault(tmp_path: Path) -> None:
    """A refusal would tell that its only workers were not there."""

    def gone(rows: Rows) -> Rows:
        kept = [i for i, q in enumerate(rows["quarter"]) if (q, rows["workplace"][i]) != ("2024Q2", 2)]
        return {name: [values[i] for i in kept] for name, values in rows.items()}

    files(tmp_path, gone(good()))
    assert run(plan(tmp_path, PLACE, "refuse", histories=True), dry_run=True).check.releases


def test_more_for_a_quarter_than_in_all(tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    files(tmp_path, one_quarter(good()))
    path = plan(tmp_path, PLACE, "refuse")
    text = path.read_text().replace('source = "jobs.parquet"', 'source = "jobs.parquet"\nperiod = "2024-Q1"')
    path.write_text(text.replace('dataset = "jobs"', 'dataset = "jobs"\nper_quarter = 5'))
    found = by_plan(path, contents)
    assert [fault.place for fault in found.faults] == [("budget", "per_quarter")], found
    with Ledger.open(tmp_path / "book.db") as ledger, pytest.raises(PrivacyError) as error:
        ledger.open_budget(dataset="jobs", unit=UNIT, total=dc.Pure(4), policy=Policy("quarter", Fraction(5)))
    assert error.value.about == "policy"


def test_a_revision_of_a_release_that_never_was(tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    files(tmp_path, one_quarter(good()))
    path = plan(tmp_path, PLACE, "refuse")
    for name in ("never", "first"):
        path.write_text(plan(tmp_path, PLACE, "refuse").read_text().replace('"first"', f'"first"\nreplaces = "{name}"'))
        found = by_plan(path, contents)
        assert [fault.place for fault in found.faults] == [("release", 0, "replaces")], found


def test_two_sources_under_one_name(tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    """In a plan's text, in its budgets, and in a ledger that Python shares."""
    files(tmp_path, one_quarter(good()))
    path = plan(tmp_path, PLACE, "refuse")
    text = path.read_text()
    tables, rest = text.split("[[release]]")[0], text.split("[[release]]")[1]
    levels = rest.partition("[hierarchy]")
    for section in ("data.schema.magnitudes", "data.schema", "data", "unit", "budget"):
        tables = tables.replace(f"[{section}]", f"[source.jobs.{section}]")
    release = "[[release]]" + levels[0].replace('name = "first"', 'name = "first"\nsource = "jobs"')
    path.write_text(tables + tables + release)
    by_plan(path, contents)  # the same table twice is no TOML
    other = tables.replace("source.jobs", "source.more").replace("epsilon = 4", "epsilon = 5")
    second = release.partition("[output]")[0].replace('"first"\nsource = "jobs"', '"second"\nsource = "more"')
    path.write_text(tables + other + second + release)
    found = by_plan(path, contents)
    assert ("source", "more", "budget", "dataset") in [fault.place for fault in found.faults]
    jobs = dc.read_jobs(tmp_path / "jobs.parquet", schema=dc.Schema.of(schema(PLACE, "refuse")))
    dc.Session(jobs, unit=UNIT, budget=4, ledger=tmp_path / "ledger.db", dataset="jobs")
    for wrong in ({"budget": 5, "unit": UNIT}, {"budget": 4, "unit": dc.Workers()}):
        with pytest.raises(PrivacyError) as error:
            dc.Session(jobs, ledger=tmp_path / "ledger.db", dataset="jobs", **wrong)
        assert error.value.about in ("total", "unit")
    with Ledger.open(tmp_path / "ledger.db", read_only=True) as ledger:
        assert [budget.spent for budget in ledger.budgets()] == [dc.Pure(0)]
