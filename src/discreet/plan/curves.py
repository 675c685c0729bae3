"""Error over epsilon and alpha beside noise infusion, on simulated cells of the size that is publicly known.

The numbers come from the mechanisms' own expected errors and from `tables.baseline.infusion`; here is only the grid. If no sizes
are public, cells of the LODES simulation are used instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.audit.stand_in import same_shape
from discreet.data.schema import Schema
from discreet.pages import charts
from discreet.pages.page import Figure
from discreet.plan.requests import without_data
from discreet.plan.sizes import PublicSizes
from discreet.privacy.assurance import RISK, SURE, sure_at_most
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments, Strength, is_weak
from discreet.release.account import Account
from discreet.simulate import lodes
from discreet.tables.baseline.establishments import Histograms
from discreet.tables.baseline.infusion import Infusion
from discreet.tables.query import CountQuery
from discreet.words.errors import DataError, Infeasible

ALPHAS = ("0.01", "0.05", "0.1", "0.2")
EPSILONS = ("0.25", "0.5", "1", "2", "4", "8")
PRIORS = (0.01, 0.1, 0.5)
MOST_CELLS = 1_500
TRIALS = 5
RATIO = "error / error of infusion"


@dataclass(frozen=True, slots=True)
class Curves:
    """The grid of one table.

    Attributes
    ----------
    rows : alpha, epsilon, mean error of a count and its ratio to infusion's; None where no noise suffices.
    cells, levels : how many workplace cells were simulated, and counts in each.
    infusion : mean error of a count under noise infusion.
    public : whether the sizes of the cells are publicly known ones.
    """

    rows: tuple[dict[str, Any], ...]
    cells: int
    levels: int
    infusion: float
    public: bool

    def figures(self) -> list[Figure]:
        shown = [{**row, "alpha": f"alpha {row['alpha']}"} for row in self.rows if row["ratio"] is not None]
        risk = [
            {
                "epsilon": float(e),
                SURE: sure_at_most(prior, float(e)),
                "before": f"{100 * prior:g} %",
            }
            for prior in PRIORS
            for e in EPSILONS
        ]
        found = []
        if shown:
            chart = charts.lines(
                shown, "epsilon", "ratio", "alpha", log_x=True, log_y=True, reference=1.0, titles={"ratio": RATIO}
            )
            low = min(shown, key=lambda row: row["ratio"])
            found.append(
                Figure(
                    chart,
                    "Curves that fall with epsilon, one for each alpha; the lowest is "
                    f"{low['ratio']:.2f} at {low['alpha']} and epsilon {low['epsilon']:g}.",
                    "Utility: error over that of noise infusion. Below 1 the private table is closer to the truth",
                    "utility",
                )
            )
        found.append(
            Figure(
                charts.lines(risk, "epsilon", SURE, "before", log_x=True, zero=True),
                "Curves that rise with epsilon, one for each certainty beforehand: "
                f"from 50 % to {100 * sure_at_most(0.5, 1.0):.0f} % at epsilon 1 and to "
                f"{100 * sure_at_most(0.5, 4.0):.1f} % at 4.",
                RISK,
                "risk",
            )
        )
        return found


def curves(schema: Schema, sizes: PublicSizes | None, by: Sequence[str], strength: Strength) -> Curves:
    """Every alpha and epsilon for one table."""
    first = _query(schema, by, ALPHAS[0], strength)
    counts, public = _counts(first, sizes)
    firms = _firms(first, counts)
    cells = firms.cells()
    infusion = Infusion().expected_error(firms, rng=np.random.default_rng(0), trials=TRIALS)
    strong = not is_weak(strength) and first.concerns_workers
    hidden = cells.largest_total[:, None] if strong else cells.largest
    true, largest = (np.broadcast_to(each, cells.counts.shape).astype(np.float64) for each in (cells.counts, hidden))
    rows: list[dict[str, Any]] = []
    for alpha in ALPHAS:
        query = _query(schema, by, alpha, strength)
        for epsilon in EPSILONS:
            try:
                found = query.prepare(epsilon=epsilon).mechanism
                hides = cells.pairs(hidden).astype(np.float64) if found.by_pairs else largest
                mean = float(np.broadcast_to(found.expected_error(true, hides), true.shape).mean())
            except Infeasible:
                mean = None
            ratio = None if mean is None else mean / float(infusion.mean())
            rows.append({"alpha": alpha, "epsilon": float(epsilon), "error": mean, "ratio": ratio})
    return Curves(tuple(rows), len(counts), first.levels, float(infusion.mean()), public)


def _query(schema: Schema, by: Sequence[str], alpha: str, strength: Strength) -> CountQuery:
    account = Account.open(None, dataset="simulated", unit=Establishments(alpha, strength), budget=Pure(100))
    return CountQuery.of(without_data(schema, listed=True), account, by=by)


def _counts(query: CountQuery, sizes: PublicSizes | None) -> tuple[Integers, bool]:
    """Jobs of each workplace cell: as publicly known, or simulated."""
    if sizes is not None and set(query.workplace_by) <= set(sizes.table.column_names):
        if not query.workplace_by:
            return np.array([int(np.sum(np.array(sizes.table["jobs"])))]), True
        cells = sizes.table.group_by(list(query.workplace_by)).aggregate([("jobs", "sum")])
        jobs, public = np.array(cells["jobs_sum"]).astype(np.int64), True
    else:
        jobs, public = _simulated(), False
    jobs = jobs[jobs > 0]
    if not len(jobs):
        raise DataError(
            "No cell has jobs by the public sizes.", "A table needs some.", "Correct the public sizes.", about="sizes"
        )
    if len(jobs) > MOST_CELLS:
        jobs = np.random.default_rng(0).choice(jobs, MOST_CELLS, replace=False)
    return jobs, public


@lru_cache(maxsize=1)
def _simulated() -> Integers:
    economy = lodes.workplaces(seed=0, share=0.01)
    cell = (economy.place * 100 + economy.sector) * 2 + economy.ownership
    return np.bincount(np.unique(cell, return_inverse=True)[1], weights=economy.size).astype(np.int64)


def _firms(query: CountQuery, jobs: Integers) -> Histograms:
    """Establishments in cells of these sizes; kinds of workers are equally frequent."""
    import pyarrow as pa

    levels = query.levels
    counts = np.repeat(jobs[:, None] // levels, levels, axis=1)
    counts[:, 0] += jobs - counts.sum(axis=1)
    keys = pa.table({"cell": np.arange(len(jobs))})
    names = tuple((i,) for i in range(levels))
    return same_shape(counts, ("kind",), names, keys, np.random.default_rng(0))
