"""Rolling horizons: every model re-estimated every month, its metaparameter chosen before the test begins.

Months are split into initialisation (estimation only), training (the metaparameter with the largest partial area of
out-of-sample forecasts), burn-in and test. A forecast of month t sees the outcomes of months before t and the
indicators known before t. Models that forecast counts are standardised by the smoothed Poisson mean before ranking, as
the outcomes were; index models are ranked unchanged. All forecasts of a span make one ROC curve. The models are in
`families`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.arrays import Mask, Matrix, Vector
from discreet.changes import standards
from discreet.roc import curve as roc
from discreet.roc.curve import Range
from discreet.words.errors import DataError


@dataclass(frozen=True, slots=True)
class MonthlyPanel:
    """A panel in months.

    Attributes
    ----------
    y : outcomes, shape (months, series).
    X : what is known before each month, with a leading column of ones, shape (months, series, columns).
    mean : smoothed mean of the counts before each month, the shape of y.
    positive : the large changes.
    standardised : whether y is in standard deviations already; forecasts of it are then alarm scores.
    """

    y: Matrix
    X: Matrix
    mean: Matrix
    positive: Mask
    standardised: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """Numbers of months, in order."""

    initialise: int = 44
    train: int = 24
    burn_in: int = 12
    test: int = 60

    @property
    def total(self) -> int:
        return self.initialise + self.train + self.burn_in + self.test

    @property
    def training(self) -> range:
        return range(self.initialise, self.initialise + self.train)

    @property
    def testing(self) -> range:
        return range(self.total - self.test, self.total)


class ForecastFamily(Protocol):
    """A family of forecasts, one member per value of a metaparameter."""

    @property
    def name(self) -> str: ...
    @property
    def metaparameter(self) -> str: ...
    @property
    def grid(self) -> Vector: ...
    @property
    def magnitude(self) -> bool:
        """Whether forecasts are counts, to be standardised before ranking."""
        ...

    def forecast(self, data: MonthlyPanel, months: range, values: Vector) -> Matrix:
        """Forecasts of `months` by the members at `values`, shape (values, months, series)."""
        ...


@dataclass(frozen=True, slots=True)
class Rolled:
    """A model's choice in training and its forecasts in the test.

    Attributes
    ----------
    value : the metaparameter chosen, NaN for a model without one.
    training : partial area in training at every grid value.
    scores : alarm scores of the test months, shape (months, series).
    forecasts : the same before standardisation.
    """

    name: str
    value: float
    training: Vector
    scores: Matrix
    forecasts: Matrix


def months(
    y: Matrix,
    indicators: Matrix,
    *,
    lags: Sequence[int] = (1, 2, 3, 4),
    top: int = 5,
    smoothing: float = 0.05,
    start: int = 12,
    standardise: bool = False,
) -> MonthlyPanel:
    """A panel with lagged indicators, shape (months, series, indicators), and the cross-sectional gold standard.

    `standardise` treats the indicators as the gold standard treats the outcome: each in Poisson deviations from its own
    smoothed mean. The outcome becomes its standardised value, and two columns give the level of the series.
    """
    first = max(lags)
    if indicators.shape[:2] != y.shape or min(lags) < 1 or first >= len(y):
        raise DataError(
            f"Outcomes of shape {y.shape}, indicators of shape {indicators.shape} and lags {tuple(lags)} do not fit.",
            remedy="Give the same months and series, and lags of at least 1 that are shorter than the panel.",
            about="indicators",
        )
    y, indicators = y.astype(float), indicators.astype(float)
    mean = standards.smoothed_mean(y, smoothing=smoothing, start=start)
    score = standards.poisson_standardise(y, mean)
    if standardise:
        flat = indicators.reshape(len(y), -1)
        own = standards.smoothed_mean(flat, smoothing=smoothing, start=start)
        indicators = standards.poisson_standardise(flat, own).reshape(indicators.shape)
    known = [np.ones((*y.shape, 1))[first:], *(indicators[first - lag : len(y) - lag] for lag in lags)]
    if standardise:
        known += [np.log(mean)[first:, :, None], np.sqrt(mean)[first:, :, None]]
    return MonthlyPanel(
        y=(score if standardise else y)[first:],
        X=np.concatenate(known, axis=2),
        mean=mean[first:],
        positive=standards.top_of_each_month(score, top=top)[first:],
        standardised=standardise,
    )


def roll(model: ForecastFamily, data: MonthlyPanel, schedule: Schedule, *, fpr: Range = (0.0, 0.2)) -> Rolled:
    """Choose the metaparameter in training, then forecast the test months."""
    if len(data.y) < schedule.total:
        raise DataError(
            f"The schedule needs {schedule.total} months after the lags and the panel has {len(data.y)}.",
            remedy="Shorten the test or the initialisation.",
            about="schedule",
        )
    truth = data.positive[schedule.training].ravel()
    tried = ranked(model, data, schedule.training, model.forecast(data, schedule.training, model.grid))
    areas = np.array([roc.partial_auc(truth, row.ravel(), fpr=fpr) for row in tried])
    best = int(np.argmax(areas))
    forecasts = model.forecast(data, schedule.testing, model.grid[best : best + 1])
    return Rolled(
        name=model.name,
        value=float(model.grid[best]),
        training=areas,
        scores=ranked(model, data, schedule.testing, forecasts)[0],
        forecasts=forecasts[0],
    )


def ranked(model: ForecastFamily, data: MonthlyPanel, span: range, forecasts: Matrix) -> Matrix:
    """Forecasts as alarm scores."""
    if data.standardised or not model.magnitude:
        return forecasts
    return standards.poisson_standardise(forecasts, data.mean[span])
