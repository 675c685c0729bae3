"""A plan carried out on 10.9 million jobs, beside the bare computation of the same tables.

Bare: read and check every row, count, draw exact noise, compute intervals, write both forms of each table as CSV and
Parquet. The plan adds its own checks, the ledger with its disk syncs, hashes, the report with its simulation and
charts, and the reviewer's bundle. Fresh processes take turns; processor seconds of all threads count,
of each side's quietest run. The first run of each, which is not counted, compiles Python's modules, as the first use of
an installation does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from discreet.simulate import lodes

RUNS = 5

PLAN = """
[data]
source = {folder!r}
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 6
ledger = "ledger.db"
dataset = "bench"
[[release]]
name = "workplaces"
kind = "count"
by = ["place", "sector", "ownership"]
epsilon = 2
[[release]]
name = "workers"
kind = "count"
by = ["place", "sector", "ownership", "sex", "education"]
epsilon = 4
[output]
folder = "out"
"""

BARE = """
import sys
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import discreet as dc
def rounded(table, way, name):
    values = way(np.asarray(table[name], dtype=float) / 5) * 5
    return pa.array(np.nan_to_num(values).astype(np.int64), mask=np.isnan(values))
def basic(table):
    for i, (name, way) in enumerate({"count": np.rint, "lower": np.floor, "upper": np.ceil}.items()):
        table = table.set_column(len(table.column_names) - 3 + i, name, rounded(table, way, name))
    return table
jobs = dc.read_jobs(sys.argv[1])
session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=6)
by = ["place", "sector", "ownership"]
for name, attributes, epsilon in (("workplaces", by, 2), ("workers", [*by, "sex", "education"], 4)):
    table = session.count(by=attributes).release(epsilon=epsilon).to_arrow()
    for form, content in (("research", table), ("basic", basic(table))):
        pyarrow.csv.write_csv(content, f"{sys.argv[2]}/{name}-{form}.csv")
        pyarrow.parquet.write_table(content, f"{sys.argv[2]}/{name}-{form}.parquet", compression="zstd")
"""

CARRIED_OUT = "import sys; from discreet.plan.run import run; run(f'{sys.argv[2]}/plan.toml')"


def seconds(code: str, *arguments: str, compiled: Path) -> float:
    """Processor seconds of a fresh process that keeps its modules' bytecode in the folder `compiled`."""
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(compiled)}
    before = os.times()
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, env=os.environ | kept)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main(path: Path | None = None, *, share: float = 1.0, data: str | None = None) -> None:
    """Measure, print the overhead, and write it to `path` as JSON; `data` are jobs that were simulated before."""
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = data or str(Path(scratch) / "lodes")
        if data is None:
            with console.status("Simulating jobs"):
                lodes.write(folder, share=share)
        taken: dict[str, list[float]] = {"bare": [], "plan": []}
        with console.status("Measuring"):
            for run in range(RUNS + 1):
                for name, code in (("bare", BARE), ("plan", CARRIED_OUT)):
                    place = Path(scratch) / f"{name}-{run}"
                    place.mkdir()
                    (place / "plan.toml").write_text(PLAN.format(folder=folder), encoding="utf-8")
                    taken[name].append(seconds(code, folder, str(place), compiled=Path(scratch) / "compiled"))
        times = {name: min(runs[1:]) for name, runs in taken.items()}
        files = sum(file.stat().st_size for file in (Path(scratch) / f"plan-{RUNS}" / "out").rglob("*"))
    result = {
        "processor_seconds": times,
        "overhead": times["plan"] / times["bare"] - 1,
        "ratios": [plan / bare for bare, plan in zip(taken["bare"][1:], taken["plan"][1:], strict=True)],
        "output_mib": files / 2**20,
    }
    Console().print(result)
    if path is not None:
        path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(data=sys.argv[1] if len(sys.argv) > 1 else None)
