"""Tables of PostgreSQL, by its ADBC driver: a transaction that sees one moment and can write nothing; rows as Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from discreet.data.databases.address import SERVERS, Address, escaped, no_table
from discreet.data.delimited import quoted
from discreet.words.extras import needs

if TYPE_CHECKING:
    import pyarrow as pa

SECONDS = 10  # to wait for a server, unless the address says otherwise


def connect(address: Address) -> Any:
    """A connection with its transaction begun."""
    with needs("postgres", "A table in PostgreSQL"):
        from adbc_driver_postgresql import dbapi
    connection = dbapi.connect(_server(address))
    _answer(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    return connection


def _server(address: Address) -> str:
    """The address for the driver, without the table."""
    options = {"connect_timeout": str(SECONDS), "application_name": "discreet", **dict(address.options)}
    port = f":{address.port}" if address.port else ""
    user = f"{escaped(address.user)}@" if address.user else ""
    return f"postgresql://{user}{address.host}{port}/{escaped(address.database)}?{urlencode(options)}"


@contextmanager
def rows(connection: Any, address: Address, columns: Sequence[str] | None) -> Iterator[pa.RecordBatchReader]:
    """The table in a stream, of these columns as far as they are there."""
    found = columns_of(connection, address)
    chosen = {name: kind for name, kind in found.items() if columns is None or name in columns} or found
    listed = ", ".join(_selected(name, kind) for name, kind in chosen.items())
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {listed} FROM {_quoted(address.table)}")
        yield cursor.fetch_record_batch()


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


def columns_of(connection: Any, address: Address) -> dict[str, str]:
    """The columns of a table with their types."""
    name = _quoted(address.table).replace("'", "''")
    found = {row["name"]: row["kind"] for row in _answer(connection, _KINDS.format(table=f"'{name}'"))}
    if not found:
        raise no_table(address, [row["name"] for row in _answer(connection, _TABLES)])
    return found


def _selected(name: str, kind: str) -> str:
    """A column as a type that tables of files have too: whole numbers, doubles, truths, dates, else text."""
    base = kind.partition("(")[0]
    if kind.startswith("timestamp") or base in PLAIN:
        return quoted(name)
    exact = re.fullmatch(r"numeric\((\d+),0\)", kind)
    if exact and int(exact[1]) <= 18:
        return f"{quoted(name)}::bigint AS {quoted(name)}"
    return f"{quoted(name)}::{'double precision' if base == 'numeric' else 'text'} AS {quoted(name)}"


def _answer(connection: Any, query: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        answer: list[dict[str, Any]] = [] if cursor.description is None else cursor.fetch_arrow_table().to_pylist()
        return answer


def _quoted(table: str) -> str:
    """A table's name, with its schema if that is written before a point."""
    return ".".join(map(quoted, table.split(".", 1)))


CAUSES: dict[str, tuple[str, str]] = {
    "password authentication failed|no password supplied|authentication failed": (
        "the server did not take the user or the password",
        f"Passwords are in {SERVERS['postgresql'].secrets}. Set the right one there.",
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
"""Messages of the driver and their meaning: a cause and a remedy."""

DRIVER = "[libpq]"
"""Prefixes of the driver's messages, also of those that come through Arrow."""


def cause(error: Exception) -> tuple[str, str] | None:
    """The meaning of a failure of the driver, and a remedy; None if it is not the driver's."""
    said = str(error)
    if not (said.startswith(DRIVER) or type(error).__module__.startswith("adbc_driver")):
        return None
    unknown = (
        "the connection broke, or a value could not be read",
        "Run the query with psql to see more, then try again.",
    )
    return next((words for pattern, words in CAUSES.items() if re.search(pattern, said, re.IGNORECASE)), unknown)
