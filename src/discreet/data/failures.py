"""Why an engine gave no answer: interrupted, gone, a file damaged or out of reach, or the query wrong.

The kind is read from the engine's exception, which is then dropped: its message may quote data. A file is called
damaged where the engine says that it could not decode it, and nowhere else.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, assert_never

from discreet.words.errors import EngineError
from discreet.words.faults import Spelled

Failure: TypeAlias = Literal["interrupted", "gone", "damaged", "unreached", "wrong"]

# DuckDB's other exceptions may quote the value that broke them.
HARMLESS = frozenset(
    {"BinderException", "CatalogException", "ParserException", "OutOfMemoryException", "PermissionException"}
)

MEMORY = re.compile(r"java\.lang\.OutOfMemoryError|out of memory|UNABLE_TO_ACQUIRE_MEMORY|maxResultSize", re.IGNORECASE)
DAMAGE = re.compile(
    r"magic bytes|decompress|Unexpected end of \w+ stream|^Out of buffer|TProtocolException|not a valid DuckDB|"
    r"CSV Error|out of specification|corrupt|FAILED_READ_FILE\.NO_HINT|CANNOT_READ_FILE_FOOTER|"
    r"MALFORMED_(CSV_)?RECORD|BAD_RECORD|CHECKPOINT_RDD_BLOCK",
    re.IGNORECASE,
)
UNREACHED = re.compile(r"FAILED_READ_FILE\.FILE_NOT_EXIST|PATH_NOT_FOUND")

MORE = (
    "Java ends when its memory is full: every cell of a table passes through it.",
    Spelled(
        "Give Spark more memory, such as memory='8g', and ask again.",
        plan="Raise memory under [engine], such as memory = '8g', and run the plan again.",
        command="Raise memory under [engine] of the plan, such as memory = '8g', and run it again.",
    ),
)
LESS = (
    "It may use the memory that it was given, and the disk.",
    Spelled(
        "Raise memory_limit, name a temp_directory with room, or make smaller tables.",
        plan="Free memory, make smaller tables, or write kind = 'spark' and memory under [engine].",
        command="Free memory, make smaller tables, or write kind = 'spark' and memory under [engine] of the plan.",
    ),
)


def interrupted(error: BaseException | None) -> bool:
    """Whether somebody pressed Ctrl-C, or a query was told to stop: DuckDB turns both into errors of its own."""
    kind, module = type(error).__name__, type(error).__module__
    return (
        isinstance(error, KeyboardInterrupt)
        or (kind == "InterruptException" and "duckdb" in module)
        or (type(error) is RuntimeError and str(error) == "Query interrupted")
        or "SPARK_JOB_CANCELLED" in condition_of(error)
    )


def java_ended(error: BaseException) -> bool:
    """Whether an error says that Java has ended, or does not answer any more."""
    return isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"


def answers(session: Any) -> bool:
    """Whether the Java of a session, or of a context, is there."""
    try:
        session._jvm.java.lang.System.currentTimeMillis()
    except Exception:
        return False
    return True


def condition_of(error: BaseException | None) -> str:
    """Spark's name for what went wrong; it holds no data."""
    try:
        return str(getattr(error, "getCondition", lambda: None)() or "")
    except Exception:  # of a Java that has ended
        return ""


def kind_of(error: BaseException, native: Any = None) -> Failure:
    """The kind of an engine's exception; `native` is the engine's own frame."""
    words = f"{condition_of(error)}\n{_words(error)}"
    if interrupted(error):
        return "interrupted"
    if isinstance(error, MemoryError) or MEMORY.search(words) or _has_ended(error, native):
        return "gone"
    if DAMAGE.search(words.strip()):
        return "damaged"
    if isinstance(error, OSError) or type(error).__name__ == "IOException" or UNREACHED.search(words):
        return "unreached"
    return "wrong"


def failure(error: BaseException, *, step: str, native: Any = None, query: Callable[[], str] = str) -> BaseException:
    """What to raise instead of an engine's exception, about `step`."""
    kind, condition = type(error).__name__, condition_of(error)
    reason = _words(error).partition("\n")[0] if kind in HARMLESS else condition
    said = f"Step {step!r} failed in the engine with {kind}{f' ({reason})' if reason else ''}."
    found = kind_of(error, native)
    match found:
        case "interrupted":
            return KeyboardInterrupt(f"Step {step!r} was interrupted.")
        case "gone":
            return gone(said, java=_is_java(error, native))
        case "damaged":
            return EngineError(
                said,
                "The engine could not decode a file of the query; its message can quote data and is withheld.",
                f"Write that file again from its source.\n{query()}",
                about="source",
            )
        case "unreached":
            return EngineError(
                said,
                "A file could not be read or written; the engine's message can quote data and is withheld.",
                f"Look after the disk, the files and the rights of this user.\n{query()}",
                about="disk",
            )
        case "wrong":
            return EngineError(
                said,
                "More of its message is withheld, because it can quote data.",
                f"Check that all tables are in one engine, or run the query there to see more.\n{query()}",
                about="source",
            )
        case _:
            assert_never(found)


def gone(said: str, *, java: bool) -> EngineError:
    """The error of an engine that ended, or that had no room: it names the memory that its user can set."""
    return EngineError(said, *(MORE if java else LESS), about="engine.memory")


def _is_java(error: BaseException, native: Any) -> bool:
    module = type(error).__module__.partition(".")[0]
    return hasattr(native, "_jdf") or module in ("py4j", "pyspark") or java_ended(error)


def _has_ended(error: BaseException, native: Any) -> bool:
    """Whether Java has ended. What a call makes of a connection that breaks can be any error, so Java is asked."""
    if java_ended(error):
        return True
    spark = sys.modules.get("pyspark")
    place = getattr(native, "sparkSession", None) or (None if spark is None else _context(spark))
    return place is not None and _is_java(error, native) and not answers(place)


def _context(spark: Any) -> Any:
    return getattr(getattr(spark, "SparkContext", None), "_active_spark_context", None)


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # Py4J asks Java for them
        return ""
