"""Columns without a role in plans: every kind of release refuses them before it is paid, a command declares them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.data.frames import open_frame
from discreet.data.histories import read_histories
from discreet.data.jobs import read_jobs
from discreet.data.schema import Schema
from discreet.data.unnamed import like_time
from discreet.data_check import check_data
from discreet.plan.check import check
from discreet.plan.confidential import Confidential
from discreet.plan.owner import OwnerRefusal, owner_notes
from discreet.plan.reading import read_plan
from discreet.plan.requests import requests
from discreet.plan.run import run
from discreet.plan.shape import KINDS
from discreet.plan.source import UNITS
from discreet.plan.starter import Wish, write_plan
from discreet.words.errors import DiscreetError, PlanError
from faults_of import about

TABLES = {
    "count": 'by = ["place"]',
    "counts": 'tables = [["place"], []]',
    "sum": 'of = "pay"\nby = ["place"]',
    "sums": 'of = "pay"\ntables = [["place"], []]',
    "flows": 'quarter = "2024Q2"\nby = ["place"]',
    "changes": 'quarters = ["2024Q1", "2024Q2"]\nby = ["place"]',
}
ROWS = {
    "posterior": 'formula = "y ~ x + z"\nsummary = "probability"\ncoefficient = ["x"]\nat = [1]',
    "model": 'formula = "y ~ z + (1 | g)"',
}
QUARTERS = 'quarters = ["2024Q1", "2024Q2", "2024Q3"]\n'
PEOPLE = 60
ODD: dict[str, Callable[[int], Any]] = {
    "text": lambda i: f"v{i % 3}",
    "dates": lambda i: datetime.date(2023 + i % 2, 1 + i % 12, 1),
    "truths": lambda i: bool(i % 2),
    "missing": lambda i: None,
    "years": lambda i: 2023 + i % 2,
    "years in fractions": lambda i: 2023.0 + i % 2,
    "years in words": lambda i: f"{2023 + i % 2}",
    "quarters": lambda i: f"2024Q{1 + i % 4}",
    "quarters of Sweden": lambda i: f"{2023 + i % 2} kv {1 + i % 4}",
    "quarters of France": lambda i: f"T{1 + i % 4} {2023 + i % 2}",
    "months": lambda i: f"2024-{1 + i % 12:02d}",
    "months as numbers": lambda i: 202401 + i % 12,
    "months in words": lambda i: f"März {2023 + i % 2}",
    "days of Germany": lambda i: f"31.{1 + i % 12:02d}.2024",
    "years of an office": lambda i: f"FY{2023 + i % 2}",
    "quarters of a year without its century": lambda i: f"{1 + i % 4}Q{23 + i % 2}",
    "quarters with a number before": lambda i: f"{1 + i % 4}. Quartal 2024",
    "quarters of China": lambda i: f"2024年第{1 + i % 4}季度",
    "quarters in Roman numbers": lambda i: f"{('I', 'II', 'III', 'IV')[i % 4]}/2024",
    "quarters alone": lambda i: f"kv {1 + i % 4}",
    "months alone": lambda i: ("Jan", "févr.", "März", "maj")[i % 4],
    "months of a spreadsheet": lambda i: ("Jan-24", "Feb-24", "Dec-23")[i % 3],
    "days in words": lambda i: f"{1 + i % 28} January 2024",
    "moments": lambda i: datetime.datetime(2024, 1 + i % 12, 1, 12),
}
TIMES = [name for name in ODD if name not in ("text", "truths", "missing")]
NAMES = ("z", "År", "kvartal 2", "年")


def jobs_with(odd: str, name: str = "z", *, twice: bool = False) -> pd.DataFrame:
    """Jobs with a spare column; `twice`, everyone is there in two rows that differ in it alone."""
    people = np.repeat(np.arange(PEOPLE), 1 + twice)
    firm = people % 12
    return pd.DataFrame(
        {
            "firm": [f"f{i}" for i in firm],
            "person": people,
            "place": [f"p{i % 3}" for i in firm],
            "sex": [("f", "m")[i % 2] for i in people],
            "pay": 1_000 + people,
            name: [ODD[odd](i) for i in range(len(people))],
        }
    )


def rows_with(odd: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=PEOPLE)
    z = [ODD[odd](i) for i in range(PEOPLE)]
    return pd.DataFrame({"y": x, "x": x, "z": z, "g": [f"g{i % 4}" for i in range(PEOPLE)]})


def write(rows: pd.DataFrame, path: Path, encoding: str = "utf-8") -> Path:
    if path.suffix == ".csv":
        rows.to_csv(path, index=False, sep=";", encoding=encoding)
    else:
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), path)
    return path


def plan_of(kind: str, data: Path, more: str = "", schema: str = "") -> Path:
    if kind in ROWS:
        body = f'public = ["g"]\n{more}[unit]\nkind = "rows"\nresponse = "y"\nlower = -3\nupper = 3\n'
    else:
        timed = "time = 'quarter'\n" + QUARTERS if kind in ("flows", "changes") else ""
        pay = "" if timed else "magnitudes = { pay = { cap = 5000 } }\n"
        body = (
            f'{timed}{more}[data.schema]\nestablishment = "firm"\nworker = "person"\nworkplace_attributes = ["place"]\n'
            f'worker_attributes = {{ sex = ["f", "m"] }}\n{pay}{schema}[unit]\nkind = "establishments"\nalpha = 0.1\n'
        )
    path = data.parent / "plan.toml"
    path.write_text(
        f'[data]\nsource = "{data.name}"\n{body}[budget]\nepsilon = 4\nledger = "ledger.db"\ndataset = "d"\n'
        f'[[release]]\nname = "r"\nkind = "{kind}"\nepsilon = 2\n{ {**TABLES, **ROWS}[kind] }\n'
        '[output]\nfolder = "out"\n',
        encoding="utf-8",
    )
    return path


def data_of(kind: str, odd: str, name: str = "z") -> pd.DataFrame:
    if kind in ROWS:
        return rows_with(odd)
    jobs = jobs_with(odd, name)
    if kind not in ("flows", "changes"):
        return jobs
    quarters = [jobs.drop(columns="pay").assign(quarter=f"2024Q{quarter}") for quarter in (1, 2, 3)]
    return pd.concat(quarters, ignore_index=True)


def test_every_kind_of_release_is_tried_here() -> None:
    assert {*TABLES, *ROWS} == KINDS.keys() - UNITS.keys() - {"here"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("kind", [*TABLES, *ROWS])
def test_what_has_no_role_is_refused_before_anything_is_paid(kind: str, ending: str, tmp_path: Path) -> None:
    said = set()
    for odd in ("text", "dates", "truths", "missing", "years")[:: 1 if kind in ROWS else 2]:
        if kind == "posterior" and ending == "parquet" and odd == "years":
            continue  # its type says that it holds numbers
        plan = plan_of(kind, write(data_of(kind, odd), tmp_path / f"data.{ending}"))
        found = check(read_plan(plan))
        assert ["'z'" in fault.said() for fault in found.faults] == [True], (odd, found.faults)
        with pytest.raises(PlanError):
            run(plan)
        assert not (tmp_path / "ledger.db").exists() and not (tmp_path / "out").exists()
        said.add(found.faults[0].said())
    assert len(said) == 1 or (kind == "posterior" and ending == "parquet"), "no row decides the words"


def test_a_plan_of_a_csv_file_declares_its_numbers(command, tmp_path: Path) -> None:
    plan = plan_of("posterior", write(rows_with("text"), tmp_path / "data.csv"))
    before = plan.read_text()
    assert command("check", plan)[0] == 2
    code, out, _ = command("plan", "declare", plan, "--number", "x", "--number", "z")
    assert code == 0 and 'numbers = ["x", "z"]' in out
    assert [line for line in plan.read_text().splitlines() if line not in before.splitlines()] == [
        'numbers = ["x", "z"]'
    ]
    notes = owner_notes(read_plan(plan))
    assert [isinstance(note, OwnerRefusal) for note in notes if "'z'" in note] == [True]


def test_a_cluster_tells_no_role(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An engine gives a CSV file's columns types; the plan asks for roles before."""

    class Engine:
        def read(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("rows were opened")

    plan = read_plan(plan_of("posterior", write(rows_with("years"), tmp_path / "data.csv")))
    data = Confidential(plan.sources[0])
    asked = requests(plan, paid={})[0][0]
    monkeypatch.setattr("discreet.plan.confidential.engine_of", lambda file: Engine())
    with pytest.raises(DiscreetError, check=about("numbers")):
        asked.offer(data)


def test_one_role_for_a_column_of_jobs_and_a_command_that_writes_it(command, tmp_path: Path) -> None:
    """The plan runs then, and what it asks for is what it asked before."""
    data = write(jobs_with("text"), tmp_path / "data.csv")
    plan = plan_of("count", data)
    with pytest.raises(PlanError):
        run(plan)
    code, out, _ = command("plan", "declare", plan, "--unused", "z")
    assert code == 0 and 'unused = ["z"]' in out
    assert command("plan", "declare", plan, "--unused", "*")[0] == 0
    assert 'unused = ["z", "*"]' in plan.read_text()
    assert list(run(plan).publications) == ["r"]
    for wrong in (["place"], ["z", "z"]):
        with pytest.raises(DiscreetError):
            read_plan(plan_of("count", data, schema=f"unused = {wrong}\n")).sources[0].schema()


def test_what_was_paid_before_roles_were_declared_is_found_again(tmp_path: Path) -> None:
    data = write(jobs_with("text").drop(columns="z"), tmp_path / "data.csv")
    first = run(plan_of("count", data)).publications
    again = run(plan_of("count", data, schema='unused = ["z"]\n')).publications
    assert [each.hash for each in first.values()] == [each.hash for each in again.values()]


ASKED = [("z", odd, "csv", "utf-8", i % 2) for i, odd in enumerate(TIMES)]
ASKED += [("z", odd, "parquet", "", 1 - i % 2) for i, odd in enumerate(TIMES)]
ASKED += [(name, "years", "csv", "utf-16", 1) for name in NAMES[1:]] + [("年", "text", "parquet", "", 1)]


@pytest.mark.parametrize(("name", "odd", "ending", "encoding", "twice"), ASKED)
def test_the_owner_is_asked_whether_it_is_a_period(
    name: str, odd: str, ending: str, encoding: str, twice: int, tmp_path: Path
) -> None:
    """By what it holds, and by rows of one worker at one establishment that differ; never by its name."""
    schema = Schema(["place"], {"sex": ["f", "m"]}, "firm", "person", magnitudes={"pay": 5_000})
    rows = jobs_with(odd, name, twice=bool(twice))
    path = write(rows, tmp_path / f"data.{ending}", encoding)
    found = check_data(path, schema=schema)
    assert found.refused
    assert [one.count is not None for one in found.findings if one.fault.about == name] == [bool(twice)]
    with pytest.raises(DiscreetError, check=about(name, naming=(repr(name),))):
        write_plan(tmp_path / "new.toml", Wish(source=str(path), schema=schema))
    assert not (tmp_path / "new.toml").exists()
    own = Schema(["place"], {"sex": ["f", "m"]}, "firm", "person", unused=["pay"])
    for data, more in ((path, False), (rows, True)):
        with pytest.raises(DiscreetError, check=about("schema", naming=(repr(name),))):
            read_jobs(data, schema=own, allow_multiple=more)


def test_years_of_one_file_have_three_ways_out(command, tmp_path: Path) -> None:
    rows = jobs_with("years", "År", twice=True).drop(columns="pay")
    for ending in ("csv", "parquet"):
        path = write(rows, tmp_path / f"data.{ending}")
        options = ["--establishment", "firm", "--worker", "person", "--workplace-attribute", "place"]
        options += ["--worker-attribute", "sex=f,m"]
        code, out, _ = command("data", "check", path, *options, "--allow-multiple")
        assert code == 1 and "is it a period?" in out and "--quarters A,B --time" in out
        timed = ["--quarters", "2023,2024", "--time", "År"]
        assert command("data", "check", path, *options, *timed)[0] == 0
        plan = tmp_path / f"{ending}.toml"
        code, _, err = command("plan", "new", path, *options, "--allow-multiple", "--out", plan)
        assert code != 0 and "is it a period?" in err and not plan.exists()
        assert command("plan", "new", path, *options, *timed, "--out", plan)[0] == 0
        assert not check(read_plan(plan)).faults
        one_year = write(rows[rows["År"] == 2024].drop(columns="År"), tmp_path / f"one.{ending}")
        assert command("data", "check", one_year, *options)[0] == 0
        declared = tmp_path / f"declared-{ending}.toml"
        idle = ["--unused", "År", "--allow-multiple", "--out", declared]
        assert command("plan", "new", path, *options, *idle)[0] == 0
        assert any("differ in 'År'" in note for note in owner_notes(read_plan(declared)))


@pytest.mark.parametrize(
    "written", [[23, 24], [2566, 2567], ["令和5年", "令和6年"], ["٢٠٢٣", "٢٠٢٤"], ["wave 1", "wave 2"]]
)
def test_a_new_plan_declares_nothing_by_itself(written: list[Any], command, tmp_path: Path) -> None:
    """No pattern knows every way to write a year: what nobody declared has no role, and somebody is asked."""
    rows = jobs_with("text", "wann").drop(columns="pay")
    data = write(rows.assign(wann=[written[i % 2] for i in range(len(rows))]), tmp_path / "data.csv")
    plan = tmp_path / "plan.toml"
    options = ["--establishment", "firm", "--worker", "person", "--workplace-attribute", "place"]
    options += ["--worker-attribute", "sex=f,m", "--out", plan]
    assert command("plan", "new", data, *options)[0] == 0
    code, out, err = command("check", plan)
    assert code == 2 and "'wann'" in out + err
    assert command("data", "check", data, *options[:-2])[0] == 1
    plan.write_text(plan.read_text().replace("# unused", "unused"))
    assert command("check", plan)[0] == 0


def test_histories_name_all_columns_too() -> None:
    rows = data_of("flows", "years", "År")
    schema = Schema(["place"], {"sex": ["f", "m"]}, "firm", "person")
    asked: dict[str, Any] = {"quarters": ["2024Q1", "2024Q2", "2024Q3"], "time": "quarter"}
    with pytest.raises(DiscreetError, check=about("schema", naming=("'År'",))):
        read_histories(rows, schema=schema, **asked)
    read_histories(rows, schema=Schema(["place"], {"sex": ["f", "m"]}, "firm", "person", unused=["*"]), **asked)


def _posterior(data: Path, formula: str, declared: str) -> Path:
    plan = plan_of("posterior", data, more=declared)
    coefficient = formula.partition("~ ")[2].partition(" ")[0]
    text = plan.read_text().replace('formula = "y ~ x + z"', f'formula = "{formula}"')
    plan.write_text(text.replace('coefficient = ["x"]', f'coefficient = ["{coefficient}"]').replace('["g"]', "[]", 1))
    return plan


NOTHING: dict[str, tuple[str, Callable[[np.ndarray], dict[str, np.ndarray]], str]] = {
    "a logarithm of what has none": ("y ~ log(x)", lambda x: {"y": x, "x": -np.abs(x)}, '["x"]'),
    "a response without a logarithm": ("log(y) ~ x", lambda x: {"y": -np.abs(x), "x": x}, '["x"]'),
    "numbers too large to square": ("y ~ x", lambda x: {"y": x, "x": 1e300 * x}, '["x"]'),
    "gaps of several columns": (
        "y ~ x + z",
        lambda x: {"y": x, "x": np.where(x < -0.2, np.nan, x), "z": np.where(x > 0.2, np.nan, x)},
        '["x", "z"]',
    ),
}
"""Rows that count as nothing though each column holds numbers."""


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("what", NOTHING)
def test_the_owner_is_told_where_most_rows_of_a_formula_count_as_nothing(
    what: str, public: bool, tmp_path: Path
) -> None:
    formula, columns, numbers = NOTHING[what]
    found = pd.DataFrame(columns(np.random.default_rng(0).normal(size=2_000)))
    declared = f"numbers = {numbers}\n"
    plan = _posterior(write(found, tmp_path / "data.parquet"), formula, "" if public else declared)
    if public:
        plan.write_text(plan.read_text().replace("public = []", f"public = {numbers}"))
    notes = owner_notes(read_plan(plan))
    assert [note for note in notes if isinstance(note, OwnerRefusal) and formula in note], notes
    fine = pd.DataFrame(columns(np.random.default_rng(0).normal(size=2_000))).abs().fillna(1.0).clip(0.1, 9)
    write(fine, tmp_path / "data.parquet")
    assert not [note for note in owner_notes(read_plan(plan)) if isinstance(note, OwnerRefusal)]


def test_every_table_of_jobs_has_roles(tmp_path: Path) -> None:
    """Lists of workers, the index of pandas, columns that one file of several has, names that the program uses."""
    schema = Schema(["place"], {"sex": ["f", "m"]}, "firm", "person")
    jobs = jobs_with("years", "År").drop(columns="pay")
    bare, workers = jobs.drop(columns="År"), jobs[["person", "sex", "År"]]
    split = tmp_path / "split"
    split.mkdir()
    write(bare[:30], split / "a.parquet")
    write(jobs[30:], split / "b.parquet")
    derived = replace(schema, hierarchy={"all": {"levels": ["place", "År"], "prefix": [2, 1]}})
    asked: dict[str, Callable[[], Any]] = {
        "workers": lambda: read_jobs(bare.drop(columns="sex"), workers=workers, schema=schema),
        "index": lambda: read_jobs(jobs.set_index("År"), schema=schema),
        "levels of an index": lambda: read_jobs(jobs.set_index(["person", "År"]).reset_index("person"), schema=schema),
        "one file": lambda: read_jobs(split, schema=schema),
        "files of a pattern": lambda: read_jobs(str(split / "*.parquet"), schema=schema),
        "a derived level": lambda: read_jobs(jobs, schema=derived),
        "a list of workers": lambda: check_refused(bare.drop(columns="sex"), workers, schema),
    }
    for what, ask in asked.items():
        with pytest.raises(DiscreetError) as caught:
            ask()
            pytest.fail(what)
        assert "År" in str(caught.value) or "columns" in str(caught.value), what
    with pytest.raises(DiscreetError, check=about("schema", naming=("'__row'",))):
        read_jobs(jobs.rename(columns={"År": "__row"}), schema=schema)
    unused = replace(schema, unused=["År"])
    read_jobs(bare.drop(columns="sex"), workers=workers, schema=unused)
    read_jobs(jobs.set_index("År"), schema=unused)
    for times in (
        pd.date_range("2024-01-31", periods=len(bare)),
        pd.period_range("2024Q1", periods=len(bare), freq="Q"),
    ):
        with pytest.raises(DiscreetError, check=about("schema")):
            read_jobs(bare.set_axis(times), schema=schema)  # an index without a name
    read_jobs(bare.set_axis(range(7, 7 + len(bare))), schema=schema)


def check_refused(jobs: Any, workers: Any, schema: Schema) -> None:
    """The owner's look says what a release refuses."""
    found = check_data(jobs, workers=workers, schema=schema)
    if found.refused:
        raise DiscreetError(*(one.fault for one in found.findings if one.refused))


@pytest.mark.parametrize(
    "values", [["111110", "238220"], ["Smith", "Jones"], ["A01", "B02"], ["2024 Main St", "7 Oak Rd"]]
)
def test_codes_and_names_are_no_times(values: list[str]) -> None:
    """A column that one value of it tells apart is not asked about."""
    assert not like_time(open_frame({"c": values}), ["c"])
