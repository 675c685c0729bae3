"""The second largest establishment of every cell: the same from every engine, of all workers and of every kind."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.data.jobs import Jobs, read_jobs
from discreet.tables.baseline.establishments import histograms
from discreet.tables.cells import cell_statistics

SCHEMA = dc.Schema(workplace_attributes=["place"], worker_attributes={"sex": ["f", "m"]})
SIZES = {1: (3, 4), 2: (5, 2), 3: (1, 0), 4: (6, 0), 5: (0, 0), 6: (2, 2), 7: (0, 0), 8: (4, 0)}
PLACES = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "c", 7: "d", 8: "a"}
"""a: two of seven, one of four and one of one; b: six, and one without workers; c: alone; d: alone, without workers."""

ALL = {"a": 7, "b": 0, "c": 0, "d": 0}
BY_SEX = {"a": (4, 2), "b": (0, 0), "c": (0, 0), "d": (0, 0)}


def frames() -> tuple[pa.Table, pa.Table]:
    rows = [(firm, sex) for firm, sizes in SIZES.items() for sex, n in zip("fm", sizes, strict=True) for _ in range(n)]
    firms, sexes = zip(*rows, strict=True)
    jobs = pa.table({"workplace": list(firms), "worker": list(range(len(rows))), "sex": list(sexes)})
    return jobs, pa.table({"workplace": list(PLACES), "place": list(PLACES.values())})


def read(engine: str) -> Jobs:
    jobs, places = frames()
    found: tuple[Any, Any] = (jobs, places)
    if engine == "duckdb":
        connection = duckdb.connect()
        found = (connection.from_arrow(jobs), connection.from_arrow(places))
    if engine == "polars":
        polars = pytest.importorskip("polars")
        found = (polars.from_arrow(jobs).lazy(), polars.from_arrow(places).lazy())
    return read_jobs(found[0], workplaces=found[1], schema=SCHEMA)


@pytest.mark.parametrize("engine", ["arrow", "duckdb", "polars"])
def test_the_second_largest_is_told_beside_the_largest(engine: str) -> None:
    jobs = read(engine)
    found = cell_statistics(jobs, workplace_by=["place"], second=True)
    assert found.second is not None
    assert dict(zip(found.keys["place"].to_pylist(), found.second[:, 0].tolist(), strict=True)) == ALL
    assert found.largest[:, 0].tolist() == [7, 6, 4, 0]
    kinds = cell_statistics(jobs, workplace_by=["place"], worker_by=["sex"], second=True)
    assert kinds.second is not None
    assert dict(zip(kinds.keys["place"].to_pylist(), map(tuple, kinds.second.tolist()), strict=True)) == BY_SEX
    whole = cell_statistics(jobs, second=True)
    assert whole.second is not None and whole.second.tolist() == [[7]]
    assert cell_statistics(jobs, workplace_by=["place"]).second is None
    both = cell_statistics(jobs, workplace_by=["place"], worker_by=["sex"], second=True, second_total=True)
    assert both.second is not None and both.second.tolist() == kinds.second.tolist()
    assert both.second_total is not None and both.second_total.tolist() == found.second[:, 0].tolist()


def test_histograms_tell_the_same() -> None:
    jobs = read("arrow")
    firms = histograms(jobs, workplace_by=["place"], worker_by=["sex"])
    assert firms.second(firms.size).tolist() == list(ALL.values())
    assert list(map(tuple, firms.second(firms.counts).tolist())) == list(BY_SEX.values())


def test_another_cell_does_not_matter() -> None:
    jobs, places = frames()
    alone = read_jobs(
        jobs.filter(np.isin(jobs["workplace"].to_numpy(), [1, 2, 3, 8])),
        workplaces=places.filter(np.isin(places["workplace"].to_numpy(), [1, 2, 3, 8])),
        schema=SCHEMA,
    )
    found = cell_statistics(alone, workplace_by=["place"], second=True)
    assert found.second is not None and found.second.tolist() == [[7]]
