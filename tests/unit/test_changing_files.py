"""Files that change between the check of their rows and a release, by Python: found, and nothing is spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.release.account import Account
from discreet.release.offer import Offer
from discreet.words.errors import DataError

SCHEMA = dc.Schema(["place"], {"sex": ["F", "M"]})
JOBS = pa.table(
    {
        "workplace": [f"w{i % 20}" for i in range(400)],
        "worker": list(range(400)),
        "place": ["a" if i % 20 < 10 else "b" for i in range(400)],
        "sex": ["F", "M"] * 200,
    }
)
OTHERS = JOBS.set_column(1, "worker", pa.array([1] * 400))  # a check would refuse them


def into_duckdb(table: pa.Table, path: Path) -> None:
    new = path.with_suffix(".new")
    with duckdb.connect(str(new)) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE jobs AS FROM rows")
    new.replace(path)


def one_more(table: pa.Table, path: Path) -> None:
    path.mkdir(exist_ok=True)
    pq.write_table(table, path / f"{len(list(path.iterdir()))}.parquet")


KINDS: dict[str, tuple[str, Callable[[pa.Table, Path], None]]] = {
    "a Parquet file": ("jobs.parquet", pq.write_table),
    "a CSV file": ("jobs.csv", csv.write_csv),
    "a folder with a new file": ("jobs", one_more),
    "a DuckDB file that is replaced": ("jobs.duckdb::jobs", into_duckdb),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def spent(ledger: Path) -> list[str]:
    with dc.Ledger.open(ledger, read_only=True) as book:
        return [str(budget.spent) for budget in book.budgets()]


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_that_change_after_their_check_are_found(kind: str, ledger: Path, tmp_path: Path) -> None:
    name, write = KINDS[kind]
    path = tmp_path / name.partition("::")[0]
    write(JOBS, path)
    where = str(tmp_path / name)
    unit, opened = dc.Establishments(alpha=0.1), {"budget": 8, "ledger": ledger, "dataset": "jobs"}
    session = dc.Session(dc.read_jobs(where, schema=SCHEMA), unit=unit, **opened)
    session.count(by=["place"]).release(epsilon=2)
    write(OTHERS, path)
    with pytest.raises(DataError) as refused:
        session.count(by=["place"]).release(epsilon=2)
    assert refused.value.faults[0].about == "source" and spent(ledger) == ["epsilon=2"]
    with pytest.raises(DataError) as refused:  # the new rows are what is read again
        dc.read_jobs(where, schema=SCHEMA)
    assert "'worker'" in str(refused.value)


def test_a_list_that_changes_after_its_check_is_found(ledger: Path, tmp_path: Path) -> None:
    pq.write_table(JOBS.drop_columns(["place"]), tmp_path / "jobs.parquet")
    places = pa.table({"workplace": [f"w{i}" for i in range(20)], "place": ["a", "b"] * 10})
    pq.write_table(places, tmp_path / "places.parquet")
    jobs = dc.read_jobs(tmp_path / "jobs.parquet", workplaces=tmp_path / "places.parquet", schema=SCHEMA)
    session = dc.Session(jobs, unit=dc.Establishments(alpha=0.1), budget=8, ledger=ledger, dataset="jobs")
    pq.write_table(places.slice(0, 10), tmp_path / "places.parquet")
    with pytest.raises(DataError) as refused:
        session.count(by=["place"]).release(epsilon=2)
    assert refused.value.faults[0].about == "workplaces" and spent(ledger) == ["epsilon=0"]


def test_rows_of_a_model_that_change_while_they_are_read_are_found(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    rows = pa.table({"y": rng.normal(size=400).clip(-3, 3), "x": rng.normal(size=400), "g": ["a", "b"] * 200})
    pq.write_table(rows, tmp_path / "rows.parquet")
    release = Account.release

    def changing(self: Account, offer: Offer[Any, Any, Any], data: object, *, name: str | None = None) -> object:
        pq.write_table(rows.slice(1), tmp_path / "rows.parquet")
        return release(self, offer, data, name=name)

    monkeypatch.setattr(Account, "release", changing)
    with pytest.raises(DataError) as refused:
        dc.release_mixed(
            "y ~ x + (1 | g)", tmp_path / "rows.parquet", epsilon=2, bounds=(-3, 3), public=["x", "g"],
            ledger=ledger, dataset="rows", budget=4,
        )  # fmt: skip
    assert refused.value.faults[0].about == "data" and spent(ledger) == ["epsilon=0"]
