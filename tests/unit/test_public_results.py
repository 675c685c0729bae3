"""What a release gives away is public to the last object that it reaches: no row, no frame, no aggregate, no path.

For every door (`release_doors`, listed from the registries) the data carry marks, and the objects that the result, its
check and its guarantee reach are walked, closures and caches included.
"""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import types
import warnings
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
import release_doors
from discreet.privacy.losses import Pure
from discreet.release.account import Account
from discreet.tables import query
from discreet.tables.cells import Cells
from discreet.tables.intervals import widths
from plan.conftest import write_two_sources

MARK = "zq7-confidential"
NUMBER = 1.73205080756
ENGINES = ("duckdb", "_duckdb", "polars", "pandas", "pyspark", "sqlalchemy", "sqlite3")


def reached(root: Any) -> Iterator[tuple[Any, str]]:
    """Every object that a value holds on to, with the way there; not the code that the process has loaded."""
    loaded = {id(vars(module)) for module in list(sys.modules.values()) if hasattr(module, "__dict__")}
    seen, waiting = {id(root)}, [(root, type(root).__name__)]
    while waiting:
        one, way = waiting.pop()
        yield one, way
        for other in gc.get_referents(one):
            if id(other) in seen or id(other) in loaded or isinstance(other, type | types.ModuleType | types.CodeType):
                continue
            seen.add(id(other))
            waiting.append((other, f"{way} > {getattr(other, '__qualname__', type(other).__name__)}"))


def confidential(one: Any, readings: set[int]) -> bool:
    """Whether an object is of the data: a frame of an engine, an aggregate that was read, or one with a mark."""
    if id(one) in readings or isinstance(one, Cells) or type(one).__module__.split(".")[0] in ENGINES:
        return True
    if type(one).__module__.startswith("narwhals") and hasattr(one, "collect_schema"):
        return True
    if isinstance(one, str | bytes):
        return (MARK if isinstance(one, str) else MARK.encode()) in one
    if isinstance(one, float):
        return one == NUMBER
    if isinstance(one, np.ndarray) and one.dtype.kind in "fOU":
        return MARK in map(str, one.ravel()) or (one.dtype.kind == "f" and bool((one == NUMBER).any()))
    if isinstance(one, pa.Table | pa.RecordBatch):
        return any(confidential(column, readings) for column in one.columns)
    if isinstance(one, pa.Array | pa.ChunkedArray):
        return any(value == NUMBER or MARK in str(value) for value in one.to_pylist())
    return False


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Data with a mark in what is confidential: workers, amounts, responses, and where the files are."""
    folder, rows = tmp_path / MARK, release_doors.rows()
    folder.mkdir()

    def kept(name: str, table: dict[str, Any]) -> Path:
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
        return folder / f"{name}.parquet"

    jobs = release_doors.JOBS | {"worker": [f"{MARK}{i}" for i in range(13)], "pay": [NUMBER] * 13}
    history = release_doors.HISTORY | {"worker": [f"{MARK}{i}" for i in release_doors.HISTORY["worker"]]}
    places, schema = release_doors.PLACES, release_doors.SCHEMA
    monkeypatch.setattr(
        release_doors, "jobs", lambda: dc.read_jobs(kept("jobs", jobs), workplaces=dict(places), schema=schema)
    )
    marks = {"y": np.where(np.arange(len(rows["y"])) % 2, rows["y"], NUMBER)}
    monkeypatch.setattr(release_doors, "rows", lambda: rows | marks)
    monkeypatch.setattr(
        release_doors,
        "histories",
        lambda: dc.read_histories(
            kept("histories", history),
            quarters=["q1", "q2", "q3"],
            workplaces=dict(places),
            schema=dc.Schema(["place"], {}),
        ),
    )


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The numbers of the objects that offers read; they are kept alive, so that no other gets one."""
    known: list[Any] = []
    found: set[int] = set()
    release = Account.release

    def reading(account: Account, offer: Any, data: Any, **named: Any) -> Any:
        ready = offer.at(data)
        known.append(ready.read(None))
        arrays = [one for one, _ in reached(known[-1]) if isinstance(one, np.ndarray) and one.dtype.kind in "iuf"]
        public = getattr(known[-1], "establishments", None)  # how many there are
        found.update(id(one) for one in arrays if one is not public)
        found.update([id(known[-1])] * (type(known[-1]).__module__ != "builtins"))
        known.extend(arrays)
        return release(account, ready, None, **named)

    monkeypatch.setattr(Account, "release", reading)
    return found


def same(one: Any, other: Any) -> bool:
    """Whether two values are alike to the last part, whatever their classes say about equality."""
    if callable(one) and is_dataclass(one):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, pa.Table):
        return bool(one.equals(other))
    if is_dataclass(one) and not isinstance(one, type):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and one != one:
        return bool(other != other)
    return bool(one == other)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two shares for sizes are compared in place of five: each has noise to be solved for."""
    monkeypatch.setattr(widths, "SHARES", ("0", "1/20"))
    monkeypatch.setattr(query, "part", lru_cache(query.part))


@pytest.mark.usefixtures("quick", "marked")
@pytest.mark.parametrize("name", release_doors.doors())
def test_a_result_reaches_nothing_confidential_and_pickles(name: str, readings: set[int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        budget = release_doors.BUDGETS.get(name, Pure(200))
        done = release_doors.doors()[name](ledger=None, dataset=None, budget=budget, name="r")
    assert readings, "nothing was read"
    assert {way for one, way in reached(done) if confidential(one, readings)} == set()
    for again in (pickle.loads(pickle.dumps(done)), copy.deepcopy(done)):
        assert same(again, done), name
        assert repr(again) == repr(done) and str(again) == str(done)
        assert again.guarantee == done.guarantee and again.entry == done.entry
        assert again.to_arrow().equals(done.to_arrow()) if hasattr(done, "to_arrow") else True
    told = [repr(done), str(done), repr(done.entry), str(done.guarantee), str(done.entry.to_dict())]
    told += [str(done.to_dict())] if hasattr(done, "to_dict") else []
    told += [str(done.check), str(done.check.to_dict())] if getattr(done, "check", None) is not None else []
    assert not any(MARK in text or str(NUMBER) in text for text in told)


@pytest.mark.usefixtures("marked")
def test_the_walk_finds_what_it_looks_for() -> None:
    """The power of the test above: a result that keeps its query, its rows or an aggregate in a closure is found."""
    session = dc.Session(release_doors.jobs(), unit=release_doors.STRONG, budget=4)
    query = session.count("place")
    cells = query.statistics(query.prepare(epsilon=2))
    for held in (query, session.jobs, cells, {"rows": release_doors.rows()["y"]}, [f"{MARK}3"]):
        assert any(confidential(one, set()) for one, _ in reached(lambda held=held: held)), held


def test_what_a_plan_says_reaches_no_rows(tmp_path: Path) -> None:
    plan = write_two_sources(tmp_path / "toys")
    checked, done = dc.check_plan(plan), dc.run_plan(plan)
    for found in (checked, done):
        assert {way for one, way in reached(found) if isinstance(one, Cells) or hasattr(one, "collect_schema")} == set()
    assert pickle.loads(pickle.dumps(dict(done.publications))) == done.publications
