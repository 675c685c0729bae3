"""Workers with several jobs: what one of them moves, what is promised about her, and rows that are there twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.data.histories import CAME, read_histories
from discreet.data.jobs import read_jobs
from discreet.data.schema import Schema
from discreet.data_check import check_data
from discreet.tables.baseline.establishments import histograms
from discreet.tables.cells import cell_statistics
from discreet.words.errors import DataError
from faults_of import about

SCHEMA = Schema(workplace_attributes=["place"], worker_attributes={"sex": ["f", "m"]})


def table(rows: list[tuple[int, int, str, str]]) -> dict[str, list[Any]]:
    names = ("workplace", "worker", "place", "sex")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


OTHERS = [(1, worker, "a", "m") for worker in range(5)] + [(2, 9, "b", "m")]


def opened(rows: list[tuple[int, int, str, str]], allow_multiple: bool | int, **options: Any) -> Any:
    return read_jobs(table(rows), schema=SCHEMA, allow_multiple=allow_multiple, **options)


@pytest.mark.parametrize("rows", [1, 2, 20])
@pytest.mark.parametrize("allow_multiple", [True, 3])
def test_a_worker_moves_a_count_by_one_however_many_rows_she_has(rows: int, allow_multiple: bool | int) -> None:
    """The guarantee hides one worker: so she moves every count, and the largest establishment, by one at most."""
    hers = [(1, 77, "a", "f")] * rows
    without, there = (opened(found, allow_multiple) for found in (OTHERS, OTHERS + hers))
    for worker_by in ((), ("sex",)):
        before, after = (
            cell_statistics(jobs, workplace_by=["place"], worker_by=worker_by) for jobs in (without, there)
        )
        assert abs(after.counts - before.counts).sum() == 1
        assert abs(after.largest - before.largest).max() <= 1
        assert abs(after.largest_total - before.largest_total).max() <= 1
    assert histograms(there).size.tolist() == [6, 1]


def test_jobs_apart_and_workers_in_a_list_are_counted_once_too() -> None:
    jobs = {"workplace": [1, 1, 1, 2], "worker": [7, 7, 8, 7]}
    workers = {"worker": [7, 8], "sex": ["f", "m"]}
    places = {"workplace": [1, 2], "place": ["a", "b"]}
    found = read_jobs(jobs, workers=workers, workplaces=places, schema=SCHEMA, allow_multiple=True)
    assert cell_statistics(found, workplace_by=["place"], worker_by=["sex"]).counts.tolist() == [[1, 1], [1, 0]]


PLACES = {"workplace": [1, 2], "place": ["a", "b"]}


def test_her_own_copy_of_a_listed_column_makes_no_second_job_where_it_is_empty() -> None:
    """Before, a row with the place and one without it were two jobs: two such columns made four of one."""
    hers = {"workplace": [1] * 4, "worker": [77] * 4, "place": ["a", "a", None, None], "sex": ["f", None, "f", None]}
    rows = {name: [row[i] for row in OTHERS] + hers[name] for i, name in enumerate(hers)}
    workers = {"worker": [*range(5), 9, 77], "sex": ["m"] * 6 + ["f"]}
    for most in (True, 1):
        jobs = read_jobs(rows, workplaces=PLACES, workers=workers, schema=SCHEMA, allow_multiple=most)
        assert cell_statistics(jobs, workplace_by=["place"], worker_by=["sex"]).counts.tolist() == [[1, 5], [0, 1]]
        assert histograms(jobs).size.tolist() == [6, 1]
    wrong = {**rows, "place": ["a"] * 5 + ["b"] + ["a", "a", None, "b"]}
    with pytest.raises(DataError, check=about("source")):
        read_jobs(wrong, workplaces=PLACES, workers=workers, schema=SCHEMA, allow_multiple=True)


def test_nor_in_the_flows_of_a_quarter() -> None:
    rows = {"workplace": [1, 1, 1, 1, 2], "worker": [7, 7, 7, 8, 9], "quarter": [2, 2, 3, 2, 2]}
    rows |= {"place": ["a", None, None, "a", "b"]}
    schema, quarters = Schema(["place"], {}), [1, 2, 3]
    jobs = read_histories(rows, quarters=quarters, workplaces=PLACES, schema=schema, allow_multiple=True).around(2)
    found = cell_statistics(jobs, workplace_by=["place"], worker_by=["history"]).counts
    assert found.sum() == 3 and found[0, jobs.schema.worker_attributes["history"].index(CAME)] == 1
    wrong = {**rows, "place": ["a", None, "b", "a", "b"]}
    with pytest.raises(DataError, check=about("source")):
        read_histories(wrong, quarters=quarters, workplaces=PLACES, schema=schema, allow_multiple=True)


def test_the_owner_is_told_of_no_fault_that_a_release_does_not_find() -> None:
    """Rows of one worker at one establishment are one job for the check of the data, too."""
    rows = table([*OTHERS, *[(1, 77, "a", "f")] * 20])
    assert not [found for found in check_data(rows, schema=SCHEMA, allow_multiple=3).findings if found.refused]
    many = table([*OTHERS, (1, 77, "a", "f"), (2, 77, "b", "f")])
    assert [found.fault.about for found in check_data(many, schema=SCHEMA, allow_multiple=1).findings if found.refused]


def test_the_bound_across_establishments_is_checked_and_multiplies_the_loss() -> None:
    rows = [*OTHERS, (1, 77, "a", "f"), (2, 77, "b", "f"), (2, 77, "b", "f")]
    said = [
        str(dc.Session(opened(rows, most), unit=dc.Establishments("0.1"), budget=2).count("place").check(epsilon=2))
        for most in (True, 2)
    ]
    assert "one of them, not about all jobs of a worker together" in said[0]
    assert "up to 2 establishments" in said[1] and "2 times the epsilon" in said[1]
    with pytest.raises(DataError, check=about("allow_multiple")) as caught:
        opened(rows, 1)
    assert "77" not in str(caught.value)
    with pytest.raises(DataError, check=about("source")):
        opened(rows, False)


@pytest.mark.parametrize("bound", [0, -1, 2.5, "3", None])
def test_a_bound_is_a_whole_number(bound: Any) -> None:
    with pytest.raises(DataError) as refused:
        opened(OTHERS, bound)
    assert refused.value.about == "allow_multiple"
    rows = {"workplace": [1], "worker": [7], "quarter": [1], "place": ["a"]}
    with pytest.raises(DataError, check=about("allow_multiple")):
        read_histories(rows, quarters=[1, 2], schema=Schema(["place"], {}), allow_multiple=bound)


def test_a_whole_number_of_numpy_is_one() -> None:
    assert opened(OTHERS, np.int64(3)).most_jobs == 3  # before: "3 does not say how many ... Use for example 3"


def test_one_worker_has_one_value_of_each_attribute() -> None:
    rows = [*OTHERS, (1, 77, "a", "f"), (1, 77, "a", "m")]
    with pytest.raises(DataError, check=about("source")):
        opened(rows, True)


def test_rows_without_workers_promise_one_job() -> None:
    """Where workers have no name, nobody can tell two jobs of one from two workers: the promise is of one job."""
    sizes = {"workplace": [1, 1, 2], "place": ["a", "a", "b"], "sex": ["f", "m", "f"], "n": [4, 5, 0]}
    counted = Schema.of({**SCHEMA.to_dict(), "size": "n"})
    unnamed = Schema.of({**SCHEMA.to_dict(), "worker": None})
    for schema in (counted, replace(unnamed, unused=["n"])):
        jobs = read_jobs(sizes, schema=schema)
        told = str(dc.Session(jobs, unit=dc.Establishments("0.1"), budget=2).count("place").check(epsilon=2))
        assert "Workers have no name in these data" in told and "about one job" in told


def test_a_counted_row_that_is_there_twice_is_refused() -> None:
    schema = Schema.of({**SCHEMA.to_dict(), "size": "n"})
    sizes = {"workplace": [1, 1, 1], "place": ["a"] * 3, "sex": ["f", "f", "m"], "n": [4, 4, 4]}
    with pytest.raises(DataError, check=about("source")):
        read_jobs(sizes, schema=schema)
    with pytest.raises(DataError, check=about("source")):
        read_jobs(sizes, schema=schema, validate=False).validate()
    told_apart = read_jobs({**sizes, "age": ["young", "old", "old"]}, schema=replace(schema, unused=["age"]))
    assert cell_statistics(told_apart).counts.tolist() == [[12]]


def test_one_job_each_says_nothing_more() -> None:
    told = str(dc.Session(opened(OTHERS, False), unit=dc.Establishments("0.1"), budget=2).count().check(epsilon=2))
    assert "several" not in told and "up to" not in told
