"""Spark, for data that outgrow one machine. Needs the `spark` extra (PySpark 4) and Java 17 or newer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.databases import SomeColumns, is_address
from discreet.errors import DataError, MissingExtra
from discreet.extras import needs
from discreet.frames import called, collect, open_frame, to_arrow, working

if TYPE_CHECKING:
    from discreet.delimited import Reading
    from discreet.frames import Frame

JAVA = 17
INSTALL_JAVA = (
    "on Debian and Ubuntu `sudo apt install openjdk-17-jre-headless`, on macOS `brew install openjdk@17`, "
    "elsewhere adoptium.net; or leave Spark out, DuckDB needs no Java"
)


class Spark:
    """One Spark session, the caller's or a local one of our own.

    Attributes
    ----------
    session : Spark's own object, for what the three verbs do not cover.
    """

    def __init__(
        self,
        session: Any = None,
        *,
        master: str = "local[*]",
        memory: str = "2g",
        checkpoints: str | Path | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        """Use `session`, or start one at `master`, closed to other machines unless `settings` say otherwise.

        `keep` writes to `checkpoints`, which survives the loss of an executor; without it, to executors' disks.
        """
        self._ours = session is None
        self.session = _start(master, memory, settings or {}) if session is None else session
        self._reliable = checkpoints is not None
        if checkpoints is not None:
            self.session.sparkContext.setCheckpointDir(str(checkpoints))
        self._kept: dict[str, Any] = {}

    def read(
        self,
        source: Any,
        *,
        name: str | None = None,
        table: str | None = None,
        readings: Mapping[str, Reading] | None = None,
    ) -> Frame:
        """A lazy frame over Parquet or CSV at a path that the cluster sees, a frame in memory, or a kept name."""
        if isinstance(source, str) and source in self._kept:
            source = self._kept[source]
        elif isinstance(source, SomeColumns) or is_address(source):
            raise DataError(
                "Spark does not read tables of PostgreSQL here.",
                "It reads Parquet and CSV at a path that every executor sees.",
                "Leave the engine out for DuckDB, or write the table to Parquet.",
                about="source",
            )
        elif isinstance(source, str | Path):
            source = self._scan(str(source), readings or {})
        else:
            arrow = to_arrow(source, name=name or called(source))
            source = source if arrow is None else self._send(arrow)
        return open_frame(source, name=name, table=table)

    def keep(self, frame: Frame, name: str) -> Frame:
        """Checkpoint: the rows are computed once and the plan that led to them is forgotten."""
        native = frame.to_native()
        if not hasattr(native, "localCheckpoint"):
            native = self._send(collect(frame, step=name))
        with working(name, frame):
            kept = native.checkpoint(eager=True) if self._reliable else native.localCheckpoint(eager=True)
        self._kept[name] = kept
        return self.read(name)

    def close(self) -> None:
        """Stop the session if it was started here."""
        self._kept.clear()
        if self._ours:
            self.session.stop()

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _scan(self, path: str, readings: Mapping[str, Reading]) -> Any:
        csv = path.removesuffix(".gz").endswith((".csv", ".tsv"))
        try:
            return self._scan_csv(path, readings) if csv else self.session.read.parquet(path)
        except Exception as error:
            raise DataError(
                f"Spark cannot read {path!r} ({type(error).__name__}). It reads Parquet and CSV at a path that every "
                "executor sees. Check the path, or write the file again if it is damaged.",
                about="source",
            ) from None

    def _scan_csv(self, path: str, readings: Mapping[str, Reading]) -> Any:
        """Types as Spark infers them, except that codes with leading zeros stay text, and as `readings` say."""
        from pyspark.sql import functions as fn

        options = {"header": True, "sep": "\t" if ".tsv" in path else ","}
        options |= {"ignoreLeadingWhiteSpace": True, "ignoreTrailingWhiteSpace": True}
        text = self.session.read.csv(path, **options)
        typed = self.session.read.csv(path, inferSchema=True, **options)
        coded = text.select(*[fn.max(fn.col(f"`{name}`").rlike("^0[0-9]")).alias(name) for name in text.columns])
        kept = coded.first().asDict()
        types = [f"`{name}` {_type(dtype, readings.get(name), kept[name])}" for name, dtype in typed.dtypes]
        return self.session.read.schema(", ".join(types)).csv(path, **options)

    def _send(self, table: Any) -> Any:
        import pyarrow as pa

        plain = [
            pa.field(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
            for field in table.schema
        ]
        return self.session.createDataFrame(table.cast(pa.schema(plain)))


def _type(inferred: str, reading: Reading | None, coded: bool | None) -> str:
    """The type of a column: as inferred, unless it is a code or is to be read in a way of its own."""
    if reading == "number":
        return "double"
    texts = {"text": True, "key": inferred != "double", "label": inferred not in ("int", "bigint")}
    return "string" if coded or (reading is not None and texts[reading]) else inferred


def _start(master: str, memory: str, settings: dict[str, str]) -> Any:
    with needs("spark", "The Spark engine"):
        from pyspark.sql import SparkSession
    require_java()
    defaults = {
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    local = {} if not master.startswith("local") else {"spark.sql.shuffle.partitions": "8"}
    builder = SparkSession.builder.master(master).appName("discreet")
    for key, value in {**defaults, **local, **settings}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def require_java() -> None:
    """Refuse to start Spark without a Java that it can use, and say how to get one."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home!r} has no bin/java" if home else "no `java` is on the PATH"
        raise MissingExtra(f"The Spark engine needs Java {JAVA} or newer, but {where}. Install it: {INSTALL_JAVA}.")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    if found is None or int(found[1]) < JAVA:
        version = f"version {found[1]}" if found else "of unknown version"
        raise MissingExtra(
            f"The Spark engine needs Java {JAVA} or newer; {java!r} is {version}. Install {INSTALL_JAVA}."
        )
