"""How to divide the epsilon of releases of several tables, from public facts about their cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.plan.check import PlanCheck
from discreet.plan.file import PlanSource
from discreet.plan.kinds.kind import Division
from discreet.plan.kinds.registry import kind_of
from discreet.plan.requests import has_public_list, trial, without_data
from discreet.plan.sizes import PublicSizes
from discreet.tables.budget.advice import advice_on
from discreet.tables.budget.division import BudgetAdvice, Measure
from discreet.tables.query import CountQuery
from discreet.words.errors import DiscreetError
from discreet.words.voices import PLAN, Voice


def advice_of(found: PlanCheck, measure: Measure, voice: Voice = PLAN) -> dict[str, BudgetAdvice | str]:
    """Advice by the name of each release of several tables that is not paid for yet, or why there is none."""
    public = {source.name: PublicSizes.of(source) for source in found.file.sources}
    told: dict[str, BudgetAdvice | str] = {}
    for name, asked, source, queries in _several(found):
        sizes, unread = public[source.name]
        if unread:
            told[name] = unread[0].said(voice)
            continue
        try:
            told[name] = advice_on(
                queries,
                [None if sizes is None else sizes.cells(query) for query in queries],
                epsilon=asked.epsilon,
                measure=measure,
                add_up=asked.add_up,
                asked={
                    "delta": None if asked.delta is None else asked.delta / len(queries),
                    "calibration": asked.calibration,
                    "scale_share": asked.scale_share,
                },
            )
        except DiscreetError as error:
            told[name] = " ".join(fault.said(voice) for fault in error.faults)
    return told


def _several(found: PlanCheck) -> Iterator[tuple[str, Division, PlanSource, Sequence[CountQuery]]]:
    """The releases of several tables that wait, with their queries; also those that epsilon is too small for."""
    known = {each.name: each for each in found.releases}
    for release in found.file.plan.release:
        asked = kind_of(release).division(release)
        if asked is None:
            continue
        source, one = found.file.source(release), known.get(release.name)
        if one is None:
            try:
                several = source.tables.data.allow_multiple
                jobs = without_data(source.schema(), listed=has_public_list(source), allow_multiple=several)
                yield release.name, asked, source, asked.queries(jobs, trial(source))
            except DiscreetError:
                continue  # the check says what is wrong with it
        elif one.new:
            yield release.name, asked, source, one.request.queries
