"""Jobs beside lists of workplaces and workers: what a list says is what the jobs say, or the jobs are refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from discreet.data.jobs import Jobs, read_jobs
from discreet.data.schema import Schema
from discreet.tables.cells import cell_statistics
from discreet.words.errors import DataError

SCHEMA = Schema(workplace_attributes=["region"], worker_attributes={"sex": ["f", "m"]})
JOBS = {"workplace": [1, 1, 2], "worker": [1, 2, 3], "sex": ["f", "m", "f"]}
PLACES = {"workplace": [1, 2], "region": ["north", "south"]}
WORKERS = {"worker": [1, 2, 3], "sex": ["f", "m", "f"]}


def read(jobs: dict[str, Any], workplaces: dict[str, Any] | None = None, workers: dict[str, Any] | None = None) -> Jobs:
    lists = {"workplaces": workplaces, "workers": workers}
    return read_jobs(
        pa.table(jobs), schema=SCHEMA, **{name: pa.table(found) for name, found in lists.items() if found is not None}
    )


def faults(jobs: dict[str, Any], **lists: dict[str, Any]) -> list[str]:
    with pytest.raises(DataError) as refused:
        read(jobs, **lists)
    return str(refused.value).splitlines()


def test_a_copy_that_agrees_is_no_fault_and_counts_once() -> None:
    jobs = read(JOBS | {"region": ["north", "north", None]}, workplaces=PLACES, workers=WORKERS)
    cells = cell_statistics(jobs, workplace_by=["region"], worker_by=["sex"])
    assert cells.counts.tolist() == [[1, 1], [1, 0]]


def test_a_workplace_that_lies_elsewhere_is_refused_without_a_value() -> None:
    (found,) = faults(JOBS | {"region": ["north", "east", "south"]}, workplaces=PLACES)
    assert "Column 'region' of jobs differs from workplaces in some rows" in found
    assert not any(value in found for value in ("north", "east", "south", "1", "2"))


def test_a_copy_of_another_type_is_compared_as_text() -> None:
    coded = {"workplace": [1, 2], "region": ["6", "7"]}
    assert read(JOBS | {"region": [6, 6, 7]}, workplaces=coded).validated
    assert len(faults(JOBS | {"region": [6, 7, 7]}, workplaces=coded)) == 1


def test_a_worker_of_another_kind_is_refused() -> None:
    (found,) = faults(JOBS | {"sex": ["f", "f", "f"]}, workplaces=PLACES, workers=WORKERS)
    assert "Column 'sex' of jobs differs from workers" in found


def test_a_list_that_repeats_is_the_only_fault() -> None:
    (found,) = faults(JOBS, workplaces={"workplace": [1, 1, 2], "region": ["north", "north", "south"]})
    assert found.startswith("Column 'workplace' of workplaces repeats")


def test_faults_of_a_list_and_of_the_rows_come_together() -> None:
    found = faults(
        JOBS | {"sex": ["f", "x", "m"]}, workplaces={"workplace": [1, 1, 2], "region": ["north", "north", "south"]}
    )
    assert len(found) == 2
    assert "outside its public domain" in found[1]
