"""Anchors of a ledger in the database of a desk: a table of a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.ledger.anchors import Anchor
from discreet.ledger.entries import EntryError
from discreet.ledger.store import is_absent
from discreet.words.errors import LedgerError


@dataclass(frozen=True, slots=True)
class DeskAnchors:
    """The anchors in the database of a desk."""

    database: Path

    def __str__(self) -> str:
        return repr(str(self.database))

    def anchors(self) -> Sequence[Anchor]:
        return self._read("SELECT ledger, line FROM anchor ORDER BY seq")

    def last(self) -> Sequence[Anchor]:
        return self._read("SELECT ledger, line, max(seq) FROM anchor GROUP BY ledger, dataset")

    def keep(self, anchors: Sequence[Anchor]) -> None:
        if not self._served():
            return
        rows = [(each.ledger, each.seq, each.hash, each.dataset, each.written()) for each in anchors]
        insert = "INSERT OR IGNORE INTO anchor (ledger, seq, hash, dataset, line) VALUES (?, ?, ?, ?, ?)"
        with self._connected() as connection, connection:
            connection.executemany(insert, rows)

    def _read(self, query: str) -> list[Anchor]:
        if not self._served():
            return []
        try:
            with self._connected() as connection:
                return [Anchor.read(line) for _, line, *_ in connection.execute(query)]
        except (sqlite3.Error, EntryError) as error:
            raise LedgerError(
                f"The anchors of the ledger in {self} cannot be read: {error}.",
                "What the ledger had is not known, so nothing was spent.",
                "Start the desk of this version, or bring its database back.",
            ) from None

    def _served(self) -> bool:
        """Whether there is a database; one that cannot be looked at is no missing one."""
        return not is_absent(self.database)

    def _connected(self) -> Any:
        return closing(sqlite3.connect(self.database, timeout=30))
