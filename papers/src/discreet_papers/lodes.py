"""Employment tables under employer-employee privacy, beside noise infusion: section 10 of the Tables paper.

Haney et al. (2017), Tables 1 and 2, Figures 1 to 7 and the five findings, on simulated jobs of the paper's size: the
confidential ones cannot be had. The grid is in `lodes_grid`, the findings and the page in `lodes_page`. The study knows
the truth and prints comparisons with it, and its noise has a seed: it is a simulation, never a release.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from discreet.arrays import Integers, Matrix
from discreet.data.jobs import read_jobs
from discreet.noise.source import SeededSource, Source
from discreet.pages.study import Study
from discreet.privacy.requirements import table_1
from discreet.privacy.units import Establishments
from discreet.simulate import lodes as simulated
from discreet.tables.baseline import attacks
from discreet.tables.baseline.establishments import Histograms, histograms
from discreet.tables.baseline.infusion import Infusion
from discreet.tables.calibration import calibrate
from discreet.tables.ranking import RANKING_2, levels_with
from discreet.utility.changes import change, found_changes
from discreet.utility.errors import largest_share
from discreet.utility.flags import flags_raised
from discreet.words.progress import Progress, silent
from discreet_papers import lodes_grid as grid
from discreet_papers.lodes_defaults import default_rows
from discreet_papers.lodes_definitions import ALPHA, table_2
from discreet_papers.lodes_findings import findings
from discreet_papers.lodes_page import TITLE, page

WORKPLACE_BY = ("place", "place_population", "sector", "ownership")
"""A place has one population, which only says the stratum of its cells."""

WORKER_BY = ("sex", "education")
TRIALS, QUICK_TRIALS = 20, 5
QUICK_SHARE = 0.05
QUICK_GRID: dict[str, Sequence[float]] = {"alphas": (0.01, 0.05, 0.1), "epsilons": (1.0, 2.0, 4.0)}
Row: TypeAlias = dict[str, Any]
BASE_POINTS = {1: ((0.1, 2.0),), 2: ((0.1, 2.0),), 3: ((0.05, 4.0), (0.1, 2.0), (0.1, 4.0))}
"""The points at which published integers are drawn: the paper's baseline, and for whole tables the largest epsilon."""


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Measure every mechanism against infusion; `quick` simulates a twentieth of the jobs and a part of the grid."""
    trials, points = (QUICK_TRIALS, QUICK_GRID) if quick else (TRIALS, {})
    share = QUICK_SHARE if quick else 1.0
    source = SeededSource(seed)
    with jobs_folder(data, seed=seed, share=share, progress=progress) as folder:
        progress("counting workers of every establishment", 0.2)
        firms = histograms(read_jobs(folder, validate=data is not None), workplace_by=WORKPLACE_BY, worker_by=WORKER_BY)
    progress("infusing noise", 0.25)
    economy = infused(firms, seed=seed, trials=trials, source=source)

    ratios: list[Row] = []
    within: list[Row] = []
    published: list[Row] = []
    spearman: list[Row] = []
    for workload, start in ((1, 0.3), (2, 0.4), (3, 0.5)):
        settings = list(grid.settings(workload, **points))
        progress(f"errors of workload {workload}", start)
        rows, shares = grid.l1_rows(settings, economy)
        ratios, within = ratios + rows, within + shares
        progress(f"published integers of workload {workload}", start + 0.05)
        base = [s for s in settings if (s.alpha, s.epsilon) in BASE_POINTS[workload]]
        published += grid.published_rows(base, economy, trials=trials, source=source)
    for ranking in (1, 2):
        progress(f"ranking {ranking}", 0.6 + 0.15 * (ranking - 1))
        ranked = [s for s in grid.settings(ranking, **points) if ranking == 1 or s.strength == "weak"]
        spearman += grid.spearman_rows(ranking, ranked, economy, trials=trials, source=source)

    progress("attacks and changes", 0.9)
    results = {
        "data": _data(firms, trials=trials) | {"simulated": data is None},
        "l1_ratio": ratios,
        "spearman": spearman,
        "within_10_points": within,
        "attacks": attack_rows(economy, source=source),
        "largest_share": dominance(firms),
        "published": published,
        "defaults": default_rows(economy, trials=trials, source=source),
        "requirements": [row.to_dict() for row in table_1(alpha=ALPHA)],
        "table_2": table_2(),
        "changes": change_rows(seed=seed, share=share, trials=trials, source=source),
    }
    progress("drawing figures", 0.95)
    found = findings(results)
    return Study(name="lodes", title=TITLE, results={**results, "findings": found}, page=page(results, found))


@contextmanager
def jobs_folder(data: Path | None, *, seed: int, share: float, progress: Progress) -> Iterator[Path]:
    """The data given, or simulated ones for as long as they are read."""
    if data is not None:
        progress("opening the jobs", 0.0)
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="discreet-lodes-") as folder:

        def rows(step: str, done: float) -> None:
            progress("simulating jobs", 0.2 * done)

        simulated.write(Path(folder, "lodes"), seed=seed, share=share, progress=rows)
        yield Path(folder, "lodes")


def infused(firms: Histograms, *, seed: int, trials: int, source: Source) -> grid.Economy:
    """Both tables with infused noise, and the facts about the cells that the study needs."""
    infusion, rng = Infusion(), np.random.default_rng(seed)
    total = replace(firms, worker_by=(), levels=((),), counts=firms.size[:, None])
    factors = infusion.factors(firms.establishment, key=seed.to_bytes(32, "big"))
    return grid.Economy(
        cells=firms.cells(unions=True),
        dropped=firms.total(firms.counts * (firms.size > grid.THETA)[:, None]),
        infused=infusion.publish(firms, factors, source=source),
        infused_total=infusion.publish(total, factors, source=source),
        infusion_error=infusion.expected_error(firms, rng=rng, trials=trials),
        infusion_error_total=infusion.expected_error(total, rng=rng, trials=trials),
    )


def attack_rows(economy: grid.Economy, *, source: Source) -> list[Row]:
    """The three attacks on infusion, on infusion in whole numbers, and on formal releases of the same table."""
    cells = economy.cells
    releases: dict[str, Matrix] = {
        "infusion": economy.infused,
        "infusion, whole numbers": np.rint(economy.infused),
    }
    for epsilon in (1.0, 2.0, 4.0):
        setting = grid.Setting(3, "joint-polynomial", "tight", "strong", 0.1, epsilon)
        found, _ = grid.mechanism(setting, len(cells.levels))
        if found is not None:
            table = np.maximum(grid.draw(setting, found, economy, source), 0)
            releases[f"joint-polynomial, alpha 0.1, epsilon {epsilon:g}"] = table.astype(np.float64)
    rare = {name: value for name, value in RANKING_2.items() if name == "education"}
    graduates = levels_with(rare, worker_by=cells.worker_by, levels=cells.levels)
    only = cells.counts[:, graduates].sum(axis=1) == 1
    alone = cells.counts[(cells.establishments == 1) & only][:, graduates]
    chance = float(alone.mean(axis=0).max()) if alone.size else None
    lone = int((cells.establishments == 1).sum())
    targets = {"shape": lone, "size": lone, "re-identification": len(alone)}
    rows = []
    for release, table in releases.items():
        known = table.argmax(axis=1)
        claims = {
            "shape": attacks.shape(table, establishments=cells.establishments),
            "size": attacks.size(
                table,
                establishments=cells.establishments,
                level=known,
                count=np.take_along_axis(cells.counts, known[:, None], axis=1)[:, 0],
            ),
            "re-identification": attacks.reidentification(
                table[:, graduates], establishments=cells.establishments, only=only
            ),
        }
        truth: dict[str, Matrix | Integers] = {
            "shape": cells.counts / np.maximum(cells.counts.sum(axis=1, keepdims=True), 1),
            "size": cells.counts,
            "re-identification": cells.counts[:, graduates],
        }
        for name, claim in claims.items():
            outcome = attacks.score(claim, truth[name])
            rows.append(
                {
                    "release": release,
                    **asdict(outcome),
                    "targets": targets[name],
                    "share": outcome.share,
                    "of_targets": outcome.exact / targets[name] if targets[name] else None,
                    "chance": chance if name == "re-identification" else 0.0,
                }
            )
    return rows


def dominance(firms: Histograms) -> dict[str, Any]:
    """Figure 2 and the other figures of section 6."""
    cells = firms.cells()
    jobs = cells.counts.sum(axis=1)
    shares = largest_share(true=jobs, largest=cells.largest_total)
    return {
        "median": float(np.median(shares)),
        "above_65_percent": float(np.mean(shares > 0.65)),
        "cells_below_1000": float(np.mean(jobs < grid.THETA)),
        "establishments_above_1000": int((firms.size > grid.THETA).sum()),
        "cdf": [{"share": x, "cells": float(np.mean(shares <= x))} for x in np.linspace(0, 1, 101).round(2).tolist()],
    }


def change_rows(*, seed: int, share: float, trials: int, source: Source) -> list[Row]:
    """Do two private releases, a year apart, still find the places whose employment changed most?"""
    years = [simulated.workplaces(seed=seed, share=share, year=year) for year in (0, 1)]
    places = len(years[0].places.population)
    counts = [np.bincount(y.place, weights=y.size, minlength=places).astype(np.int64) for y in years]
    largest = []
    for year in years:
        most = np.zeros(places, dtype=np.int64)
        np.maximum.at(most, year.place, year.size)
        largest.append(most)
    infusion = Infusion()
    uniform = np.random.default_rng(seed).random((trials, 1 + max(int(y.id.max()) for y in years)))
    methods: dict[str, list[list[Integers | Matrix]]] = {
        "infusion": [
            [np.bincount(y.place, weights=y.size * infusion.factor(u)[y.id], minlength=places) for y in years]
            for u in uniform
        ]
    }
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        found = calibrate("polynomial", unit=Establishments(0.1), epsilon=epsilon)
        methods[f"polynomial, alpha 0.1, epsilon {epsilon:g} a year"] = [
            [found.draw(n, x, source) for n, x in zip(counts, largest, strict=True)] for _ in range(trials)
        ]
    looked_for, rows = max(places // 20, 1), []
    for method, pairs in methods.items():
        for relative in (False, True):
            true = change(*counts, relative=relative)
            published = [change(*pair, relative=relative) for pair in pairs]
            each = [found_changes(changes, true, most=looked_for) for changes in published]
            flags = flags_raised(published, true, most=looked_for, rng=seed)
            rows.append(
                {
                    "method": method,
                    "change": "relative" if relative else "absolute",
                    "places": places,
                    "most": looked_for,
                    "found": float(np.mean([f.found for f in each])),
                    "by_chance": each[0].by_chance,
                    "spearman": float(np.mean([f.correlation for f in each])),
                    "pauc": flags.pauc,
                    "pauc_low": flags.low,
                    "pauc_high": flags.high,
                }
            )
    return rows


def _data(firms: Histograms, *, trials: int) -> dict[str, Any]:
    return {
        "jobs": int(firms.counts.sum()),
        "establishments": len(firms.counts),
        "workplace_cells": len(firms.start),
        "levels": len(firms.levels),
        "trials": trials,
        "delta": grid.DELTA,
    }
