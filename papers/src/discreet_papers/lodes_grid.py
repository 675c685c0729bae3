"""The Tables paper's grid: every mechanism, workload, alpha and epsilon, measured against noise infusion.

Expected errors come from the mechanisms' closed forms, before rounding; errors of the published integers and rank
correlations come from trials. Workload 1 is place x sector x ownership. Workload 3 adds sex x education and spends its
epsilon on the whole table. Workload 2 asks for single cells of that table, each with the whole epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from typing import Any, cast

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.noise.rings import Rings
from discreet.noise.sampler import draw_within
from discreet.noise.source import SeededSource, Source
from discreet.noise.unions import draw_unions
from discreet.privacy.guarantee import Calibration, is_tight
from discreet.privacy.losses import exact
from discreet.privacy.units import Establishments, Strength, is_weak
from discreet.tables.calibration import calibrate
from discreet.tables.cells import Cells
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.mechanisms.registry import BASELINES
from discreet.tables.ranking import RANKING_2, levels_with, spearman_by
from discreet.utility import errors, strata
from discreet.words.errors import Infeasible

ALPHAS = (0.01, 0.05, 0.1, 0.15, 0.2)
EPSILONS = (0.25, 0.5, 0.67, 1.0, 2.0, 4.0)
DELTA = 0.05
FINE = 2.0**10
THETA = 1000
"""The cut of node privacy: section 6 of the paper."""

PUBLISHED: tuple[str, ...] = ("log-laplace", "smooth-gamma", "smooth-laplace")
VECTORS: tuple[str, ...] = ("joint-polynomial", "joint-rings", "weak-joint", "weak-unions")
JOINT: tuple[str, ...] = (*VECTORS, *BASELINES)
"""Those whose loss covers all worker cells of an establishment at once."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the grid. Baselines have no alpha and no strength: they satisfy neither definition."""

    workload: int
    mechanism: str
    calibration: Calibration
    strength: Strength | None
    alpha: float | None
    epsilon: float


@dataclass(frozen=True)
class Economy:
    """What the study knows of the data.

    Attributes
    ----------
    cells : workload 3.
    dropped : jobs at establishments of more than THETA workers, shape (cells, d).
    infused : the infused table of workload 3, shape (cells, d), and `infused_total` that of workload 1.
    infusion_error : expected errors of both.
    """

    cells: Cells
    dropped: Integers
    infused: Matrix
    infused_total: Matrix
    infusion_error: Matrix
    infusion_error_total: Matrix

    @cached_property
    def stratum(self) -> Integers:
        return strata.stratum_of(np.asarray(self.cells.keys["place_population"].to_pylist(), dtype=np.int64))

    @cached_property
    def ranking_2(self) -> int:
        """The level that Ranking 2 counts."""
        return int(levels_with(RANKING_2, worker_by=self.cells.worker_by, levels=self.cells.levels).argmax())

    def counts(self, workload: int) -> Integers:
        return self.cells.counts.sum(axis=1, keepdims=True) if workload == 1 else self.cells.counts

    def reference(self, workload: int) -> Matrix:
        """The expected error of infusion."""
        return self.infusion_error_total if workload == 1 else self.infusion_error

    def largest(self, setting: Setting) -> Integers:
        """The part that must be hidden: all workers of the cell's largest establishment, or its workers in the cell.

        Those in the cell are enough under the weak definition, and for a baseline that is asked for a single cell.
        """
        baseline = setting.strength is None and setting.workload == 2
        weak = setting.strength is not None and is_weak(setting.strength)
        return self.cells.largest if weak or baseline else self.cells.largest_total[:, None]

    @property
    def second(self) -> Integers:
        """The second largest establishment's workers in each cell; 0 where there is one only."""
        return cast("Integers", self.cells.second_total)

    def hidden(self, found: Mechanism) -> Integers:
        """The sizes that noise by kinds depends on: of every kind and, last, of all; or of every set of kinds."""
        if found.by_unions:
            return cast("Integers", self.cells.unions)
        return np.column_stack([self.cells.largest, self.cells.largest_total])


def settings(
    workload: int, *, alphas: Sequence[float] = ALPHAS, epsilons: Sequence[float] = EPSILONS
) -> Iterator[Setting]:
    """All mechanisms at all points. Log-Laplace has no strong version where workers' attributes are counted."""
    for alpha, epsilon in product(alphas, epsilons):
        for strength in cast("tuple[Strength, ...]", ("strong",) if workload == 1 else ("weak", "strong")):
            for name in PUBLISHED if is_weak(strength) or workload == 1 else PUBLISHED[1:]:
                yield Setting(workload, name, "paper", strength, alpha, epsilon)
                yield Setting(workload, name, "tight", strength, alpha, epsilon)
            yield Setting(workload, "polynomial", "tight", strength, alpha, epsilon)
        if workload == 3:
            yield Setting(workload, "joint-polynomial", "tight", "strong", alpha, epsilon)
            yield Setting(workload, "joint-rings", "tight", "strong", alpha, epsilon)
            yield Setting(workload, "weak-joint", "tight", "weak", alpha, epsilon)
            yield Setting(workload, "weak-unions", "tight", "weak", alpha, epsilon)
    for name, epsilon in product(BASELINES, epsilons):
        yield Setting(workload, name, "paper", None, None, epsilon)


def mechanism(setting: Setting, levels: int) -> tuple[Mechanism | None, bool]:
    """The calibrated mechanism of one cell, and whether it can promise what is asked.

    Smooth Laplace in the paper's calibration adds the same noise whatever delta is, so where delta = 0.05 does not
    allow it, it is measured all the same. Tight calibrations split delta over the cells, the paper's does not.
    """
    epsilon, delta = exact(setting.epsilon), exact(DELTA)
    if setting.workload == 3 and setting.mechanism not in JOINT:
        epsilon /= levels
        delta = delta / levels if is_tight(setting.calibration) else delta
    given = (setting.mechanism, setting.calibration, exact(setting.alpha or 1), epsilon, levels)
    try:
        return _calibrated(*given, delta), True
    except Infeasible:
        if (setting.mechanism, setting.calibration) != ("smooth-laplace", "paper"):
            return None, False
        least = math.exp(-float(epsilon) / (2 * math.log1p(setting.alpha or 1))) * (1 + 1e-9)
        return _calibrated(*given, exact(least)), False


@cache
def _calibrated(
    name: str, calibration: Calibration, alpha: Fraction, epsilon: Fraction, levels: int, delta: Fraction
) -> Mechanism:
    return calibrate(
        name,
        unit=Establishments(alpha),
        epsilon=epsilon,
        delta=delta if name == "smooth-laplace" else None,
        calibration=calibration,
        cells=levels if name in VECTORS else 1,
        theta=THETA,
    )


def expected_error(setting: Setting, found: Mechanism, economy: Economy) -> Matrix:
    """E|published - true| before rounding, shape (cells, d)."""
    counts = economy.counts(setting.workload)
    if found.by_kinds:
        return _unrounded(found, economy.hidden(found))
    largest = np.broadcast_to(economy.largest(setting), counts.shape)
    error = found.expected_error(counts.astype(np.float64), largest.astype(np.float64))
    if setting.mechanism == "node-truncation":
        dropped = economy.dropped.sum(axis=1, keepdims=True) if setting.workload == 1 else economy.dropped
        error = dropped + error * np.exp(-dropped / error)
    return np.broadcast_to(error, counts.shape)


def _unrounded(found: Any, largest: Integers) -> Matrix:
    """E|noise| of every kind before rounding, which has no closed form: a mean of draws on a fine grid."""
    law = cast("Rings", found.law)

    def drawn(source: Source) -> Integers:
        if found.by_unions:
            place, scale = found.tabled(largest)
            return draw_unions(law, sizes=place, scale=scale * FINE, source=source)
        own, whole = found.scales(largest)
        return draw_within(law, scale=own * FINE, total=whole * FINE, source=source)

    return np.asarray(np.mean([np.abs(drawn(SeededSource(i))) for i in range(4)], axis=0) / FINE)


def draw(setting: Setting, found: Mechanism, economy: Economy, source: Source, level: int | None = None) -> Integers:
    """One trial: the integers that would be published, of all levels or of one."""
    counts, largest = economy.counts(setting.workload), economy.largest(setting)
    if found.by_kinds:
        return found.draw(counts, economy.hidden(found), source)
    if setting.mechanism in VECTORS:
        return found.draw(counts, largest[:, 0], source)
    largest = np.broadcast_to(largest, counts.shape)
    if level is not None:
        counts, largest = counts[:, level], largest[:, level]
    return found.draw(counts, largest, source)


def l1_rows(grid: Iterable[Setting], economy: Economy) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """L1 ratios by stratum, and shares of cells within 10 points of infusion's relative error."""
    ratios, within = [], []
    for setting in grid:
        found, feasible = mechanism(setting, len(economy.cells.levels))
        by_stratum: Sequence[float | None] = [None] * (1 + len(strata.NAMES))
        share = None
        if found is not None:
            error, reference = expected_error(setting, found, economy), economy.reference(setting.workload)
            by_stratum = errors.l1_ratio(error, reference, stratum=economy.stratum).tolist()
            share = errors.within_points(error, reference, true=economy.counts(setting.workload))
        ratios += [
            {**asdict(setting), "stratum": stratum, "ratio": ratio, "feasible": feasible}
            for stratum, ratio in zip((strata.ALL, *strata.NAMES), by_stratum, strict=True)
        ]
        within.append({**asdict(setting), "share": share, "feasible": feasible})
    return ratios, within


def published_rows(grid: Iterable[Setting], economy: Economy, *, trials: int, source: Source) -> list[dict[str, Any]]:
    """L1 ratios of the integers that would be published, as drawn and with negative ones set to zero."""
    rows = []
    for setting in grid:
        found, feasible = mechanism(setting, len(economy.cells.levels))
        if found is None or setting.mechanism in BASELINES:
            continue
        true, reference = economy.counts(setting.workload), economy.reference(setting.workload)
        error, clipped = np.zeros(true.shape), np.zeros(true.shape)
        for _ in range(trials):
            table = draw(setting, found, economy, source)
            error += np.abs(table - true) / trials
            clipped += np.abs(np.maximum(table, 0) - true) / trials
        expected = expected_error(setting, found, economy)
        ratio = {
            name: float(errors.l1_ratio(e, reference, stratum=economy.stratum)[0])
            for name, e in {"expected": expected, "integers": error, "not_negative": clipped}.items()
        }
        rows.append({**asdict(setting), "feasible": feasible, **ratio})
    return rows


def spearman_rows(
    ranking: int, grid: Iterable[Setting], economy: Economy, *, trials: int, source: Source
) -> list[dict[str, Any]]:
    """Rank correlations with the infused table, by stratum: means over trials of published integers."""
    rows = []
    reference: Vector = economy.infused_total[:, 0] if ranking == 1 else economy.infused[:, economy.ranking_2]
    level = 0 if ranking == 1 else economy.ranking_2
    for setting in grid:
        found, feasible = mechanism(setting, len(economy.cells.levels))
        if found is None or setting.mechanism in BASELINES:
            continue
        tables = np.stack([draw(setting, found, economy, source, level) for _ in range(trials)])
        each = spearman_by(tables, reference, stratum=economy.stratum, strata=len(strata.NAMES))
        rows += [
            {"ranking": ranking, **asdict(setting), "stratum": stratum, "spearman": value, "feasible": feasible}
            for stratum, value in zip((strata.ALL, *strata.NAMES), each.mean(axis=0).tolist(), strict=True)
        ]
    return rows
