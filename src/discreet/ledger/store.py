"""The table behind a ledger: SQLite in WAL mode by default, PostgreSQL for teams.

Here are durability, locking, append-only triggers and the translation of database errors; the rules of spending are
in `book`. Imported only when a ledger is opened, because SQLAlchemy is heavy. A writing transaction is alone: SQLite
takes its one write lock at BEGIN IMMEDIATE, PostgreSQL an advisory lock. When it has ended, its lines are on disk.
"""

from __future__ import annotations

import glob
import os
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement

from discreet.ledger.entries import GENESIS, Entry, EntryError, Head, Row
from discreet.ledger.lock import copied_memory
from discreet.words.errors import LedgerError, NoLedger
from discreet.words.extras import needs
from discreet.words.faults import Argument

NAME = "discreet_ledger"
WAIT_SECONDS = 120  # sixteen processes in one queue, each with a disk sync, on a slow disk
ATTEMPTS = 5  # to make a new ledger, where others remove what is not finished
STALE = 60  # seconds after which a ledger that was being made is taken to be abandoned; making one takes a fraction
EVERY = 2**62  # more lines than any ledger has: both engines take it as a limit
_LOCK = int.from_bytes(b"ledger", "big")

table = sa.Table(
    NAME,
    sa.MetaData(),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("release", sa.Text),
    sa.Column("loss", sa.Text),
    sa.Column("spent_after", sa.Text, nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("previous", sa.Text, nullable=False, unique=True),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    sa.UniqueConstraint("kind", "dataset", "release"),
    sa.Index(f"{NAME}_account", "dataset", "unit", "seq"),
    sa.Index(f"{NAME}_budget", "kind", "dataset", "unit", "seq"),
)

_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER {NAME}_no_{verb} BEFORE {verb} ON {NAME} "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        f"CREATE FUNCTION {NAME}_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
        f"CREATE TRIGGER {NAME}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {NAME} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {NAME}_refuse()",
    ],
}

# Statements are texts: SQLAlchemy would compile an expression again for every ledger that is opened.
_COLUMNS = table.columns.keys()
_INSERT = sa.text(f"INSERT INTO {NAME} ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)})")


@cache
def _latest(names: tuple[str, ...]) -> sa.TextClause:
    """The latest lines in which these columns have the values given under their names."""
    unknown = set(names) - set(_COLUMNS)
    assert not unknown, unknown
    chosen = f" WHERE {' AND '.join(f'{name} = :{name}' for name in names)}" if names else ""
    return sa.text(f"SELECT {', '.join(_COLUMNS)} FROM {NAME}{chosen} ORDER BY seq DESC LIMIT :limit")


@cache
def _founding(backend: str) -> list[str]:
    """The statements that make an empty ledger."""
    dialect = make_url(f"{backend}://").get_dialect()()
    parts: list[DDLElement] = [
        CreateTable(table),
        *map(CreateIndex, sorted(table.indexes, key=lambda index: str(index.name))),
    ]
    return [str(part.compile(dialect=dialect)) for part in parts] + _APPEND_ONLY[backend]


class Store:
    """One ledger's table, opened; `label` names it in messages and holds no password."""

    def __init__(
        self,
        where: str | Path | None,
        *,
        read_only: bool = False,
        in_place: bool = False,
        absent: Callable[[str, str], object] = lambda _place, _label: None,
    ) -> None:
        if not isinstance(where, str | Path | None):
            raise LedgerError(
                (Argument("ledger", where), " is not where a ledger is."),
                "It is a path, or the address of a database.",
                ("Use for example ", Argument("ledger", "ledger.db"), "."),
            )
        if not isinstance(read_only, bool):
            words = (Argument("read_only", read_only), " is neither yes nor no.")
            raise LedgerError(words, "It is True or False.", "Leave it out for False.", about="read_only")
        self.url = _url(where)
        self.label = _label(self.url)
        self.is_postgres = self.url.get_backend_name() == "postgresql"
        self.read_only = read_only
        self._in_memory, self._absent = where is None, absent
        self._process = os.getpid()
        self.place = place_of(where)
        self._alone = threading.RLock() if self._in_memory else None
        if not self._in_memory and not self.is_postgres:
            path = Path(self.url.database or "")
            if is_absent(path):
                absent(str(self.place), self.label)
            _check_path(path, read_only=read_only)
            if not (read_only or in_place):
                _tidy(path)
            if not (read_only or in_place or path.exists()):
                _found(path)
        self.engine = self._engine()
        try:
            self._prepare()
        except BaseException:
            self.engine.dispose()
            raise

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def writing(self) -> Iterator[LedgerTransaction]:
        """The only writer, until the block ends; what it appended is durable then, or was never there."""
        if self.read_only:
            raise LedgerError(
                f"Ledger {self.label} was opened to be read.", "Nothing was written.", "Open it without read_only."
            )
        with self._transaction(writes=True) as connection:
            yield LedgerTransaction(connection)

    @contextmanager
    def reading(self) -> Iterator[LedgerTransaction]:
        with self._transaction(writes=False) as connection:
            yield LedgerTransaction(connection)

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[sa.Connection]:
        if self._process != os.getpid():
            self._forked()
        turn: AbstractContextManager[object] = self._alone or nullcontext()
        with turn, self._translated(), self.engine.execution_options(writes=writes).begin() as connection:
            if self.is_postgres and not writes:
                connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            elif self.is_postgres:
                connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'")
                connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = '60s'")  # a lost client
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            yield connection

    def _forked(self) -> None:
        """In a copy of the process that opened it a ledger has its own connections; one in memory would count twice."""
        if self._in_memory:
            raise copied_memory()
        self._parents, self.engine, self._process = self.engine, self._engine(), os.getpid()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Database errors and broken lines in the words of the ledger; never the URL, which may hold a password."""
        try:
            yield
        except EntryError as fault:
            raise LedgerError(
                f"Ledger {self.label} is broken: {fault}.",
                "Nothing was written.",
                "Run `discreet ledger verify` on it, and go back to a copy that is intact.",
            ) from None
        except SQLAlchemyError as error:
            raise LedgerError(*self._explained(error)) from None

    def _explained(self, error: SQLAlchemyError) -> tuple[str, str, str]:
        cause = str(getattr(error, "orig", None) or error).strip()
        in_query = [str(value) for name, value in self.url.query.items() if "password" in name]
        for secret in filter(None, [self.url.password, *in_query]):
            cause = cause.replace(str(secret), "***")
        if "locked" in cause or "lock timeout" in cause:
            way_out = f"Another process has held it for {WAIT_SECONDS} s. Try again when that has ended."
        elif "readonly" in cause or "unable to open" in cause or "permission denied" in cause:
            way_out = "Give this user the right to read and write it, and, for a file, its folder."
        elif "not a database" in cause or "malformed" in cause:
            way_out = (
                "The file is damaged or is not a ledger. Go back to a copy that `discreet ledger verify` calls intact."
            )
        elif self.is_postgres:
            way_out = "Check host, database, user and rights with `psql`; no noise may be drawn until this works."
        else:
            way_out = "Check the disk and the path; no noise may be drawn until this works."
        return f"Ledger {self.label} failed: {cause}.", "Nothing was released.", way_out

    def _engine(self) -> sa.Engine:
        if self.is_postgres:
            with needs("postgres", "A ledger in PostgreSQL"):
                return sa.create_engine(
                    self.url,
                    isolation_level="READ COMMITTED",
                    pool_pre_ping=True,
                    hide_parameters=True,
                    # a statement prepared on a small table would keep its plan on a large one
                    connect_args={"prepare_threshold": None},
                )
        engine = sa.create_engine(
            "sqlite://",
            creator=self._connect_sqlite,
            poolclass=StaticPool if self._in_memory else QueuePool,
            hide_parameters=True,
        )
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _connect_sqlite(self) -> sqlite3.Connection:
        path = Path(self.url.database or "")
        if not (self._in_memory or self.read_only):
            _keep_private(path)
        target = ":memory:" if self._in_memory else _sqlite_uri(path, self.read_only)
        connection = sqlite3.connect(target, uri=True, timeout=WAIT_SECONDS, check_same_thread=False)
        connection.isolation_level = None  # SQLAlchemy says BEGIN, through the event below
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA query_only = {self.read_only:d}")
        return connection

    def _prepare(self) -> None:
        """Find the table, or make it in an empty place; refuse any database that is something else."""
        with self._transaction(writes=not self.read_only) as connection:
            inspector = sa.inspect(connection)
            tables = inspector.get_table_names()
            if NAME in tables:
                columns = [str(column["name"]) for column in inspector.get_columns(NAME)]
                if columns != table.columns.keys():
                    raise self._not_a_ledger(f"its table {NAME} has the columns {', '.join(columns)}")
            else:
                self._absent(str(self.place), self.label)
                if self.read_only or (tables and not self.is_postgres):
                    raise self._not_a_ledger(f"it has no table {NAME}", NoLedger)
                for statement in _founding(self.engine.dialect.name):
                    connection.exec_driver_sql(statement)
        if not (self.is_postgres or self._in_memory or self.read_only):
            self._switch_to_wal()

    def _switch_to_wal(self) -> None:
        """Readers no longer wait for the writer. If another process is quicker, the file is in WAL mode already."""
        with suppress(sqlite3.OperationalError), closing(self._connect_sqlite()) as connection:
            connection.execute("PRAGMA journal_mode = WAL")

    def _not_a_ledger(self, reason: str, kind: type[LedgerError] = LedgerError) -> LedgerError:
        return kind(
            f"{self.label} is a database but not a ledger of this version: {reason}.",
            "Nothing was written.",
            "Name another place for the ledger, or the ledger that you mean.",
        )


def _keep_private(path: Path) -> None:
    """Make the file, if there is none, for this user alone; SQLite gives the files beside it the same rights.

    A file that is there is not opened: closing it would let go of the locks that SQLite holds on it in this process.
    """
    with suppress(OSError):  # it is there, or SQLite says in its own words why it cannot be
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _found(path: Path) -> None:
    """A new ledger appears whole or not at all: it is made under another name and linked into place.

    If somebody whose clock has jumped takes it for abandoned meanwhile and removes it, it is made once more.
    """
    for attempt in range(ATTEMPTS):
        scratch = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            Store(scratch, in_place=True).close()
            with suppress(FileExistsError):  # another process was quicker
                os.link(scratch, path)
            return
        except LedgerError:
            if attempt == ATTEMPTS - 1:
                raise
        except OSError:  # a file system without links: the file is made where it is to be
            return
        finally:
            for ending in ("", "-journal", "-wal", "-shm"):
                with suppress(OSError):  # what is left on a disk that fails is removed by `_tidy`
                    scratch.with_name(scratch.name + ending).unlink(missing_ok=True)


def _tidy(path: Path) -> None:
    """Remove the files that a killed `_found` left beside the ledger.

    If its owner is still alive, it begins again.
    """
    with suppress(OSError):
        for other in path.parent.glob(f".{glob.escape(path.name)}.*"):
            rest = other.name.removeprefix(f".{path.name}.")
            if re.fullmatch(r"[0-9a-f]{12}(-journal|-wal|-shm)?", rest) and time.time() - other.stat().st_mtime > STALE:
                other.unlink(missing_ok=True)


class LedgerTransaction:
    """The table inside one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self.added: list[Entry] = []
        self._found: dict[tuple[tuple[str, str | int], ...], Entry | None] = {}

    def last(self, **where: str | int) -> Entry | None:
        """The latest line with these values, checked against its seal; looked for once in a transaction."""
        asked = tuple(sorted(where.items()))
        latest = self._found.get(())
        if latest is not None and all(getattr(latest, column) == value for column, value in asked):
            return latest
        if asked not in self._found:
            row = self._connection.execute(_latest(tuple(where)), {**where, "limit": 1}).mappings().first()
            self._found[asked] = None if row is None else Entry.from_row(dict(row))
        return self._found[asked]

    def at(self, seq: int) -> Entry | None:
        """The line of this number, checked against its seal."""
        latest = self.last()
        if latest is None or seq >= latest.seq:
            return latest if latest is not None and seq == latest.seq else None
        return self.last(seq=seq)

    def rows(self, *, after: int = 0) -> Generator[Row, None, None]:
        """Every line `after` a number, in order, as stored and unchecked. Close it when not read to the end."""
        query = sa.select(table).where(table.c.seq > after).order_by(table.c.seq).execution_options(yield_per=1000)
        with self._connection.execute(query) as result:
            for row in result.mappings():
                yield dict(row)

    def entries(self, *, last: int | None = None, **where: str) -> list[Entry]:
        """The `last` lines with these values, in order."""
        found = self._connection.execute(_latest(tuple(where)), {**where, "limit": EVERY if last is None else last})
        return [Entry.from_row(dict(row)) for row in found.mappings()][::-1]

    def count(self) -> int:
        return self._connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()

    def head(self) -> Head:
        latest = self.last()
        return Head(0, GENESIS) if latest is None else latest.head

    def append(self, **fields: Any) -> Entry:
        entry = Entry.after(self.head(), **fields)
        self.write(entry)
        return entry

    def write(self, entry: Entry) -> None:
        """Write a line as it was sealed. The table refuses one whose number or link it has already."""
        self._connection.execute(_INSERT, entry.to_row())
        self.added.append(entry)
        self._found = {
            asked: line for asked, line in self._found.items() if dict(asked).get("kind", entry.kind) != entry.kind
        }


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _url(where: str | Path | None) -> URL:
    if where is None or "://" not in str(where):
        return URL.create("sqlite", database=None if where is None else str(where))
    try:
        url = make_url(str(where))
    except (ArgumentError, ValueError):
        raise LedgerError(
            "The ledger's address cannot be read.",
            "A ledger is a file, sqlite:///path or postgresql://user@host/name.",
            "Write one of these; characters such as @ in a password are written as %40.",
        ) from None
    if url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite":
        return url
    raise LedgerError(
        f"A ledger in {url.get_backend_name()!r} is not possible.",
        "It lives in SQLite or PostgreSQL.",
        "Give a file, sqlite:///path or postgresql://user@host/database.",
    )


def place_of(where: str | Path | None) -> str | None:
    """Where a ledger is, however it was written, without a password; None in memory."""
    if where is None:
        return None
    url = _url(where)
    return _label(url) if url.get_backend_name() == "postgresql" else os.path.realpath(url.database or "")


def _label(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return repr(url.database) if url.database else "in memory"
    return f"postgresql://{url.host or ''}/{url.database or ''}"


def _sqlite_uri(path: Path, read_only: bool) -> str:
    """Reading still opens the file for writing where that is allowed: SQLite then tidies up its side files."""
    if not read_only:
        mode = "mode=rwc"
    elif os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        mode = "mode=rw"
    else:  # on read-only media SQLite cannot lock; that is safe as long as nobody has the ledger open
        is_open = any(Path(f"{path}{end}").exists() for end in ("-wal", "-journal"))
        mode = "mode=ro" if is_open else "immutable=1"
    return f"{Path(os.path.realpath(path)).as_uri()}?{mode}"


def is_absent(path: Path) -> bool:
    """Whether there is nothing at a path; a closed folder, and links that lead to each other, do not tell."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def _check_path(path: Path, *, read_only: bool) -> None:
    place, unwritten = repr(str(path)), "Nothing was written."
    a_ledger = "A ledger is a file, or a database by its address."
    if str(path) in ("", ".", ":memory:"):
        in_memory = "Give a path; for a throw-away use Ledger.in_memory()."
        raise LedgerError(f"{place} is not a file for a ledger.", a_ledger, in_memory)
    try:
        is_there = path.exists()
    except PermissionError:
        closed = f"The folder of the ledger {place} is closed to this user."
        raise LedgerError(closed, unwritten, "Ask for the right to look into it.") from None
    if path.is_dir():
        in_it = "Give the path of a file in it, such as ledger.db."
        raise LedgerError(f"{place} is a folder, not a ledger.", a_ledger, in_it)
    if read_only and not is_there:
        first = "Check the path; the first budget makes the ledger."
        raise NoLedger(f"There is no ledger at {place}.", unwritten, first)
    if not path.parent.is_dir():
        nowhere = f"There is no folder {str(path.parent)!r} for a ledger."
        raise LedgerError(nowhere, unwritten, "Make the folder first.")
    if not read_only and not os.access(path if is_there else path.parent, os.W_OK):
        right = "Ask for the right to write it, or open it with read_only=True to look at it."
        raise LedgerError(f"The ledger {place} cannot be written by this user.", unwritten, right)
