"""Other people's programs, each in an environment of its own, run once as a fresh process and measured from outside.

A peer is a name and what to install. Its virtual environment is made under `out/peers` and found there again; `measure`
runs a script in it and returns what the script reported as JSON, with the peak memory of its whole process tree. A peer
that cannot be installed or fails is `Missing` with the reason: it goes into the table and is never left out of it. A
process of ours that fails is `Failed`, which no table hides.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HOME = ROOT / "out" / "peers"
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SAMPLING = 0.05  # seconds between two looks at a tree's memory

# Linux hands a parent's maximum on to its children in rusage, so the process asks for its own.
MEASURED = """
import json, sys, time
from importlib.metadata import version
def measured(run, times=1):
    "Seconds by the clock and of the processor, the best of `times` runs, and the last result."
    best = {"seconds": float("inf"), "cpu": float("inf")}
    for _ in range(times):
        result = None  # one result at a time in memory, as in R
        clock, cpu = time.perf_counter(), time.process_time()
        result = run()
        best = {"seconds": min(best["seconds"], time.perf_counter() - clock),
                "cpu": min(best["cpu"], time.process_time() - cpu)}
    return best, result
def report(**facts):
    try:
        with open("/proc/self/status") as status:
            facts["mib"] = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    except OSError:
        import resource
        facts["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print("\\n@@" + json.dumps(facts))
"""

REPORT_R = r"""
report <- function(...) {
  status <- grep("VmHWM", readLines("/proc/self/status"), value = TRUE)
  facts <- list(..., mib = as.numeric(gsub("[^0-9]", "", status)) / 1024)
  cat("\n@@", jsonlite::toJSON(facts, auto_unbox = TRUE, digits = NA), "\n", sep = "")
}
arguments <- commandArgs(trailingOnly = TRUE)
clock <- function(run) { t <- system.time(result <- run()); list(seconds = t[[3]], cpu = sum(t[-3]), result = result) }
"""


@dataclass
class Quick:
    """The quick form: only light peers are installed, and no process outlives the deadline (by time.monotonic)."""

    deadline: float = float("inf")

    @property
    def on(self) -> bool:
        return self.deadline < float("inf")


QUICK = Quick()


class Missing(Exception):
    """A peer that this machine cannot have, or that failed, and why."""


class Failed(Exception):
    """A process of ours that failed, and why."""


def tried_once(install: Callable[..., None]) -> Callable[..., None]:
    """The same installation, which raises what it raised before instead of trying again."""
    reasons: dict[tuple[object, ...], Missing] = {}

    @wraps(install)
    def attempt(*what: object) -> None:
        if what in reasons:
            raise reasons[what]
        try:
            install(*what)
        except Missing as reason:
            reasons[what] = reason
            raise

    return attempt


@dataclass(frozen=True)
class Peer:
    """A program beside which ours is measured: its name in tables and what pip installs for it."""

    name: str
    packages: tuple[str, ...]
    light: bool = False  # installed in seconds, so the quick form installs it too

    @property
    def folder(self) -> Path:
        return HOME / self.name.lower().replace(" ", "-")

    @property
    def packages_folder(self) -> Path:
        """Where its modules are, for a process of ours that is to import them."""
        return next(self.python().parents[1].glob("lib/python*/site-packages"))

    @property
    def installed(self) -> bool:
        return (self.folder / "ready").exists()

    def python(self) -> Path:
        """Its interpreter, installed on first use."""
        if not self.installed:
            self.install()
        return self.folder / "bin" / "python"

    @tried_once
    def install(self) -> None:
        """With uv where it is present."""
        if QUICK.on and not self.light:
            raise Missing(f"{self.name} is not installed here; `make bench` without QUICK installs it")
        shutil.rmtree(self.folder, ignore_errors=True)
        python, uv = str(self.folder / "bin" / "python"), shutil.which("uv")
        bare = ["--without-pip"] if uv else []
        into = [uv, "pip", "install", "--quiet", "--python", python] if uv else [python, *PIP]
        for command in ([sys.executable, "-m", "venv", *bare, str(self.folder)], [*into, *self.packages]):
            left = QUICK.deadline - time.monotonic() if QUICK.on else None
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=left)
            except subprocess.TimeoutExpired:
                raise Missing(f"{self.name} could not be installed in the time that is left") from None
            if done.returncode:
                raise Missing(f"{self.name} could not be installed: {last_line(done.stderr)}")
        if "tmlt.analytics" in self.packages:
            java()
        (self.folder / "ready").touch()

    def measure(self, script: str, *arguments: object, seconds: float = 900, **environment: str) -> dict[str, Any]:
        """Run `script` in a fresh process; it calls `measured` for times and `report` for what to hand back."""
        command = [str(self.python()), "-W", "ignore", "-c", MEASURED + script]
        return run(self.name, command, arguments, seconds=seconds, environment=environment)


def ours(script: str, *arguments: object, seconds: float = 900, **environment: str) -> dict[str, Any]:
    """The same for discreet, in this environment."""
    command = [sys.executable, "-c", MEASURED + script]
    try:
        return run("discreet", command, arguments, seconds=seconds, environment=environment)
    except Missing as reason:
        raise Failed(*reason.args) from None


def r(script: str, *arguments: object, package: str, seconds: float = 900) -> dict[str, Any]:
    """The same for R; the script calls `clock` for times and `report` for what to hand back."""
    there = f"quit(status = !all(sapply(c('{package}', 'jsonlite'), requireNamespace, quietly = TRUE)))"
    if (
        not shutil.which("Rscript")
        or subprocess.run(["Rscript", "-e", there], capture_output=True, check=False).returncode
    ):
        debian("r-base-core", f"r-cran-{package.lower()}", "r-cran-jsonlite")
    script = f"suppressMessages(library({package}))\n{REPORT_R}{script}"
    return run(package, ["Rscript", "-e", script], arguments, seconds=seconds, environment={})


@tried_once
def debian(*packages: str) -> None:
    """Install packages of the system, where this user may; the quick form installs nothing that large."""
    said = f"{', '.join(packages)} are not installed"
    if QUICK.on:
        raise Missing(f"{said}; `make bench` without QUICK installs them")
    if os.geteuid() or not shutil.which("apt-get"):
        raise Missing(f"{said}, and only root on Debian may let the bench do it: apt-get install {' '.join(packages)}")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", *packages]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
    if done.returncode:
        raise Missing(f"{said} and could not be: {last_line(done.stderr)}")


def java() -> None:
    """What Spark runs on."""
    if not shutil.which("java"):
        debian("openjdk-17-jre-headless")


def run(
    name: str, command: Sequence[str], arguments: Sequence[object], *, seconds: float, environment: dict[str, str]
) -> dict[str, Any]:
    """The JSON after the last `@@` of a fresh process; linear algebra has one thread on both sides."""
    whole = [*command, *map(str, arguments)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        seconds = min(seconds, max(QUICK.deadline - start, 1.0))
        process = subprocess.Popen(
            whole, stdout=out, stderr=errors, env=os.environ | ONE_THREAD | environment, cwd=ROOT
        )
        peak = 0.0
        try:
            while process.poll() is None:
                if time.monotonic() - start > seconds:
                    raise Missing(f"{name} was stopped after {seconds:.0f} s")
                before = time.monotonic()
                peak = max(peak, tree_mib(process.pid))
                with suppress(subprocess.TimeoutExpired):  # looking at gigabytes takes a while
                    process.wait(max(SAMPLING, 50 * (time.monotonic() - before)))
        finally:
            if process.poll() is None:
                end(process.pid)
                process.wait()
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    if process.returncode or "@@" not in texts[0]:
        raise Missing(f"{name} failed: {last_line(texts[1])}")
    found: dict[str, Any] = json.loads(texts[0].rpartition("@@")[2].splitlines()[0])
    found["mib"] = max(found.get("mib", 0.0), peak)
    return found


def tree_mib(pid: int) -> float:
    """Memory of a process and its descendants now, pages that they share counted once; 0 where it cannot be known."""
    return sum(_mib(member) for member in tree(pid))


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for member in found:
        try:
            for task in Path(f"/proc/{member}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def end(pid: int) -> None:
    """Stop a process and its descendants."""
    for member in reversed(tree(pid)):
        try:
            os.kill(member, 9)
        except ProcessLookupError:
            continue


def last_line(text: str) -> str:
    """The last line of an error's text that names no address and is not R's farewell."""
    lines = [line.strip() for line in text.splitlines() if "://" not in line and line != "Execution halted"]
    lines = [line for line in lines if line]
    return lines[-1][:200].replace("|", "/") if lines else "it said nothing"


TUMULT = Peer("Tumult Analytics", ("tmlt.analytics", "setuptools<81"))
OPENDP = Peer("OpenDP", ("opendp[polars]", "pandas", "pyarrow"), light=True)
SMARTNOISE = Peer("SmartNoise SQL", ("smartnoise-sql", "pyarrow", "setuptools<81"))
DIFFPRIVLIB = Peer("diffprivlib", ("diffprivlib", "scikit-learn<1.6", "pandas", "pyarrow", "setuptools<81"))
STATSMODELS = Peer("statsmodels", ("statsmodels", "pyarrow"))
PYMER4 = Peer(
    "pymer4",
    (
        "pymer4<0.9",
        "rpy2<3.6",
        "pandas<2.2",
        "numpy<2",
        "pyarrow<19",
        "joblib",
        "statsmodels",
        "seaborn",
        "scikit-learn",
    ),
)
PYMC = Peer("PyMC", ("pymc", "nutpie", "matplotlib<3.11"))
BAMBI = Peer("bambi", ("bambi", "nutpie", "matplotlib<3.11"))
NUMPYRO = Peer("NumPyro", ("numpyro", "pyarrow"))
STATSFORECAST = Peer("statsforecast", ("statsforecast", "pyarrow"))
PYINSTRUMENT = Peer("pyinstrument", ("pyinstrument",), light=True)  # no peer, but kept apart like one
SKLEARN = Peer("scikit-learn", ("scikit-learn",), light=True)

EVERY = (
    *(TUMULT, OPENDP, SMARTNOISE, DIFFPRIVLIB, STATSMODELS, PYMER4, PYMC, BAMBI, NUMPYRO),
    *(SKLEARN, STATSFORECAST, PYINSTRUMENT),
)
