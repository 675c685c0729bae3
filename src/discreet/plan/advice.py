"""How to divide the epsilon of a plan's releases of several tables, from what is public about their cells."""

from __future__ import annotations

from discreet.errors import DiscreetError
from discreet.plan.check import PlanCheck
from discreet.plan.counts import CountRequest
from discreet.plan.shape import Counts
from discreet.plan.sizes import PublicSizes
from discreet.tables.advice import BudgetAdvice, Measure
from discreet.tables.counsel import advice_on
from discreet.voices import PLAN, Voice


def advice_of(found: PlanCheck, measure: Measure, voice: Voice = PLAN) -> dict[str, BudgetAdvice | str]:
    """Advice by the name of each release of several tables that is not paid for yet, or why there is none."""
    public = {source.name: PublicSizes.of(source) for source in found.file.sources}
    told: dict[str, BudgetAdvice | str] = {}
    for known in found.releases:
        request = known.request
        if not isinstance(request, CountRequest) or not isinstance(request.release, Counts) or known.state != "new":
            continue
        release, queries = request.release, request.queries
        sizes, unread = public[request.source.name]
        if unread:
            told[known.name] = unread[0].said(voice)
            continue
        asked = {
            "delta": None if release.delta is None else release.delta / len(queries),
            "calibration": release.calibration,
            "scale_share": release.scale_share,
        }
        try:
            told[known.name] = advice_on(
                queries,
                [None if sizes is None else sizes.cells(query) for query in queries],
                epsilon=release.epsilon,
                measure=measure,
                add_up=release.add_up,
                asked=asked,
            )
        except DiscreetError as error:
            told[known.name] = " ".join(fault.said(voice) for fault in error.faults)
    return told
