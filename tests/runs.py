"""Runs of plans in processes of their own, which may be killed."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

WORKERS = Path(__file__).parent / "plan" / "workers.py"


class Runner:
    """Starts a process per run, says at which step it is, and waits for it; the plan `first` warms it up."""

    def __init__(self, first: Path, environment: Mapping[str, str] | None = None) -> None:
        command, env = [sys.executable, str(WORKERS), str(first)], os.environ | (environment or {})
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env)
        self.said, self.end, self.awaited = b"", "", False
        assert self.line() == "ready"

    def start(self, plan: Path) -> int:
        """The process id of a new run of `plan`."""
        self.process.stdin.write(f"{plan}\n".encode())
        return int(self.line())

    def start_command(self, plan: Path, point: str = "nowhere") -> int:
        """The process id of a new `discreet run`, which stops for ever at a point (`workers.stop_at`)."""
        self.process.stdin.write(f"command {point} {plan}\n".encode())
        return int(self.line())

    def until(self, step: str | None = None) -> tuple[bool, list[str]]:
        """Whether the run came to `step`, or to its next one, before it ended, and the lines that it has said."""
        said: list[str] = []
        for line in self.lines():
            said.append(line)
            if step is None or line.partition(" ")[2] == step:
                return True, said
        return False, said

    def wait(self) -> tuple[int, list[str]]:
        """How the run ended, an exit code or minus a signal, and the lines it had still to say."""
        said = list(self.lines())
        code, self.end, self.awaited = int(self.end.removeprefix("ended ")), "", False
        return code, said

    def lines(self) -> Iterator[str]:
        """What the run says until it has ended."""
        if not self.awaited:
            self.process.stdin.write(b"wait\n")
            self.awaited = True
        while not self.end:
            line = self.line()
            if line.startswith("ended "):
                self.end = line
            else:
                yield line

    def line(self) -> str:
        while b"\n" not in self.said:
            assert select.select([self.process.stdout], [], [], 600)[0], "no answer in ten minutes"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, "the process that starts runs has ended"
            self.said += more
        line, _, self.said = self.said.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()
