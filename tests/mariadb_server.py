"""A real MariaDB for tests, on loopback and in a private folder, where the system's package of it is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def started() -> Iterator[tuple[Path, int]]:
    """A running server: its socket, through which `root` comes without a password, and its port."""
    server, install = (shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin:/usr/local/sbin") for name in (
        "mariadbd", "mariadb-install-db",
    ))  # fmt: skip
    if server is None or install is None:
        pytest.skip("MariaDB is not installed (the system's package mariadb-server)")
    home = Path(tempfile.mkdtemp(prefix="discreet-mariadb-"))
    as_nobody: dict[str, object] = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        as_nobody = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
    home.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = ["--no-defaults", f"--datadir={home / 'data'}"]
    quiet = {"cwd": home, "env": {"PATH": "/usr/sbin:/usr/bin:/bin", "LC_ALL": "C", "HOME": str(home)}}
    process = None
    try:
        with (home / "log.txt").open("a") as log:
            subprocess.run(
                [install, *common, "--auth-root-authentication-method=normal", "--skip-test-db", "--force"],
                check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=120, **quiet, **as_nobody,
            )  # fmt: skip
            process = subprocess.Popen(
                [
                    server, *common, f"--socket={home / 'socket'}", f"--port={port}", "--bind-address=127.0.0.1",
                    "--skip-name-resolve", f"--pid-file={home / 'pid'}", "--innodb-flush-log-at-trx-commit=0",
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **quiet, **as_nobody,
            )  # fmt: skip
        until = time.monotonic() + 60
        while not (home / "socket").exists():
            assert process.poll() is None and time.monotonic() < until, (home / "log.txt").read_text()
            time.sleep(0.05)
        yield home / "socket", port
    finally:
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[tuple[Path, int]]:
    pytest.importorskip("pymysql")
    with started() as server:
        yield server
