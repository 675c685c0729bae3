"""The relational step: cell statistics through narwhals on DuckDB, beside the same plan in SQL written by hand.

The plan counts jobs and finds the largest establishment of every cell; the release adds calibration, the account, exact
noise and intervals. Contestants alternate in one process; the ratio of medians counts. Memory is a fresh process each.
"""

from __future__ import annotations

from dataclasses import replace

from bench import data, peers
from bench.comparison import Agreement, Comparison, Row

WORKERS = ("sex", "education")

BY_HAND = """
from itertools import product
from discreet.data.schema import LODES
places = ("place", "sector", "ownership")

def sql(folder, worker_by):
    "The plan of `cell_statistics` as a database person would write it."
    jobs, workplaces = (f"read_parquet('{folder}/{name}.parquet')" for name in ("jobs", "workplace"))
    levels = list(product(*(LODES.worker_attributes[name] for name in worker_by)))
    codes, stride = ["0"], len(levels)
    for name in worker_by:
        domain = LODES.worker_attributes[name]
        stride //= len(domain)
        cases = " ".join(f"WHEN {name} = '{v}' THEN {i * stride}" for i, v in enumerate(domain))
        codes.append(f"CASE {cases} END")
    counted = [f"n{i}" for i in range(len(levels))] if worker_by else ["n"]
    counters = ["count(*) AS n"] + [f"count(*) FILTER (level = {i}) AS n{i}" for i in range(len(levels)) if worker_by]
    pairs = ", ".join(f"coalesce(sum({name}), 0)::BIGINT, coalesce(max({name}), 0)" for name in counted)
    by = ", ".join(places)
    return f'''
        WITH firms AS (SELECT workplace, {", ".join(counters)}
                       FROM (SELECT workplace, {" + ".join(codes)} AS level FROM {jobs}) GROUP BY workplace)
        SELECT {by}, count(*), coalesce(max(n), 0), {pairs}
        FROM {workplaces} LEFT JOIN firms USING (workplace) GROUP BY {by}'''
"""

CONTEST = (
    BY_HAND
    + """
import duckdb
from statistics import median
import numpy as np
import discreet as dc
from discreet.data.frames import connect
from discreet.tables.cells import cell_statistics
folder, runs, only, *worker_by = sys.argv[1:]
connection, plan = connect(), sql(folder, worker_by)
jobs = dc.read_jobs(folder, schema=LODES, validate=False)
session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=10_000, dataset="bench")
query = session.count(by=[*places, *worker_by])

def by_hand():
    table = connection.sql(plan).to_arrow_table().sort_by([(name, "ascending") for name in places])
    return np.stack([np.from_dlpack(column.combine_chunks()) for column in table.columns[len(places):]], axis=1)

def through_narwhals():
    cells = cell_statistics(jobs, workplace_by=places, worker_by=worker_by)
    pairs = np.stack([cells.counts, cells.largest], axis=2).reshape(len(cells.counts), -1)
    return np.column_stack([cells.establishments, cells.largest_total, pairs])

running = {"by hand": by_hand, "cells": through_narwhals, "release": lambda: query.release(epsilon=4)}
if only != "all":
    measured(running[only])
    report()
else:
    same = bool((running["by hand"]() == running["cells"]()).all())
    taken = {name: [] for name in running}
    for _ in range(int(runs)):
        for name, contestant in running.items():
            taken[name].append(measured(contestant)[0]["seconds"])
    report(same=same, version=version("duckdb"), **{name: median(times) for name, times in taken.items()})
"""
)


def compare(*, quick: bool) -> Comparison:
    """Two tables, each as statistics and as a release."""
    folder, size = data.jobs(1e6 if quick else 10.9e6), "1" if quick else "10.9"
    rows: list[Row] = []
    for title, worker_by in (("place x sector x ownership", ()), ("the same x sex x education", WORKERS)):
        found = peers.ours(CONTEST, folder, 5 if quick else 9, "all", *worker_by)
        mib = {
            name: peers.ours(CONTEST, folder, 1, name, *worker_by)["mib"] for name in ("by hand", "cells", "release")
        }
        for key, job, why in (
            (
                "cells",
                "cell statistics",
                "The plans are the same; the rest is narwhals building the query, and its modules in memory. SQL "
                "written for one engine would remove the gap",
            ),
            (
                "release",
                "the whole release",
                "Above the query: calibration, the account, exact noise and intervals, and their modules in memory. "
                "SQL by hand has none of them; the gap is their cost",
            ),
        ):
            words = "identical" if key == "cells" else "its cell statistics are identical; the noise is ours alone"
            agreement = Agreement(found["same"], words if found["same"] else "cell statistics differ")
            time, memory = found["by hand"] / found[key], mib["by hand"] / mib[key]
            row = Row(
                f"{job}, {title}, {size} million jobs",
                "DuckDB, SQL by hand",
                time,
                memory,
                agreement.said,
                version=found["version"],
                why=why,
                agrees=agreement.ok,
                same_work=key == "cells",
            )
            rows.append(row if row.behind else replace(row, why=""))
    return Comparison(tuple(rows))
