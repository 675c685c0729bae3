"""Spark beside DuckDB on the same cores: the same plan, the same cells, and what a cluster's processors cost for them.

A plan of two tables runs in DuckDB, in Spark's local mode and on a standalone cluster of a master and two workers on
this machine, each in a fresh process with the same noise: every released number must be the same. Processor seconds are
of all processes, the start of Java among them. The check of rows stands beside releases of the same jobs: in a process
that has done both before, and each in one of its own (`python -m bench.cluster` prints that alone).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.engines.standalone import Cluster

from bench import data, peers, plan
from bench.comparison import Agreement, Comparison, Row

PROCESSOR = """
import os
from contextlib import suppress
from pathlib import Path
import numpy as np
import discreet as dc
from discreet.data import engines
from discreet.data.schema import LODES
from discreet.tables.cells import cell_statistics
def processor():
    "Seconds of this process and its descendants, Spark's Java among them, alive or ended."
    members, ticks = [os.getpid()], 0
    for member in members:
        with suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()[11:15]))
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
CARRIED_OUT = """
from hashlib import sha256
from tests.engines.programme import SEED, Same, numbers
from discreet.plan.run import run
from discreet.release import account
account.SystemSource = lambda: Same(SEED)
plan = Path(sys.argv[1])
time_, _ = measured(lambda: run(plan))
drawn = sorted(numbers(plan.parent / "out").items())
report(seconds=time_["seconds"], cpu=processor(), numbers=sha256(repr(drawn).encode()).hexdigest())
"""

ENGINE = """
[engine]
kind = "spark"
master = "{master}"
memory = "1g"
[engine.settings]
"spark.sql.shuffle.partitions" = 4
"spark.executor.memory" = "512m"
"""
ROUNDS = 6
STEPS = ("check", "release", "kinds", "four attributes")


def missing() -> str:
    """Why Spark cannot run here, if it cannot."""
    if not find_spec("pyspark"):
        return "pyspark is not installed: pip install 'discreet[spark]'"
    try:
        peers.java()
    except peers.Missing as reason:
        return str(reason)
    return ""


def engines(jobs: float) -> dict[str, Any]:
    """Processor seconds of DuckDB and Spark for the same cells; different cells are an error."""
    if reason := missing():
        return {"not measured": reason}
    found = peers.ours(PROCESSOR + ENGINES, data.jobs(jobs))
    if not found["same"]:
        raise peers.Failed(f"DuckDB and Spark give different cells of {jobs:,.0f} jobs")
    return found


def compare(*, quick: bool) -> Comparison:
    """The plan on three engines, and the check of rows over releases on Spark."""
    jobs = 1e5 if quick else 2.18e6
    job = f"a plan of two tables, {jobs:,.0f} jobs, on DuckDB"
    there = ("local[2]", "a standalone cluster of two workers")
    reason = missing()
    if reason:
        return Comparison(
            tuple(
                Row(job, f"the same plan on Spark, {each}", None, None, "not measured", reason, same_work=False)
                for each in there
            )
        )
    folder = str(data.jobs(jobs))
    with tempfile.TemporaryDirectory() as scratch:
        bare = carried_out(folder, Path(scratch) / "duckdb", "")
        local = carried_out(folder, Path(scratch) / "local", ENGINE.format(master="local[2]"))
        cluster = Cluster(Path(scratch) / "cluster")
        try:
            before = ticks(cluster)
            apart = carried_out(folder, Path(scratch) / "standalone", ENGINE.format(master=cluster.master))
            apart["cpu"] += ticks(cluster) - before
        finally:
            cluster.close()
    why = "Spark starts Java, plans and shuffles for machines that are not there; it is for data beyond one machine"
    rows = []
    for name, found in zip(there, (local, apart), strict=True):
        same = Agreement(found["numbers"] == bare["numbers"], "every released number is the same")
        memory = found["mib"] / bare["mib"] if found is local else None  # workers are no children of the process
        rows.append(
            Row(
                job,
                f"the same plan on Spark, {name}",
                found["cpu"] / bare["cpu"],
                memory,
                same.said,
                why,
                "",
                same.ok,
                same_work=False,
            )
        )
    return Comparison(tuple(rows), facts={"check": ratios(jobs, rounds=2 if quick else 3)})


def carried_out(folder: str, place: Path, engine: str) -> dict[str, Any]:
    """A plan of two tables in a fresh process."""
    place.mkdir()
    (place / "plan.toml").write_text(plan.PLAN.format(folder=folder) + engine, encoding="utf-8")
    return peers.ours(PROCESSOR + CARRIED_OUT, place / "plan.toml")


def ticks(cluster: Cluster) -> float:
    """Processor seconds of the cluster's processes and their descendants, alive or ended."""
    total = 0
    for member in (pid for process in cluster.processes.values() for pid in peers.tree(process.pid)):
        with suppress(OSError):
            parts = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, parts[11:15]))
    return float(total / os.sysconf("SC_CLK_TCK"))


def ratios(jobs: float, *, rounds: int = ROUNDS) -> dict[str, Any]:
    """The check of rows over releases: place x sector x ownership, without and with kinds, and many kinds."""
    folder = data.jobs(jobs)
    warm = peers.ours(PROCESSOR + RATIO, folder, rounds, ",".join(STEPS))["taken"]
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
