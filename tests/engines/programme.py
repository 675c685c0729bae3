"""One plan with every kind of release that an engine has a part in, to be run on each engine with the same noise.

As a program: `python programme.py PLAN` carries a plan out with seeded noise and says every step as it begins.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.noise.source import SeededSource

SEED = 20
PLAN = """
title = "A programme"

[source.jobs.data]
source = "data/jobs"
workplaces = "data/places.parquet"

[source.jobs.data.schema]
workplace_attributes = ["naics6", "county"]
worker_attributes = { sex = ["f", "m"] }
magnitudes = { payroll = { cap = 200000 } }

[source.jobs.hierarchy.industry]
levels = ["naics6", "naics2"]
prefix = [6, 2]

[source.jobs.hierarchy.place]
levels = ["county", "state"]
lookup = "data/states.csv"

[source.jobs.unit]
kind = "establishments"
alpha = 0.1

[source.jobs.budget]
epsilon = 8
ledger = "ledger.db"
dataset = "jobs"

[source.panel.data]
source = "data/panel.parquet"
public = ["sector", "g", "x"]

[source.panel.unit]
kind = "rows"
lower = -10
upper = 10
response = "y"

[source.panel.budget]
epsilon = 8
ledger = "ledger.db"
dataset = "panel"

[[release]]
name = "levels"
kind = "counts"
source = "jobs"
tables = [["naics6", "county"], ["naics2", "county"], ["naics2", "state"], []]
measure = "finest"
add_up = true
epsilon = 2

[[release]]
name = "sexes"
kind = "count"
source = "jobs"
by = ["county", "sex"]
mechanism = "joint-polynomial"
epsilon = 2

[[release]]
name = "payroll"
kind = "sum"
of = "payroll"
source = "jobs"
by = ["county"]
epsilon = 2

[[release]]
name = "model"
kind = "model"
source = "panel"
formula = "y ~ 1 + x + sector + (1 | g)"
epsilon = 4

[[release]]
name = "slope"
kind = "posterior"
source = "panel"
formula = "y ~ sector"
summary = "interval"
coefficient = ["sectorb"]
at = [0.9]
scale = 2
epsilon = 4

[output]
folder = "out"
"""
SPARK = """
[engine]
kind = "spark"
master = "{master}"
memory = "512m"
{more}
[engine.settings]
"spark.sql.shuffle.partitions" = 2
"spark.executor.memory" = "512m"
"spark.sql.codegen.wholeStage" = "false"
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"""


def write(folder: Path, engine: str = "", *, jobs: int = 900, parts: int = 2) -> Path:
    """The data and a plan about them."""
    rng = np.random.default_rng(5)
    firms = 60
    (folder / "data" / "jobs").mkdir(parents=True)
    at = np.concatenate([np.arange(firms), rng.choice(firms, jobs - firms, p=rng.dirichlet(np.full(firms, 0.5)))])
    places = {
        "workplace": np.arange(firms) + 100,
        "naics6": rng.choice(["111110", "111120", "236115", "522110"], firms),
        "county": rng.choice(["01001", "01003", "06001"], firms),
    }
    table = pa.table(
        {
            "workplace": at + 100,
            "worker": rng.permutation(jobs),
            "sex": rng.choice(["f", "m"], jobs),
            "payroll": np.minimum(rng.lognormal(10, 0.7, jobs).astype(np.int64), 200_000),
        }
    )
    for part in range(parts):
        pq.write_table(table.slice(part * jobs // parts, jobs // parts), folder / "data" / "jobs" / f"{part}.parquet")
    pq.write_table(pa.table(places), folder / "data" / "places.parquet")
    (folder / "data" / "states.csv").write_text("county,state\n01001,01\n01003,01\n06001,06\n", encoding="utf-8")
    rows, groups = 4_000, rng.integers(0, 8, 4_000)
    x = rng.standard_normal(rows).round(3)
    panel = {
        "y": np.clip(groups / 4 + x + rng.standard_normal(rows), -10, 10),
        "x": x,
        "sector": rng.choice(["a", "b", "c"], rows),
        "g": [f"g{i}" for i in groups],
    }
    pq.write_table(pa.table(panel), folder / "data" / "panel.parquet")
    plan = folder / "plan.toml"
    plan.write_text(PLAN + engine, encoding="utf-8")
    return plan


def numbers(folder: Path) -> dict[str, bytes]:
    """Every released table, byte by byte; what names a moment or a line of a ledger is left out."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.csv"))}


class Same(SeededSource):
    """The same noise in every run, which passes for private, so that all that follows is as it is for private noise."""

    private = True


if __name__ == "__main__":
    from discreet.plan.run import run
    from discreet.release import account
    from discreet.words.errors import DiscreetError

    account.SystemSource = lambda: Same(SEED)
    try:
        run(sys.argv[1], progress=lambda step, share: print(step, flush=True))
    except DiscreetError as error:
        print(f"refused: {error}", flush=True)
        sys.exit(2)
