"""Cell statistics of 10.9 million jobs: through narwhals on DuckDB, beside the same SQL written by hand.

Run `python bench/engine.py [results.json]`. The jobs are simulated at full size. Three contestants alternate in one
process: `cell_statistics`, the same plan in SQL, and a bare GROUP BY that counts the cells' jobs and knows nothing of
establishments. The ratio of medians counts, in processor time too, which a busy machine disturbs less. Peak memory is
that of a fresh process each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

from discreet.frames import connect
from discreet.jobs import Jobs, read_jobs
from discreet.schema import LODES
from discreet.simulate import lodes
from discreet.tables.cells import cell_statistics

RUNS = 7
PLACES = ("place", "sector", "ownership")
TABLES = {"place x sector x ownership": (), "the same x sex x education": ("sex", "education")}

# A child inherits its parent's maximum in rusage, so Linux is asked for its own.
MEMORY = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from bench.engine import contestants
contestants({folder!r}, {worker_by!r})[{name!r}]()
status = Path("/proc/self/status")
if status.exists():
    print(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")))
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def main(path: Path | None = None, *, share: float = 1.0) -> None:
    """Measure, print a table of times and ratios, and write them to `path` as JSON."""
    console = Console(stderr=True)
    results: dict[str, Any] = {"duckdb": duckdb.__version__, "runs": RUNS, "tables": {}}
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "lodes")
        with console.status("Simulating jobs"):
            results["rows"] = lodes.write(folder, share=share)["rows"]["jobs"]
        for title, worker_by in TABLES.items():
            with console.status(f"Measuring {title}"):
                results["tables"][title] = compare(folder, worker_by)
    table = Table("table", "contestant", "seconds", "processor seconds", "peak MiB", title=f"{results['rows']:,} jobs")
    for title, found in results["tables"].items():
        for name, measured in found["contestants"].items():
            table.add_row(title, name, *(f"{measured[key]:.3g}" for key in ("wall", "processor", "peak_mib")))
        ratios = ", ".join(f"{key} {value:.2f}" for key, value in found["ratio_to_sql"].items())
        table.add_row("", "[bold]cell_statistics / SQL by hand", f"[bold]{ratios}", end_section=True)
    Console().print(table)
    if path is not None:
        path.write_text(json.dumps(results, indent=2) + "\n")


def compare(folder: str, worker_by: tuple[str, ...]) -> dict[str, Any]:
    """Medians of alternating runs, after one run each that also shows that the results agree."""
    running = contestants(folder, worker_by)
    ours, hand, bare = (contestant() for contestant in running.values())
    assert (ours == hand).all()
    assert ours[:, 2::2].sum() == bare.sum()
    times: dict[str, dict[str, list[float]]] = {name: {"wall": [], "processor": []} for name in running}
    for _ in range(RUNS):
        for name, contestant in running.items():
            start = time.perf_counter(), time.process_time()
            contestant()
            times[name]["wall"].append(time.perf_counter() - start[0])
            times[name]["processor"].append(time.process_time() - start[1])
    measured = {
        name: {**{clock: median(taken) for clock, taken in clocks.items()}, "peak_mib": peak(folder, worker_by, name)}
        for name, clocks in times.items()
    }
    ours_, hand_ = measured["cell_statistics"], measured["SQL by hand"]
    return {"contestants": measured, "ratio_to_sql": {key: ours_[key] / hand_[key] for key in ours_}}


def contestants(folder: str, worker_by: tuple[str, ...]) -> dict[str, Callable[[], Any]]:
    """Each returns integers: by cell, establishments, largest workforce, then count and largest of every level."""
    jobs = read_jobs(folder, schema=LODES, validate=False)
    connection = connect()
    plan, bare = sql(folder, worker_by)

    def by_hand() -> Any:
        table = connection.sql(plan).to_arrow_table()
        table = table.sort_by([(name, "ascending") for name in PLACES])
        return np.stack([np.from_dlpack(column.combine_chunks()) for column in table.columns[len(PLACES) :]], axis=1)

    def bare_count() -> Any:
        return np.from_dlpack(connection.sql(bare).to_arrow_table()["n"].combine_chunks())

    return {
        "cell_statistics": lambda: through_narwhals(jobs, worker_by),
        "SQL by hand": by_hand,
        "bare GROUP BY": bare_count,
    }


def through_narwhals(jobs: Jobs, worker_by: tuple[str, ...]) -> Any:
    cells = cell_statistics(jobs, workplace_by=PLACES, worker_by=worker_by)
    pairs = np.stack([cells.counts, cells.largest], axis=2).reshape(len(cells.counts), -1)
    return np.column_stack([cells.establishments, cells.largest_total, pairs])


def sql(folder: str, worker_by: tuple[str, ...]) -> tuple[str, str]:
    """The plan of `cell_statistics`, and the count alone, as a database person would write them."""
    jobs, workplaces = (f"read_parquet('{folder}/{name}.parquet')" for name in ("jobs", "workplace"))
    levels = list(product(*(LODES.worker_attributes[name] for name in worker_by)))
    codes = ["0"]
    stride = len(levels)
    for name in worker_by:
        domain = LODES.worker_attributes[name]
        stride //= len(domain)
        codes.append(
            "CASE " + " ".join(f"WHEN {name} = '{v}' THEN {i * stride}" for i, v in enumerate(domain)) + " END"
        )
    counters = ", ".join(f"count(*) FILTER (level = {i}) AS n{i}" for i in range(len(levels)))
    pairs = ", ".join(f"coalesce(sum(n{i}), 0)::BIGINT, coalesce(max(n{i}), 0)" for i in range(len(levels)))
    places = ", ".join(PLACES)
    plan = f"""
        WITH firms AS (
            SELECT workplace, count(*) AS n, {counters}
            FROM (SELECT workplace, {" + ".join(codes)} AS level FROM {jobs}) GROUP BY workplace
        )
        SELECT {places}, count(*), coalesce(max(n), 0), {pairs}
        FROM {workplaces} LEFT JOIN firms USING (workplace) GROUP BY {places}"""
    return plan, f"SELECT {', '.join([*PLACES, *worker_by])}, count(*) AS n FROM {jobs} GROUP BY ALL"


def peak(folder: str, worker_by: tuple[str, ...], name: str) -> float:
    """MiB that a process needs at most to do it once."""
    here = str(Path(__file__).parents[1])
    code = MEMORY.format(here=here, folder=folder, worker_by=worker_by, name=name)
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(run.stdout.split()[-1]) / (1024 if sys.platform != "darwin" else 1024**2)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
