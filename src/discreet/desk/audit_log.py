"""Who did what at the desk, in lines that are sealed to each other like the ledger's.

A line names people, plans, runs and files, never a value of the data. Lines are only ever added: the database refuses
to change them, and a change outside the database breaks the chain, which `verify` finds.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, desc, insert, select

from discreet.desk.store import DeskStore, audit
from discreet.ledger.entries import canonical, seal

HOUR, AN_HOUR = 3600, 40
"""Seconds, and lines in them about people who are not in, or of one person and action."""

GENESIS = hashlib.sha256(b"discreet desk, audit log 1").hexdigest()


@dataclass(frozen=True, slots=True)
class Line:
    """One line; `detail` holds public facts such as a digest or a role."""

    seq: int
    at: str
    who: str
    action: str
    subject: str
    detail: dict[str, Any]
    hash: str


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def record(connection: Connection, who: str, action: str, subject: str = "", **detail: Any) -> None:
    """Add a line, in the transaction that does what it tells of."""
    last = connection.execute(select(audit.c.seq, audit.c.hash).order_by(desc(audit.c.seq)).limit(1)).first()
    seq, previous = (1, GENESIS) if last is None else (last.seq + 1, last.hash)
    row = {
        "seq": seq,
        "at": now(),
        "who": who,
        "action": action,
        "subject": subject,
        "detail": canonical(detail),
        "previous": previous,
    }
    connection.execute(insert(audit).values(**row, hash=seal(row)))


@dataclass
class Counted:
    """Lines about somebody: some each hour, then a number only, so that they cannot fill the log."""

    who: str = "(nobody)"
    since: float = -math.inf
    told: int = 0
    untold: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, store: DeskStore, action: str, subject: str = "", **detail: Any) -> None:
        with self.lock:
            now = time.monotonic()
            if now - self.since >= HOUR:
                self.since, self.told = now, 0
            if self.told >= AN_HOUR:
                self.untold += 1
                return
            self.told += 1
            if self.told == AN_HOUR:
                detail["further"] = "only counted for an hour"
            if self.untold:
                detail["untold before"] = self.untold
                self.untold = 0
        with store.writing() as connection:
            record(connection, self.who, action, subject, **detail)


@dataclass
class Repeats:
    """Lines about what people who are in can do without end: counted by person and action."""

    counts: dict[tuple[str, ...], Counted] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def record(
        self, store: DeskStore, who: str, action: str, subject: str = "", *, of: str = "", **detail: Any
    ) -> None:
        """Add a line; `of` parts what is counted further, and is one of few: a file, never what somebody sent."""
        with self.lock:
            counted = self.counts.setdefault((who, action, of), Counted(who))
        counted.record(store, action, subject, **detail)


def lines(connection: Connection, *, last: int = 200) -> list[Line]:
    """The last lines, latest first."""
    rows = connection.execute(select(audit).order_by(desc(audit.c.seq)).limit(last))
    return [Line(r.seq, r.at, r.who, r.action, r.subject, json.loads(r.detail), r.hash) for r in rows]


def verify(connection: Connection) -> str:
    """The faults of the log; empty when every line is as sealed and none is missing in between."""
    rows = (dict(row._mapping) for row in connection.execute(select(audit).order_by(audit.c.seq)))
    return first_fault(rows)


def first_fault(rows: Iterable[dict[str, Any]]) -> str:
    previous = GENESIS
    for seq, row in enumerate(rows, start=1):
        sealed = seal({key: value for key, value in row.items() if key != "hash"})
        if row["seq"] != seq or row["previous"] != previous or row["hash"] != sealed:
            return f"line {seq} is not as it was written, or one before it is missing"
        previous = row["hash"]
    return ""
