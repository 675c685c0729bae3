"""Work on files that somebody sent, in a process with limits: time, memory, no way back but JSON.

Here is the fence and what may be done inside it. A file that makes a reader crash, hang or swell ends this process
and nothing else.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import DataError, DiscreetError
from discreet.web import tether

SECONDS = 90
MEMORY = 4 * 2**30  # of addresses: libraries reserve far more than they use
FILE = 64 * 2**20
ENDINGS = (".csv", ".parquet")
PAST, HISTORY = 12, 4  # periods that are forecast again, to set the threshold; the least that theta forecasts from


def confined(task: str, arguments: dict[str, Any], *, seconds: int = SECONDS) -> Any:
    """The result of a task, or its error in words."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    asked = json.dumps({"task": task, "arguments": arguments})
    try:
        done = subprocess.run(
            [sys.executable, "-m", "discreet.web.confined", str(tether.line())],
            pass_fds=[tether.line()],
            input=asked,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataError(f"The work took more than {seconds} seconds. The desk ends it there. Send less data.") from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise DataError(
            "The file could not be worked on: it is damaged, or needs more memory than the desk gives. Files are CSV "
            "or Parquet tables. Check the file, or send less data."
        ) from None
    if "refused" in answer:
        raise DataError(_without_folders(answer["refused"], arguments))
    return answer["result"]


def _without_folders(text: str, arguments: dict[str, Any]) -> str:
    """A message that names the files, and not where the desk has put them."""
    for value in arguments.values():
        if isinstance(value, str) and value.startswith("/"):
            text = text.replace(f"{Path(value).parent}/", "")
    return text


def exceptions(panel: str, forecasts: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The exception report on a panel of series."""
    from discreet.change.exceptions import exception_report

    made: Any = forecasts
    if forecasts is None:
        _long_enough(panel, options["horizon"])
        from discreet.change.forecasters import forecast_panel

        made = forecast_panel(panel, methods=("theta",), horizon=options["horizon"], past=PAST)
    found = exception_report(panel, made, **options)
    return found.to_dict() | {"summary": found.summary()}


def _long_enough(panel: str, horizon: int) -> None:
    """Refuse a horizon beyond the panel before a forecast is made, which takes seconds."""
    from discreet.change.panel import columns

    _, periods = np.unique(columns(panel, ("series", "t", "value"), what="panel")["series"], return_counts=True)
    needed = horizon + PAST + HISTORY - 1
    if periods.min() < needed:
        raise DataError(
            f"Horizon {horizon} was sent, and the shortest series has {periods.min()} periods. Each of the last "
            f"{PAST} is forecast from {horizon} before, so every series needs {needed}. Lower the horizon, leave short "
            "series out, or send forecasts."
        )


def fit(formula: str, data: str) -> dict[str, Any]:
    """A linear mixed model."""
    from discreet.mixed import MixedWarning, mixed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixedWarning)  # the summary carries the same notes
        found = mixed(formula, data)
    return {"summary": found.summary(), "fixed": found.fixed, "se": found.se, "variances": found.variances}


def model_curve(formula: str, data: str, epsilons: list[float]) -> dict[str, Any]:
    """How well private estimates fit, over epsilon, on data that are not confidential."""
    from discreet.noise.source import SeededSource
    from discreet.studies.lmm_curves import Case, Trials, by_moments

    case = Case.of("model", formula, data)
    rows = list(by_moments(case, epsilons, Trials(5, SeededSource(0), 0)))
    return {"rows": rows, "best": case.best}


TASKS: dict[str, Callable[..., Any]] = {"exceptions": exceptions, "fit": fit, "model_curve": model_curve}


def _limit() -> None:
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_FSIZE, FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def main() -> None:
    tether.hold(int(sys.argv[1]))
    asked = json.loads(sys.stdin.read())
    _limit()
    try:
        answer = {"result": _finite(TASKS[asked["task"]](**asked["arguments"]))}
    except DiscreetError as error:
        answer = {"refused": str(error)}
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
