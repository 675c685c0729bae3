"""The cost of a draft and the errors of its tables, from `plan.check`: no confidential data are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from discreet.data.databases import is_address
from discreet.desk.book import stamp, stamps
from discreet.desk.calculators import SECONDS, TooLong, shared
from discreet.desk.desk import DataSource, Desk, no_source
from discreet.desk.drafts import Draft, digest
from discreet.desk.published import book
from discreet.ledger.budget import amounts
from discreet.plan.advice import advice_of
from discreet.plan.check import PlanCheck, check
from discreet.plan.document import Document
from discreet.plan.file import PlanFile, PlanSource
from discreet.plan.kinds.kind import PlannedRelease
from discreet.plan.reading import contradictions, faults
from discreet.plan.repeats import repeated
from discreet.plan.shape import AnyRelease, Plan
from discreet.privacy.guarantee import Guarantee
from discreet.tables.budget.division import BudgetAdvice, Measure
from discreet.words.errors import DataError, DiscreetError, PrivacyError
from discreet.words.faults import Fault, Place
from discreet.words.voices import FORM, LABELS, UNIT_FORM

ADVICE_SECONDS = 4 * SECONDS
"""Advice calibrates every mechanism at several epsilons."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A reason why a plan cannot be run, with its form field and its parameter."""

    where: str
    text: str
    field: str
    about: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """Of a request what pages show."""

    source: PlanSource
    release: AnyRelease
    guarantee: Guarantee


@dataclass(frozen=True, slots=True)
class JudgedDraft:
    """A draft judged; `found` is None where its shape is already wrong. `warnings` keep nothing from being run."""

    found: PlanCheck | None
    trouble: tuple[Trouble, ...]
    warnings: tuple[Trouble, ...] = ()
    advice: Mapping[str, BudgetAdvice | str] = field(default_factory=dict)

    @property
    def can_run(self) -> bool:
        return not self.trouble

    def to_dict(self) -> dict[str, Any]:
        told, warned = (
            [{"where": each.where, "message": each.text, "field": each.field, "about": each.about} for each in some]
            for some in (self.trouble, self.warnings)
        )
        if self.found is None:
            nothing: dict[str, Any] = {"cost": None, "remaining_after": None, "releases": []}
            return {"can_run": False, "faults": told, "warnings": warned, **nothing}
        found = self.found
        return {
            "can_run": self.can_run,
            "faults": told,
            "warnings": warned,
            "cost": amounts(found.only.cost),
            "remaining_after": amounts(found.only.after.remaining) if found.only.known else None,
            "releases": [release.to_dict() for release in found.releases],
        }


async def estimate(desk: Desk, draft: Draft, plan: str, *, by: str, advise: Measure | None = None) -> JudgedDraft:
    """Judge a draft for a person, in a process that can be ended; before the same public facts it is judged once.

    With `advise`, releases of several tables get advice on how to divide epsilon.
    """
    source = desk.sources.get(draft.source)
    if source is None:
        return JudgedDraft(None, (Trouble("", no_source(draft.source), ""),))
    asked = draft.model_dump_json()
    public = [source.path, *([source.sizes] if source.sizes else []), *(each.file for each in source.agency.values())]
    facts = [*(stamp(desk.folder / path) for path in public), stamp(desk.releases / plan)]
    elsewhere = "://" in desk.ledger or is_address(source.path)  # nothing tells whether a server has changed
    key = (
        None
        if elsewhere or desk.ledger_trouble
        else (desk, digest(asked), plan, advise, *facts, *stamps(Path(desk.ledger)))
    )
    try:
        found: JudgedDraft = await shared.result(
            by, _judged, desk, asked, plan, advise, key=key, seconds=ADVICE_SECONDS if advise else SECONDS
        )
    except TooLong as error:
        return JudgedDraft(None, (Trouble("", str(error), ""),))
    return found


def _judged(desk: Desk, asked: str, plan: str, advise: Measure | None) -> JudgedDraft:
    """The same from what can be sent to a process, and to be sent back: of a request what pages show."""
    judged = judge(desk, Draft.model_validate_json(asked), plan)
    found = judged.found
    if found is None:
        return judged
    advice = {} if advise is None else advice_of(found, advise, FORM)
    releases = [
        each.as_shown(cast(PlannedRelease, Asked(each.request.source, each.request.release, each.request.guarantee)))
        for each in found.releases
    ]
    return replace(judged, found=replace(found, releases=tuple(releases)), advice=advice)


def judge(desk: Desk, draft: Draft, plan: str) -> JudgedDraft:
    """Judge a draft as the plan that it would become."""
    if draft.source not in desk.sources:
        return JudgedDraft(None, (Trouble("", no_source(draft.source), ""),))
    document = Document(desk.plan_file(plan), {}, {})
    try:
        content = draft.content(desk, plan)
    except DataError as error:
        return JudgedDraft(None, told(document, error.faults))
    document = Document(desk.plan_file(plan), content, {})
    try:
        shaped = Plan.model_validate(content)
    except ValidationError as error:
        return JudgedDraft(None, told(document, faults(error)))
    if same := contradictions(shaped):
        return JudgedDraft(None, told(document, same))
    refused = told(document, _refused(desk.sources[draft.source], shaped))
    try:
        found = check(PlanFile(shaped, document, desk.traces))
    except DiscreetError as error:
        return JudgedDraft(None, (*refused, *told(document, error.faults)))
    charges = [e for e in book(desk).entries if e.kind == "charge" and e.dataset == shaped.only.budget.dataset]
    twice = repeated([each.request for each in found.releases], charges)
    return JudgedDraft(found, (*refused, *told(document, found.faults)), told(document, twice))


def _refused(source: DataSource, plan: Plan) -> list[Fault]:
    """The conflicts of a plan with the desk's settings; an invalid unit is left to the plan's own check."""
    try:
        text = source.refusal(plan.only.unit.unit())
    except PrivacyError:
        return []
    return [Fault(("unit",), text)] if text else []


def told(document: Document, found: Iterable[Fault]) -> tuple[Trouble, ...]:
    return tuple(_trouble(document, fault) for fault in found)


def _trouble(document: Document, fault: Fault) -> Trouble:
    of_unit = fault.place[:1] == ("unit",)
    place: Place = ("unit", "by") if fault.place == ("unit",) and fault.about == "by" else fault.place
    return Trouble(_named(document, place), fault.said(UNIT_FORM if of_unit else FORM), _field(place), fault.about)


def _named(document: Document, place: Place) -> str:
    """A place as the form calls it: release 'jobs', Epsilon."""
    above, key = (place[:2], place[2:3]) if place[:1] in (("release",), ("alarms",)) else ((), place[1:2])
    word = "protect" if place[:2] == ("unit", "by") else str(key[0]) if key else ""
    label = "Who is protected" if place == ("unit",) else LABELS.get(word)
    return document.name(place) if label is None else ", ".join(filter(None, (document.name(above), label)))


def _field(place: Place) -> str:
    """The id of the form field at a place of the plan."""
    return "-".join(map(str, place[:3]))
