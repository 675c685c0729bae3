"""A desk without data worth the name, in this process."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from argon2 import PasswordHasher
from fastapi.routing import APIRoute

from discreet.desk import sandbox
from discreet.desk.accounts import add_account
from discreet.desk.app import ROUTERS, create
from discreet.desk.desk import Desk

SETTINGS = """
title = "Test desk"
{rules}
[[source]]
name = "jobs"
path = "data"
dataset = "jobs"
unit = {{ kind = "establishments", alpha = 0.1 }}
unit_fixed = false
epsilon = 4
sizes = "sizes.csv"
[source.schema]
workplace_attributes = ["place", "sector"]
[source.schema.worker_attributes]
sex = ["female", "male"]

[[source]]
name = "flows"
kind = "rows"
path = "flows.parquet"
dataset = "flows"
unit = {{ kind = "rows", lower = 0, upper = 2, response = "y" }}
unit_fixed = false
public = ["x", "g"]
epsilon = 2
formula = "y ~ x + (1 | g)"
"""
PASSWORD = "correct horse battery"
ORIGIN = "http://127.0.0.1"


@dataclass
class Client:
    """Requests to an application in this process; keeps cookies, follows nothing."""

    app: Any
    base: str = ORIGIN
    headers: dict[str, str] = field(default_factory=dict)
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)
    raises: bool = True

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)

    def request(self, method: str, path: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=self.raises)
            async with httpx.AsyncClient(transport=transport, base_url=self.base, cookies=self.cookies) as client:
                answer = await client.request(method, path, headers={**self.headers, **(headers or {})}, **more)
                self.cookies = client.cookies
                return answer

        return asyncio.run(sent())


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords hashed with little memory: how long argon2 takes is not tested here."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr("discreet.desk.accounts._hasher", cheap)


class Unfenced:
    """The far side of the fence in this process: asked and answered in the same text, without its limits."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> Unfenced:
        return self

    def __exit__(self, *_: object) -> None: ...

    def communicate(self, asked: str, timeout: int) -> tuple[str, None]:
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as said:
            patch.setattr(sys, "stdin", io.StringIO(asked))
            patch.setattr(sys, "argv", ["sandbox", "0"])
            patch.setattr(sandbox.tether, "hold", lambda _: None)
            patch.setattr(sandbox, "_limit", lambda: None)
            sandbox.main()
        return said.getvalue(), None


@pytest.fixture
def unfenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what pages say of a result; a process of its own takes a second to start, and has tests of its own.

    Those are in `test_bounded_work`, and the first report, the first model and refusals in `test_analyses`.
    """
    monkeypatch.setattr(sandbox.subprocess, "Popen", Unfenced)


@pytest.fixture(scope="session")
def routes() -> Callable[[str], list[str]]:
    """The paths of all routes, with x for what varies."""

    def found(method: str) -> list[str]:
        every = [route for module in ROUTERS for route in module.router.routes if isinstance(route, APIRoute)]
        return [re.sub(r"\{[^}]*\}", "x", route.path) for route in every if method in route.methods]

    return found


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Desk]:
    def made(rules: str = "") -> Desk:
        (tmp_path / "desk.toml").write_text(SETTINGS.format(rules=rules))
        (tmp_path / "sizes.csv").write_text("place,sector,jobs,largest\nA,1,100,40\nB,1,20,5\nB,2,3000,900\n")
        return Desk.open(tmp_path)

    return made


@pytest.fixture(scope="session")
def with_data() -> Callable[[Path], Desk]:
    """A desk with a few jobs, so that a plan can be run."""

    def made(folder: Path, rules: str = "") -> Desk:
        (folder / "data").mkdir()
        jobs = {
            "workplace": [str(i // 5) for i in range(200)],
            "worker": [str(i) for i in range(200)],
            "place": [f"P{i // 5 % 3}" for i in range(200)],
            "sector": [str(i // 5 % 2) for i in range(200)],
            "sex": ["female", "male"] * 100,
        }
        pq.write_table(pa.table(jobs), folder / "data" / "jobs.parquet")
        cells = "".join(f"P{i},{j},30,5\n" for i in range(3) for j in range(2))
        (folder / "sizes.csv").write_text(f"place,sector,jobs,largest\n{cells}")
        text = SETTINGS.format(rules=rules).replace('path = "data"', 'path = "data/jobs.parquet"')
        (folder / "desk.toml").write_text(text)
        return Desk.open(folder)

    return made


@pytest.fixture
def app(make: Callable[..., Desk]) -> Iterator[Any]:
    app = create(make(), entrance="token-of-the-link")
    yield app
    app.state.here.store.close()


@pytest.fixture
def stranger(app: Any) -> Callable[..., Client]:
    """A client that nobody has let in."""
    return lambda **options: Client(app, **options)


@pytest.fixture
def client(app: Any) -> Client:
    """Somebody who came in by the link."""
    client = Client(app)
    assert client.get("/enter", params={"token": "token-of-the-link"}).headers["location"] == "/"
    return client


@pytest.fixture
def csrf() -> Callable[[Client], str]:
    """The token of a client's forms."""

    def found(client: Client) -> str:
        return client.get("/").text.split('name="csrf" content="')[1].split('"')[0]

    return found


@pytest.fixture
def staffed(make: Callable[..., Desk]) -> Iterator[Callable[..., tuple[Client, httpx.Response]]]:
    """A desk with an analyst, a reviewer and an administrator: log in, and get the client and the answer."""
    app = create(make("accounts = true\nsecond_person = true"))
    store = app.state.here.store
    for name, role in {"anna": "analyst", "rita": "reviewer", "zoe": "administrator"}.items():
        add_account(store, name, role, PASSWORD, by="(test)")

    def log_in(name: str, password: str = PASSWORD, back: str = "/plans") -> tuple[Client, httpx.Response]:
        client = Client(app, headers={"origin": ORIGIN})
        return client, client.post("/login", data={"name": name, "password": password, "next": back})

    yield log_in
    store.close()
