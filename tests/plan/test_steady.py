"""Data that change: while a run reads them, and between a run that was interrupted and the one that resumes it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Ledger
from discreet.plan import run as run_module
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.plan.same_data import EarlierData
from discreet.words.errors import PlanError
from interrupted import failing_after


@pytest.fixture
def plan(toys: Callable[[Path], Path], tmp_path: Path) -> Path:
    return toys(tmp_path)


def change(plan: Path, *, name: str = "jobs") -> None:
    """One worker less, or one establishment in another place."""
    path = plan.parent / "data" / f"{name}.parquet"
    table = pq.read_table(path)
    if name == "jobs":
        pq.write_table(table.slice(1), path)
    else:
        places = pa.array(["p0", *table["place"].to_pylist()[1:]])
        pq.write_table(table.set_column(table.column_names.index("place"), "place", places), path)


def charges(plan: Path) -> int:
    if not (plan.parent / "ledger.db").exists():
        return 0
    with Ledger.open(plan.parent / "ledger.db", read_only=True) as ledger:
        return sum(entry.kind == "charge" for entry in ledger.entries())


@pytest.mark.parametrize("name", ["jobs", "places"])
@pytest.mark.parametrize("when", ["before it is read", "after it is read"])
def test_a_file_that_is_written_during_a_run_is_found_and_nothing_is_spent(
    plan: Path, name: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = run_module._read

    def changing(*given: Any) -> Any:
        if when == "before it is read":
            change(plan, name=name)
        found = read(*given)
        if when == "after it is read":
            change(plan, name=name)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "_read", changing)
        with pytest.raises(PlanError) as refusal:
            run(plan)
    assert f"[data], {'source' if name == 'jobs' else 'workplaces'}" in str(refusal.value)
    assert charges(plan) == 0
    assert not (plan.parent / "out").exists()
    assert len(run(plan).publications) == 3  # now it is whole


def as_folder(plan: Path) -> Callable[[], object]:
    """The jobs as a folder of files, which gets another one: a worker again."""
    jobs = plan.parent / "data" / "jobs.parquet"
    rows = pq.read_table(jobs)
    folder = plan.parent / "data" / "parts"
    folder.mkdir()
    jobs.rename(folder / "one.parquet")
    plan.write_text(plan.read_text().replace("data/jobs.parquet", "data/parts"))
    return lambda: pq.write_table(rows.slice(0, 1), folder / "two.parquet")


def as_database(plan: Path) -> Callable[[], object]:
    """The jobs as a table of a DuckDB file, which another takes the place of."""
    import duckdb

    jobs = pq.read_table(plan.parent / "data" / "jobs.parquet")
    file = plan.parent / "data" / "jobs.duckdb"

    def write(path: Path, rows: pa.Table) -> Path:
        with duckdb.connect(str(path)) as connection:
            connection.register("rows", rows)
            connection.execute("CREATE TABLE jobs AS FROM rows")
        return path

    write(file, jobs)
    plan.write_text(plan.read_text().replace("data/jobs.parquet", "data/jobs.duckdb::jobs"))
    return lambda: write(file.with_name("new.duckdb"), jobs.slice(1)).replace(file)


@pytest.mark.parametrize("kind", [as_folder, as_database])
def test_a_folder_with_a_new_file_and_another_database_of_the_same_name_are_found(
    plan: Path, kind: Callable[[Path], Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check of rows and the counts."""
    replace, read = kind(plan), run_module._read

    def changing(*given: Any) -> Any:
        found = read(*given)
        replace()
        return found

    monkeypatch.setattr(run_module, "_read", changing)
    with pytest.raises(PlanError) as refusal:
        run(plan)
    assert "[data], source" in str(refusal.value)
    assert charges(plan) == 0
    assert not (plan.parent / "out").exists()


def test_a_time_that_was_set_back_hides_nothing(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same name, same size, same time of writing."""
    path, read = plan.parent / "data" / "jobs.parquet", run_module._read

    def changing(*given: Any) -> Any:
        found, about, content = read(*given), path.stat(), bytearray(path.read_bytes())
        content[8] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        return found

    monkeypatch.setattr(run_module, "_read", changing)
    with pytest.raises(PlanError):
        run(plan)
    assert charges(plan) == 0


def interrupt(plan: Path, after: int = 1) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "_publish", failing_after(after))
        with pytest.raises(KeyboardInterrupt):
            run(plan)


@pytest.mark.parametrize("name", ["jobs", "places"])
def test_a_resumed_run_finds_changed_data(plan: Path, name: str) -> None:
    interrupt(plan)
    assert charges(plan) == 1
    change(plan, name=name)
    for dry in (True, False):
        with pytest.raises(PlanError) as refusal:
            run(plan, dry_run=dry)
        assert "--changed-data" in str(refusal.value)
    assert charges(plan) == 1
    assert len(run(plan, changed_data=True).publications) == 3
    assert charges(plan) == 3


def test_a_resumed_run_goes_on_with_the_same_data_wherever_they_come_from(plan: Path) -> None:
    """A copy of the same bytes, with another time and number, is no change."""
    interrupt(plan, after=2)
    path = plan.parent / "data" / "jobs.parquet"
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    assert len(run(plan).publications) == 3
    assert charges(plan) == 3


def test_a_plan_that_paid_for_nothing_takes_any_data(plan: Path) -> None:
    interrupt(plan, after=0)
    change(plan)
    assert len(run(plan).publications) == 3


def test_the_note_is_for_this_user_alone_and_goes_with_the_last_release(plan: Path) -> None:
    note = EarlierData.of(read_plan(plan)).path
    interrupt(plan)
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert stat.S_IMODE(note.parent.stat().st_mode) & 0o077 == 0
    assert not note.is_relative_to(plan.parent)
    held = [word for word in note.read_text().split('"') if len(word) == 64]
    assert len(held) == 2
    run(plan)
    assert not note.exists()
    for path in (path for path in plan.parent.rglob("*") if path.is_file()):
        assert not any(word.encode() in path.read_bytes() for word in held), path


def test_a_dry_run_notes_nothing(plan: Path) -> None:
    run(plan, dry_run=True)
    assert not EarlierData.of(read_plan(plan)).path.exists()


def test_a_note_that_cannot_be_kept_stops_nothing(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert len(run(plan).publications) == 3


def test_tables_are_the_same_whatever_the_order_of_their_rows(tmp_path: Path) -> None:
    from discreet.data.databases.moment import _fingerprint

    numbers = list(range(1000))
    table = pa.table({"a": [i % 7 for i in numbers], "b": [f"x{i}" for i in numbers]})
    others = {
        "same": table,
        "mixed": table.take(numbers[::-1]),
        "shorter": table.slice(1),
        "longer": pa.concat_tables([table, table.slice(0, 2)]),
        "swapped": pa.table({"a": [*table["a"].to_pylist()[1:], 0], "b": table["b"]}),
    }
    found = {}
    for name, each in others.items():
        pq.write_table(each, tmp_path / name)
        found[name] = _fingerprint(str(tmp_path / name))
    assert found["same"] == found["mixed"]
    assert len(set(found.values())) == 4


def test_a_plan_has_one_note_however_it_is_named(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red before: `cd` into its folder, `run plan.toml`, and data of another day were released for the first price."""
    interrupt(plan)
    change(plan)
    monkeypatch.chdir(plan.parent)
    with pytest.raises(PlanError) as refusal:
        run(Path(plan.name))
    assert [fault.place for fault in refusal.value.faults] == [("data", "source")]
