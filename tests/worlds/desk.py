"""The desk's doors: a world as one of its sources, its forms filled in as a browser would, its pages read."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

from worlds.plan import desk_settings
from worlds.way import Ended, Walk
from worlds.world import Release, World


class Form(HTMLParser):
    """The fields of a page's forms with what a browser would send, by name; the answers that a field offers."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: list[tuple[str, str]] = []
        self.offered: dict[str, list[str]] = {}
        self.token = ""
        self._select, self._area, self._text = "", "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in given}
        name, value = of.get("name", ""), of.get("value", "on")
        if tag == "meta" and name == "csrf":
            self.token = of.get("content", "")
        elif tag == "input" and name:
            self.offered.setdefault(name, []).append(value)
            if of.get("type") not in ("checkbox", "radio", "submit") or "checked" in of:
                self.fields.append((name, of.get("value", "")))
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select:
            self.offered.setdefault(self._select, []).append(value)
            if "selected" in of:
                self.fields.append((self._select, value))
        elif tag == "textarea":
            self._area, self._text = name, ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ""
        elif tag == "textarea":
            self.fields.append((self._area, self._text))
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self._text += data


def opened(walk: Walk) -> dict[str, Ended]:
    """Take the first release of a world through the desk, on a copy of its data."""
    from discreet.desk.app import create
    from discreet.desk.desk import Desk
    from discreet.words.errors import DiscreetError

    folder = walk.folder / "desk"
    folder.mkdir()
    shutil.copytree(walk.folder / "data", folder / "data")
    for path in (*walk.folder.glob("lookup-*"), *walk.folder.glob("sizes.csv")):
        shutil.copy(path, folder)
    (folder / "desk.toml").write_text(desk_settings(walk.world, walk.folder), encoding="utf-8")
    try:
        app = create(Desk.open(folder), entrance="token")
    except DiscreetError as error:
        return {"desk": Ended("serve", 2, str(error))}
    try:
        return asyncio.run(_visited(app, walk.world))
    finally:
        app.state.here.store.close()


async def _visited(app: Any, world: World) -> dict[str, Ended]:
    import httpx

    from discreet.desk import planning, worker
    from discreet.desk.accounts import Person, local_name
    from discreet.desk.drafts import digest

    found: dict[str, Ended] = {}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def ask(method: str, path: str, **more: Any) -> httpx.Response:
            answer = await client.request(method, path, **more)
            found[f"{method} {path} {len(found)}"] = Ended(path, 3 if answer.status_code >= 500 else 0, answer.text)
            return answer

        await ask("GET", "/enter?token=token")
        for path in ("/", "/data", "/data/new", "/plans", "/ledger", "/utility", "/api/sources", "/api/ledger"):
            await ask("GET", path)
        empty = Form((await ask("GET", "/plans/new?source=jobs")).text)
        fields = [*_filled(empty, world, world.releases[0])]
        sent: dict[str, Any] = {}
        for name, value in fields:
            sent.setdefault(name, []).append(value)
        headers = {"x-csrf": empty.token, "origin": "http://127.0.0.1"}
        answer = await ask("POST", "/plans/jobs/new", data={**sent, "do": "submit"}, headers=headers)
        where = answer.headers.get("location", "")
        await ask("GET", where or "/plans")
        name = where.rpartition("/")[2].partition("?")[0]
        if not where.startswith("/review/"):
            said = (await ask("GET", f"/plans/{name}")).text if name else answer.text
            found["submitted"] = Ended("submit", 2, said)
            return found
        here = app.state.here
        plan = planning.get(here.store, name)
        found["submitted"] = Ended("submit", 0, plan.text)
        await ask("GET", f"/plans/{name}/plan.toml")
        planning.decide(
            here.desk, here.store, name, Person(local_name(), "local", "x"), verdict="approved", seen=plan.digest
        )
        text = plan.text.encode()
        (here.desk.runs / "one.jsonl").touch()
        code = worker.main(here.desk.plan_file(name), here.desk.runs, "one", digest(text), 1, text)
        found["run"] = Ended("worker", code, (here.desk.runs / "one.jsonl").read_text(encoding="utf-8"))
        for path in ("/", "/releases", "/ledger", "/api/releases", "/api/ledger", "/runs", f"/plans/{name}"):
            await ask("GET", path)
        if code == 0:
            await ask("GET", f"/releases/{name}/{world.releases[0].name}")
            await ask("GET", f"/papers/{name}/report")
            await ask("GET", f"/utility?source={quote('jobs')}")
    return found


def _filled(form: Form, world: World, release: Release) -> Iterator[tuple[str, str]]:
    """The form with the fields of a release; what the page has no field for is left."""
    r = "release-0-"
    options = dict(release.options)
    where = options.pop("where", {})
    plain = {f"{r}name": release.name, f"{r}kind": release.kind, f"{r}epsilon": release.epsilon}
    plain |= {f"unit-{key}": str(value) for key, value in world.unit if key != "substitution"}
    said = ("level", "scale_share", "round_to", "mechanism", "of", "stratum")
    plain |= {f"{r}{key}": str(options[key]) for key in said if key in options}
    if where:
        from worlds.plan import toml

        plain[f"{r}where"] = "\n".join(f"{name}: {', '.join(map(toml, codes))}" for name, codes in where.items())
    if release.kind in ("counts", "sums"):
        from discreet.desk.filters import names

        plain[f"{r}tables"] = "\n".join(names(by) or "*" for by in release.tables)
    for name, value in form.fields:
        if name not in plain and name not in (f"{r}by", f"{r}quarter", f"{r}quarters"):
            yield name, value
    yield from plain.items()
    if release.kind in ("flows", "changes"):
        yield from (
            (f"{r}{key}", ", ".join(map(str, options[key]))) for key in ("quarter", "quarters") if key in options
        )
    if release.kind in ("count", "sum", "flows", "changes"):
        yield from ((f"{r}by", attribute) for attribute in release.tables[0])
    for key in ("add_up", "establishments"):
        if options.get(key):
            yield f"{r}{key}", "on"
