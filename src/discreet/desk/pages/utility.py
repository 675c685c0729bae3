"""Risk and utility: what each epsilon and alpha would cost in accuracy and in certainty, before a plan is written."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from discreet.data.schema import Schema
from discreet.desk.accounts import Person
from discreet.desk.book import stamp
from discreet.desk.calculators import shared
from discreet.desk.desk import DataSource, Desk
from discreet.desk.drafts import first_draft
from discreet.desk.pages.data import source_of
from discreet.desk.rendering import At, Here, RenderedFigure, drawn, page
from discreet.desk.security import Asking
from discreet.plan.curves import ALPHAS, EPSILONS, Curves, curves
from discreet.plan.document import Document
from discreet.plan.file import PlanFile
from discreet.plan.shape import Plan
from discreet.plan.sizes import PublicSizes
from discreet.privacy.units import Strength
from discreet.words.errors import DataError

router = APIRouter(include_in_schema=False)
MOST_ATTRIBUTES = 6
SECONDS = 60


@router.get("/utility")
async def utility(
    request: Request,
    here: At,
    asking: Asking,
    source: str = "",
    by: Annotated[list[str] | None, Query(max_length=MOST_ATTRIBUTES)] = None,
    strength: Strength = "strong",
) -> Response:
    jobs = [each for each in here.desk.settings.source if each.kind == "jobs" and here.desk.schema(each)]
    if not jobs:
        return page(request, "utility.html", sources=[], found=None)
    chosen = source_of(here, source) if source else jobs[0]
    schema = here.desk.schema(chosen)
    if schema is None:
        raise DataError(
            f"{chosen.name!r} is not a table of jobs.",
            "Curves here are of counts.",
            "See Models for models.",
            about="source",
        )
    attributes = [*schema.workplace_attributes, *schema.worker_attributes]
    kept = [name for name in attributes if name in (by or [])] or _usual(schema)
    found, figures = await _curves(here, asking, chosen, kept, strength)
    shown = partial(
        page,
        request,
        "utility.html",
        sources=jobs,
        source=chosen,
        schema=schema,
        by=kept,
        strength=strength,
        found=found,
        alphas=ALPHAS,
        epsilons=EPSILONS,
        values={(row["alpha"], row["epsilon"]): row for row in found.rows},
        figures=figures,
    )
    return await run_in_threadpool(shown)


@router.get("/utility/picture")
async def picture(request: Request, here: At, asking: Asking, source: str) -> Response:
    """The first picture alone, which the overview shows."""
    chosen = source_of(here, source)
    schema = here.desk.schema(chosen)
    if schema is None:
        raise HTTPException(404, f"{chosen.name!r} is not a table of jobs. Curves here are of counts. See Models.")
    _, figures = await _curves(here, asking, chosen, _usual(schema), "strong")
    return await run_in_threadpool(page, request, "_picture.html", figure=figures[0])


def _usual(schema: Schema) -> list[str]:
    return list(schema.workplace_attributes[-2:])


async def _curves(
    here: Here, asking: Person, source: DataSource, by: list[str], strength: Strength
) -> tuple[Curves, list[RenderedFigure]]:
    sizes = stamp(here.desk.folder / source.sizes) if source.sizes else None
    key = ("curves", here.desk, source.name, tuple(by), strength, sizes)
    asked = (here.desk, source.name, tuple(by), strength)
    found: tuple[Curves, list[RenderedFigure]] = await shared.result(
        asking.name, _found, *asked, key=key, seconds=SECONDS
    )
    return found


def _found(desk: Desk, name: str, by: tuple[str, ...], strength: Strength) -> tuple[Curves, list[RenderedFigure]]:
    """The curves of a table and their pictures."""
    source = desk.sources[name]
    schema = desk.schema(source)
    assert schema is not None
    counts = {"name": "curves", "kind": "count", "by": [], "epsilon": "1"}  # of a source of histories, too
    content = first_draft(desk, source).content(desk, "curves") | {"release": [counts]}
    file = PlanFile(Plan.model_validate(content), Document(desk.plan_file("curves"), content, {}))
    sizes, _ = PublicSizes.of(file.sources[0])
    found = curves(schema, sizes, by, strength)
    return found, [drawn(figure, figure.name) for figure in found.figures()]
