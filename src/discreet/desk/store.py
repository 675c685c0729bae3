"""The desk's database: one SQLite file in which people, plans, decisions and runs are rows.

This module has only tables and transactions; the meaning of the rows is explained where they are used. Every change is
written together with its line in the audit log, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    text,
)

metadata = MetaData()

accounts = Table(
    "account",
    metadata,
    Column("name", String, primary_key=True),
    Column("password", Text, nullable=False),
    Column("role", String, nullable=False),
    Column("since", String, nullable=False),
)

former = Table(
    "former_account",
    metadata,
    Column("name", String, primary_key=True),
    Column("role", String, nullable=False),
    Column("at", String, nullable=False),
    Column("by", String, nullable=False),
)

suspended = Table(
    "suspended_account",
    metadata,
    Column("name", String, primary_key=True),  # of a former account that can be enabled again
    Column("password", Text, nullable=False),
)

sessions = Table(
    "session",
    metadata,
    Column("token", String, primary_key=True),  # SHA-256: the database alone opens no door
    Column("name", String, nullable=False),
    Column("csrf", String, nullable=False),
    Column("expires", Float, nullable=False),
)

plans = Table(
    "plan",
    metadata,
    Column("name", String, primary_key=True),
    Column("source", String, nullable=False),
    Column("author", String, nullable=False),
    Column("draft", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("digest", String, nullable=False),
    Column("state", String, nullable=False),  # draft, submitted, approved, declined
    Column("at", String, nullable=False),
)

decisions = Table(
    "decision",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("plan", String, nullable=False),
    Column("digest", String, nullable=False),
    Column("verdict", String, nullable=False),  # approved, declined
    Column("by", String, nullable=False),
    Column("at", String, nullable=False),
    Column("note", Text, nullable=False),
)

runs = Table(
    "run",
    metadata,
    Column("name", String, primary_key=True),
    Column("plan", String, nullable=False),
    Column("by", String, nullable=False),
    Column("at", String, nullable=False),
)

analyses = Table(
    "analysis",
    metadata,
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("by", String, nullable=False),
    Column("at", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("result", Text, nullable=False),
)

budget_requests = Table(
    "budget_request",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("dataset", String, nullable=False),
    Column("before", String, nullable=False),
    Column("epsilon", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("by", String, nullable=False),
    Column("at", String, nullable=False),
    Column("state", String, nullable=False),  # waiting, confirmed, declined
    Column("decided_by", String, nullable=False),
)

anchors = Table(
    "anchor",  # lines of ledgers that releases of this desk were paid from
    metadata,
    Column("ledger", String, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("hash", String, primary_key=True),
    Column("dataset", String, nullable=False),
    Column("line", Text, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("at", String, nullable=False),
    Column("who", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("detail", Text, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
)

APPEND_ONLY = """
CREATE TRIGGER IF NOT EXISTS audit_keeps_{verb} BEFORE {verb} ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
"""


class DeskStore:
    """Transactions on a desk's database."""

    def __init__(self, path: Path) -> None:
        path.touch(mode=0o600)  # SQLite gives the files beside it the same rights
        path.chmod(0o600)  # it holds hashes of passwords, whoever copied it here
        self._engine = create_engine(f"sqlite:///{path}", pool_size=8, max_overflow=40, pool_timeout=60)
        event.listen(self._engine, "connect", _prepare)
        with self.writing() as connection:
            metadata.create_all(connection)
            for verb in ("UPDATE", "DELETE"):
                connection.execute(text(APPEND_ONLY.format(verb=verb)))

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One writer at a time, from the first read on: what was checked stays true until it is written."""
        with self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")


def _prepare(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions are ours to begin
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
