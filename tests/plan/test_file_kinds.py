"""A plan on kinds of files that odd worlds do not have: the same rows, and a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from discreet.plan.confidential import Confidential
from discreet.plan.reading import read_plan
from discreet.plan.run import run

KINDS = {
    "parts": "COPY jobs TO '{folder}/parts' (FORMAT parquet, PARTITION_BY (sex))",
}


@pytest.mark.parametrize("place", KINDS)
def test_a_plan_reads_the_same_jobs_from_every_kind_of_file(
    place: str, toys: Callable[[Path], Path], tmp_path: Path
) -> None:
    plan = toys(tmp_path)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE jobs AS FROM '{tmp_path}/data/jobs.parquet'")
        for statement in KINDS[place].format(folder=tmp_path).split("; "):
            connection.execute(statement)
        expected = connection.execute("SELECT workplace, worker, sex FROM jobs ORDER BY worker").fetchall()
    plan.write_text(plan.read_text().replace("data/jobs.parquet", place))
    [source] = read_plan(plan).sources
    frame = Confidential(source).jobs().frame.select("workplace", "worker", "sex").collect("pyarrow").to_native()
    rows = sorted(frame.to_pylist(), key=lambda row: int(row["worker"]))
    assert [(int(row["workplace"]), int(row["worker"]), row["sex"]) for row in rows] == expected
    assert len(run(plan, dry_run=True).check.releases) == 3
