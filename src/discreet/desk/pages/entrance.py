"""Coming in and going out: the link that is printed once, or a name with its password."""

from __future__ import annotations

import asyncio
from functools import partial

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from discreet.desk import forms
from discreet.desk.accounts import NAME, close_session, has_account, local_name, open_session, same
from discreet.desk.attempts import is_known, keys_of, mark
from discreet.desk.rendering import At, page
from discreet.desk.security import COOKIE, Asking, Form, cookie_of, cookie_settings, session_token

router = APIRouter(include_in_schema=False)
KNOWN, DAYS = "discreet-desk-known", 90
"""The cookie of a browser in which somebody logged in, and its life."""


def _welcome(request: Request, token: str, to: str) -> Response:
    response = RedirectResponse(to, status_code=303)
    response.set_cookie(COOKIE, token, **cookie_settings(request))
    return response


@router.get("/enter")
def enter(request: Request, here: At, token: str = "") -> Response:
    """Open the session of the one person of a desk without accounts; a token works once."""
    right = here.entrance is not None and same(token, here.entrance)
    if not (right and here.used.acquire(blocking=False)):
        here.strangers.record(here.store, "link refused")
        return page(
            request, "login.html", 403, wrong="This link was used, or is of another start of the desk.", back="/"
        )
    return _welcome(request, open_session(here.store, local_name(), action="entered by the link"), "/")


@router.get("/login")
def login(request: Request, next: str = "/") -> Response:
    return page(request, "login.html", wrong="", back=_own(next))


@router.post("/login")
async def check(request: Request, here: At) -> Response:
    """Check a password. There is no session yet, so the guard's test of the origin is what keeps others out."""
    form = await forms.read(request)
    name, password, back = (str(form.get(key, "")) for key in ("name", "password", "next"))
    if here.desk.settings.accounts is False:
        raise HTTPException(
            403, "A desk without accounts has no passwords. Open the link that `discreet serve` printed."
        )
    name = name if NAME.fullmatch(name) else ""
    known = is_known(here.store, name, cookie_of(request.headers.get("cookie", ""), KNOWN))
    address = request.client.host if request.client else ""
    keys = keys_of(name, address, known=known, exists=has_account(here.store, name))

    async def refused(status: int, action: str, words: str, wait: int = 0) -> Response:
        await run_in_threadpool(here.strangers.record, here.store, action, name, address=address[:45])
        response = page(request, "login.html", status, wrong=words, back=_own(back))
        if wait:
            response.headers["retry-after"] = str(wait)
        return response

    if here.checks.is_full(known=known):  # it stays as it is until this guess is in line: nothing is awaited
        return await refused(429, "log-in held back", "Many log-ins at once. Try again in a moment.", 5)
    if wait := here.attempts.begin(keys):
        words = f"Too many wrong passwords. Try again in {-(-wait // 60)} minutes."
        return await refused(429, "log-in held back", words, wait)
    if not await asyncio.wrap_future(here.checks.begin(here.store, name, password, known=known)):
        return await refused(401, "log-in refused", "The name or the password is wrong.")
    here.attempts.forgive(keys)
    session = await run_in_threadpool(partial(open_session, here.store, name, action="logged in"))
    response = _welcome(request, session, _own(back))
    response.set_cookie(KNOWN, mark(here.store, name) or "", max_age=86_400 * DAYS, **cookie_settings(request))
    return response


@router.post("/logout")
def logout(request: Request, here: At, asking: Asking, _form: Form) -> Response:
    close_session(here.store, session_token(request.headers.get("cookie", "")) or "", asking.name)
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(COOKIE, path="/")
    return response


def _own(path: str) -> str:
    """A path of this desk, never an address elsewhere."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"
