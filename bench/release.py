"""One release of workload 3 from 10.9 million jobs, beside the bare DuckDB query that it needs.

The release includes calibration, the query through narwhals, the ledger, exact noise and intervals. Both alternate in
one process; the ratio of medians counts. Peak memory is that of a fresh process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from bench.engine import PLACES, contestants
from discreet.jobs import read_jobs
from discreet.privacy.units import Establishments
from discreet.schema import LODES
from discreet.session import Session
from discreet.simulate import lodes

RUNS = 7
WORKERS = ("sex", "education")

MEMORY = """
import resource, sys
sys.path.insert(0, {here!r})
from bench.release import release
release({folder!r})()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def release(folder: str) -> Any:
    """A function that releases workload 3 once."""
    session = Session(
        read_jobs(folder, schema=LODES, validate=False), unit=Establishments("0.1"), budget=10_000, dataset="bench"
    )
    query = session.count(by=[*PLACES, *WORKERS])
    return lambda: query.release(epsilon=4)


def main(path: Path | None = None, *, share: float = 1.0) -> None:
    """Measure, print the ratio and the memory, and write them to `path` as JSON."""
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "lodes")
        with console.status("Simulating jobs"):
            rows = lodes.write(folder, share=share)["rows"]["jobs"]
        running = {"release": release(folder), "bare query": contestants(folder, WORKERS)["SQL by hand"]}
        taken: dict[str, list[float]] = {name: [] for name in running}
        with console.status("Measuring"):
            for _ in range(RUNS + 1):
                for name, contestant in running.items():
                    start = time.process_time()
                    contestant()
                    taken[name].append(time.process_time() - start)
        code = MEMORY.format(here=str(Path(__file__).parents[1]), folder=folder)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    times = {name: median(runs[1:]) for name, runs in taken.items()}
    result = {
        "jobs": rows,
        "processor_seconds": times,
        "ratio": times["release"] / times["bare query"],
        "peak_mib": int(done.stdout) / 1024,
    }
    Console().print(result)
    if path is not None:
        path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
