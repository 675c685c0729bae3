"""The release desk under load, beside a bare FastAPI page in the same run.

200 readers ask for every page of a desk with a release on it, over loopback, and for a page that only says hello;
rounds take turns. Then 10 runs are started at once while the 200 readers go on: every answer must be right, every run
must end well, and the ledger must hold exactly what was paid.
"""

from __future__ import annotations

import asyncio
import json
import re
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
from discreet.ledger import Ledger
from discreet.web import example

READERS, ROUNDS, RUNS = 200, 3, 10
PER_READER = 3
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
    """One kept-alive connection; asks for a page at a time."""

    def __init__(self, port: int, cookie: str = "") -> None:
        self.port, self.cookie = port, cookie

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

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


async def read(port: int, pages: Sequence[str], cookie: str, *, each: int) -> list[float]:
    """Seconds of every answer to READERS readers at once; an answer other than 200 is an error."""
    readers = [Reader(port, cookie) for _ in range(READERS)]
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
def serving(command: list[str], port: int) -> Iterator[str]:
    """A server; what it said first."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = "".join(process.stdout.readline() for _ in range(2)) if "serve" in command else ""
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
        yield said
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def enter(port: int, said: str) -> tuple[str, str]:
    """The cookie and the form token of whoever opens the link."""
    reader = Reader(port)
    await reader.connect()
    _, headers, _ = await reader.ask(re.search(r"http://[^/]+(/enter\S+)", said)[1])  # type: ignore[index]
    reader.cookie = headers["set-cookie"].split(";")[0]
    _, _, content = await reader.ask("/")
    await reader.close()
    return reader.cookie, re.search(r'name="csrf" content="([^"]+)"', content.decode())[1]  # type: ignore[index]


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
    port: int, bare: int, cookie: str, csrf: str, plans: list[str]
) -> tuple[list[str], list[float], list[float]]:
    """Start all plans at once and read until they ended; their states, the readers' seconds, those of a bare page."""
    reader = Reader(port, cookie)
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
        taken += await read(port, PAGES, cookie, each=1)
        hello += await read(bare, ["/"], "", each=1)


def p95(seconds: Sequence[float]) -> float:
    return float(np.percentile(seconds, 95))


def compare(*, quick: bool) -> Comparison:
    """Answers per page over those of the bare page, and what became of the runs."""
    rounds, runs = (1, 2) if quick else (ROUNDS, RUNS)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "desk"
        example.make(folder, share=0.002)
        settings = folder / "desk.toml"
        settings.write_text(settings.read_text().replace("epsilon = 8", f"epsilon = {runs + 1}"))
        ports = {"desk": free_port(), "hello": free_port()}
        serve = [sys.executable, "-c", SERVE, "serve", str(folder), "--port", str(ports["desk"]), "--no-browser"]
        with (
            serving([sys.executable, "-c", HELLO, str(ports["hello"])], ports["hello"]),
            serving(serve, ports["desk"]) as said,
        ):
            cookie, csrf = asyncio.run(enter(ports["desk"], said))
            first = asyncio.run(approved(ports["desk"], cookie, csrf, 0))
            states, _, _ = asyncio.run(carried_out(ports["desk"], ports["hello"], cookie, csrf, [first]))
            assert states == ["done"], states
            seconds: dict[str, list[float]] = {"hello": [], **{page: [] for page in PAGES}}
            for page in PAGES:
                asyncio.run(read(ports["desk"], [page], cookie, each=1))
            for _ in range(rounds):
                for page in PAGES:
                    seconds["hello"] += asyncio.run(read(ports["hello"], ["/"], "", each=PER_READER))
                    seconds[page] += asyncio.run(read(ports["desk"], [page], cookie, each=PER_READER))
            plans = [asyncio.run(approved(ports["desk"], cookie, csrf, number)) for number in range(1, runs + 1)]
            begun = time.perf_counter()
            states, while_running, bare = asyncio.run(carried_out(ports["desk"], ports["hello"], cookie, csrf, plans))
            together = time.perf_counter() - begun
        with Ledger.open(folder / "ledger.db", read_only=True) as ledger:
            budget = next(budget for budget in ledger.budgets() if budget.dataset == "jobs")
            intact, spent, total = bool(ledger.verify()), str(budget.spent), str(budget.total)
    hello = p95(seconds.pop("hello"))
    ratios = {page: p95(taken) / hello for page, taken in seconds.items()}
    worst = max(ratios.values())
    facts = {
        "readers": READERS,
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
