"""The first page: what remains of each budget, what waits for whom, what was published last."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from discreet.desk import planning, published, runs
from discreet.desk.rendering import At, page
from discreet.desk.security import Asking

router = APIRouter(include_in_schema=False)


@router.get("/")
def overview(request: Request, here: At, asking: Asking) -> Response:
    recent = runs.listed(here.desk, here.store, last=5)
    return page(
        request,
        "overview.html",
        standing={source.name: published.standing(here.desk, source) for source in here.desk.settings.source},
        drafts=planning.listed(here.store, "draft", "declined", most=5),
        waiting=planning.listed(here.store, "submitted"),
        titles=planning.titles(here.store),
        runs=recent,
        releases=published.published(here.desk)[:5],
        pictured=next((s for s in here.desk.settings.source if s.kind == "jobs" and here.desk.schema(s)), None),
    )
