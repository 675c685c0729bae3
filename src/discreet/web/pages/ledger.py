"""Ledger and audit log: what was spent, who did what, and that nobody has touched either book."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from discreet.ledger import Ledger
from discreet.web import audit_log, published
from discreet.web.accounts import Person
from discreet.web.rendering import At, page
from discreet.web.security import Asking, Form, InTurn, needs

router = APIRouter(include_in_schema=False)
SHOWN = 100


@router.get("/ledger")
def ledger(request: Request, here: At, asking: Asking) -> Response:
    return page(request, "ledger.html", book=published.book(here.desk), shown=SHOWN, verdict=None)


@router.post("/ledger/verify", dependencies=[InTurn])
def verify(request: Request, here: At, asking: Asking, _form: Form) -> Response:
    """Replay the ledger, now and in full."""
    book = published.book(here.desk)
    verdict = "There is no ledger yet; the first run makes it."
    if book.head is not None:
        with Ledger.open(here.desk.ledger, read_only=True) as opened:
            verdict = str(opened.verify())
    here.repeats.record(here.store, asking.name, "ledger verified")
    return page(request, "ledger.html", book=book, shown=SHOWN, verdict=verdict)


@router.get("/log", dependencies=[InTurn])
def log(request: Request, here: At, reader: Annotated[Person, Depends(needs("log"))]) -> Response:
    with here.store.reading() as connection:
        lines, fault = audit_log.lines(connection), audit_log.verify(connection)
    return page(request, "log.html", lines=lines, fault=fault)
