"""The key of a plan that a fault is about, which a function found that plans call.

Such a function knows its parameters but no plan. A parameter is a key of the release, or of another table; where it is
neither, or was left out, the kind of error and the kind of release decide.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.plan.file import PlanSource
from discreet.plan.kinds.registry import kind_of
from discreet.plan.shape import AnyRelease
from discreet.plan.source import Data
from discreet.words.errors import DataError, DiscreetError, FitError, FormulaError, Infeasible
from discreet.words.faults import Fault, Place


def blamed(source: PlanSource, release: AnyRelease, error: DiscreetError) -> list[Fault]:
    """The faults of an error about a release of this source, each at its place."""
    found = [fault.renamed(kind_of(release).parameters) for fault in error.faults]
    return [replace(fault, place=_place(source, release, fault, error)) for fault in found]


def _place(source: PlanSource, release: AnyRelease, fault: Fault, error: DiscreetError) -> Place:
    head, _, rest = (fault.about or "").partition(".")
    index = source.file.index(release.name)
    if head in release.model_fields_set:
        return ("release", index, head, rest) if rest else ("release", index, head)
    if head in Data.model_fields or head == "schema":
        return source.place("data", head)
    return ("release", index, "kind" if head == "unit" else _key(release, error))


def _key(release: AnyRelease, error: DiscreetError) -> str:
    """The key that errors of this class are mostly about."""
    if isinstance(error, FormulaError | FitError):
        return "formula"
    kind = kind_of(release)
    if isinstance(error, DataError):
        return kind.subject
    if isinstance(error, Infeasible):
        return "epsilon"
    return next(key for key in kind.steering if getattr(release, key) is not None)
