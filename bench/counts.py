"""Counts by place x sector x ownership with noise, from a Parquet file of jobs to a table: ours beside the libraries.

All of them protect one job with epsilon 1, because this is what all of them can do; ours has `unit=Workers()`. Each
gets the public cells beforehand and reads the file in every run: one first run, then the best of as many warm ones as
ours has beside it. Agreement is the mean distance from the true counts, cell by cell: 0.85 for the Laplace law of
integers, which ours must have to five standard errors, 0.96 for a rounded Laplace variable, 1 for one that is not; a
peer's must be between 0.75 and 1.25. For establishments the intervals must cover. `bench.accuracy` has what
establishments need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from bench import data, peers
from bench.comparison import Agreement, Comparison, Row, beside

OURS = """
import discreet as dc
from discreet.data.schema import LODES
jobs, cells, protected, runs = sys.argv[1:]
unit = dc.Workers() if protected == "jobs" else dc.Establishments("0.1")
session = dc.Session(dc.read_jobs(jobs, schema=LODES, validate=False), unit=unit, budget=100)
query = session.count(by=["place", "sector", "ownership"])
first, release = measured(lambda: query.release(epsilon=1).to_arrow())
again, release = measured(lambda: query.release(epsilon=1).to_arrow(), int(runs))
import pyarrow.parquet as pq
def by_cell(table, *names):
    lists = [table[name].to_pylist() for name in ("place", "sector", "ownership", *names)]
    return {row[:3]: row[3:] for row in zip(*lists, strict=True)}
found, true = by_cell(release, "count", "lower", "upper"), by_cell(pq.read_table(cells), "true")
off = [abs(found[cell][0] - n) for cell, (n,) in true.items()]
covered = [found[cell][1] <= n <= found[cell][2] for cell, (n,) in true.items()]
report(**again, first=first["seconds"], error=sum(off) / len(off), covered=sum(covered) / len(off), cells=len(off))
"""

OFF = """
def off(found, name):
    import pandas as pd
    found = found.astype({c: str for c in ("place", "sector", "ownership")})
    true = pd.read_parquet(cells).astype({c: str for c in ("place", "sector", "ownership")})
    both = true.merge(found, on=["place", "sector", "ownership"], how="left")
    return float((both[name].fillna(0).astype(float) - both["true"]).abs().mean())
"""

TUMULT = (
    OFF
    + """
jobs, cells, _, runs = sys.argv[1:]
import os
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
         .config("spark.sql.shuffle.partitions", "8")
         .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
         .config("spark.driver.host", "127.0.0.1").getOrCreate())
from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session
by = ["place", "sector", "ownership"]
frame = spark.read.parquet(jobs + "/jobs.parquet").select(*by)
keys = KeySet.from_dataframe(spark.read.parquet(cells).select(*by))
session = Session.from_dataframe(PureDPBudget(float("inf")), "jobs", frame, protected_change=AddOneRow())
query = QueryBuilder("jobs").groupby(keys).count()
run = lambda: session.evaluate(query, PureDPBudget(1)).toPandas()
first, found = measured(run)
again, found = measured(run, int(runs))
report(**again, first=first["seconds"], error=off(found, "count"), version=version("tmlt.analytics"))
"""
)

OPENDP = (
    OFF
    + """
jobs, cells, _, runs = sys.argv[1:]
import polars as pl, opendp.prelude as dp
dp.enable_features("contrib")
by = ["place", "sector", "ownership"]
keys = pl.scan_parquet(cells).select(by)
def run():
    frame = pl.scan_parquet(jobs + "/jobs.parquet").select(pl.col(by).cast(pl.String))
    context = dp.Context.compositor(data=frame, privacy_unit=dp.unit_of(contributions=1),
                                    privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=1,
                                    margins=[dp.polars.Margin(by=by, max_length=20_000_000)])
    return context.query().group_by(by).agg(dp.len()).with_keys(keys).release().collect()
first, found = measured(run)
again, found = measured(run, int(runs))
report(**again, first=first["seconds"], error=off(found.to_pandas(), "len"), version=version("opendp"))
"""
)

SMARTNOISE = (
    OFF
    + """
jobs, cells, _, runs = sys.argv[1:]
import pandas as pd
from snsql import Privacy, from_df
columns = {name: {"type": "string"} for name in ("place", "sector", "ownership")}
about = {"": {"jobs": {"jobs": {"row_privacy": True, "censor_dims": False, "rows": 20_000_000, **columns}}}}
def run():
    frame = pd.read_parquet(jobs + "/jobs.parquet", columns=list(columns)).astype(str)
    reader = from_df(frame, privacy=Privacy(epsilon=1.0, delta=1e-9), metadata=about)
    return reader.execute_df("SELECT place, sector, ownership, COUNT(*) AS n FROM jobs.jobs "
                             "GROUP BY place, sector, ownership")
first, found = measured(run)
again, found = measured(run, int(runs))
report(**again, first=first["seconds"], error=off(found, "n"), version=version("smartnoise-sql"))
"""
)

DIFFPRIVLIB = (
    OFF
    + """
jobs, cells, _, runs = sys.argv[1:]
import pandas as pd
from diffprivlib.mechanisms import Geometric
by = ["place", "sector", "ownership"]
noise = Geometric(epsilon=1.0, sensitivity=1)
def run():
    frame = pd.read_parquet(jobs + "/jobs.parquet", columns=by)
    found = frame.groupby(by, observed=True).size().rename("n").reset_index()
    found["n"] = [noise.randomise(int(n)) for n in found["n"]]
    return found
first, found = measured(run)
again, found = measured(run, int(runs))
report(**again, first=first["seconds"], error=off(found, "n"), version=version("diffprivlib"))
"""
)

BARE = """
import duckdb
jobs, cells, _, runs = sys.argv[1:]
connection = duckdb.connect()
run = lambda: connection.sql(
    f"SELECT place, sector, ownership, count(*) AS n FROM '{jobs}/jobs.parquet' GROUP BY ALL").to_arrow_table()
first, found = measured(run)
again, found = measured(run, int(runs))
import pyarrow.parquet as pq
found = found.sort_by([(name, "ascending") for name in ("place", "sector", "ownership")])
exact = found["n"].to_pylist() == pq.read_table(cells)["true"].to_pylist()
report(**again, first=first["seconds"], exact=exact, version=version("duckdb"))
"""

RUNS = 3
LEAST = 1 / math.sinh(1)  # E|J| of the Laplace law of integers, epsilon 1
LEVEL = 0.95  # of our intervals, as they come
LIBRARIES = (  # the library, its name in the table, the script, warm runs
    (peers.TUMULT, "Tumult Analytics", TUMULT, RUNS),
    (peers.OPENDP, "OpenDP", OPENDP, RUNS),
    (peers.SMARTNOISE, "SmartNoise SQL, pandas reader", SMARTNOISE, 1),
    (peers.DIFFPRIVLIB, "diffprivlib", DIFFPRIVLIB, RUNS),
)


def compare(*, quick: bool) -> Comparison:
    """Time from the file to the table, of a first and of later runs, and peak memory; ours just before each peer."""
    folder = data.jobs(1e6 if quick else 10.9e6)
    arguments = (folder, data.cells(folder), "jobs")
    job = f"counts with noise, {'1' if quick else '10.9'} million jobs"
    rows: list[Row] = []
    for peer, name, script, runs in LIBRARIES[1::2] if quick else LIBRARIES:
        ours = peers.ours(OURS, *arguments, runs)
        try:
            found = peer.measure(script, *arguments, runs)
        except peers.Missing as reason:
            rows.append(Row(job, name, None, None, "not measured", str(reason)))
            continue
        rows.append(beside(job, name, ours, found, agree=errors(ours)))
        if peer is peers.TUMULT:
            first, again = ({**side, "seconds": side["first"]} for side in (ours, found))
            rows.append(beside(f"{job}, first run", name, first, again, agree=errors(ours)))
    for protected, name in (("jobs", "one job protected"), ("establishments", "establishments protected")):
        ours = peers.ours(OURS, folder, data.cells(folder), protected, RUNS)
        rows.append(
            beside(
                f"{job}, {name}",
                "bare DuckDB GROUP BY, no noise",
                ours,
                lambda: peers.ours(BARE, *arguments, RUNS),
                agree=exact(ours, protected),
                why="Above the query: calibration, the account, exact noise, intervals, and in memory NumPy, SciPy and "
                "Arrow beside DuckDB. Loading fewer modules would reduce part of the memory; the rest is the cost of "
                "adding noise",
                same_work=False,
            )
        )
    return Comparison(tuple(rows))


def drawn(ours: Mapping[str, Any]) -> bool:
    """Whether our mean error at one job's privacy is its law's, to five standard errors."""
    return bool(abs(ours["error"] - LEAST) < 5 / math.sqrt(ours["cells"]))


def errors(ours: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Agreement]:
    """Both mean distances from the true counts."""

    def agree(theirs: Mapping[str, Any]) -> Agreement:
        words = f"mean error {theirs['error']:.2f}, ours {ours['error']:.2f}"
        return Agreement(drawn(ours) and 0.75 < theirs["error"] < 1.25, words)

    return agree


def exact(ours: Mapping[str, Any], protected: str) -> Callable[[Mapping[str, Any]], Agreement]:
    """Ours beside true counts."""
    right = ours["covered"] > LEVEL - 5 * math.sqrt(LEVEL * (1 - LEVEL) / ours["cells"])
    right = right and (protected != "jobs" or drawn(ours))
    words = f"mean error of ours {ours['error']:.1f}, its intervals cover {100 * ours['covered']:.0f} %"

    def agree(theirs: Mapping[str, Any]) -> Agreement:
        return Agreement(right and theirs["exact"], f"it is {'exact' if theirs['exact'] else 'NOT exact'}; {words}")

    return agree
