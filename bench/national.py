"""A nation's programme: tables that add up along hierarchies, sums of payroll, and flows from job histories.

The programme is a plan: employment and payroll in twelve tables from six-digit industries by counties up to sectors by
states, drawn, made consistent, with report and bundle. Beside it DuckDB computes the same twelve tables without noise,
so it is not the same work. The relational steps are: payroll by sector and county, and flows of six quarters, each
beside SQL written by hand, which must give the same numbers; contestants take turns in one process and the ratio of
medians counts, memory is of a fresh process each. The noise of payroll follows the largest establishment, whose rows
may be several, so they are added up first. SQL that trusts each establishment to have one row is a row of its own.
OpenDP draws sums of payroll, too, but for another promise: it protects an establishment as a whole, up to a payroll
that is chosen best in hindsight; the row has both errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import data, peers
from bench.comparison import Accuracy, Agreement, Comparison, Row, beside
from discreet.simulate import histories, national

TABLES = (
    ("naics6", "county", "ownership"),
    ("naics4", "county", "ownership"),
    ("naics3", "county"),
    ("naics2", "county", "ownership"),
    ("naics6", "state"),
    ("naics2", "state"),
)
DRAWN = (TABLES[0], TABLES[3], TABLES[5])
EPSILON = 2
BOUNDS = 24
RUNS = 5
LEVEL = 0.95  # of our intervals, as they come

PLAN = """
[data]
source = {folder!r}
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "nation"
[[release]]
name = "employment"
kind = "counts"
tables = {tables}
measure = {drawn}
add_up = true
establishments = true
epsilon = 2
[[release]]
name = "payroll"
kind = "sums"
of = "payroll"
tables = {tables}
measure = {drawn}
add_up = true
establishments = true
epsilon = 2
[output]
folder = "out"
formats = ["parquet"]
"""

CARRIED_OUT = """
from tempfile import TemporaryDirectory
from pathlib import Path
import pyarrow.parquet as pq
from discreet.plan.run import run
with TemporaryDirectory() as folder:
    plan = Path(folder) / "plan.toml"
    plan.write_text(sys.argv[1], encoding="utf-8")
    time_, _ = measured(lambda: run(plan))
    cells, off = 0, 0
    for name, value in (("employment", "count"), ("payroll", "sum")):
        tables = [pq.read_table(path) for path in sorted((Path(folder) / "out" / name).glob("*/basic.parquet"))]
        totals = [sum(table[value].to_pylist()) for table in tables]
        cells += sum(map(len, tables))
        off = max(off, max(totals) - min(totals))
report(**time_, cells=cells, off=off)
"""

BARE = """
import duckdb
from tempfile import TemporaryDirectory
folder, *tables = sys.argv[1:]
levels = {f"naics{n}": f"substr(naics6, 1, {n})" for n in (2, 3, 4)} | {"state": "substr(county, 1, 2)"}
def run():
    cells = 0
    with TemporaryDirectory() as scratch:
        connection = duckdb.connect()
        for i, names in enumerate(tables):
            for value in ("jobs", "payroll"):
                by = ", ".join(f"{levels.get(name, name)} AS {name}" for name in names.split(","))
                connection.sql(f"COPY (SELECT {by}, count(*) AS establishments, sum({value})::BIGINT AS value "
                               f"FROM '{folder}/jobs.parquet' GROUP BY ALL) TO '{scratch}/{i}-{value}.parquet'")
                found = connection.sql(f"SELECT count(*) FROM '{scratch}/{i}-{value}.parquet'").fetchall()
                cells += found[0][0]
    return cells
time_, cells = measured(run)
report(**time_, cells=cells, version=version("duckdb"))
"""

CONTEST = """
import duckdb
from statistics import median
import numpy as np
import discreet as dc
from discreet.data.frames import connect
kind, folder, runs, only, *quarters = sys.argv[1:]
unit, connection = dc.Establishments("0.1"), connect()
if kind == "payroll":
    session = dc.Session(dc.read_jobs(folder, validate=False), unit=unit, budget=10_000)
    by, query = ["naics2", "county"], session.sum("payroll", by=["naics2", "county"])
    ready = query.prepare(epsilon=2)
    trusting = f'''SELECT substr(naics6, 1, 2) AS naics2, county, count(*), sum(payroll)::BIGINT, max(payroll)
                   FROM '{folder}/jobs.parquet' GROUP BY ALL ORDER BY ALL'''
    plan = f'''WITH firms AS (SELECT workplace, substr(naics6, 1, 2) AS naics2, county, sum(payroll) AS pay
                              FROM '{folder}/jobs.parquet' GROUP BY ALL)
               SELECT naics2, county, count(*), sum(pay)::BIGINT, max(pay)::BIGINT
               FROM firms GROUP BY ALL ORDER BY ALL'''
    def of_ours():
        cells = query.statistics(ready)
        return cells.keys, np.column_stack([cells.establishments, cells.counts[:, 0], cells.largest_total])
else:
    by = ["county", "industry"]
    schema = dc.Schema(["state", *by], {})
    table = dc.read_histories(f"{folder}/job.parquet", quarters=quarters, workplaces=f"{folder}/workplace.parquet",
                              schema=schema, validate=False)
    session = dc.Session(table, unit=unit, budget=10_000)
    query = session.flows(quarters[1:-1], by)
    ready = query.prepare(epsilon=4)
    trusting = ""
    number = " ".join(f"WHEN '{quarter}' THEN {i}" for i, quarter in enumerate(quarters))
    plan = f'''
        WITH jobs AS (SELECT worker, workplace, CASE quarter {number} END AS q FROM '{folder}/job.parquet'),
        kinds AS (SELECT workplace, q, lag(q) OVER follows = q - 1 AS before, lead(q) OVER follows = q + 1 AS after
                  FROM jobs WINDOW follows AS (PARTITION BY worker, workplace ORDER BY q)),
        firms AS (SELECT workplace, q, count(*) FILTER (before AND after) AS stayed,
                         count(*) FILTER (before IS NOT TRUE AND after IS NOT TRUE) AS passed,
                         count(*) FILTER (before IS NOT TRUE AND after) AS came,
                         count(*) FILTER (before AND after IS NOT TRUE) AS gone
                  FROM kinds WHERE q BETWEEN 1 AND {len(quarters) - 2} GROUP BY workplace, q)
        SELECT county, industry, sum(stayed)::BIGINT, sum(passed)::BIGINT, sum(came)::BIGINT, sum(gone)::BIGINT,
               sum(greatest(came - gone, 0))::BIGINT
        FROM firms JOIN '{folder}/workplace.parquet' USING (workplace) GROUP BY ALL ORDER BY ALL'''
    def of_ours():
        cells = ready.read(table)
        return cells.keys, cells.vectors

def by_hand(query=plan):
    found = connection.sql(query).to_arrow_table()
    return found, np.stack([np.from_dlpack(column.combine_chunks()) for column in found.columns[2:]], axis=1)

def ordered(found):
    keys, values = found
    lists = [keys[name].to_pylist() for name in by]
    return dict(zip(zip(*lists, strict=True), map(tuple, values.tolist()), strict=True))

running = {"by hand": by_hand, "cells": of_ours, "release": lambda: query.release(epsilon=2)}
if trusting:
    running["trusting"] = lambda: by_hand(trusting)
if only != "all":
    measured(running[only])
    report()
else:
    ours, theirs = ordered(of_ours()), ordered(by_hand())
    same = all(ours[key] == values for key, values in theirs.items()) and not any(
        any(values) for key, values in ours.items() if key not in theirs)
    taken = {name: [] for name in running}
    for _ in range(int(runs)):
        for name, contestant in running.items():
            taken[name].append(measured(contestant)[0]["seconds"])
    report(same=same, counts=len(ours), version=version("duckdb"), **{k: median(v) for k, v in taken.items()})
"""

AMOUNTS = """
import duckdb
import discreet as dc
folder, epsilon = sys.argv[1:]
session = dc.Session(dc.read_jobs(folder, validate=False), unit=dc.Establishments("0.1"), budget=1000)
query = session.sum("payroll", by=["naics2", "county"])
query.release(epsilon=epsilon)
time_, release = measured(lambda: query.release(epsilon=epsilon).to_arrow(), 3)
[(error, covered)] = duckdb.sql(f'''
    SELECT avg(abs(release.sum::DOUBLE - known)), avg((known BETWEEN release.lower AND release.upper)::INT)
    FROM release JOIN (SELECT substr(naics6, 1, 2) AS naics2, county,
    sum(payroll)::DOUBLE AS known FROM '{folder}/jobs.parquet' GROUP BY ALL) USING (naics2, county)''').fetchall()
report(**time_, error=error, covered=covered, cells=len(release))
"""

OPENDP = """
import polars as pl, opendp.prelude as dp
dp.enable_features("contrib")
folder, epsilon, bound = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
by = ["naics2", "county"]
def frame():
    rows = pl.scan_parquet(folder + "/jobs.parquet")
    return rows.select(pl.col("naics6").cast(pl.String).str.slice(0, 2).alias("naics2"),
                       pl.col("county").cast(pl.String), pl.col("payroll").cast(pl.Int64))
true = frame().group_by(by).agg(pl.col("payroll").sum().alias("true")).collect()
keys = true.lazy().select(by)
def run():
    context = dp.Context.compositor(data=frame(), privacy_unit=dp.unit_of(contributions=1),
                                    privacy_loss=dp.loss_of(epsilon=epsilon), split_evenly_over=1,
                                    margins=[dp.polars.Margin(by=by, max_length=20_000_000)])
    return (context.query().group_by(by).agg(pl.col("payroll").fill_null(0).dp.sum((0, bound)))
            .with_keys(keys).release().collect())
run()
time_, found = measured(run, 3)
both = true.join(found, on=by, how="left")
error = (both["payroll"].fill_null(0).cast(pl.Float64) - both["true"].cast(pl.Float64)).abs().mean()
report(**time_, error=float(error), version=version("opendp"))
"""


def compare(*, quick: bool) -> Comparison:
    """The programme, its relational steps, and amounts beside OpenDP's."""
    share = 0.01 if quick else 1.0
    nation, past = nation_of(share), histories_of(share)
    size = f"{round(3e6 * share):,} establishments"
    rows = [programme(nation, size)]
    rows += steps("payroll", f"payroll by sector and county, {size}", nation, quick=quick)
    rows += steps("flows", f"flows of six quarters, {round(160_000 * share):,} establishments", past, quick=quick)
    row, error = amounts(nation, size)
    return Comparison((*rows, row), (error,))


def nation_of(share: float) -> Path:
    """Establishments with jobs and payroll."""
    return data.kept(data.HOME / f"nation-{share:g}", lambda folder: national.write(folder, share=share))


def histories_of(share: float) -> Path:
    """Who worked where in eight quarters."""
    return data.kept(data.HOME / f"histories-{share:g}", lambda folder: histories.write(folder, share=share))


def programme(folder: Path, size: str) -> Row:
    """The whole plan beside the same tables without noise; processor seconds of all threads."""
    plan = PLAN.format(folder=str(folder), tables=[list(by) for by in TABLES], drawn=[list(by) for by in DRAWN])
    ours = peers.ours(CARRIED_OUT, plan)
    ours["seconds"] = ours["cpu"]

    def agree(theirs: Mapping[str, Any]) -> Agreement:
        ok = ours["off"] == 0 and ours["cells"] == theirs["cells"]
        return Agreement(ok, f"{ours['cells']:,} cells on both sides; ours add up, with noise, intervals and a bundle")

    def bare() -> dict[str, Any]:
        found = peers.ours(BARE, folder, *(",".join(by) for by in TABLES))
        return {**found, "seconds": found["cpu"]}

    return beside(
        f"a programme of 12 tables that add up, {size}",
        "bare DuckDB GROUP BY, no noise",
        ours,
        bare,
        agree=agree,
        why="Above the query: exact noise, the least-squares fit that makes tables add up, intervals, ledger, report "
        "and bundle; the gap is their cost",
        same_work=False,
    )


def steps(kind: str, job: str, folder: Path, *, quick: bool) -> list[Row]:
    """The relational step and the whole release beside SQL by hand."""
    more = histories.quarter_names() if kind == "flows" else ()
    found = peers.ours(CONTEST, kind, folder, 3 if quick else RUNS, "all", *more)
    known = [name for name in ("by hand", "cells", "release", "trusting") if name in found]
    mib = {name: peers.ours(CONTEST, kind, folder, 1, name, *more)["mib"] for name in known}
    compared = [
        ("cells", "by hand", "statistics of", "The plans are the same; narwhals and Arrow are beside DuckDB"),
        (
            "release",
            "by hand",
            "the whole release of",
            "Above the query: calibration, the account, exact noise and intervals",
        ),
    ]
    if "trusting" in found:
        why = "It adds up no rows of an establishment: one with two would have noise for the larger of them alone"
        compared.append(("cells", "trusting", "without adding up rows:", why))
    rows = []
    for key, hand, said, why in compared:
        words = f"{found['counts']:,} cells identical" if found["same"] else "cells differ"
        row = Row(
            f"{said} {job}",
            "DuckDB, SQL by hand",
            found[hand] / found[key],
            mib[hand] / mib[key],
            Agreement(found["same"], words).said,
            why,
            found["version"],
            found["same"],
            key == "cells" and hand == "by hand",
        )
        rows.append(row if row.behind else replace(row, why=""))
    return rows


def amounts(folder: Path, size: str) -> tuple[Row, Accuracy]:
    """Sums with noise, ours beside OpenDP's of clipped amounts, in time and in error."""
    ours = peers.ours(AMOUNTS, folder, EPSILON)
    job, (bound, known) = f"sums of payroll with noise, {size}", best_bound(folder)
    way = f"OpenDP: payrolls of establishments clipped at {bound:,}, the best in hindsight"
    kept: dict[str, Any] = {}

    def opendp() -> dict[str, Any]:
        kept.update(peers.OPENDP.measure(OPENDP, folder, EPSILON, bound))
        return kept

    def agree(theirs: Mapping[str, Any]) -> Agreement:
        words = f"mean error {theirs['error']:.3g}, ours {ours['error']:.3g}, for another promise"
        least = LEVEL - 5 * math.sqrt(LEVEL * (1 - LEVEL) / ours["cells"])
        ok = ours["covered"] > least and abs(theirs["error"] / known - 1) < 0.1
        return Agreement(
            ok, f"{words}; our intervals cover {100 * ours['covered']:.0f} %, its error by formula {known:.3g}"
        )

    row = beside(job, "OpenDP", ours, opendp, agree=agree, same_work=False)
    ratio = kept["error"] / ours["error"] if kept else None
    return row, Accuracy(
        f"payroll, alpha 0.1, epsilon {EPSILON}",
        way,
        ratio,
        "more: that an establishment exists, which is public here",
        row.agreement if kept else f"not drawn: {row.why}",
    )


def best_bound(folder: Path) -> tuple[int, float]:
    """The clipping bound of payrolls with the least mean error, and that error: what is cut off, and Laplace noise."""
    import duckdb

    found = duckdb.sql(f"""
        SELECT dense_rank() OVER (ORDER BY substr(naics6, 1, 2), county) - 1 AS cell, payroll
        FROM '{folder}/jobs.parquet'""").fetchnumpy()
    cell, payroll = found["cell"].astype(np.int64), found["payroll"].astype(np.float64)

    def error(bound: float) -> float:
        cut = np.bincount(cell, np.maximum(payroll - bound, 0))
        scale = bound / EPSILON
        return float(np.mean(cut + scale * np.exp(-cut / scale)))  # E|cut + Laplace|

    bound = int(min(np.geomspace(payroll.mean(), payroll.max(), BOUNDS).tolist(), key=error))
    return bound, error(bound)
