"""Quantile regression by the Frisch-Newton interior point, many quantiles at once.

Only arrays. The method is Portnoy and Koenker's (1997, doi:10.1214/ss/1030037960) with Mehrotra's corrector, on the
dual problem

    max y'a   subject to   X'a = (1 - tau) X'1,   0 <= a <= 1,

whose multipliers are the coefficients. The interior solution is then moved to the vertex that it points at, which is
the exact solution when it is unique. Given a fit nearby, only the rows in a band around it are kept one by one. Those
above and those below are summed to two rows, which changes nothing as long as they stay on their side (theirs too).
Many rows get such a fit from a sample of them, so the cost grows no faster than the number of rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr

from discreet.arrays import Matrix, Vector
from discreet.words.errors import FitError

STEP, GAP, ITERATIONS = 0.9995, 1e-11, 200
CELLS = 100_000
"""Dual variables per batch of quantiles: what stays in a processor's cache."""

BAND = 80
"""Rows per column of the design that a refit keeps at first."""


def quantile_regression(X: Matrix, y: Vector, tau: ArrayLike, *, start: Matrix | None = None) -> Matrix:
    """Coefficients of the `tau` quantiles, shape (len(tau), columns of X).

    `start` may carry coefficients of nearby data, the same shape: a faster way to the same minimum.
    """
    taus = np.atleast_1d(np.asarray(tau, float))
    n, p = X.shape
    if not ((taus > 0) & (taus < 1)).all():
        raise FitError(
            "A quantile lies outside (0, 1), where no minimum exists.",
            remedy="Give values strictly inside.",
            about="quantile",
        )
    if n < p or np.linalg.matrix_rank(X.T @ X, hermitian=True) < p:
        raise FitError(
            f"A design of {n} rows and {p} columns does not determine its coefficients.",
            remedy="Drop columns or add rows.",
            about="X",
        )
    if start is not None:
        return _banded(X, y, taus, start, BAND * p)
    few = round((n * p) ** (2 / 3))  # Portnoy and Koenker's first sample, and the band around its fit
    sample = np.sort(np.random.default_rng(0).permutation(n)[:few])
    if 8 * few > n or np.linalg.matrix_rank(X[sample].T @ X[sample], hermitian=True) < p:
        return _whole(X, y, taus)
    return _banded(X, y, taus, _whole(X[sample], y[sample], taus), few)


def check_loss(residual: Matrix, tau: ArrayLike) -> Vector:
    """Koenker's loss, summed over the last axis."""
    return np.asarray((residual * (np.asarray(tau)[..., None] - (residual < 0))).sum(axis=-1))


def _whole(X: Matrix, y: Vector, tau: Vector) -> Matrix:
    """Every row by itself."""
    batch = max(1, CELLS // len(y))
    inside = [_interior(X[None], y[None], tau[k : k + batch]) for k in range(0, len(tau), batch)]
    return np.stack([_vertex(X, y, t, b) for t, b in zip(tau, np.concatenate(inside), strict=True)])


def _banded(X: Matrix, y: Vector, tau: Vector, start: Matrix, rows: int) -> Matrix:
    """The `rows` rows nearest to `start`, the sum of those above and the sum of those below.

    The answer is right where no summed row changed sides; elsewhere the band is doubled.
    """
    if 4 * rows > len(y):
        return _whole(X, y, tau)
    residual = y - start @ X.T
    best = np.array([_optimal(X, r, t) for r, t in zip(residual, tau, strict=True)])
    if best.any():
        beta = start.copy()
        if not best.all():
            beta[~best] = _banded(X, y, tau[~best], start[~best], rows)
        return beta
    near = np.argpartition(np.abs(residual), rows, axis=1)[:, :rows]
    above = residual > 0
    below = ~above
    for side in (above, below):
        np.put_along_axis(side, near, False, axis=1)
    sides = np.stack([above, below], axis=1).astype(float)
    design, outcome = np.concatenate([X[near], sides @ X], axis=1), np.concatenate([y[near], sides @ y], axis=1)
    if (np.linalg.matrix_rank(design.swapaxes(1, 2) @ design, hermitian=True) < X.shape[1]).any():
        return _banded(X, y, tau, start, 2 * rows)
    inside = _interior(design, outcome, tau)
    beta = np.stack([_vertex(*one) for one in zip(design, outcome, tau, inside, strict=True)])
    residual = y - beta @ X.T
    room = 1e-9 * (1 + np.abs(y).max())
    wrong = ((residual < -room) & above).any(axis=1) | ((residual > room) & below).any(axis=1)
    if wrong.any():
        beta[wrong] = _banded(X, y, tau[wrong], beta[wrong], 2 * rows)
    return beta


def _optimal(X: Matrix, residual: Vector, tau: float) -> bool:
    """Whether a fit is known to be the minimum: Newton's method finds a dual solution that agrees with it.

    It recognises fits through very many rows, such as zero for low quantiles of counts, whose bands would be endless.
    """
    through = np.abs(residual) < 1e-12
    if through.sum() < BAND * X.shape[1]:
        return False
    Z = X[through]
    missing = (1 - tau) * X.sum(axis=0) - X[residual >= 1e-12].sum(axis=0)
    dual, slope, inside = np.zeros(len(Z)), np.zeros(Z.shape[1]), np.full(len(Z), True)
    for _ in range(20):
        slope = slope + np.linalg.lstsq(Z[inside].T @ Z[inside], missing, rcond=None)[0]
        before, dual = dual, Z @ slope
        inside = (dual > 0) & (dual < 1)
        dual = np.clip(dual, 0, 1)
        missing = missing - Z.T @ (dual - before)
        if np.abs(missing).max() < 1e-11 * np.abs(X).sum():
            return True
    return False


def _interior(X: Matrix, y: Matrix, tau: Vector) -> Matrix:
    """Primal-dual path following for X of shape (quantiles or 1, n, p); a quantile leaves when its gap is closed."""
    scale = np.abs(y).mean() or 1.0
    y = y / scale
    n, p = X.shape[1:]
    shared = len(X) == 1
    first = np.stack([np.linalg.lstsq(design, v, rcond=None)[0] for design, v in zip(X, y, strict=True)])
    answer = np.empty((len(tau), p))
    active = np.arange(len(tau))
    x = np.repeat(1 - tau[:, None], n, axis=1)
    s = 1 - x
    b = -np.repeat(first, len(tau) // len(first), axis=0)
    r = -(y - _fitted(X, first)) * np.ones((len(tau), 1))
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
            X = X if shared else X[open_]
        q = 1 / (z / x + w / s)
        r = z - w
        normal = (X.swapaxes(1, 2) * q[:, None]) @ X
        db = _solve(normal, _summed(X, q * r))
        dx = q * (_fitted(X, db) - r)
        dz, dw = -z * (1 + dx / x), -w * (1 - dx / s)
        fp, fd = _steps(x, dx, s, z, dz, w, dw)
        mu = (z * x).sum(1) + (w * s).sum(1)
        ahead = ((z + fd * dz) * (x + fp * dx)).sum(1) + ((w + fd * dw) * (s - fp * dx)).sum(1)
        centre = (mu * (ahead / mu) ** 3 / (2 * n))[:, None]
        # Mehrotra's corrector: second-order terms and the pull towards the centre, same factorised matrix.
        cx, cs = dx * dz / x, -dx * dw / s
        pull = centre * (1 / x - 1 / s)
        db = _solve(normal, _summed(X, q * (r + cx - cs - pull)))
        dx = q * (_fitted(X, db) + pull - r - cx + cs)
        dz, dw = (centre - z * dx) / x - z - cx, (centre + w * dx) / s - w - cs
        fp, fd = _steps(x, dx, s, z, dz, w, dw)
        x, s, b = x + fp * dx, s - fp * dx, b + fd * db
        z, w = z + fd * dz, w + fd * dw
    answer[active] = -b * scale
    return answer


def _fitted(X: Matrix, b: Matrix) -> Matrix:
    return np.asarray(b @ X[0].T if len(X) == 1 else (X @ b[..., None])[..., 0])


def _summed(X: Matrix, v: Matrix) -> Matrix:
    return np.asarray(v @ X[0] if len(X) == 1 else (v[:, None] @ X)[:, 0])


def _steps(x: Matrix, dx: Matrix, s: Matrix, z: Matrix, dz: Matrix, w: Matrix, dw: Matrix) -> tuple[Matrix, Matrix]:
    """How far the primal and the dual may move and remain inside, one column each."""
    primal, dual = np.maximum(-dx / x, dx / s).max(1), np.maximum(-dz / z, -dw / w).max(1)
    return (STEP / np.maximum(primal, STEP))[:, None], (STEP / np.maximum(dual, STEP))[:, None]


def _solve(normal: Matrix, right: Matrix) -> Matrix:
    """Newton's step; the shortest one where the weights of a few rows have left the matrix singular."""
    try:
        return np.asarray(np.linalg.solve(normal, right[..., None])[..., 0])
    except np.linalg.LinAlgError:
        return np.asarray((np.linalg.pinv(normal, hermitian=True) @ right[..., None])[..., 0])


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
    exact = _solve(X[rows][None], y[rows][None])[0]
    losses = check_loss(np.stack([y - X @ exact, residual]), np.array([tau, tau]))
    return np.asarray(exact if losses[0] <= losses[1] else beta)
