"""People: who has an account, its end, and its return. The command line adds them, and asks for their passwords."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from discreet.desk import accounts
from discreet.desk.accounts import Person
from discreet.desk.rendering import At, page
from discreet.desk.security import Form, needs

router = APIRouter(include_in_schema=False)
Keeper = Annotated[Person, Depends(needs("people"))]


@router.get("/people")
def people(request: Request, here: At, keeper: Keeper) -> Response:
    present, former = accounts.people(here.store)
    return page(request, "people.html", present=present, former=former)


@router.post("/people/{name}/disable")
def disable(here: At, keeper: Keeper, _form: Form, name: str) -> Response:
    accounts.disable_account(here.store, name, by=keeper.name)
    return RedirectResponse("/people", status_code=303)


@router.post("/people/{name}/enable")
def enable(here: At, keeper: Keeper, _form: Form, name: str) -> Response:
    accounts.enable_account(here.store, name, by=keeper.name)
    return RedirectResponse("/people", status_code=303)


@router.post("/people/{name}/remove")
def remove(here: At, keeper: Keeper, _form: Form, name: str) -> Response:
    accounts.remove_account(here.store, name, by=keeper.name)
    return RedirectResponse("/people", status_code=303)
