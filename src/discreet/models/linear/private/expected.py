"""Standard errors that a release will have, known before it is paid for.

They follow from the public design, the bounds and the loss, and from what residuals and effects are supposed to vary
by. No response is read. Only arrays here: `moments.sums_of_nothing` has them of a request.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.private.estimation import least_seen
from discreet.models.linear.private.informative import allowing_for_sizes
from discreet.models.linear.private.noisy import NoisySums, evaluate, sources


@dataclass(frozen=True, slots=True)
class ExpectedErrors:
    """The results of a release by noisy sums, if residuals and effects vary as assumed.

    Attributes
    ----------
    fixed : standard errors of the fixed effects of the columns as given (p,).
    noise, residuals, groups : shares of their squares that come from privacy noise, from residuals, which are
        supposed to have one variance, and from effects of groups with doubt about their sizes (p,).
    sizes, effects : the sizes of finest groups, ascending, and the standard error of the predicted effect of one.
    least : the smallest variance of each term that can be distinguished from zero, the finest term first.
    """

    fixed: Vector
    noise: Vector
    residuals: Vector
    groups: Vector
    sizes: Vector
    effects: Vector
    least: Vector


def expected_errors(sums: NoisySums, restore: Matrix, *, sigma2: float, variances: Vector) -> ExpectedErrors:
    """From the design and noise in `sums`, whose response may be anything, at these variances.

    `restore` turns coefficients of centred columns into those of the columns as given.
    """
    found, _ = allowing_for_sizes(sums, evaluate(sums, sigma2=sigma2, variances=variances))
    parts = sources(sums, sigma2=sigma2, variances=variances)
    squares = _diagonal(found.covariance, restore)
    noise, residuals = (_diagonal(part, restore) / squares for part in (parts.noise, parts.residuals))
    sizes, effects = np.unique(sums.n), np.empty(0)
    if len(sums.levels):
        among = np.searchsorted(sizes, sums.n)
        effects = np.sqrt(np.bincount(among, found.effect_variances[0]) / np.bincount(among))
    least = least_seen(sums, sigma2=sigma2, variances=variances)
    return ExpectedErrors(np.sqrt(squares), noise, residuals, 1 - noise - residuals, sizes, effects, least)


def _diagonal(matrix: Matrix, restore: Matrix) -> Vector:
    return np.asarray(np.diag(restore @ matrix @ restore.T))
