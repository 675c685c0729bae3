"""One attribute, one type: a code is text from the reader on, in every table, file and page of a release."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.plan.run import run
from discreet.publication.publish import FORMATS, publish_files
from discreet.publication.site import site
from discreet.release.folder import open_releases
from discreet.review.verdict import verify_bundle
from discreet.words.errors import DataError, PlanError
from faults_of import about

RNG = np.random.default_rng(11)
COUNTY = RNG.integers(8, 13, 60)
ROWS = pa.table(
    {
        "workplace": np.arange(60),
        "naics": RNG.choice([1111, 1112, 2361], 60),
        "county": COUNTY,
        "town": COUNTY,
        "state": COUNTY // 10 + 1,
        "kind": RNG.integers(1, 3, 60),
        "n": RNG.geometric(0.1, 60),
    }
)
LEVELS = {"naics": "naics2", "county": "zone", "town": "state"}
"""A level above each code: by prefix, by lookup and by a column of its own."""

PLAN = """
[data]
source = "{source}"
[data.schema]
workplace_attributes = ["naics", "county", "town", "state", "kind"]
worker_attributes = {{}}
size = "n"
[hierarchy]
places = ["town", "state"]
industry = {{ levels = ["naics", "naics2"], prefix = [4, 2] }}
area = {{ levels = ["county", "zone"], lookup = "{lookup}" }}
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 12
ledger = "ledger.db"
dataset = "codes"
{releases}
[output]
folder = "out"
formats = {formats}
"""
RELEASES = """
[[release]]
name = "drawn-{coarse}"
kind = "count"
by = ["{coarse}", "kind"]
where = {{ kind = [1, 2] }}
mechanism = "polynomial"
epsilon = 2
[[release]]
name = "levels-{coarse}"
kind = "counts"
tables = [["{fine}", "kind"], ["{coarse}", "kind"], ["{coarse}"]]
measure = "finest"
epsilon = 2
"""
ORDERED = {"naics2": ["11", "23"], "zone": ["9", "10", "11"], "state": ["1", "2"]}


def write_plan(folder: Path, source: str, *, lookup: str = "zones.csv", formats: str = '["csv"]') -> Path:
    releases = "".join(RELEASES.format(fine=fine, coarse=coarse) for fine, coarse in LEVELS.items())
    plan = folder / "plan.toml"
    plan.write_text(PLAN.format(source=source, lookup=lookup, formats=formats, releases=releases))
    return plan


def typed(kind: pa.DataType) -> pa.Table:
    return ROWS.cast(
        pa.schema([(name, pa.int64() if name in ("workplace", "n") else kind) for name in ROWS.schema.names])
    )


def write_csv(folder: Path) -> str:
    pyarrow.csv.write_csv(ROWS, folder / "jobs.csv")
    return "jobs.csv"


def write_parquet(table: pa.Table) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        pq.write_table(table, folder / "jobs.parquet")
        return "jobs.parquet"

    return write


def write_duckdb(folder: Path) -> str:
    rows = ROWS
    with duckdb.connect(str(folder / "jobs.duckdb")) as connection:
        connection.execute("CREATE TABLE jobs AS SELECT * FROM rows")
    assert len(rows)
    return "jobs.duckdb::jobs"


def coded(table: pa.Table) -> pa.Table:
    """Every code as Arrow's dictionary of numbers."""
    columns = {
        n: table[n] if n in ("workplace", "n") else table[n].combine_chunks().dictionary_encode()
        for n in table.column_names
    }
    return pa.table(columns)


SOURCES: dict[str, Callable[[Path], str]] = {
    "csv": write_csv,
    "int64": write_parquet(ROWS),
    "int32": write_parquet(typed(pa.int32())),
    "text": write_parquet(typed(pa.string())),
    "dictionary": write_parquet(coded(ROWS)),
    "duckdb": write_duckdb,
}


def zones(folder: Path) -> None:
    table = pa.table({"county": list(range(8, 13)), "zone": [9, 9, 10, 10, 11]})
    pyarrow.csv.write_csv(table, folder / "zones.csv")
    pq.write_table(table, folder / "zones.parquet")


@pytest.mark.parametrize("source", SOURCES)
def test_drawn_and_summed_tables_have_one_type_and_are_published(source: str, tmp_path: Path) -> None:
    zones(tmp_path)
    formats = '["csv"]' if source == "int32" else '["parquet", "csv"]'
    lookup = "zones.parquet" if source == "csv" else "zones.csv"
    done = run(write_plan(tmp_path, SOURCES[source](tmp_path), lookup=lookup, formats=formats))
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]

    codes = {*LEVELS, *LEVELS.values(), "kind"}
    read = {of.name: of.read() for known in open_releases(tmp_path / "out") for of in known.tables()}
    for coarse in LEVELS.values():
        drawn, summed = read[f"drawn-{coarse}"], read[f"levels-{coarse}-2-{coarse}-kind"]
        joined = drawn.join(summed, [coarse, "kind"], join_type="inner", right_suffix=" too")
        assert len(joined) == len(drawn) == len(summed)
        assert read[f"levels-{coarse}-3-{coarse}"][coarse].to_pylist() == ORDERED[coarse], "9 is before 10"
    written = [pq.read_schema(path) for path in (tmp_path / "out").rglob("*.parquet")]
    kinds = {f.type for schema in [*written, *(t.schema for t in read.values())] for f in schema if f.name in codes}
    assert kinds == {pa.string()}

    published = tmp_path / "site" / "downloads"
    if source == "int64":
        site(tmp_path / "out", tmp_path / "site", formats=[*FORMATS])
    else:
        publish_files(tmp_path / "out", published, formats=[*FORMATS])
    for path in published.glob("*.parquet"):
        assert pq.read_table(path).equals(read[path.stem]), path
    told = json.loads((published / "csv-metadata.json").read_text())["tables"]
    columns = [column for table in told for column in table["tableSchema"]["columns"]]
    assert {column["datatype"] for column in columns if column["name"] in codes} == {"string"}


KINDS_OF_DOMAINS = {
    "numbers": ([1, 2], [1, 2]),
    "numbers, and text in the data": ([1, 2], ["1", "2"]),
    "text, and numbers in the data": (["1", "2"], [1, 2]),
    "true and false": ([True, False], [True, False]),
    "true and false as text in the data": ([True, False], ["true", "false"]),
}


@pytest.mark.parametrize("which", KINDS_OF_DOMAINS)
def test_a_domain_means_its_codes_whatever_it_is_written_as(which: str) -> None:
    domain, values = KINDS_OF_DOMAINS[which]
    rows = {"workplace": ["a", "a", "b"], "worker": [1, 2, 3], "sex": [values[0], values[1], values[0]]}
    jobs = dc.read_jobs(rows, schema=dc.Schema([], {"sex": domain}))
    session = dc.Session(jobs, unit=dc.Establishments(alpha=0.1), budget=1e6)
    table = session.count("sex").release(epsilon=5e5, mechanism="polynomial").to_arrow()
    codes = [str(value).lower() for value in domain]
    assert dict(zip(table["sex"].to_pylist(), table["count"].to_pylist(), strict=True)) == dict(
        zip(codes, (2, 1), strict=True)
    )
    for asked in (domain[1], codes[1], [domain[1]]):
        assert session.count("sex", where={"sex": asked}).levels == 1


@pytest.mark.parametrize(
    ("column", "values", "domain"),
    [
        ("sex", [1, 2], ["01", "02"]),
        ("sex", [1, 1], ["1", "02"]),  # whatever the rows hold
        ("sex", [1, 2], ["f", "m"]),
        ("sex", [1, 2], ["1", "2.0"]),
        ("sex", [1, 0], [True, False]),
        ("sex", [True, False], ["yes", "no"]),
        ("sex", ["01", "02"], [1, 2]),
        ("sex", [1.0, 2.0], [1, 2]),
        ("place", [1.0, 2.0], ["f", "m"]),
    ],
)
def test_codes_that_cannot_be_meant_are_refused_when_they_are_read(column: str, values: list, domain: list) -> None:
    rows: dict[str, list] = {"workplace": [1, 2], "worker": [1, 2], "sex": ["f", "m"], "place": ["p", "q"]}
    with pytest.raises(DataError):
        dc.read_jobs(rows | {column: values}, schema=dc.Schema(["place"], {"sex": domain}))


def test_a_filter_for_codes_of_other_spelling_finds_no_place() -> None:
    rows = {"workplace": [1, 2], "worker": [1, 2], "place": ["01", "02"]}
    session = dc.Session(
        dc.read_jobs(rows, schema=dc.Schema(["place"], {})), unit=dc.Establishments(alpha=0.1), budget=1
    )
    with pytest.raises(DataError, check=about("where.place")):
        session.count("place", where={"place": 1}).release(epsilon=1, mechanism="polynomial")
    assert str(session.remaining) == "epsilon=1"


@pytest.mark.parametrize("codes", [["08", "09", "10", "11", "12"], ["8.0", "9.0", "10.0", "11.0", "12.0"]])
def test_numbers_do_not_meet_codes_with_zeros(codes: list[str], tmp_path: Path) -> None:
    """They did before: sums then had other codes than the lookup."""
    write_parquet(ROWS)(tmp_path)
    (tmp_path / "zones.csv").write_text("county,zone\n" + "".join(f"{code},z\n" for code in codes))
    plan = write_plan(tmp_path, "jobs.parquet")
    with pytest.raises(PlanError, check=about("hierarchy.area")):
        run(plan)
    assert not (tmp_path / "ledger.db").exists()


def test_zeros_are_kept(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("workplace,worker,place\n1,1,007\n2,2,7\n3,3,10\n")
    jobs = dc.read_jobs(tmp_path / "jobs.csv", schema=dc.Schema(["place"], {}))
    session = dc.Session(jobs, unit=dc.Establishments(alpha=0.1), budget=1)
    table = session.count("place").release(epsilon=1, mechanism="polynomial")
    assert table.to_arrow()["place"].to_pylist() == ["007", "7", "10"]


PERIODS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda rows: rows,
    "pandas categorical": lambda rows: rows.astype({"opened": "category"}),
    "arrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("frame", PERIODS)
def test_a_period_of_pandas_is_its_spelling(frame: str) -> None:
    """And not how many quarters lie between it and 1970, which Arrow holds."""
    opened = pd.PeriodIndex(["2024Q1", "2024Q1", "2024Q2"], freq="Q")
    rows = PERIODS[frame](pd.DataFrame({"workplace": [1, 1, 2], "worker": [1, 2, 3], "opened": opened}))
    jobs = dc.read_jobs(rows, schema=dc.Schema(["opened"], {}))
    session = dc.Session(jobs, unit=dc.Establishments(alpha=0.1), budget=1)
    table = session.count("opened").release(epsilon=1, mechanism="polynomial").to_arrow()
    assert table["opened"].to_pylist() == ["2024Q1", "2024Q2"]
    with pytest.raises(DataError):
        dc.read_jobs(PERIODS[frame](pd.DataFrame({"workplace": [1], "worker": [1], "opened": [pd.NaT]}).astype(
            {"opened": "period[Q]"})), schema=dc.Schema(["opened"], {}))  # fmt: skip


@pytest.mark.parametrize("kept", [["2"], [2], "2"])
def test_codes_that_are_kept_are_found_however_they_were_declared(kept: Any) -> None:
    """Reports, manifests and the reviewer's tables have these kinds of workers and no others."""
    schema = dc.Schema([], {"sex": [1, 2, 3], "staff": [True, False]})
    rows = {"workplace": [1, 2], "worker": [1, 2], "sex": [1, 2], "staff": [True, False]}
    session = dc.Session(dc.read_jobs(rows, schema=schema), unit=dc.Establishments(alpha=0.1), budget=1)
    where = session.count(["sex", "staff"], where={"sex": kept, "staff": [True]}).where
    assert schema.domain("sex").among(where["sex"]) == ("2",)
    assert schema.domain("staff").among(where["staff"]).declared == (True,)
    assert schema.domain("sex").among(None) == ("1", "2", "3")
