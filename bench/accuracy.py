"""Error at equal privacy: what the libraries can do to protect establishments, beside employer-employee privacy.

The promise is one of Haney et al. (2017): nobody learns an establishment's size to better than a share alpha, at loss
epsilon. No library here has it, but each can be led to it, because each adds Laplace noise to counts whose sensitivity
the user states: by a public bound on sizes, or by counting at most theta jobs of an establishment. The mean error of
Laplace noise with scale b on a count that truncation moved by m is |m| + b exp(-|m| / b), so their errors are computed
and not drawn, with the theta that turns out best on these very data, which nobody may look up. Ours is a real release.
"""

from __future__ import annotations

import numpy as np

from bench import data, peers
from bench.comparison import Accuracy, Comparison
from discreet.arrays import Integers, Vector

ALPHA, EPSILON = 0.1, 2
BOUND = 20_000  # a public bound on the size of an establishment

OURS = """
import discreet as dc
from discreet.schema import LODES
import numpy as np, pyarrow.parquet as pq
jobs, cells, alpha, epsilon = sys.argv[1:]
session = dc.Session(dc.read_jobs(jobs, schema=LODES), unit=dc.Establishments(alpha), budget=epsilon)
release = session.count(by=["place", "sector", "ownership"]).release(epsilon=epsilon).to_arrow()
release = release.sort_by([(name, "ascending") for name in ("place", "sector", "ownership")])
report(error=float(np.abs(release["count"].to_numpy() - pq.read_table(cells)["true"].to_numpy()).mean()))
"""


def compare(*, quick: bool) -> Comparison:
    """Mean error over the cells of workload 1, the peers' over ours."""
    folder = data.jobs(1e6 if quick else 10.9e6)
    ours = peers.ours(OURS, folder, data.cells(folder), ALPHA, EPSILON)["error"]
    cell, size = establishments(str(folder))
    promise = f"alpha {ALPHA}, epsilon {EPSILON}"
    growth, whole = ALPHA / (1 + ALPHA), 1.0
    by_growth, theta_growth = best(cell, size, growth)
    by_whole, theta_whole = best(cell, size, whole)
    rows = (
        Accuracy(
            promise,
            "OpenDP, Tumult Analytics, SmartNoise SQL, diffprivlib as they come: noise for one row",
            laplace(np.zeros(1), 1) / ours,
            f"one job; an establishment of 1,000 has {ALPHA * 1000:.0f} times the loss. Not this promise",
        ),
        Accuracy(
            promise,
            f"the same four, sensitivity {ALPHA} x {BOUND:,}, a public bound on sizes",
            laplace(np.zeros(1), ALPHA * BOUND) / ours,
            "the same",
        ),
        Accuracy(
            promise,
            f"Tumult Analytics, OpenDP: at most theta jobs of an establishment, sensitivity {growth:.2g} theta, "
            f"best theta in hindsight ({theta_growth:,})",
            by_growth / ours,
            "the same",
        ),
        Accuracy(
            promise,
            f"Tumult Analytics (AddRowsWithID), OpenDP (identifier): sensitivity theta, best theta ({theta_whole:,})",
            by_whole / ours,
            "more: that an establishment exists, which is public here",
        ),
    )
    return Comparison(accuracy=rows, facts={"mean error of ours": ours, "cells": int(cell.max()) + 1})


def establishments(folder: str) -> tuple[Integers, Integers]:
    """Of every establishment with jobs: its cell of workload 1 as a code, and its size."""
    import duckdb

    by = ", ".join(data.PLACES)
    found = duckdb.sql(f"""
        SELECT dense_rank() OVER (ORDER BY {by}) - 1 AS cell, count(*) AS size
        FROM '{folder}/jobs.parquet' GROUP BY workplace, {by}""").fetchnumpy()
    return found["cell"].astype(np.int64), found["size"].astype(np.int64)


def best(cell: Integers, size: Integers, share: float) -> tuple[float, int]:
    """The least mean error over bounds theta on an establishment's jobs, with sensitivity max(1, share x theta)."""
    found = []
    for theta in np.unique(np.geomspace(1, size.max(), 60).astype(np.int64)):
        moved = np.bincount(cell, np.maximum(size - theta, 0))
        found.append((laplace(moved, max(1.0, share * theta)), int(theta)))
    return min(found)


def laplace(moved: Vector, sensitivity: float) -> float:
    """Mean absolute error of Laplace noise on counts that were moved before."""
    scale = sensitivity / EPSILON
    return float(np.mean(moved + scale * np.exp(-moved / scale)))
