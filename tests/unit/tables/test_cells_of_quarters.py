"""Which cells a quarter has: those of all establishments that the table shows to exist, whoever works there then."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl
import pytest

import discreet as dc
from discreet.tables.baseline.establishments import histograms
from discreet.tables.cells import cell_statistics
from discreet.tables.movement import changes, flows
from discreet.words.errors import DataError

QUARTERS = ("q1", "q2", "q3")
STATES = {"place": {"levels": ["county", "state"], "prefix": [3, 1]}}


@cache
def histories(*, alone: bool, listed: bool = False) -> dc.Histories:
    """Establishment 2 is the only one of its county; its one job of q2 exists or not, which nobody may learn."""
    jobs = [(1, 1, "q1"), (1, 1, "q2"), (1, 1, "q3"), (2, 2, "q1")] + [(2, 3, "q2")] * alone
    rows: dict[str, Any] = dict(zip(("workplace", "worker", "quarter"), zip(*jobs, strict=True), strict=True))
    place = {1: "a01", 2: "b01"}
    workplaces = {"workplace": [1, 2], "county": ["a01", "b01"]} if listed else None
    if not listed:
        rows["county"] = [place[one] for one in rows["workplace"]]
    schema = dc.Schema(["county"], {}, hierarchy=STATES)
    return dc.read_histories(rows, quarters=QUARTERS, workplaces=workplaces, schema=schema)


ANSWERS: dict[str, Callable[[dc.Histories, list[str]], Any]] = {
    "flows": lambda found, by: flows.statistics(found, "q2", by).keys,
    "changes": lambda found, by: changes.statistics(found, ["q2", "q3"], by).keys,
    "jobs of a quarter": lambda found, by: cell_statistics(found.at("q2"), workplace_by=by).keys,
    "establishments of a quarter": lambda found, by: histograms(found.at("q2"), workplace_by=by).keys,
    "levels and changes by hand": lambda found, by: (
        cell_statistics(found.between("q2", "q3"), workplace_by=by, worker_by=["history"]).keys
    ),
}
STATE = ("flows", "state", ["a", "b"])


@pytest.mark.parametrize(("door", "by", "cells"), [(door, "county", ["a01", "b01"]) for door in ANSWERS] + [STATE])
def test_the_only_job_of_a_cell_does_not_make_the_cell(door: str, by: str, cells: list[str]) -> None:
    keys = [ANSWERS[door](histories(alone=alone), [by]) for alone in (False, True)]
    assert keys[0].equals(keys[1]) and keys[0][by].to_pylist() == cells
    assert ANSWERS[door](histories(alone=False, listed=True), [by]).equals(keys[0])


def test_without_a_public_list_the_guarantee_says_whose_existence_is_public() -> None:
    unit = dc.Establishments("0.1")
    found = [dc.Session(histories(alone=True, listed=listed), unit=unit, budget=1) for listed in (False, True)]
    notes = [session.flows("q2", by="county").prepare(epsilon=1).guarantee.notes for session in found]
    assert [sum("No public list" in note for note in each) for each in notes] == [1, 0]


def test_jobs_of_a_quarter_are_no_public_list_for_other_units() -> None:
    """A list that was made from confidential rows does not permit what a public one does."""
    session = dc.Session(histories(alone=True).at("q2"), unit=dc.Workers(), budget=1)
    with pytest.raises(DataError):
        session.count(by="county").release(epsilon=1)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_quarters_that_were_declared_as_numbers_are_their_codes(engine: str) -> None:
    rows = {"workplace": [1, 1, 2], "worker": [1, 2, 3], "quarter": [1, 2, 2], "county": ["a", "a", "b"]}
    data = rows if engine == "duckdb" else pl.LazyFrame(rows)
    found = dc.read_histories(data, quarters=[1, 2, 3], schema=dc.Schema(["county"], {}))
    counts = {each: cell_statistics(found.at(each), workplace_by=["county"]).counts[:, 0].tolist() for each in (1, "2")}
    assert counts == {1: [1, 0], "2": [1, 1]} and found.quarters_without_rows() == [3]
