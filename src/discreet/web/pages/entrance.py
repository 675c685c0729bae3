"""Coming in and going out: the link that is printed once, or a name with its password."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from discreet.web.accounts import (
    FOR_A_NAME,
    FROM_AN_ADDRESS,
    TRIES,
    close_session,
    is_password,
    local_name,
    open_session,
    same,
)
from discreet.web.audit_log import record
from discreet.web.rendering import At, page
from discreet.web.security import COOKIE, Asking, Form, cookie_settings, session_token

router = APIRouter(include_in_schema=False)


def _welcome(request: Request, token: str, to: str) -> Response:
    response = RedirectResponse(to, status_code=303)
    response.set_cookie(COOKIE, token, **cookie_settings(request))
    return response


@router.get("/enter")
def enter(request: Request, here: At, token: str = "") -> Response:
    """Open the session of the one person of a desk without accounts; a token works once."""
    if here.entrance is None or not same(token, here.entrance) or here.entrance in here.used:
        with here.store.writing() as connection:
            record(connection, "(nobody)", "link refused")
        return page(
            request, "login.html", 403, wrong="This link was used, or is of another start of the desk.", back="/"
        )
    here.used.add(here.entrance)
    return _welcome(request, open_session(here.store, local_name(), action="entered by the link"), "/")


@router.get("/login")
def login(request: Request, next: str = "/") -> Response:
    return page(request, "login.html", wrong="", back=_own(next))


@router.post("/login")
async def check(request: Request, here: At) -> Response:
    """Check a password. There is no session yet, so the guard's test of the origin is what keeps others out."""
    form = await request.form(max_files=0, max_fields=10)
    name, password, back = (str(form.get(key, "")) for key in ("name", "password", "next"))
    if here.desk.settings.accounts is False:
        raise HTTPException(
            403, "A desk without accounts has no passwords. Open the link that `discreet serve` printed."
        )
    address = request.client.host if request.client else ""
    keys = {f"{name} from {address}": TRIES, f"name {name}": FOR_A_NAME, f"from {address}": FROM_AN_ADDRESS}
    wait = here.attempts.wait(keys)
    if wait:
        with here.store.writing() as connection:
            record(connection, "(nobody)", "log-in held back", _shown(name), address=address)
        words = f"Too many wrong passwords. Try again in {-(-wait // 60)} minutes."
        response = page(request, "login.html", 429, wrong=words, back=_own(back))
        response.headers["retry-after"] = str(wait)
        return response
    if not await run_in_threadpool(is_password, here.store, name, password):
        here.attempts.failed(keys)
        with here.store.writing() as connection:
            record(connection, "(nobody)", "log-in refused", _shown(name), address=address)
        return page(request, "login.html", 401, wrong="The name or the password is wrong.", back=_own(back))
    return _welcome(request, open_session(here.store, name, action="logged in"), _own(back))


@router.post("/logout")
def logout(request: Request, here: At, asking: Asking, _form: Form) -> Response:
    close_session(here.store, session_token(request.headers.get("cookie", "")) or "", asking.name)
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(COOKIE, path="/")
    return response


def _shown(name: str) -> str:
    return name[:32] if name.isprintable() else ""


def _own(path: str) -> str:
    """A path of this desk, never an address elsewhere."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"
