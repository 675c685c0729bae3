"""A new ledger is for its user alone, from its first instant on; rights that somebody gave are kept."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.ledger import Ledger
from discreet.ledger.anchors import ANCHORS
from discreet.privacy.losses import loss
from discreet.privacy.units import Workers

SECRET = 0o600


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file()}


@pytest.fixture(params=[0o022, 0o000, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("links", [True, False])
def test_nobody_else_can_read_a_new_ledger(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, int]] = []
    connect = sqlite3.connect

    class Watched(sqlite3.Connection):
        def execute(self, *arguments: Any) -> Any:
            seen.append(modes(tmp_path))
            found = super().execute(*arguments)
            seen.append(modes(tmp_path))
            return found

    monkeypatch.setattr("sqlite3.connect", lambda *a, **more: connect(*a, **more, factory=Watched))
    if not links:

        def none(*_: Any) -> None:
            raise OSError("no links here")

        monkeypatch.setattr("os.link", none)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.open_budget(dataset="jobs", unit=Workers(), total=loss(epsilon=1))
        seen.append(modes(tmp_path))
        assert {"ledger.db", "ledger.db-wal", "ledger.db-shm"} <= {*modes(tmp_path)}
    assert {mode for found in seen for mode in found.values()} == {SECRET}


def test_rights_that_were_given_stay(tmp_path: Path) -> None:
    """A group may share a ledger, if whoever answers for it says so."""
    path = tmp_path / "ledger.db"
    Ledger.open(path).close()
    path.chmod(0o660)
    with Ledger.open(path) as ledger:
        ledger.open_budget(dataset="jobs", unit=Workers(), total=loss(epsilon=1))
        assert {*modes(tmp_path).values()} == {0o660}


def test_a_ledger_that_is_there_is_opened_by_sqlite_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing a file lets go of every lock of the process on it: two writers could then spend the same budget."""
    path = tmp_path / "ledger.db"
    first = Ledger.open(path)
    opened: list[object] = []
    open_file = os.open

    def watched(*given: Any, **more: Any) -> int:
        handle = open_file(*given, **more)
        opened.append(given[0])
        return handle

    monkeypatch.setattr("os.open", watched)
    with Ledger.open(path) as second, Ledger.open(path, read_only=True):
        second.open_budget(dataset="jobs", unit=Workers(), total=loss(epsilon=1))
        writes = "import sys; from discreet.ledger.store import Store; Store(sys.argv[1]).close()"
        with first._store.writing():
            Ledger.open(path, read_only=True).close()
            locked = subprocess.run(
                [
                    sys.executable,
                    "-c",
                    f"import discreet.ledger.store as s; s.WAIT_SECONDS = 0.1; {writes}",
                    str(path),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
    assert "locked" in locked.stderr
    first.close()
    assert [place for place in opened if not str(place).endswith(ANCHORS)] == []
