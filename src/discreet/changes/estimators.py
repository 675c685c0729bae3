"""The models as estimators with `fit` and `predict`, in scikit-learn's manner and without needing it.

Settings are constructor arguments; names of learned values end in an underscore. scikit-learn's `clone`, `Pipeline`,
`cross_val_score` and `GridSearchCV` take these classes unchanged, and its own checks pass (tests use version 1.9). It
is imported only when it calls them. `X` is (rows, columns) without a column of ones. Models of the ranking take the
large changes as `y` and the month of each row as `groups`, because cases are ranked only against their own month. With
scikit-learn's metadata routing a search passes `groups` on to them.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Mask, Matrix, Vector
from discreet.changes import pauc, regression
from discreet.changes.pairwise import rank_regression
from discreet.changes.power import power_regression
from discreet.changes.quantile import quantile_regression
from discreet.roc import curve as roc
from discreet.roc.curve import Range
from discreet.words.errors import FitError

Self = TypeVar("Self", bound="Estimator")


class Estimator:
    """Parameters in, coefficients out."""

    intercept_: float
    coef_: Vector
    n_features_in_: int

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def set_params(self: Self, **params: Any) -> Self:
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise FitError(
                    f"{type(self).__name__} has no parameter {name!r}.", f"It has: {', '.join(known)}.", about=name
                )
            setattr(self, name, value)
        return self

    def predict(self, X: ArrayLike) -> Vector:
        """The forecast or index of each row."""
        X = self._known(X)
        return np.asarray(X @ self.coef_ + self.intercept_)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """The share of the variance of y that the forecasts explain."""
        y = np.asarray(y, float)
        error, spread = ((y - self.predict(X)) ** 2).sum(), ((y - y.mean()) ** 2).sum()
        return float(1 - error / spread) if spread > 0 else 0.0

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags, Tags, TargetTags

        return Tags("regressor", TargetTags(required=True), None, None, RegressorTags())

    def get_metadata_routing(self) -> Any:
        """The arguments beside X and y that scikit-learn passes on to `fit` and `score`."""
        from sklearn.utils.metadata_routing import MetadataRequest

        return MetadataRequest(owner=self)

    def _known(self, X: ArrayLike) -> Matrix:
        if not hasattr(self, "coef_"):
            raise _not_fitted(f"{type(self).__name__} has not been fitted; call fit(X, y) first.")
        X = _table(X)
        if X.shape[1] != self.n_features_in_:
            raise FitError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input.",
                remedy="Give the columns that the model was fitted on.",
                about="X",
            )
        return X

    def _keep(self: Self, beta: Vector) -> Self:
        self.intercept_, self.coef_, self.n_features_in_ = float(beta[0]), beta[1:], len(beta) - 1
        return self


@dataclass
class OLS(Estimator):
    """Least squares."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> OLS:
        X, y = _rows(X, y)
        return self._keep(regression.least_squares(regression.moments(X[None], y[None]))[0])


@dataclass
class PowerLoss(Estimator):
    """Least sum of |e|^power: the minimum itself at 1, within some millionths of the loss elsewhere."""

    power: float = 2.0

    def fit(self, X: ArrayLike, y: ArrayLike) -> PowerLoss:
        if self.power == 1:
            return self._keep(quantile_regression(*_rows(X, y), 0.5)[0])
        return self._keep(power_regression(*_rows(X, y), self.power)[0])


@dataclass
class QuantileRegression(Estimator):
    """The conditional quantile `tau`."""

    tau: float = 0.5

    def fit(self, X: ArrayLike, y: ArrayLike) -> QuantileRegression:
        return self._keep(quantile_regression(*_rows(X, y), self.tau)[0])


@dataclass
class BayesianRegression(Estimator):
    """The `quantile` of synthetic outcomes from the posterior predictive distribution; `coef_` is the mean."""

    quantile: float = 0.5
    draws: int = 1000
    seed: int = 0

    def fit(self, X: ArrayLike, y: ArrayLike) -> BayesianRegression:
        X, y = _rows(X, y)
        beta, variance = regression.posterior_draws(
            regression.moments(X[None], y[None]), draws=self.draws, burn_in=self.draws, rng=self.seed
        )
        self.draws_, self.variances_ = beta[:, 0], variance[:, 0]
        return self._keep(self.draws_.mean(axis=0))

    def predict(self, X: ArrayLike) -> Vector:
        """The quantile of each row's synthetic outcomes; rows share the noise, so each row's stands by itself."""
        X = _with_ones(self._known(X))
        noise = np.random.default_rng(self.seed).normal(size=len(self.variances_)) * np.sqrt(self.variances_)
        return np.asarray(np.quantile(X @ self.draws_.T + noise, self.quantile, axis=1))


class Ranking(Estimator):
    """An index whose order matters, fitted to the large changes of each month."""

    fpr: Range

    def decision_function(self, X: ArrayLike) -> Vector:
        """The index of each row, by the name that scikit-learn's measures of rankings ask for."""
        return self.predict(X)

    def score(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> float:
        """The partial area of the index over the range of false positive rates, months pooled."""
        return float(roc.partial_auc(_large(np.asarray(y, float)), self.predict(X), fpr=self.fpr))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(None, TargetTags(required=True), None, ClassifierTags(multi_class=False), None)

    def get_metadata_routing(self) -> Any:
        request = super().get_metadata_routing()
        for method in (request.fit, request.score):
            method.add_request(param="groups", alias=True)
        return request


@dataclass
class PAUCMaximiser(Ranking):
    """The paper's PMF: each month's PAUC optimum, exponentially smoothed over months."""

    learning_rate: float = 0.1
    fpr: Range = (0.0, 0.2)
    evaluations: int = pauc.EVALUATIONS

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> PAUCMaximiser:
        X, y = _rows(X, y)
        optima = [
            pauc.monthly_optima(X[None, rows], positive[None], fpr=self.fpr, evaluations=self.evaluations)[0]
            for rows, positive in _months(y, groups)
        ]
        return self._keep(pauc.smoothed(np.stack(optima), self.learning_rate)[0, -1])


@dataclass
class PairwiseRanking(Ranking):
    """Logistic ranking of every positive against the negatives of its month, all months pooled; `fpr` only scores."""

    penalty: float = 0.01
    fpr: Range = (0.0, 0.2)

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> PairwiseRanking:
        X, y = _rows(X, y)
        months = [(X[rows], positive) for rows, positive in _months(y, groups)]
        widest = max(len(rows) for rows, _ in months)
        if any(len(rows) != widest for rows, _ in months):
            raise FitError(
                "Months differ in their number of rows.", remedy="Give every month the same series.", about="groups"
            )
        design, positive = np.stack([rows for rows, _ in months]), np.stack([found for _, found in months])
        return self._keep(rank_regression(design, positive, penalty=self.penalty))


def _rows(X: ArrayLike, y: ArrayLike) -> tuple[Matrix, Vector]:
    if y is None:
        raise FitError(
            "The model requires y to be passed, but the target y is None.", remedy="Give the outcomes.", about="y"
        )
    X, y = _table(X), np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        _warn_of_a_column()
        y = y[:, 0]
    y = _numbers(y, about="y")
    if y.shape != X.shape[:1]:
        raise FitError(
            f"X of shape {X.shape} and y of shape {y.shape} do not fit.",
            remedy="Give (rows, columns) and (rows,).",
            about="X",
        )
    if len(y) <= X.shape[1]:
        raise FitError(
            f"n_samples = {len(y)} rows do not determine {X.shape[1] + 1} coefficients.",
            remedy="Add rows or drop columns.",
            about="X",
        )
    return _with_ones(X), y


def _table(X: ArrayLike) -> Matrix:
    """X as a table of finite numbers, or what it is instead."""
    if hasattr(X, "toarray"):
        raise FitError("Sparse input is not supported.", remedy="Give a dense table, such as X.toarray().", about="X")
    X = _numbers(X, about="X")
    if X.ndim != 2:
        raise FitError(
            f"X has shape {X.shape}, and a table has two.", remedy="Reshape your data to (rows, columns).", about="X"
        )
    for found, what in zip(X.shape, ("sample(s)", "feature(s)"), strict=True):
        if not found:
            raise FitError(f"X has 0 {what} (shape={X.shape}) while a minimum of 1 is required.", about="X")
    return X


def _numbers(values: ArrayLike, *, about: str) -> np.ndarray:
    array = np.asarray(values)
    if np.iscomplexobj(array):
        raise FitError("Complex data not supported.", remedy="Give real numbers.", about=about)
    array = array.astype(float)
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise FitError(
            f"{bad} values of {about} are missing or infinite (NaN, inf).",
            remedy="Fill them or leave their rows out.",
            about="X",
        )
    return array


def _not_fitted(text: str) -> FitError:
    """A refusal that scikit-learn knows as its own, if it is there."""
    if "sklearn" not in sys.modules:
        return FitError(text, about="fit")
    from sklearn.exceptions import NotFittedError

    kind: type[FitError] = type("NotFitted", (FitError, NotFittedError), {})
    return kind(text, about="fit")


def _warn_of_a_column() -> None:
    """scikit-learn's warning about a y with one column, if it is installed."""
    if "sklearn" in sys.modules:
        from sklearn.exceptions import DataConversionWarning

        text = "A column-vector y was passed when a 1d array was expected; use y.ravel()."
        warnings.warn(text, DataConversionWarning, stacklevel=4)


def _with_ones(X: Matrix) -> Matrix:
    return np.column_stack([np.ones(len(X)), X])


def _months(y: Vector, groups: ArrayLike | None) -> list[tuple[np.ndarray, Mask]]:
    """Row numbers and large changes of each month, in order of time."""
    labels = np.zeros(len(y)) if groups is None else np.asarray(groups)
    if len(labels) != len(y):
        raise FitError(
            f"{len(labels)} groups were given for {len(y)} rows.", "A ranking model needs the month of each.", about="y"
        )
    large = _large(y)
    _, code = np.unique(labels, return_inverse=True)
    return [(rows := np.flatnonzero(code == month), large[rows]) for month in range(code.max() + 1)]


def _large(y: Vector) -> Mask:
    """Large changes: the larger of two values, as scikit-learn counts classes; 0 and 1 as a rule."""
    kinds = np.unique(y)
    if len(kinds) > 2 or (len(kinds) == 1 and kinds[0] not in (0, 1)):
        raise FitError(
            f"A ranking model needs y of two values, such as 0 and 1, and has {len(kinds)} class or value(s).",
            "Mark the large changes first.",
            about="y",
        )
    return np.asarray(y == kinds[-1]) if len(kinds) == 2 else np.asarray(y > 0)
