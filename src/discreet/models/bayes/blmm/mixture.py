"""Finite mixtures of normals that share their weights: density, distribution, quantiles, bin probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.bayes.blmm.series import Nearby

STEPS = 60
PRECISION = 1e-12  # of a quantile's probability
RARE = 1e-4  # a bin's probability below which a series has too few digits
SQRT_2PI = float(np.sqrt(2 * np.pi))


@dataclass(frozen=True)
class Mixtures:
    """M laws, each a mixture of K normals: `weights` (K,) or (K, M), `means` and `deviations` (K, M)."""

    weights: Matrix
    means: Matrix
    deviations: Matrix

    @property
    def _weights(self) -> Matrix:
        return self.weights if self.weights.ndim == 2 else self.weights[:, None]

    @cached_property
    def mean(self) -> Vector:
        found: Vector = (self._weights * self.means).sum(axis=0)
        return found

    @cached_property
    def sd(self) -> Vector:
        spread = self.deviations**2 + (self.means - self.mean) ** 2
        found: Vector = np.sqrt((self._weights * spread).sum(axis=0))
        return found

    def take(self, which: slice | Integers) -> Mixtures:
        """Some of the laws."""
        weights = self.weights[:, which] if self.weights.ndim == 2 else self.weights
        return Mixtures(weights, self.means[:, which], self.deviations[:, which])

    def cdf(self, x: Matrix) -> Matrix:
        """P(law <= x); `x` is (M, j), the result likewise."""
        from scipy.special import ndtr

        total, z = np.zeros(x.shape), np.empty(x.shape)
        for weight, mean, deviation in zip(self._weights, self.means, self.deviations, strict=True):
            np.subtract(x, mean[:, None], out=z)
            z /= deviation[:, None]
            ndtr(z, out=z)
            z *= weight[:, None]
            total += z
        return total

    def pdf(self, x: Matrix) -> Matrix:
        """The density at `x` (M, j)."""
        total = np.zeros(x.shape)
        for weight, mean, deviation in zip(self._weights, self.means, self.deviations, strict=True):
            z = (x - mean[:, None]) / deviation[:, None]
            total += (weight / deviation / SQRT_2PI)[:, None] * np.exp(-0.5 * z * z)
        return total

    def quantile(self, levels: Vector) -> Matrix:
        """Quantiles at `levels` (j,) of every law, shape (M, j): Newton's method inside the components' quantiles."""
        from scipy.special import ndtri

        z = ndtri(np.asarray(levels, dtype=np.float64))
        low = high = self.means[0][:, None] + self.deviations[0][:, None] * z
        for mean, deviation in zip(self.means[1:], self.deviations[1:], strict=True):
            own = mean[:, None] + deviation[:, None] * z
            low, high = np.minimum(low, own), np.maximum(high, own)
        x = np.clip(self.mean[:, None] + self.sd[:, None] * z, low, high)
        for _ in range(STEPS):
            excess = self.cdf(x) - levels
            if np.abs(excess).max() < PRECISION:
                break
            low, high = np.where(excess < 0, x, low), np.where(excess > 0, x, high)
            step = x - excess / np.maximum(self.pdf(x), 1e-300)
            x = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
        found: Matrix = x
        return found

    def bins(self, edges: Matrix) -> Matrix:
        """Probabilities of the intervals that `edges` (M, j) bound, shape (M, j + 1).

        A series is used if a law's normals lie close together and no interval is rare; it gives ten digits of every
        answer.
        """
        nearby = Nearby(self._weights, self.means, self.deviations, edges)
        order = nearby.orders()
        if 2 * np.count_nonzero(order) < len(order):
            return _between(self.cdf(edges))
        below = np.zeros(edges.shape)
        for near in np.unique(order[order > 0]).tolist():
            which = np.flatnonzero(order == near)
            below[which] = nearby.cdf(which, near)
        found = _between(below)
        rest = np.flatnonzero((order == 0) | (found.min(axis=1) < RARE))
        found[rest] = _between(self.take(rest).cdf(edges[rest]))
        return found


def _between(below: Matrix) -> Matrix:
    """Probabilities of intervals from those below their ends."""
    found: Matrix = np.diff(below, axis=1, prepend=0.0, append=1.0)
    return found
