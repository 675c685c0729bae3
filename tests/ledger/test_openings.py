"""A data set has one budget: another spelling of its name, or its files under another name, is refused."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import discreet as dc
from discreet.data.scans import origin_of
from discreet.data.schema import Schema
from discreet.ledger import Ledger
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers
from discreet.release.known_data import KnownData, digest_of
from discreet.words.errors import PlanError, PrivacyError
from faults_of import about

SCHEMA = Schema(["place"], {"sex": ["F", "M"]})
ROWS = "workplace,worker,place,sex\na,1,x,F\na,2,x,M\nb,3,y,F\n"


@pytest.mark.parametrize("other", ["Jobs 2026", "jobs  2026", "jobs-2026", "JOBS_2026"])
def test_a_name_in_another_spelling_is_refused(other: str) -> None:
    ledger = Ledger.in_memory()
    ledger.open_budget(dataset="jobs 2026", unit=Workers(), total=Pure(2))
    with pytest.raises(PrivacyError, check=about("dataset")):
        ledger.open_budget(dataset=other, unit=Workers(), total=Pure(2))
    assert len(ledger.entries()) == 1
    ledger.open_budget(dataset="jobs 2026", unit=Workers(), total=Pure(2))


@pytest.mark.parametrize("other", [normalize("NFD", "Löhne 2026"), "Ｌöhne ２０２６", "LÖHNE\u00a02026", "löhne_2026"])
def test_letters_that_unicode_writes_otherwise_are_the_same(other: str) -> None:
    """Before, an umlaut of two signs, as some keyboards and file systems write it, was another data set."""
    ledger = Ledger.in_memory()
    ledger.open_budget(dataset="Löhne 2026", unit=Workers(), total=Pure(2))
    with pytest.raises(PrivacyError, check=about("dataset")):
        ledger.open_budget(dataset=other, unit=Workers(), total=Pure(2))


@pytest.mark.parametrize("other", ["jobs 2027", "jobs", "jobs 20 26", "jobs2026"])
def test_another_name_is_another_data_set(other: str) -> None:
    ledger = Ledger.in_memory()
    for name in ("jobs 2026", other):
        ledger.open_budget(dataset=name, unit=Workers(), total=Pure(2))
    assert len(ledger.budgets()) == 2


def test_files_under_a_second_name_are_refused_until_they_are_written_again(tmp_path: Path) -> None:
    path, ledger = tmp_path / "jobs.csv", tmp_path / "ledger.db"
    path.write_text(ROWS, encoding="utf-8")

    def session(name: str, data: object = path) -> dc.Session:
        jobs = dc.read_jobs(data, schema=SCHEMA)
        return dc.Session(jobs, unit=dc.Establishments(0.1), budget=2, ledger=ledger, dataset=name)

    session("first").count("place").release(epsilon=2)
    (tmp_path / "link.csv").symlink_to(path)
    for same in (path, str(path), tmp_path / "link.csv"):
        with pytest.raises(PrivacyError, check=about("dataset")):
            session("second", same)
    session("first")
    path.write_text(ROWS + "b,4,y,F\n", encoding="utf-8")  # the next quarter, in the same place
    assert str(session("second").remaining) == "epsilon=2"


def session(folder: Path, name: str, data: object) -> dc.Session:
    jobs = dc.read_jobs(data, schema=SCHEMA)
    return dc.Session(jobs, unit=dc.Establishments(0.1), budget=2, ledger=folder / "ledger.db", dataset=name)


def other_routes(folder: Path) -> dict[str, object]:
    """The same rows: a hard link, a copy, rows and columns in another order, another format, a frame."""
    first = folder / "jobs.csv"
    first.write_text(ROWS, encoding="utf-8")
    (folder / "hard.csv").hardlink_to(first)
    (folder / "copy.csv").write_text(ROWS, encoding="utf-8")
    head, *rows = ROWS.splitlines()
    (folder / "sorted.csv").write_text("\n".join([head, *reversed(rows)]) + "\n", encoding="utf-8")
    table = csv.read_csv(first)
    parquet.write_table(table.select(table.column_names[::-1]), folder / "jobs.parquet")
    files = {name: folder / name for name in ("hard.csv", "copy.csv", "sorted.csv", "jobs.parquet")}
    return files | {"a frame": table, "a dictionary": table.to_pydict()}


def test_the_same_rows_by_another_route_have_no_second_budget(tmp_path: Path) -> None:
    """Before, all but the symbolic link had one."""
    routes = other_routes(tmp_path)
    session(tmp_path, "first", tmp_path / "jobs.csv")
    for data in routes.values():
        with pytest.raises(PrivacyError, check=about("dataset")):
            session(tmp_path, "second", data)
        session(tmp_path, "first", data)
    assert [entry.dataset for entry in Ledger.open(tmp_path / "ledger.db").entries()] == ["first"]


COLUMNS = {
    "integers": pa.array([10, 9, None, -1]),
    "small integers": pa.array([10, 9, None, 1], pa.int8()),
    "text": pa.array(["é", "z", None, "10"]),
    "long text": pa.array(["é", "\U0001f600", None, "\uffff"], pa.large_string()),
    "levels": pa.array(["b", "a", None, "b"]).dictionary_encode(),
    "decimals": pa.array([1.0, 0.1, None, 1e300]),
    "days": pa.array([0, 1, None, -1], pa.date32()),
    "times": pa.array([0, 1, None, -1], pa.timestamp("us")),
    "truths": pa.array([True, False, None, True]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_notes_of_rows_are_those_that_python_would_write(kind: str) -> None:
    """A note that an earlier version wrote is recognised."""
    table = pa.table({"establishment": pa.chunked_array([COLUMNS[kind][:1], COLUMNS[kind][1:]]), "n": [2, 1, 3, 20]})
    written = sorted(f"{'' if e is None else e}\0{n}" for e, n in zip(*table.to_pydict().values(), strict=True))
    assert digest_of(table) == hashlib.sha256("\n".join(written).encode()).hexdigest()


def test_what_somebody_says_are_other_data_is_recorded(tmp_path: Path) -> None:
    routes = other_routes(tmp_path)
    session(tmp_path, "first", routes["a frame"])
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        unit, asked = dc.Establishments(0.1), {"dataset": "second", "total": Pure(2)}
        ledger.open_budget(unit=unit, **asked, allow_second_opening=True)
        assert ledger.entries()[-1].payload["second_opening"]
        assert "second_opening" not in ledger.entries()[0].payload
    session(tmp_path, "second", routes["a frame"])


def test_no_line_of_the_ledger_depends_on_the_rows(tmp_path: Path) -> None:
    """The hash of the content is noted for the user alone, in a file that nobody else can read."""
    lines = []
    for rows in (ROWS, ROWS.replace("a,2,x,M\n", "")):
        folder = tmp_path / str(len(lines))
        folder.mkdir()
        table = csv.read_csv(pa.py_buffer(rows.encode()))
        session(folder, "first", table)
        entry = Ledger.open(folder / "ledger.db").entries()[0]
        lines.append({name: value for name, value in entry.payload.items() if name != "at"})
        note = KnownData.of(Ledger.open(folder / "ledger.db"))
        assert note is not None and note.path.stat().st_mode & 0o777 == 0o600
    assert lines[0] == lines[1]


def test_rows_of_a_model_are_recognised_by_their_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("y,x\n" + "".join(f"{k % 5 / 5},{k % 7}\n" for k in range(60)), encoding="utf-8")
    (tmp_path / "link.csv").hardlink_to(path)
    asked = {"epsilon": 1, "public": ["x"], "bounds": (0, 1), "ledger": tmp_path / "ledger.db", "budget": 2}
    dc.release_mixed("y ~ x", path, **asked, dataset="first")
    with pytest.raises(PrivacyError, check=about("dataset")):
        dc.release_mixed("y ~ x", tmp_path / "link.csv", **asked, dataset="second")


def model_rows(seed: int = 0) -> dict[str, np.ndarray]:
    """Rows of a model: a confidential response, another one, a public column, and a share of few values."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 7, 60), rng.normal(size=60).round(3)
    return {"y": y, "x": x, "pay": rng.integers(100, 900, 60), "ill": np.arange(60) % 3 // 2}


def other_routes_of_rows(folder: Path, rows: dict[str, np.ndarray]) -> dict[str, object]:
    """The same rows: a copy, in another order, without a column, under other names, as Parquet, a frame, a mapping."""
    table = pa.table(rows)
    csv.write_csv(table, folder / "copy.csv")
    csv.write_csv(table.take(list(range(60))[::-1]), folder / "sorted.csv")
    csv.write_csv(table.select(["x", "y"]), folder / "narrow.csv")
    parquet.write_table(table, folder / "rows.parquet")
    files = {name: folder / name for name in ("copy.csv", "sorted.csv", "narrow.csv", "rows.parquet")}
    return files | {"a frame": table, "a mapping": rows}


def release_rows(folder: Path, dataset: str, data: object, formula: str = "y ~ x", **more: Any) -> None:
    asked = {"epsilon": 1, "public": ["x"], "bounds": (-4, 4), "ledger": folder / "ledger.db", "budget": 9} | more
    dc.release_mixed(formula, data, **asked, dataset=dataset)


def test_copies_of_rows_of_a_model_have_no_second_budget(tmp_path: Path) -> None:
    """Before, each of these had one: only the unchanged file was recognised."""
    rows = model_rows()
    (tmp_path / "routes").mkdir()
    routes = other_routes_of_rows(tmp_path / "routes", rows)
    release_rows(tmp_path, "first", pa.table(rows))
    for data in routes.values():
        with pytest.raises(PrivacyError, check=about("dataset")):
            release_rows(tmp_path, "second", data)
        release_rows(tmp_path, "first", data)
    renamed = {"answer": rows["y"], "x": rows["x"]}
    for formula, data, bounds in (
        ("answer ~ x", renamed, (-4, 4)),
        ("pay ~ x", rows, (0, 1000)),  # another response of the same rows
        ("ill ~ x", rows, (0, 1)),  # of few values: the other columns tell
    ):
        with pytest.raises(PrivacyError, check=about("dataset")):
            release_rows(tmp_path, "second", data, formula, bounds=bounds)
    assert {entry.dataset for entry in Ledger.open(tmp_path / "ledger.db").entries(last=99)} == {"first"}


def test_other_rows_of_a_model_have_a_budget_of_their_own(tmp_path: Path) -> None:
    """The same public column, as many ones among as many rows, one response that differs: these are no copies."""
    rows, later = model_rows(), model_rows(1) | {"x": model_rows()["x"]}
    release_rows(tmp_path, "first", rows)
    release_rows(tmp_path, "later", later)
    release_rows(tmp_path, "shares", {name: later[name] for name in ("x", "ill")}, "ill ~ x", bounds=(0, 1))
    changed = rows | {"y": np.append(rows["y"][:-1], 3.25)}
    release_rows(tmp_path, "changed", changed)


def test_summaries_and_draws_recognise_copies_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows = {"y": rng.normal(size=3_000), "x": rng.normal(size=3_000)}
    opens: dict[str, Any] = {"ledger": tmp_path / "ledger.db", "budget": 80, "epsilon": 40}
    dc.posterior_quantile("y ~ x", pa.table(rows), ["x"], probability=0.5, dataset="first", **opens)
    copy = {name: column[::-1].copy() for name, column in rows.items()}
    for ask, more in (
        (dc.posterior_probability, {"coefficient": "x", "at": 0.0}),
        (dc.objective_perturbation, {"bounds": (-4, 4), "norm": 5, "penalty": 1}),
    ):
        with pytest.raises(PrivacyError, check=about("dataset")):
            ask("y ~ x", copy, dataset="second", **more, **opens)


def test_a_plan_of_a_model_is_refused_where_its_rows_have_a_budget(tmp_path: Path) -> None:
    text = """
[data]
source = "FILE"
public = ["x"]
[unit]
kind = "rows"
response = "y"
lower = -4
upper = 4
[budget]
epsilon = 2
dataset = "NAME"
ledger = "ledger.db"
[output]
folder = "NAME"
[[release]]
name = "model"
kind = "model"
formula = "y ~ x"
epsilon = 1
"""
    table = pa.table(model_rows())
    parquet.write_table(table, tmp_path / "rows.parquet")
    csv.write_csv(table.take(list(range(60))[::-1]), tmp_path / "copy.csv")
    for name, file in (("first", "rows.parquet"), ("second", "copy.csv")):
        (tmp_path / f"{name}.toml").write_text(text.replace("NAME", name).replace("FILE", file), encoding="utf-8")
    run(tmp_path / "first.toml")
    with pytest.raises(PlanError, check=about("dataset")):
        run(tmp_path / "second.toml")
    assert {entry.dataset for entry in Ledger.open(tmp_path / "ledger.db").entries(last=9)} == {"first"}


def test_what_a_file_holds_is_not_in_its_origin(tmp_path: Path) -> None:
    path, found = tmp_path / "jobs.csv", []
    for rows in (ROWS, ROWS.replace("a,2,x,M\n", "")):
        path.write_text(rows, encoding="utf-8")
        os.utime(path, ns=(1, 1))
        found.append(origin_of(path))
    assert found[0] is not None and found[0] == found[1]
    assert origin_of({"workplace": []}) is None
    assert origin_of(f"{path}::a") != origin_of(f"{path}::b")  # two tables of a file
    assert origin_of(tmp_path / "absent.csv") is None
    assert origin_of(f"{tmp_path}/jobs*.csv") == origin_of(path)
    assert origin_of("s3a://bucket/jobs.parquet") is None


def test_a_plan_is_refused_at_its_name_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(ROWS, encoding="utf-8")
    text = """
[data]
source = "jobs.csv"
[data.schema]
workplace_attributes = ["place"]
worker_attributes = { sex = ["F", "M"] }
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 2
dataset = "NAME"
ledger = "ledger.db"
[output]
folder = "NAME"
[[release]]
name = "places"
kind = "count"
by = ["place"]
epsilon = 2
"""
    for name in ("first", "second"):
        (tmp_path / f"{name}.toml").write_text(text.replace("NAME", name), encoding="utf-8")
    run(tmp_path / "first.toml")
    for ask in (lambda plan: check(read_plan(plan)).refuse(), run):
        with pytest.raises(PlanError, check=about("dataset")):
            ask(tmp_path / "second.toml")
    assert not (tmp_path / "second").exists()
    run(tmp_path / "first.toml")
    (tmp_path / "copy.csv").write_text(ROWS, encoding="utf-8")  # which a check, that reads no row, cannot see
    (tmp_path / "copy.toml").write_text(text.replace("NAME", "second").replace("jobs.csv", "copy.csv"), "utf-8")
    with pytest.raises(PlanError, check=about("dataset")):
        run(tmp_path / "copy.toml")
    assert [entry.dataset for entry in Ledger.open(tmp_path / "ledger.db").entries(last=9)] == ["first"] * 3


def test_users_without_a_home_open_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container under a number that no user has: there is no note, and copies are not recognised."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: (_ for _ in ()).throw(RuntimeError("no home"))))
    monkeypatch.setattr(Path, "expanduser", lambda path: Path.home())
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert KnownData.of(ledger) is None
