"""Predictions of counts and shares with standard errors and intervals: the door to `general_precision`, `predictive`.

Errors are glmmTMB's: those of fixed effects, of random effects, and of the variances and the family's parameters. On
the scale of the response they are by the delta method, and intervals of expectations are those of the link, moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.general_bootstrap import trials_of
from discreet.models.linear.general_precision import link_variances
from discreet.models.linear.intervals import Prediction, refuse_question
from discreet.models.linear.laplace import mode
from discreet.models.linear.likelihood_fit import one_of
from discreet.models.linear.matrix import dense, place_rows
from discreet.models.linear.prediction import random_variances
from discreet.models.linear.predictive import quantiles
from discreet.words.cases import case_of
from discreet.words.errors import DataError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    from discreet.models.linear.general_fit import GeneralisedFit


def prediction(
    fit: GeneralisedFit,
    data: Any = None,
    *,
    level: Literal["conditional", "marginal"] = "conditional",
    kind: Literal["prediction", "confidence"] = "prediction",
    scale: Literal["response", "link"] = "response",
    coverage: float = 0.95,
) -> Prediction:
    """Predictions with standard errors and intervals.

    A level that the fit never saw has effect zero, and its variance is a part of the error.

    Parameters
    ----------
    fit : of `dc.mixed` with a family.
    data : new rows, without offset, and of one trial each where responses are shares; the fitted ones by default.
    level : with random effects, or the fixed part alone (`marginal`).
    kind : intervals of a new response, or of its expectation (`confidence`). Those of a new count or share hold at
        least as often as `coverage` says, because responses are whole numbers, of events or of trials.
    scale : of the response, or of the link, which has no new response.
    coverage : of the intervals.

    Returns
    -------
    A `Prediction`.
    """
    from scipy.stats import norm

    refuse_question(level, kind, coverage)
    one_of("scale", scale, ("response", "link"))
    if scale == "link" and kind == "prediction":
        raise DataError(
            (Argument("kind", kind), " was asked on the scale of the link."),
            "A new response has its own scale; an expectation has both.",
            'Use kind="confidence", or scale="response".',
            about="kind",
        )
    rows = fit.fitted_rows.rows if data is None else place_rows(data, fit.design, fit.learned)
    eta = fit.link_of(None if data is None else rows, level=level, new_levels="zero")
    law, own = fit.law, fit.centred[2]
    moved, more = case_of(scale, {"response": law.shift(own), "link": (0.0, np.zeros(len(own)))})
    link, error = eta + moved, np.sqrt(_variances(fit, rows, level=level, more=more))
    reach = float(norm.ppf((1 + coverage) / 2)) * error
    if case_of(scale, {"link": True, "response": False}):
        return Prediction(eta, error, eta - reach, eta + reach)
    mean, value = law.link.mean, law.link.mean(link)
    spread = error * law.link.slope(link)
    if case_of(kind, {"confidence": True, "prediction": False}):
        return Prediction(value, spread, mean(link - reach), mean(link + reach))
    variance = _variances(fit, rows, level=level, more=np.zeros(len(own))) if more.any() else error**2
    if case_of(level, {"marginal": True, "conditional": False}):
        variance = variance + random_variances(fit.design, fit.triangles, rows)
    trials = trials_of(fit) if data is None else np.ones(rows.count)
    lower, upper = quantiles(law, eta, np.sqrt(variance), own, trials, coverage)
    return Prediction(value, spread, lower, upper)


def _variances(fit: GeneralisedFit, rows: ModelRows, *, level: str, more: Vector) -> Vector:
    """Variances of the linear predictor of rows, with what the family's parameters add to it."""
    at, p = fit.fitted_rows, len(fit.beta)
    X: Matrix = dense(rows, fit.design.layout.fixed, fit.design.levels)[:, at.kept]
    if level == "marginal":
        slopes = np.column_stack([X, np.tile(more, (rows.count, 1))])
        free = np.r_[:p, len(fit.spread) - len(more) : len(fit.spread)]
        return np.asarray(np.einsum("ri,ij,rj->r", slopes, fit.spread[np.ix_(free, free)], slopes))
    problem = at.problem(fit.response, fit.law)
    found = mode(problem, fit.centred[0][at.kept], fit.theta, fit.centred[2])
    return link_variances(problem, found, fit.spread, fit.design, X, rows, more)
