"""Ranking by lists: coefficients under which the large changes of a period are the likeliest of its cases.

Only arrays. Within a period a case is drawn with a probability in proportion to exp(score). The loss is minus the mean
log-probability of the large changes, with a ridge penalty on columns scaled to unit variance (ListNet's top one, Cao et
al. 2007, doi:10.1145/1273496.1273513; conditional logit). It is smooth and convex, and periods may have any number of
cases. One pass over the cases makes a step, where pairs make a pass over pairs.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.changes.newton import least
from discreet.words.errors import FitError

TOLERANCE = 1e-8


def list_regression(
    X: Matrix, positive: Mask, period: Integers, *, penalty: float, start: Vector | None = None
) -> Vector:
    """Coefficients for cases X of shape (cases, columns); constant columns get zero.

    `period` numbers the period of each case. `start` speeds up a refit; the answer does not depend on it.
    """
    if not penalty > 0:
        raise FitError(
            f"Penalty {penalty:g} lets separable data run to infinity.",
            remedy="Give a positive one, e.g. 0.01.",
            about="penalty",
        )
    held = np.bincount(period, weights=positive)
    inside = (held > 0)[period] & (np.bincount(period) > held)[period]
    if not inside.any():
        raise FitError(
            "No period has both large changes and others, so nothing can be ranked.",
            "Change the gold standard.",
            about="positive",
        )
    X, positive = X[inside], positive[inside]
    _, period = np.unique(period[inside], return_inverse=True)
    spread = X.std(axis=0)
    varies = spread > 0
    Z = X[:, varies] / spread[varies]
    number = np.bincount(period, weights=positive)
    share = positive / number[period] / len(number)  # every period has the same weight
    b = np.zeros(Z.shape[1]) if start is None else start[varies] * spread[varies]
    b = least(
        b,
        lambda at: _loss(at, Z, share, period, penalty),
        lambda at: _newton(at, Z, share, period, penalty),
        tolerance=TOLERANCE,
    )
    coefficients = np.zeros(X.shape[1])
    coefficients[varies] = b / spread[varies]
    return coefficients


def _likely(score: Vector, period: Integers) -> tuple[Vector, Vector]:
    """Log-probabilities of cases within their periods, and the probabilities."""
    top = np.full(int(period.max()) + 1, -np.inf)
    np.maximum.at(top, period, score)
    shifted = score - top[period]
    log = shifted - np.log(np.bincount(period, weights=np.exp(shifted)))[period]
    return log, np.exp(log)


def _loss(b: Vector, Z: Matrix, share: Vector, period: Integers, penalty: float) -> float:
    return float(-(share * _likely(Z @ b, period)[0]).sum() + penalty * b @ b)


def _newton(b: Vector, Z: Matrix, share: Vector, period: Integers, penalty: float) -> Vector:
    number = int(period.max()) + 1
    chance = _likely(Z @ b, period)[1] / number
    middle = np.stack([np.bincount(period, weights=chance * column) for column in Z.T], axis=1) * number
    down = (share - chance) @ Z - 2 * penalty * b
    curve = (Z * chance[:, None]).T @ Z - middle.T @ middle / number
    return np.asarray(np.linalg.solve(curve + 2 * penalty * np.eye(len(b)), down))
