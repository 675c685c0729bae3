"""Coefficients that maximise the partial area under the ROC curve: the paper's PMF model.

Only arrays. In month t the coefficients b*_t make the index X_t b rank that month's large changes as high as possible;
forecasts for t + 1 use the smoothed b_{t+1} = lambda b*_t + (1 - lambda) b_t. The maximiser of a step function is
found by Nelder and Mead's simplex from least squares, with R's starting simplex and 500 evaluations, as in the paper.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Mask, Matrix, Vector
from discreet.change import roc
from discreet.change.roc import Range
from discreet.errors import FitError

EVALUATIONS = 500


def maximise(
    X: Matrix,
    positive: Mask,
    *,
    start: Vector,
    fpr: Range = (0.0, 0.2),
    evaluations: int = EVALUATIONS,
    both_signs: bool = False,
) -> Vector:
    """Coefficients with the largest partial area that the simplex finds from `start` (and from its opposite).

    The area is a step function with wide plateaus, so the simplex seldom leaves the side of the origin on which it
    starts; `both_signs` lets the data choose the side.
    """
    from scipy.optimize import minimize

    lo, hi = roc.false_positive_range(fpr)
    if positive.all() or not positive.any():
        raise FitError(
            f"{int(positive.sum())} of {len(positive)} cases are positives, so every coefficient ranks equally well; "
            "change the gold standard or leave this month out."
        )

    def loss(b: Vector) -> float:
        return -float(roc.partial_area(positive, (X @ b)[None], lo, hi)[0])

    found = []
    for origin in (start, -start) if both_signs else (start,):
        simplex = np.vstack([origin, origin + 0.1 * (np.abs(origin).max() or 1.0) * np.eye(len(origin))])
        options = {"initial_simplex": simplex, "maxfev": evaluations, "xatol": 1e-8, "fatol": 1e-8}
        found.append(minimize(loss, origin, method="Nelder-Mead", options=options))
    return np.asarray(min(found, key=lambda result: float(result.fun)).x)


def monthly_optima(
    X: Matrix,
    y: Matrix,
    positive: Mask,
    *,
    fpr: Range = (0.0, 0.2),
    evaluations: int = EVALUATIONS,
    both_signs: bool = False,
) -> Matrix:
    """b*_t for every month, shape (months, columns), each from that month alone, started from its least squares."""
    return np.stack(
        [
            maximise(
                x,
                g,
                start=np.linalg.lstsq(x, v, rcond=None)[0],
                fpr=fpr,
                evaluations=evaluations,
                both_signs=both_signs,
            )
            for x, v, g in zip(X, y, positive, strict=True)
        ]
    )


def smoothed(optima: Matrix, learning_rate: ArrayLike) -> Matrix:
    """Coefficients known after each month, shape (rates, months, columns); the first month's are its own."""
    rates = np.atleast_1d(np.asarray(learning_rate, float))[:, None]
    if not ((rates >= 0) & (rates <= 1)).all():
        raise FitError("A learning rate lies outside [0, 1]; give a weight for the newest month.")
    path = np.empty((len(rates), *optima.shape))
    path[:, 0] = optima[0]
    for t in range(1, len(optima)):
        path[:, t] = rates * optima[t] + (1 - rates) * path[:, t - 1]
    return path
