"""A first plan for one's own table can be priced and run, says what was declared, and holds nothing else of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.plan import plan as command
from discreet.data.schema import Schema
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.plan.starter import LISTED, Wish, write_plan
from discreet.words.errors import DiscreetError

JOBS = "Firm;Person;Place;Sex;Wage\n" + "".join(
    f"FIRM{i // 4};PERSON{i};0600{i // 4 % 3};{'female' if i % 3 else 'male'};{70_000 + i}\n" for i in range(40)
)
OPTIONS = ["--establishment", "Firm", "--worker", "Person", "--workplace-attribute", "Place", "--unused", "*"]
DOMAIN = ["--worker-attribute", "Sex=female,male,unknown"]
SECRET = ("FIRM1", "PERSON", "7000", "Wage")


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "our jobs.csv"
    path.write_text(JOBS)
    return path


def call(*arguments: object, answers: str = "") -> tuple[int, str, BaseException | None]:
    done = CliRunner().invoke(command, ["new", *map(str, arguments)], input=answers)
    return done.exit_code, done.output, done.exception


def test_options_and_answers_write_the_same_plan_and_it_runs(jobs: Path) -> None:
    code, out, _ = call(jobs, *OPTIONS, *DOMAIN, "--out", "plan.toml")
    assert code == 0, out
    assert "Next: discreet check plan.toml" in out
    answers = "e\nw\np\nx\na\nfemale, male, unknown\n\ny\n1\n"  # one that is none of the answers is asked again
    code, out, _ = call(jobs, "--out", "asked.toml", answers=answers)
    assert code == 0, out
    text = Path("plan.toml").read_text()
    assert Path("asked.toml").read_text() == text.replace("plan.toml", "asked.toml")
    assert not any(value in text for value in SECRET)
    assert '"06000"' in text, "values of a column that was declared public are offered for labels"
    found = check(read_plan("plan.toml"))
    assert not found.faults and not found.missing
    labelled = "".join(line.removeprefix("# ") if "0600" in line or "labels" in line else line for line in
                       text.splitlines(keepends=True))  # fmt: skip
    Path("labelled.toml").write_text(labelled)
    assert read_plan("labelled.toml").plan.only.data.labels["Place"] == {f"0600{i}": f"0600{i}" for i in range(3)}
    assert list(run(read_plan("plan.toml")).publications) == ["jobs"]


def test_what_was_said_is_in_the_plan(jobs: Path) -> None:
    Path("places.csv").write_text("Firm,Place\n" + "".join(f"FIRM{i},0600{i % 3}\n" for i in range(12)))
    more = ["--workplaces", "places.csv", "--most-jobs", 3, "--epsilon", "1/3", "--alpha", "0.2"]
    where = ["--ledger", "book.db", "--dataset", "jobs 2026"]
    code, out, _ = call(jobs, *OPTIONS, *DOMAIN, *more, *where)
    assert code == 0, out
    plan = read_plan("plan.toml").plan
    assert (plan.only.data.allow_multiple, plan.only.data.workplaces, plan.only.budget.dataset) == (
        3,
        "places.csv",
        "jobs 2026",
    )
    assert (str(plan.only.budget.epsilon), str(plan.release[0].epsilon), plan.only.unit.unit().key) == (
        "1/3", "1/6", "establishments(alpha=1/5,strong)",
    )  # fmt: skip


def test_a_model(jobs: Path) -> None:
    Path("flows.csv").write_text("y,county\n" + "".join(f"0.{i % 7}5,C{i % 4}\n" for i in range(60)))
    code, out, _ = call("flows.csv", "--response", "y", "--public", "county", "--bounds", "-1", "2.5")
    assert code == 0, out
    found = check(read_plan("plan.toml"))
    assert not found.faults
    assert found.file.plan.only.unit.unit().key == "rows(-1,5/2,y)"
    assert "C1" not in Path("plan.toml").read_text()


def test_wrong_requests_write_nothing(jobs: Path) -> None:
    Path("mine.toml").write_text("mine")
    bare = jobs.parent / "bare.csv"
    bare.write_text(JOBS.partition("\n")[2])
    row = bare.read_text().splitlines()[0].split(";")
    taken = ["--establishment", row[0], "--worker", row[1], "--workplace-attribute", row[2]]
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for asked in (
        [jobs, *OPTIONS, "--out", "mine.toml"],
        [jobs, *OPTIONS, "--out", "nowhere/plan.toml"],
        [jobs, "--establishment", "Firma", "--worker", "Person"],
        [jobs, *OPTIONS, "--worker-attribute", "Sex"],
        [jobs, *OPTIONS, "--worker-attribute", "Sex=female,,male"],
        [jobs, *OPTIONS, "--most-jobs", "0"],
        [jobs, *OPTIONS, "--epsilon", "none"],
        [jobs, *OPTIONS, "--response", "Wage"],
        [jobs, "--response", "Wage"],
        [jobs, *OPTIONS, "--schema", "schema.toml"],
        [bare, *taken],
        ["no such.csv", *OPTIONS],
        [jobs],  # and no answers
    ):
        code, out, error = call(*asked)
        assert code, asked
        assert isinstance(error, DiscreetError | SystemExit), error
        assert not any(value in f"{out}{error}" for value in SECRET[1:3]), asked
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


ODD = ['a "b"', "ä:b", "x # y", "[t]", "a = b", "it's", "back\\slash", "日本", "{curly}", "''", "0", "true"]


@pytest.mark.parametrize("start", range(0, len(ODD), 4))
def test_any_names_are_written_as_they_are(tmp_path: Path, start: int) -> None:
    firm, person, place, sex = ODD[start : start + 4]
    rows = {firm: ["f"], person: ["p"], place: [f"{sex}\n# [x]"], sex: [firm]}
    pq.write_table(pa.table(rows), tmp_path / "odd.parquet")
    schema = Schema([place], {sex: [*ODD]}, firm, person)
    plan = write_plan(tmp_path / "odd.toml", Wish(source=str(tmp_path / "odd.parquet"), schema=schema, dataset="odd"))
    assert read_plan(plan).sources[0].schema() == schema


def test_a_public_column_of_many_values_is_not_listed(jobs: Path) -> None:
    jobs.write_text("Firm,Person,Place\n" + "".join(f"F{i},P{i},PLACE{i}\n" for i in range(LISTED + 1)))
    assert call(jobs, *OPTIONS)[0] == 0
    assert "PLACE" not in Path("plan.toml").read_text()
