"""Regression under the loss |e|^p for many powers at once, by reweighted least squares.

Only arrays. For p of 1 or more the problem is convex and the answer is the minimum, to some millionths of the loss.
Below 1 the answer is a local minimum that graduated smoothing reaches from least squares: (e² + d²)^(p/2) with d
falling from the residuals' own size (Chartrand and Yin 2008, doi:10.1109/ICASSP.2008.4518498). Or it starts from a fit
nearby, with d falling from a hundredth of that size. At p = 0 the loss is its limit, the sum of log |e|.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Matrix, Vector
from discreet.words.errors import FitError

COARSEST, NEARBY, FINEST, ROUNDS = 1.0, 1e-2, 1e-5, 40
CELLS = 100_000
"""Weights per batch of powers: what stays in a processor's cache."""


def power_regression(
    X: Matrix, y: Vector, power: ArrayLike, *, start: Matrix | None = None, products: Matrix | None = None
) -> Matrix:
    """Coefficients that minimise sum |y - X b|^p, shape (len(power), columns of X).

    `start` may carry coefficients of nearby data, the same shape; `products`, `pairwise_products(X)`.
    """
    powers = np.atleast_1d(np.asarray(power, float))
    if not ((powers >= 0) & np.isfinite(powers)).all():
        raise FitError(
            "A power is negative or infinite, where the loss has no minimum.", remedy="Give 0 or more.", about="power"
        )
    n, p = X.shape
    if n < p or np.linalg.matrix_rank(X.T @ X, hermitian=True) < p:
        raise FitError(
            f"A design of {n} rows and {p} columns does not determine its coefficients.",
            remedy="Drop columns or add rows.",
            about="X",
        )
    products = pairwise_products(X) if products is None else products
    batch = max(1, CELLS // n)
    squares: Vector = np.linalg.lstsq(X, y, rcond=None)[0].astype(float)
    scale = float(np.sqrt(np.mean((y - X @ squares) ** 2))) or 1.0
    path = np.geomspace(COARSEST, FINEST, ROUNDS) * scale
    if start is not None:
        path = path[path <= NEARBY * scale][:: ROUNDS // 20]
    first = np.repeat(squares[None], len(powers), axis=0) if start is None else start
    parts = [slice(k, k + batch) for k in range(0, len(powers), batch)]
    return np.concatenate([_reweighted(X, y, powers[part], first[part], path, products) for part in parts])


def power_loss(residual: Matrix, power: ArrayLike) -> Vector:
    """sum |e|^p over the last axis."""
    return np.asarray((np.abs(residual) ** np.asarray(power)[..., None]).sum(axis=-1))


def pairwise_products(X: Matrix) -> Matrix:
    """Products of every pair of columns, row by row: the rows of all weighted Gram matrices of X."""
    i, j = np.triu_indices(X.shape[1])
    return np.asarray(X[:, i] * X[:, j])


def gram(weights: Matrix, products: Matrix, p: int) -> Matrix:
    """X' diag(w) X for every row w of `weights`, shape (rows, p, p)."""
    i, j = np.triu_indices(p)
    result = np.empty((len(weights), p, p))
    result[:, i, j] = result[:, j, i] = weights @ products
    return result


def _reweighted(X: Matrix, y: Vector, power: Vector, beta: Matrix, path: Vector, products: Matrix) -> Matrix:
    """A full step is right up to p = 2; beyond, Newton's step is shorter by p - 1."""
    half = (power[:, None] - 2) / 2
    shorten = 1 / np.maximum(power - 1, 1)[:, None]
    for smoothing in path:
        residual = y - beta @ X.T
        weights = np.exp(half * np.log(residual**2 + smoothing**2))
        weights /= weights.max(axis=1, keepdims=True)
        normal = gram(weights, products, X.shape[1])
        ridge = 1e-12 * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(X.shape[1])
        step = np.linalg.solve(normal + ridge, ((weights * residual) @ X)[..., None])[..., 0]
        beta = beta + shorten * step
    return beta
