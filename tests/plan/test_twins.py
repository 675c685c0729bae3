"""Two sources with the same rows under two budgets: the owner is warned, whatever the copy looks like."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet.plan.owner import owner_notes
from discreet.plan.reading import read_plan

PLAN = """
[source.{name}.data]
source = "{path}"
[source.{name}.data.schema]
workplace_attributes = ["place"]
worker_attributes = {{ sex = ["f", "m"] }}
unused = ["*"]
[source.{name}.unit]
kind = "establishments"
alpha = 0.1
[source.{name}.budget]
epsilon = 4
ledger = "ledger.db"
dataset = "{dataset}"
[[release]]
source = "{name}"
name = "{name}-places"
kind = "count"
by = ["place"]
epsilon = 1
"""
ROWS = {"workplace": [1, 1, 2, 2, 3], "worker": [1, 2, 3, 4, 5], "sex": list("fmfmf"), "place": list("aabbb")}


def as_sqlite(path: Path, table: pa.Table) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE jobs (workplace INTEGER, worker INTEGER, sex TEXT, place TEXT)")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        connection.executemany("INSERT INTO jobs VALUES (?, ?, ?, ?)", list(rows))
        connection.commit()


COPIES: dict[str, tuple[str, Callable[[Path, pa.Table], Any]]] = {
    "another order": ("copy.parquet", lambda path, table: pq.write_table(table.take([4, 2, 0, 1, 3]), path)),
    "a column more": ("copy.parquet", lambda p, t: pq.write_table(t.append_column("note", pa.array([""] * 5)), p)),
    "another format": ("copy.csv", lambda path, table: pyarrow.csv.write_csv(table, path)),
    "a database": ("copy.sqlite::jobs", lambda path, table: as_sqlite(Path(str(path).partition("::")[0]), table)),
}


def written(folder: Path, place: str, *, dataset: str = "second") -> Path:
    pq.write_table(pa.table(ROWS), folder / "jobs.parquet")
    plan = folder / "plan.toml"
    first = PLAN.format(name="one", path="jobs.parquet", dataset="first")
    plan.write_text(first + PLAN.format(name="two", path=place, dataset=dataset) + '[output]\nfolder = "out"\n')
    return plan


@pytest.mark.parametrize("kind", COPIES)
def test_a_copy_is_found(kind: str, tmp_path: Path) -> None:
    place, write = COPIES[kind]
    write(tmp_path / place, pa.table(ROWS))
    [note] = owner_notes(read_plan(written(tmp_path, place)))
    assert "'one'" in note and "'two'" in note and "same rows" in note


def test_other_rows_and_one_budget_are_no_copy(tmp_path: Path) -> None:
    """One row otherwise; and the same rows under one data set."""
    other = np.array(ROWS["sex"])
    other[0] = "m"
    pq.write_table(pa.table(ROWS | {"sex": other}), tmp_path / "other.parquet")
    assert owner_notes(read_plan(written(tmp_path, "other.parquet"))) == []
    pq.write_table(pa.table(ROWS), tmp_path / "copy.parquet")
    assert owner_notes(read_plan(written(tmp_path, "copy.parquet", dataset="first"))) == []


def test_the_command_tells_the_owner_alone(tmp_path: Path, command: Any) -> None:
    pq.write_table(pa.table(ROWS), tmp_path / "copy.parquet")
    plan = written(tmp_path, "copy.parquet")
    assert "same rows" not in command("check", plan)[1]
    code, out, err = command("check", plan, "--owner", "--json")
    assert code == 0, err
    assert len(json.loads(out)["owner"]) == 1
