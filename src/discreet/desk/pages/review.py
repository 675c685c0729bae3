"""Review: the plan as text, its cost, its guarantee in words; and the decision."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from discreet.desk import planning, published, runs
from discreet.desk.accounts import Person
from discreet.desk.desk import DataSource
from discreet.desk.estimates import JudgedDraft, estimate
from discreet.desk.pages.plans import plan_and_draft
from discreet.desk.planning import StoredPlan
from discreet.desk.rendering import At, Here, page
from discreet.desk.security import Asking, Form, needs
from discreet.plan.check import PlanCheck

router = APIRouter(include_in_schema=False)


@router.get("/review")
def waiting(request: Request, here: At, asking: Asking) -> Response:
    return page(
        request,
        "reviews.html",
        waiting=planning.listed(here.store, "submitted"),
        decided=planning.listed(here.store, "approved", "declined", most=30),
    )


@router.get("/review/{name}")
async def review(request: Request, here: At, asking: Asking, name: str) -> Response:
    plan, draft = await run_in_threadpool(plan_and_draft, here, name)
    judged = await estimate(here.desk, draft, name, by=asking.name)
    return await run_in_threadpool(_shown, request, here, asking, plan, judged)


def _shown(request: Request, here: Here, asking: Person, plan: StoredPlan, judged: JudgedDraft) -> Response:
    source = here.desk.sources.get(plan.source)
    return page(
        request,
        "review.html",
        plan=plan,
        source=source,
        estimate=judged,
        unit_facts=[] if source is None or judged.found is None else _unit_facts(here, source, judged.found),
        words=" ".join(each.words for each in judged.found.said) if judged.found else "",
        standing=None if source is None else published.standing(here.desk, source),
        decisions=planning.history(here.store, plan.name),
        runs=runs.listed(here.desk, here.store, plan=plan.name),
        own=here.desk.settings.second_person and asking.name in planning.writers(here.store, plan.name),
    )


def _unit_facts(here: Here, source: DataSource, found: PlanCheck) -> list[str]:
    """The origin of the plan's unit, and what it decides for later plans."""
    unit, own = found.only.unit, source.unit.unit()
    if source.refusal(unit):
        return []  # among what keeps the plan from being run
    if source.unit_fixed:
        return [f"Unit: {unit.key}, which the desk's settings fix for every plan on {source.name!r}."]
    known = published.book(here.desk).budget(source.dataset)
    facts = [f"Unit: {unit.key}."]
    if unit.key != own.key:
        facts.append(f"The desk's settings suggest another: {own.key}.")
    if known is None:
        facts.append(
            f"This plan opens the budget of {source.dataset!r}. Its unit is then that of every later release of these "
            "data."
        )
    return facts


@router.post("/review/{name}")
def decide(here: At, reviewer: Annotated[Person, Depends(needs("approve"))], form: Form, name: str) -> Response:
    planning.decide(
        here.desk,
        here.store,
        name,
        reviewer,
        verdict=str(form.get("verdict", "")),
        seen=str(form.get("digest", "")),
        note=str(form.get("note", "")),
    )
    return RedirectResponse(f"/review/{name}", status_code=303)
