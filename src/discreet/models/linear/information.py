"""Slopes of the profiled criterion with a matrix of about its second derivatives: the average information.

Only arrays enter and only arrays leave. The average of observed and expected information has no traces of products
(Johnson and Thompson 1995; Gilmour, Thompson and Cullis 1995, doi:10.2307/2533274): with V_i the derivative of V in
theta_i, it is y'P V_i P V_j P y, one forward substitution more for each theta. V is quadratic in theta, so where the
criterion rises with a variance, that slope bends it too; without this part no step would lead to a variance of zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear.sparse import (
    Eliminated,
    Gram,
    Swept,
    after,
    by_columns,
    by_triangle,
    criterion,
    eliminate,
    lower,
    swept,
)

TINY = 1e-8  # a diagonal of T that is taken for zero


class Surface(Protocol):
    """A criterion over theta, and what was found at the point that was asked last."""

    theta: Vector | None

    def value(self, theta: Vector) -> float: ...

    def bent(self) -> tuple[Vector, Matrix]: ...


@dataclass
class ManyEffects:
    """The surface of any model."""

    gram: Gram
    reml: bool
    theta: Vector | None = None
    _at: Eliminated | None = None

    def value(self, theta: Vector) -> float:
        """The criterion; `LinAlgError` where it has no value."""
        self.theta, self._at = theta, None  # two factors are never in memory
        self._at = eliminate(self.gram, theta)
        return criterion(self._at, reml=self.reml)[0]

    def bent(self) -> tuple[Vector, Matrix]:
        """Slopes at the last point, and about the second derivatives; the point must be asked again afterwards."""
        assert self._at is not None
        at, self.theta, self._at = self._at, None, None
        return bent(at, reml=self.reml)


def bent(eliminated: Eliminated, *, reml: bool) -> tuple[Vector, Matrix]:
    """Slopes in theta, and about the second derivatives, never negative; `eliminated` cannot be used afterwards."""
    at = swept(eliminated, reml=reml)
    information = average_information(at)
    slopes = by_triangle(at, *eliminated.factor.inverse(consume=True))
    return lower(slopes), with_rising(information, slopes, eliminated.triangles)


def with_rising(information: Matrix, slopes: Sequence[Matrix], triangles: Sequence[Matrix]) -> Matrix:
    """The information with what slopes of rising variances add; they are in every entry of each T."""
    start = 0
    for slope, T in zip(slopes, triangles, strict=True):
        if len(T) == 1:
            information[start, start] += 2 * float(_rising(slope, T)[0, 0])
            start += 1
            continue
        columns, rows = by_columns(len(T))
        own = slice(start, start := start + len(rows))
        information[own, own] += 2 * _rising(slope, T)[rows[:, None], rows] * (columns[:, None] == columns)
    return information


def average_information(at: Swept) -> Matrix:
    """The average information in theta with sigma profiled out."""
    gram, T, factor = at.eliminated.gram, at.eliminated.triangles, at.eliminated.factor
    C = moved(gram, T, at.H @ at.contrast, at.Y @ at.contrast)
    ZZC = gram.whole @ C
    scaled = [after(part.T, t).T for part, t in zip(gram.split(ZZC), T, strict=True)]
    squares = C.T @ ZZC - factor.squares(*factor.reduce(np.concatenate(scaled)))
    return information_of(squares, C, at.H, at.contrast, at.unscaled, at.scale, at.freedom)


def moved(gram: Gram, T: Sequence[Matrix], u: Vector, b: Vector) -> Matrix:
    """C with V_i P y = Z C_i for every theta, from Z'P y and Lambda'Z'P y, but for their sign."""
    C = np.zeros((gram.effects, sum(len(t) * (len(t) + 1) // 2 for t in T)))
    column = 0
    for t, start, size in zip(T, gram.bounds, gram.sizes, strict=True):
        q = len(t)
        if q == 1:
            C[start : start + size, column] = 2 * float(t[0, 0]) * u[start : start + size]
            column += 1
            continue
        columns, rows = by_columns(q)
        U, B = u[start : start + size].reshape(-1, q), b[start : start + size].reshape(-1, q)
        own = U[:, None, rows] * t[:, columns]
        own[:, rows, np.arange(len(rows))] += B[:, columns]
        C[start : start + size, column : column + len(rows)] = own.reshape(size, -1)
        column += len(rows)
    return C


def information_of(
    squares: Matrix, C: Matrix, H: Matrix, contrast: Vector, unscaled: Matrix, scale: float, freedom: float
) -> Matrix:
    """The average information from `squares`, which are C'Z'V^-1 Z C."""
    fixed, shared = H[:, :-1].T @ C, C.T @ (H @ contrast)
    inside = squares - fixed.T @ unscaled @ fixed
    return np.asarray(scale * inside - scale**2 / freedom * (shared[:, None] * shared))


def _rising(slope: Matrix, T: Matrix) -> Matrix:
    """The part of the slope in the covariance T T', which is half of `slope` T^-1, that is not negative."""
    if len(T) == 1:
        t = float(T[0, 0])
        return np.full((1, 1), max(float(slope[0, 0]) / (2 * t), 0.0) if abs(t) > TINY else 0.0)
    from scipy.linalg.lapack import dsyev, dtrtrs

    every = np.arange(len(T))
    own = T.copy()
    own[every, every] = np.where(np.abs(T[every, every]) < TINY, TINY, T[every, every])
    half = dtrtrs(own, slope.T, lower=1, trans=1)[0] / 4
    values, vectors, _ = dsyev(half + half.T)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
