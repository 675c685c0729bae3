"""The desk as an application: routes behind a guard, errors as pages, JSON under /api."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from discreet.desk import calculators, sandbox, sources, uploads
from discreet.desk.book import anchor
from discreet.desk.desk import Desk
from discreet.desk.hosts import own_name
from discreet.desk.pages import (
    api,
    changes,
    data,
    entrance,
    exceptions,
    ledger,
    models,
    overview,
    people,
    plans,
    releases,
    review,
    runs,
    utility,
)
from discreet.desk.proxies import BehindTLS, networks
from discreet.desk.rendering import Here, page
from discreet.desk.security import Guard, login_address
from discreet.desk.store import DeskStore
from discreet.desk.turns import TooMuch
from discreet.words.errors import DiscreetError
from discreet.words.voices import FORM

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MEGABYTE = 1_000_000
ROUTERS = (
    entrance,
    overview,
    data,
    plans,
    utility,
    review,
    runs,
    releases,
    ledger,
    changes,
    exceptions,
    models,
    people,
    api,
)


def create(
    desk: Desk,
    *,
    store: DeskStore | None = None,
    entrance: str | None = None,
    hosts: Sequence[str] = LOOPBACK,
    proxies: Sequence[str] = (),
) -> FastAPI:
    """The application of a desk.

    Parameters
    ----------
    entrance : the token of the link by which the one person of a desk without accounts comes in, once.
    hosts : names under which the desk answers, without ports.
    proxies : addresses of the proxies that speak TLS for the desk; where there are any, it answers to them alone.
    """
    here = Here(desk, store or DeskStore(desk.database), entrance)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        uploads.tidy()
        sources.tidy(here.desk)
        anchor(here.desk.ledger, here.desk.traces, here.desk.datasets)
        yield
        here.checks.close()
        calculators.shared.close()
        sandbox.close()
        here.store.close()

    app = FastAPI(
        title="discreet release desk",
        version=version("discreet"),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    app.state.here = here
    for module in ROUTERS:
        app.include_router(module.router)
    app.mount("/static", StaticFiles(packages=[("discreet.desk", "static")]), name="static")
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(DiscreetError, _refused)
    app.add_exception_handler(TooMuch, _later)
    app.add_middleware(
        Guard,
        store=here.store,
        hosts=frozenset(map(own_name, hosts)),
        refused=_told,
        largest=desk.settings.upload_megabytes * MEGABYTE,
        local=not desk.settings.accounts,
    )
    if proxies:
        app.add_middleware(BehindTLS, proxies=networks(proxies))  # the last one added is asked first
    return app


def _told(request: Request, status: int, text: str) -> Response:
    """An error in the requested form: JSON below /api, the log-in page without a session, a page elsewhere."""
    if request.url.path.startswith("/api"):
        return JSONResponse({"detail": text}, status_code=status)
    if status == HTTPStatus.UNAUTHORIZED:
        return RedirectResponse(login_address(request), status_code=303)
    return page(request, "error.html", status, code=status, name=HTTPStatus(status).phrase, text=text)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = str(error.detail)
    if text == HTTPStatus(error.status_code).phrase:
        text = "The desk has no such page. It may have moved, or the address is wrong. Use the menu."
    if error.status_code == HTTPStatus.FORBIDDEN:
        _recorded(request, error.status_code)
    response = _told(request, error.status_code, text)
    response.headers.update(error.headers or {})
    return response


def _invalid(request: Request, error: Exception) -> Response:
    """For a request that does not have the documented shape; the values sent are not repeated."""
    assert isinstance(error, RequestValidationError)
    places = sorted({".".join(map(str, fault["loc"])) for fault in error.errors()})
    return _told(request, 422, f"The request is not as documented at: {', '.join(places[:8])}. Correct it.")


def _refused(request: Request, error: Exception) -> Response:
    if request.method == "POST":
        _recorded(request, 409)
    return _told(request, 409, error.said(FORM) if isinstance(error, DiscreetError) else str(error))


def _later(request: Request, error: Exception) -> Response:
    response = _told(request, 429, str(error))
    response.headers["retry-after"] = "10"
    return response


def _recorded(request: Request, status: int) -> None:
    """A line in the audit log for what somebody tried and was not let do."""
    person, here = getattr(request.state, "person", None), request.app.state.here
    if person is not None:
        here.repeats.record(here.store, person.name, "refused", request.url.path[:120], status=status)
