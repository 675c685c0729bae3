"""Spark, for data that outgrow one machine. Needs the `spark` extra (PySpark 4) and Java 17 or newer."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.databases import SomeColumns, is_address
from discreet.data.delimited import NUMBERS
from discreet.data.engines.java import forget, silence_py4j
from discreet.data.engines.spark_settings import OURS, properties_of
from discreet.data.failures import answers, java_ended
from discreet.data.frames import called, collect, open_frame, to_arrow, working
from discreet.data.scans import refuse_more_columns, refuse_two_meanings
from discreet.words.errors import DataError, EngineError, MissingExtra
from discreet.words.extras import needs

if TYPE_CHECKING:
    from discreet.data.delimited import Reading
    from discreet.data.frames import Frame

JAVA = 17
INSTALL_JAVA = (
    "on Debian and Ubuntu `sudo apt install openjdk-17-jre-headless`, on macOS `brew install openjdk@17`, "
    "elsewhere adoptium.net; or leave Spark out, DuckDB needs no Java"
)


LOCAL = "local[*]"
PATIENCE = 180
"""Seconds in which a cluster must have run a first, empty task."""

CONNECT = 10
"""Seconds in which a master must answer."""


class Spark:
    """One Spark session: the caller's, the one of this process, or a new one.

    Attributes
    ----------
    session : Spark's own object, for what the three verbs do not cover.
    """

    def __init__(
        self,
        session: Any = None,
        *,
        master: str | None = None,
        memory: str = "2g",
        checkpoints: str | Path | None = None,
        settings: Mapping[str, str] | None = None,
        properties: str | Path | None = None,
        wait: float = PATIENCE,
    ) -> None:
        """Use `session`, or that of this process, or start one at `master`; a local one is closed to other machines.

        `keep` writes to `checkpoints`, which survives the loss of an executor; without it, to executors' disks.
        `properties` is a file with further settings, secrets among them. A cluster that has not run an empty task in
        `wait` seconds is refused.
        """
        if session is None:
            _reach(master or LOCAL)
            session = _running(master)
        self._ours = session is None
        self.session = _start(master or LOCAL, memory, settings or {}, properties) if session is None else session
        if self._ours and not (master or LOCAL).startswith("local"):
            _first_task(self, master or LOCAL, wait)
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
                "Spark does not read tables of databases here.",
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
        """Stop the session if it was started here; Java may have ended before."""
        self._kept.clear()
        if self._ours:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that Java has ended
                    self.session.stop()
            except Exception as error:
                if not self.lost(error):
                    raise
                forget()

    def lost(self, error: Exception) -> bool:
        """Whether Java has ended, after an `error`: what a call makes of a connection that breaks can be any error."""
        return java_ended(error) or not answers(self.session)

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stamp(self, path: str | Path) -> dict[str, tuple[int, int]]:
        """The files at a path with their sizes and times, by which a change is noticed."""
        jvm, found = self.session._jvm, {}
        where = jvm.org.apache.hadoop.fs.Path(str(path))
        files = where.getFileSystem(self.session._jsc.hadoopConfiguration())
        for top in files.globStatus(where) or ():
            listed = files.listFiles(top.getPath(), True)
            while listed.hasNext():
                file = listed.next()
                found[file.getPath().toString()] = (file.getLen(), file.getModificationTime())
        return found

    def _scan(self, path: str, readings: Mapping[str, Reading]) -> Any:
        csv = path.removesuffix(".gz").endswith((".csv", ".tsv"))
        try:
            found = self._scan_csv(path, readings) if csv else self.session.read.parquet(path)
        except Exception as error:
            if self.lost(error):
                raise EngineError(
                    f"Spark ended while {path!r} was read.",
                    "It needs memory for what it reads, and nobody may stop it.",
                    "Try again, with more memory for it.",
                    about="engine",
                ) from None
            here = os.path.exists(path)  # noqa: PTH110 (no error for what cannot be a path)
            alone = str(self.session.sparkContext.master).startswith("local")
            unseen = f"{path!r} is on this machine, and a worker of the cluster cannot read it"
            raise DataError(
                f"{unseen if here and not alone else f'Spark cannot read {path!r}'} ({type(error).__name__}).",
                "It reads Parquet and CSV at a path that every worker and this machine see.",
                "Put it on storage that all of them share, and name it there."
                if here and not alone
                else "Check the path, or write the file again if it is damaged.",
                about="source",
            ) from None
        _refuse_unread(path, found)
        if not csv:
            self._refuse_two_meanings(path, found)
            every = self.session.read.options(mergeSchema=True).parquet(path).columns
            refuse_more_columns(every, found.columns, name=called(path))
        return found

    def _refuse_two_meanings(self, path: str, found: Any) -> None:
        """Refuse a column that both files and names of folders have: Spark would take the folder's."""
        folders = list(found._jdf.queryExecution().analyzed().relation().partitionSchema().fieldNames())
        if folders:
            files = self.session.read.options(recursiveFileLookup=True, mergeSchema=True).parquet(path)
            refuse_two_meanings(path, folders, files.columns, name=called(path))

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
    if reading in NUMBERS:
        return "double"
    texts = {"text": True, "key": inferred != "double"}
    return "string" if coded or (reading is not None and texts[reading]) else inferred


def _refuse_unread(path: str, found: Any) -> None:
    """Refuse a folder of which Spark would leave files out: other engines read all of them."""
    folder = Path(path)
    if not os.path.isdir(path):  # noqa: PTH112 (no error for what cannot be a path)
        return
    if sum(1 for _ in folder.rglob("*.parquet")) != len(found.inputFiles()):
        raise DataError(
            f"Spark would not read all Parquet files below {path!r}.",
            "It reads those of the folder itself and of folders such as state=06, and no name that begins with _ or "
            "a point.",
            "Move the files into one folder, or take the others away.",
            about="source",
        )


def _running(master: str | None) -> Any:
    """A session of its own in the Spark of this process, if there is one; a process has one."""
    module = sys.modules.get("pyspark")
    context = None if module is None else module.SparkContext._active_spark_context
    if context is None:
        return None
    if master not in (None, context.master):
        raise EngineError(
            f"Spark runs in this process already, at {context.master!r}, and {master!r} is asked for.",
            "A process has one Spark.",
            "Stop the other session first, or leave the master out to use it.",
            about="engine.master",
        )
    from pyspark.sql import SparkSession

    try:
        session = SparkSession(context).newSession()
        for name, value in OURS.items():
            session.conf.set(name, value)
    except Exception:
        if answers(context):
            raise
        forget()
        raise EngineError(
            "The Spark that this process had has ended.",
            "A process has one Spark, and can start a new one.",
            "Try again.",
            about="engine",
        ) from None
    return session


def _start(master: str, memory: str, settings: Mapping[str, str], properties: str | Path | None) -> Any:
    with needs("spark", "The Spark engine"):
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    require_java()
    silence_py4j()
    local = master.startswith("local")
    own = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    defaults = {
        "spark.driver.memory": memory,
        **(own if local or _on_this_machine(master) else {}),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",  # Spark's messages quote rows
        **({"spark.sql.shuffle.partitions": "8"} if local else {}),
    }
    secrets = {} if properties is None else properties_of(Path(properties))
    builder = SparkSession.builder.master(master).appName("discreet")
    # A machine that runs Java already takes secrets from this process; a new one must not get them by its command line.
    for key, value in {**({} if SparkContext._gateway is None else secrets), **defaults, **settings, **OURS}.items():
        builder = builder.config(key, value)
    try:
        with _named(properties), _quiet():
            session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
    except Exception as error:
        raise EngineError(
            f"Spark could not be started at {master!r} ({type(error).__name__}).",
            "The master must be Spark's own, of the same version, and let this machine in; settings must make sense to "
            "it. More of Spark's message is withheld.",
            "Check master, memory and settings, or leave the engine out for DuckDB.",
            about="engine.master",
        ) from None
    return session


@contextmanager
def _named(properties: str | Path | None) -> Iterator[None]:
    """Have Spark read a file of properties when it starts."""
    name = "PYSPARK_SUBMIT_ARGS"
    before = os.environ.get(name)
    if properties is not None:
        asked = f"--load-spark-defaults --properties-file {shlex.quote(str(Path(properties).resolve()))}"
        os.environ[name] = f"{asked} {before or 'pyspark-shell'}"
    try:
        yield
    finally:
        if properties is not None:
            os.environ.pop(name)
            os.environ |= {} if before is None else {name: before}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Java says while it starts, and ever after, off the terminal: it is no message for the user.

    It writes to the standard error that it inherits.
    """
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere, warnings.catch_warnings():  # noqa: PTH123 (a device)
        warnings.simplefilter("ignore")
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _places(master: str) -> list[tuple[str, int]]:
    """Hosts and ports of a standalone cluster's masters."""
    if not master.startswith("spark://"):
        return []
    parts = [each.rpartition(":") for each in master.removeprefix("spark://").split(",")]
    return [(host.strip("[]"), int(port)) for host, _, port in parts if port.isdigit()]


def _on_this_machine(master: str) -> bool:
    places = _places(master)
    return bool(places) and all(host in ("127.0.0.1", "localhost", "::1") for host, _ in places)


def _reach(master: str) -> None:
    """Refuse a standalone cluster of which no master answers."""
    places = _places(master)
    for place in places:
        with suppress(OSError), socket.create_connection(place, timeout=CONNECT):
            return
    if places:
        raise EngineError(
            f"No master answers at {master!r}.",
            f"It must accept a connection from this machine within {CONNECT} seconds.",
            "Check host, port and network, and that the cluster runs; or leave the engine out for DuckDB.",
            about="engine.master",
        )


def _first_task(engine: Spark, master: str, wait: float) -> None:
    """Have the cluster run an empty task, or refuse it: without a worker that has room, a query would wait for ever."""
    done = threading.Event()

    def ask() -> None:
        with suppress(Exception):
            engine.session.range(1).count()
            done.set()

    threading.Thread(target=ask, daemon=True).start()
    if not done.wait(wait):
        engine.session.stop()
        raise EngineError(
            f"The cluster at {master!r} ran no task in {wait:g} seconds.",
            "It must have a worker with the free cores and memory that are asked for.",
            "Start a worker, ask for less with spark.executor.memory and spark.cores.max, or wait longer.",
            about="engine.master",
        )


def require_java() -> None:
    """Refuse to start Spark without a Java that it can use, and say how to get one."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home!r} has no bin/java" if home else "no `java` is on the PATH"
        raise MissingExtra(
            f"The Spark engine needs Java {JAVA} or newer, but {where}.", remedy=f"Install it: {INSTALL_JAVA}."
        )
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    if found is None or int(found[1]) < JAVA:
        version = f"version {found[1]}" if found else "of unknown version"
        raise MissingExtra(
            f"The Spark engine needs Java {JAVA} or newer; {java!r} is {version}.", remedy=f"Install {INSTALL_JAVA}."
        )
