"""A desk on a little simulated data, served as users serve it, and a real browser in front of it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
PATIENCE = 60
PASSWORD = "correct horse battery"


@dataclass
class Served:
    """A desk that runs."""

    folder: Path
    port: int
    process: subprocess.Popen[str]
    link: str

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Page:
    """A browser's page, and everything that it complained about."""

    page: Any
    complaints: list[str] = field(default_factory=list)


@dataclass
class Inside:
    """Requests to a desk in this process; keeps cookies, follows nothing, sends its token with every form."""

    app: Any
    csrf: str = ""
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self._asked("GET", path, **more)

    def post(self, path: str, data: dict[str, Any], **more: Any) -> httpx.Response:
        return self._asked("POST", path, data={"csrf": self.csrf, **data}, **more)

    def _asked(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", cookies=self.cookies
            ) as client:
                answer = await client.request(method, path, **more)
                self.cookies = client.cookies
                return answer

        return asyncio.run(sent())


@pytest.fixture(scope="module", autouse=True)
def quick_hashes() -> Iterator[None]:
    """Passwords hashed with little memory: `tests/unit/desk/test_log_in.py` asks how much the desk takes."""
    from argon2 import PasswordHasher

    with pytest.MonkeyPatch.context() as patch:
        cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        patch.setattr("discreet.desk.accounts._hasher", cheap)
        yield


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from discreet.desk import example

    folder = example.make(tmp_path_factory.mktemp("template") / "desk", share=0.001).folder
    settings = folder / "desk.toml"
    settings.write_text(settings.read_text().replace("\nunit = ", "\nunit_fixed = false\nunit = "))
    return folder


@pytest.fixture(scope="session")
def copied(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A fresh desk; `rules` are further lines of its desk.toml."""

    def make(rules: str = "") -> Path:
        folder = tmp_path_factory.mktemp("copy") / "desk"
        shutil.copytree(template, folder)
        settings = folder / "desk.toml"
        settings.write_text(settings.read_text().replace('ledger = "ledger.db"', f'{rules}\nledger = "ledger.db"'))
        return folder

    return make


@pytest.fixture
def inside() -> Iterator[Callable[..., Any]]:
    """Somebody at a desk that answers in this process: by the link, or as one of the accounts."""
    from discreet.desk.app import create
    from discreet.desk.desk import Desk

    opened = []

    def come_in(folder: Path, name: str = "", app: Any = None) -> Inside:
        if app is None:
            app = create(Desk.open(folder), entrance="token-of-the-link")
            opened.append(app)
        client = Inside(app)
        if name:
            answer = client.post("/login", data={"name": name, "password": PASSWORD})
        else:
            answer = client.get("/enter?token=token-of-the-link")
        assert answer.status_code == 303, answer.text
        client.csrf = re.findall('name="csrf" content="(.*?)"', client.get("/").text)[0]
        return client

    yield come_in
    for app in opened:
        app.state.here.store.close()


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., Served]]:
    """Start `discreet serve` on a folder; a port that was used before can be used again."""
    begun: list[Served] = []

    def start(folder: Path, port: int | None = None, host: str = "127.0.0.1", options: Sequence[str] = ()) -> Served:
        port = port or _free_port()
        command = [sys.executable, "-c", "from discreet.cli import main; main()", "serve", str(folder)]
        process = subprocess.Popen(
            [*command, "--port", str(port), "--host", host, "--no-browser", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert process.stdout is not None
        said = ""
        while not (found := re.search(r"Open (https?://\S+)", said)):
            line = process.stdout.readline()
            assert line, said
            said += line
        begun.append(Served(folder, port, process, found[1]))
        _wait_until(lambda: _answers(host, port))
        return begun[-1]

    yield start
    for each in begun:
        each.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            each.process.wait(10)
        each.process.kill()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser of one module: while its driver runs, nothing else in this process can run an event loop."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Page]]:
    """A new browser profile with one page; fails at the end when the console complained."""
    contexts = []

    def opened(link: str | None = None, **options: Any) -> Page:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(PATIENCE * 1000)
        page = Page(context.new_page())
        page.page.on("console", lambda message: page.complaints.append(f"{page.page.url} {message.text}"))
        page.page.on("pageerror", lambda error: page.complaints.append(f"{page.page.url} {error}"))
        if link:
            page.page.goto(link)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def worker_of() -> Callable[..., int]:
    """Stop a run's worker as soon as it tells of a step; its process id."""

    def stop(folder: Path, step: str = "") -> int:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for path in sorted((folder / "runs").glob("*.jsonl"), key=lambda path: path.stat().st_mtime)[-1:]:
                lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
                pids = [line["pid"] for line in lines if line["kind"] == "started"]
                if pids and any(step in line["text"] for line in lines):
                    os.kill(pids[-1], signal.SIGSTOP)
                    return int(pids[-1])
            time.sleep(0.004)
        raise AssertionError(f"no worker came to {step!r}")

    return stop


@pytest.fixture(scope="session")
def free_port() -> Callable[[], int]:
    return _free_port


@pytest.fixture(scope="session")
def wait_until() -> Callable[..., None]:
    return _wait_until


@pytest.fixture(scope="session")
def password() -> str:
    return PASSWORD


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        return probe.connect_ex((host, port)) == 0


def _wait_until(true: Callable[[], Any], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)
