"""Spark beside DuckDB on the same cores: the same cells, and what a cluster's processors cost for them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from bench import data, peers

ENGINES = """
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


def engines(jobs: float) -> dict[str, Any]:
    """Processor seconds of DuckDB and Spark for the same cells; different cells are an error."""
    try:
        if not find_spec("pyspark"):
            raise peers.Missing("pyspark is not installed: pip install 'discreet[spark]'")
        peers.java()
    except peers.Missing as reason:
        return {"not measured": str(reason)}
    found = peers.ours(ENGINES, data.jobs(jobs))
    if not found["same"]:
        raise peers.Failed(f"DuckDB and Spark give different cells of {jobs:,.0f} jobs")
    return found
