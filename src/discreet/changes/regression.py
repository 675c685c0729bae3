"""Least squares and its Bayesian counterpart from cumulated moments, all forecast origins at once.

Only arrays. Data come as months: y of shape (months, series), X of shape (months, series, columns). The moments after
each month are running sums. So a model that is re-estimated at every origin is one batched solve, and row t of any
result depends on months 0 to t and nothing later.

The Bayesian model is the paper's: normal errors, a diffuse normal prior on the coefficients and an inverse gamma (the
one-dimensional inverse Wishart) with one degree of belief and a negligible scale on the variance. Its Gibbs sampler
needs only the moments, so the chains of all origins run side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Matrix, Vector
from discreet.words.errors import FitError

PRIOR_VARIANCE, BELIEF, PRIOR_SCALE = 1e8, 1.0, 1e-6


@dataclass(frozen=True, slots=True)
class RunningSums:
    """Sums over months 0 to t for every t: counts, X'X, X'y and y'y."""

    count: Vector
    xx: Matrix
    xy: Matrix
    yy: Vector

    def after(self, months: slice) -> RunningSums:
        return RunningSums(self.count[months], self.xx[months], self.xy[months], self.yy[months])


def moments(X: Matrix, y: Matrix) -> RunningSums:
    """Running moments of months."""
    xx = np.einsum("tni,tnj->tij", X, X)
    return RunningSums(
        count=np.cumsum(np.full(len(y), float(y.shape[1]))),
        xx=np.cumsum(xx, axis=0),
        xy=np.cumsum(np.einsum("tni,tn->ti", X, y), axis=0),
        yy=np.cumsum((y**2).sum(axis=1)),
    )


def least_squares(m: RunningSums) -> Matrix:
    """Coefficients after each month, shape (months, columns); a deficient design gets the shortest solution."""
    return np.asarray(np.einsum("tij,tj->ti", np.linalg.pinv(m.xx, hermitian=True), m.xy))


def posterior_draws(
    m: RunningSums, *, draws: int = 1000, burn_in: int = 1000, rng: np.random.Generator | int = 0
) -> tuple[Matrix, Matrix]:
    """Gibbs draws of coefficients, (draws, months, columns), and of the error variance, (draws, months)."""
    generator = np.random.default_rng(rng)
    if draws < 1 or burn_in < 0:
        raise FitError(
            f"{draws} draws after {burn_in} make no sample.",
            remedy="Ask for 1 or more, usually 1000 after 1000.",
            about="draws",
        )
    values, vectors = np.linalg.eigh(m.xx)
    target = np.einsum("tji,tj->ti", vectors, m.xy)
    variance = np.maximum(m.yy - np.einsum("ti,ti->t", m.xy, least_squares(m)), PRIOR_SCALE) / m.count
    months, columns = m.xy.shape
    rotated = np.empty((draws, months, columns))
    variances = np.empty((draws, months))
    for k in range(-burn_in, draws):
        precision = values / variance[:, None] + 1 / PRIOR_VARIANCE
        mean = target / variance[:, None] / precision
        c = mean + generator.standard_normal((months, columns)) / np.sqrt(precision)
        residual = m.yy - 2 * (c * target).sum(1) + (c**2 * values).sum(1)
        scale = np.maximum(residual, 0) + BELIEF * PRIOR_SCALE
        variance = scale / generator.chisquare(m.count + BELIEF)
        if k >= 0:
            rotated[k], variances[k] = c, variance
    return np.einsum("tij,dtj->dti", vectors, rotated), variances


def predictive_quantiles(
    X: Matrix, coefficients: Matrix, variances: Vector, quantiles: ArrayLike, *, rng: np.random.Generator | int = 0
) -> Matrix:
    """Quantiles of synthetic outcomes for the rows of X, shape (len(quantiles), rows): one outcome per draw."""
    noise = np.random.default_rng(rng).standard_normal((len(coefficients), len(X)))
    synthetic = coefficients @ X.T + np.sqrt(variances)[:, None] * noise
    return np.asarray(np.quantile(synthetic, np.atleast_1d(np.asarray(quantiles, float)), axis=0))
