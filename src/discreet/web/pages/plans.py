"""Plans: the list, the form, and the estimate that moves with it. Everything works without the script."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response

from discreet.report.release import plain_words
from discreet.tables.calibration import PRIVATE
from discreet.web import books, planning
from discreet.web.accounts import Person
from discreet.web.desk import Source
from discreet.web.drafts import Draft, first_draft, from_form
from discreet.web.estimates import Estimate, estimate
from discreet.web.pages.data import source_of
from discreet.web.planning import Plan
from discreet.web.rendering import At, Here, page
from discreet.web.security import Asking, Form, needs

router = APIRouter(include_in_schema=False)
Planner = Annotated[Person, Depends(needs("plan"))]
NEW = "new"


def plan_of(here: Here, name: str) -> Plan:
    found = planning.get(here.store, name)
    if found is None:
        raise HTTPException(
            404, f"There is no plan {name[:64]!r}. It may be under another name. See the list of plans."
        )
    return found


@router.get("/plans")
def plans(request: Request, here: At, asking: Asking) -> Response:
    return page(request, "plans.html", plans=planning.listed(here.store))


@router.get("/plans/new")
def new(request: Request, here: At, planner: Planner, source: str = "", formula: str = "") -> Response:
    if not here.desk.settings.source:
        return page(request, "plans.html", plans=planning.listed(here.store))
    chosen = source_of(here, source or here.desk.settings.source[0].name)
    draft = first_draft(here.desk, chosen, planning.number(here.store) + 1)
    if formula and chosen.kind == "rows":
        draft.release[0]["formula"] = formula[:500]
    return _form(request, here, chosen, draft, name=NEW)


@router.get("/plans/{name}")
def edit(request: Request, here: At, asking: Asking, name: str) -> Response:
    plan = plan_of(here, name)
    return _form(request, here, source_of(here, plan.source), plan.draft, name=name, plan=plan)


@router.get("/plans/{name}/plan.toml")
def text(here: At, asking: Asking, name: str) -> Response:
    plan = plan_of(here, name)
    return PlainTextResponse(plan.text, headers={"content-disposition": f'attachment; filename="{plan.name}.toml"'})


@router.post("/plans/{source}/{name}/estimate")
def estimated(request: Request, here: At, asking: Asking, form: Form, source: str, name: str) -> Response:
    """The estimate alone, for the script."""
    chosen = source_of(here, source)
    draft = from_form(form, chosen.name, here.desk.schema(chosen))
    return page(request, "_estimate.html", **_judged(here, draft, name))


@router.post("/plans/{source}/{name}")
def change(request: Request, here: At, planner: Planner, form: Form, source: str, name: str) -> Response:
    """Do what the pressed button says with the form."""
    chosen = source_of(here, source)
    draft = from_form(form, chosen.name, here.desk.schema(chosen))
    plan = None if name == NEW else plan_of(here, name)
    pressed = str(form.get("do", "save"))
    if pressed == "add":
        number = planning.number(here.store) + 1 + len(draft.release)
        another = first_draft(here.desk, chosen, number).release[0]
        draft = draft.model_copy(update={"release": [*draft.release, another][:12]})
    elif pressed.startswith("remove-"):
        kept = [release for i, release in enumerate(draft.release) if f"remove-{i}" != pressed]
        draft = draft.model_copy(update={"release": kept or draft.release})
    if pressed in ("save", "submit"):
        saved = planning.save(here.desk, here.store, draft, planner, name=None if name == NEW else name)
        judged = estimate(here.desk, draft, saved)
        if pressed == "submit" and judged.can_run:
            planning.submit(here.store, saved, planner)
            return RedirectResponse(f"/review/{saved}", status_code=303)
        return RedirectResponse(f"/plans/{saved}{'?tried=1' if pressed == 'submit' else ''}", status_code=303)
    return _form(request, here, chosen, draft, name=name, plan=plan)


def _judged(here: Here, draft: Draft, name: str) -> dict[str, Any]:
    judged: Estimate = estimate(here.desk, draft, name)
    return {"estimate": judged, "source": here.desk.sources[draft.source], "draft": draft}


def _form(
    request: Request, here: Here, source: Source, draft: Draft, *, name: str, plan: Plan | None = None
) -> Response:
    return page(
        request,
        "plan.html",
        plan=plan,
        name=name,
        schema=here.desk.schema(source),
        standing=books.standing(here.desk, source),
        mechanisms=PRIVATE,
        unit=first_draft(here.desk, source).unit if source.unit_fixed else None,
        words=plain_words(source.unit.unit()),
        tried="tried" in request.query_params,
        **_judged(here, draft, name),
    )
