"""One small table of jobs, every way to hand it over, and a loop in plain Python that says what must come out."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from discreet.data import engines
from discreet.data.schema import Schema

SPARK = pytest.param("spark", marks=pytest.mark.spark)
MEMORY = ["memory-arrow", "memory-pandas", "memory-polars"]
DUCKDB = ["arrow", "pandas", "polars", "relation", "parquet", "csv", "duckdb-file"]

Into = Callable[[pa.Table, str], Any]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[engines.Engine]:
    pytest.importorskip("pyspark", reason="needs discreet[spark]")
    if shutil.which("java") is None:
        pytest.skip("needs Java 17")
    scratch = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",  # of queries that run once, compiling is most of the work
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    }
    with engines.open("spark", master="local[2]", memory="512m", settings=settings) as engine:
        yield engine


@pytest.fixture(params=[*MEMORY, *DUCKDB, SPARK])
def into(request: pytest.FixtureRequest, tmp_path: Path) -> Into:
    """Hands an Arrow table to the engine under test: as a frame of its own kind, or as a file."""
    if request.param == "spark":
        engine = request.getfixturevalue("spark")
        return lambda table, name: engine.read(table, name=name).to_native()
    connection = duckdb.connect()

    def write_csv(table: pa.Table, name: str) -> str:
        plain = pa.table([column.cast(pa.string()) for column in table.columns], names=table.column_names)
        with pa.CompressedOutputStream(tmp_path / f"{name}.csv.gz", "gzip") as out:
            csv.write_csv(plain, out, csv.WriteOptions(quoting_style="none"))
        return str(tmp_path / f"{name}.csv.gz")

    def write_parquet(table: pa.Table, name: str) -> Path:
        parquet.write_table(table, tmp_path / f"{name}.parquet")
        return tmp_path / f"{name}.parquet"

    def write_duckdb(table: pa.Table, name: str) -> str:
        with duckdb.connect(tmp_path / f"{name}.duckdb") as file:
            file.from_arrow(table).create(name)
        return f"{tmp_path / name}.duckdb::{name}"

    ways: dict[str, Into] = {
        "memory-arrow": lambda table, _: nw.from_native(table),
        "memory-pandas": lambda table, _: nw.from_native(table.to_pandas()),
        "memory-polars": lambda table, _: pl.from_arrow(table).lazy(),
        "arrow": lambda table, _: table,
        "pandas": lambda table, _: table.to_pandas(),
        "polars": lambda table, _: pl.from_arrow(table),
        "relation": lambda table, _: connection.from_arrow(table),
        "parquet": write_parquet,
        "csv": write_csv,
        "duckdb-file": write_duckdb,
    }
    return ways[request.param]


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema(
        workplace_attributes=["state", "sector", "population"],
        worker_attributes={"sex": ["female", "male"], "education": ["none", "school", "college"]},
    )


@pytest.fixture(scope="session")
def tables(schema: Schema) -> dict[str, pa.Table]:
    """300 jobs at 40 establishments, three of which have none. States are codes with a leading zero, or without."""
    rng = np.random.default_rng(20170514)
    firms = np.arange(40) * 7 + 100
    state, sector = rng.choice(["01", "06", "37"], 40), rng.choice(["11", "31-33", "92"], 40)
    at = np.concatenate([np.arange(37), rng.choice(37, 263, p=rng.dirichlet(np.full(37, 0.5)))])
    worker = rng.permutation(300) + 5000
    workers = {name: rng.choice(domain, 300) for name, domain in schema.worker_attributes.items()}
    labels = pa.dictionary(pa.int8(), pa.string())
    workplaces = {
        "workplace": pa.array(firms),
        "state": pa.array(state, pa.string()).cast(labels),
        "sector": pa.array(sector, pa.string()),
        "population": pa.array(np.where(state == "06", 900, 1_000_000)),
    }
    job = pa.table({"worker": worker, "workplace": firms[at]})
    attributes = {name: pa.array(values, pa.string()).cast(labels) for name, values in workers.items()}
    return {
        "job": job,
        "worker": pa.table({"worker": pa.array(worker), **attributes}),
        "workplace": pa.table(workplaces),
        "jobs": pa.table(
            {
                **{name: job[name] for name in job.column_names},
                **{name: column.take(pa.array(at)) for name, column in workplaces.items() if name != "workplace"},
                **attributes,
            }
        ),
    }


Loop = Callable[..., dict[tuple[Any, ...], tuple[list[int], list[int], int, int]]]


@pytest.fixture(scope="session")
def loop(schema: Schema) -> Loop:
    """Cells counted one job at a time: key -> counts by level, largest by level, largest workforce, establishments."""

    def count(
        rows: list[dict[str, Any]],
        firms: list[dict[str, Any]],
        workplace_by: list[str],
        worker_by: list[str],
        where: dict[str, list[Any]],
        size: str | None = None,
    ) -> dict[tuple[Any, ...], tuple[list[int], list[int], int, int]]:
        domains = {**schema.worker_attributes, **where}
        levels = list(itertools.product(*(domains[name] for name in worker_by)))
        attributes = schema.worker_attributes
        jobs: dict[Any, Counter[tuple[Any, ...]]] = defaultdict(Counter)
        workforce: Counter[Any] = Counter()
        for row in rows:
            workforce[row["workplace"]] += row[size] if size else 1
            if all(row[name] in where[name] for name in where if name in attributes):
                jobs[row["workplace"]][tuple(row[name] for name in worker_by)] += row[size] if size else 1
        cells: dict[tuple[Any, ...], list[Counter[tuple[Any, ...]]]] = defaultdict(list)
        whole: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for firm in firms:
            if all(firm[name] in where[name] for name in where if name not in attributes):
                key = tuple(firm[name] for name in workplace_by)
                cells[key].append(jobs[firm["workplace"]])
                whole[key].append(workforce[firm["workplace"]])
        return {
            tuple(str(code) for code in key): (
                [sum(firm[level] for firm in there) for level in levels],
                [max(firm[level] for firm in there) for level in levels],
                max(whole[key]),
                len(there),
            )
            for key, there in sorted(cells.items())
        }

    return count


@pytest.fixture(scope="session")
def as_loop() -> Callable[[Any], dict[tuple[Any, ...], tuple[list[int], list[int], int, int]]]:
    """Computed cells in the form of `loop`, order included."""

    def plain(cells: Any) -> dict[tuple[Any, ...], tuple[list[int], list[int], int, int]]:
        keys = zip(*(column.to_pylist() for column in cells.keys.columns), strict=True) if cells.keys.columns else [()]
        parts = (cells.counts, cells.largest, cells.largest_total, cells.establishments)
        rows = zip(*(part.tolist() for part in parts), strict=True)
        return dict(zip(keys, rows, strict=False)) if len(cells.counts) else {}

    return plain
