"""Quantile regression by the Frisch-Newton interior point, many quantiles at once.

Only arrays. The method is Portnoy and Koenker's (1997, doi:10.1214/ss/1030037960) with Mehrotra's corrector, on the
dual problem

    max y'a   subject to   X'a = (1 - tau) X'1,   0 <= a <= 1,

whose multipliers are the coefficients. The quantiles share X, so their normal matrices come from one matrix product.
The interior solution is then moved to the vertex that it points at, which is the exact solution when it is unique.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr

from discreet.arrays import Matrix, Vector
from discreet.errors import FitError

STEP, GAP, ITERATIONS = 0.9995, 1e-9, 60
CELLS = 100_000
"""Dual variables per batch of quantiles: what stays in a processor's cache."""


def quantile_regression(X: Matrix, y: Vector, tau: ArrayLike, *, products: Matrix | None = None) -> Matrix:
    """Coefficients of the `tau` quantiles, shape (len(tau), columns of X).

    `products` may carry `pairwise_products(X)` when many fits share rows.
    """
    taus = np.atleast_1d(np.asarray(tau, float))
    n, p = X.shape
    if not ((taus > 0) & (taus < 1)).all():
        raise FitError("A quantile lies outside (0, 1), where no minimum exists; give values strictly inside.")
    if n < p or np.linalg.matrix_rank(X.T @ X, hermitian=True) < p:
        raise FitError(
            f"A design of {n} rows and {p} columns does not determine its coefficients; drop columns or add rows."
        )
    products = pairwise_products(X) if products is None else products
    batch = max(1, CELLS // n)
    fits = [_interior(X, y, taus[k : k + batch], products) for k in range(0, len(taus), batch)]
    beta = np.concatenate(fits)
    return np.stack([_vertex(X, y, t, b) for t, b in zip(taus, beta, strict=True)])


def check_loss(residual: Matrix, tau: ArrayLike) -> Vector:
    """Koenker's loss, summed over the last axis."""
    return np.asarray((residual * (np.asarray(tau)[..., None] - (residual < 0))).sum(axis=-1))


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


def _interior(X: Matrix, y: Vector, tau: Vector, products: Matrix) -> Matrix:
    """Primal-dual path following; rows of the arrays are quantiles, and a row leaves when its gap is closed."""
    scale = np.abs(y).max() or 1.0
    y = y / scale
    n, p = X.shape
    least_squares = np.linalg.lstsq(X, y, rcond=None)[0]
    answer = np.empty((len(tau), p))
    active = np.arange(len(tau))
    x = np.repeat(1 - tau[:, None], n, axis=1)
    s = 1 - x
    b = -np.repeat(least_squares[None], len(tau), axis=0)
    r = -(y - X @ least_squares)[None] * np.ones((len(tau), 1))
    z = np.maximum(r, 0) + 1e-3
    w = z - r
    for _ in range(ITERATIONS):
        gap = (z * x).sum(1) + (w * s).sum(1)
        open_ = gap > GAP * n
        if not open_.all():
            answer[active[~open_]] = -b[~open_] * scale
            active = active[open_]
            if not active.size:
                return answer
            x, s, b, z, w = (v[open_] for v in (x, s, b, z, w))
        q = 1 / (z / x + w / s)
        r = z - w
        normal = gram(q, products, p)
        db = _solve(normal, (q * r) @ X)
        dx = q * (db @ X.T - r)
        dz, dw = -z * (1 + dx / x), -w * (1 - dx / s)
        fp, fd = _steps(x, dx, s, z, dz, w, dw)
        mu = (z * x).sum(1) + (w * s).sum(1)
        ahead = ((z + fd * dz) * (x + fp * dx)).sum(1) + ((w + fd * dw) * (s - fp * dx)).sum(1)
        centre = (mu * (ahead / mu) ** 3 / (2 * n))[:, None]
        # Mehrotra's corrector: second-order terms and the pull towards the centre, same factorised matrix.
        cx, cs = dx * dz / x, -dx * dw / s
        pull = centre * (1 / x - 1 / s)
        db = _solve(normal, (q * (r + cx - cs - pull)) @ X)
        dx = q * (db @ X.T + pull - r - cx + cs)
        dz, dw = (centre - z * dx) / x - z - cx, (centre + w * dx) / s - w - cs
        fp, fd = _steps(x, dx, s, z, dz, w, dw)
        x, s, b = x + fp * dx, s - fp * dx, b + fd * db
        z, w = z + fd * dz, w + fd * dw
    answer[active] = -b * scale
    return answer


def _steps(x: Matrix, dx: Matrix, s: Matrix, z: Matrix, dz: Matrix, w: Matrix, dw: Matrix) -> tuple[Matrix, Matrix]:
    """How far the primal and the dual may move and stay inside, one column each."""
    primal, dual = np.maximum(-dx / x, dx / s).max(1), np.maximum(-dz / z, -dw / w).max(1)
    return (STEP / np.maximum(primal, STEP))[:, None], (STEP / np.maximum(dual, STEP))[:, None]


def _solve(normal: Matrix, right: Matrix) -> Matrix:
    return np.asarray(np.linalg.solve(normal, right[..., None])[..., 0])


def _vertex(X: Matrix, y: Vector, tau: float, beta: Vector) -> Vector:
    """The exact fit through p independent rows nearest to the interior solution, if it is at least as good."""
    p = X.shape[1]
    residual = y - X @ beta
    size = np.abs(residual)
    near = np.argpartition(size, min(4 * p, len(y) - 1))[: 4 * p]
    closeness = 1 / (size[near] + 1e-12 * (1 + np.abs(y).max()))
    triangle, pivots = qr(X[near].T * closeness, mode="r", pivoting=True)
    rows = near[pivots[:p]]
    if abs(triangle[p - 1, p - 1]) < 1e-12 * abs(triangle[0, 0]):
        return beta
    exact = np.linalg.solve(X[rows], y[rows])
    losses = check_loss(np.stack([y - X @ exact, residual]), np.array([tau, tau]))
    return np.asarray(exact if losses[0] <= losses[1] else beta)
