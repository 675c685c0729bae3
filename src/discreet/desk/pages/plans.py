"""Plans: the list, the form, and the estimate that moves with it. Everything works without the script."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from discreet.desk import planning, published
from discreet.desk.accounts import Person
from discreet.desk.desk import DataSource
from discreet.desk.drafts import MOST_ALARMS, Draft, Scalar, first_alarms, first_draft, from_form
from discreet.desk.estimates import estimate
from discreet.desk.pages.data import source_of
from discreet.desk.planning import StoredPlan
from discreet.desk.rendering import ROWS, At, First, Here, page
from discreet.desk.security import Asking, Form, needs
from discreet.privacy.assurance import whom
from discreet.tables.budget.division import Measure
from discreet.tables.mechanisms.registry import private_names

router = APIRouter(include_in_schema=False)
Planner = Annotated[Person, Depends(needs("plan"))]
NEW = "new"
MOST_ATTRIBUTES = 20
OF_JOBS = ("count", "sum")
OF_FLOWS = ("change", "creation", "destruction", "accessions", "separations", "beginning", "end")
"""Numbers that alarms can be about."""

ADVICE: dict[str, Measure] = {"advise-absolute": "absolute", "advise-relative": "relative"}
"""Buttons that ask how to divide epsilon."""


def plan_of(here: Here, name: str) -> StoredPlan:
    found = planning.get(here.store, name)
    if found is None:
        raise HTTPException(
            404, f"There is no plan {name[:64]!r}. It may be under another name. See the list of plans."
        )
    return found


def plan_and_draft(here: Here, name: str) -> tuple[StoredPlan, Draft]:
    """A plan with the form's entries; a long one takes a while to read."""
    plan = plan_of(here, name)
    return plan, plan.draft


@router.get("/plans")
def plans(request: Request, here: At, asking: Asking, first: First = 0) -> Response:
    found = planning.listed(here.store, most=ROWS, first=first)
    return page(request, "plans.html", plans=found, first=first, rows=ROWS)


@router.get("/plans/new")
async def new(
    request: Request,
    here: At,
    planner: Planner,
    source: str = "",
    formula: str = "",
    by: Annotated[list[str] | None, Query(max_length=MOST_ATTRIBUTES)] = None,
) -> Response:
    """An empty form; a link may bring a formula, or the attributes of a table."""
    if not here.desk.settings.source:
        return await run_in_threadpool(plans, request, here, planner)
    chosen = source_of(here, source or here.desk.settings.source[0].name)
    number = await run_in_threadpool(planning.number, here.store)
    draft = first_draft(here.desk, chosen, number + 1)
    if formula and chosen.of_rows:
        draft.release[0]["formula"] = formula[:500]
    if by and (schema := here.desk.schema(chosen)):
        every = (*schema.workplace_attributes, *schema.worker_attributes)
        draft.release[0]["by"] = list[Scalar](filter(by.__contains__, every))
    return await _form(request, here, planner, chosen, draft, name=NEW)


@router.get("/plans/{name}")
async def edit(request: Request, here: At, asking: Asking, name: str) -> Response:
    plan, draft = await run_in_threadpool(plan_and_draft, here, name)
    return await _form(request, here, asking, source_of(here, plan.source), draft, name=name, plan=plan)


@router.get("/plans/{name}/plan.toml")
def text(here: At, asking: Asking, name: str) -> Response:
    plan = plan_of(here, name)
    return PlainTextResponse(plan.text, headers={"content-disposition": f'attachment; filename="{plan.name}.toml"'})


@router.post("/plans/{source}/{name}/estimate")
async def estimated(request: Request, here: At, asking: Asking, form: Form, source: str, name: str) -> Response:
    """The estimate alone, for the script."""
    chosen = source_of(here, source)
    draft = await run_in_threadpool(from_form, form, chosen.name, here.desk.schema(chosen))
    judged = await estimate(here.desk, draft, name, by=asking.name)
    shown = partial(page, request, "_estimate.html", estimate=judged, source=chosen, draft=draft)
    return await run_in_threadpool(shown)


@router.post("/plans/{source}/{name}")
async def change(request: Request, here: At, planner: Planner, form: Form, source: str, name: str) -> Response:
    """Do what the pressed button says with the form."""
    chosen = source_of(here, source)
    draft, plan, saved = await run_in_threadpool(_pressed, here, planner, form, chosen, name)
    if saved is None:
        advise = ADVICE.get(str(form.get("do")))
        return await _form(request, here, planner, chosen, draft, name=name, plan=plan, advise=advise)
    if form.get("do") != "submit":
        return RedirectResponse(f"/plans/{saved}", status_code=303)
    judged = await estimate(here.desk, draft, saved, by=planner.name)
    if not judged.can_run:
        return RedirectResponse(f"/plans/{saved}?tried=1", status_code=303)
    await run_in_threadpool(planning.submit, here.store, saved, planner)
    return RedirectResponse(f"/review/{saved}", status_code=303)


def _pressed(
    here: Here, planner: Person, form: FormData, source: DataSource, name: str
) -> tuple[Draft, StoredPlan | None, str | None]:
    """The draft after the button was pressed, its plan so far, and the name under which it was saved, if it was."""
    draft = from_form(form, source.name, here.desk.schema(source))
    plan = None if name == NEW else plan_of(here, name)
    pressed = str(form.get("do", "save"))
    if pressed == "add":
        number = planning.number(here.store) + 1 + len(draft.release)
        another = first_draft(here.desk, source, number).release[0]
        draft = draft.model_copy(update={"release": [*draft.release, another][:12]})
    elif pressed == "add-alarms":
        draft = draft.model_copy(update={"alarms": [*draft.alarms, first_alarms(draft)][:MOST_ALARMS]})
    elif pressed.startswith("remove-alarms-"):
        left = [each for i, each in enumerate(draft.alarms) if f"remove-alarms-{i}" != pressed]
        draft = draft.model_copy(update={"alarms": left})
    elif pressed.startswith("remove-"):
        kept = [release for i, release in enumerate(draft.release) if f"remove-{i}" != pressed]
        draft = draft.model_copy(update={"release": kept or draft.release})
    elif pressed in ("save", "submit"):
        saved = planning.save(here.desk, here.store, draft, planner, name=None if name == NEW else name)
        return draft, plan, saved
    return draft, plan, None


async def _form(
    request: Request,
    here: Here,
    asking: Person,
    source: DataSource,
    draft: Draft,
    *,
    name: str,
    plan: StoredPlan | None = None,
    advise: Measure | None = None,
) -> Response:
    judged = await estimate(here.desk, draft, name, by=asking.name, advise=advise)

    def shown() -> Response:
        return page(
            request,
            "plan.html",
            plan=plan,
            name=name,
            schema=here.desk.schema(source),
            standing=published.standing(here.desk, source),
            mechanisms=private_names(),
            finished=here.desk.finished,
            numbers=OF_FLOWS if source.quarters else OF_JOBS,
            unit=first_draft(here.desk, source).unit if source.unit_fixed else None,
            words=whom(source.unit.unit(), here.desk.jobs_of_one_worker(source)),
            tried="tried" in request.query_params,
            estimate=judged,
            source=source,
            draft=draft,
        )

    return await run_in_threadpool(shown)
