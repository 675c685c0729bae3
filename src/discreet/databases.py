"""Tables of a PostgreSQL server: their addresses, which hold no secret, and copies of them at one moment.

A table is read once, in a stream, inside a read-only transaction whose reads all see the same moment. Its rows go
into a file that has no name on the disk and that nobody else can open: it is gone with the process, however that ends.
No message from here carries a value of the data, a password or the driver's words.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from discreet.delimited import quoted
from discreet.errors import DataError, DiscreetError
from discreet.extras import needs

if TYPE_CHECKING:
    import pyarrow as pa

FORM = "postgresql://user@host/database::table"
ADDRESS = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^@/?#]*)@)?(?P<host>\[[^\]]*\]|[^@/?#:]*)(?::(?P<port>\d+))?"
    r"/(?P<database>[^?#:@/]*)(?:\?(?P<query>[^#@]*?))?(?:::(?P<table>[^:]+))?"
)
OPTIONS = (
    *("host", "port", "user", "dbname", "service", "sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding"),
    *("connect_timeout", "target_session_attrs", "gssencmode", "krbsrvname", "passfile"),
)
"""What may stand after the question mark: nothing that is a secret."""
SECONDS = 10  # to wait for a server, unless the address says otherwise


@dataclass(frozen=True, slots=True)
class Address:
    """A table of a database, by an address that holds no password."""

    user: str
    host: str
    port: str
    database: str
    table: str
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, text: str) -> Address:
        """Read an address. It is never repeated in a refusal: what is wrong with it may be a password."""
        kind = text.partition("://")[0]
        if kind not in ("postgresql", "postgres"):
            raise DataError(
                f"Data in {kind[:16]!r} cannot be read." if kind.isalnum() else "The address cannot be read.",
                f"Tables of PostgreSQL are named as {FORM}.",
                "Write it so, or write the table to a Parquet file.",
            )
        found = ADDRESS.fullmatch(text)
        parts = {} if found is None else {name: value or "" for name, value in found.groupdict().items()}
        options = tuple(parse_qsl(parts.get("query", ""), keep_blank_values=True))
        secret = ":" in parts.get("user", "") or any("password" in name for name, _ in options)
        if secret or (found is None and re.match(r"postgres(ql)?://[^/?#]*:[^/?#]*@", text)):
            raise DataError(
                "The address holds a password, which whoever reads the plan would see.",
                "An address names user, host, database and table.",
                "Leave it out, and keep it in PGPASSWORD, in ~/.pgpass (PGPASSFILE) or in a service (PGSERVICEFILE). "
                "Change it on the server, because it was written down.",
            )
        if found is None:
            raise DataError("The address cannot be read.", f"It has the form {FORM}.", "Write it so.")
        if any(name not in OPTIONS for name, _ in options):
            raise DataError(
                "The address has an option that is not known.",
                f"There are: {', '.join(OPTIONS)}.",
                "Leave the others out, or set them in a service (PGSERVICEFILE).",
            )
        if not parts["table"]:
            raise DataError("The address names no table.", f"It has the form {FORM}.", "Add :: and the table's name.")
        user, host, port, database = (unquote(parts[name]) for name in ("user", "host", "port", "database"))
        return cls(user, host, port, database, parts["table"], options)

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Host, port, service and database, wherever they are written."""
        said = dict(self.options)
        host, port = self.host or said.get("host", ""), self.port or said.get("port", "") or "5432"
        return host.casefold(), port, said.get("service", ""), self.database or said.get("dbname", "")

    def same_as(self, other: Address) -> bool:
        """Whether both name one table, as far as addresses tell, whoever reads it."""
        mine, theirs = ((_machine(host), *rest) for host, *rest in (self.place, other.place))
        return mine == theirs and self.table.removeprefix("public.") == other.table.removeprefix("public.")

    @property
    def server(self) -> str:
        """The address for the driver, without the table."""
        options = {"connect_timeout": str(SECONDS), "application_name": "discreet", **dict(self.options)}
        port = f":{self.port}" if self.port else ""
        user = f"{_escaped(self.user)}@" if self.user else ""
        return f"postgresql://{user}{self.host}{port}/{_escaped(self.database)}?{urlencode(options)}"

    def __str__(self) -> str:
        host, port, service, database = self.place
        place = f"service {service}" if service and not host else f"{host or 'this machine'}:{port}/{database}"
        return f"{self.table!r} of {place}"


@dataclass(frozen=True, slots=True)
class SomeColumns:
    """Some columns of the table at an address; of those that are not there, nothing."""

    address: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, data: Any, columns: Sequence[str]) -> Any:
        """Data at an address with no more columns than are needed; other data as they are."""
        return cls(str(data), tuple(columns)) if is_address(data) else data


def is_address(data: object) -> bool:
    """Whether data are named by an address of a server, and not by a path; `hdfs://` and the like are paths."""
    return isinstance(data, str) and re.match(r"postgres\w*(\+\w+)?://", data, re.IGNORECASE) is not None


@dataclass(slots=True)
class Moment:
    """What was read of databases at one moment: a transaction for each server, a file for each table."""

    connections: dict[str, Any] = field(default_factory=dict)
    copies: dict[tuple[Address, tuple[str, ...] | None], IO[bytes]] = field(default_factory=dict)

    def copy(self, address: Address, columns: Sequence[str] | None) -> IO[bytes]:
        """The table's rows as a Parquet file, of these columns as far as they are there."""
        key = address, None if columns is None else tuple(columns)
        if key not in self.copies:
            with _explained(address):
                self.copies[key] = _fetch(self._connection(address), address, columns)
        return self.copies[key]

    def _connection(self, address: Address) -> Any:
        if address.server not in self.connections:
            with needs("postgres", "A table in PostgreSQL"):
                from adbc_driver_postgresql import dbapi
            connection = dbapi.connect(address.server)
            self.connections[address.server] = connection
            _rows(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return self.connections[address.server]

    def end(self) -> None:
        """End the transactions; the copies stay."""
        while self.connections:
            self.connections.popitem()[1].close()


_MOMENT: ContextVar[Moment | None] = ContextVar("moment", default=None)
_KEPT: list[IO[bytes]] = []  # copies that frames of this process may still read


@contextmanager
def one_moment(*, keep: bool = False) -> Iterator[None]:
    """Inside, all tables of a server are seen as at one moment, and each is read once.

    Afterwards the copies are gone, but for those to `keep` until the process ends. An inner moment is the outer one.
    """
    if _MOMENT.get() is not None:
        yield
        return
    moment = Moment()
    token = _MOMENT.set(moment)
    try:
        yield
    finally:
        _MOMENT.reset(token)
        moment.end()
        if keep:
            _KEPT.extend(moment.copies.values())
        else:
            for copy in moment.copies.values():
                copy.close()


def copied(data: str | SomeColumns) -> str:
    """The path of a Parquet file with the rows of the table at an address; only this process can open it."""
    text, columns = (data.address, data.columns) if isinstance(data, SomeColumns) else (data, None)
    address = Address.of(text)
    with one_moment(keep=True):
        moment = _MOMENT.get()
        assert moment is not None
        file = moment.copy(address, columns)
    own = f"/proc/self/fd/{file.fileno()}"
    return own if Path(own).exists() else str(file.name)


def _fetch(connection: Any, address: Address, columns: Sequence[str] | None) -> IO[bytes]:
    """Stream the table into a file of mode 0600."""
    import pyarrow.parquet as pq

    found = _columns(connection, address)
    chosen = {name: kind for name, kind in found.items() if columns is None or name in columns} or found
    listed = ", ".join(_selected(name, kind) for name, kind in chosen.items())
    unnamed = Path("/proc/self/fd").exists()
    file: IO[bytes] = tempfile.TemporaryFile() if unnamed else tempfile.NamedTemporaryFile()  # noqa: SIM115
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {listed} FROM {_quoted(address.table)}")
            reader = cursor.fetch_record_batch()
            with pq.ParquetWriter(file, reader.schema, compression="zstd", compression_level=1) as writer:
                for batch in _gathered(reader):
                    writer.write_table(batch)
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


ROWS = 500_000  # of a group in the copy


def _gathered(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The batches of a stream, put together to tables of at least so many rows."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    for batch in reader:
        held.append(batch)
        if sum(each.num_rows for each in held) >= ROWS:
            yield pa.Table.from_batches(held)
            held = []
    yield pa.Table.from_batches(held, schema=reader.schema)


_KINDS = """
SELECT a.attname::text AS name, CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod)
                     ELSE format_type(a.atttypid, a.atttypmod) END AS kind
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass({table}) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_TABLES = """
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN c.relname::text ELSE n.nspname || '.' || c.relname END AS name
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg_toast%' AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY 1 LIMIT 50
"""
PLAIN = ("smallint", "integer", "bigint", "real", "double precision", "boolean", "text", "date", "character varying")


def _columns(connection: Any, address: Address) -> dict[str, str]:
    """The columns of a table with their types."""
    name = _quoted(address.table).replace("'", "''")
    found = {row["name"]: row["kind"] for row in _rows(connection, _KINDS.format(table=f"'{name}'"))}
    if found:
        return found
    tables = [row["name"] for row in _rows(connection, _TABLES)]
    near = get_close_matches(address.table, tables, n=2)
    raise DataError(
        f"There is no table {address}.",
        f"This user can read: {', '.join(tables) or 'none'}.",
        f"Did you mean {' or '.join(map(repr, near))}?" if near else "Name one of them, or ask for the right to read.",
    )


def _selected(name: str, kind: str) -> str:
    """A column as a type that tables of files have too: whole numbers, doubles, truths, dates, else text."""
    base = kind.partition("(")[0]
    if kind.startswith("timestamp") or base in PLAIN:
        return quoted(name)
    exact = re.fullmatch(r"numeric\((\d+),0\)", kind)
    if exact and int(exact[1]) <= 18:
        return f"{quoted(name)}::bigint AS {quoted(name)}"
    return f"{quoted(name)}::{'double precision' if base == 'numeric' else 'text'} AS {quoted(name)}"


def _rows(connection: Any, query: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        rows: list[dict[str, Any]] = [] if cursor.description is None else cursor.fetch_arrow_table().to_pylist()
        return rows


def _quoted(table: str) -> str:
    """A table's name, with its schema if that is written before a point."""
    return ".".join(map(quoted, table.split(".", 1)))


def _machine(host: str) -> str:
    return "" if host in ("localhost", "127.0.0.1", "[::1]") or host.startswith("/") else host


def _escaped(text: str) -> str:
    return quote(text, safe="")


CAUSES: dict[str, tuple[str, str]] = {
    "password authentication failed|no password supplied|authentication failed": (
        "the server did not take the user or the password",
        "Passwords are in PGPASSWORD, ~/.pgpass (PGPASSFILE) or a service (PGSERVICEFILE). Set the right one there.",
    ),
    "permission denied": ("this user may not read it", "Ask for the right: GRANT SELECT ON the table TO the user."),
    'database ".*" does not exist': ("there is no such database", "Correct the address."),
    'role ".*" does not exist|no pg_hba.conf entry': (
        "the server lets this user in from nowhere or not from here", "Correct the user, or ask for the right.",
    ),
    "could not translate|connection refused|timeout expired|no such file|no route|unreachable|is the server running": (
        "no server answers there", "Check host, port and network, and that the server runs.",
    ),
    "read-only transaction": (
        "reading it would write, and nothing here may", "Name a table, or a view that only reads.",
    ),
    "definition of service|service file": (
        "there is no such service", "Correct its name, or set PGSERVICEFILE to the file that has it.",
    ),
}  # fmt: skip
"""What the driver says, and what it means: a cause and the way out."""


DRIVER = "[libpq]"
"""How messages of the driver begin, also those that come through Arrow."""


@contextmanager
def _explained(address: Address) -> Iterator[None]:
    """Failures of the driver and of the disk in our words. The driver's own may quote a row."""
    try:
        yield
    except DiscreetError:
        raise
    except Exception as error:
        said = str(error)
        if isinstance(error, OSError) and not said.startswith(DRIVER):
            raise DataError(
                f"{address} could not be copied: {error.strerror or type(error).__name__}.",
                f"Its rows are read once, into a file in {tempfile.gettempdir()!r} that only this process can open.",
                "Make room there, or set TMPDIR to a disk that has it.",
            ) from None
        if not (said.startswith(DRIVER) or type(error).__module__.startswith("adbc_driver")):
            raise
        unknown = (
            "the connection broke, or a value could not be read",
            "Run the query with psql to see more, then try again.",
        )
        known = (words for pattern, words in CAUSES.items() if re.search(pattern, said, re.IGNORECASE))
        cause, remedy = next(known, unknown)
        raise DataError(f"{address} cannot be read: {cause}.", "Nothing was read or spent.", remedy) from None
