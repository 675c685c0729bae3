"""A worker that releases without pause is killed (SIGKILL) at many random instants: book and files must agree."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.ledger import Ledger, store
from discreet.words.errors import LedgerError

SEVERAL = 3  # releases in the longest life, so that instants fall on every step of one


def disagreements(where: str, folder: Path) -> list[str]:
    """Every way in which the book and the visible files contradict each other; recomputed from rows and bytes."""
    with Ledger.open(where, read_only=True) as ledger:
        verdict, entries = ledger.verify(), ledger.entries()
    found = [] if verdict.intact else [str(verdict)]
    charges = {(entry.dataset, entry.release): entry for entry in entries if entry.kind == "charge"}
    published = {(entry.dataset, entry.release): entry for entry in entries if entry.kind == "publish"}
    if len(charges) != sum(entry.kind == "charge" for entry in entries):
        found.append("a release is charged twice")
    spent: Counter[str] = Counter()
    for (dataset, _), entry in charges.items():
        spent[dataset] += entry.loss.amounts["epsilon"]
    totals = {entry.dataset: entry.loss.amounts["epsilon"] for entry in entries if entry.kind == "budget"}
    found += [f"{dataset} is overspent" for dataset, amount in spent.items() if amount > totals[dataset]]
    for place in visible(folder):
        key = (place.parent.name, place.name)
        if key not in charges:
            found.append(f"{key} is visible without a charge")
        elif key not in published:
            found.append(f"{key} is visible and not published")
        elif published[key].payload["files"] != {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in place.iterdir()
        }:
            found.append(f"{key} does not show the draw that was published")
    return found


def visible(folder: Path) -> list[Path]:
    return [place for place in folder.glob("*/*") if not place.name.startswith(".")]


def step(ledger: Ledger, folder: Path) -> str:
    """Where in a release the worker was when it died, as far as the book and the files tell."""
    latest = ledger.entries(last=1)
    if not latest or latest[0].kind == "budget":
        return "nothing charged"
    if latest[0].kind in ("charge", "draw"):
        return "charged, not published"
    return "done" if (folder / latest[0].dataset / latest[0].release).exists() else "published, not visible"


def longest_life(workers, folder: Path) -> float:
    """The seconds in which a worker makes several releases, on this machine and now."""
    worker, begun, before = workers.start(), time.monotonic(), len(visible(folder))
    while len(visible(folder)) < before + SEVERAL:
        time.sleep(0.001)
    lived = time.monotonic() - begun
    os.kill(worker, signal.SIGKILL)
    assert workers.wait() == -signal.SIGKILL
    return lived


def kill_at_random(workers, seed: int, longest: float) -> None:
    worker = workers.start()
    time.sleep(random.Random(seed).uniform(0, longest))
    os.kill(worker, signal.SIGKILL)
    assert workers.wait() == -signal.SIGKILL


@pytest.mark.parametrize("kills", [25, pytest.param(200, marks=pytest.mark.full_size)])
def test_killed_at_any_instant(kills: int, where: str, tmp_path: Path, nursery) -> None:
    folder, steps = tmp_path / "out", Counter()
    workers = nursery("release", where, str(folder))
    longest = longest_life(workers, folder)
    with Ledger.open(where) as ledger:
        for turn in range(kills):
            kill_at_random(workers, turn, longest)
            steps[step(ledger, folder)] += 1
            if turn % 25 == 24:
                assert disagreements(where, folder) == []
    print(steps)
    assert steps["charged, not published"] >= kills // 10, f"too few kills fell inside a release: {steps}"

    with Ledger.open(where, read_only=True) as ledger:
        datasets = len(ledger.budgets())  # the last kill may fall between a budget and its folder
    last = nursery("release", where, str(folder), str(datasets))
    last.start()
    assert last.wait() == 0
    assert disagreements(where, folder) == []
    with Ledger.open(where, read_only=True) as ledger:
        assert [budget.spent.amounts for budget in ledger.budgets()] == [{"epsilon": Fraction(1)}] * datasets
    assert len(visible(folder)) == 5 * datasets
    assert list(folder.glob("*/.staged-*/*")) == [], "a draw that was never shown was left behind"


def test_careless_order_would_be_caught(tmp_path: Path, nursery) -> None:
    where, folder = str(tmp_path / "ledger.db"), tmp_path / "out"
    workers = nursery("careless", where, str(folder))
    longest = longest_life(workers, folder)
    for turn in range(15):
        kill_at_random(workers, turn, longest)
    assert any("visible" in fault for fault in disagreements(where, folder))


def test_first_opening_may_be_killed(where: str, tmp_path: Path, nursery) -> None:
    """The table and its triggers come into being together or not at all."""
    workers = nursery("race", where, str(tmp_path))
    for turn in range(20):
        worker = workers.start()
        time.sleep(random.Random(turn).uniform(0, 0.02))
        os.kill(worker, signal.SIGKILL)
        workers.wait()
    with Ledger.open(where) as ledger:
        assert ledger.verify()


def test_what_a_killed_first_opening_left_is_tidied(tmp_path: Path) -> None:
    """Side files of a ledger that was never finished go, once they are old; what has another name stays."""
    where, token = tmp_path / "ledger.db", "0123456789ab"
    left = [tmp_path / f".ledger.db.{token}{end}" for end in ("", "-journal", "-wal", "-shm")]
    kept = [tmp_path / name for name in (f".other.db.{token}", ".ledger.db.notes", f".ledger.db.{token}-copy")]
    young = tmp_path / ".ledger.db.ffffffffffff"
    for path in (*left, *kept, young):
        path.write_text("x")
        if path != young:
            os.utime(path, (0, 0))
    with Ledger.open(where) as ledger:
        assert ledger.verify()
    assert sorted(path for path in tmp_path.iterdir() if path.name.startswith(".")) == sorted([*kept, young])
    os.utime(young, (0, 0))
    with Ledger.open(where, read_only=True):
        assert young.exists()
    with Ledger.open(where):
        assert not young.exists()


def test_a_ledger_that_another_process_takes_for_abandoned_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock jumps while a ledger is being made, and somebody who opens it then tidies up: it is made once more."""
    where, founding, tidied = tmp_path / "ledger.db", store._founding, []

    def disturbed(backend: str) -> list[str]:
        if not tidied:
            with monkeypatch.context() as later:
                later.setattr(store.time, "time", lambda: 4e9)
                store._tidy(where)
            tidied.append(list(tmp_path.iterdir()))
        return founding(backend)

    monkeypatch.setattr(store, "_founding", disturbed)
    with Ledger.open(where) as ledger:
        assert ledger.verify()
    assert tidied == [[]]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_ledger_that_cannot_be_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: no file of that name appears that is not a ledger, and nothing is left beside it."""

    def full(backend: str) -> list[str]:
        raise LedgerError("disk full", "", "")

    with monkeypatch.context() as disk:
        disk.setattr(store, "_founding", full)
        with pytest.raises(LedgerError):
            Ledger.open(tmp_path / "ledger.db")
    assert list(tmp_path.iterdir()) == []
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.verify()


@pytest.mark.full_size
@pytest.mark.postgres
def test_server_may_crash(postgres_url: str) -> None:
    """A killed back end takes every connection down and makes PostgreSQL recover from its log."""
    import psycopg

    from discreet.privacy.losses import Pure
    from discreet.privacy.units import Workers

    request = {"dataset": "jobs", "unit": Workers()}
    with Ledger.open(postgres_url) as ledger:
        ledger.open_budget(total=Pure(1), **request)
        before = ledger.charge(release="before", loss=Pure("0.5"), **request)
        with psycopg.connect(postgres_url.replace("+psycopg", "")) as other:
            pid = other.execute("SELECT pg_backend_pid()").fetchone()[0]
            os.kill(pid, signal.SIGKILL)
            other.close()
        for _ in range(300):
            try:
                after = ledger.charge(release="after", loss=Pure("0.5"), **request)
                break
            except LedgerError:
                time.sleep(0.1)
        assert after.previous == before.hash
        assert ledger.verify()
        assert not ledger.remaining("jobs", Workers())
