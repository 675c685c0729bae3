"""Spark beside DuckDB on the same cores: the same cells, and what a cluster's processors cost for them.

As a program (`python -m bench.cluster`) it measures the check of rows beside releases of the same jobs, in one run: in
a process that has done both before, and each in a process of its own that has done nothing.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from typing import Any

from bench import data, peers

PROCESSOR = """
import os
from contextlib import suppress
from pathlib import Path
import numpy as np
import discreet as dc
from discreet import engines
from discreet.schema import LODES
from discreet.tables.cells import cell_statistics
def processor():
    "Seconds of this process and its descendants, Spark's Java among them."
    members, ticks = [os.getpid()], 0
    for member in members:
        with suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()[11:13]))
            for task in Path(f"/proc/{member}/task").iterdir():
                with suppress(OSError):  # threads come and go
                    members += map(int, (task / "children").read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")
"""

ENGINES = """
def least(run):
    taken = []
    for _ in range(3):
        before = processor()
        result = run()
        taken.append(processor() - before)
    return min(taken[1:]), result
folder = sys.argv[1]
found, cpu = {}, {}
for name, settings in (("duckdb", {}), ("spark", {"master": "local[2]", "memory": "4g"})):
    with engines.open(name, **settings) as engine:
        check, jobs = least(lambda: dc.read_jobs(folder, schema=LODES, engine=engine))
        by = {"workplace_by": ("place", "sector", "ownership"), "worker_by": ("sex", "education")}
        cells, found[name] = least(lambda: cell_statistics(jobs, **by))
        cpu[name] = {"check": check, "cells": cells}
a, b = found.values()
parts = ("counts", "largest", "largest_total", "establishments")
same = a.keys.equals(b.keys) and all(np.array_equal(getattr(a, part), getattr(b, part)) for part in parts)
report(cpu=cpu, same=bool(same), counts=int(a.counts.size))
"""

RATIO = """
from tempfile import TemporaryDirectory
folder, rounds, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",")
BY = ["place", "sector", "ownership"]
KINDS = {"kinds": BY + ["sex", "education"], "four attributes": ["state", "sex", "age", "ethnicity", "education"]}
taken = {step: [] for step in steps}
with engines.open("spark", master="local[2]", memory="1g") as engine, TemporaryDirectory() as scratch:
    engine.session.range(1).count()
    for number in range(rounds):
        jobs = dc.read_jobs(folder, schema=LODES, engine=engine, validate=False)
        ledger = f"{scratch}/{number}.db"
        session = dc.Session(jobs, unit=dc.Establishments(alpha=0.1), budget=100, ledger=ledger, dataset="jobs")
        for step in steps:
            by = KINDS.get(step, BY)
            epsilon = 20 if by[0] == "state" else 1  # 128 kinds together need more than 12
            run = jobs.validate if step == "check" else lambda: session.count(by=by).release(epsilon=epsilon)
            before = processor()
            run()
            taken[step].append(processor() - before)
report(taken=taken)
"""
ROUNDS = 6
STEPS = ("check", "release", "kinds", "four attributes")


def engines(jobs: float) -> dict[str, Any]:
    """Processor seconds of DuckDB and Spark for the same cells; different cells are an error."""
    try:
        if not find_spec("pyspark"):
            raise peers.Missing("pyspark is not installed: pip install 'discreet[spark]'")
        peers.java()
    except peers.Missing as reason:
        return {"not measured": str(reason)}
    found = peers.ours(PROCESSOR + ENGINES, data.jobs(jobs))
    if not found["same"]:
        raise peers.Failed(f"DuckDB and Spark give different cells of {jobs:,.0f} jobs")
    return found


def ratios(jobs: float) -> dict[str, Any]:
    """The check of rows over releases: place x sector x ownership, without and with kinds, and many kinds."""
    folder = data.jobs(jobs)
    warm = peers.ours(PROCESSOR + RATIO, folder, ROUNDS, ",".join(STEPS))["taken"]
    cold = {step: peers.ours(PROCESSOR + RATIO, folder, 1, step)["taken"][step][0] for step in STEPS}
    least = {step: min(seconds[1:]) for step, seconds in warm.items()}
    return {
        "rounds": warm,
        "first in a process": cold,
        "check over release": {name: least["check"] / least[name] for name in STEPS[1:]},
        "check over release, first in a process": {name: cold["check"] / cold[name] for name in STEPS[1:]},
    }


if __name__ == "__main__":
    print(json.dumps(ratios(float(sys.argv[1]) if len(sys.argv) > 1 else 2.18e6), indent=1))
