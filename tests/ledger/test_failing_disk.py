"""A ledger that is made or opened on a disk that fails: nothing but an error of the ledger comes out."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from discreet.ledger.store import Store
from discreet.words.errors import LedgerError


def test_a_disk_that_turns_read_only_while_a_ledger_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    def fail(store: Store) -> None:
        monkeypatch.setattr(Path, "unlink", refuse)
        raise LedgerError("The disk is read-only.")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_prepare", fail)
        with pytest.raises(LedgerError):
            Ledger.open(tmp_path / "ledger.db")
    assert not (tmp_path / "ledger.db").exists()


def test_a_disk_that_fails_when_a_ledger_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is there; how it keeps its journal is decided once more when it is opened next."""
    connect = Store._connect_sqlite

    def fail(store: Store) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "_connect_sqlite", broken)
            switch(store)

    def broken(store: Store) -> sqlite3.Connection:
        raise sqlite3.OperationalError("disk I/O error")

    switch = Store._switch_to_wal
    with monkeypatch.context() as patch:
        patch.setattr(Store, "_switch_to_wal", fail)
        Ledger.open(tmp_path / "ledger.db").close()
    assert Store._connect_sqlite is connect
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.verify()
    with sqlite3.connect(tmp_path / "ledger.db") as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    opened.close()
