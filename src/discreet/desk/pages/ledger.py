"""Ledger and audit log: what was spent, who did what, and whether either book was changed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import RedirectResponse, Response

from discreet.desk import audit_log, budgets, published
from discreet.desk.accounts import Person
from discreet.desk.rendering import At, Here, page, refused
from discreet.desk.security import Asking, Form, InTurn, needs
from discreet.ledger import Ledger
from discreet.words.errors import DiscreetError

router = APIRouter(include_in_schema=False)
SHOWN = 100
Raiser = Annotated[Person, Depends(needs("budget"))]


@router.get("/ledger")
def ledger(request: Request, here: At, asking: Asking) -> Response:
    return _page(request, here)


def _page(request: Request, here: Here, status: int = 200, **more: Any) -> Response:
    nothing: dict[str, Any] = {"verdict": None, "given": {}, "wrong": ""}
    return page(
        request,
        "ledger.html",
        status,
        book=published.book(here.desk),
        shown=SHOWN,
        waiting=budgets.waiting(here.store),
        decided=budgets.decided(here.store),
        **nothing | more,
    )


@router.post("/ledger/verify", dependencies=[InTurn])
def verify(request: Request, here: At, asking: Asking, _form: Form) -> Response:
    """Replay the ledger, now and in full."""
    book = published.book(here.desk)
    verdict = book.trouble or "There is no ledger yet; the first run makes it."
    if book.head is not None:
        with Ledger.open(here.desk.ledger, read_only=True) as opened:
            verdict = str(opened.verify())
    here.repeats.record(here.store, asking.name, "ledger verified")
    return _page(request, here, verdict=verdict)


@router.post("/budgets")
def ask(request: Request, here: At, asking: Raiser, form: Form) -> Response:
    """Ask for a larger budget, which a second person confirms."""
    given = {key: str(form.get(key, "")) for key in ("dataset", "epsilon", "reason")}
    try:
        budgets.ask(here.desk, here.store, asking, **given)
    except DiscreetError as error:
        shown = {key: text[: budgets.LONGEST] for key, text in given.items()}
        return _page(request, here, 409, given=shown, wrong=refused(request, asking, error))
    return RedirectResponse("/ledger", status_code=303)


@router.post("/budgets/{number}")
def decide(here: At, asking: Raiser, form: Form, number: Annotated[int, Path(ge=1, le=10**9)]) -> Response:
    budgets.decide(here.desk, here.store, asking, number, verdict=str(form.get("verdict", "")))
    return RedirectResponse("/ledger", status_code=303)


@router.get("/log", dependencies=[InTurn])
def log(request: Request, here: At, reader: Annotated[Person, Depends(needs("log"))]) -> Response:
    with here.store.reading() as connection:
        lines, fault = audit_log.lines(connection), audit_log.verify(connection)
    return page(request, "log.html", lines=lines, fault=fault)
