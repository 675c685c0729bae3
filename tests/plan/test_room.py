"""What Spark's memory has no room for is foreseen from public numbers, without Spark and before anything is paid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.room import memory_of


def test_a_memory_is_read_as_spark_writes_it() -> None:
    assert [memory_of(text) for text in ("512m", "2g", "1 G", "2gb", "7")] == [2**29, 2**31, 2**30, 2**31, 7]
    assert memory_of("much") is None


def _with(plan: Path, engine: str, public: str = "") -> tuple[str, ...]:
    text = plan.read_text(encoding="utf-8").replace("[unit]", f"{public}\n\n[unit]")
    plan.write_text(f"{text}\n[engine]\n{engine}\n", encoding="utf-8")
    return check(read_plan(plan)).notes


def test_room_is_told_where_the_number_of_cells_is_not_public(plan: Path) -> None:
    notes = _with(plan, "kind = 'spark'\nmemory = '64m'")
    assert len(notes) == 4  # one for every table that is read
    assert all("is not public" in note and "'64m'" in note for note in notes)


@pytest.mark.parametrize(("memory", "told"), [("1g", 0), ("1k", 4)])
def test_cells_beyond_the_memory_are_told(plan: Path, memory: str, told: int) -> None:
    listed = plan.parent / "data" / "places.parquet"
    pq.write_table(pq.read_table(listed).append_column("jobs", pa.array(np.arange(1, 41))), listed)
    notes = _with(plan, f"kind = 'spark'\nmemory = '{memory}'", "[public]\nsizes = 'data/places.parquet'")
    assert len(notes) == told
    assert all("[engine]" in note and "cells may end Spark" in note for note in notes)


def test_another_engine_has_the_disk(plan: Path) -> None:
    assert not _with(plan, "kind = 'duckdb'")
