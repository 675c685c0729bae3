"""Ranking by pairs: coefficients that make large changes outscore the rest of their month, over all months at once.

Only arrays. The share of wrongly ranked pairs is replaced by the logistic loss log(1 + exp(-(s_i - s_j))) over every
positive i and negative j of the same month, with a ridge penalty on the coefficients of columns scaled to unit
variance. It is smooth and convex, so there is one minimum. It is RankNet's loss (Burges et al. 2005,
doi:10.1145/1102351.1102363) for a linear score. Compared with a month's own PAUC optimum it borrows strength from every
month, which is what a handful of positives per month needs.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from discreet.arrays import Mask, Matrix, Vector
from discreet.changes.newton import least
from discreet.words.errors import FitError

TOLERANCE = 1e-9


def rank_regression(X: Matrix, positive: Mask, *, penalty: float, start: Vector | None = None) -> Vector:
    """Coefficients for X of shape (months, series, columns); constant columns get zero.

    `start` speeds up a refit; the answer does not depend on it.
    """
    if not penalty > 0:
        raise FitError(
            f"Penalty {penalty:g} lets separable data run to infinity.",
            remedy="Give a positive one, e.g. 0.01.",
            about="penalty",
        )
    inside = positive.any(axis=1) & ~positive.all(axis=1)
    if not inside.any():
        raise FitError(
            f"None of {len(positive)} months has both positives and negatives, so no pair can be ranked.",
            "Change the gold standard.",
            about="positive",
        )
    X, positive = X[inside], positive[inside]
    spread = X.std(axis=(0, 1))
    varies = spread > 0
    Z = X[:, :, varies] / spread[varies]
    # The positives of each month, padded with cases of no weight to the largest number of them.
    chosen = np.argsort(~positive, axis=1, kind="stable")[:, : positive.sum(axis=1).max()]
    up = np.take_along_axis(Z, chosen[:, :, None], axis=1)
    pairs = np.take_along_axis(positive, chosen, axis=1)[:, :, None] & ~positive[:, None, :]
    weight = pairs / pairs.sum(axis=(1, 2), keepdims=True) / len(Z)
    b = np.zeros(Z.shape[2]) if start is None else start[varies] * spread[varies]
    b = least(
        b,
        lambda at: _loss(at, Z, up, weight, penalty),
        lambda at: _newton(at, Z, up, weight, penalty),
        tolerance=TOLERANCE,
    )
    coefficients = np.zeros(X.shape[2])
    coefficients[varies] = b / spread[varies]
    return coefficients


def _lead(b: Vector, Z: Matrix, up: Matrix) -> Matrix:
    """The lead of each positive's score over each case of its month, shape (months, positives, series)."""
    return np.asarray((up @ b)[:, :, None] - (Z @ b)[:, None, :])


def _loss(b: Vector, Z: Matrix, up: Matrix, weight: Matrix, penalty: float) -> float:
    return float((weight * np.logaddexp(0, -_lead(b, Z, up))).sum() + penalty * b @ b)


def _newton(b: Vector, Z: Matrix, up: Matrix, weight: Matrix, penalty: float) -> Vector:
    wrong = expit(-_lead(b, Z, up))
    pull = weight * wrong
    curve = pull * (1 - wrong)
    down = -np.einsum("tn,tni->i", pull.sum(1), Z) + np.einsum("tk,tki->i", pull.sum(2), up) - 2 * penalty * b
    cross = np.einsum("tki,tkj->ij", up, curve @ Z)
    outer = np.einsum("tn,tni,tnj->ij", curve.sum(1), Z, Z, optimize=True)
    outer += np.einsum("tk,tki,tkj->ij", curve.sum(2), up, up, optimize=True)
    return np.asarray(np.linalg.solve(outer - cross - cross.T + 2 * penalty * np.eye(len(b)), down))
