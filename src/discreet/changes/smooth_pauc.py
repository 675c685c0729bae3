"""The partial area under the ROC curve, smoothed, so that gradients can maximise it: all months at once.

Only arrays. The share u of negatives above a positive is the mean of logistic functions of differences of scores. The
positive adds a smooth (b - u)+ to the area for false positive rates up to b. A ridge penalty on columns scaled to unit
variance keeps scores small, which is how smooth the area is. It is no convex problem: L-BFGS starts from the ranking by
lists, which is one, and ends at the nearest top. The paper climbs one month's area by a simplex (`pauc`).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from discreet.arrays import Mask, Matrix, Vector
from discreet.changes.listwise import list_regression
from discreet.words.errors import FitError

ITERATIONS = 60
WIDTH = 0.05
"""The end of the range is rounded off over these false positive rates, so a positive beyond it has a gradient."""


def smooth_pauc_regression(
    X: Matrix, positive: Mask, *, penalty: float, limit: float = 0.2, start: Vector | None = None
) -> Vector:
    """Coefficients for X of shape (months, series, columns), climbing from `start`; constant columns get zero."""
    if not penalty > 0:
        raise FitError(
            f"Penalty {penalty:g} lets scores run to infinity.",
            remedy="Give a positive one, e.g. 0.01.",
            about="penalty",
        )
    inside = positive.any(axis=1) & ~positive.all(axis=1)
    if start is None:
        period = np.repeat(np.arange(len(positive)), positive.shape[1])
        start = list_regression(X.reshape(-1, X.shape[2]), positive.ravel(), period, penalty=penalty)
    X, positive = X[inside], positive[inside]
    spread = X.std(axis=(0, 1))
    varies = spread > 0
    Z = X[:, :, varies] / spread[varies]
    chosen = np.argsort(~positive, axis=1, kind="stable")[:, : positive.sum(axis=1).max()]
    up, there = np.take_along_axis(Z, chosen[:, :, None], axis=1), np.take_along_axis(positive, chosen, axis=1)
    share = there / there.sum(axis=1, keepdims=True) / len(Z)
    down = ~positive / (~positive).sum(axis=1, keepdims=True)
    found = minimize(
        loss, start[varies] * spread[varies], args=(Z, up, share, down, penalty, limit), jac=True, method="L-BFGS-B",
        options={"maxiter": ITERATIONS},
    )  # fmt: skip
    coefficients = np.zeros(X.shape[2])
    coefficients[varies] = found.x / spread[varies]
    return coefficients


def loss(
    b: Vector, Z: Matrix, up: Matrix, share: Matrix, down: Matrix, penalty: float, limit: float
) -> tuple[float, Vector]:
    """Minus the smoothed area with its penalty, and the gradient.

    `up` are the positives of each month, `share` their weights; `down` are weights of the negatives among all cases.
    """
    above = expit((Z @ b)[:, None, :] - (up @ b)[:, :, None])  # (months, positives, cases)
    u = np.einsum("tkn,tn->tk", above, down)
    added = WIDTH * np.logaddexp(0, (limit - u) / WIDTH)
    pull = share * expit((limit - u) / WIDTH)  # minus the slope of `added`, weighted
    steep = above * (1 - above) * down[:, None, :] * pull[:, :, None]
    gradient = np.einsum("tn,tni->i", steep.sum(axis=1), Z) - np.einsum("tk,tki->i", steep.sum(axis=2), up)
    return float(-(share * added).sum() + penalty * b @ b), np.asarray(gradient + 2 * penalty * b)
