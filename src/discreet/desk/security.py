"""Tests that every request must pass, and headers that every response has.

The guard comes before all routes. The Host must be ours (a name that an attacker points at loopback is not). A request
that changes something must come from our own pages. Bodies end at their limit. Everything but the log-in needs a
session. Routes then check the token of their forms (`form_of`) and rights (`needs`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Header, HTTPException, Request, Response
from starlette.datastructures import FormData
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.desk import forms, hosts
from discreet.desk.accounts import Person, Right, person_of, same
from discreet.desk.store import DeskStore
from discreet.desk.turns import PAGES

COOKIE = "discreet-desk"
OPEN = ("/static/", "/login", "/enter", "/favicon.ico")
SENDING = 24
FULL = (
    f"More than {SENDING} forms of yours are under way. The desk takes no more of one person at once. Wait until some "
    "are answered, then try again."
)
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

UNFORESEEN = (
    "The desk met a fault of its own. Nothing was spent by it. Try again, or contact the person who runs the desk."
)
log = logging.getLogger("discreet.desk")
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it logs bytes of what people send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Guard:
    """The middleware.

    Attributes
    ----------
    hosts : the names under which the desk may be asked for, as `hosts.own_name` gives them.
    refused : the response that tells why a request does not pass.
    largest : bytes of an upload.
    local : whether the desk has no accounts.
    sending : how many requests that change something are under way, by person.
    """

    app: ASGIApp
    store: DeskStore
    hosts: frozenset[str]
    refused: Callable[[Request, int, str], Response]
    largest: int
    local: bool
    sending: Counter[str] = field(default_factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        send = _with_headers(send, secure=scope["scheme"] == "https")
        refusal = self._refusal(scope, headers)
        person = None if refusal else self._person(headers)
        if not refusal and person is None and not scope["path"].startswith(OPEN):
            refusal = (401, "You are not logged in. The desk shows nothing without it. Log in first.")
        scope["state"] = {**scope.get("state", {}), "person": person}
        if refusal:
            await self.refused(Request(scope), *refusal)(scope, receive, send)
            return
        who = "" if person is None or scope["method"] in SAFE else person.name
        if who and self.sending[who] >= SENDING:
            await self.refused(Request(scope), 429, FULL)(scope, receive, send)
            return
        self.sending[who] += 1
        try:
            await self.app(scope, forms.limited(receive, self._limit(scope, headers)), send)
        except Exception as error:  # its message, and a traceback, may hold a value of the data: only the kind is kept
            log.error("%s %s ended with an unforeseen %s", scope["method"], scope["path"], type(error).__name__)
            await self.refused(Request(scope), 500, UNFORESEEN)(scope, receive, send)
        finally:
            self.sending[who] -= 1

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        given = [value for name, value in scope["headers"] if name.lower() == b"host"]
        host = hosts.read(given[0].decode("latin-1")) if len(given) == 1 else None
        if host is None or host.name not in self.hosts:
            return (
                421,
                "The desk does not answer under this name. It answers under the one it was started with. Use it.",
            )
        if scope["method"] in SAFE:
            return None
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        foreign = origin is not None and hosts.origin_of(origin) != host.origin(scope["scheme"])
        if site not in ("same-origin", "none") or foreign:
            return 403, "This request comes from another page. The desk changes nothing for others. Use its own forms."
        kinds = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"content-type"]
        length = headers.get("content-length", "")
        return forms.refusal(scope["path"], kinds, length, self._limit(scope, headers))

    def _limit(self, scope: Scope, headers: dict[str, str]) -> int:
        return forms.limit_of(scope["path"], headers.get("content-type", ""), self.largest)

    def _person(self, headers: dict[str, str]) -> Person | None:
        token = session_token(headers.get("cookie", ""))
        return None if token is None else person_of(self.store, token, local=self.local)


def session_token(cookie: str) -> str | None:
    """Read without `http.cookies`, whose quotes can take a time that grows with their square."""
    return cookie_of(cookie, COOKIE)


def cookie_of(header: str, name: str) -> str | None:
    pairs = (each.strip().partition("=") for each in header.split(";"))
    return next((value for key, _, value in pairs if key == name), None)


def _with_headers(send: Send, *, secure: bool) -> Send:
    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            added = HEADERS | ({"strict-transport-security": "max-age=31536000"} if secure else {})
            message["headers"] = [
                *message["headers"],
                *((n.encode(), v.encode()) for n, v in added.items() if n.encode() not in present),
            ]
        await send(message)

    return dressed


async def person(request: Request) -> Person:
    """Who is asking; the guard lets nobody else this far."""
    found: Person = request.state.person
    return found


Asking = Annotated[Person, Depends(person)]


def needs(right: Right) -> Callable[..., Awaitable[Person]]:
    """A dependency: the person, who must have `right`."""

    async def checked(asking: Asking) -> Person:
        if not asking.may(right):
            raise HTTPException(
                403,
                f"{DOES[right]} was asked by {asking.name}, whose role is {asking.role}. That role cannot. Ask a "
                "colleague who can, or an administrator for another role.",
            )
        return asking

    return checked


DOES: dict[Right, str] = {
    "plan": "Changing a plan",
    "approve": "Deciding about a plan",
    "budget": "Raising a budget",
    "run": "Running a plan",
    "analyse": "Working on an upload",
    "log": "Reading the audit log",
    "people": "Changing who may come in",
    "source": "Adding a source",
}


async def form_of(request: Request, asking: Asking) -> FormData:
    """The form that was sent, if it is one of ours: it carries the token of the session."""
    form = await forms.read(request)
    _own_form(asking, form.get("csrf"))
    return form


async def own_script(asking: Asking, x_csrf: Annotated[str, Header()] = "") -> None:
    """The same for requests of our script."""
    _own_form(asking, x_csrf)


Form = Annotated[FormData, Depends(form_of)]


def _own_form(asking: Person, token: Any) -> None:
    if not isinstance(token, str) or not same(token, asking.csrf):
        raise HTTPException(
            403, "The form is not of this session. Forms end with the log-in. Reload the page, try again."
        )


async def in_turn(asking: Asking) -> AsyncIterator[None]:
    """A dependency of pages that read much."""
    async with PAGES.of(asking.name):
        yield


InTurn = Depends(in_turn)


def cookie_settings(request: Request) -> MutableMapping[str, Any]:
    return {"httponly": True, "samesite": "strict", "secure": request.url.scheme == "https", "path": "/"}


def login_address(request: Request) -> str:
    """The log-in, which leads back to the page that was asked for."""
    return f"/login?next={quote(request.url.path if request.method == 'GET' else '/')}"
