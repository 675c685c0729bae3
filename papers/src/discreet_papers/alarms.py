"""False alarms: how often do cells that did not change raise one, and equally good methods a small p-value?

Alarms between two private releases: the chance of a false alarm, and the chance to find a change. If a cell has one
establishment, they are exact sums over all pairs of draws; if it has several, they are simulated. Comparisons of
forecasts: the share of data sets of equally good methods whose smallest p-value is at most 10 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.changes.exchange import is_scarce, leads
from discreet.noise.source import SeededSource, Source
from discreet.pages.page import Heading, Page, Prose, Table
from discreet.pages.study import Study
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.intervals.counts import intervals
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.sizes import NoisySizes, sizes_for
from discreet.utility.paired import Ends, change_ends
from discreet.words.errors import DataError
from discreet.words.progress import Progress, silent

Row: TypeAlias = dict[str, Any]
TITLE = "False alarms: private releases and comparisons of forecasts"
ALPHA, RATE, EPSILONS = "0.1", 0.1, (1, 2, 4)
COUNTS = (20, 100, 400)
"""Jobs of a cell that has one establishment."""

CELLS = ((200, 20), (200, 2), (2_000, 20))
"""Jobs of a cell and workers of its largest establishment."""

DRAWS, QUICK_DRAWS = 20_000, 2_000
FALLS = (0.2, 0.5)
POSITIVES, NEGATIVES, METHODS = (1, 2, 5, 20, 100), 400, (2, 5)
TIED = ("yes or no", "yes or no, by value", "yes or no, clusters")
TRIALS, QUICK_TRIALS, EXCHANGES = 2_000, 150, 199
FAR = 8
"""Mean errors beyond which a draw of a lone establishment is counted as an alarm."""


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Measure all of it; `quick` draws less often."""
    if data is not None:
        raise DataError(
            "The study of false alarms needs no data.", "It draws its own.", "Leave --data out.", about="data"
        )
    lone, many, sizes = list[Row](), list[Row](), list[Row]()
    for i, epsilon in enumerate(EPSILONS):
        progress(f"private alarms, epsilon {epsilon}", 0.1 * i)
        lone += [lone_cell(epsilon, count) for count in COUNTS]
        for share in (Fraction(0), Fraction(1, 10)):
            draws = QUICK_DRAWS if quick else DRAWS
            many += [drawn_cells(epsilon, share, *cell, draws=draws, seed=seed) for cell in CELLS]
    points = [(methods, positives) for methods in METHODS for positives in POSITIVES]
    trials = QUICK_TRIALS if quick else TRIALS
    for i, (methods, positives) in enumerate(points):
        progress(f"p-values, {methods} methods, {positives} positives", 0.3 + 0.4 * i / len(points))
        sizes.append(rejections(methods, positives, trials=trials, seed=seed))
    tied = list[Row]()
    for i, positives in enumerate(POSITIVES):
        progress(f"p-values, scores of yes or no, {positives} positives", 0.7 + 0.3 * i / len(POSITIVES))
        tied += [rejections(2, positives, kind, trials=trials // 4, seed=seed) for kind in TIED]
    results = {"rate": RATE, "lone": lone, "drawn": many, "p_values": sizes, "tied": tied}
    return Study(name="alarms", title=TITLE, results=results, page=_page(results))


def lone_cell(epsilon: int, count: int) -> Row:
    """Exact chances where one establishment has all jobs of the cell, the case for which intervals are made."""
    mechanism: Any = calibrate("ladder", unit=Establishments(ALPHA), epsilon=epsilon)
    found: Row = {"epsilon": epsilon, "count": count}
    before, weight = _law(mechanism, count)
    for name, independent in (("false, paired levels", True), ("false, two intervals", False)):
        found[name] = _chance(mechanism, (before, weight), (before, weight), independent=independent)
    for fall in FALLS:
        after = _law(mechanism, round(count * (1 - fall)))
        found[f"falls by {100 * fall:.0f} % found"] = _chance(mechanism, (before, weight), after, within=True)
    return found


def _law(mechanism: Any, count: int) -> tuple[Integers, Vector]:
    """Published counts of such a cell and their chances; what is left out of these is rare."""
    size = np.array([float(count)])
    reach = FAR * int(mechanism.integer_error(size, size)[0] + 2)
    k = np.arange(-reach, reach + 1)
    return count + k, mechanism.probability(k, np.array([count]))[0]


def _chance(
    mechanism: Mechanism,
    early: tuple[Integers, Vector],
    late: tuple[Integers, Vector],
    *,
    independent: bool = True,
    within: bool = False,
) -> float:
    """The chance of an alarm; draws outside the sums count as alarms, with `within` as none."""
    first, second = (partial(_ends_along, mechanism, drawn, axis) for (drawn, _), axis in ((early, 1), (late, 0)))
    low, high = change_ends(first, second, rate=RATE, independent=independent)
    joint = early[1][:, None] * late[1][None, :]
    return float((joint * ((low > 0) | (high < 0))).sum() + (0 if within else 1 - joint.sum()))


def _ends_along(mechanism: Mechanism, drawn: Integers, axis: int, level: float) -> tuple[Vector, Vector]:
    lower, upper = intervals(drawn[:, None], mechanism, level=level, bounded=True)
    return np.expand_dims(lower[:, 0], axis), np.expand_dims(upper[:, 0], axis)


def drawn_cells(epsilon: int, share: Fraction, count: int, largest: int, *, draws: int, seed: int) -> Row:
    """Shares of drawn pairs with an alarm, in cells of several establishments, with and without noisy sizes."""
    unit = Establishments(ALPHA)
    mechanism = calibrate("ladder", unit=unit, epsilon=epsilon * (1 - share))
    sizes = sizes_for(mechanism, epsilon * share) if share else None
    source = SeededSource(seed)
    early = _drawn(mechanism, sizes, count, largest, draws, source)
    found: Row = {"epsilon": epsilon, "scale_share": float(share), "count": count, "largest": largest}
    for name, jobs in (
        ("false", count),
        *((f"falls by {100 * fall:.0f} % found", round(count * (1 - fall))) for fall in FALLS),
    ):
        late = _drawn(mechanism, sizes, jobs, min(largest, jobs), draws, source)
        low, high = change_ends(early, late, rate=RATE, independent=True)
        found[name] = float(((low > 0) | (high < 0)).mean())
    return found


def _drawn(
    mechanism: Mechanism, sizes: NoisySizes | None, count: int, largest: int, draws: int, source: Source
) -> Ends:
    biggest = np.full((draws, 1), largest)
    published = mechanism.draw(np.full((draws, 1), count), biggest, source)
    told = None if sizes is None else sizes.draw(biggest[:, 0], biggest[:, 0], source)
    return lambda level: intervals(published, mechanism, level=level, bounded=True, largest=told, sizes=sizes)


def rejections(methods: int, positives: int, kind: str = "", *, trials: int, seed: int) -> Row:
    """How often a test at 10 % separates equally good methods: errors in common, and scales that differ.

    A `kind` has scores of yes or no; by value, positives have weights; in clusters, two positives and their errors
    belong together.
    """
    rng = np.random.default_rng((seed, methods, positives))
    positive = np.arange(positives + NEGATIVES) < positives
    pairs = np.where(positive, np.arange(len(positive)) % -(-positives // 2), np.arange(len(positive)) % 60)
    cluster = pairs if "clusters" in kind else None
    found = {"as printed": 0, "without drawing": 0}
    for _ in range(trials):
        common, own = rng.normal(size=len(positive)), rng.normal(size=(methods, len(positive)))
        if cluster is not None:
            own = np.sqrt(0.5) * (own + rng.normal(size=(methods, cluster.max() + 1))[:, cluster])
        scores = (common + own + 1.5 * positive) * np.geomspace(1, 9, methods)[:, None]
        about: dict[str, Any] = {"exchanges": EXCHANGES, "rng": rng, "cluster": cluster}
        about["value"] = np.exp(rng.normal(size=len(positive))) if "value" in kind else None
        scores = (scores > 0).astype(float) if kind else scores
        plain = leads(positive, scores, **about).min()
        scarce = is_scarce(positive, cluster)
        found["as printed"] += (leads(positive, scores, **about, randomised=True).min() if scarce else plain) <= RATE
        found["without drawing"] += plain <= RATE
    said = {"scores": kind} if kind else {}
    sizes = {name: count / trials for name, count in found.items()}
    return {"methods": methods, "positives": positives, **said, **sizes}


def _page(results: Mapping[str, Any]) -> Page:
    return Page(
        TITLE,
        [
            Heading("Alarms between two private releases"),
            Prose(
                f"Every alarm may be false with a chance of {100 * RATE:.0f} % at most, where the cell did not change. "
                "Mechanism ladder, alpha 0.1. Where one establishment has all jobs of a cell, chances are exact sums "
                "over all pairs of draws. Two intervals of 95 % that must not overlap are what alarms were before."
            ),
            _table(results["lone"], "Cells of one establishment, exact"),
            Prose(
                "Where several establishments share a cell, its noise is smaller than a reader can know, and alarms "
                "are rarer; a tenth of epsilon for noisy sizes of the largest establishments tells more of it."
            ),
            _table(results["drawn"], "Cells of several establishments, drawn"),
            Heading("p-values of equally good methods"),
            Prose(
                f"Share of data sets in which the smallest p-value is at most {100 * RATE:.0f} %, with {NEGATIVES} "
                "negatives. One or two positives cannot tell two methods apart: every exchange of names has the same "
                "lead, so that the p-value of an exact test is never small. Its randomised form, which draws among "
                "leads that are equal, has the level that it states and says nothing beyond it. It is printed with up "
                "to six positives, and the p-value without drawing beside it."
            ),
            _table(results["p_values"], "Sizes of tests"),
            Prose("If many cases share a score, negatives change their names as well."),
            _table(results["tied"], "Sizes of tests where scores are yes or no"),
        ],
        "How often what did not happen is reported.",
    )


def _table(rows: Sequence[Row], caption: str) -> Table:
    return Table(tuple(name.capitalize() for name in rows[0]), [tuple(row.values()) for row in rows], caption)
