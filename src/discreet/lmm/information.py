"""Slopes of the profiled criterion with a matrix of about its second derivatives: the average information.

Only arrays enter and only arrays leave. The average of observed and expected information has no traces of products
(Johnson and Thompson 1995; Gilmour, Thompson and Cullis 1995, doi:10.2307/2533274): with V_i the derivative of V in
theta_i, it is y'P V_i P V_j P y, one forward substitution more for each theta. V is quadratic in theta, so where the
criterion rises with a variance, that slope bends it too; without this part no step would lead to a variance of zero.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.lmm.sparse import Eliminated, Swept, after, by_columns, by_triangle, lower, swept

TINY = 1e-8  # a diagonal of T that is taken for zero


def bent(eliminated: Eliminated, *, reml: bool) -> tuple[Vector, Matrix]:
    """Slopes in theta, and about the second derivatives, never negative; `eliminated` cannot be used afterwards."""
    at = swept(eliminated, reml=reml)
    information = average_information(at)
    slopes = by_triangle(at, *eliminated.factor.inverse(consume=True))
    start = 0
    for slope, T in zip(slopes, eliminated.triangles, strict=True):
        columns, rows = by_columns(len(T))
        own = slice(start, start := start + len(rows))
        information[own, own] += 2 * _rising(slope, T)[rows[:, None], rows] * (columns[:, None] == columns)
    return lower(slopes), information


def average_information(at: Swept) -> Matrix:
    """The average information in theta with sigma profiled out."""
    gram, T, p = at.eliminated.gram, at.eliminated.triangles, at.eliminated.gram.p
    u, b = at.H @ at.contrast, at.Y @ at.contrast  # Z'P y and Lambda'Z'P y, but for their sign
    C = np.zeros((gram.effects, sum(len(t) * (len(t) + 1) // 2 for t in T)))  # V_i P y = Z C
    column = 0
    for t, start, size in zip(T, gram.bounds, gram.sizes, strict=True):
        q = len(t)
        if q == 1:
            C[start : start + size, column] = 2 * float(t[0, 0]) * u[start : start + size]
            column += 1
            continue
        U, B = u[start : start + size].reshape(-1, q), b[start : start + size].reshape(-1, q)
        for k, row in zip(*by_columns(q), strict=True):
            own = U[:, row, None] * t[:, k]
            own[:, row] += B[:, k]
            C[start : start + size, column] = own.ravel()
            column += 1
    ZZC = gram.whole @ C
    scaled = [after(part.T, t).T for part, t in zip(gram.split(ZZC), T, strict=True)]
    factor = at.eliminated.factor
    squares = C.T @ ZZC - factor.squares(*factor.reduce(np.concatenate(scaled)))
    fixed, shared = at.H[:, :p].T @ C, C.T @ u
    squares -= fixed.T @ at.unscaled @ fixed
    return np.asarray(at.scale * squares - at.scale**2 / at.freedom * np.outer(shared, shared))


def _rising(slope: Matrix, T: Matrix) -> Matrix:
    """The part of the slope in the covariance T T', which is half of `slope` T^-1, that is not negative."""
    if len(T) == 1:
        t = float(T[0, 0])
        return np.full((1, 1), max(float(slope[0, 0]) / (2 * t), 0.0) if abs(t) > TINY else 0.0)
    every = np.arange(len(T))
    own = T.copy()
    own[every, every] = np.where(np.abs(T[every, every]) < TINY, TINY, T[every, every])
    half = np.linalg.solve(own.T, slope.T) / 4
    values, vectors = np.linalg.eigh(half + half.T)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
