"""Synthetic jobs: every released number is met, recounted by DuckDB; nothing else of the data is in the file."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import LinearConstraint, milp

import discreet as dc
from discreet.plan.run import run
from discreet.release.account import Account
from discreet.release.folder import open_releases
from discreet.session import Session
from discreet.synthetic import microdata
from discreet.tables.query import CountQuery
from discreet.words.errors import DataError, DiscreetError
from faults_of import about
from publication_jobs import MARK, write_jobs


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("released")
    run(write_jobs(folder))
    return folder / "out"


@pytest.fixture(scope="module")
def drawn(released: Path) -> Any:
    return dc.synthesize(released, released.parent / "jobs-synthetic.parquet", seed=3)


def recounted(path: Path, by: tuple[str, ...], what: str) -> dict[tuple[Any, ...], int]:
    keys = ", ".join(f'"{name}"' for name in by)
    grouped = f"{keys}, {what} FROM '{path}' GROUP BY {keys}" if by else f"{what} FROM '{path}'"
    rows = duckdb.sql(f"SELECT {grouped}").fetchall()
    return {row[:-1]: int(row[-1]) for row in rows}


def contradictory(released: Path) -> bool:
    """Whether no numbers of cells at all meet every interval of the counts: a linear programme without a solution."""
    rows = [(of, of.read().to_pylist()) for known in open_releases(released) for of in known.tables("research")]
    counts = [(of, listed) for of, listed in rows if "count" in of.columns]
    cells = next(listed for of, listed in counts if of.name == "sexes")
    state = {f"C{i}": f"S{i // 4}" for i in range(10)}
    cells = [cell | {"state": state[cell["county"]]} for cell in cells]
    sums, low, high = [], [], []
    for of, listed in counts:
        for row in listed:
            sums.append([all(cell[name] == row[name] for name in of.attributes) for cell in cells])
            low.append(-np.inf if row["lower"] is None else row["lower"])
            high.append(np.inf if row["upper"] is None else row["upper"])
    found = milp(np.zeros(len(cells)), constraints=LinearConstraint(np.array(sums, float), low, high), integrality=1)
    return found.status == 2


def test_every_released_number_is_met_within_its_interval(drawn: Any, released: Path) -> None:
    checked = missed = 0
    for release in open_releases(released):
        for of in release.tables("research"):
            what = "sum(payroll)" if "sum" in of.columns else "count(*)"
            found = recounted(drawn.path, of.attributes, what)
            for row in of.read().to_pylist():
                value = found.get(tuple(row[name] for name in of.attributes), 0)
                low, high = row["lower"], row["upper"]
                missed += (low is not None and value < low) or (high is not None and value > high)
                checked += 1
    assert missed == sum(margin["sums"] - margin["met"] for margin in drawn.margins)
    assert missed == 0 or contradictory(released), "some table meets all intervals, and this one does not"
    assert (
        checked
        == sum(margin["sums"] + margin["without interval"] for margin in drawn.margins)
        == 30 + 9 + 3 + 1 + 60 + 10
    )


def test_establishments_are_as_many_as_are_public_and_lie_in_one_cell(drawn: Any, released: Path) -> None:
    rows = pq.read_table(released / "jobs" / "1-county-sector" / "research.parquet").to_pylist()
    found = recounted(drawn.path, ("county", "sector"), "count(DISTINCT workplace)")
    for row in rows:
        assert found.get((row["county"], row["sector"]), 0) <= row["establishments"]
    together = duckdb.sql(
        f"SELECT max(n) FROM (SELECT count(DISTINCT (county, state, sector)) n FROM '{drawn.path}' GROUP BY workplace)"
    )
    assert together.fetchall()[0] == (1,)
    pay = duckdb.sql(f"SELECT min(payroll), max(payroll) FROM '{drawn.path}'").fetchall()[0]
    assert pay is not None and pay[0] >= 0 and pay[1] <= 200_000


def test_it_is_marked_in_name_column_and_metadata(drawn: Any) -> None:
    assert "synthetic" in drawn.path.name
    assert duckdb.sql(f"SELECT bool_and(synthetic) FROM '{drawn.path}'").fetchall()[0] == (True,)
    assert pq.read_schema(drawn.path).metadata[b"synthetic"].startswith(b"true")
    told = json.loads(drawn.about.read_text())
    assert told["synthetic"] is True
    assert all("employer-employee privacy" in known["guarantee"] for known in told["releases"].values())


def test_a_marked_record_never_appears(drawn: Any, released: Path) -> None:
    """Identifiers of the data carry a mark in every row; and nothing but the release is opened."""
    assert (
        duckdb.sql(
            f"SELECT count(*) FROM '{released.parent / 'data' / 'jobs.parquet'}' WHERE worker LIKE '{MARK}%'"
        ).fetchall()[0][0]
        > 1000
    )
    for path in (drawn.path, drawn.about):
        assert MARK.encode() not in path.read_bytes()
    for name in pq.read_schema(drawn.path).names:
        column = pq.read_table(drawn.path, columns=[name])[name]
        assert MARK not in str(column.unique().to_pylist())


def test_nothing_but_the_release_is_opened(released: Path, tmp_path: Path) -> None:
    opened: list[str] = []
    watching = [True]

    def watch(event: str, given: tuple[Any, ...]) -> None:
        if watching and event == "open":
            opened.append(str(given[0]))

    sys.addaudithook(watch)
    dc.synthesize(released, tmp_path / "synthetic.parquet")
    watching.clear()
    inside = [name for name in opened if str(released.parent) in name]
    assert inside and all(name.startswith(str(released)) for name in inside)


def test_two_data_sets_with_the_same_release_give_the_same_bytes(tmp_path: Path) -> None:
    """A worker more or less: releases are drawn until both have published the same; then the files are the same."""
    rows = {
        "workplace": [1] * 6 + [2] * 4,
        "worker": list(range(10)),
        "sector": ["a"] * 6 + ["b"] * 4,
        "sex": ["f", "m"] * 5,
    }
    tables = [pa.table(rows), pa.table(rows).slice(1)]
    schema = dc.Schema(workplace_attributes=["sector"], worker_attributes={"sex": ["f", "m"]})
    seen: list[dict[bytes, Path]] = [{}, {}]
    for attempt in range(400):
        for number, table in enumerate(tables):
            folder = tmp_path / f"{number}-{attempt}"
            jobs = dc.read_jobs(table, schema=schema)
            account = Account.open(None, dataset="jobs", unit=dc.Establishments(0.1), budget=dc.Pure(8))
            account.publish(
                CountQuery.of(jobs, account, by=["sector", "sex"]).offer(epsilon=4), jobs, folder, name="jobs"
            )
            seen[number][(folder / "value.parquet").read_bytes()] = folder
        both = seen[0].keys() & seen[1].keys()
        if both:
            break
    else:
        pytest.fail("both data sets never published the same")
    folders = [each[next(iter(both))] for each in seen]
    files = []
    for folder in folders:
        done = dc.synthesize(folder, tmp_path / "same-synthetic.parquet", seed=5, force=True)
        files.append((done.path.read_bytes(), done.about.read_bytes()))
    assert files[0] == files[1]
    other = dc.synthesize(folders[0], tmp_path / "other-synthetic.parquet", seed=6)
    assert other.path.read_bytes() != files[0][0], "another seed is another file"


def test_a_synthetic_file_is_a_table_of_jobs(drawn: Any) -> None:
    schema = dc.Schema(["county", "state", "sector"], {"sex": ["f", "m"]}, unused=["*"])
    session = Session(dc.read_jobs(drawn.path, schema=schema), unit=dc.Establishments(0.1), budget=1)
    assert session.count(["county"]).release(epsilon=1).counts.sum() > 0


@pytest.mark.parametrize(
    ("out", "subject"), [("jobs.parquet", "out"), ("synthetic.csv", "out"), ("no/synthetic.parquet", "out")]
)
def test_a_name_that_hides_what_it_is_is_refused(out: str, subject: str, released: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, check=about(subject)):
        dc.synthesize(released, tmp_path / out)


@pytest.mark.parametrize("seed", [-1, True, 1.5])
def test_what_is_no_seed_is_refused(seed: Any, released: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, check=about("seed")):
        dc.synthesize(released, tmp_path / "synthetic.parquet", seed=seed)


def test_what_is_there_stays(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "synthetic.parquet"
    out.write_text("mine")
    with pytest.raises(DataError, check=about("out")):
        dc.synthesize(released, out)

    def full(*given: Any) -> int:
        given[0].write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(microdata, "_write", full)
    with pytest.raises(DiscreetError, check=about("out")):
        dc.synthesize(released, out, force=True)
    assert out.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [out.name], "nothing is left beside"


def test_a_changed_release_is_refused(released: Path, tmp_path: Path) -> None:
    import shutil

    copy = Path(shutil.copytree(released / "sexes", tmp_path / "sexes"))
    (copy / "research.parquet").write_bytes((copy / "research.parquet").read_bytes()[:-9])
    with pytest.raises(DataError, check=about("release")):
        dc.synthesize(copy, tmp_path / "synthetic.parquet")


def test_two_periods_are_not_put_together(released: Path, tmp_path: Path) -> None:
    """Numbers of jobs of two quarters would be taken for two counts of the same jobs."""
    import shutil

    for name, period in (("sexes", "2026-Q1"), ("jobs", "2026-Q2")):
        known = Path(shutil.copytree(released / name, tmp_path / "out" / name)) / "release.json"
        told = json.loads(known.read_text())
        told["parameters"]["period"] = period
        known.write_text(json.dumps(told))
    with pytest.raises(DataError, check=about("release", naming=("2026-Q1", "2026-Q2"))):
        dc.synthesize(tmp_path / "out", tmp_path / "synthetic.parquet")
    assert dc.synthesize(tmp_path / "out" / "sexes", tmp_path / "synthetic.parquet").path.exists()


QUARTER = """
[source.{name}.data]
source = "{file}"
[source.{name}.data.schema]
workplace_attributes = ["county", "state", "sector"]
worker_attributes = {{ sex = ["f", "m"] }}
unused = ["*"]
[source.{name}.unit]
kind = "establishments"
alpha = 0.1
[source.{name}.budget]
epsilon = 12
ledger = "quarters.db"
dataset = "jobs"

[[release]]
name = "{name}-by-{by}"
source = "{name}"
kind = "count"
by = ["county", "{by}"]
epsilon = 6
"""


def test_two_sources_of_one_data_set_are_not_put_together(tmp_path: Path) -> None:
    """Quarters that share a budget and have no period; the plan's own bundle says which release is of which."""
    write_jobs(tmp_path)
    (tmp_path / "later").mkdir()
    write_jobs(tmp_path / "later", seed=6)
    parts = [QUARTER.format(name="first", file="data/jobs.parquet", by="sex")]
    parts += [QUARTER.format(name="second", file="later/data/jobs.parquet", by="sector")]
    plan = tmp_path / "quarters.toml"
    plan.write_text('title = "Quarters"' + "".join(parts) + '[output]\nfolder = "both"\n')
    run(plan)
    out = tmp_path / "jobs-synthetic.parquet"
    with pytest.raises(DataError, check=about("release", naming=("first", "second"))):
        dc.synthesize(tmp_path / "both", out)
    assert not out.exists()
    assert dc.synthesize(tmp_path / "both" / "first-by-sex", out).path.exists()
    (tmp_path / "both" / "bundle.zip").write_bytes(b"PK no bundle")
    dc.synthesize(tmp_path / "both", out, force=True)


@pytest.mark.full_size
def test_ten_million_jobs_in_bounded_memory(tmp_path: Path) -> None:
    """One workplace cell has half of them: it is written in parts."""
    import resource
    import subprocess

    rng = np.random.default_rng(2)
    size = rng.integers(100, 900, 20_000)
    rows = {
        "workplace": np.arange(20_000),
        "county": np.where(np.arange(20_000) < 10_000, 0, rng.integers(1, 1000, 20_000)),
        "n": size,
        "payroll": size * rng.integers(20_000, 90_000, 20_000),
    }
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "data" / "jobs.parquet")
    (tmp_path / "plan.toml").write_text(LARGE)
    run(tmp_path / "plan.toml")
    code = (
        "import resource, sys, discreet as dc; done = dc.synthesize(sys.argv[1], sys.argv[2]); "
        "print(done.met, done.jobs, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    out = tmp_path / "synthetic.parquet"
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out"), str(out)], capture_output=True, text=True, check=True
    )
    met, jobs, kilobytes = told.stdout.split()
    assert met == "True"
    assert int(jobs) > 9_900_000
    assert int(kilobytes) < 900_000
    print(told.stdout, resource.RUSAGE_SELF)


LARGE = """
[data]
source = "data/jobs.parquet"

[data.schema]
workplace_attributes = ["county"]
worker_attributes = {}
size = "n"

[data.schema.magnitudes]
payroll = { cap = 200000 }

[unit]
kind = "establishments"
alpha = 0.1

[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "large"

[[release]]
name = "jobs"
kind = "count"
by = ["county"]
establishments = true
epsilon = 2

[[release]]
name = "payroll"
kind = "sum"
of = "payroll"
by = ["county"]
epsilon = 2

[output]
folder = "out"
"""
