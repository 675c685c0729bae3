"""Every relational step, on every engine, with identical results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import narwhals.stable.v2 as nw
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet.data import engines, row_checks
from discreet.data.frames import collect, count_if, open_frame, repetitions, require, tally, working
from discreet.data.jobs import read_jobs
from discreet.data.schema import Schema
from discreet.tables import cells
from discreet.tables.cells import cell_statistics
from discreet.words.errors import DataError, EngineError
from faults_of import about

QUERIES: list[dict[str, Any]] = [
    {},
    {"workplace_by": ["state", "sector"]},
    {"workplace_by": ["sector", "population"], "worker_by": ["sex", "education"]},
    {"worker_by": ["education"], "where": {"education": ["college", "none"], "sex": "female"}},
    {"workplace_by": ["state"], "worker_by": ["sex"], "where": {"state": ["06", "37"], "education": ["school"]}},
    {"workplace_by": ["state"], "where": {"population": [900]}},
]


def expected(query: dict[str, Any], rows: Any, firms: Any, loop: Any, **more: Any) -> Any:
    where = {name: [value] if isinstance(value, str) else value for name, value in query.get("where", {}).items()}
    if "education" in where:  # levels come in the order of the public domain
        where["education"] = sorted(where["education"], key=["none", "school", "college"].index)
    by = query.get("workplace_by", []), query.get("worker_by", [])
    return loop(rows.to_pylist(), firms.to_pylist(), *by, where, **more)


def with_jobs(tables: dict[str, pa.Table]) -> pa.Table:
    """The establishments that have a job: all that a joined table knows of."""
    workplace = tables["workplace"]
    return workplace.filter(pc.is_in(workplace["workplace"], pc.unique(tables["job"]["workplace"])))


def test_a_table_goes_in_and_comes_out(into: Any, tables: dict[str, pa.Table]) -> None:
    frame = open_frame(into(tables["jobs"], "jobs"), name="jobs")
    kinds: dict[str, Any] = {"worker": "integer", "workplace": "label", "state": "label", "population": "number"}
    require(frame, kinds, name="jobs")
    back = collect(frame.sort("worker"), step="round trip")
    assert back.to_pylist() == tables["jobs"].sort_by("worker").to_pylist()


def test_a_wrong_schema_is_refused_in_the_same_words(into: Any, tables: dict[str, pa.Table]) -> None:
    frame = open_frame(into(tables["workplace"], "firms"))
    with pytest.raises(DataError) as caught:
        require(frame, {"sectr": "label", "state": "number"}, name="firms")
    assert str(caught.value) == (
        "Column 'sectr' is not in firms. It has: workplace, state, sector, population. Did you mean 'sector'?\n"
        "Column 'state' of firms holds String, where numbers are needed. Numbers have a decimal point, and no "
        "mark for thousands. Cast it at the source, or write it so."
    )


def test_counts_of_rows_agree(into: Any, tables: dict[str, pa.Table]) -> None:
    frame = open_frame(into(tables["jobs"], "jobs"))
    found = tally(
        frame,
        {
            "rows": nw.len(),
            "women": count_if(nw.col("sex") == "female"),
            "firms": nw.col("workplace").n_unique(),
            "nulls": count_if(nw.col("sex").is_null()),
        },
        step="counts",
    )
    women = sum(row["sex"] == "female" for row in tables["jobs"].to_pylist())
    assert found == {"rows": 300, "women": women, "firms": 37, "nulls": 0}


def test_cells_of_one_joined_table(into: Any, tables: Any, schema: Schema, loop: Any, as_loop: Any) -> None:
    jobs = read_jobs(into(tables["jobs"], "jobs"), schema=schema)
    for query in QUERIES:
        found = as_loop(cell_statistics(jobs, **query))
        wanted = expected(query, tables["jobs"], with_jobs(tables), loop)
        assert list(found.items()) == list(wanted.items())


def test_cells_of_three_tables(into: Any, tables: Any, schema: Schema, loop: Any, as_loop: Any) -> None:
    source, workers, workplaces = (into(tables[name], name) for name in ("job", "worker", "workplace"))
    jobs = read_jobs(source, workers=workers, workplaces=workplaces, schema=schema)
    for query in QUERIES:
        found = as_loop(cell_statistics(jobs, **query))
        wanted = expected(query, tables["jobs"], tables["workplace"], loop)
        assert list(found.items()) == list(wanted.items())


@pytest.mark.parametrize("where", [{}, {"education": ["school", "college"]}], ids=["all", "some"])
def test_every_union_of_kinds(into: Any, tables: Any, schema: Schema, where: dict[str, list[str]]) -> None:
    """The most jobs that one establishment has in every set of levels, one job at a time."""
    jobs = read_jobs(into(tables["jobs"], "jobs"), schema=schema)
    by: dict[str, Any] = {"workplace_by": ["state", "sector"], "worker_by": ["sex", "education"], "where": where}
    found = cell_statistics(jobs, **by, unions=True)
    firms: dict[Any, Counter[Any]] = {}
    for row in tables["jobs"].to_pylist():
        firms.setdefault((row["workplace"], row["state"], row["sector"]), Counter())[row["sex"], row["education"]] += 1
    keys = list(zip(*(column.to_pylist() for column in found.keys.columns), strict=True))
    wanted = [
        [
            max(
                sum(firm[tuple(level)] for i, level in enumerate(found.levels) if some >> i & 1)
                for (_, *place), firm in firms.items()
                if tuple(place) == key
            )
            for some in range(2 ** len(found.levels))
        ]
        for key in keys
    ]
    assert found.unions is not None and found.unions.tolist() == wanted


def test_the_second_largest_establishment_of_every_level(into: Any, tables: Any, schema: Schema) -> None:
    """One job at a time; 0 where no second establishment has one."""
    jobs = read_jobs(into(tables["jobs"], "jobs"), schema=schema)
    found = cell_statistics(jobs, workplace_by=["state", "sector"], worker_by=["sex"], second=True)
    firms: dict[Any, Counter[Any]] = {}
    for row in tables["jobs"].to_pylist():
        firms.setdefault((row["workplace"], row["state"], row["sector"]), Counter())[row["sex"]] += 1
    keys = list(zip(*(column.to_pylist() for column in found.keys.columns), strict=True))
    wanted = [
        [
            sorted([0, 0, *(firm[level] for (_, *place), firm in firms.items() if tuple(place) == key)])[-2]
            for (level,) in found.levels
        ]
        for key in keys
    ]
    assert found.second is not None and found.second.tolist() == wanted


def test_cells_of_counted_rows(into: Any, tables: Any, schema: Schema, loop: Any, as_loop: Any) -> None:
    counted = tables["jobs"].drop_columns(["worker"]).append_column("jobs", pa.array(range(300)))
    jobs = read_jobs(into(counted, "counted"), schema=Schema.of({**schema.to_dict(), "size": "jobs"}))
    query = QUERIES[2]
    wanted = expected(query, counted, with_jobs(tables), loop, size="jobs")
    assert list(as_loop(cell_statistics(jobs, **query)).items()) == list(wanted.items())


def test_large_establishments_are_left_out_but_exist(
    into: Any, tables: Any, schema: Schema, loop: Any, as_loop: Any
) -> None:
    sizes = Counter(tables["job"]["workplace"].to_pylist())
    theta = sorted(sizes.values())[-5]
    jobs = read_jobs(into(tables["jobs"], "jobs"), schema=schema, validate=False)
    query: dict[str, Any] = {"workplace_by": ["state"], "worker_by": ["sex"], "where": {"education": ["college"]}}
    small = tables["jobs"].filter(pa.array([sizes[w] <= theta for w in tables["job"]["workplace"].to_pylist()]))
    wanted = expected(query, small, with_jobs(tables), loop)
    assert as_loop(cell_statistics(jobs, **query, largest_establishment=theta)) == wanted
    assert wanted != expected(query, tables["jobs"], with_jobs(tables), loop)


def test_more_levels_than_a_pass_holds(
    into: Any, tables: Any, schema: Schema, as_loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = read_jobs(into(tables["jobs"], "jobs"), schema=schema, validate=False)
    query: dict[str, Any] = {"workplace_by": ["state"], "worker_by": ["education", "sex"]}
    whole = as_loop(cell_statistics(jobs, **query))
    monkeypatch.setattr(cells, "LEVELS_PER_PASS", 4)
    assert as_loop(cell_statistics(jobs, **query)) == whole


def spoilt(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The three tables with one fault of each kind; CSV has no other null than the empty field."""
    workplace, worker, job = (tables[name].to_pylist() for name in ("workplace", "worker", "job"))
    workplace[3]["sector"] = None
    workplace.append(dict(workplace[0]))
    worker[5]["sex"] = "other"
    worker[6]["education"] = None
    worker.append(dict(worker[0], worker=1))
    worker.append(dict(worker[0], worker=1))
    job[7]["worker"] = job[8]["worker"]
    job[9]["workplace"] = 99_999
    job[10]["worker"] = 77_777
    return {
        name: pa.Table.from_pylist(rows, tables[name].schema)
        for name, rows in (("workplace", workplace), ("worker", worker), ("job", job))
    }


def test_every_fault_is_found_and_told_without_values(into: Any, tables: Any, schema: Schema) -> None:
    bad = spoilt(tables)
    source, workers, workplaces = (into(bad[name], name) for name in ("job", "worker", "workplace"))
    jobs = read_jobs(source, workers=workers, workplaces=workplaces, schema=schema, validate=False)
    with pytest.raises(DataError) as caught:
        jobs.validate()
    rows = " `discreet data check` shows their owner which rows."
    told = str(caught.value).replace(jobs.name, "jobs")
    assert all(line.endswith(rows) for line in told.splitlines())
    assert [line.removesuffix(rows) for line in told.splitlines()] == [
        "Column 'sector' of workplaces has no value in some rows. Fill them in or drop them at the source.",
        "Column 'workplace' of workplaces repeats; each must be there once. Drop the repetitions.",
        "Column 'education' of workers has no value in some rows. Fill them in or drop them at the source.",
        "Column 'sex' of workers has rows outside its public domain, which is: female, male. Recode them, or add the "
        "category to the schema's worker_attributes.",
        "Column 'worker' of workers repeats; each must be there once. Drop the repetitions.",
        "Column 'worker' of jobs repeats; each must be there once. Drop the repetitions. If rows are of several "
        "periods, name these: read_histories. Or pass allow_multiple=True, if several jobs are meant.",
        "Some rows of jobs have a 'workplace' not in workplaces. Add the workplace or drop the rows.",
        "Some rows of jobs have a 'worker' not in workers. Add the worker or drop the rows.",
    ]


KEYS: dict[str, list[Any]] = {
    "apart": [-(2**63), -65, -64, -1, 0, 1, 63, 64, 127, 2**63 - 1, 128, 32],
    "one of them null": [None, 0, 1, 31, 32, 33, 63, 64, 65, 95, 96, 128],
    "two nulls": [None, None, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    "twice in a word": [5, 6, 7, 8, 9, 10, 11, 5, 12, 13, 14, 15],
    "texts": [*"abcdefghijkl"],
    "a text twice": [*"abcdefghijka"],
}


def test_a_key_that_repeats_is_found_whatever_it_is(into: Any) -> None:
    """Also where an engine has whole numbers in the bits of others: at the ends of words, below zero, null."""
    frame = open_frame(into(pa.table(KEYS), "keys"))
    found = {name for name in KEYS if tally(repetitions(frame, name), {"n": MORE}, step="keys")["n"]}
    assert found == {name for name, values in KEYS.items() if len({*values}) < len(values)}


MORE = (nw.col("rows") > nw.col("values")).any()


def test_an_establishment_in_two_cells_is_refused(into: Any, tables: Any, schema: Schema) -> None:
    rows = tables["jobs"].to_pylist()
    rows[0]["state"] = "37" if rows[0]["state"] != "37" else "01"
    rows.append(dict(rows[0], worker=1))
    rows[0]["state"] = "06"
    moved = pa.Table.from_pylist(rows, tables["jobs"].schema)
    with pytest.raises(DataError, check=about("source")):
        read_jobs(into(moved, "jobs"), schema=schema)


def test_an_empty_table_is_refused(into: Any, tables: Any, schema: Schema) -> None:
    jobs = read_jobs(into(tables["jobs"], "jobs"), schema=schema)
    nobody = jobs.table.filter(nw.col("sex") == "nobody")
    with pytest.raises(DataError, check=about("source")):
        read_jobs(nobody, schema=schema)


@pytest.mark.parametrize(
    "name",
    ["duckdb", "memory", pytest.param("spark", marks=pytest.mark.spark)],
)
def test_what_is_kept_is_read_again(name: Any, tables: dict[str, pa.Table], request: pytest.FixtureRequest) -> None:
    engine = request.getfixturevalue("spark") if name == "spark" else engines.open(name)
    jobs = engine.read(tables["jobs"], name="jobs")
    firms = engine.keep(jobs.group_by("workplace").agg(nw.len().alias("n")), "firms")
    large = engine.keep(firms.filter(nw.col("n") > 5), "large")
    again = engine.keep(engine.read("firms").filter(nw.col("n") <= 5), "firms")
    sizes = sorted(tables["jobs"].group_by("workplace").aggregate([([], "count_all")])["count_all"].to_pylist())
    counts = [collect(frame.sort("n"), step="sizes")["n"].to_pylist() for frame in (firms, large, again)]
    assert counts == [sizes, [n for n in sizes if n > 5], [n for n in sizes if n <= 5]]
    assert collect(engine.read("firms").sort("n"), step="sizes")["n"].to_pylist() == counts[2]
    held = engine.keep(nw.from_native(tables["workplace"]).lazy(), "workplace")
    assert held.implementation is jobs.implementation
    assert len(collect(held, step="kept from memory")) == 40
    if name != "spark":
        engine.close()


def test_a_failure_is_named_after_its_step_and_quotes_no_data(into: Any, tables: dict[str, pa.Table]) -> None:
    jobs = open_frame(into(tables["jobs"], "jobs"))
    with pytest.raises(EngineError) as caught, working("sum of a text"):
        collect(jobs.select(nw.col("education").cast(nw.Int64).sum()), step="sum of a text")
    assert "Step 'sum of a text' failed" in str(caught.value)
    assert not any(word in str(caught.value) for word in ("college", "school"))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_worker_is_one_job_of_an_establishment_in_every_engine(
    into: Any, tables: Any, schema: Schema, loop: Any, as_loop: Any
) -> None:
    """Rows that repeat a worker at an establishment count once; the same worker elsewhere is another job."""
    rows = tables["jobs"].to_pylist()
    second = next(row for row in rows if row["workplace"] != rows[0]["workplace"])
    worker = [*schema.worker_attributes, "worker"]
    elsewhere = {**second, **{name: rows[0][name] for name in worker}}
    several = pa.Table.from_pylist([*rows, *[rows[0]] * 19, elsewhere, elsewhere], tables["jobs"].schema)
    jobs = read_jobs(into(several, "jobs"), schema=schema, allow_multiple=2)
    found = cell_statistics(jobs, workplace_by=["state"], worker_by=["sex"])
    firms = list({row["workplace"]: row for row in rows}.values())
    assert as_loop(found) == loop([*rows, elsewhere], firms, ["state"], ["sex"], {})


def without_value(table: pa.Table, column: str) -> pa.Table:
    rows = table.to_pylist()
    return pa.Table.from_pylist([{**rows[0], column: None}, *rows[1:]], table.schema)


def with_value(table: pa.Table, column: str, value: Any) -> pa.Table:
    rows = table.to_pylist()
    return pa.Table.from_pylist([*rows[:-1], {**rows[-1], column: value}], table.schema)


DAMAGES: dict[str, Callable[[pa.Table, pa.Table], tuple[pa.Table, pa.Table | None]]] = {
    "nothing": lambda jobs, list_: (jobs, list_),
    "no list": lambda jobs, list_: (jobs, None),
    "no key": lambda jobs, list_: (without_value(jobs, "workplace"), list_),
    "no category": lambda jobs, list_: (without_value(jobs, "sex"), list_),
    "another category": lambda jobs, list_: (with_value(jobs, "education", "doctor"), list_),
    "an unknown workplace": lambda jobs, list_: (with_value(jobs, "workplace", 1), list_),
    "a worker twice": lambda jobs, list_: (pa.concat_tables([jobs, jobs.slice(7, 1)]), list_),
    "another state than the list's": lambda jobs, list_: (with_value(jobs, "population", 5), list_),
    "two cells of one workplace": lambda jobs, list_: (with_value(jobs, "population", 5), None),
    "no sector in the list": lambda jobs, list_: (jobs, without_value(list_, "sector")),
    "a workplace twice in the list": lambda jobs, list_: (jobs, pa.concat_tables([list_, list_.slice(3, 1)])),
    "no row": lambda jobs, list_: (jobs.slice(0, 0), list_),
}


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_one_query_tells_whether_rows_are_sound(
    engine: str, tables: Any, schema: Schema, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds a fault wherever the queries that name faults do, and no other."""
    own = request.getfixturevalue("spark") if engine == "spark" else engines.open("duckdb")
    plain = pa.schema([(name, pa.string() if name == "state" else tables["jobs"].schema.field(name).type)
                       for name in tables["jobs"].column_names])  # fmt: skip
    asked = []
    monkeypatch.setattr(row_checks, "collect", lambda frame, *, step: asked.append(step) or collect(frame, step=step))
    for name, damage in DAMAGES.items():
        rows, listed = damage(tables["jobs"].cast(plain), tables["workplace"])
        jobs = read_jobs(rows, workplaces=listed, schema=schema, engine=own, validate=False)
        asked.clear()
        whole = row_checks.sound([*jobs.passes_of_lists(), *jobs.passes(sound_lists=True)])
        assert len(asked) == 1
        assert whole == (name in ("nothing", "no list")), name
        if whole and engine == "spark":
            jobs.validate()
            assert len(asked) == 2, "the check of sound rows is one query"
        elif whole:
            jobs.validate()
        elif engine != "spark" or name in ("a workplace twice in the list", "another category"):
            with pytest.raises(DataError):
                jobs.validate()
