"""The worst output between two neighbours of known shift and ratio: the largest loss of a law, or its exact delta.

With u the shift and w the ratio of the scales, loss(z) = log h(z) - log h((z - u) / w) + d log w. What is no number,
and a density of zero, is an infinite loss: a neighbour has mass there. Whether a search of outputs is complete depends
on the law, and `closed_forms` says for which.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Protocol, cast

import numpy as np

from discreet.arrays import Vector
from discreet.privacy.maxima import golden, peaks
from discreet.privacy.stepped import SteppedLaw, stepped_supremum

MOST_EPSILON = 700  # e^epsilon is a double
_FAR = 1e13

ROUNDED = 2.0**-50
"""Share of two logarithms by which their difference can be off."""


class VerifiableLaw(Protocol):
    """A noise law: symmetric and unimodal; with several coordinates, a function of their L1 norm."""

    @property
    def dimension(self) -> int: ...

    def log_density(self, z: Vector) -> Vector: ...

    def probability(self, j: Vector, scale: float) -> Vector: ...


class LineLaw(VerifiableLaw, Protocol):
    """A law of one coordinate, whose distribution function is known."""

    def cdf(self, z: Vector) -> Vector: ...


def supremum(law: VerifiableLaw, *, shift: Vector, ratio: Vector) -> tuple[Vector, Vector]:
    """The largest |loss| over all outputs for each (shift, ratio), and the output z where it occurs.

    The loss has kinks only at z = 0 and z = shift, is smooth elsewhere, and tends to its limit in the tails. So a grid
    that is dense around both kinks brackets every maximum, and golden section finds it. A law that is constant between
    jumps needs one point between any two of them; a radial one needs the ends of its rings (`stepped`).
    """
    if getattr(law, "stepped", False):
        best, where = stepped_supremum(cast(SteppedLaw, law), shift=shift, ratio=ratio)
        best = _infinite(best)
    else:
        best, where = _smooth_supremum(law, shift, ratio)
    # Far out only the ratio of the scales matters; leaving the shift out keeps the digits that it would cost.
    tail = np.abs(_loss(law, np.full_like(shift, _FAR), np.zeros_like(shift), ratio))
    where = np.where(tail > best, np.inf, where)
    best = np.maximum(best, tail)
    return np.where(best > _FAR * 1e-9, np.inf, best), where


def _infinite(loss: Vector) -> Vector:
    """A loss that is no number is infinite: one density is zero, or neither is known."""
    return np.asarray(np.where(np.isfinite(loss), loss, np.inf))


def _smooth_supremum(law: VerifiableLaw, shift: Vector, ratio: Vector) -> tuple[Vector, Vector]:
    steps = np.concatenate([[0.0], np.geomspace(1e-5, 1e6, 160)])
    best = np.full(len(shift), -np.inf)
    where = np.zeros(len(shift))
    for rows in np.array_split(np.arange(len(shift)), len(shift) * law.dimension // 4000 + 1):
        grid, u, w = _grid(steps, shift[rows], ratio[rows])
        losses = _loss(law, grid, u, w)
        for sign in (1.0, -1.0):
            loss, value = partial(_signed_loss, sign, law, u, w), _infinite(sign * losses)
            top = np.argmax(value, axis=1)
            low = np.take_along_axis(grid, np.maximum(top - 1, 0)[:, None], axis=1)
            high = np.take_along_axis(grid, np.minimum(top + 1, grid.shape[1] - 1)[:, None], axis=1)
            peak, z = golden(loss, low, high)
            start = np.take_along_axis(value, top[:, None], axis=1)
            z = np.where(peak > start, z, np.take_along_axis(grid, top[:, None], axis=1))[:, 0]
            peak = np.maximum(peak, start)[:, 0]
            better = peak > best[rows]
            best[rows] = np.where(better, peak, best[rows])
            where[rows] = np.where(better, z, where[rows])
    jumps = getattr(law, "jumps", np.empty(0))
    if jumps.size:
        peak, z = peaks(partial(_loss, law), jumps, shift=shift, ratio=ratio)
        best, where = np.maximum(best, peak), np.where(peak > best, z, where)
    return best, where


def exact_delta(law: LineLaw, *, shift: Vector, ratio: Vector, epsilon: float) -> Vector:
    """The smallest delta for which (epsilon, delta) holds between each pair, in its worse direction.

    delta = integral of (f - e^eps f')+: the loss crosses epsilon at a few outputs, found by bisection; between
    them the integral is a difference of distribution functions.
    """
    forward = _one_sided_delta(law, shift, ratio, epsilon)
    backward = _one_sided_delta(law, -shift / ratio, 1 / ratio, epsilon)
    return _infinite(np.maximum(forward, backward))


def least_epsilon(law: LineLaw, *, shift: Vector, ratio: Vector, delta: float) -> float:
    """The smallest epsilon at which the exact delta of every pair is at most `delta`, from above; or infinity."""
    low, high = 0.0, 1.0
    while exact_delta(law, shift=shift, ratio=ratio, epsilon=high).max() > delta:
        low, high = high, 2 * high
        if high > MOST_EPSILON:
            return math.inf
    for _ in range(30):
        middle = (low + high) / 2
        over = exact_delta(law, shift=shift, ratio=ratio, epsilon=middle).max() > delta
        low, high = (middle, high) if over else (low, middle)
    return high


def _one_sided_delta(law: LineLaw, shift: Vector, ratio: Vector, epsilon: float) -> Vector:
    steps = np.concatenate([[0.0], np.geomspace(1e-4, 1e5, 120), [1e12]])
    grid, u, w = _grid(steps, shift, ratio)
    over = _loss(law, grid, u, w) > epsilon
    row, column = np.nonzero(over[:, :-1] != over[:, 1:])
    low, high, from_over = grid[row, column], grid[row, column + 1], over[row, column]
    for _ in range(80):
        middle = (low + high) / 2
        same = (_loss(law, middle, shift[row], ratio[row]) > epsilon) == from_over
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    left, right = grid[:, :-1].copy(), grid[:, 1:].copy()
    left[row[~from_over], column[~from_over]] = low[~from_over]
    right[row[from_over], column[from_over]] = low[from_over]
    row, column = np.nonzero(over[:, :-1] | over[:, 1:])
    a, b, u, w = left[row, column], right[row, column], shift[row], ratio[row]
    mass = _mass(law, a, b) - math.exp(epsilon) * _mass(law, (a - u) / w, (b - u) / w)
    delta: Vector = np.bincount(row, weights=np.maximum(mass, 0.0), minlength=len(shift)).astype(np.float64)
    unknown = np.isnan(_on_axis(law, grid)).any(axis=1)
    return np.where(unknown, np.inf, delta)


def _grid(steps: Vector, shift: Vector, ratio: Vector) -> tuple[Vector, Vector, Vector]:
    """Outputs dense around both kinks, a row for each pair, with shift and ratio as columns."""
    around = np.concatenate([-steps[::-1], steps[1:]])
    u, w = shift[:, None], ratio[:, None]
    return (
        np.sort(np.concatenate([np.broadcast_to(around, (len(u), len(around))), u + w * around], axis=1), axis=1),
        u,
        w,
    )


def _mass(law: LineLaw, left: Vector, right: Vector) -> Vector:
    """P(left < Z <= right), by symmetry always from the tail side, where differences keep their digits."""
    mirrored = left > 0
    a, b = np.where(mirrored, -right, left), np.where(mirrored, -left, right)
    return law.cdf(b) - law.cdf(a)


def _loss(law: VerifiableLaw, z: Vector, u: Vector, w: Vector) -> Vector:
    """The loss at z; infinite where either density is zero or no number.

    Less what rounding can have added: far out the densities cancel, and a small epsilon would seem to be exceeded.
    """
    with np.errstate(all="ignore"):
        here, there = _on_axis(law, z), _on_axis(law, (z - u) / w)
        found = here - there + law.dimension * np.log(w)
        sure = np.abs(found) - ROUNDED * (np.abs(here) + np.abs(there))
        return _infinite(np.copysign(np.maximum(sure, 0.0), found))


def _signed_loss(sign: float, law: VerifiableLaw, u: Vector, w: Vector, z: Vector) -> Vector:
    return _infinite(sign * _loss(law, z, u, w))


def _on_axis(law: VerifiableLaw, z: Vector) -> Vector:
    """The log density at (z, 0, ..., 0): by the triangle inequality the worst output lies on the shift's own axis."""
    return law.log_density(z if law.dimension == 1 else padded(z, law.dimension))


def padded(z: Vector, dimension: int) -> Vector:
    vectors = np.zeros((*np.shape(z), dimension))
    vectors[..., 0] = z
    return vectors
