"""The doors to tables: one data set has one budget by whatever route, and wrong arguments are told in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.data.schema import Schema
from discreet.words.errors import DataError, DiscreetError, PrivacyError
from faults_of import about

SCHEMA = Schema(workplace_attributes=["place"], worker_attributes={"sex": ["f", "m"]})
ROWS = {"workplace": [1, 1, 2], "worker": [7, 8, 9], "place": ["a", "a", "b"], "sex": ["f", "m", "f"]}


def routes(folder: Path) -> list[Any]:
    """The same rows as two files, a folder and a frame."""
    table = pa.table(ROWS)
    (folder / "data").mkdir()
    for path in ("jobs.parquet", "2026.parquet", "data/jobs.parquet"):
        pq.write_table(table, folder / path)
    return [folder / "jobs.parquet", folder / "2026.parquet", folder / "data", table, ROWS]


def test_a_data_set_has_one_budget_by_every_route(tmp_path: Path) -> None:
    book = tmp_path / "ledger.db"
    sources = routes(tmp_path)
    for source in sources:
        jobs = dc.read_jobs(source, schema=SCHEMA)
        with pytest.raises(PrivacyError, check=about("dataset")):
            dc.Session(jobs, unit=dc.Establishments("0.1"), budget=2, ledger=book)
        with pytest.raises(PrivacyError, check=about("dataset")):
            dc.Session(jobs, unit=dc.Establishments("0.1"), budget=2, ledger=book, dataset="")
    assert not book.exists()
    left = []
    for number, source in enumerate(sources):
        jobs = dc.read_jobs(source, schema=SCHEMA)
        session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=5, ledger=book, dataset="jobs 2026")
        assert repr(session).startswith("Session on 'jobs 2026'") and repr(jobs.name) in repr(session)
        session.count("place").release(epsilon=1, name=f"r{number}")
        left.append(session.remaining)
    assert left == [dc.Pure(4 - i) for i in range(5)]


def test_a_trial_needs_no_name() -> None:
    session = dc.Session(dc.read_jobs(ROWS, schema=SCHEMA), unit=dc.Establishments("0.1"), budget=2)
    assert repr(session) == "Session on 'jobs': epsilon=2 left under establishments(alpha=1/10,strong)"


OPEN: dict[str, Any] = {"unit": dc.Establishments("0.1"), "budget": 2}
BAD = {
    "tables in one list": lambda jobs: dc.Session(jobs, **OPEN).marginals([["place"], ["sex"]]),
    "by nothing at all": lambda jobs: dc.Session(jobs, **OPEN).count(by=None),
    "by a number": lambda jobs: dc.Session(jobs, **OPEN).count(by=3),
    "by numbers": lambda jobs: dc.Session(jobs, **OPEN).count(by=[3]),
    "a filter without values": lambda jobs: dc.Session(jobs, **OPEN).count("place", where=["sex"]),
    "a filter in text": lambda jobs: dc.Session(jobs, **OPEN).count("place", where="sex"),
    "a filter that is a number": lambda jobs: dc.Session(jobs, **OPEN).count("place", where=3),
    "a unit in text": lambda jobs: dc.Session(jobs, **{**OPEN, "unit": "establishments"}),
    "a unit's class": lambda jobs: dc.Session(jobs, **{**OPEN, "unit": dc.Establishments}),
    "no unit": lambda jobs: dc.Session(jobs, **{**OPEN, "unit": None}),
    "rows that were not read": lambda jobs: dc.Session(ROWS, **OPEN),
    "a path": lambda jobs: dc.Session("jobs.parquet", **OPEN),
    "a budget in words": lambda jobs: dc.Session(jobs, **{**OPEN, "budget": "much"}),
    "no budget": lambda jobs: dc.Session(jobs, **{**OPEN, "budget": None}),
    "a number for a name": lambda jobs: dc.Session(jobs, **OPEN, dataset=2026),
    "no epsilon": lambda jobs: dc.Session(jobs, **OPEN).count("place").check(epsilon=None),
    "a level in words": lambda jobs: dc.Session(jobs, **OPEN).count("place").release(epsilon=1, level="high"),
    "attributes without domains": lambda jobs: Schema(workplace_attributes=["place"], worker_attributes=["sex"]),
    "no attributes": lambda jobs: Schema(workplace_attributes=["place"], worker_attributes=None),
    "a domain in one word": lambda jobs: Schema(workplace_attributes=["place"], worker_attributes={"sex": "fm"}),
    "no domain": lambda jobs: Schema(workplace_attributes=["place"], worker_attributes={"sex": None}),
    "domains of numbers": lambda jobs: Schema(workplace_attributes=["place"], worker_attributes={"sex": [0.5]}),
    "one workplace attribute": lambda jobs: Schema(workplace_attributes="place", worker_attributes={}),
    "no workplace attributes": lambda jobs: Schema(workplace_attributes=None, worker_attributes={}),
    "a numbered column": lambda jobs: Schema(workplace_attributes=["place"], worker_attributes={}, establishment=3),
    "no establishment": lambda jobs: Schema(workplace_attributes=["place"], worker_attributes={}, establishment=None),
}


@pytest.mark.parametrize("wrong", BAD)
def test_wrong_arguments_are_told_in_three_parts(wrong: str) -> None:
    jobs = dc.read_jobs(ROWS, schema=SCHEMA)
    with pytest.raises(DiscreetError) as caught:
        BAD[wrong](jobs)
    assert str(caught.value).count(". ") >= 1 and str(caught.value).endswith(".")


def test_the_way_to_several_tables_is_told() -> None:
    jobs = dc.read_jobs(ROWS, schema=SCHEMA)
    with pytest.raises(DataError, check=about("by")):
        BAD["tables in one list"](jobs)


def test_establishments_without_jobs_are_in_the_table_too() -> None:
    """The cells are those of establishments in the table, also where they have no jobs."""
    schema = Schema.of({**SCHEMA.to_dict(), "size": "n", "unused": ["worker"]})
    jobs = dc.read_jobs({**ROWS, "n": [3, 2, 0]}, schema=schema)
    query = dc.Session(jobs, **OPEN).count("place")
    assert len(query.release(epsilon=1).counts) == 2
    assert "of establishments with jobs" not in str(query.check(epsilon=1))
    assert "establishments in the table of jobs" in str(query.check(epsilon=1))
