"""Data: what is public about each source, and new sources. No value of the data is shown here."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from discreet.desk import published
from discreet.desk import sources as added
from discreet.desk.accounts import Person
from discreet.desk.desk import DataSource
from discreet.desk.rendering import At, Here, page, refused
from discreet.desk.sandbox import in_turn
from discreet.desk.security import Asking, Form, needs
from discreet.desk.sources import SourceForm
from discreet.privacy.assurance import whom
from discreet.words.errors import DiscreetError

router = APIRouter(include_in_schema=False)
Keeper = Annotated[Person, Depends(needs("source"))]


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
            "words": whom(source.unit.unit(), here.desk.jobs_of_one_worker(source)),
        }
        for source in here.desk.settings.source
    ]
    return page(request, "data.html", sources=shown)


@router.get("/data/new")
def new(request: Request, here: At, keeper: Keeper) -> Response:
    return _form(request, here, SourceForm())


def _form(request: Request, here: Here, given: SourceForm, status: int = 200, **more: Any) -> Response:
    nothing: dict[str, Any] = {"wrong": "", "faults": None}
    return page(
        request,
        "source.html",
        status,
        given=given,
        files=added.files(here.desk),
        roles=added.ROLES,
        megabytes=here.desk.settings.upload_megabytes,
        accept=",".join(f".{ending.rsplit('.', 1)[1]}" for ending in added.ENDINGS),
        **nothing | more,
    )


@router.post("/data/new")
async def add(request: Request, here: At, keeper: Keeper, form: Form) -> Response:
    """Read the columns of a file, or check its data, and add it where every row keeps what is declared."""
    return await in_turn(keeper.name, partial(_added, request, here, keeper, form))


def _names(here: Here, given: SourceForm) -> list[str]:
    """The columns of the file; one that was sent and cannot be read is not kept."""
    try:
        return added.columns_of(here.desk, given.file)
    except DiscreetError:
        added.drop(here.desk, given.file)
        raise


def _added(request: Request, here: Here, keeper: Person, form: FormData) -> Response:
    given, sent = added.read(form), form.get("upload")
    try:
        if isinstance(sent, UploadFile) and sent.filename:
            added.drop(here.desk, given.file)
            given = replace(given, file=added.keep(here.desk, sent), columns=None)
        names = _names(here, given)
        known = given.columns or {}
        given = replace(given, columns={name: known.get(name, "") for name in names})
        if form.get("do") not in ("check", "add"):
            return _form(request, here, given)
        source = added.described(here.desk, given)
        empty = [name for name, role in (given.columns or {}).items() if not role]
        found = added.faults(here.desk, source, empty=empty)
        if found or form.get("do") == "check":
            return _form(request, here, given, 409 if found else 200, faults=found)
        here.desk = added.add(here.desk, here.store, source, keeper)
    except DiscreetError as error:
        return _form(request, here, given, 409, wrong=refused(request, keeper, error))
    return RedirectResponse(f"/data#source-{source.name}", status_code=303)
