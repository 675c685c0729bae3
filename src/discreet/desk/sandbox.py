"""Work on files that somebody sent, in a process with limits: time, memory, no way back but JSON.

Here is the fence and what may be done inside it. A file that makes a reader crash, hang or swell ends this process
and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from discreet.desk import tether
from discreet.desk.turns import Turns
from discreet.words.errors import DataError, DiscreetError
from discreet.words.voices import FORM

SECONDS = 90
MEMORY = 2**30  # that can be written to; of addresses libraries reserve far more than they use
VALUES = 30_000_000
"""Rows times columns of a file; a Parquet file of a megabyte can say that it has billions."""

LEAN = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
}
"""Libraries that allocate no memory before they need it, so a limit is a limit of use."""

FILE = 64 * 2**20
AT_ONCE = 2
TURNS = Turns("fits and reports", at_once=AT_ONCE, each=1, waiting=3)
ENDINGS = (".csv", ".parquet")

Result = TypeVar("Result")
_threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="confined")
_running: set[subprocess.Popen[str]] = set()


def confined(task: str, arguments: dict[str, Any], *, seconds: int = SECONDS) -> Any:
    """The result of a task, or its error in words."""
    asked = json.dumps({"task": task, "arguments": arguments})
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "discreet.desk.sandbox", str(tether.line())],
        pass_fds=[tether.line()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **LEAN},
        start_new_session=True,
    ) as process:
        _running.add(process)
        try:
            said, _ = process.communicate(asked, timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise DataError(
                f"The work took more than {seconds} seconds.",
                "The desk ends it there.",
                "Send less data.",
                about="file",
            ) from None
        finally:
            _running.discard(process)
    try:
        answer = json.loads(said)
    except ValueError:
        raise DataError(
            "The file could not be worked on: it is damaged, or needs more memory than the desk gives.",
            "Files are CSV or Parquet tables.",
            "Check the file, or send less data.",
            about="file",
        ) from None
    if "refused" in answer:
        raise DataError(_without_folders(answer["refused"], arguments))
    return answer["result"]


async def in_turn(who: str, work: Callable[[], Result]) -> Result:
    """The result of work that uses the fence, when it is this person's turn."""
    async with TURNS.of(who):
        return await asyncio.get_running_loop().run_in_executor(_threads, work)


def close() -> None:
    """End what is running; people who wait for it get an answer."""
    for process in list(_running):
        process.kill()


def _without_folders(text: str, arguments: dict[str, Any]) -> str:
    """A message that names the files, and not where the desk has put them."""
    for value in arguments.values():
        if isinstance(value, str) and value.startswith("/"):
            text = text.replace(f"{Path(value).parent}/", "")
    return text


def exceptions(
    panel: str,
    forecasts: str | None,
    options: dict[str, Any],
    columns: dict[str, str] | None = None,
    calendar: str | None = None,
    periods: int | None = None,
) -> dict[str, Any]:
    """The exception report on a panel of series, or a backtest of past `periods`, with its files.

    `columns` are what ours are called in the panel and in the calendar.
    """
    from discreet.changes.backtest import backtest_changes
    from discreet.changes.exceptions import exception_report
    from discreet.changes.page import backtest_page, exception_page
    from discreet.changes.tidy import in_our_names, renamed
    from discreet.pages.page import Table
    from discreet.pages.study import comma_separated

    rows, made = in_our_names(panel, forecasts, columns or {})
    theirs = {ours: name for ours, name in (columns or {}).items() if ours == "t" != name}
    days = None if calendar is None else renamed(calendar, theirs, what="calendar")
    if periods is None:
        found = exception_report(rows, made, calendar=days, **options)
        page, every = exception_page(found), found.rows
    else:
        past = backtest_changes(rows, made, calendar=days, periods=periods, **options)
        page, every = backtest_page(past), [{**row, "series": ", ".join(row["series"])} for row in past.rows]
    said = found if periods is None else past
    files = {"report.html": page.html(), "list.csv": comma_separated(Table.of(every, ""))}
    return said.to_dict() | {"summary": said.summary(), "files": files}


def fit(formula: str, data: str) -> dict[str, Any]:
    """A linear mixed model."""
    from discreet.models.linear import MixedWarning, mixed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)  # the summary carries the same notes
        found = mixed(formula, data)
    return {"summary": found.summary(), "fixed": found.fixed, "se": found.se, "variances": found.variances}


def model_curve(formula: str, data: str, epsilons: list[float], bounds: list[str] | None) -> dict[str, Any]:
    """How well private estimates fit, over epsilon, on data that are not confidential."""
    from discreet.noise.source import SeededSource
    from discreet.utility.model_curves import Case, Trials, by_moments

    case = Case.of("model", formula, data, bounds=None if bounds is None else (bounds[0], bounds[1]))
    rows = list(by_moments(case, epsilons, Trials(5, SeededSource(0), 0)))
    return {"rows": rows, "best": case.best}


def columns(path: str) -> list[str]:
    """The names of a table's columns."""
    from discreet.data.frames import open_frame
    from discreet.data.row_checks import refuse_values_for_names
    from discreet.data.scans import is_csv

    frame = open_frame(path)
    if is_csv(path):
        refuse_values_for_names(frame)
    return list(frame.collect_schema().names())


def check_source(
    path: str,
    schema: dict[str, Any] | None = None,
    allow_multiple: bool | int = False,
    public: Any = (),
    numbers: Any = (),
    unit: dict[str, str] | None = None,
    empty: Any = (),
) -> list[str]:
    """The declarations that the rows of a table do not meet; no value and no number of rows."""
    try:
        if unit is None:
            from discreet.data.frames import open_frame
            from discreet.data.jobs import read_jobs
            from discreet.data.schema import Schema
            from discreet.data.unnamed import periods

            read_jobs(path, schema=schema, allow_multiple=allow_multiple)
            known = replace(Schema.of(schema or {}), unused=())
            return [fault.said(FORM) for fault, _ in periods(open_frame(path), known, list(empty))]
        from discreet.models.linear.private.owner import look

        bounds = (unit["lower"], unit["upper"])
        found = look(path, response=unit["response"], public=public, numbers=numbers, bounds=bounds)
        return [note.words for note in found]
    except DiscreetError as error:
        return [fault.said(FORM) for fault in error.faults] or [error.said(FORM)]


TASKS: dict[str, Callable[..., Any]] = {
    "exceptions": exceptions,
    "fit": fit,
    "model_curve": model_curve,
    "columns": columns,
    "check_source": check_source,
}


def _limit() -> None:
    for kind, most in (
        (resource.RLIMIT_DATA, MEMORY),
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_FSIZE, FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def _not_too_many(arguments: dict[str, Any]) -> None:
    """Refuse a Parquet file by what it says of itself, before it is read."""
    for path in arguments.values():
        if not (isinstance(path, str) and path.endswith(".parquet")):
            continue
        from pyarrow import ArrowException
        from pyarrow.parquet import read_metadata

        try:
            found = read_metadata(path)
        except (ArrowException, OSError):
            continue  # its reader says what is wrong
        if found.num_rows * found.num_columns > VALUES:
            raise DataError(
                f"{found.num_rows:,} rows of {found.num_columns:,} columns were sent.",
                f"The desk works on {VALUES:,} values at most.",
                "Send fewer rows, or only the columns that are needed.",
                about="file",
            )


def main() -> None:
    tether.hold(int(sys.argv[1]))
    asked = json.loads(sys.stdin.read())
    _limit()
    try:
        _not_too_many(asked["arguments"])
        answer = {"result": _finite(TASKS[asked["task"]](**asked["arguments"]))}
    except DiscreetError as error:
        answer = {"refused": error.said(FORM)}
    except ImportError as error:
        answer = {
            "refused": f"{error.name} is not installed where the desk runs. This needs it. Ask who runs the desk."
        }
    print(json.dumps(answer))


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and value - value != 0:
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


if __name__ == "__main__":
    main()
