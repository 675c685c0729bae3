"""Intervals of fixed effects and of predictions: the doors to `inference`, `bootstrap` and `prediction`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear import bootstrap, inference
from discreet.models.linear.evaluations import counted
from discreet.models.linear.likelihood_fit import one_of
from discreet.models.linear.matrix import linear, place_rows, random_part
from discreet.models.linear.offsets import offset_of
from discreet.models.linear.prediction import marginal_variances, random_variances, variances
from discreet.results import Result, tidy_table
from discreet.words.cases import case_of
from discreet.words.errors import DataError, FitError
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    from discreet.models.linear.fit import MixedFit

MOST_REPLICATES = 1_000_000  # of a bootstrap
METHODS = ("wald", "satterthwaite", "profile", "parametric", "residual")
Method = Literal["wald", "satterthwaite", "profile", "parametric", "residual"]


def confint(
    fit: MixedFit,
    *,
    method: Method = "profile",
    level: float = 0.95,
    replicates: int = 999,
    group: str | None = None,
    seed: int | np.random.Generator | None = None,
    progress: Progress = silent,
) -> dict[str, tuple[float, float]]:
    """Intervals of the fixed effects.

    Parameters
    ----------
    fit : of `dc.mixed`.
    method : "profile" (lme4's confint), "wald" (normal), "satterthwaite" (lmerTest's), "parametric" (responses drawn
        from the model, quantiles of refits) or "residual" (residuals change sign by group). "residual" is valid if
        variances differ between rows and groups, or if rows of a group have correlations that the model does not
        include, such as slopes of their own; the others suppose one variance and one slope, as lme4's do.
        Satterthwaite's degrees of freedom are known for residuals of one variance only.
    level : of the intervals.
    replicates, seed : of both bootstraps.
    group : the grouping factor by which signs change; by default the one with the fewest levels.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    Lower and upper ends by name.
    """
    from scipy.stats import norm

    one_of("method", method, METHODS)
    refuse_settings(level, replicates)
    if group is not None and method != "residual":
        raise FitError(
            f"group={group!r} was asked with method={method!r}.",
            'Groups are of method="residual".',
            "Leave it out.",
            about="group",
        )
    if method == "satterthwaite" or (method == "residual" and fit.autocorrelation is not None):
        fit.refuse_law(f"method={method!r}")
    if method == "wald":
        reach = float(norm.ppf((1 + level) / 2)) * np.sqrt(np.diag(fit.covariance))
        ends = np.column_stack([fit.beta - reach, fit.beta + reach])
    elif method == "satterthwaite":
        ends = np.array([(test.lower, test.upper) for test in fit.tests(level=level).values()])
    elif method == "profile":
        one_more, found = counted(progress, "profiles", len(fit.beta)), []
        for along in np.eye(len(fit.beta)):
            found.append(inference.profile(fit, along, level=level))
            one_more()
        ends = np.array(found)
    elif method == "parametric":
        drawn, _ = bootstrap.parametric(fit, replicates, np.random.default_rng(seed), progress=progress)
        ends = np.array(percentiles(drawn, level))
    else:
        ends = bootstrap.residual(fit, replicates, np.random.default_rng(seed), level=level, group=group)
    return {name: (float(low), float(high)) for name, (low, high) in zip(fit.names, ends, strict=True)}


def percentiles(drawn: Matrix, level: float) -> list[tuple[float, float]]:
    """Ends of the intervals that hold a share of draws, for each column."""
    ends = bootstrap.among(drawn, [(1 - level) / 2, (1 + level) / 2]).T
    return [(float(low), float(high)) for low, high in ends]


def refuse_level(level: float) -> None:
    if not 0 < level < 1:
        raise FitError(f"level={level!r} is no probability.", "It lies between 0 and 1.", "Use 0.95.", about="level")


def refuse_settings(level: float, replicates: int) -> None:
    refuse_level(level)
    if replicates < 20:
        raise FitError(
            f"replicates={replicates!r} are too few for an interval.",
            "Ends of a 95 % interval need some hundreds.",
            "Use 999.",
            about="replicates",
        )
    if replicates > MOST_REPLICATES:
        raise FitError(
            f"replicates={replicates!r} would take longer than anyone waits.",
            f"There are at most {MOST_REPLICATES:,}; ends of an interval hardly change after some thousands.",
            "Use 999, or 9999 for one digit more.",
            about="replicates",
        )


@dataclass(frozen=True)
class Prediction(Result):
    """Predictions of rows with their errors.

    Attributes
    ----------
    value, std_error : of the expectation of each row.
    lower, upper : the interval that was asked for: of the expectation (confidence) or of a new response (prediction).
    """

    value: Vector
    std_error: Vector
    lower: Vector
    upper: Vector

    def tidy(self) -> Any:
        """One row for each prediction, its place as level."""
        count = len(self.value)
        return tidy_table(
            effect=["prediction"] * count,
            group=[None] * count,
            term=[None] * count,
            level=[str(i) for i in range(count)],
            estimate=self.value.tolist(),
            std_error=self.std_error.tolist(),
            lower=self.lower.tolist(),
            upper=self.upper.tolist(),
            flag=None,
        )


def prediction(
    fit: MixedFit,
    data: Any = None,
    *,
    level: Literal["conditional", "marginal"] = "conditional",
    kind: Literal["prediction", "confidence"] = "prediction",
    coverage: float = 0.95,
) -> Prediction:
    """Predictions with standard errors and normal intervals, taking variances as known.

    A level that the fit never saw has effect zero, and its variance is a part of the error.

    Parameters
    ----------
    fit : of `dc.mixed`.
    data : new rows; the fitted ones by default.
    level : with random effects, or the fixed part alone (`marginal`).
    kind : intervals of a new response, or of its expectation (`confidence`).
    coverage : of the intervals.

    Returns
    -------
    A `Prediction`.
    """
    from scipy.stats import norm

    refuse_question(level, kind, coverage)
    rows = fit.data if data is None else place_rows(data, fit.design, fit.learned)
    beta = np.zeros(len(fit.design.names))
    beta[fit.kept] = fit.solution.beta
    value = linear(rows, fit.design.layout.fixed, fit.design.levels, beta) + fit.design.layout.response.shift
    value = value + offset_of(fit, data, rows=rows.count)
    if case_of(level, {"marginal": True, "conditional": False}):
        spread = marginal_variances(fit, rows)
        more = fit.sigma2 * random_variances(fit.design, fit.solution.triangles, rows)
    else:
        for term, effects in zip(fit.design.random, fit.solution.effects, strict=True):
            value = value + random_part(rows, term, fit.design.levels, effects, new_levels="zero")
        spread, more = variances(fit, rows), np.zeros(rows.count)
    error = np.sqrt(np.maximum(spread, 0.0))
    whole = (
        np.sqrt(error**2 + more + fit.residual_variances(data))
        if case_of(kind, {"prediction": True, "confidence": False})
        else error
    )
    reach = float(norm.ppf((1 + coverage) / 2)) * whole
    return Prediction(value, error, value - reach, value + reach)


def refuse_question(level: str, kind: str, coverage: float) -> None:
    """Refuse what no prediction has."""
    one_of("level", level, ("conditional", "marginal"))
    one_of("kind", kind, ("prediction", "confidence"))
    if not 0 < coverage < 1:
        raise DataError(
            f"coverage={coverage!r} is no probability.", "It lies between 0 and 1.", "Use 0.95.", about="coverage"
        )
