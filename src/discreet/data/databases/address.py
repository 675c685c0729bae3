"""Addresses of tables: postgresql://user@host/database::table, mysql://..., or a file of SQLite with its table.

An address is never repeated in a refusal: what is wrong with it may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from discreet.words.errors import DataError

ADDRESS = re.compile(
    r"\w+://(?:(?P<user>[^@/?#]*)@)?(?P<host>\[[^\]]*\]|[^@/?#:]*)(?::(?P<port>\d+))?"
    r"/(?P<database>[^?#:@/]*)(?:\?(?P<query>[^#@]*?))?(?:::(?P<table>[^:?]+))?"
)


@dataclass(frozen=True, slots=True)
class Server:
    """A kind of database server, as addresses know it.

    Attributes
    ----------
    schemes : what an address may begin with.
    options : what may stand after the question mark: nothing that is a secret.
    secrets : where passwords are.
    """

    name: str
    schemes: tuple[str, ...]
    port: str
    options: tuple[str, ...]
    secrets: str

    @property
    def form(self) -> str:
        return f"{self.schemes[0]}://user@host/database::table"


SERVERS = {
    "postgresql": Server(
        "PostgreSQL",
        ("postgresql", "postgres"),
        "5432",
        (
            *("host", "port", "user", "dbname", "service", "sslmode", "sslrootcert", "sslcert", "sslkey"),
            *("channel_binding", "connect_timeout", "target_session_attrs", "gssencmode", "krbsrvname", "passfile"),
        ),
        "PGPASSWORD, in ~/.pgpass (PGPASSFILE) or in a service (PGSERVICEFILE)",
    ),
    "mysql": Server(
        "MariaDB and MySQL",
        ("mysql", "mariadb"),
        "3306",
        ("connect_timeout", "option_file", "ssl_ca", "ssl_cert", "ssl_key", "unix_socket"),
        "MYSQL_PWD, or under [client] in ~/.my.cnf or in another file (option_file)",
    ),
}
UNREAD = {
    "oracle": ("Oracle", "oracle_fdw"),
    "mssql": ("SQL Server", "tds_fdw"),
    "sqlserver": ("SQL Server", "tds_fdw"),
}
"""Servers that people ask for and that are not supported, and tools that show their tables in PostgreSQL."""

NAMED = (
    r"\s*(?:jdbc:)?(?:postgres|mysql|mariadb|sqlite|oracle|mssql|sqlserver)\w*(?:\+\w+)?:(?://|/?[^/]*:[^/]*@)"
    r"|\s*\w+://[^/]*:[^/]*@"
)
"""What an address begins with."""

SQLITE = (".sqlite", ".sqlite3", ".db")
"""How files of SQLite are called."""


@dataclass(frozen=True, slots=True)
class Address:
    """A table of a database, by an address that holds no password; a file of SQLite is a database without a host."""

    kind: str
    user: str
    host: str
    port: str
    database: str
    table: str
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, text: str) -> Address:
        """Read an address."""
        scheme = text.partition("://")[0]
        asked = scheme.partition("+")[0].casefold()
        if asked in UNREAD:
            name, wrapper = UNREAD[asked]
            raise DataError(
                f"Tables of {name} are not read: no driver for it could be tested.",
                "Read are PostgreSQL, MariaDB, MySQL, SQLite, DuckDB, Parquet and CSV.",
                f"Write the table to Parquet; or show it in a PostgreSQL as a foreign table ({wrapper}), which is read "
                "in a stream; or give a frame that its own driver fetched, in Python.",
            )
        known = next((kind for kind, server in SERVERS.items() if scheme in server.schemes), None)
        if known is None:
            named = "; ".join(f"those of {server.name} as {server.form}" for server in SERVERS.values())
            raise DataError(
                f"Data in {scheme[:16]!r} cannot be read." if scheme.isalnum() else "The address cannot be read.",
                f"Tables of servers are named by an address: {named}; tables of SQLite as jobs.sqlite::table.",
                "Write it so, or write the table to a Parquet file.",
            )
        server, found = SERVERS[known], ADDRESS.fullmatch(text)
        parts = {} if found is None else {name: value or "" for name, value in found.groupdict().items()}
        options = tuple(parse_qsl(parts.get("query", ""), keep_blank_values=True))
        secret = ":" in unquote(parts.get("user", "")) or any("passw" in name or "pwd" in name for name, _ in options)
        if secret or (found is None and re.match(r"\w+://[^/?#]*:[^/?#]*@", text)):
            raise DataError(
                "The address holds a password, which every reader of the plan would see.",
                "An address names user, host, database and table.",
                f"Leave it out, and keep it in {server.secrets}. Change it on the server, because it was written down.",
            )
        if found is None:
            raise DataError("The address cannot be read.", f"It has the form {server.form}.", "Write it so.")
        if any(name not in server.options for name, _ in options):
            raise DataError(
                "The address has an option that is not known.",
                f"There are: {', '.join(server.options)}.",
                f"Leave the others out, or keep them with the password: in {server.secrets}.",
            )
        if not parts["table"]:
            raise DataError(
                "The address names no table.", f"It has the form {server.form}.", "Add :: and the table's name."
            )
        user, host, port, database = (unquote(parts[name]) for name in ("user", "host", "port", "database"))
        return cls(known, user, host, port, database, parts["table"], options)

    @classmethod
    def of_file(cls, path: str, table: str) -> Address:
        """A table of a file of SQLite."""
        return cls("sqlite", "", "", "", path, table)

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Host, port, service and database, wherever they are written."""
        said = dict(self.options)
        if self.kind == "sqlite":
            return "", "", "", self.database
        host, port = self.host or said.get("host", ""), self.port or said.get("port", "") or SERVERS[self.kind].port
        return host.casefold(), port, said.get("service", ""), self.database or said.get("dbname", "")

    def same_as(self, other: Address) -> bool:
        """Whether both name one table, as far as addresses show, for any user."""
        mine, theirs = ((_machine(host), *rest) for host, *rest in (self.place, other.place))
        return (self.kind, mine, self._bare) == (other.kind, theirs, other._bare)

    @property
    def _bare(self) -> str:
        """The table without the schema that it is looked for in anyway."""
        return self.table.removeprefix("public." if self.kind == "postgresql" else f"{self.database}.")

    def __str__(self) -> str:
        host, port, service, database = self.place
        if self.kind == "sqlite":
            return f"{self.table!r} of {Path(database).name}"
        place = f"service {service}" if service and not host else f"{host or 'this machine'}:{port}/{database}"
        return f"{self.table!r} of {place}"


@dataclass(frozen=True, slots=True)
class SomeColumns:
    """Some columns of the table at an address, or in a file of SQLite; of those that are not there, nothing."""

    table: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, data: Any, columns: Sequence[str]) -> Any:
        """The table of a database with no more columns than are needed; other data as they are."""
        lite = isinstance(data, str | Path) and is_sqlite(Path(str(data).partition("::")[0]))
        return cls(str(data), tuple(columns)) if lite or is_address(data) else data


def is_address(data: object) -> bool:
    """Whether data are named by a server's address and not by a path; `hdfs://` and the like are paths.

    So is what only looks like one, or holds a password: it is refused where addresses are read, and not repeated.
    """
    return isinstance(data, str) and re.match(NAMED, data, re.IGNORECASE) is not None


def is_sqlite(path: Path) -> bool:
    """Whether a path is a SQLite file, by its name."""
    return path.suffix.casefold() in SQLITE


def no_table(address: Address, tables: Sequence[str]) -> DataError:
    """The error for a table that does not exist."""
    near = get_close_matches(address.table, tables, n=2)
    return DataError(
        f"There is no table {address}."
        if address.table
        else f"No table{str(address).removeprefix(repr(''))} is named.",
        f"This user can read: {', '.join(tables) or 'none'}.",
        f"Did you mean {' or '.join(map(repr, near))}?" if near else "Name one of them, or ask for the right to read.",
    )


def escaped(text: str) -> str:
    return quote(text, safe="")


def _machine(host: str) -> str:
    return "" if host in ("localhost", "127.0.0.1", "[::1]") or host.startswith("/") else host
