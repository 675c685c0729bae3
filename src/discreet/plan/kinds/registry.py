"""The kind of every section of a plan that asks for a release."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.plan.kinds.counts import COUNT, COUNTS
from discreet.plan.kinds.flows import CHANGES, FLOWS
from discreet.plan.kinds.kind import ReleaseKind
from discreet.plan.kinds.models import MODEL
from discreet.plan.kinds.posteriors import POSTERIOR
from discreet.plan.shape import AnyRelease
from discreet.words.cases import case_of

KINDS: Mapping[str, ReleaseKind] = {
    "count": COUNT,
    "counts": COUNTS,
    "sum": COUNT,
    "sums": COUNTS,
    "flows": FLOWS,
    "changes": CHANGES,
    "posterior": POSTERIOR,
    "model": MODEL,
}


def kind_of(release: AnyRelease) -> ReleaseKind:
    """The kind of a section; one that nobody thought of here is an error that names it."""
    return case_of(release.kind, KINDS)
