"""Runs of plans in processes of their own, which may be killed."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

WORKERS = Path(__file__).parent / "plan" / "workers.py"


class Runner:
    """Starts a process per run, says at which step it is, and waits for it; the plan `first` warms it up."""

    def __init__(self, first: Path, environment: Mapping[str, str] | None = None) -> None:
        command, env = [sys.executable, str(WORKERS), str(first)], os.environ | (environment or {})
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env)
        self.said = b""
        assert self.line() == "ready"

    def start(self, plan: Path) -> int:
        """The process id of a new run of `plan`."""
        self.process.stdin.write(f"{plan}\n".encode())
        return int(self.line())

    def wait(self) -> tuple[int, list[str]]:
        """How the run ended, an exit code or minus a signal, and the lines it had still to say."""
        self.process.stdin.write(b"wait\n")
        said = []
        while not (line := self.line()).startswith("ended "):
            said.append(line)
        return int(line.removeprefix("ended ")), said

    def line(self) -> str:
        while b"\n" not in self.said:
            assert select.select([self.process.stdout], [], [], 240)[0], "no answer in four minutes"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, "the process that starts runs has ended"
            self.said += more
        line, _, self.said = self.said.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()
