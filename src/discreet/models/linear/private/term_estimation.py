"""Estimates from noisy sums of any random terms: variances and correlations by restricted likelihood.

The residual variance comes from a noisy sum of squares. Only arrays here; the model at given variances is in `arrow`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.private.arrow import TermEstimate, TermSums, believed_of, evaluate_terms, hidden_of, told_of
from discreet.models.linear.private.estimation import (
    FLAT,
    ROUNDS,
    SEEN,
    SMALLEST,
    STARTS,
    STOP,
    TOLERANCE,
    averaged,
    bounded,
)

STEEPEST = 20.0  # of the free numbers of a correlation: 0.9988
DOUBT = 1.0  # of -log det of correlations in the criterion: half of one more group, which keeps them from the ends


def estimate_terms(sums: TermSums, *, largest: float) -> tuple[TermEstimate, TermSums]:
    """Variances, correlations and the residual variance until they agree; then doubt about variances is let in.

    The sums come back with the correlations that were found.
    """
    floor, largest = (SMALLEST * largest) ** 2, bounded(sums, largest)
    sigma2 = max(sums.squares / sums.rows, floor)
    at, logs = sums, _first(sums, sigma2, largest)
    free = np.zeros(sum(place.width * (place.width - 1) // 2 for place in sums.places))
    for _ in range(ROUNDS):
        before = sigma2
        logs, free = _best(at, sigma2, largest, logs, free)
        at = replace(sums, shapes=_shapes(sums, free))
        found = evaluate_terms(at, sigma2=sigma2, variances=np.exp(2 * logs))
        sigma2 = max((found.misfit + found.lost) / sums.rows, floor)
        if abs(sigma2 - before) <= TOLERANCE * before:
            break
    best = evaluate_terms(at, sigma2=sigma2, variances=np.exp(2 * logs))
    for i in range(len(logs)):
        # On the log scale the search cannot reach zero, and stops where it is flat.
        without = evaluate_terms(at, sigma2=sigma2, variances=np.where(np.arange(len(logs)) == i, 0.0, best.variances))
        best = without if without.criterion <= best.criterion + FLAT else best

    def model(variances: Vector) -> TermEstimate:
        return evaluate_terms(at, sigma2=best.sigma2, variances=variances)

    def hidden(i: int) -> float:
        return hidden_of(at, i, sigma2=best.sigma2 + float(best.variances[i]), variances=best.variances)

    believed = believed_of(at, sigma2=best.sigma2, variances=best.variances)
    return averaged(best, model, hidden, believed, largest), at


def least_seen_of(sums: TermSums, *, sigma2: float, variances: Vector) -> Vector:
    """The least variance of each coefficient that can be distinguished from zero, of what it adds to a row."""
    found = []
    for i, variance in enumerate(variances.tolist()):
        others = np.where(np.arange(len(variances)) == i, 0.0, variances)
        seen = told_of(sums, i, sigma2=sigma2 + variance, variances=others)
        believed = believed_of(sums, sigma2=sigma2 + variance, variances=others)
        found.append(SEEN * (2 / max(believed * float(seen @ seen), 1e-300)) ** 0.5)
    return np.array(found)


def _first(sums: TermSums, sigma2: float, largest: float) -> Vector:
    """The start of the search: the best of a few deviations, the same for all coefficients."""
    tried = [np.full(len(sums.coefficients), np.log(share * largest)) for share in STARTS]
    return min(tried, key=lambda logs: evaluate_terms(sums, sigma2=sigma2, variances=np.exp(2 * logs)).criterion)


def _best(sums: TermSums, sigma2: float, largest: float, logs: Vector, free: Vector) -> tuple[Vector, Vector]:
    """Log deviations and correlations that minimise the criterion at this sigma2."""
    from scipy.optimize import minimize

    count = len(logs)

    def value(x: Vector) -> tuple[float, Vector]:
        shapes = _shapes(sums, x[count:])
        at = evaluate_terms(replace(sums, shapes=shapes), sigma2=sigma2, variances=np.exp(2 * x[:count]))
        doubt, slopes = 0.0, []
        factors = replace(sums, shapes=shapes).factors(np.exp(2 * x[:count]))
        for shape, gradient, L in zip(shapes, at.gradients, factors, strict=True):
            doubt -= DOUBT * 2 * float(np.log(np.diag(shape)).sum())
            slopes += _turned(shape, gradient, L)
        return at.criterion + doubt, np.append(2 * at.slopes * at.variances, slopes)

    low, high = np.log(SMALLEST * largest), np.log(largest)
    bounds = [(low, high)] * count + [(-STEEPEST, STEEPEST)] * len(free)
    start = np.append(np.clip(logs, low + np.log(10), high), free)
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=STOP)
    return np.asarray(found.x[:count]), np.asarray(found.x[count:])


def _shapes(sums: TermSums, free: Vector) -> tuple[Matrix, ...]:
    """Factors of correlation matrices from free numbers: rows (w_1 ... w_(i-1) 1) brought to length 1."""
    shapes, start = [], 0
    for place in sums.places:
        q = place.width
        W = np.eye(q)
        W[np.tril_indices(q, -1)] = free[start : start + q * (q - 1) // 2]
        shapes.append(W / np.linalg.norm(W, axis=1)[:, None])
        start += q * (q - 1) // 2
    return tuple(shapes)


def _turned(shape: Matrix, gradient: Matrix, L: Matrix) -> list[float]:
    """Slopes of the criterion and of the doubt in the free numbers of one term."""
    q = len(shape)
    size = np.linalg.norm(L, axis=1)  # deviations of the coefficients
    length = 1 / np.diag(shape)  # of the rows before they were brought to 1
    along = (gradient * shape).sum(axis=1)
    slope = size[:, None] * (gradient - along[:, None] * shape) / length[:, None]
    slope += DOUBT * 2 * shape / length[:, None]  # -2 log of 1 / length
    return [float(value) for value in slope[np.tril_indices(q, -1)]]
