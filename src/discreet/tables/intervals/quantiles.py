"""Quantiles of noise and the ends of intervals, rounded outward: what the intervals of all mechanisms are made of.

The proofs are docs/proofs/intervals.md and, for what noisy sizes give, docs/proofs/sizes.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np

from discreet.arrays import Vector
from discreet.noise.law import Symmetric


class Tail(Protocol):
    """What quantiles of |Z| need of a law."""

    def __hash__(self) -> int: ...

    def beyond(self, x: Vector) -> Vector:
        """P(|Z| > x), of one coordinate."""


OUTWARD = 1 + 2.0**-30
"""More than the relative error of a quantile."""

BLUR = 2.0**-40
"""More than the error of an end, in units of the largest number that enters it."""

STEP = 1 / 128
LOWEST, HIGHEST, FAR = -12.0, 25.0, 40.0
"""The grid on which ln(|Z| e^(-l L)) is computed, and how far L is followed."""


@lru_cache(maxsize=64)
def line_quantile(law: Tail, level: float) -> float:
    """q with P(|Z| <= q) >= level: in closed form, or by bisection."""
    if isinstance(law, Symmetric):
        return -float(law.quantile((1 - level) / 2)) * OUTWARD
    low, high = 0.0, 1.0
    while float(law.beyond(np.array([high]))[0]) > 1 - level:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        over = float(law.beyond(np.array([middle]))[0]) > 1 - level
        low, high = (middle, high) if over else (low, middle)
    return high * OUTWARD


@lru_cache(maxsize=64)
def _tail(law: Tail) -> tuple[Vector, Vector]:
    """P(|Z| > e^u), of one coordinate of Z, on the grid of u."""
    u = np.arange(LOWEST, HIGHEST, STEP)
    return u, law.beyond(np.exp(u).reshape(-1, 64)).ravel() * OUTWARD


@lru_cache(maxsize=256)
def pivot_quantile(law: Tail, exponent: float, level: float, within: float = np.inf) -> float:
    """q with P(|Z| e^(-l L) > q, |Z| <= within) <= 1 - level, Z one coordinate of the law and L ~ Laplace(1).

    On a grid of ln q with T(u) = P(e^u < |Z| <= within), which falls: in every step of l L the larger end is used, and
    1 below the grid. The result is never too small, and at most two steps too large.
    """
    u, tail = _tail(law)
    if np.isfinite(within):
        tail = np.maximum(tail - law.beyond(np.full((1, 1), within)).item() / OUTWARD, 0.0)
    steps = int(np.ceil(FAR * exponent / STEP))
    edges = np.arange(-steps, steps + 1) * STEP / exponent
    below = np.where(edges < 0, np.exp(-np.abs(edges)) / 2, 1 - np.exp(-np.abs(edges)) / 2)
    mass = np.diff(below)
    padded = np.concatenate([np.ones(steps), tail, np.full(steps, tail[-1])])
    # What lies further out than FAR counts as beyond every q.
    chance = np.correlate(padded, mass, mode="valid")[: u.size] * OUTWARD + np.exp(-FAR)
    enough = np.flatnonzero(chance <= 1 - level)
    return float(np.exp(u[enough[0]])) if enough.size else np.inf


def plausible(counts: Vector, reach: float, alpha: float, floor: float) -> tuple[Vector, Vector]:
    """All n >= 0 with |m - n| <= reach * max(alpha n, floor) + 1/2; either side is monotone in n."""
    low, high = counts - 0.5, counts + 0.5
    lower = np.minimum(low / (1 + reach * alpha), low - reach * floor)
    widest = high / (1 - reach * alpha) if reach * alpha < 1 else np.full_like(counts, np.inf)
    upper = np.maximum(widest, high + reach * floor)
    return not_below_zero(lower, upper)


def not_below_zero(lower: Vector, upper: Vector, *, beside: float = 1.0) -> tuple[Vector, Vector]:
    """The whole numbers between two ends that a count can be; zero alone where there is none.

    `beside` is the size of what was added and taken away again.
    """
    with np.errstate(invalid="ignore"):
        lower, upper = lower - BLUR * (np.abs(lower) + beside), upper + BLUR * (np.abs(upper) + beside)
    upper = np.maximum(np.floor(upper), 0.0)
    return np.minimum(np.maximum(np.ceil(lower), 0.0), upper), upper
