"""lme4's names for what a fit knows: `fixef`, `ranef`, `coef`, `VarCorr`, `sigma` and `confint`.

For hands that type R. A fit has the same under names of its own (`fit.fixed`, `fit.effects`, ...), and these functions
add nothing to it but lme4's shapes. They take a plain fit, and a private one where it has what is asked.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from discreet.arrays import Matrix
from discreet.models.linear.effects import RandomEffects
from discreet.models.linear.fit import MixedFit
from discreet.models.linear.general_fit import GeneralisedFit
from discreet.models.linear.private.result import PrivateFit
from discreet.words.errors import FitError

Fit: TypeAlias = MixedFit | GeneralisedFit | PrivateFit
ByLevel: TypeAlias = dict[str, dict[str, dict[str, float]]]
"""Grouping factor, level, effect."""


def fixef(fit: Fit) -> dict[str, float]:
    """Fixed effects by name, as `fit.fixed`.

    Parameters
    ----------
    fit : of `dc.mixed` or `dc.release_mixed`.

    Returns
    -------
    Estimates by R's names.

    Examples
    --------
    >>> import discreet as dc
    >>> fit = dc.mixed("y ~ 1 + (1 | g)", {"y": [1, 2, 5, 6], "g": ["a", "a", "b", "b"]})
    >>> round(fixef(fit)["(Intercept)"], 6)
    3.5
    """
    return fit.fixed


def ranef(fit: Fit) -> ByLevel:
    """Random effects by grouping factor, level and name; terms of one factor come together, as in lme4.

    Parameters
    ----------
    fit : of `dc.mixed` or `dc.release_mixed`.

    Returns
    -------
    `ranef(fit)["g"]["a"]["(Intercept)"]` is R's `ranef(fit)$g["a", "(Intercept)"]`.

    Examples
    --------
    >>> import discreet as dc
    >>> fit = dc.mixed("y ~ 1 + (1 | g)", {"y": [1, 2, 5, 6], "g": ["a", "a", "b", "b"]})
    >>> round(ranef(fit)["g"]["b"]["(Intercept)"], 4)
    1.9375
    """
    found: ByLevel = {}
    for term in fit.random:
        names = term.names if isinstance(term, RandomEffects) else ("(Intercept)",)
        values = np.reshape(term.values, (len(term.levels), len(names)))
        levels = found.setdefault(term.group, {})
        for level, row in zip(term.levels, values.tolist(), strict=True):
            levels.setdefault(level, {}).update(zip(names, row, strict=True))
    return found


def coef(fit: Fit) -> ByLevel:
    """Coefficients of each level: the fixed effects, with the level's own added where there is one.

    Parameters
    ----------
    fit : of `dc.mixed` or `dc.release_mixed`.

    Returns
    -------
    `coef(fit)["g"]["a"]["x"]` is R's `coef(fit)$g["a", "x"]`.

    Examples
    --------
    >>> import discreet as dc
    >>> fit = dc.mixed("y ~ 1 + (1 | g)", {"y": [1, 2, 5, 6], "g": ["a", "a", "b", "b"]})
    >>> round(coef(fit)["g"]["b"]["(Intercept)"], 4)
    5.4375
    """
    fixed = fit.fixed
    return {
        group: {
            level: {name: fixed.get(name, 0.0) + own.get(name, 0.0) for name in {**own, **fixed}}
            for level, own in levels.items()
        }
        for group, levels in ranef(fit).items()
    }


def VarCorr(fit: Fit) -> dict[str, Matrix]:  # noqa: N802 (R's name)
    """Covariances of the random effects by term. The residual's standard deviation is `sigma(fit)`.

    Parameters
    ----------
    fit : of `dc.mixed` or `dc.release_mixed`.

    Returns
    -------
    `VarCorr(fit)["g"]` is R's `VarCorr(fit)$g`, a matrix.

    Examples
    --------
    >>> import discreet as dc
    >>> fit = dc.mixed("y ~ 1 + (1 | g)", {"y": [1, 2, 5, 6], "g": ["a", "a", "b", "b"]})
    >>> VarCorr(fit)["g"].round(4).tolist()
    [[7.75]]
    """
    if isinstance(fit, MixedFit | GeneralisedFit):
        return {name: term.covariance for name, term in fit.effects.items()}
    return {name: np.array([[_there(term.variance, f"variance of {name!r}")]]) for name, term in fit.effects.items()}


def sigma(fit: Fit) -> float:
    """The residual standard deviation; of other families glmmTMB's, such as the negative binomial's size, or 1.

    Parameters
    ----------
    fit : of `dc.mixed` or `dc.release_mixed`.

    Returns
    -------
    R's `sigma(fit)`.

    Examples
    --------
    >>> import discreet as dc
    >>> fit = dc.mixed("y ~ 1 + (1 | g)", {"y": [1, 2, 5, 6], "g": ["a", "a", "b", "b"]})
    >>> round(sigma(fit) ** 2, 6)
    0.5
    """
    if isinstance(fit, GeneralisedFit):
        return fit.law.sigma(fit.centred[2])
    return float(np.sqrt(_there(fit.sigma2, "residual variance")))


def confint(
    fit: Fit, *, level: float = 0.95, method: Literal["profile", "Wald"] = "profile"
) -> dict[str, tuple[float, float]]:
    """Intervals by lme4's names (`oldNames = FALSE`).

    Parameters
    ----------
    fit : of `dc.mixed`; for "Wald" also of `dc.release_mixed`, noise included.
    level : their probability.
    method : "profile" for standard deviations and correlations, as `fit.intervals()`, but for fixed effects where the
        fit is of counts or shares; "Wald" for fixed effects. R's profile has both, and its Wald has missing values for
        the others.

    Returns
    -------
    The two ends by name.

    Examples
    --------
    >>> import discreet as dc
    >>> fit = dc.mixed("y ~ 1 + (1 | g)", {"y": [1, 2, 5, 6], "g": ["a", "a", "b", "b"]})
    >>> [round(end, 4) for end in confint(fit, method="Wald")["(Intercept)"]]
    [-0.4199, 7.4199]
    """
    from scipy.stats import norm

    if method == "Wald":
        reach = float(norm.ppf((1 + level) / 2))
        wide = {name: reach * _there(error, f"standard error of {name!r}") for name, error in fit.se.items()}
        return {name: (value - wide[name], value + wide[name]) for name, value in fit.fixed.items()}
    if isinstance(fit, MixedFit):
        return fit.intervals(level=level)
    if isinstance(fit, GeneralisedFit):
        return fit.confint(level=level)
    raise FitError(
        "A private fit has no likelihood to profile.", "Its standard errors have the noise in them.",
        "Use method='Wald'.", about="method",
    )  # fmt: skip


def _there(value: float | None, what: str) -> float:
    if value is None:
        raise FitError(f"This release has no {what}.", "Another method may have it.", "See fit.notes.", about="fit")
    return float(value)
