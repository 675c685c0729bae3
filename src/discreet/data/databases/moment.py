"""Copies of tables as at one moment.

A table is read once, in a stream, inside a read-only transaction whose reads all see the same moment. Its rows go
into a file that has no name on the disk and that nobody else can open: it is gone with the process, however that ends.
No message from here carries a value of the data, a password or the driver's words.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from discreet.data.databases import postgres, sql
from discreet.data.databases.address import Address
from discreet.words.errors import DataError, DiscreetError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 500_000  # of a group in the copy


@dataclass(slots=True)
class Moment:
    """Databases as read at one moment: a transaction for each server, a file for each table."""

    connections: dict[Address, Any] = field(default_factory=dict)
    copies: dict[tuple[Address, tuple[str, ...] | None], IO[bytes]] = field(default_factory=dict)

    def copy(self, address: Address, columns: Sequence[str] | None) -> IO[bytes]:
        """The table's rows as a Parquet file, of these columns as far as they are there."""
        key = address, None if columns is None else tuple(columns)
        if key not in self.copies:
            with _explained(address):
                self.copies[key] = _fetch(self._connection(address), address, columns)
        return self.copies[key]

    def names(self, address: Address) -> list[str]:
        """The names of all columns of the table; no row is read."""
        with _explained(address):
            return [*_driver(address).columns_of(self._connection(address), address)]

    def _connection(self, address: Address) -> Any:
        server = _of(address, table="")
        if server not in self.connections:
            self.connections[server] = _driver(address).connect(server)
        return self.connections[server]

    def end(self) -> None:
        """End the transactions; the copies stay."""
        while self.connections:
            self.connections.popitem()[1].close()


def _of(address: Address, *, table: str) -> Address:
    return Address(address.kind, address.user, address.host, address.port, address.database, table, address.options)


def _driver(address: Address) -> ModuleType:
    return postgres if address.kind == "postgresql" else sql


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


def copied(table: str | Address, columns: Sequence[str] | None = None) -> str:
    """The path of a Parquet file with the rows of the table at an address; only this process can open it."""
    address = table if isinstance(table, Address) else Address.of(table)
    with one_moment(keep=True):
        moment = _MOMENT.get()
        assert moment is not None
        return _path(moment.copy(address, columns))


def names_in(table: str | Address) -> list[str]:
    """The names of all columns of the table at an address."""
    with one_moment(keep=True):
        moment = _MOMENT.get()
        assert moment is not None
        return moment.names(table if isinstance(table, Address) else Address.of(table))


def fingerprints() -> dict[str, str]:
    """The content of the tables that were read at this moment, for any order of their rows.

    A fingerprint is as confidential as the rows: who knows all but one of them could try out the last.
    """
    moment = _MOMENT.get()
    copies = {} if moment is None else moment.copies
    return {
        json.dumps([address.kind, *address.place, address.table, columns]): _fingerprint(_path(file))
        for (address, columns), file in copies.items()
    }


def _fingerprint(path: str) -> str:
    import duckdb

    with duckdb.connect() as connection:
        rows = connection.read_parquet(path)
        told = [duckdb.__version__, rows.columns, *map(str, rows.types)]
        query = "SELECT count(*), sum(hash(t)), bit_xor(hash(t)) FROM rows t"
        found = rows.query("rows", query).fetchall()
    return hashlib.sha256(json.dumps([*told, *map(str, found[0])]).encode()).hexdigest()


def _path(file: IO[bytes]) -> str:
    own = f"/proc/self/fd/{file.fileno()}"
    return own if Path(own).exists() else str(file.name)


def _fetch(connection: Any, address: Address, columns: Sequence[str] | None) -> IO[bytes]:
    """Stream the table into a file of mode 0600."""
    import pyarrow.parquet as pq

    unnamed = Path("/proc/self/fd").exists()
    file: IO[bytes] = tempfile.TemporaryFile() if unnamed else tempfile.NamedTemporaryFile()  # noqa: SIM115
    try:
        with (
            _driver(address).rows(connection, address, columns) as reader,
            pq.ParquetWriter(file, reader.schema, compression="zstd", compression_level=1) as writer,
        ):
            for batch in _gathered(reader):
                writer.write_table(batch)
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


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


@contextmanager
def _explained(address: Address) -> Iterator[None]:
    """Failures of the driver and of the disk in our words. The driver's own may quote a row."""
    try:
        yield
    except DiscreetError:
        raise
    except Exception as error:
        cause = _driver(address).cause(error)
        if cause is not None:
            raise DataError(f"{address} cannot be read: {cause[0]}.", "Nothing was read or spent.", cause[1]) from None
        if isinstance(error, OSError):
            raise DataError(
                f"{address} could not be copied: {error.strerror or type(error).__name__}.",
                f"Its rows are read once, into a file in {tempfile.gettempdir()!r} that only this process can open.",
                "Make room there, or set TMPDIR to a disk that has it.",
            ) from None
        raise
