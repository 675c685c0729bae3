"""Residuals of fitted counts and shares: on the scale of the response, over their spread, or as roots of the deviance.

Numbers are those of lme4::glmer and glmmTMB. A spread is that of the law given the effects, extra zeros included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.likelihood_fit import one_of
from discreet.words.errors import FitError

if TYPE_CHECKING:
    from discreet.models.linear.general_fit import GeneralisedFit

Kind = Literal["response", "pearson", "deviance"]


def residuals(fit: GeneralisedFit, kind: Kind) -> Vector:
    """What the fit leaves of each response."""
    one_of("kind", kind, ("response", "pearson", "deviance"))
    y, mean, weights, law, own = fit.response, fit.fitted, fit.fitted_rows.weights, fit.law, fit.centred[2]
    if kind == "response":
        return y - mean
    root = 1.0 if weights is None else np.sqrt(weights)
    if kind == "pearson":
        return np.asarray(root * (y - mean) / np.sqrt(law.variance(fit.link, own)))
    if law.deviance is None:
        raise FitError(
            f"Residuals of the deviance were asked of family {fit.family!r}.",
            law.no_deviance,
            'Use kind="pearson", whose spread is that of the law.',
            about="kind",
        )
    return np.asarray(root * np.sign(y - mean) * np.sqrt(np.maximum(law.deviance(y, mean, own), 0.0)))


def zeros_of(fit: GeneralisedFit) -> tuple[float, float]:
    """The share of counts that are zero, and the share that the fit expects."""
    none = fit.law.law(np.zeros(fit.rows), fit.link, fit.centred[2]).density
    weights = fit.fitted_rows.weights
    return float(np.average(fit.response == 0, weights=weights)), float(np.average(np.exp(none), weights=weights))
