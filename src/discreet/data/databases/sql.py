"""Tables of MariaDB, MySQL and files of SQLite, by SQLAlchemy: a transaction that sees one moment, rows in a stream.

MariaDB and MySQL see one moment in tables of an engine with transactions (InnoDB); a table of another engine, such as
MyISAM, is refused. SQLite sees one moment in any file; who writes to it may have to wait until it is read.
"""

from __future__ import annotations

import configparser
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.databases.address import SERVERS, Address, escaped, no_table
from discreet.words.errors import DataError
from discreet.words.extras import needs

if TYPE_CHECKING:
    import pyarrow as pa

SECONDS = 10  # to wait for a server, unless the address says otherwise
LONGEST = 3600  # seconds that an address may ask to wait
LOST, SILENT = 2013, 2003  # the driver's numbers for a connection that broke, and for no server
PASSWORDS = "A password stands in it under [client], as a line password=..., and MYSQL_PWD can have it instead."
BATCH = 50_000  # rows that are held as Python objects at a time


def connect(address: Address) -> Any:
    """A connection with its transaction begun."""
    import sqlalchemy
    from sqlalchemy.pool import NullPool

    if address.kind == "sqlite":
        place = f"file:{escaped(address.database)}?mode=ro"
        engine = sqlalchemy.create_engine(
            "sqlite://",
            creator=lambda: sqlite3.connect(place, uri=True, isolation_level=None, timeout=SECONDS),
            poolclass=NullPool,
        )
        begin = "BEGIN"
    else:
        with needs("mysql", "A table in MariaDB or MySQL"):
            import pymysql as _  # noqa: F401
        login = _login(address)
        engine = sqlalchemy.create_engine(
            "mysql+pymysql://", creator=lambda: _greeted(login), poolclass=NullPool, isolation_level="REPEATABLE READ"
        )
        begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
    connection = engine.connect()
    try:
        connection.exec_driver_sql(begin)
    except BaseException:
        connection.close()
        raise
    return connection


def _login(address: Address) -> dict[str, Any]:
    """The driver's parameters for a connection; passwords come from the environment or from a file outside the plan."""
    said = dict(address.options)
    named = said.pop("option_file", "")
    options = Path(named or "~/.my.cnf").expanduser()
    if named and not options.is_file():
        raise DataError("The file that option_file names is not there.", PASSWORDS, "Correct its path.")
    seconds = said.pop("connect_timeout", str(SECONDS))
    if not (seconds.isdecimal() and 1 <= int(seconds) <= LONGEST):
        raise DataError(
            "The connect_timeout of the address is no number of seconds.",
            f"It is a whole number from 1 to {LONGEST:,}.",
            f"Write for example connect_timeout={SECONDS}.",
        )
    given = {
        "user": address.user,
        "password": os.environ.get("MYSQL_PWD", ""),
        "host": address.host.strip("[]"),
        "port": int(address.port or 0),
        "database": address.database,
        "connect_timeout": int(seconds),
        "charset": "utf8mb4",
        "read_default_file": str(options) if options.is_file() else "",
        **said,
    }
    return {name: value for name, value in given.items() if value}


def _greeted(login: dict[str, Any]) -> Any:
    """A connection to a server that answers within its time; rows may take longer."""
    import pymysql

    try:
        made = pymysql.connect(**login, read_timeout=login["connect_timeout"])
    except (configparser.Error, UnicodeDecodeError):
        raise DataError(
            "The file of passwords (option_file, or ~/.my.cnf) cannot be read.", PASSWORDS, "Correct the file."
        ) from None
    except pymysql.err.OperationalError as error:
        if error.args[:1] == (LOST,):
            raise pymysql.err.OperationalError(SILENT) from None
        raise
    made._read_timeout = None
    return made


@contextmanager
def rows(connection: Any, address: Address, columns: Sequence[str] | None) -> Iterator[pa.RecordBatchReader]:
    """The table in a stream, of these columns as far as they are there."""
    import pyarrow as pa

    schema, _, table = address.table.rpartition(".")
    found = columns_of(connection, address)
    _refuse_without_moment(connection, address, schema, table)
    chosen = {name: kind for name, kind in found.items() if columns is None or name in columns} or found
    quote = connection.dialect.identifier_preparer.quote_identifier
    selected = {name: _selected(quote(name), kind, address) for name, kind in chosen.items()}
    kinds = pa.schema([(name, kind) for name, (_, kind) in selected.items()])
    listed = ", ".join(f"{term} AS {quote(name)}" for name, (term, _) in selected.items())
    place = ".".join(quote(part) for part in (schema, table) if part)
    streaming = connection.execution_options(stream_results=True, max_row_buffer=BATCH)
    with streaming.exec_driver_sql(f"SELECT {listed} FROM {place}") as result:
        batches = (_batch(batch, kinds, address) for batch in result.partitions(BATCH))
        yield pa.RecordBatchReader.from_batches(kinds, batches)


def columns_of(connection: Any, address: Address) -> dict[str, Any]:
    """The columns of a table with their types."""
    import sqlalchemy

    schema, _, table = address.table.rpartition(".")
    inside = sqlalchemy.inspect(connection)
    try:
        return {each["name"]: each["type"] for each in inside.get_columns(table, schema or None)}
    except sqlalchemy.exc.NoSuchTableError:
        raise no_table(address, sorted([*inside.get_table_names(), *inside.get_view_names()])[:50]) from None


def _batch(batch: Sequence[Any], kinds: pa.Schema, address: Address) -> pa.RecordBatch:
    import pyarrow as pa

    arrays = []
    for column, values in zip(kinds, zip(*batch, strict=True), strict=True):
        try:
            arrays.append(pa.array(values, column.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeDecodeError):
            raise DataError(
                f"Column {column.name!r} of {address} has a value that its type does not hold.",
                f"By its declaration it is read as {column.type}.",
                "Correct the value, or declare the column by what it holds.",
            ) from None
    return pa.record_batch(arrays, schema=kinds)


def _selected(name: str, kind: Any, address: Address) -> tuple[str, pa.DataType]:
    """A column as a type that tables of files have too: whole numbers, doubles, dates, else text.

    A column of numbers of SQLite holds values of any kind. Those of another kind are missing, as in a CSV file: one
    row decides neither the type of a column nor whether it can be read.
    """
    import pyarrow as pa
    from sqlalchemy import types

    lite = address.kind == "sqlite"
    if isinstance(kind, types.Integer | types.Boolean):
        if lite:
            return _only_whole(name), pa.int64()
        large = getattr(kind, "unsigned", False) and isinstance(kind, types.BigInteger)
        return name, pa.uint64() if large else pa.int64()
    if isinstance(kind, types.Numeric | types.Float):
        whole = not isinstance(kind, types.Float) and kind.scale == 0 and (kind.precision or 99) <= 18
        if lite and whole:
            return _only_whole(name), pa.int64()
        if lite:
            return f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN CAST({name} AS REAL) END", pa.float64()
        return (f"CAST({name} AS SIGNED)", pa.int64()) if whole else (f"{name} + 0e0", pa.float64())
    if isinstance(kind, types.Date | types.DateTime) and not lite:
        return name, pa.date32() if isinstance(kind, types.Date) else pa.timestamp("us")
    if isinstance(kind, types.LargeBinary | types.BINARY | types.VARBINARY):
        return f"HEX({name})", pa.string()
    if isinstance(kind, types.String) or (lite and isinstance(kind, types.Date | types.DateTime)):
        return name, pa.string()
    if type(kind).__name__ == "YEAR":
        return f"CAST({name} AS SIGNED)", pa.int64()
    return f"CAST({name} AS {'TEXT' if lite else 'CHAR'})", pa.string()


def _only_whole(name: str) -> str:
    return f"CASE WHEN typeof({name}) = 'integer' THEN {name} END"


def _refuse_without_moment(connection: Any, address: Address, schema: str, table: str) -> None:
    """Refuse a table whose engine has no transactions: what it holds could change while it is read."""
    if address.kind == "sqlite":
        return
    asked = (
        "SELECT t.engine FROM information_schema.tables t JOIN information_schema.engines e ON e.engine = t.engine "
        "WHERE t.table_schema = COALESCE(%s, DATABASE()) AND t.table_name = %s AND e.transactions <> 'YES'"
    )
    engine = connection.exec_driver_sql(asked, (schema or None, table)).scalar()
    if engine is not None:
        raise DataError(
            f"{address} is kept by the engine {engine}, which has no transactions: it could change while it is read.",
            "Tables of an engine with transactions, such as InnoDB, are seen as at one moment.",
            "Convert it (ALTER TABLE ... ENGINE=InnoDB), or write it to a Parquet file.",
        )


MYSQL = SERVERS["mysql"]
REFUSED = (
    "the server did not take the user or the password",
    f"Passwords are in {MYSQL.secrets}. Set the right one there.",
)
RIGHT = ("this user may not read it", "Ask for the right: GRANT SELECT ON the table TO the user.")
CAUSES: dict[int, tuple[str, str]] = {
    1045: REFUSED,
    1698: REFUSED,
    1044: RIGHT,
    1142: RIGHT,
    1143: RIGHT,
    1356: ("it is a view whose tables this user may not read", "Ask for the right, or name another table."),
    1049: ("there is no such database", "Correct the address."),
    1130: ("the server lets nobody in from here", "Ask for the right to connect."),
    1792: ("reading it would write, and nothing here may", "Name a table, or a view that only reads."),
    2002: ("no server answers there", "Check host, port and network, and that the server runs."),
    2003: ("no server answers there", "Check host, port and network, and that the server runs."),
}
"""The server's error numbers and their meaning: a cause and a remedy."""


def cause(error: Exception) -> tuple[str, str] | None:
    """The meaning of a failure of the driver, and a remedy; None if it is not the driver's."""
    from sqlalchemy.exc import SQLAlchemyError

    own = getattr(error, "orig", error)
    module = type(own).__module__.partition(".")[0]
    if module == "sqlite3":
        if getattr(own, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return "another program writes to it", "Try again when that has ended."
        return "it is not a SQLite file, or it is damaged", "Write it again from its source."
    if module == "pymysql" or isinstance(error, SQLAlchemyError):
        unknown = (
            "the connection broke, or a value could not be read",
            "Run the query with the server's own client to see more, then try again.",
        )
        return CAUSES.get(next((number for number in own.args if isinstance(number, int)), 0), unknown)
    return None
