"""One module per document's experiment; each has `run(*, quick, data, seed, progress) -> Study`.

Only names live here. A study is imported when it is asked for, and a study whose module is absent is not listed.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

from discreet.errors import PlanError

if TYPE_CHECKING:
    from discreet.studies.study import Run

STUDIES = {
    "lodes": "discreet.studies.lodes:run",
    "lmm": "discreet.studies.lmm:run",
    "blmm": "discreet.studies.blmm:run",
    "posterior": "discreet.studies.posterior:run",
    "m3": "discreet.studies.m3:run",
    "crime": "discreet.studies.crime:run",
}


def available() -> list[str]:
    """The names that `load` accepts."""
    return [name for name, place in STUDIES.items() if find_spec(place.partition(":")[0])]


def load(name: str) -> Run:
    """The function that runs the study `name`."""
    if name not in available():
        raise PlanError(f"There is no study {name!r}. Choose one of: {', '.join(available())}.")
    module, _, function = STUDIES[name].partition(":")
    return cast("Run", getattr(import_module(module), function))
