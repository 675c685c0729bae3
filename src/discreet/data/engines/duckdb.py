"""The embedded engine, and the default: nothing to set up, spills to disk when memory runs short."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.delimited import quoted
from discreet.data.frames import HOLDERS, collect, connect, open_frame, query_of, working
from discreet.words.errors import EngineError

if TYPE_CHECKING:
    from discreet.data.delimited import Reading
    from discreet.data.frames import Frame


class DuckDB:
    """One DuckDB connection.

    Attributes
    ----------
    connection : DuckDB's own object, for what the three verbs do not cover.
    """

    def __init__(
        self,
        database: str | Path = ":memory:",
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        temp_directory: str | Path | None = None,
    ) -> None:
        """Connect. `memory_limit` ("2GB") bounds DuckDB's own memory; what exceeds it goes to `temp_directory`."""
        import duckdb

        settings = {"memory_limit": memory_limit, "threads": threads, "temp_directory": temp_directory}
        given = {name: str(value) for name, value in settings.items() if value is not None}
        try:
            self.connection = connect(str(database), **given)
        except duckdb.Error as error:
            raise EngineError(
                f"DuckDB cannot open {str(database)!r} with {given or 'its defaults'}: {str(error).splitlines()[0]}",
                "A file that nobody else holds, and memory, can be opened.",
                "Check that the path can be written and that no other process holds it, or leave it out for memory.",
                about="database",
            ) from None
        self._kept: dict[str, str] = {}
        self._count = 0

    def read(
        self,
        source: Any,
        *,
        name: str | None = None,
        table: str | None = None,
        readings: Mapping[str, Reading] | None = None,
    ) -> Frame:
        """A lazy frame over a path, a frame in memory, a relation of this connection or a kept name."""
        if isinstance(source, str) and source in self._kept:
            source = self.connection.table(self._kept[source])
        return open_frame(source, name=name, table=table, connection=self.connection, readings=readings)

    def keep(self, frame: Frame, name: str) -> Frame:
        """Materialise as a temporary table. An older table of that name stays for the frames that read it."""
        import duckdb

        if not isinstance(frame.to_native(), duckdb.DuckDBPyRelation):
            frame = self.read(collect(frame, step=name))
        self._count += 1
        table = f"kept_{self._count}_{name}"
        with working(name, frame):
            self.connection.execute(f"CREATE TEMP TABLE {quoted(table)} AS {query_of(frame)}")
        self._kept[name] = quoted(table)
        return self.read(name)

    def close(self) -> None:
        """Close the connection; frames read here can no longer run."""
        self.connection.close()

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


HOLDERS.add(DuckDB)
