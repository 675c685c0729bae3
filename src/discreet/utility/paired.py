"""The interval of a change, from two published numbers whose noise is independent.

Two intervals of probability 1 - rate/2 hold both numbers, whatever their noise has to do with each other. Independent
draws need less. For several pairs of levels, a wide interval of one number is combined with a narrow one of the other,
and the change lies between the outermost ends of all pairs. The levels are chosen so that this fails with probability
`rate` at most: docs/proofs/alarms.md. Ends are those of the exact law of the noise; nothing is normal here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from discreet.arrays import Vector

Ends: TypeAlias = Callable[[float], tuple[Vector, Vector]]
"""The ends of intervals that hold their numbers with this probability at least."""

PAIRS, SPREAD = 8, 2.5
"""Pairs of levels, and how many times the most unequal one is from equal misses: near the best for all our laws."""


@lru_cache(maxsize=64)
def paired_misses(rate: float) -> tuple[tuple[float, float], ...]:
    """Chances (u, v) to miss, u rising and v falling; some pair of intervals holds except with chance `rate`."""
    steps = SPREAD ** np.linspace(-1, 1, PAIRS)
    low, high = 0.0, 1 / SPREAD
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _coverage(middle * steps, middle / steps) >= 1 - rate else (low, middle)
    return tuple((float(low * step), float(low / step)) for step in steps)


def _coverage(u: Vector, v: Vector) -> float:
    """P(some pair of intervals holds) where each misses as often as it may: the sum over the widest of the first."""
    return float(((np.append(u[1:], 1.0) - u) * (1 - v)).sum())


def change_ends(early: Ends, late: Ends, *, rate: float, independent: bool) -> tuple[Vector, Vector]:
    """The interval of late minus early, except with a probability of `rate`."""
    pairs = paired_misses(rate) if independent else ((rate / 2, rate / 2),)
    first = [early(1 - u) for u, _ in pairs]
    second = [late(1 - v) for _, v in pairs]
    both = list(zip(_nested(first[::-1])[::-1], _nested(second), strict=True))
    low = np.min([under - above for (_, above), (under, _) in both], axis=0)
    high = np.max([over - below for (below, _), (_, over) in both], axis=0)
    return np.asarray(low), np.asarray(high)


def _nested(ends: list[tuple[Vector, Vector]]) -> list[tuple[Vector, Vector]]:
    """Intervals of rising levels, each made to hold the one before; an end that there is not is infinite."""
    found: list[tuple[Vector, Vector]] = []
    for lower, upper in ends:
        low, high = np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)
        if found:
            low, high = np.minimum(low, found[-1][0]), np.maximum(high, found[-1][1])
        found.append((low, high))
    return found
