"""Error at equal privacy: what the libraries can do to protect establishments, beside employer-employee privacy.

The promise is one of Haney et al. (2017): nobody learns an establishment's size to better than a share alpha, at loss
epsilon. No library here has it, but each can be led to it, because each adds Laplace or geometric noise to counts whose
sensitivity the user states: by a public bound on sizes, before and after an establishment grew, or by counting at most
theta jobs of an establishment, with the theta that turns out best on these very data, which nobody may look up. Both
sides' errors are measured, ours on real releases. OpenDP draws the peers' noise, for all of them, on the very cells,
counted and truncated here; its own privacy map must confirm the loss. Its geometric noise with p = exp(-epsilon /
sensitivity) on a count that truncation moved by m has the mean error m + 2 p^(m + 1) / (1 - p^2), which finds theta and
stands beside what was drawn. The others' noise for one row is in `bench.counts`. An agency's own mechanisms for
establishments, of square roots and of clipped sizes, are in `bench.square_root`; counts by kinds of workers, under both
definitions, in `bench.kinds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench import data, kinds, peers, square_root
from bench.comparison import Accuracy, Agreement, Comparison
from discreet.arrays import Integers

ALPHA, EPSILON = 0.1, 2
BOUND = 20_000  # a public bound on the size of an establishment
RUNS = 5
PROMISE = f"alpha {ALPHA}, epsilon {EPSILON}"

OURS = """
import discreet as dc
from discreet.data.schema import LODES
import numpy as np, pyarrow.parquet as pq
jobs, cells, alpha, epsilon, runs = sys.argv[1:]
session = dc.Session(dc.read_jobs(jobs, schema=LODES), unit=dc.Establishments(alpha), budget=int(epsilon) * int(runs))
by, true, errors = ["place", "sector", "ownership"], pq.read_table(cells)["true"].to_numpy(), []
for _ in range(int(runs)):
    release = session.count(by=by).release(epsilon=epsilon).to_arrow().sort_by([(name, "ascending") for name in by])
    errors.append(np.abs(release["count"].to_numpy() - true).mean())
report(error=float(np.mean(errors)))
"""

OPENDP = """
import numpy as np, opendp.prelude as dp
dp.enable_features("contrib")
path, epsilon, runs, *sensitivities = sys.argv[1:]
true, *counted = np.load(path)
errors, kept = [], []
for counts, sensitivity in zip(counted, map(int, sensitivities), strict=True):
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    noisy = dp.m.make_laplace(*space, scale=sensitivity / float(epsilon))
    kept.append(noisy.check(sensitivity, float(epsilon) * (1 + 1e-9)))
    errors.append(float(np.mean([np.abs(noisy(counts.tolist()) - true) for _ in range(int(runs))])))
report(errors=errors, kept=kept, version=version("opendp"))
"""


@dataclass(frozen=True)
class Way:
    """How a peer can be led to a promise: count at most `theta` jobs of an establishment, state a sensitivity."""

    said: str
    protects: str
    sensitivity: int
    theta: int | None = None

    def counts(self, cell: Integers, size: Integers) -> Integers:
        """What it adds noise to, by cell."""
        counted = size if self.theta is None else np.minimum(size, self.theta)
        return np.bincount(cell, counted).astype(np.int64)


def compare(*, quick: bool) -> Comparison:
    """Mean error over the cells of workload 1, the peers' over ours."""
    folder = data.jobs(1e6 if quick else 10.9e6)
    ours = peers.ours(OURS, folder, data.cells(folder), ALPHA, EPSILON, RUNS)["error"]
    cell, size = establishments(str(folder))
    true, chosen = np.bincount(cell, size).astype(np.int64), ways(cell, size)
    counted = [way.counts(cell, size) for way in chosen]
    expected = [geometric(true - counts, way.sensitivity) for way, counts in zip(chosen, counted, strict=True)]
    path = data.HOME / f"{folder.name}-counted.npy"
    np.save(path, np.stack([true, *counted]))
    try:
        found = peers.OPENDP.measure(OPENDP, path, EPSILON, RUNS, *(way.sensitivity for way in chosen))
        drawn, said = found["errors"], agreements(found, expected, len(true))
    except peers.Missing as reason:
        drawn, said = [None] * len(chosen), [Agreement(True, f"not drawn: {reason}")] * len(chosen)
    rows = tuple(
        Accuracy(PROMISE, way.said, error and error / ours, way.protects, drew.said, drew.ok)
        for way, error, drew in zip(chosen, drawn, said, strict=True)
    )
    rows += roots(cell, size, ours)
    rows += tuple(kinds.rows(str(folder), OPENDP))
    facts = {"mean error of ours": ours, "cells": len(true), "drawn by OpenDP": drawn, "in closed form": expected}
    return Comparison(accuracy=rows, facts=facts)


def agreements(found: Mapping[str, Any], expected: Sequence[float], cells: int) -> list[Agreement]:
    """Mean errors as drawn beside the closed form, and whether OpenDP's privacy map confirms the loss."""
    close = 10 / np.sqrt(RUNS * cells)  # the deviation of |noise| is its mean, or twice that where it is small
    return [
        Agreement(
            bool(kept and abs(a / b - 1) < close),
            f"{a:.4g}, in closed form {b:.4g}" + ("" if kept else ", at a LARGER loss"),
        )
        for a, b, kept in zip(found["errors"], expected, found["kept"], strict=True)
    ]


def roots(cell: Integers, size: Integers, ours: float) -> tuple[Accuracy, ...]:
    """The mechanisms of square roots at their own baseline, and where they protect as much as this promise does."""
    rng, true = np.random.default_rng(), np.bincount(cell, size).astype(np.int64)
    rows = []
    for c, mu, said, protects in (
        (*square_root.BASELINE, "their baseline", "less: a size of 10,000 to 1 %, at mu-GDP"),
        (
            *square_root.matched(ALPHA, BOUND, EPSILON),
            f"growth by {ALPHA} up to {BOUND:,}, delta {square_root.DELTA:.0e}",
            "the same neighbours, with a delta",
        ),
    ):
        runs = range(RUNS)
        drawn = float(np.mean([np.abs(square_root.of_roots(true, c, mu, rng) - true).mean() for _ in runs]))
        known, spread = square_root.error_of_roots(true, c, mu), 10 / np.sqrt(RUNS * len(true))
        agreed = Agreement(bool(abs(drawn / known - 1) < spread), f"{drawn:.4g}, in closed form {known:.4g}")
        given = f"square roots, c = {c:.3g}, mu = {mu:.3g}: {said}"
        rows.append(Accuracy(PROMISE, given, drawn / ours, protects, agreed.said, agreed.ok))
        error = float(np.mean([np.abs(square_root.clipped(cell, size, c, mu, rng) - true).mean() for _ in runs]))
        rows.append(Accuracy(PROMISE, f"clipped sizes, as above: {said}", error / ours, protects, f"{error:.4g}"))
    return tuple(rows)


def ways(cell: Integers, size: Integers) -> tuple[Way, ...]:
    """What the libraries offer, from one row's noise to truncation."""
    growth = best(cell, size, ALPHA / (1 + ALPHA))
    whole = best(cell, size, 1.0)
    return (
        Way(
            "OpenDP, Tumult Analytics, SmartNoise SQL, diffprivlib as they come: noise for one row",
            f"one job; an establishment of 1,000 has {ALPHA * 1000:.0f} times the loss. Not this promise",
            1,
        ),
        Way(
            f"the same four, sensitivity {ALPHA / (1 + ALPHA):.2g} x {BOUND:,}, a public bound on sizes",
            "the same",
            stated(BOUND, ALPHA / (1 + ALPHA)),
        ),
        Way(
            f"Tumult Analytics, OpenDP: at most theta jobs of an establishment, sensitivity "
            f"{ALPHA / (1 + ALPHA):.2g} theta, best theta in hindsight ({growth:,})",
            "the same",
            stated(growth, ALPHA / (1 + ALPHA)),
            growth,
        ),
        Way(
            f"Tumult Analytics (AddRowsWithID), OpenDP (identifier): sensitivity theta, best theta ({whole:,})",
            "more: that an establishment exists, which is public here",
            whole,
            whole,
        ),
    )


def establishments(folder: str) -> tuple[Integers, Integers]:
    """Of every establishment with jobs: its cell of workload 1 as a code, and its size."""
    import duckdb

    by = ", ".join(data.PLACES)
    found = duckdb.sql(f"""
        SELECT dense_rank() OVER (ORDER BY {by}) - 1 AS cell, count(*) AS size
        FROM '{folder}/jobs.parquet' GROUP BY workplace, {by}""").fetchnumpy()
    return found["cell"].astype(np.int64), found["size"].astype(np.int64)


def stated(theta: int, share: float) -> int:
    """By how many jobs a truncated size can move when a size moves by a share: whole jobs, at least one."""
    return max(1, int(share * theta + 1e-9))


def best(cell: Integers, size: Integers, share: float) -> int:
    """The bound theta on an establishment's jobs with the least mean error."""
    thetas = np.unique(np.geomspace(1, size.max(), 60).astype(np.int64)).tolist()

    def error(theta: int) -> float:
        moved = np.bincount(cell, np.maximum(size - theta, 0)).astype(np.int64)
        return geometric(moved, stated(theta, share))

    return int(min(thetas, key=error))


def geometric(moved: Integers, sensitivity: int) -> float:
    """Mean absolute error of geometric noise at loss EPSILON on counts that were moved before."""
    p = np.exp(-EPSILON / sensitivity)
    return float(np.mean(moved + 2 * p ** (moved + 1.0) / (1 - p**2)))
