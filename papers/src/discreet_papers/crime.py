"""Models fitted to large changes in crime counts: chapter 2 of the Dissertation.

Tables 2.1 to 2.4 and Figures 2.1 and 2.2 on simulated panels of the paper's shape, with the paper's values beside ours.
The generator `simulate.crime` was fixed by Table 2.1 and by leading indicators, before any model was run on it. If a
file of real Pittsburgh data is given, the same is done on it. PMF is compared with OLS as a range over cities, windows
and smoothing constants. docs/explanation/large-changes.md has the results, good or bad, and the reasons.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.changes import families, rolling
from discreet.pages.page import Page
from discreet.pages.study import Study
from discreet.roc import curve as roc
from discreet.roc.bootstrap import replicate
from discreet.simulate import crime
from discreet.words.progress import Progress, silent
from discreet_papers import cities, crime_page
from discreet_papers.cities import FILE as FILE
from discreet_papers.cities import WHERE, Panel, read
from discreet_papers.crime_trials import FPR, LAGS, Trial, advantage, fitted, trials

PANELS, WORKERS = 20, 2
LEADLESS = replace(crime.SHAPE, follow=0.0)
INDICATORS = ("drugs", "shots", "assaults")
FIVE = ("PMF", "Quantile", "Power", "Bayesian", "OLS")
PAPER = {
    "PMF": (0.0359, None, None, 0.0551),
    "Quantile": (0.0297, 1.74, 0.041, 0.0241),
    "Power": (0.0285, 2.05, 0.020, 0.0250),
    "Bayesian": (0.0283, 2.04, 0.021, 0.0256),
    "OLS": (0.0266, 2.51, 0.006, 0.0248),
}
"""Tables 2.3 and 2.4: PAUC, test statistic and p of PMF against the model, correlation with the gold standard."""

CHOSEN = {"Power": 0.68, "Quantile": 0.08}
"""Section 2.5: metaparameters chosen in training; the paper gives no others."""

SUMMARY = {
    "violent": (0, 0, 1.2, 1.9, 29),
    "drugs": (0, 0, 1.9, 4.3, 71),
    "shots": (0, 1, 1.6, 3.3, 50),
    "assaults": (0, 3, 3.8, 4.2, 42),
    "a low-crime tract": (0, 0, 0.6, 0.9, 4),
    "a high-crime tract": (2, 7, 7.7, 3.5, 20),
}
"""Table 2.1: minimum, median, mean, standard deviation, maximum; the tracts are 404 and 1115."""


@dataclass(frozen=True, slots=True)
class PanelScores:
    """What the models did on one panel.

    Attributes
    ----------
    fits : the five models on the indicators as they are.
    further : models on standardised indicators, and a score without any indicator.
    """

    fits: dict[str, rolling.Rolled]
    further: dict[str, rolling.Rolled]
    positive: np.ndarray

    def areas(self) -> dict[str, float]:
        models = {**self.fits, **self.further}
        return {name: float(roc.partial_auc(self.positive, fit.scores.ravel())) for name, fit in models.items()}


@dataclass(frozen=True, slots=True)
class Job:
    """One panel, or the seed of a simulated one, with the schedule and the size of the grids."""

    panel: Panel | int
    schedule: rolling.Schedule
    points: int

    def run(self) -> PanelScores:
        panel = simulated(self.panel) if isinstance(self.panel, int) else self.panel
        return forecast(panel, self.schedule, points=self.points)


def run(*, quick: bool = False, data: Path | None = None, seed: int = 0, progress: Progress = silent) -> Study:
    """Run the five models, and ours, on simulated panels and on the real one if `data` is given.

    The first panel uses the paper's grids of 101 values and the others 21. `quick`: one panel, 11 values, 24 test
    months.
    """
    real = read(data) if data is not None else None
    schedule = rolling.Schedule(train=12, test=24) if quick else rolling.Schedule()
    points = 11 if quick else 101
    first_panel = simulated(seed)
    jobs = [Job(first_panel, schedule, points)]
    if real is not None:
        jobs.append(Job(real, fitted(real, schedule), points))
    main = len(jobs)
    jobs += [Job(seed + k, schedule, 21) for k in range(1, 1 if quick else PANELS)]
    places = {} if data is None else cities.further(data)
    others = [] if quick else [Job(panel, fitted(panel, rolling.Schedule()), 21) for panel in places.values()]
    if real is not None:
        places = {"Pittsburgh, violence": real} | places
    places |= {"simulated": first_panel, "simulated, nothing leads": simulated(seed, shape=LEADLESS)}
    tried = [trial for city, panel in places.items() for trial in trials(city, panel, quick=quick)]
    made = _carried_out([*jobs, *others, *tried], progress)
    first, rest = made[0], made[1 : len(jobs)]
    range_ = [row for rows in made[len(jobs) + len(others) :] for row in rows]
    progress("testing", 0.96)
    resamples = 200 if quick else 1000
    results = {
        "panels": 1 + len(jobs) - main,
        "schedule": schedule,
        "summary": _summary(first_panel),
        **_tested(first, resamples=resamples, seed=seed),
        "over_panels": _over_panels([outcome.areas() for outcome in (first, *rest[main - 1 :])]),
        "tract_ranks": tract_ranks(first_panel, first, schedule),
        "advantage": advantage(range_),
        "trials": range_,
        "cities": [
            {"city": city, **{name: outcome.areas()[name] for name in FIVE}}
            for city, outcome in zip(
                [name for name in places if name in cities.FURTHER],
                made[len(jobs) : len(jobs) + len(others)],
                strict=False,
            )
        ],
        "real": None
        if real is None
        else {
            "schedule": jobs[1].schedule,
            "tracts": real.y.shape[1],
            **_tested(rest[0], resamples=resamples, seed=seed),
        },
    }
    page = Page(
        "Models fitted to large changes: crime counts by census tract",
        crime_page.blocks(
            results,
            schedule=schedule,
            curves=_curves(first),
            tracts=_tracts(first_panel, schedule),
            where=WHERE,
        ),
        lead="Dissertation, chapter 2: five models re-estimated monthly, judged by the partial area under the ROC "
        "curve; simulated panels of the paper's shape" + (", and real Pittsburgh counts." if real is not None else "."),
    )
    return Study(name="crime", title=page.title, results=results, page=page)


def simulated(seed: int, *, shape: crime.CityShape = crime.SHAPE) -> Panel:
    """A panel of the paper's shape."""
    ((_, batch),) = crime.batches(seed=seed, shape=shape)
    counts = {
        name: np.asarray(batch[name], float).reshape(crime.SHAPE.tracts, crime.SHAPE.months).T
        for name in ("violent", *INDICATORS)
    }
    return Panel(counts["violent"], np.stack([counts[name] for name in INDICATORS], axis=2), INDICATORS)


def forecast(panel: Panel, schedule: rolling.Schedule, *, points: int) -> PanelScores:
    """All models on one panel, grids of `points` values."""
    unit = np.linspace(0, 1, points)
    plain = rolling.months(panel.y, panel.indicators, lags=LAGS)
    standard = rolling.months(panel.y, panel.indicators, lags=LAGS, standardise=True)
    pmf = families.Pmf(grid=unit, fpr=FPR)
    models: list[rolling.ForecastFamily] = [
        pmf,
        families.Quantile(grid=unit),
        families.Power(grid=4 * unit),
        families.Bayesian(grid=unit),
        families.LeastSquares(),
    ]
    further: list[tuple[str, rolling.ForecastFamily, rolling.MonthlyPanel]] = [
        ("PMF started from counts", replace(pmf, explain_outcome=True), plain),
        ("PMF, standardised", pmf, standard),
        ("OLS, standardised", families.LeastSquares(), standard),
        ("Pairwise, standardised", families.Pairwise(grid=np.geomspace(1e-4, 1, min(points, 13))), standard),
    ]
    level = -plain.mean[schedule.testing]
    fits = {model.name: rolling.roll(model, plain, schedule, fpr=FPR) for model in models}
    more = {name: rolling.roll(model, months, schedule, fpr=FPR) for name, model, months in further}
    more["no indicator: minus the mean"] = rolling.Rolled("level", np.nan, np.array([np.nan]), level, level)
    return PanelScores(fits, more, plain.positive[schedule.testing].ravel())


def _carried_out(jobs: Sequence[Job | Trial], progress: Progress) -> list[Any]:
    """Carry out the jobs, two at a time, each on one core.

    Linear algebra on many threads wastes most of two busy cores on waiting, so the workers are told to use one.
    """
    with _single_threaded(), ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        done = []
        for outcome in pool.map(_run, jobs):
            done.append(outcome)
            progress(f"{len(done)} of {len(jobs)} panels forecast", 0.05 + 0.9 * len(done) / len(jobs))
        return done


def _run(job: Job | Trial) -> Any:
    return job.run()


@contextmanager
def _single_threaded() -> Iterator[None]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _summary(panel: Panel) -> list[dict[str, Any]]:
    """Table 2.1; the two tracts are those whose means are nearest to the paper's."""
    columns = {"violent": panel.y, **{name: panel.indicators[:, :, k] for k, name in enumerate(panel.names)}}
    for name, k in zip(("a low-crime tract", "a high-crime tract"), _two_tracts(panel.y), strict=True):
        columns[name] = panel.y[:, k]
    return [
        {
            "series": name,
            **{
                measure: float(value)
                for measure, value in zip(
                    ("min", "median", "mean", "sd", "max"),
                    (x.min(), np.median(x), x.mean(), x.std(ddof=1), x.max()),
                    strict=True,
                )
            },
            **{f"paper's {m}": v for m, v in zip(("min", "median", "mean", "sd", "max"), SUMMARY[name], strict=True)},
        }
        for name, x in columns.items()
    ]


def _two_tracts(y: Matrix) -> tuple[int, int]:
    low, high = (
        int(np.argmin(np.abs(y.mean(axis=0) - SUMMARY[f"a {kind}-crime tract"][2]))) for kind in ("low", "high")
    )
    return low, high


def _tested(outcome: PanelScores, *, resamples: int, seed: int) -> dict[str, Any]:
    """PAUC of every model, PMF tested against it, correlation with the gold standard, metaparameters."""
    fits = {**outcome.fits, **outcome.further}
    names = list(fits)
    scores = np.stack([fit.scores.ravel() for fit in fits.values()])
    drawn = replicate(outcome.positive, scores, fpr=FPR, resamples=resamples, rng=seed)
    rows = []
    for k, name in enumerate(names):
        z, p = drawn.test(0, k) if k else (None, None)
        paper = PAPER.get(name, (None, None, None, None))
        rows.append(
            {
                "model": name,
                "pauc": float(drawn.area[k]),
                "statistic": z,
                "p_vs_pmf": p,
                "improvement": float(drawn.area[0] / drawn.area[k] - 1) if k else None,
                "paper": paper[0],
                "paper_p": paper[2],
            }
        )
    return {
        "pauc": rows[: len(outcome.fits)],
        "further": rows[len(outcome.fits) :],
        "metaparameters": [
            {
                "model": name,
                "chosen": fit.value,
                "training_pauc": float(fit.training.max()),
                "paper": CHOSEN.get(name),
            }
            for name, fit in fits.items()
            if np.isfinite(fit.value)
        ],
        "correlation": [
            {"model": name, **_correlation(outcome.positive, fits[name].scores.ravel()), "paper": PAPER[name][3]}
            for name in FIVE
        ],
    }


def _correlation(positive: np.ndarray, score: Vector) -> dict[str, float]:
    from scipy.stats import pearsonr

    found = pearsonr(score, positive)
    return {"correlation": float(found.statistic), "p": float(found.pvalue)}


def _over_panels(merged: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    """Mean and spread of each model's PAUC, and in how many panels it beats OLS."""
    rows = []
    for name in merged[0]:
        areas = np.array([panel[name] for panel in merged])
        baseline = np.array([panel["OLS"] for panel in merged])
        rows.append(
            {
                "model": name,
                "mean": float(areas.mean()),
                "sd": float(areas.std(ddof=1)) if len(areas) > 1 else None,
                "over OLS": float((areas / baseline).mean() - 1),
                "panels above OLS": int((areas > baseline).sum()),
                "paper": PAPER[name][0] if name in PAPER else None,
                "paper over OLS": PAPER[name][0] / PAPER["OLS"][0] - 1 if name in PAPER else None,
            }
        )
    return rows


def tract_ranks(panel: Panel, outcome: PanelScores, schedule: rolling.Schedule) -> list[dict[str, Any]]:
    """Ranks of the large increases of two tracts among all test months of the tract, by PMF and least squares."""
    rows = []
    truth = outcome.positive.reshape(-1, panel.y.shape[1])
    for kind, k in zip(("low-crime tract", "high-crime tract"), _two_tracts(panel.y), strict=True):
        places = {name: 1 + np.argsort(np.argsort(-outcome.fits[name].scores[:, k])) for name in ("PMF", "OLS")}
        rows += [
            {"tract": kind, "month": int(t) + 1, **{f"{name} rank": int(found[t]) for name, found in places.items()}}
            for t in np.flatnonzero(truth[:, k])
        ]
    return rows


def _curves(outcome: PanelScores) -> list[dict[str, Any]]:
    """Points of Figure 2.1."""
    rows = []
    for name in FIVE:
        smooth = roc.binormal(roc.curve(outcome.positive, outcome.fits[name].scores.ravel()), points=41, fpr=FPR)
        rows += [{"model": name, "fpr": float(x), "tpr": float(y)} for x, y in zip(smooth.fpr, smooth.tpr, strict=True)]
    return rows


def _tracts(panel: Panel, schedule: rolling.Schedule) -> list[dict[str, Any]]:
    """Counts of Figure 2.2."""
    data = rolling.months(panel.y, panel.indicators, lags=LAGS)
    return [
        {"tract": kind, "month": month, "crimes": float(data.y[t, k]), "positive": bool(data.positive[t, k])}
        for kind, k in zip(("low-crime tract", "high-crime tract"), _two_tracts(panel.y), strict=True)
        for month, t in enumerate(schedule.testing, start=1)
    ]
