"""A ledger on each engine: SQLite in a file, and a real PostgreSQL (`postgres_server`)."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postgres_server import postgres, postgres_server, postgres_url

__all__ = ["postgres", "postgres_server", "postgres_url"]

ENGINES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=ENGINES)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger may live, once per engine."""
    return str(tmp_path / "ledger.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


class Nursery:
    """Starts workers in their own processes, and waits for them."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name("workers.py")), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self._answer() == "ready"

    def start(self) -> int:
        """The process id of a new worker, which stays reserved until it has been waited for."""
        print("start", file=self.process.stdin)
        return int(self._answer())

    def wait(self) -> int:
        """How the next worker to end has ended: its exit code, or minus the signal."""
        print("wait", file=self.process.stdin)
        return int(self._answer())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)

    def _answer(self) -> str:
        assert select.select([self.process.stdout], [], [], 120)[0], "no answer from the workers in two minutes"
        return self.process.stdout.readline().strip()


@pytest.fixture
def nursery() -> Iterator[Callable[..., Nursery]]:
    opened: list[Nursery] = []

    def start(*arguments: str) -> Nursery:
        opened.append(Nursery(*arguments))
        return opened[-1]

    yield start
    for each in opened:
        each.close()
