"""Cells against a loop in plain Python, on tables that hypothesis makes up."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.data.jobs import read_jobs
from discreet.data.schema import Schema
from discreet.tables.cells import cell_statistics

STATES, SECTORS = ["01", "06"], ["11", "92"]
FIRM = st.tuples(st.sampled_from(STATES), st.sampled_from(SECTORS), st.integers(0, 2))
WORKER = st.tuples(
    st.integers(0, 5), st.sampled_from(["female", "male"]), st.sampled_from(["none", "school", "college"])
)
BY_WORKPLACE = st.lists(st.sampled_from(["state", "sector", "population"]), unique=True)
BY_WORKER = st.lists(st.sampled_from(["sex", "education"]), unique=True)
WHERE = st.fixed_dictionaries(
    {},
    optional={
        "sex": st.just(["male"]),
        "education": st.sampled_from([["none"], ["none", "college"]]),
        "state": st.sampled_from([["06"], ["01", "06"]]),
    },
)


@pytest.mark.parametrize(
    ("listed", "memory"),
    [
        pytest.param(False, False, id="those with jobs-duckdb", marks=pytest.mark.full_size),
        pytest.param(True, False, id="a public list-duckdb"),
        pytest.param(False, True, id="those with jobs-memory"),
        pytest.param(True, True, id="a public list-memory"),
    ],
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(
    firms=st.lists(FIRM, min_size=1, max_size=6),
    workers=st.lists(WORKER, min_size=1, max_size=25),
    workplace_by=BY_WORKPLACE,
    worker_by=BY_WORKER,
    where=WHERE,
)
def test_cells_are_what_a_loop_counts(
    memory: bool,
    listed: bool,
    firms: list[tuple[str, str, int]],
    workers: list[tuple[int, str, str]],
    workplace_by: list[str],
    worker_by: list[str],
    where: dict[str, list[str]],
    schema: Schema,
    loop: Any,
    as_loop: Any,
) -> None:
    workplace = [
        {"workplace": i, "state": state, "sector": sector, "population": population}
        for i, (state, sector, population) in enumerate(firms)
    ]
    rows = [
        {"worker": i, "sex": sex, "education": education, **workplace[firm % len(firms)]}
        for i, (firm, sex, education) in enumerate(workers)
    ]
    if not listed:
        workplace = [firm for firm in workplace if any(row["workplace"] == firm["workplace"] for row in rows)]
    tables = pa.Table.from_pylist(rows), pa.Table.from_pylist(workplace)
    source, places = [nw.from_native(table) if memory else table for table in tables]
    jobs = read_jobs(source, workplaces=places if listed else None, schema=schema)
    found = cell_statistics(jobs, workplace_by=workplace_by, worker_by=worker_by, where=where)
    wanted = loop(rows, workplace, workplace_by, worker_by, where)
    assert list(as_loop(found).items()) == list(wanted.items())
