"""The distribution function of mixtures whose normals lie close together: one normal and a proved series around it.

Write component k in deviations of a middle normal, z_k = z + d_k with d_k = a_k + b_k z, a_k = (m - m_k) / s_k and
b_k = s / s_k - 1. Taylor's formula to order N gives

    sum_k w_k Phi(z_k) = Phi(z) + phi(z) sum_{n=1..N} (-1)^(n-1) He_{n-1}(z) / n! sum_k w_k d_k^n + remainder,

a polynomial in z whose coefficients are linear in the moments sum_k w_k a_k^j b_k^i, so its cost per point does not
depend on the number of normals. By Lagrange's remainder and Cramer's inequality |He_N(t)| <= 1.0865 sqrt(N!) e^(t^2/4),

    |remainder| <= 1.0865 / sqrt(2 pi) sqrt(N!) / (N + 1)! sum_k w_k |d_k|^(N+1).

A law whose bound is too large at every order is left to the sum over its normals (`mixture`).
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, factorial, pi, sqrt

import numpy as np

from discreet.arrays import Integers, Matrix

ORDERS = (5, 8)  # beyond, the sum over the normals is as quick
CLOSE = 1e-14  # error of a probability that a series may have
CRAMER = 1.0865 / sqrt(2 * pi)
LAWS = 4096  # whose moments stay in a processor's second-level cache


class Nearby:
    """M mixtures of K normals seen from their middles: `weights`, `means`, `deviations` (K, M), points `x` (M, j)."""

    def __init__(self, weights: Matrix, means: Matrix, deviations: Matrix, x: Matrix) -> None:
        middle, spread = (weights * means).sum(axis=0), (weights * deviations).sum(axis=0)
        self.weights = weights
        self.a = (middle - means) / deviations
        self.b = spread / deviations - 1
        self.z = (x - middle[:, None]) / spread[:, None]

    def orders(self) -> Integers:
        """The least order whose error is below `CLOSE`, 0 where there is none; shape (M,)."""
        apart = np.abs(self.b)
        apart *= np.abs(self.z).max(axis=1)
        apart += np.abs(self.a)
        found = np.zeros(len(self.z), dtype=np.int64)
        for order in ORDERS:
            rest = np.flatnonzero(found == 0) if found.any() else slice(None)
            weights = self.weights if self.weights.shape[1] == 1 else self.weights[:, rest]
            bound = (weights * _power(apart[:, rest], order + 1)).sum(axis=0)
            bound *= CRAMER * sqrt(factorial(order)) / factorial(order + 1)
            found[rest] = np.where(bound <= CLOSE, order, 0)
        return found

    def cdf(self, which: Integers, order: int) -> Matrix:
        """P(law <= x) of some of the laws, (len(which), j)."""
        from scipy.special import ndtr

        parts = []
        for start in range(0, len(which), LAWS):
            at = which[start : start + LAWS]
            z = self.z[at]
            coefficients = _polynomial(order) @ self._moments(at, order)
            total = np.zeros(z.shape)
            for coefficient in coefficients[::-1]:
                total *= z
                total += coefficient[:, None]
            total *= np.exp(-0.5 * z * z) / sqrt(2 * pi)
            total += ndtr(z)
            parts.append(total)
        return np.concatenate(parts)

    def _moments(self, at: Integers, order: int) -> Matrix:
        """sum_k w_k a_k^j b_k^i for the (i, j) of `_powers`, (pairs, len(at))."""
        moments = np.zeros((len(_powers(order)), len(at)))
        for weight, a, b in zip(self.weights, self.a, self.b, strict=True):
            first, a, b = np.broadcast_to(weight, b.shape)[at], a[at], b[at]
            pairs = iter(moments)
            for i in range(order + 1):
                if i:
                    first *= b
                    into = next(pairs)
                    into += first
                term = first.copy()
                for _ in range(order - i):
                    term *= a
                    into = next(pairs)
                    into += term
        return moments


def _power(x: Matrix, n: int) -> Matrix:
    """x^n by squaring."""
    square, found = x, x if n % 2 else None
    while n := n // 2:
        square = square * square
        if n % 2:
            found = square if found is None else found * square
    assert found is not None
    return found


@lru_cache
def _powers(order: int) -> tuple[tuple[int, int], ...]:
    """(i, j) with 1 <= i + j <= order, as `Nearby._moments` meets them."""
    return tuple((i, j) for i in range(order + 1) for j in range(order - i + 1) if i + j)


@lru_cache
def _polynomial(order: int) -> Matrix:
    """Powers of z from moments, (2 order, pairs)."""
    from numpy.polynomial.hermite_e import herme2poly

    found = np.zeros((2 * order, len(_powers(order))))
    for column, (i, j) in enumerate(_powers(order)):
        n = i + j
        hermite = herme2poly([0.0] * (n - 1) + [1.0])
        found[i : i + n, column] = (-1) ** (n - 1) * comb(n, i) / factorial(n) * hermite
    return found
