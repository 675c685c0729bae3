"""Bases of curves in one column: R's `poly`, `bs` and `ns`. A basis learns once, then is evaluated anywhere.

Polynomials follow Forsythe's three-term recurrence, splines that of Cox and de Boor. `ValueError` says that a basis of
this size does not exist for these values, or that values lie outside the range on which a spline was learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discreet.arrays import Matrix, Vector


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
        t, last = self.knots, len(self.knots) - self.degree - 2
        if np.any((x < t[0]) | (x > t[-1])):
            raise ValueError(t[0], t[-1])

        def rise(i: int, width: int) -> Vector | float:
            return (x - t[i]) / (t[i + width] - t[i]) if t[i + width] != t[i] else 0.0

        splines: list[Vector] = [
            ((x >= t[i]) & ((x <= t[i + 1]) if i == last else (x < t[i + 1]))).astype(np.float64)
            for i in range(len(t) - 1)
        ]
        for d in range(1, self.degree + 1):
            splines = [
                rise(i, d) * low + (1 - rise(i + 1, d)) * high for i, (low, high) in enumerate(pairwise(splines))
            ]
        return np.column_stack(splines[1:])


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
        splines = BSpline(t, np.eye(len(t) - 4), 3)
        found = splines(np.clip(x, low, high))
        slopes = splines.derivative()(np.array([low, high]))
        for end, slope, outside in ((low, slopes[0], x < low), (high, slopes[1], x > high)):
            found[outside] += (x[outside] - end)[:, None] * slope
        bends = splines.derivative(2)(np.array([low, high]))
        free = np.linalg.qr(bends[:, 1:].T, mode="complete")[0][:, 2:]  # no second derivative at the ends
        return np.asarray(found[:, 1:] @ free)
