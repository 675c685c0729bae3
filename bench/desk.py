"""The release desk under load, beside a bare FastAPI page in the same run.

200 readers, 50 people with 4 windows each, ask for every page of a desk with a release on it, over loopback, and for a
page that only says hello; rounds take turns. People have accounts and addresses of their own, because the desk limits
what one person and one address may ask at once. Then 10 runs are started at once while the 200 readers go on: every
answer must be right, every run must end well, and the ledger must hold exactly what was paid.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.comparison import Comparison
from discreet.desk import example
from discreet.desk.accounts import add_account, open_session
from discreet.desk.desk import Desk
from discreet.desk.security import COOKIE
from discreet.desk.store import DeskStore
from discreet.ledger import Ledger

READERS, ROUNDS, RUNS = 200, 3, 10
PER_READER, WINDOWS = 3, 4
PAGES = (
    "/",
    "/data",
    "/plans",
    "/plans/new?source=jobs",
    "/utility",
    "/review",
    "/runs",
    "/releases",
    "/ledger",
    "/changes",
)

HELLO = """
import sys, uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
app = FastAPI()
@app.get("/")
async def hello() -> HTMLResponse:
    return HTMLResponse("<!DOCTYPE html><title>Hello</title><h1>Hello</h1>")
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
"""
SERVE = "from discreet.cli import main; main()"


class Reader:
    """One kept-alive connection from an address of this machine; asks for a page at a time."""

    def __init__(self, port: int, cookie: str = "", address: str = "127.0.0.1") -> None:
        self.port, self.cookie, self.address = port, cookie, address

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(self.address, 0))

    async def ask(
        self, path: str, body: str | None = None, *, again: bool = False
    ) -> tuple[int, dict[str, str], bytes]:
        """The answer; a connection that was closed for having been idle is opened again, once."""
        head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n"
        head += f"cookie: {self.cookie}\r\n"
        if body is not None:
            head += f"content-type: application/x-www-form-urlencoded\r\ncontent-length: {len(body)}\r\n"
        self.writer.write(f"{head}\r\n{body or ''}".encode())
        try:
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            if body is not None or again:  # what changes nothing is asked once more, as browsers do
                raise
            await self.close()
            await self.connect()
            return await self.ask(path, again=True)
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        content = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(lines[0].split()[1]), headers, content

    async def close(self) -> None:
        self.writer.close()


async def read(port: int, pages: Sequence[str], cookies: Sequence[str], *, each: int) -> list[float]:
    """Seconds of every answer to WINDOWS readers of each person at once; an answer other than 200 is an error."""
    asking = list(enumerate(cookies, start=1))
    readers = [Reader(port, cookie, f"127.0.0.{number}") for number, cookie in asking for _ in range(WINDOWS)]
    for reader in readers:
        await reader.connect()

    async def one(number: int, reader: Reader) -> list[float]:
        taken = []
        for turn in range(each):
            begun = time.perf_counter()
            status, _, content = await reader.ask(pages[(number + turn) % len(pages)])
            taken.append(time.perf_counter() - begun)
            if status != 200 or b"</h1>" not in content:
                raise RuntimeError(f"{pages[(number + turn) % len(pages)]} was answered with {status}")
        return taken

    found = await asyncio.gather(*(one(number, reader) for number, reader in enumerate(readers)))
    for reader in readers:
        await reader.close()
    return [seconds for taken in found for seconds in taken]


@contextmanager
def serving(command: list[str], port: int) -> Iterator[None]:
    """A server that answers."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def people(desk: Desk) -> list[str]:
    """The cookies of people who have logged in, the first of them an administrator."""
    store, found = DeskStore(desk.database), []
    for number in range(READERS // WINDOWS):
        name, role = f"reader-{number}", "analyst" if number else "administrator"
        add_account(store, name, role, secrets.token_hex(16), by="bench")
        found.append(f"{COOKIE}={open_session(store, name, action='logged in')}")
    store.close()
    return found


async def form_token(port: int, cookie: str) -> str:
    reader = Reader(port, cookie)
    await reader.connect()
    _, _, content = await reader.ask("/")
    await reader.close()
    return re.search(r'name="csrf" content="([^"]+)"', content.decode())[1]  # type: ignore[index]


async def approved(port: int, cookie: str, csrf: str, number: int) -> str:
    """The name of a new approved plan of epsilon 1."""
    reader = Reader(port, cookie)
    await reader.connect()
    form = f"csrf={csrf}&title=Plan+{number}&unit-kind=establishments&unit-alpha=0.1&unit-strength=strong&do=submit"
    form += f"&release-0-name=load-{number}&release-0-kind=count&release-0-by=sector&release-0-epsilon=1"
    form += "&formats=csv&forms=basic"
    _, headers, _ = await reader.ask("/plans/jobs/new", form)
    place = headers["location"]
    _, _, content = await reader.ask(place)
    digest = re.search(r'name="digest" value="([0-9a-f]+)"', content.decode())[1]  # type: ignore[index]
    await reader.ask(place, f"csrf={csrf}&verdict=approved&digest={digest}")
    await reader.close()
    return place.rsplit("/", 1)[1]


async def carried_out(
    port: int, bare: int, cookies: list[str], csrf: str, plans: list[str]
) -> tuple[list[str], list[float], list[float]]:
    """Start all plans at once and read until they ended; their states, the readers' seconds, those of a bare page."""
    reader = Reader(port, cookies[0])
    await reader.connect()
    for plan in plans:
        status, _, _ = await reader.ask("/runs", f"csrf={csrf}&plan={plan}")
        if status != 303:
            raise RuntimeError(f"a run was answered with {status}")
    await reader.close()
    taken: list[float] = []
    hello: list[float] = []
    while True:
        await reader.connect()
        _, _, content = await reader.ask("/api/runs")
        await reader.close()
        states = [run["state"] for run in json.loads(content) if run["plan"] in plans]
        if "running" not in states:
            return states, taken, hello
        taken += await read(port, PAGES, cookies, each=1)
        hello += await read(bare, ["/"], [""] * len(cookies), each=1)


def p95(seconds: Sequence[float]) -> float:
    return float(np.percentile(seconds, 95))


def compare(*, quick: bool) -> Comparison:
    """Answers per page over those of the bare page, and what became of the runs."""
    rounds, runs = (1, 2) if quick else (ROUNDS, RUNS)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "desk"
        cookies = people(example.make(folder, share=0.002, rules="accounts = true\n"))
        settings = folder / "desk.toml"
        settings.write_text(settings.read_text().replace("epsilon = 8", f"epsilon = {runs + 1}"))
        ports = {"desk": free_port(), "hello": free_port()}
        serve = [sys.executable, "-c", SERVE, "serve", str(folder), "--port", str(ports["desk"]), "--no-browser"]
        with (
            serving([sys.executable, "-c", HELLO, str(ports["hello"])], ports["hello"]),
            serving(serve, ports["desk"]),
        ):
            csrf = asyncio.run(form_token(ports["desk"], cookies[0]))
            first = asyncio.run(approved(ports["desk"], cookies[0], csrf, 0))
            states, _, _ = asyncio.run(carried_out(ports["desk"], ports["hello"], cookies, csrf, [first]))
            assert states == ["done"], states
            seconds: dict[str, list[float]] = {"hello": [], **{page: [] for page in PAGES}}
            for page in PAGES:
                asyncio.run(read(ports["desk"], [page], cookies, each=1))
            for _ in range(rounds):
                for page in PAGES:
                    seconds["hello"] += asyncio.run(read(ports["hello"], ["/"], [""] * len(cookies), each=PER_READER))
                    seconds[page] += asyncio.run(read(ports["desk"], [page], cookies, each=PER_READER))
            plans = [asyncio.run(approved(ports["desk"], cookies[0], csrf, number)) for number in range(1, runs + 1)]
            begun = time.perf_counter()
            states, while_running, bare = asyncio.run(carried_out(ports["desk"], ports["hello"], cookies, csrf, plans))
            together = time.perf_counter() - begun
        with Ledger.open(folder / "ledger.db", read_only=True) as ledger:
            budget = next(budget for budget in ledger.budgets() if budget.dataset == "jobs")
            intact, spent, total = bool(ledger.verify()), str(budget.spent), str(budget.total)
    hello = p95(seconds.pop("hello"))
    ratios = {page: p95(taken) / hello for page, taken in seconds.items()}
    worst = max(ratios.values())
    facts = {
        "readers": READERS,
        "people": len(cookies),
        "p95_ratio_to_hello": {"worst": worst, **ratios},
        "p95_milliseconds": {"hello": 1e3 * hello, **{page: 1e3 * p95(taken) for page, taken in seconds.items()}},
        "runs": {state: states.count(state) for state in set(states)},
        "answers_while_running": len(while_running),
        "p95_ratio_while_running": p95(while_running) / p95(bare),
        "seconds_of_all_runs": together,
        "ledger": {"intact": intact, "spent": spent, "total": total},
    }
    assert states == ["done"] * runs and intact and spent == total, facts
    print(f"   the slowest page has {worst:.1f} times the 95th percentile of a bare page; {runs} runs done", flush=True)
    return Comparison(facts=facts)
