"""Data: what is public about each source. No value of the data is read here."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from discreet.report.release import plain_words
from discreet.web import published
from discreet.web.desk import DataSource
from discreet.web.rendering import At, Here, page
from discreet.web.security import Asking

router = APIRouter(include_in_schema=False)


def source_of(here: Here, name: str) -> DataSource:
    found = here.desk.sources.get(name)
    if found is None:
        there = ", ".join(here.desk.sources) or "none"
        raise HTTPException(404, f"There is no source {name[:64]!r}. The desk has: {there}. Choose one under Data.")
    return found


@router.get("/data")
def sources(request: Request, here: At, asking: Asking) -> Response:
    shown = [
        {
            "source": source,
            "schema": here.desk.schema(source),
            "standing": published.standing(here.desk, source),
            "words": plain_words(source.unit.unit(), here.desk.jobs_of_one_worker(source)),
        }
        for source in here.desk.settings.source
    ]
    return page(request, "data.html", sources=shown)
