"""Jobs with a hierarchy, kinds of workers, amounts and categories that are hard to print; and a plan about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SECTORS = ['=1+1 "shops", bars', "<b>farms</b> & <script>alert(1)</script>", "Żeglarstwo, 海運"]
MARK = "MARKED-CONFIDENTIAL-RECORD"
PLAN = """
title = "Published jobs"

[data]
source = "data/jobs.parquet"

[data.schema]
workplace_attributes = ["county", "state", "sector"]
worker_attributes = { sex = ["f", "m"] }

[data.schema.magnitudes]
payroll = { cap = 200000 }

[hierarchy]
place = ["county", "state"]

[unit]
kind = "establishments"
alpha = 0.1

[budget]
epsilon = 16
ledger = "ledger.db"
dataset = "jobs 2026"

[[release]]
name = "jobs"
title = "Jobs by place and sector"
kind = "counts"
tables = [["county", "sector"], ["state", "sector"], ["state"], []]
add_up = true
establishments = true
scale_share = 0.1
epsilon = 6

[[release]]
name = "sexes"
kind = "count"
by = ["county", "sector", "sex"]
scale_share = 0.1
epsilon = 6

[[release]]
name = "payroll"
kind = "sum"
of = "payroll"
by = ["county"]
scale_share = 0.1
epsilon = 4

[output]
folder = "out"
"""


def write_jobs(folder: Path, *, seed: int = 5) -> Path:
    """Two hundred establishments, and a plan about them; `MARK` is in every column that is never released."""
    rng = np.random.default_rng(seed)
    n = 200
    size = rng.geometric(0.06, n)
    county = rng.integers(0, 10, n)
    at = np.repeat(np.arange(n), size)
    rows = {
        "workplace": [f"{MARK}-{i}" for i in at],
        "county": [f"C{county[i]}" for i in at],
        "state": [f"S{county[i] // 4}" for i in at],
        "sector": [SECTORS[i % 3] for i in at],
        "worker": [f"{MARK}-{i}" for i in range(len(at))],
        "sex": rng.choice(["f", "m"], len(at)),
        "payroll": rng.integers(20_000, 90_000, len(at)),
    }
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.table(rows), folder / "data" / "jobs.parquet")
    plan = folder / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    return plan
