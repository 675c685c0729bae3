"""Every kind of failure of an engine, from what the engines really raise."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from discreet.data import failures, scans
from discreet.data.frames import collect, connect, open_frame, working
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments
from discreet.release.account import Account
from discreet.release.offer import Offer
from discreet.words.errors import EngineError
from faults_of import about

Py4JJavaError = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})
Py4JNetworkError = type("Py4JNetworkError", (Exception,), {"__module__": "py4j.protocol"})
Py4JError = type("Py4JError", (Exception,), {"__module__": "py4j.protocol"})


class Conditioned(Exception):
    """Of Spark."""

    def getCondition(self) -> str:  # noqa: N802 (Spark's name)
        return str(self.args[0])


GONE = SimpleNamespace(_jdf=None, sparkSession=SimpleNamespace())  # whose Java answers nothing

KINDS: list[tuple[BaseException, Any, failures.Failure]] = [
    (KeyboardInterrupt(), None, "interrupted"),
    (RuntimeError("Query interrupted"), None, "interrupted"),
    (duckdb.InterruptException("INTERRUPT Error: Interrupted!"), None, "interrupted"),
    (Conditioned("SPARK_JOB_CANCELLED"), None, "interrupted"),
    (MemoryError(), None, "gone"),
    (duckdb.OutOfMemoryException("Out of Memory Error: failed to pin block"), None, "gone"),
    (Py4JJavaError("java.lang.OutOfMemoryError: Java heap space"), None, "gone"),
    (Py4JJavaError("serialized results is bigger than spark.driver.maxResultSize"), None, "gone"),
    (Py4JNetworkError("Answer from Java side is empty"), None, "gone"),
    (ConnectionRefusedError(111, "Connection refused"), None, "gone"),
    (Py4JError("An error occurred while calling o37.collect"), GONE, "gone"),
    (EOFError(), GONE, "gone"),
    (duckdb.InvalidInputException("No magic bytes found at end of file"), None, "damaged"),
    (duckdb.Error("Out of buffer"), None, "damaged"),
    (duckdb.ConversionException("CSV Error on Line: 3"), None, "damaged"),
    (Conditioned("FAILED_READ_FILE.NO_HINT"), None, "damaged"),
    (OSError("Corrupt snappy compressed data."), None, "damaged"),  # of Arrow
    (duckdb.IOException("Could not write file: No space left on device"), None, "unreached"),
    (OSError(28, "No space left on device"), None, "unreached"),
    (Conditioned("FAILED_READ_FILE.FILE_NOT_EXIST"), None, "unreached"),
    (duckdb.ConversionException("Could not convert string 'secret' to INT64"), None, "wrong"),
    (RuntimeError("secret"), None, "wrong"),
    (Conditioned("UNRESOLVED_COLUMN"), None, "wrong"),
]
ABOUT = {"gone": "engine.memory", "damaged": "source", "unreached": "disk", "wrong": "source"}


@pytest.mark.parametrize(("error", "native", "kind"), KINDS, ids=lambda each: type(each).__name__)
def test_what_an_engine_raises_has_one_kind(error: BaseException, native: Any, kind: failures.Failure) -> None:
    assert failures.kind_of(error, native) == kind
    said = failures.failure(error, step="cells", native=native)
    assert isinstance(said, KeyboardInterrupt) == (kind == "interrupted")
    if isinstance(said, EngineError):
        assert said.about == ABOUT[kind]
        assert "secret" not in str(said)
    assert {each for _, _, each in KINDS} == set(ABOUT) | {"interrupted"}


@pytest.mark.parametrize("compression", ["snappy", "zstd", "gzip", "none"])
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_file_that_was_damaged_is_called_damaged_by_every_engine(
    engine: str, compression: str, tmp_path: Path
) -> None:
    path, words = tmp_path / "jobs.parquet", pa.table({"x": [f"secret{i}" for i in range(5_000)]})
    parquet.write_table(words, path, compression=compression, use_dictionary=False)
    data = pytest.importorskip("polars").scan_parquet(path) if engine == "polars" else path
    frame = open_frame(data)
    content = bytearray(path.read_bytes())
    content[100:2_000] = bytes(1_900)
    path.write_bytes(content)
    with pytest.raises(EngineError, check=about("source")) as caught:
        collect(frame, step="words")
    assert "secret" not in str(caught.value)


def test_a_query_that_is_interrupted_ends_in_pythons_own_interruption() -> None:
    busy = connect()
    busy.execute("SET enable_progress_bar = true")
    busy.execute("SET enable_progress_bar_print = false")

    def press() -> None:
        while busy.query_progress() <= 0:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=press, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            collect(open_frame(busy.sql("SELECT i FROM range(100000000000) r(i) ORDER BY i DESC LIMIT 3")), step="rows")
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_look_at_a_file_can_be_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not called a damaged file then."""
    (tmp_path / "jobs.csv").write_text("a,b\n1,2\n")

    def stopped(*_: object, **__: object) -> Any:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(scans.delimited, "scan", stopped)
    with pytest.raises(KeyboardInterrupt):
        open_frame(tmp_path / "jobs.csv")


@pytest.mark.parametrize("when", ["read", "draw"])
def test_an_interrupted_release_of_python_says_what_was_spent_and_goes_on(when: str) -> None:
    """The same name goes on, and pays nothing twice."""
    account = Account.open(None, dataset="jobs", unit=Establishments(alpha=0.1), budget=Pure(2))
    stopped = [when]

    def step(name: str) -> Any:
        def run(*_: object) -> dict[str, int]:
            if name in stopped:
                stopped.clear()
                with working("cells"):
                    raise RuntimeError("Query interrupted")
            return {"n": 1}

        return run

    guarantee = Guarantee(account.unit, Pure(1))
    offer: Offer[None, Any, Any] = Offer(
        guarantee, {"kind": "test"}, expected=dict, read=step("read"), draw=step("draw")
    )
    with pytest.raises(KeyboardInterrupt) as caught:
        account.release(offer, None, name="counts")
    [note] = caught.value.__notes__
    paid = when == "draw"
    assert account.remaining == Pure(1 if paid else 2)
    assert ("epsilon=1" in note) == paid
    assert "'counts'" in note
    assert account.release(offer, None, name="counts").name == "counts"
    assert account.remaining == Pure(1)


def test_an_interrupted_command_ends_with_130_and_its_note(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the command: DuckDB's exception and Python's own are one."""
    from discreet.cli import main
    from discreet.plan import check as checking

    for error in (RuntimeError("Query interrupted"), KeyboardInterrupt()):
        error.add_note("Nothing was spent.")

        def stopped(*_: object, error: BaseException = error) -> Any:
            raise error

        monkeypatch.setattr(checking, "check", stopped)
        monkeypatch.setattr("discreet.plan.reading.read_plan", lambda path: path)
        monkeypatch.setattr("sys.argv", ["discreet", "check", "plan.toml"])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 130
        assert "Nothing was spent." in capsys.readouterr().err


def test_an_interrupted_worker_of_the_desk_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves no final event: a run without one, whose worker is gone, is interrupted."""
    from discreet.desk import runs, worker

    def stopped(*_: object, **__: object) -> Any:
        error = KeyboardInterrupt()
        error.add_note("1 is paid for.")
        raise error

    monkeypatch.setattr(worker, "_carry_out", stopped)
    assert worker.main(tmp_path / "plan.toml", tmp_path, "run-1", "", 1, b"") == 130
    kinds = [json.loads(line) for line in (tmp_path / "run-1.jsonl").read_text().splitlines()]
    assert not {each["kind"] for each in kinds} & runs.FINAL.keys()
    assert "1 is paid for." in kinds[-1]["text"]
