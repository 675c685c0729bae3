"""PMF and least squares under choices that the paper leaves open: window, and constant and start of the smoothed mean.

One figure for "how much better is PMF" depends on these choices, so the crime study gives a range over them and over
cities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Matrix
from discreet.changes import families, pauc, rolling
from discreet.roc import curve as roc
from discreet_papers.cities import Panel

FPR = (0.0, 0.2)
LAGS = (1, 2, 3, 4)
SMOOTHING = (0.02, 0.05, 0.1)


@dataclass(frozen=True, slots=True)
class Trial:
    """PMF and OLS under one of the choices that the paper leaves open, in several windows.

    Attributes
    ----------
    windows : schedules by the names of their test months.
    smoothing, start : of the smoothed mean that standardises counts.
    points : values of PMF's learning rate.
    """

    city: str
    panel: Panel
    windows: Mapping[str, rolling.Schedule]
    smoothing: float
    start: int
    points: int = 11

    def run(self) -> list[dict[str, Any]]:
        months = rolling.months(
            self.panel.y, self.panel.indicators, lags=LAGS, smoothing=self.smoothing, start=self.start
        )
        optima = pauc.monthly_optima(months.X[:-1], months.positive[:-1], fpr=FPR)  # once for all windows
        path = pauc.smoothed(optima, np.linspace(0, 1, self.points))
        index = np.concatenate(
            [np.zeros((self.points, 1, months.y.shape[1])), np.einsum("tni,vti->vtn", months.X[1:], path)], 1
        )
        rows = []
        for window, schedule in self.windows.items():
            best = int(np.argmax([_area(months, schedule.training, score) for score in index]))
            pmf = _area(months, schedule.testing, index[best])
            least = rolling.roll(families.LeastSquares(), months, schedule, fpr=FPR).scores
            ols = float(roc.partial_auc(months.positive[schedule.testing].ravel(), least.ravel(), fpr=FPR))
            choice = {"city": self.city, "window": window, "smoothing": self.smoothing, "start": self.start}
            rows.append({**choice, "PMF": pmf, "OLS": ols, "PMF over OLS": pmf / ols - 1})
        return rows


def _area(months: rolling.MonthlyPanel, span: range, score: Matrix) -> float:
    return float(roc.partial_auc(months.positive[span].ravel(), score[span].ravel(), fpr=FPR))


def trials(city: str, panel: Panel, *, quick: bool = False) -> list[Trial]:
    """Constants and first months of the smoothed mean, each in an early and a late window; `quick`: one start."""
    late = fitted(panel, rolling.Schedule(train=12 if quick else 24))
    windows = {"early": rolling.Schedule(initialise=24, train=24, burn_in=0, test=36), "late": late}
    settings = [(a, b) for a in SMOOTHING for b in ((12,) if quick else (12, 24))]
    return [Trial(city, panel, windows, smoothing, start) for smoothing, start in settings]


def fitted(panel: Panel, schedule: rolling.Schedule) -> rolling.Schedule:
    """The schedule with as many test months as the panel has."""
    spare = len(panel.y) - max(LAGS) - (schedule.total - schedule.test)
    return replace(schedule, test=min(schedule.test, spare))


def advantage(tried: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """PMF over OLS as a range: the least, the median and the most of each city's trials, and how often PMF is ahead."""
    rows = []
    for city in dict.fromkeys(trial["city"] for trial in tried):
        over = np.array([trial["PMF over OLS"] for trial in tried if trial["city"] == city])
        low, middle, high = np.quantile(over, [0, 0.5, 1]).tolist()
        rows.append(
            {
                "city": city,
                "least": low,
                "median": middle,
                "most": high,
                "ahead": int((over > 0).sum()),
                "of": len(over),
            }
        )
    return rows
