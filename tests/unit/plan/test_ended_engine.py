"""Java may end at any instant: a run ends in words, and what was found wrong before is not hidden."""

from __future__ import annotations

import logging
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from discreet.data.engines import spark
from discreet.data.frames import query_of, working
from discreet.plan import engine
from discreet.words.errors import DataError, DiscreetError, EngineError

Py4JNetworkError = type("Py4JNetworkError", (Exception,), {})
Py4JError = type("Py4JError", (Exception,), {})
PySparkValueError = type("PySparkValueError", (ValueError,), {})
GONE = (
    ConnectionRefusedError(111, "Connection refused"),
    Py4JNetworkError("Answer from Java side is empty"),
    Py4JError("An error occurred while calling o37.inputFiles"),  # of a call that was under way
    PySparkValueError("[CANNOT_PARSE_DATATYPE]"),  # of a schema that was asked for
    EOFError(),  # of rows that were being sent
)


class Session:
    """Of a Java that has ended, or of one that answers."""

    def __init__(self, error: Exception, *, answers: bool) -> None:
        self.error, self.answers = error, answers
        self._jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=self)))

    def stop(self) -> None:
        warnings.warn("Unable to cleanly shutdown Spark JVM process.", RuntimeWarning, stacklevel=1)
        raise self.error

    def currentTimeMillis(self) -> int:  # noqa: N802 (Java's name)
        if not self.answers:
            raise self.error
        return 0


def of_ours(error: Exception, *, answers: bool = False) -> spark.Spark:
    found = spark.Spark.__new__(spark.Spark)
    found.session, found._ours, found._kept = Session(error, answers=answers), True, {}
    return found


@pytest.mark.parametrize("error", GONE)
def test_a_session_whose_java_has_ended_is_closed(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[bool] = []
    monkeypatch.setattr(spark, "forget", lambda: forgotten.append(True))
    of_ours(error).close()
    assert forgotten == [True]
    with pytest.raises(ValueError):  # another fault is not hidden
        of_ours(ValueError(), answers=True).close()


def test_a_session_of_this_process_whose_java_has_ended_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    error, forgotten = Py4JError("SparkSession does not exist in the JVM"), list[bool]()

    def gone(*_: object) -> Any:
        raise error

    context = SimpleNamespace(master="local[2]", _jvm=Session(error, answers=False)._jvm)
    here = SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=context))
    monkeypatch.setitem(sys.modules, "pyspark", here)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pyspark.sql", SimpleNamespace(SparkSession=gone))  # type: ignore[arg-type]
    monkeypatch.setattr(spark, "forget", lambda: forgotten.append(True))
    with pytest.raises(EngineError) as raised:
        spark._running("local[2]")
    assert raised.value.about == "engine"
    assert forgotten == [True]
    context._jvm = Session(error, answers=True)._jvm
    with pytest.raises(Py4JError):  # another fault is not hidden
        spark._running("local[2]")


@pytest.mark.parametrize("error", GONE)
def test_a_run_whose_engine_has_ended_says_so(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "forget", lambda: None)
    with pytest.raises(EngineError) as raised, engine.at_work():
        engine._WORK.get().engine = of_ours(error)  # type: ignore[union-attr]
        raise error
    assert raised.value.about == "engine.memory"
    with pytest.raises(DataError), engine.at_work():  # what was wrong before the engine ended is told
        engine._WORK.get().engine = of_ours(error)  # type: ignore[union-attr]
        raise DataError("No.", "Yes.", "Do.")
    with pytest.raises(DiscreetError if isinstance(error, OSError) else type(error)), engine.at_work():
        raise error  # no engine was open: another fault


def test_another_fault_of_a_run_is_not_blamed_on_an_engine_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.Spark, "close", lambda _: None)
    with pytest.raises(ZeroDivisionError), engine.at_work():
        engine._WORK.get().engine = of_ours(ValueError(), answers=True)  # type: ignore[union-attr]
        raise ZeroDivisionError


@pytest.mark.parametrize("error", GONE)
def test_the_words_of_a_failure_do_not_ask_an_engine_that_has_ended(error: Exception) -> None:
    def asked() -> Any:
        raise error

    native = SimpleNamespace(_jdf=SimpleNamespace(queryExecution=asked))
    frame: Any = SimpleNamespace(to_native=lambda: native)
    assert query_of(frame) == ""
    with pytest.raises(EngineError), working("count", frame):
        raise error


def test_a_java_that_has_ended_leaves_no_traceback_on_the_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    java_gateway = pytest.importorskip("py4j.java_gateway", reason="needs discreet[spark]")
    root, theirs = logging.getLogger(), logging.getLogger("py4j")
    monkeypatch.setattr(root, "filters", [])
    monkeypatch.setattr(root, "handlers", [logging.StreamHandler()])
    monkeypatch.setattr(theirs, "propagate", True)

    def ended(_: object) -> str:
        java_gateway.logger.exception("Error while receiving.")
        raise java_gateway.Py4JNetworkError("Error while sending or receiving")

    def asked() -> str:
        client = java_gateway.GatewayClient()
        client._get_connection = lambda: SimpleNamespace(send_command=ended, close=lambda reset: None)
        assert client.send_command("c", retry=False) == java_gateway.proto.ERROR
        return capfd.readouterr().err

    assert "Traceback" in asked()
    spark.silence_py4j()
    assert asked() == ""
    root.error("of somebody else")
    assert capfd.readouterr().err == "of somebody else\n"
