"""A plan carried out on 10.9 million jobs, beside the bare computation of the same tables.

Bare: read and check every row, count, draw exact noise, compute intervals, write both forms of each table as CSV and
Parquet; it loads no pandas. The plan adds its own checks, the ledger with its disk syncs, hashes, the report with its
simulation and charts, and the reviewer's bundle. Fresh processes take turns; processor seconds of all threads count,
and the overhead is the median of the pairs. The first run of each, which is not counted, compiles Python's modules, as
the first use of an installation does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench import data
from bench.comparison import Comparison

RUNS = 9

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
import pyarrow.csv
import pyarrow.parquet
import discreet as dc
from discreet.data.columns import column_of, doubles_of
def rounded(table, way, name):
    values = way(doubles_of(table[name]) / 5) * 5
    return column_of(np.nan_to_num(values).astype(np.int64), missing=np.isnan(values))
def basic(table):
    for name, way in {"count": np.rint, "lower": np.floor, "upper": np.ceil}.items():
        table = table.set_column(table.column_names.index(name), name, rounded(table, way, name))
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


def compare(*, quick: bool) -> Comparison:
    """Processor seconds of both, and what the plan adds."""
    jobs = 1e6 if quick else 10.9e6
    folder, runs = str(data.jobs(jobs)), 2 if quick else RUNS
    taken: dict[str, list[float]] = {"bare": [], "plan": []}
    with tempfile.TemporaryDirectory() as scratch:
        for run in range(runs + 1):
            for name, code in (("bare", BARE), ("plan", CARRIED_OUT)):
                place = Path(scratch) / f"{name}-{run}"
                place.mkdir()
                (place / "plan.toml").write_text(PLAN.format(folder=folder), encoding="utf-8")
                taken[name].append(seconds(code, folder, str(place), compiled=Path(scratch) / "compiled"))
        files = sum(file.stat().st_size for file in (Path(scratch) / f"plan-{runs}" / "out").rglob("*"))
    times = {name: min(found[1:]) for name, found in taken.items()}
    ratios = [plan / bare for bare, plan in zip(taken["bare"][1:], taken["plan"][1:], strict=True)]
    overhead = median(ratios) - 1
    print(
        f"   a plan on {jobs:,.0f} jobs adds {100 * overhead:.0f} % to {times['bare']:.1f} processor seconds",
        flush=True,
    )
    return Comparison(
        facts={
            "jobs": jobs,
            "processor_seconds": times,
            "overhead": overhead,
            "ratios": ratios,
            "output_mib": files / 2**20,
        }
    )
