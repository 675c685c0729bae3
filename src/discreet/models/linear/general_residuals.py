"""Residuals of fitted counts and shares: on the scale of the response, over their spread, or as roots of the deviance.

Numbers are those of lme4::glmer and glmmTMB. A spread is that of the law given the effects, extra zeros included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.families import FamilyName, family, mean_count
from discreet.models.linear.likelihood_fit import one_of
from discreet.words.errors import FitError

if TYPE_CHECKING:
    from discreet.models.linear.general_fit import GeneralisedFit

Kind = Literal["response", "pearson", "deviance"]


def residuals(fit: GeneralisedFit, kind: Kind) -> Vector:
    """What the fit leaves of each response."""
    one_of("kind", kind, ("response", "pearson", "deviance"))
    y, mean, weights = fit.response, fit.fitted, fit.fitted_rows.weights
    if kind == "response":
        return y - mean
    root = 1.0 if weights is None else np.sqrt(weights)
    if kind == "pearson":
        return np.asarray(root * (y - mean) / np.sqrt(_variance(fit, mean)))
    return np.asarray(root * np.sign(y - mean) * np.sqrt(np.maximum(_deviance(fit.family, y, mean, fit.own), 0.0)))


def zeros_of(fit: GeneralisedFit) -> tuple[float, float]:
    """The share of counts that are zero, and the share that the fit expects."""
    none = family(fit.family).law(np.zeros(fit.rows), fit.link, fit.centred[2]).density
    weights = fit.fitted_rows.weights
    return float(np.average(fit.response == 0, weights=weights)), float(np.average(np.exp(none), weights=weights))


def _variance(fit: GeneralisedFit, mean: Vector) -> Vector:
    if family(fit.family).shares:
        return mean * (1 - mean)
    count = mean_count(fit.link)
    spread = count + (count**2 / fit.own["size"] if "size" in fit.own else 0.0)
    zeros = fit.own.get("extra zeros", 0.0)
    return np.asarray(spread * (1 - zeros) + count**2 * zeros * (1 - zeros))


def _deviance(name: FamilyName, y: Vector, mean: Vector, own: Mapping[str, float]) -> Vector:
    """Twice what the log-density of each row lacks to its highest value."""
    from scipy.special import xlogy

    if name == "binomial":
        return np.asarray(2 * (xlogy(y, y / mean) + xlogy(1 - y, (1 - y) / (1 - mean))))
    if name == "poisson":
        return np.asarray(2 * (xlogy(y, y / mean) - (y - mean)))
    if name == "negative-binomial":
        size = own["size"]
        return np.asarray(2 * (xlogy(y, y / mean) - (y + size) * np.log((y + size) / (mean + size))))
    raise FitError(
        f"Residuals of the deviance were asked of family {name!r}.",
        "A zero that may be an extra one has no expectation of its own to be compared with.",
        'Use kind="pearson", whose spread includes the extra zeros.',
        about="kind",
    )
