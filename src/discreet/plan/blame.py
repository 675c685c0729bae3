"""The key of a plan that a fault is about, which a function found that plans call.

Such a function knows its parameters and no plan. A parameter is a key of the release, or of another table; where it is
neither, or was left out, the kind of error and the kind of release decide.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.errors import DataError, DiscreetError, FitError, FormulaError, Infeasible
from discreet.faults import Fault, Place
from discreet.plan.shape import AnyRelease, Count, Counts, Data, PosteriorSection

IN_TABLES = {"towards": "shrink"}
IN_SUMMARIES = {"probability": "at", "level": "at"}
"""Parameters of tables, and of posterior summaries, that a plan calls otherwise."""


def blamed(release: AnyRelease, index: int, error: DiscreetError) -> list[Fault]:
    """The faults of an error about the plan's release number `index`, each at its place."""
    names = IN_SUMMARIES if isinstance(release, PosteriorSection) else IN_TABLES
    found = [fault.renamed(names) for fault in error.faults]
    return [replace(fault, place=_place(release, index, fault, error)) for fault in found]


def _place(release: AnyRelease, index: int, fault: Fault, error: DiscreetError) -> Place:
    head, _, rest = (fault.about or "").partition(".")
    if head in release.model_fields_set:
        return ("release", index, head, rest) if rest else ("release", index, head)
    if head in Data.model_fields:
        return ("data", head)
    return ("release", index, "kind" if head == "unit" else _key(release, error))


def _key(release: AnyRelease, error: DiscreetError) -> str:
    """The key that errors of this class are mostly about."""
    if isinstance(error, FormulaError | FitError):
        return "formula"
    tables = isinstance(release, Count | Counts)
    if isinstance(error, DataError):
        return "by" if isinstance(release, Count) else "tables" if tables else "formula"
    if isinstance(error, Infeasible) or not tables:
        return "epsilon"
    given = (name for name in ("mechanism", "delta") if getattr(release, name, None) is not None)
    return next(given, "calibration")
