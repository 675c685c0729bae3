"""The models of rolling forecasts, each over a grid of its metaparameter.

Five are the paper's (section 2.3): least squares, power loss, quantile regression, Bayesian predictive quantiles and
PAUC maximisation (PMF); ranking by pairs is ours. Each `forecast` obeys one rule: month t uses outcomes before t.
The arithmetic is in `regression`, `power`, `quantile`, `pauc` and `pairwise`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.changes import pauc, power, quantile, regression
from discreet.changes.pairwise import rank_regression
from discreet.changes.rolling import MonthlyPanel
from discreet.roc.curve import Range


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """OLS on all months so far; no metaparameter."""

    name: str = "OLS"
    metaparameter: str = ""
    grid: Vector = field(default_factory=lambda: np.array([np.nan]))
    magnitude: bool = True

    def forecast(self, data: MonthlyPanel, months: range, values: Vector) -> Matrix:
        known = slice(0, months.stop - 1)
        beta = regression.least_squares(regression.moments(data.X[known], data.y[known]))
        beta = beta[months.start - 1 :, :, None]
        return np.asarray((data.X[months] @ beta)[None, :, :, 0])


@dataclass(frozen=True, slots=True)
class Bayesian:
    """Quantiles of the posterior predictive distribution."""

    name: str = "Bayesian"
    metaparameter: str = "quantile"
    grid: Vector = field(default_factory=lambda: np.linspace(0, 1, 101))
    magnitude: bool = True
    draws: int = 1000
    seed: int = 0

    def forecast(self, data: MonthlyPanel, months: range, values: Vector) -> Matrix:
        known = slice(0, months.stop - 1)
        m = regression.moments(data.X[known], data.y[known]).after(slice(months.start - 1, months.stop - 1))
        beta, variance = regression.posterior_draws(m, draws=self.draws, burn_in=self.draws, rng=self.seed)
        return np.stack(
            [
                regression.predictive_quantiles(data.X[t], beta[:, k], variance[:, k], values, rng=self.seed + t)
                for k, t in enumerate(months)
            ],
            axis=1,
        )


@dataclass(frozen=True, slots=True)
class Quantile:
    """Quantile regression on all months so far; the ends of the grid are moved inside (0, 1)."""

    name: str = "Quantile"
    metaparameter: str = "tau"
    grid: Vector = field(default_factory=lambda: np.linspace(0, 1, 101))
    magnitude: bool = True

    def forecast(self, data: MonthlyPanel, months: range, values: Vector) -> Matrix:
        inside = np.clip(values, 1e-3, 1 - 1e-3)
        beta: Matrix | None = None
        forecasts = []
        for t, (X, y) in zip(months, _histories(data, months), strict=True):
            beta = quantile.quantile_regression(X, y, inside, start=beta)
            forecasts.append(beta @ data.X[t].T)
        return np.stack(forecasts, axis=1)


@dataclass(frozen=True, slots=True)
class Power:
    """Regression under |e|^p on all months so far."""

    name: str = "Power"
    metaparameter: str = "p"
    grid: Vector = field(default_factory=lambda: np.linspace(0, 4, 101))
    magnitude: bool = True

    def forecast(self, data: MonthlyPanel, months: range, values: Vector) -> Matrix:
        products = power.pairwise_products(data.X[: months.stop - 1].reshape(-1, data.X.shape[2]))
        beta: Matrix | None = None
        forecasts = []
        for t, (X, y) in zip(months, _histories(data, months), strict=True):
            beta = power.power_regression(X, y, values, start=beta, products=products[: len(y)])
            forecasts.append(beta @ data.X[t].T)
        return np.stack(forecasts, axis=1)


@dataclass(frozen=True, slots=True)
class Pmf:
    """The paper's PAUC maximisation forecast: monthly optima, exponentially smoothed.

    `explain_outcome` starts the simplex from least squares of the outcome instead of the large changes.
    """

    name: str = "PMF"
    metaparameter: str = "lambda"
    grid: Vector = field(default_factory=lambda: np.linspace(0, 1, 101))
    magnitude: bool = False
    fpr: Range = (0.0, 0.2)
    evaluations: int = pauc.EVALUATIONS
    explain_outcome: bool = False

    def forecast(self, data: MonthlyPanel, months: range, values: Vector) -> Matrix:
        known = slice(0, months.stop - 1)
        optima = pauc.monthly_optima(
            data.X[known],
            data.positive[known],
            explain=data.y[known] if self.explain_outcome else None,
            fpr=self.fpr,
            evaluations=self.evaluations,
        )
        path = pauc.smoothed(optima, values)[:, months.start - 1 :]
        return np.asarray(np.einsum("tni,vti->vtn", data.X[months], path))


@dataclass(frozen=True, slots=True)
class Pairwise:
    """Ranking by pairs on all months so far."""

    name: str = "Pairwise"
    metaparameter: str = "penalty"
    grid: Vector = field(default_factory=lambda: np.geomspace(1e-4, 1, 13))
    magnitude: bool = False

    def forecast(self, data: MonthlyPanel, months: range, values: Vector) -> Matrix:
        forecasts = np.empty((len(values), len(months), data.y.shape[1]))
        for v, penalty in enumerate(values):
            beta = None
            for k, t in enumerate(months):
                beta = rank_regression(data.X[:t], data.positive[:t], penalty=float(penalty), start=beta)
                forecasts[v, k] = data.X[t] @ beta
        return forecasts


def _histories(data: MonthlyPanel, months: range) -> Iterator[tuple[Matrix, Vector]]:
    """The rows before each month, stacked."""
    X, y = data.X.reshape(-1, data.X.shape[2]), data.y.ravel()
    for t in months:
        rows = t * data.y.shape[1]
        yield X[:rows], y[:rows]
