"""A desk that is killed leaves nothing: what it started ends with it, and the next one removes its folders."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.datastructures import FormData, UploadFile

from discreet.desk import uploads

PATIENCE = 120
DESK = """
import io, threading
from starlette.datastructures import FormData, UploadFile
from discreet.desk.sandbox import confined
from discreet.desk.uploads import kept
form = FormData([("data", UploadFile(io.BytesIO(b"secret"), filename="d.csv"))])
with kept(form, "data") as files:
    work = lambda: confined("fit", {"formula": "y ~ 1 + (1 | g)", "data": files["data"]}, seconds=3600)
    threading.Thread(target=work, daemon=True).start()
    print(files["data"], flush=True)
    threading.Event().wait()
"""
ENDLESS = """
import json, os, sys, time
if "discreet.desk.sandbox" in sys.orig_argv:
    json.loads = lambda text: open(os.environ["REACHED"], "w").close() or time.sleep(3600)
"""
"""Makes a confined process wait where it would begin to work."""


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Callable[[], tuple[Path, list[int]]]]:
    """Kill a desk that works on an upload: the upload, and what the desk had started."""
    begun = []

    def kill() -> tuple[Path, list[int]]:
        (tmp_path / "sitecustomize.py").write_text(ENDLESS)
        paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            [sys.executable, "-c", DESK],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": paths, "REACHED": str(tmp_path / "reached")},
        )
        begun.append(process)
        assert process.stdout is not None
        upload = Path(process.stdout.readline().strip())
        wait_until((tmp_path / "reached").exists)
        children = [pid for pid in running() if parent(pid) == process.pid]
        assert upload.read_text() == "secret" and len(children) == 1
        process.kill()
        process.wait()
        return upload, children

    yield kill
    for process in begun:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def running() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def parent(pid: int) -> int | None:
    """The process that started `pid`; None where that has ended, also if nobody has noticed."""
    try:
        state, started_by = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(started_by)


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_killed_desk_leaves_nothing(
    killed: Callable[[], tuple[Path, list[int]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload, children = killed()
    try:
        wait_until(lambda: all(parent(pid) is None for pid in children))
    finally:
        for pid in children:
            if parent(pid) is not None:
                os.kill(pid, signal.SIGKILL)
    assert upload.exists()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(uploads, "STARTING", -1)
    form = FormData([("data", UploadFile(io.BytesIO(b"mine"), filename="d.csv"))])
    (tmp_path / f"{uploads.PREFIX}link").symlink_to(tmp_path)
    with uploads.kept(form, "data") as files:
        uploads.tidy()
        assert Path(files["data"]).read_bytes() == b"mine"  # another desk is at work on it
    assert not upload.parent.exists()
    assert (tmp_path / f"{uploads.PREFIX}link").is_symlink() and (tmp_path / "reached").exists()
