"""Other people's programs, each in an environment of its own, run once as a fresh process and measured from outside.

A peer is a name and what to install. `environment` makes its virtual environment under `out/peers`, where it is found again;
`measure` runs a script in it and returns what the script printed as JSON, with seconds and memory. What cannot be installed
is a `Missing` with the reason: it goes into the table and is never left out of it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[1] / "out" / "peers"
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

MEASURED = """
import json, resource, sys, time
def measured(run, times=1):
    "Seconds by the clock and of the processor, the best of `times` runs, and the last result."
    best = {"seconds": float("inf"), "cpu": float("inf")}
    for _ in range(times):
        clock, cpu = time.perf_counter(), time.process_time()
        result = run()
        best = {"seconds": min(best["seconds"], time.perf_counter() - clock),
                "cpu": min(best["cpu"], time.process_time() - cpu)}
    return best, result
def report(**facts):
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    facts["mib"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + children) / 1024
    print("\\n@@" + json.dumps(facts))
"""


class Missing(Exception):
    """A peer that this machine cannot have, and why."""


@dataclass(frozen=True)
class Peer:
    """A program beside which ours is measured: its name in tables and what pip installs for it."""

    name: str
    packages: tuple[str, ...]

    def python(self) -> Path:
        """Its interpreter, installed on first use."""
        folder = HOME / self.name.lower().replace(" ", "-")
        python = folder / "bin" / "python"
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
            done = subprocess.run([str(python), *PIP, *self.packages], capture_output=True, text=True, check=False)
            if done.returncode:
                raise Missing(f"{self.name} could not be installed: {_last_line(done.stderr)}")
            (folder / "ready").touch()
        return python

    def measure(self, script: str, *arguments: object, seconds: float = 1800) -> dict[str, Any]:
        """Run `script` in a fresh process; it calls `measured` for times and `report` for what to hand back."""
        return run(self.name, [str(self.python()), "-W", "ignore", "-c", MEASURED + script], arguments, seconds=seconds)


def ours(script: str, *arguments: object, seconds: float = 1800) -> dict[str, Any]:
    """The same for discreet, in this environment."""
    return run("discreet", [sys.executable, "-c", MEASURED + script], arguments, seconds=seconds)


def r(script: str, *arguments: object, seconds: float = 1800) -> dict[str, Any]:
    """The same for R; the script prints `@@{json}` itself."""
    if not shutil.which("Rscript"):
        raise Missing(
            "R is not installed; its packages come from the system: r-cran-lme4, r-cran-proc, r-cran-quantreg"
        )
    return run("R", ["Rscript", "-e", script], arguments, seconds=seconds)


def run(name: str, command: Sequence[str], arguments: Sequence[object], *, seconds: float) -> dict[str, Any]:
    """The JSON after the last `@@` of a fresh process; linear algebra has one thread on both sides."""
    environment: Mapping[str, str] = os.environ | ONE_THREAD
    whole = [*command, *map(str, arguments)]
    try:
        done = subprocess.run(
            whole, capture_output=True, text=True, timeout=seconds, env=environment, cwd=HOME.parents[1], check=False
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{name} was stopped after {seconds:.0f} s") from None
    if done.returncode or "@@" not in done.stdout:
        raise Missing(f"{name} failed: {_last_line(done.stderr)}")
    found: dict[str, Any] = json.loads(done.stdout.rpartition("@@")[2])
    return found


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and "://" not in line]
    return lines[-1][:300] if lines else "it said nothing"
