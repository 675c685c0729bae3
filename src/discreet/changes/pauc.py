"""Coefficients that maximise the partial area under the ROC curve: the paper's PMF model.

Only arrays. In month t the coefficients b*_t make the index X_t b rank that month's large changes as high as possible;
forecasts for t + 1 use the smoothed b_{t+1} = lambda b*_t + (1 - lambda) b_t. The maximiser of a step function is
found by Nelder and Mead's simplex with R's starting simplex and 500 evaluations, as in the paper.

The paper starts the simplex from "the OLS estimates" and does not say of which response. The size of its printed
indices (0.1) and their correlation with the gold standard speak for least squares of the gold standard itself, which is
the default.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Mask, Matrix, Vector
from discreet.roc import curve as roc
from discreet.roc.curve import Range
from discreet.words.errors import FitError

EVALUATIONS = 500


def maximise(
    X: Matrix,
    positive: Mask,
    *,
    start: Vector,
    fpr: Range = (0.0, 0.2),
    evaluations: int = EVALUATIONS,
) -> Vector:
    """Coefficients with the largest partial area that the simplex finds from `start`.

    The area is a step function with wide plateaus, so the simplex seldom leaves the side of the origin on which it
    starts.
    """
    from scipy.optimize import minimize

    lo, hi = roc.false_positive_range(fpr)
    if positive.all() or not positive.any():
        raise FitError(
            f"{int(positive.sum())} of {len(positive)} cases are positives, so every coefficient ranks equally well.",
            "Change the gold standard or leave this month out.",
            about="positive",
        )
    up, down = X[positive], X[~positive]

    def loss(b: Vector) -> float:
        return -roc.partial_area_of(up @ b, down @ b, lo, hi)

    simplex = np.vstack([start, start + 0.1 * (np.abs(start).max() or 1.0) * np.eye(len(start))])
    options = {"initial_simplex": simplex, "maxfev": evaluations, "xatol": 1e-8, "fatol": 1e-8}
    return np.asarray(minimize(loss, start, method="Nelder-Mead", options=options).x)


def monthly_optima(
    X: Matrix,
    positive: Mask,
    *,
    explain: Matrix | None = None,
    fpr: Range = (0.0, 0.2),
    evaluations: int = EVALUATIONS,
) -> Matrix:
    """b*_t for every month, shape (months, columns), each from that month alone.

    The simplex starts from that month's least squares of `explain`, by default of the large changes.
    """
    target = positive.astype(float) if explain is None else explain
    return np.stack(
        [
            maximise(x, g, start=np.linalg.lstsq(x, v, rcond=None)[0], fpr=fpr, evaluations=evaluations)
            for x, v, g in zip(X, target, positive, strict=True)
        ]
    )


def smoothed(optima: Matrix, learning_rate: ArrayLike) -> Matrix:
    """Coefficients known after each month, shape (rates, months, columns); the first month's are its own."""
    rates = np.atleast_1d(np.asarray(learning_rate, float))[:, None]
    if not ((rates >= 0) & (rates <= 1)).all():
        raise FitError(
            "A learning rate lies outside [0, 1].", remedy="Give a weight for the newest month.", about="rate"
        )
    path = np.empty((len(rates), *optima.shape))
    path[:, 0] = optima[0]
    for t in range(1, len(optima)):
        path[:, t] = rates * optima[t] + (1 - rates) * path[:, t - 1]
    return path
