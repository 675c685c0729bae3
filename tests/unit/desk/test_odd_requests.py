"""Every address of the desk, with values that nobody would send by accident: an answer in words, never a fault."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi.routing import APIRoute

from discreet.desk import analyses, planning, runs, worker
from discreet.desk.accounts import Person, local_name
from discreet.desk.app import ROUTERS, create
from discreet.desk.desk import Desk
from discreet.desk.drafts import first_draft

ODD = [
    "²",
    "9" * 30,
    "-" + "9" * 30,
    "\x00",
    "%ff%fe",
    "a" * 5000,
    "१२",
    "1e400",
    "../..",
    "",
    "\N{OGHAM SPACE MARK}",
    "NaN",
]
FEW = ["²", "9" * 30, "\x00"]
HEADERS = {"last-event-id": ODD, "x-csrf": FEW, "range": FEW, "cookie": ["discreet-desk=²", "\x00=", "a" * 5000]}
EXCEPTIONS = {
    "options": {"horizon": 1, "cutoff": 0.95, "direction": "decline", "cost_ratio": 10.0},
    "rows": [],
    "set_aside": [],
    "summary": "",
    "expected_true": 0.0,
    "expected_false": 0.0,
    "method": "theta",
    "pauc": 0.5,
}
MODEL = {"fit": {"summary": ""}, "curve": {"rows": [], "best": None, "why": ""}, "formula": "y ~ 1", "source": "flows"}
BODIES = {
    "a form in UTF-7": ("application/x-www-form-urlencoded; charset=utf-7", b"title=+2AA-&do=save"),
    "a multipart in UTF-7": (
        "multipart/form-data; boundary=x; charset=utf-7",
        b'--x\r\ncontent-disposition: form-data; name="title"\r\n\r\n+2AA-\r\n--x--\r\n',
    ),
    "a multipart without an end": (
        "multipart/form-data; boundary=x",
        b'--x\r\ncontent-disposition: form-data; name="a"',
    ),
    "a multipart without a boundary": ("multipart/form-data", b"--x"),
    "JSON in a form": ("application/x-www-form-urlencoded", b'{"a": 1}'),
    "a lone surrogate": ("application/json", b'{"source": "\\ud800", "unit": {"kind": "\\ud800"}, "release": []}'),
    "a lone surrogate inside": (
        "application/json",
        b'{"source": "jobs", "title": "\\ud800", "unit": {"kind": "workers", "\\udfff": 1}, '
        b'"release": [{"name": "\\ud800", "kind": "count", "by": ["\\ud800"], "where": {"sex": ["\\ud800"]}}]}',
    ),
    "brackets": ("application/json", b"[" * 100_000),
    "a long number": ("application/json", b'{"source": ' + b"9" * 5000 + b"}"),
    "no JSON": ("application/json", b"\xff\xfe"),
    "another type": ("text/\xb2", b"\x00"),
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, with_data: Callable[[Path], Desk]) -> Iterator[Any]:
    """An open desk with a plan, a release, a run that stopped, and results of both kinds."""
    opened = with_data(tmp_path_factory.mktemp("odd"))
    app = create(opened, entrance="token")
    store, person = app.state.here.store, Person(local_name(), "local", "x")
    name = planning.save(opened, store, first_draft(opened, opened.sources["jobs"]), person)
    planning.submit(store, name, person)
    text = planning.get(store, name).text  # type: ignore[union-attr]
    seen = planning.get(store, name).digest  # type: ignore[union-attr]
    planning.decide(opened, store, name, person, verdict="approved", seen=seen)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runs, "_launch", lambda *_: None)
        run = runs.start(opened, store, name, person)
    assert worker.main(opened.plan_file(name), opened.runs, run, seen, 1, text.encode()) == 0
    kept = {
        "exceptions": analyses.keep(store, "exceptions", "t", EXCEPTIONS, person),
        "model": analyses.keep(store, "model", "t", MODEL, person),
    }
    app.state.known = {"plan": name, "run": run, "release": "jobs-1", **kept}
    yield app
    store.close()


def addresses() -> list[tuple[str, APIRoute]]:
    """Every address with every method; static files and the description are made by others."""
    routes = [route for module in ROUTERS for route in module.router.routes if isinstance(route, APIRoute)]
    found = [(method, route) for route in routes for method in sorted(route.methods)]
    assert len(found) > 40
    return found


def filled(path: str, app: Any) -> Iterator[str]:
    """The address with names of every kind that the desk knows, also where they do not belong."""
    known = app.state.known
    choices = {
        "source": ["jobs", "flows"],
        "plan": [known["plan"]],
        "file": ["release.json"],
        "kind": ["report", "bundle"],
    }
    names = re.findall(r"{(\w+)(?::\w+)?}", path)
    if not names:
        yield path
    for name in known.values():
        chosen = {key: choices.get(key, [name])[0] for key in names}
        yield re.sub(r"{(\w+)(?::\w+)?}", lambda found, chosen=chosen: chosen[found[1]], path)


class Sender:
    """Sends requests to the desk in this process, as the person who came in by the link."""

    def __init__(self, app: Any) -> None:
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")

    async def come_in(self) -> None:
        await self.client.get("/enter?token=token")
        found = re.findall('name="csrf" content="(.*?)"', (await self.client.get("/")).text)
        self.csrf = found[0]

    async def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        return await self.client.request(method, path, **more)


def test_every_address_answers_whatever_is_sent(desk: Any, caplog: pytest.LogCaptureFixture) -> None:
    import asyncio

    wrong: list[str] = []

    async def every() -> None:
        sender = Sender(desk)
        await sender.come_in()

        async def ask(what: str, method: str, path: str, **more: Any) -> int:
            caplog.clear()
            try:
                answer = await sender.send(method, path, **more)
                if answer.status_code >= 500 or caplog.records:
                    wrong.append(f"{what}: {answer.status_code} {[r.getMessage() for r in caplog.records]}")
                return answer.status_code
            except Exception as error:  # the connection would have been cut
                wrong.append(f"{what}: {type(error).__name__} {error}")
                return 0

        for method, route in addresses():
            if route.path in ("/logout", "/enter"):
                continue
            label = f"{method} {route.path}"
            good = [path for path in filled(route.path, desk) if await ask(f"{label} as {path}", method, path) == 200]
            usual = good[0] if good else next(filled(route.path, desk))
            for odd in FEW:
                for name in re.findall(r"{(\w+)(?::\w+)?}", route.path):
                    path = re.sub(rf"{{{name}(?::\w+)?}}", quote(odd, safe=""), route.path)
                    await ask(f"{label} with {name}={odd[:20]!r}", method, next(filled(path, desk)))
            queries = [field.alias for field in route.dependant.query_params]
            for odd in ODD if method == "GET" else []:
                for name in queries:
                    await ask(f"{label} ?{name}={odd[:20]!r}", method, f"{usual}?{name}={quote(odd, safe='%')}")
            for name, values in HEADERS.items():
                if name != "last-event-id" or "events" in route.path:
                    for odd in values:
                        sent = {name: odd.encode("latin-1", "replace")}
                        await ask(f"{label} {name}: {odd[:20]!r}", method, usual, headers=sent)
            if method == "POST":
                for what, (kind, body) in BODIES.items():
                    headers = {"content-type": kind.encode("latin-1"), "x-csrf": sender.csrf}
                    await ask(f"{label} with {what}", method, usual, content=body, headers=headers)
                fields = {"csrf": sender.csrf}
                await ask(f"{label} with an empty form", method, usual, data=fields)
        await sender.client.aclose()

    with caplog.at_level(logging.ERROR):
        asyncio.run(every())
    assert not wrong, "\n".join(wrong)
