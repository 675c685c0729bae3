"""The product's defaults on the paper's workloads at full size, compared with noise infusion and with alternatives.

This part of `lodes` runs by itself in a few minutes. It has simulated jobs of the paper's size and the errors of
published integers by stratum. For workload 1 it also has the lower limit for any noise, and the gain that public facts
could still give.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.jobs import read_jobs
from discreet.noise.source import SeededSource
from discreet.pages.page import Heading, Page, Prose, Table
from discreet.pages.study import Study
from discreet.privacy.units import Establishments
from discreet.tables.baseline.establishments import histograms
from discreet.tables.calibration import calibrate
from discreet.tables.optimal.limits import alone, far_floor, floor
from discreet.tables.optimal.two_sizes import RatioRows, two_sizes
from discreet.utility import strata
from discreet.words.progress import Progress, silent
from discreet_papers import lodes_grid as grid
from discreet_papers.lodes import QUICK_SHARE, QUICK_TRIALS, TRIALS, WORKER_BY, WORKPLACE_BY, infused, jobs_folder
from discreet_papers.lodes_defaults import default_rows

Row: TypeAlias = dict[str, Any]
TITLE = "The defaults on the paper's workloads, beside noise infusion"
ALPHA, EPSILONS = "0.1", (1.0, 2.0, 4.0)
NEAR, FAR = 1_000, 12.0
"""Floors are computed on integers up to this size; a bound is of use within so many mean errors of the count."""

PARTS = 16
"""Cells of the programme of two sizes in a growth by 1 + alpha."""

SINGLY, REACH = 100, 40
"""Sizes and noise up to which the limit of all laws is computed on integers."""

SMALLER = "10k-100k"
"""The first stratum of places that are not small."""

WORDS = """
Workload 1 under the strong definition. `two-sizes` is the default, which follows the two largest establishments of a
cell, and `ladder` the mechanism that follows the largest alone. `ladder, at least one job each` replaces a count
below the public number of the cell's establishments by that number: it errs less and is biased upwards, so totals are
not to be made of it. `two sizes, programme` is the best law of both sizes, on cells of another kind, from the size on
at which the table of `ladder` ends (`tables.optimal.two_sizes`, docs/explanation/limits.md). Its `limit` is where cells
of one width and of half that point to: the error of a grid falls in proportion to its width. `floor` is below every law
of noise that follows the largest establishment alone. `mean zero, limit`, of small places at epsilon 4, is below every
law with mean zero, whatever it follows, where sizes are as frequent as in these cells; beyond 100 workers it is that of
large ones. `any mean, limit` is the same of laws that may be biased.
"""


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Measure the defaults; `quick` simulates a twentieth of the jobs."""
    trials, share = (QUICK_TRIALS, QUICK_SHARE) if quick else (TRIALS, 1.0)
    source = SeededSource(seed)
    with jobs_folder(data, seed=seed, share=share, progress=progress) as folder:
        progress("counting workers of every establishment", 0.3)
        firms = histograms(read_jobs(folder, validate=data is not None), workplace_by=WORKPLACE_BY, worker_by=WORKER_BY)
    progress("infusing noise", 0.4)
    economy = infused(firms, seed=seed, trials=trials, source=source)
    progress("workload 1", 0.6)
    tried = tried_rows(economy)
    progress("all defaults", 0.7)
    rows = default_rows(economy, trials=trials, source=source)
    results = {"jobs": int(firms.counts.sum()), "trials": trials, "defaults": rows, "workload_1": tried}
    page = Page(
        TITLE,
        [
            Prose(f"{results['jobs']:,} jobs, {len(firms.start):,} workplace cells."),
            Table.of(rows, "Errors over infusion's and over the default before, by size of place.", "defaults"),
            Heading("What else was tried for workload 1"),
            Prose(WORDS),
            Table.of(tried, "Workload 1: error over infusion's, and bias of a count in units of its error.", "tried"),
        ],
    )
    return Study(name="defaults", title=TITLE, results=results, page=page)


def tried_rows(economy: grid.Economy) -> list[Row]:
    """Errors of workload 1 over infusion's: as published, by the largest alone, held to public facts, and limits."""
    cells, second, rows = economy.cells, economy.second, []
    x, n = cells.largest_total, cells.counts.sum(axis=1)
    infusion = economy.infusion_error_total.sum(axis=1)
    small = economy.stratum < strata.NAMES.index(SMALLER)
    for epsilon in EPSILONS:
        mechanism: Any = calibrate("ladder", unit=Establishments(ALPHA), epsilon=epsilon)
        error = mechanism.integer_error(x.astype(np.float64), x.astype(np.float64))
        before = calibrate("polynomial", unit=Establishments(ALPHA), epsilon=epsilon).integer_error(
            x.astype(np.float64), x.astype(np.float64)
        )
        gain = bound_gain(mechanism.integer_probability, x, n - cells.establishments, error)
        both = np.stack([x, second], axis=-1).astype(np.float64)
        pairs = calibrate("two-sizes", unit=Establishments(ALPHA), epsilon=epsilon).integer_error(both[:, 0], both)
        coarse, fine = (
            by_two_sizes(error, x, second, epsilon, least=mechanism.tabled, parts=parts)
            for parts in (PARTS // 2, PARTS)
        )
        for what, errors, bias in (
            ("two-sizes", pairs, np.zeros(len(error))),
            ("ladder", error, np.zeros(len(error))),
            ("ladder, at least one job each", error - gain, gain),
            ("two sizes, programme", fine, np.zeros(len(error))),
            ("two sizes, limit", 2 * fine - coarse, np.zeros(len(error))),
            ("floor", floors(x, epsilon), None),
        ):
            rows.append(
                {
                    "epsilon": epsilon,
                    "what": what,
                    "over infusion": float(errors.sum() / infusion.sum()),
                    "below 10,000 inhabitants": float(errors[small].sum() / infusion[small].sum()),
                    "there over polynomial": float(errors[small].sum() / before[small].sum()),
                    "bias": None if bias is None else float(bias.sum() / error.sum()),
                }
            )
        if epsilon == EPSILONS[-1]:
            for what, unbiased in (("mean zero, limit", True), ("any mean, limit", False)):
                least = least_of_all(x[small], epsilon, unbiased=unbiased)
                rows.append(
                    {
                        "epsilon": epsilon,
                        "what": what,
                        "over infusion": None,
                        "below 10,000 inhabitants": least / float(infusion[small].sum()),
                        "there over polynomial": least / float(before[small].sum()),
                        "bias": 0.0 if unbiased else None,
                    }
                )
    return rows


def least_of_all(largest: Integers, epsilon: float, *, unbiased: bool = True) -> float:
    """The least sum of mean errors of cells with these largest establishments: `limits.alone`, and in proportion."""
    near = np.bincount(np.clip(largest, 1, SINGLY + 1), minlength=SINGLY + 2)[1:-1].astype(np.float64)
    coarse, fine = (
        two_sizes(RatioRows(float(Fraction(ALPHA)), epsilon, parts), unbiased=unbiased) for parts in (PARTS // 2, PARTS)
    )
    far = 2 * float(fine.errors[-1]) - float(coarse.errors[-1])
    every = near + near.mean() / 1_000  # no size is given up
    far_sum = float(largest[largest > SINGLY].sum())
    near_sum = alone(Fraction(ALPHA), epsilon, reach=REACH, weight=every, unbiased=unbiased)
    return near_sum + far * float(Fraction(ALPHA)) * far_sum


def by_two_sizes(
    error: Vector, largest: Integers, second: Integers, epsilon: float, *, least: int, parts: int = PARTS
) -> Vector:
    """`error`, and from the size `least` on the error of the best law of both sizes on the cells of its programme.

    Every cell has one more establishment, of the size `least`, which does not exist. So the law is that of a single
    size where the table of smaller sizes begins.
    """
    rows, far = RatioRows(float(Fraction(ALPHA)), epsilon, parts), largest >= least
    place = rows.row(largest[far], np.maximum(second[far], least))
    share = np.bincount(place, weights=largest[far], minlength=len(rows.ratios) - 1).astype(np.float64)
    found = error.copy()
    found[far] = rows.alpha * largest[far] * two_sizes(rows, weights=share).errors[place]
    return found


def bound_gain(law: Callable[[Vector, float], Vector], largest: Integers, room: Integers, error: Vector) -> Vector:
    """E(-noise - room)+ of each cell: by so much a lower bound that is `room` below the count lowers the mean error.

    The published count is lifted by the same amount on average, which is its bias.
    """
    found = np.zeros(len(largest))
    close = np.flatnonzero(room < FAR * error)
    for size in np.unique(largest[close]).tolist():
        here = close[largest[close] == size]
        reach = int(60 * error[here[0]]) + 20
        k = np.arange(-float(reach), 0.0)
        probability = law(k, size)
        found[here] = [float(probability @ np.maximum(-k - least, 0)) for least in room[here]]
    return found


def floors(largest: Integers, epsilon: float) -> Vector:
    """`limits.floor` of each cell."""
    alpha = Fraction(ALPHA)
    near = np.array([floor(size, alpha, epsilon) for size in range(1, NEAR)])
    far = far_floor(float(alpha), epsilon) * float(alpha) * largest
    return np.asarray(np.where(largest < NEAR, near[np.clip(largest, 1, NEAR - 1) - 1], far))
