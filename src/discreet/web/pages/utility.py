"""Risk and utility: what each epsilon and alpha would cost in accuracy and in certainty, before a plan is written."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from discreet.errors import DataError
from discreet.plan.document import Document
from discreet.plan.reading import PlanFile
from discreet.plan.shape import Plan
from discreet.plan.sizes import PublicSizes
from discreet.web.curves import ALPHAS, EPSILONS, Curves, curves
from discreet.web.desk import Desk, Source
from discreet.web.drafts import first_draft
from discreet.web.pages.data import source_of
from discreet.web.rendering import At, page
from discreet.web.security import Asking

router = APIRouter(include_in_schema=False)
MOST_ATTRIBUTES = 6


@router.get("/utility")
def utility(
    request: Request,
    here: At,
    asking: Asking,
    source: str = "",
    by: Annotated[list[str] | None, Query(max_length=MOST_ATTRIBUTES)] = None,
    strength: Literal["strong", "weak"] = "strong",
) -> Response:
    jobs = [each for each in here.desk.settings.source if each.kind == "jobs" and here.desk.schema(each)]
    if not jobs:
        return page(request, "utility.html", sources=[], found=None)
    chosen = source_of(here, source) if source else jobs[0]
    schema = here.desk.schema(chosen)
    if schema is None:
        raise DataError(f"{chosen.name!r} is not a table of jobs. Curves here are of counts. See Models for models.")
    attributes = [*schema.workplace_attributes, *schema.worker_attributes]
    kept = [name for name in attributes if name in (by or [])] or list(schema.workplace_attributes[-2:])
    found = found_for(here.desk, chosen, tuple(kept), strength)
    return page(
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
        figures=found.figures(),
    )


def found_for(desk: Desk, source: Source, by: tuple[str, ...], strength: Any) -> Curves:
    """The curves of a table; computed once for a source and its public sizes."""
    place = None if source.sizes is None else desk.folder / source.sizes
    stamp = place.stat().st_mtime_ns if place is not None and place.exists() else 0
    return _once(_Asked(desk, source), by, strength, stamp)


class _Asked:
    """A desk and a source, the same as any other with the same folder and name."""

    def __init__(self, desk: Desk, source: Source) -> None:
        self.desk, self.source, self.key = desk, source, (desk.folder, source.name)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and other.key == self.key


@lru_cache(maxsize=64)
def _once(asked: _Asked, by: tuple[str, ...], strength: Any, _stamp: int) -> Curves:
    desk, source = asked.desk, asked.source
    schema = desk.schema(source)
    assert schema is not None
    content = first_draft(desk, source).content(desk, "curves")
    file = PlanFile(Plan.model_validate(content), Document(desk.plan_file("curves"), content, {}))
    return curves(schema, PublicSizes.of(file)[0], by, strength)
