"""Where relational work runs. Three verbs: open an engine, read a table in it, keep a step's result there.

Most users never come here: `discreet.data.frames.open_frame` lets the data's type pick the engine. Open one yourself to set
its memory, its threads or its cluster, to spill to a chosen disk, or to keep what several queries share.

    with engines.open("duckdb", memory_limit="2GB", temp_directory="/fast/disk") as engine:
        jobs = engine.read("jobs.parquet")
        cells = engine.keep(jobs.group_by("place").agg(nw.len().alias("n")), "jobs_by_place")

duckdb  the embedded engine, and the default: nothing to set up, spills to disk when memory runs short
memory  Arrow tables in this process: no database, every step is computed as a whole. For small data and for tests
spark   for data that outgrow one machine. Needs the `spark` extra (PySpark 4) and Java 17 or newer

`spark_settings` says which settings of Spark a plan may state, `java` whether Spark's Java is still there.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from discreet.words.errors import PlanError

if TYPE_CHECKING:
    from discreet.data.delimited import Reading
    from discreet.data.frames import Frame

Name: TypeAlias = Literal["duckdb", "memory", "spark"]
_MODULES: dict[str, str] = {"duckdb": "DuckDB", "memory": "Memory", "spark": "Spark"}


@runtime_checkable
class Engine(Protocol):
    """What every engine can do. Settings differ, so `open` is each engine's constructor."""

    def read(
        self,
        source: Any,
        *,
        name: str | None = None,
        table: str | None = None,
        readings: Mapping[str, Reading] | None = None,
    ) -> Frame:
        """A lazy frame over a path, a frame in memory, a frame of this engine, or a name given to `keep`.

        `readings` say how columns of a CSV file are read.
        """

    def keep(self, frame: Frame, name: str) -> Frame:
        """Run the step once, keep its rows in the engine under `name`, and go on from them."""

    def close(self) -> None:
        """Let go of what was kept and of what was opened here."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...


def open(engine: Name = "duckdb", **settings: Any) -> Engine:
    """Open an engine by name with its own settings; see `duckdb.DuckDB`, `memory.Memory` and `spark.Spark`."""
    if engine not in _MODULES:
        raise PlanError(
            f"Engine {engine!r} is unknown.",
            f"There are: {', '.join(_MODULES)}.",
            "Leave it out for duckdb.",
            about="engine",
        )
    constructor = getattr(import_module(f"discreet.data.engines.{engine}"), _MODULES[engine])
    return cast("Engine", constructor(**settings))
