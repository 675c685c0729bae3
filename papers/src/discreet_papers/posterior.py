"""Posterior probabilities and quantiles by parts: the simulations of Amitai's thesis (2018), Figures 3.1 to 4.2.

Data sets of 100,000 rows, y = 1 + 2x + error. The thesis prints no numbers, only distributions over data sets, so its
claim is what is checked: full, partitioned and private answers have the same means. Its constants are compared with the
corrected ones, and with the private centre that it calls for. The law of x is not stated there; here it is standard
normal. Its data are compared with others (`posterior_kinds`), whose errors are skewed or whose line is a curve.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.audit.blackbox import AuditVerdict, blackbox
from discreet.models.bayes.clipped import ClippedMean, clipped_mean
from discreet.models.bayes.combination import Combination, LogProbabilities, Normality
from discreet.models.bayes.conjugate import GPrior, Parts, Prior, SemiConjugate
from discreet.models.bayes.doubts import Carried
from discreet.models.bayes.expected import SummaryErrors
from discreet.models.bayes.interval import posterior_interval
from discreet.models.bayes.partition import partition
from discreet.noise.source import SeededSource
from discreet.pages.page import Page
from discreet.pages.study import Study
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure
from discreet.privacy.units import AnyRow
from discreet.release.account import Account
from discreet.release.offer import Offer
from discreet.words.progress import Progress, silent
from discreet_papers.posterior_kinds import FURTHER, KINDS, diamonds, kinds
from discreet_papers.posterior_page import DEVIATIONS, LEVELS, Answers, blocks

ROWS, SLOPE = 100_000, 2.0
SETS, QUICK = 400, 60  # data sets
OF_A_KIND, QUICK_OF_A_KIND, ROWS_OF_A_KIND = 100, 8, 20_000  # other kinds of data
EPSILONS = (0.5, 2.0)  # of each question there
EPSILON, PARTS = Fraction(1, 4), 1_000  # of the probabilities: parts of 100 rows
STAGE, FEW_PARTS = Fraction(9, 20), 100  # of the quantiles: epsilon_1 = epsilon_2, parts of 1,000 rows
# Slopes whose quantiles are ever further from zero, in deviations of the parts' answers; from 7 on it is called far,
# since bounds of 2.4 deviations, found to an eighth octave, then beat bounds that reach zero at least three times.
AWAY, FAR = (0.5, 1.0, 2.0, 3.0, 5.0, 7.1, 10.0, 20.0, 50.0, 100.0), 7.0
METHODS: dict[tuple[str, str], Combination] = {
    ("normality", "paper"): Normality("paper"),
    ("normality", "tight"): Normality("tight"),
    ("-2 log p", "paper"): LogProbabilities("paper"),
    ("-2 log p", "tight"): LogProbabilities("tight"),
}
AROUND_ZERO = clipped_mean("zero", "paper", 1.0, None)
PRIVATE_CENTRE = clipped_mean("private", "tight", 1.0, None)
COLUMN = 1  # the slope, after the intercept


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Repeat the thesis's simulations; `quick` draws fewer data sets, `data` is a file of diamonds to ask about too."""
    real = {} if data is None else diamonds(data)
    sets = QUICK if quick else SETS
    rng = np.random.default_rng(seed)
    account = Account.open(None, dataset="simulated", unit=AnyRow(), budget=Pure(10**9))
    probabilities = _probabilities(sets, rng, account, lambda share: progress("posterior probabilities", 0.3 * share))
    quantiles = _quantiles(sets, rng, account, lambda share: progress("posterior quantiles", 0.3 + 0.15 * share))
    gain = _gain(max(5, sets // 20), rng, account)
    progress("bounds around zero and around a private centre", 0.45)
    coverage = _coverage(sets, rng, lambda share: progress("credible intervals", 0.45 + 0.1 * share))
    other = kinds(
        QUICK_OF_A_KIND if quick else OF_A_KIND,
        rng,
        rows=ROWS_OF_A_KIND,
        epsilons=EPSILONS,
        of=KINDS | FURTHER | real,
        tell=lambda share: progress("other kinds of data", 0.55 + 0.4 * share),
    )
    progress("black-box audit of the published noise", 0.95)
    audit = _audit(seed)
    results = {
        "data_sets": sets,
        "rows": ROWS,
        "probability": _rows(
            probabilities, DEVIATIONS / np.sqrt(ROWS) + SLOPE, ("method", "calibration", "partitions")
        ),
        "quantile": [
            {"method": "inflated likelihood", **row}
            for row in _rows(quantiles, LEVELS, ("calibration", "centre", "partitions"))
        ],
        "noise": gain,
        "far": FAR,
        "coverage": coverage,
        "kinds": other,
        "kinds_rows": ROWS_OF_A_KIND,
        "kinds_data_sets": QUICK_OF_A_KIND if quick else OF_A_KIND,
        "audit": {name: verdict.to_dict() for name, verdict in audit.items()},
    }
    page = Page(
        "Private posterior probabilities and quantiles by parts",
        blocks(results, probabilities, quantiles, audit),
        lead=f"Amitai (2018): {sets} simulated data sets of {ROWS:,} rows, y = 1 + 2x + error.",
    )
    return Study(name="posterior", title=page.title, results=results, page=page)


def _simulate(rng: np.random.Generator, *, slope: float = SLOPE, deviation: float = 1.0) -> tuple[Matrix, Vector]:
    x, error = rng.standard_normal((2, ROWS))
    return np.column_stack([np.ones(ROWS), x]), 1 + slope * x + deviation * error


def _released(account: Account, epsilon: Fraction, draw: Any) -> Any:
    """What `draw` draws, for its price. The study measures how far off it is."""
    offer: Offer[None, None, Any] = Offer(
        guarantee=Guarantee(AnyRow(), Pure(epsilon), basis="proved"),
        details={},
        expected=lambda: SummaryErrors("Study", ROWS, 2, PARTS, "", ()),
        read=lambda nothing: nothing,
        draw=lambda nothing, source: draw(source),
    )
    return account.release(offer, None).value


def _probabilities(sets: int, rng: np.random.Generator, account: Account, tell: Any) -> dict[tuple[Any, ...], Answers]:
    """Answers by (method, calibration, M): one vector of cut-offs for each data set."""
    cuts, columns = SLOPE + DEVIATIONS / np.sqrt(ROWS), np.full(len(DEVIATIONS), COLUMN)
    amounts = [EPSILON] * len(cuts)
    best = int(min(Normality().best_parts(ROWS, 2, EPSILON), ROWS / 30))
    found: dict[tuple[Any, ...], Answers] = defaultdict(lambda: defaultdict(list))
    for i in range(sets):
        X, y = _simulate(rng)
        full = _posterior(GPrior(), partition(X, y, 1, rng), columns).cdf(cuts)[0]
        for M, ways in ((PARTS, METHODS), (best, {("normality", "tight"): Normality()})):
            within = _posterior(GPrior(), partition(X, y, M, rng), columns).cdf(cuts)
            for (method, calibration), way in ways.items():
                noisy = _released(
                    account,
                    EPSILON * len(cuts),
                    lambda source, way=way, within=within: way.noisy(within, amounts, source).value,
                )
                _add(found[method, calibration, M], full, way.exact(within), way.combine(noisy, M))
        tell((i + 1) / sets)
    return found


def _posterior(prior: Prior, parts: Parts, columns: Any) -> Any:
    return prior.posterior(parts, columns, share=1 / len(parts))


def _plans() -> dict[tuple[str, str, int], ClippedMean]:
    """The thesis's bounds and parts; then its bounds and a private centre with the number of parts best for that."""
    best = int(min(PRIVATE_CENTRE.best_parts(ROWS, 2, 2 * STAGE, Carried.supposed(1)), ROWS / 30))
    return {
        ("paper", "zero", FEW_PARTS): AROUND_ZERO,
        ("paper", "zero", best): AROUND_ZERO,
        ("tight", "private", best): PRIVATE_CENTRE.sold(best, 2 * STAGE, count=1),
    }


def _quantiles(sets: int, rng: np.random.Generator, account: Account, tell: Any) -> dict[tuple[Any, ...], Answers]:
    """Answers by (calibration, centre, M), with error variance 100 and a semi-conjugate prior."""
    columns, prior = np.full(len(LEVELS), COLUMN), SemiConjugate(variance=100.0)
    found: dict[tuple[Any, ...], Answers] = defaultdict(lambda: defaultdict(list))
    for i in range(sets):
        X, y = _simulate(rng, deviation=10.0)
        full = prior.posterior(partition(X, y, 1, rng), columns).quantile(LEVELS)[0]
        within = {
            M: prior.posterior(partition(X, y, M, rng), columns, power=M).quantile(LEVELS)
            for M in dict.fromkeys(key[2] for key in _plans())
        }
        for key, plan in _plans().items():
            clipped = _released(
                account,
                2 * STAGE * len(LEVELS),
                lambda source, plan=plan, values=within[key[2]]: [
                    plan.release(column, epsilon=2 * STAGE, source=source).mean for column in values.T
                ],
            )
            _add(found[key], full, within[key[2]].mean(axis=0), np.array(clipped))
        tell((i + 1) / sets)
    return found


def _gain(sets: int, rng: np.random.Generator, account: Account) -> list[dict[str, Any]]:
    """Laplace scales of both kinds of bounds, for the same parts and the same epsilon: medians over data sets."""
    best, deviation = list(_plans())[-1][2], 10.0
    scatter = deviation / np.sqrt(ROWS / best)  # of a slope in parts of that many rows
    scales: dict[tuple[float, str], list[float]] = defaultdict(list)
    for _ in range(sets):
        X, y = _simulate(rng, slope=0.0, deviation=deviation)
        for away in AWAY:
            parts = partition(X, y + away * scatter * X[:, COLUMN], best, rng)
            values = GPrior().posterior(parts, np.array([COLUMN]), power=best).quantile(np.full(1, 0.5))
            for centre, plan in (("zero", AROUND_ZERO), ("private", PRIVATE_CENTRE.sold(best, 2 * STAGE, count=1))):
                scale = _released(
                    account,
                    2 * STAGE,
                    lambda source, plan=plan, v=values[:, 0]: plan.release(v, epsilon=2 * STAGE, source=source).scale,
                )
                scales[away, centre].append(scale)
    rows = []
    for away in AWAY:
        zero, private = (float(np.median(scales[away, centre])) for centre in ("zero", "private"))
        rows.append(
            {
                "away": away,
                "quantile": away * scatter,
                "partitions": best,
                "zero": zero,
                "private_centre": private,
                "times_less": zero / private,
            }
        )
    return rows


def _coverage(sets: int, rng: np.random.Generator, tell: Any) -> list[dict[str, Any]]:
    """How often 95 % intervals contain the true slope, from all rows and from private answers."""
    hits: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for i in range(sets):
        X, y = _simulate(rng)
        full = GPrior().posterior(partition(X, y, 1, rng), np.full(2, COLUMN)).quantile(np.array([0.025, 0.975]))[0]
        private = posterior_interval("y ~ x", {"x": X[:, 1], "y": y}, "x", epsilon=2 * STAGE).value
        at, half = private.location[0], private.half_width[0]
        ends = {
            "full": tuple(full),
            "private, noise covered": (private.low[0], private.high[0]),
            "private, noise ignored": (at - half, at + half),
        }
        for name, (low, high) in ends.items():
            hits[name].append((low <= SLOPE <= high, (high - low) / 2))
        tell((i + 1) / sets)
    return [
        {
            "interval": name,
            "level": 0.95,
            "coverage": float(np.mean([hit for hit, _ in found])),
            "half_width": float(np.mean([half for _, half in found])),
            "epsilon": None if name == "full" else float(2 * STAGE),
        }
        for name, found in hits.items()
    ]


def _audit(seed: int) -> dict[str, AuditVerdict]:
    """The thesis's setting under attack: one row turns one of 1,000 probabilities from 1 to below the floor."""
    p = np.random.default_rng(seed).uniform(size=PARTS)
    a, b = np.append(p[1:], 1.0), np.append(p[1:], 0.0)
    source = SeededSource(seed)
    verdicts = {}
    for (method, calibration), way in METHODS.items():

        def draw(within: Vector, n: int, way: Combination = way) -> Vector:
            sizes = [len(part) for part in np.array_split(np.arange(n), -(-n // 500))]
            noisy = [way.noisy(np.tile(within[:, None], k), [EPSILON] * k, source).value for k in sizes]
            return way.combine(np.concatenate(noisy), PARTS)

        verdicts[f"{method}, {calibration}"] = blackbox(
            draw, a, b, claimed=EPSILON, trials=20_000, confidence=0.9999, many=True
        )
    return verdicts


def _add(answers: Answers, full: Vector, partitioned: Vector, private: Vector) -> None:
    for name, values in (("full", full), ("partitioned", partitioned), ("private", private)):
        answers[name].append(values)


def _rows(found: Mapping[tuple[Any, ...], Answers], at: Vector, names: Sequence[str]) -> list[dict[str, Any]]:
    """Means over data sets, one row for each setting and question, with the error of the private answers."""
    rows = []
    for key, answers in found.items():
        full, partitioned, private = (np.array(answers[name]) for name in ("full", "partitioned", "private"))
        for k, question in enumerate(at.tolist()):
            rows.append(
                {
                    **dict(zip(names, key, strict=True)),
                    "at": question,
                    "full": float(full[:, k].mean()),
                    "partitioned": float(partitioned[:, k].mean()),
                    "private": float(private[:, k].mean()),
                    "private_median": float(np.median(private[:, k])),
                    "rms_partitioned": float(np.sqrt(((partitioned - full)[:, k] ** 2).mean())),
                    "rms_private": float(np.sqrt(((private - full)[:, k] ** 2).mean())),
                }
            )
    return rows
