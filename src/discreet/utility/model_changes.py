"""Alarms from two private models: which effects changed by more than noise and sampling can explain.

Both models state standard errors with the noise in them, and their draws are independent. If the effect of a level did
not change, what shrinkage takes off is nearly the same in both, so the variance of the difference is at most the sum of
theirs. The noise may have longer tails than a normal law, so an end is as far out as the farther of the quantiles of a
normal law and of Laplace's with that variance: no noise of ours has more, in any dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.private.result import PrivateFit
from discreet.utility.between import SureChanges, changes_at
from discreet.utility.flags import Direction
from discreet.words.errors import DataError

TERM = "term"
"""What fixed effects are listed by."""


def model_changes(
    early: object,
    late: object,
    *,
    by: Sequence[str],
    rate: float,
    fdr: float | None,
    least: float,
    direction: Direction,
) -> SureChanges:
    """The effects of two private models of one formula: those of a random term, or the fixed ones."""
    if not isinstance(early, PrivateFit) or not isinstance(late, PrivateFit):
        raise DataError(
            "A private model and something else were given.",
            "Changes are between two models, or between two tables.",
            "Give two of one kind.",
            about="late",
        )
    if (early.formula, early.family) != (late.formula, late.family):
        raise DataError(
            f"The models are {early.formula!r} and {late.formula!r}.",
            "Effects of one formula and family can be compared.",
            "Release the same model of both times.",
            about="late",
        )
    known = [*early.effects, TERM]
    name = by[0] if by else known[0]
    if len(by) > 1 or name not in known:
        raise DataError(
            f"The effects by {', '.join(by)} are asked for.",
            f"The models have effects by: {', '.join(known)}.",
            "Name one of these.",
            about="by",
        )
    (mine, first, one), (theirs, second, other) = (_effects(fit, name) for fit in (early, late))
    place = {level: i for i, level in enumerate(mine)}
    pairs = [(place[level], i) for i, level in enumerate(theirs) if level in place]
    before, after = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    change, spread = second[after] - first[before], np.hypot(one[before], other[after])

    def ends(rate: float) -> tuple[Vector, Vector]:
        far = quantile(rate) * spread
        return change - far, change + far

    cells: list[tuple[str, ...]] = [(theirs[i],) for i in after]
    return changes_at(
        (name,), cells, first[before], second[after], ends, rate=rate, fdr=fdr, least=least, direction=direction
    )


def quantile(rate: float) -> float:
    """Standard errors from zero beyond which a difference lies with a chance of `rate` at most."""
    return max(-NormalDist().inv_cdf(rate / 2), math.log(1 / rate) / math.sqrt(2))


def _effects(fit: PrivateFit, name: str) -> tuple[tuple[str, ...], Vector, Vector]:
    """Levels, estimates and their standard errors."""
    if name == TERM:
        found = fit.names, fit.beta, None if fit.covariance is None else np.sqrt(np.diag(fit.covariance))
    else:
        effects = fit.effects[name]
        found = effects.levels, effects.values, effects.std_errors
    levels, values, errors = found
    if errors is None:
        raise DataError(
            f"A release by {fit.method!r} has no standard errors of these effects.",
            "Without them no change is beyond noise.",
            "Release the models by 'moments' or 'strict'.",
            about="early",
        )
    return tuple(levels), np.asarray(values, float), np.asarray(errors, float)
