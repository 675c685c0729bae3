"""What holds for a table of every database: jobs as in files, one moment, refusals that cost and repeat nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.data.databases import Address, copied, moment
from discreet.ledger import Ledger
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.words.errors import DataError, MissingExtra, PlanError
from faults_of import about

PASSWORD = "s3cret-Pa55-word"
SCHEMA = dc.Schema(["place", "sector"], {"sex": ["f", "m"]})
DESK = """
[[source]]
name = "jobs"
path = "{}"
dataset = "jobs"
epsilon = 4
unit = {{ kind = "establishments", alpha = 0.1 }}
schema = {{ workplace_attributes = ["place"], worker_attributes = {{ sex = ["f", "m"] }} }}
"""


class Filled(Protocol):
    """A database with the toys in it."""

    def run(self, *statements: str) -> None: ...
    def address(self, table: str) -> str: ...


def spent_nothing(plan: Path) -> None:
    assert not (plan.parent / "out").exists()
    if (plan.parent / "ledger.db").exists():
        with Ledger.open(plan.parent / "ledger.db", read_only=True) as ledger:
            assert not [entry for entry in ledger.entries() if entry.kind == "charge"]


def jobs_are_those_of_the_files(database: Filled, folder: Path) -> dc.Jobs:
    """All columns that a release needs, with the same values, and no other."""
    there = dc.read_jobs(database.address("jobs"), workplaces=database.address("places"), schema=SCHEMA)
    here = dc.read_jobs(folder / "jobs.parquet", workplaces=folder / "places.parquet", schema=SCHEMA)
    for mine, theirs in ((there.frame, here.frame), (there.workplaces, here.workplaces)):
        order = "worker" if mine is there.frame else "workplace"
        found, expected = (each.sort(order).collect("pyarrow").to_native() for each in (mine, theirs))
        assert found.to_pylist() == expected.select(found.column_names).to_pylist()
    return there


def rows_go_between_tables(database: Filled, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Whenever a table was fetched, rows of both go; how many rows each fetch has seen."""
    fetch, seen = moment._fetch, list[int]()

    def changing(connection: Any, address: Address, columns: Any) -> Any:
        found = fetch(connection, address, columns)
        seen.append(pq.read_table(found).num_rows)
        database.run("DELETE FROM jobs WHERE worker % 2 = 0", "DELETE FROM places WHERE workplace > 3")
        return found

    monkeypatch.setattr(moment, "_fetch", changing)
    return seen


def refused_at_its_place(plan: Path, words: str, *secrets: str) -> None:
    with pytest.raises(PlanError) as refusal:
        run(plan)
    said = str(refusal.value)
    assert words in said
    assert "[data], source" in said or "[data], workplaces" in said
    assert not any(secret in said for secret in secrets)
    spent_nothing(plan)


def refused_and_not_repeated(address: str, plan: Path, *, here: bool = True) -> None:
    """An address with hunter2 in it: by a plan and, where the package reads such servers, in Python."""
    plan.write_text(re.sub(r'source = "[^"]*"', f'source = "{address}"', plan.read_text()))
    with pytest.raises(PlanError) as refusal:
        read_plan(plan)
    assert "hunter2" not in str(refusal.value)
    assert "[data], source" in str(refusal.value)
    if here:
        with pytest.raises(DataError, check=about("source")) as refusal_here:
            dc.read_jobs(address, schema=dc.Schema(["place"], {}))
        assert "hunter2" not in str(refusal_here.value)
    spent_nothing(plan)


def driver_is_missed(module: str, extra: str, database: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as refusal:
        copied(database.address("jobs"))
    assert extra in str(refusal.value) and "pip install" in str(refusal.value)


def desk_takes_an_address_and_no_password(database: Filled, wrong: str, folder: Path) -> None:
    from discreet.desk.desk import Desk

    folder.mkdir()
    (folder / "desk.toml").write_text(DESK.format(database.address("jobs")))
    desk = Desk.open(folder)
    assert desk.fixed_tables(desk.sources["jobs"], "p")["data"]["source"] == database.address("jobs")
    (folder / "desk.toml").write_text(DESK.format(wrong))
    with pytest.raises(PlanError, check=about("desk")) as refusal:
        Desk.open(folder)
    assert "hunter2" not in str(refusal.value)
