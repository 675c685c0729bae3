"""Reading jobs: from which places, with which schema, and what is refused before a query runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet.data import engines
from discreet.data.jobs import read_jobs
from discreet.data.schema import LODES, Schema
from discreet.simulate import lodes
from discreet.tables.cells import cell_statistics
from discreet.words.errors import DataError, EngineError
from faults_of import about

SCHEMA = Schema(workplace_attributes=["place"], worker_attributes={"sex": ["f", "m"]})
JOBS = {"workplace": [1, 1, 2], "worker": [7, 8, 9], "place": ["a", "a", "b"], "sex": ["f", "m", "f"]}


def changed(**columns: Any) -> dict[str, Any]:
    return {**JOBS, **columns}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lodes") / "data"
    lodes.write(folder, seed=3, share=0.001)
    return folder


def test_a_simulated_directory_is_understood(simulated: Path) -> None:
    jobs = read_jobs(simulated)
    assert jobs.schema == LODES
    assert jobs.workplaces is not None
    found = cell_statistics(jobs, workplace_by=["place", "sector"], worker_by=["sex", "education"])
    about = json.loads((simulated / "about.json").read_text())
    assert found.counts.sum() == about["rows"]["jobs"]
    assert found.establishments.sum() == about["rows"]["workplace"]
    assert (found.largest.max(axis=1) <= found.largest_total).all()
    assert (found.largest_total <= found.counts.sum(axis=1)).all()


def test_three_files_give_what_the_joined_one_gives(simulated: Path, tmp_path: Path) -> None:
    for name in ("job", "worker", "workplace"):
        (tmp_path / f"{name}.parquet").write_bytes((simulated / f"{name}.parquet").read_bytes())
    (tmp_path / "schema.json").write_text(json.dumps(LODES.to_dict()))
    apart, joined = read_jobs(tmp_path), read_jobs(simulated / "jobs.parquet")
    assert apart.workers is not None
    assert joined.workplaces is None
    by: dict[str, Any] = {"workplace_by": ["county", "ownership"], "worker_by": ["race", "age"]}
    left, right = cell_statistics(apart, **by), cell_statistics(joined, **by)
    assert left.keys.equals(right.keys)
    assert left.levels == right.levels
    for name in ("counts", "largest", "largest_total", "establishments"):
        assert (getattr(left, name) == getattr(right, name)).all()


def test_a_schema_is_needed_and_never_guessed(tmp_path: Path) -> None:
    parquet.write_table(pa.table(JOBS), tmp_path / "jobs.parquet")
    with pytest.raises(DataError, check=about("schema")):
        read_jobs(tmp_path / "jobs.parquet")
    with pytest.raises(DataError, check=about("schema")):
        read_jobs(JOBS)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA.to_dict()))
    assert read_jobs(tmp_path / "jobs.parquet").schema == SCHEMA
    assert read_jobs(tmp_path).schema == SCHEMA
    assert read_jobs(JOBS, schema=SCHEMA.to_dict()).schema == read_jobs(JOBS, schema=tmp_path / "schema.json").schema


def test_neither_repr_nor_str_has_a_value() -> None:
    secret = changed(place=["Secretville"] * 3)
    jobs = read_jobs(secret, schema=SCHEMA)
    cells = cell_statistics(jobs, workplace_by=["place"])
    for shown in (repr(jobs), str(jobs), repr(cells), str(cells), f"{jobs}"):
        assert "Secretville" not in shown
    assert "place" in repr(jobs)
    assert "sex (2 categories)" in repr(jobs)


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (changed(sex=["f", "m", None]), ("'sex'", "no value")),
        (changed(workplace=[1, None, None]), ("'workplace'", "no value")),
        (
            changed(sex=["f", "x", "SECRET"]),
            ("'sex'", "f, m"),
        ),
        (changed(worker=[7, 7, 7]), ("'worker'",)),
        (changed(place=["a", "SECRET", "b"]), ("'place'", "establishment")),
        (pa.table(JOBS).slice(0, 0), ("no rows",)),
        (
            {"workplace": [1], "worker": [2], "place": ["a"]},
            ("'sex'", "workplace, worker, place"),
        ),
        (
            changed(place=[0.5, 0.5, 1.5]),
            ("'place'", "Float64"),
        ),
        (changed(sex=[1, 2, 1]), ("'sex'", "Int64", "'f'")),
    ],
)
def test_bad_data_are_refused(data: Any, facts: tuple[str, ...]) -> None:
    with pytest.raises(DataError, check=about("source", naming=facts)) as caught:
        read_jobs(data, schema=SCHEMA)
    assert "SECRET" not in str(caught.value)
    assert {fault.about for fault in caught.value.faults} == {"source"}


def test_a_second_line_of_names_is_no_job() -> None:
    """Two exports in one file. One key that is called like its column is no such line."""
    rows = {"workplace": ["a", "workplace"], "worker": ["x", "worker"], "place": ["p", "q"], "sex": ["f", "m"]}
    with pytest.raises(DataError, check=about("source")):
        read_jobs(rows, schema=SCHEMA)
    assert read_jobs(rows | {"worker": ["x", "y"]}, schema=SCHEMA).validated


def test_a_worker_may_have_two_jobs_if_that_is_meant() -> None:
    jobs = read_jobs(changed(worker=[7, 8, 7]), schema=SCHEMA, allow_multiple=True)
    assert cell_statistics(jobs).counts.tolist() == [[3]]


@pytest.mark.parametrize(
    ("sizes", "fact"),
    [
        ([4, -1, 2], "negative"),
        ([4, None, 2], "no value"),
    ],
)
def test_sizes_must_be_counts(sizes: list[int | None], fact: str) -> None:
    schema = Schema.of({**SCHEMA.to_dict(), "size": "n", "unused": ["worker"]})
    with pytest.raises(DataError, check=about("source", naming=("'n'", fact))):
        read_jobs({**JOBS, "n": sizes}, schema=schema)
    with pytest.raises(DataError, check=about("source", naming=("'n'", "Float64"))):
        read_jobs({**JOBS, "n": [0.5, 1.0, 1.0]}, schema=schema)


def test_tables_of_two_engines_or_key_types_are_not_joined() -> None:
    workplaces = {"workplace": [1, 2], "place": ["a", "b"]}
    with pytest.raises(DataError, check=about("workplaces")):
        read_jobs(pl.DataFrame(JOBS).lazy(), workplaces=workplaces, schema=SCHEMA)
    with pytest.raises(DataError, check=about("source")):
        read_jobs(JOBS, workplaces={**workplaces, "workplace": ["1", "2"]}, schema=SCHEMA)
    foreign = duckdb.connect().from_arrow(pa.table(workplaces))
    with pytest.raises(EngineError, check=about("source", naming=("'check jobs'",))):
        read_jobs(JOBS, workplaces=foreign, schema=SCHEMA)
    with engines.open("duckdb") as engine:
        frames = pl.DataFrame(JOBS), workplaces
        assert read_jobs(frames[0], workplaces=frames[1], schema=SCHEMA, engine=engine).workplaces is not None


def test_an_establishment_without_jobs_still_makes_a_cell() -> None:
    workplaces = {"workplace": [1, 2, 3], "place": ["a", "b", "c"]}
    cells = cell_statistics(read_jobs(JOBS, workplaces=workplaces, schema=SCHEMA), workplace_by=["place"])
    assert cells.keys.to_pydict() == {"place": ["a", "b", "c"]}
    assert cells.counts.tolist() == [[2], [1], [0]]
    assert cells.largest_total.tolist() == [2, 1, 0]
    assert cells.establishments.tolist() == [1, 1, 1]


def test_a_query_is_checked_before_it_runs() -> None:
    jobs = read_jobs(JOBS, schema=SCHEMA)
    for query, subject, fact in (
        (
            {"workplace_by": ["plaice"]},
            "workplace_by",
            "'plaice'",
        ),
        ({"worker_by": ["place"]}, "worker_by", "'place'"),
        ({"worker_by": ["sex", "sex"]}, "worker_by", "twice"),
        ({"where": {"wage": [1]}}, "where", "'wage'"),
        ({"where": {"sex": ["x"]}}, "where.sex", "('f', 'm')"),
        ({"where": {"sex": []}}, "where.sex", "no value"),
        (
            {"workplace_by": ["place"], "worker_by": ["sex"], "most_counts": 3},
            "by",
            "4 counts",
        ),
    ):
        with pytest.raises(DataError, check=about(subject, naming=(fact,))):
            cell_statistics(jobs, **query)  # type: ignore[arg-type]


def test_a_filter_that_no_workplace_meets_gives_no_cells() -> None:
    cells = cell_statistics(
        read_jobs(JOBS, schema=SCHEMA), workplace_by=["place"], where={"place": "z"}, worker_by=["sex"]
    )
    assert cells.counts.shape == cells.largest.shape == (0, 2)
    assert cells.largest_total.shape == (0,)


def test_no_rows_leave_the_engine_before_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a query ran")

    monkeypatch.setattr(nw.LazyFrame, "collect", refuse)
    read_jobs(JOBS, schema=SCHEMA, validate=False)
