"""Bases of curves in one column: R's `poly`, `bs` and `ns`. A basis learns once, then is evaluated anywhere.

Polynomials follow Forsythe's three-term recurrence, splines that of Cox and de Boor. `ValueError` says that a basis of
this size does not exist for these values, or that values lie outside the range on which a spline was learned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Matrix, Vector

CHUNK = 65_536  # rows at a time


@dataclass(frozen=True, slots=True)
class Polynomials:
    """Polynomials of degree 1, 2, ..., orthonormal over the values that they were learned from."""

    centres: tuple[float, ...]
    norms: tuple[float, ...]
    """Squared, of degree 0 on."""

    @classmethod
    def learn(cls, x: Vector, degree: int) -> Polynomials:
        if not 1 <= degree < len(np.unique(x)):
            raise ValueError(degree)  # so many points lie on a polynomial of a lower degree
        before, here = np.zeros_like(x), np.ones_like(x)
        centres: list[float] = []
        norms = [float(np.sum(here**2))]
        for _ in range(degree):
            centres.append(float(np.sum(x * here**2) / norms[-1]))
            pull = norms[-1] / norms[-2] if len(norms) > 1 else 0.0
            before, here = here, (x - centres[-1]) * here - pull * before
            norms.append(float(np.sum(here**2)))
        return cls(tuple(centres), tuple(norms))

    def at(self, x: Vector) -> Matrix:
        found = np.ones((len(x), len(self.norms)))
        for k, centre in enumerate(self.centres):
            found[:, k + 1] = (x - centre) * found[:, k]
            if k:
                found[:, k + 1] -= self.norms[k] / self.norms[k - 1] * found[:, k - 1]
        return np.asarray((found / np.sqrt(self.norms))[:, 1:], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Splines:
    """B-splines without the first, which the intercept replaces; inner knots are quantiles."""

    knots: tuple[float, ...]
    """The ends of the range have multiplicity `degree` + 1."""
    degree: int

    @classmethod
    def learn(cls, x: Vector, degree: int, df: int | None) -> Splines:
        inner = 0 if df is None else df - degree
        if degree < 0 or inner < 0 or not 1 <= inner + degree <= len(x):
            raise ValueError(df, degree)
        quantiles = np.quantile(x, np.linspace(0, 1, inner + 2))[1:-1]
        knots = np.pad(np.concatenate([[x.min()], quantiles, [x.max()]]), degree, mode="edge")
        return cls(tuple(knots.tolist()), degree)

    def at(self, x: Vector) -> Matrix:
        """Only the `degree` + 1 splines that are not zero at a value are worked out."""
        t, last = np.array(self.knots), len(self.knots) - self.degree - 2
        if np.any((x < t[0]) | (x > t[-1])):
            raise ValueError(t[0], t[-1])
        between = np.minimum(np.searchsorted(t, x, side="right") - 1, last)  # the last interval has its end
        near = [np.ones(len(x))]
        for d in range(1, self.degree + 1):
            before, near = near, [np.zeros(len(x)) for _ in range(d + 1)]
            for r, low in enumerate(before):
                start = t[between + 1 - d + r]
                width = t[between + 1 + r] - start
                rise = np.divide(x - start, width, out=np.zeros(len(x)), where=width > 0)
                near[r] += (1 - rise) * low
                near[r + 1] += rise * low
        found = np.zeros((len(x), last))
        for r, value in enumerate(near):
            at = between - self.degree + r - 1
            there = np.flatnonzero(at >= 0)
            found[there, at[there]] = value[there]
        return found


@dataclass(frozen=True, slots=True)
class NaturalSplines:
    """Cubic splines that are linear beyond the range of the values that they were learned from; no constant."""

    knots: tuple[float, ...]
    """The ends of the range have multiplicity four."""

    @classmethod
    def learn(cls, x: Vector, df: int) -> NaturalSplines:
        if not 1 <= df < len(np.unique(x)):
            raise ValueError(df)
        quantiles = np.quantile(x, np.linspace(0, 1, df + 1))[1:-1]
        knots = np.pad(np.concatenate([[x.min()], quantiles, [x.max()]]), 3, mode="edge")
        return cls(tuple(knots.tolist()))

    def at(self, x: Vector) -> Matrix:
        from scipy.interpolate import BSpline

        t = np.array(self.knots)
        low, high = t[0], t[-1]
        splines, ends = BSpline(t, np.eye(len(t) - 4)[:, 1:], 3), np.array([low, high])
        found = Splines(self.knots, 3).at(np.clip(x, low, high))
        slopes = splines.derivative()(ends)
        for end, slope, outside in ((low, slopes[0], x < low), (high, slopes[1], x > high)):
            found[outside] += (x[outside] - end)[:, None] * slope
        # No second derivative at the ends: times the last columns of Q of a QR of both, which are two reflections.
        packed, sizes = np.linalg.qr(splines.derivative(2)(ends).T, mode="raw")
        for k, size in enumerate(sizes.tolist()):
            mirror = np.concatenate([np.zeros(k), [1.0], packed[k, k + 1 :]])
            used = np.flatnonzero(mirror)
            found[:, used] -= np.outer(found[:, used] @ mirror[used], size * mirror[used])
        return found[:, 2:]


def deviations(columns: Matrix) -> Vector:
    """Standard deviations of columns, without a copy of all of them."""
    means = columns.mean(axis=0)
    parts = (np.square(columns[at : at + CHUNK] - means).sum(axis=0) for at in range(0, len(columns), CHUNK))
    return np.asarray(np.sqrt(sum(parts, np.zeros(len(means))) / len(columns)))
