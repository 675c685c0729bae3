"""Two mechanisms for establishments under Gaussian privacy of square roots, written from their formulas.

Webb, Kifer, Toth and others (arXiv 2509.01597) let sizes x and x' be neighbours if their roots differ by c at most, and
promise mu-GDP. One adds N(0, s^2) with s = c / mu to the root of a cell's total and squares it; s^2 off makes it
unbiased. The other spends half on the roots of single establishments, which give a bound T that the largest seldom
exceeds; it clips sizes at T, and its noise is as large as a size of T can move. Their baseline has c = 0.5 and mu =
2.31, which protects a size of x to about 2 c sqrt(x): 1 % of 10,000.

A promise of another kind is matched by its neighbours and its loss. Growth by alpha moves the root of the largest size
by c. mu has (epsilon, DELTA); epsilon without delta is more, so the match favours them.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays import Integers, Vector

BASELINE = (0.5, 2.31)
DELTA = 1e-6
CLIPPED = 0.01
"""The probability with which the largest establishment may be above the bound, which is theirs."""


def matched(alpha: float, bound: int, epsilon: float) -> tuple[float, float]:
    """c and mu for growth by alpha of sizes up to a bound, at (epsilon, DELTA)."""
    from scipy.optimize import brentq

    c = math.sqrt(bound) * (math.sqrt(1 + alpha) - 1)
    return max(c, 1.0), float(brentq(lambda mu: delta(mu, epsilon) - DELTA, 1e-3, 10 * epsilon + 10))


def delta(mu: float, epsilon: float) -> float:
    """The delta that mu-GDP has at epsilon (Dong, Roth and Su, corollary 2.13)."""
    from scipy.stats import norm

    lower, upper = -epsilon / mu - mu / 2, -epsilon / mu + mu / 2
    return float(norm.cdf(upper) - np.exp(epsilon + norm.logcdf(lower)))


def of_roots(counts: Integers, c: float, mu: float, rng: np.random.Generator) -> Vector:
    """The square-root mechanism."""
    s = c / mu
    return np.asarray((np.sqrt(counts) + s * rng.normal(size=len(counts))) ** 2 - s**2)


def error_of_roots(counts: Integers, c: float, mu: float) -> float:
    """Its mean absolute error in closed form: E|2 s r Z + s^2 (Z^2 - 1)| with r the root of a count."""
    from scipy.stats import norm

    s, r = c / mu, np.sqrt(counts)
    # (z + a)^2 = 1 + a^2 with a = r / s has two roots; the expression is negative between them.
    a = r / s
    high, low = -a + np.hypot(1, a), -a - np.hypot(1, a)
    # The integral of 2 a z + z^2 - 1 against phi up to z is -(2 a + z) phi(z); over the line it is zero.
    inside = (2 * a + low) * norm.pdf(low) - (2 * a + high) * norm.pdf(high)
    return float(np.mean(-2 * s**2 * inside))


def clipped(cell: Integers, size: Integers, c: float, mu: float, rng: np.random.Generator) -> Vector:
    """The mechanism that clips: the count of every cell, at mu in all."""
    from scipy.stats import norm

    s = c / (mu / math.sqrt(2))
    noisy = np.sqrt(size) + s * rng.normal(size=len(size))
    most = np.full(cell.max() + 1, -np.inf)
    np.maximum.at(most, cell, noisy)
    beyond = norm.ppf((1 - CLIPPED) ** (1 / np.bincount(cell)))
    bound = np.maximum(most + beyond * s, 0) ** 2
    kept = np.bincount(cell, np.minimum(size, bound[cell]))
    moved = np.maximum(c**2, 2 * c * np.sqrt(bound) - c**2)
    return np.asarray(kept + moved / (mu / math.sqrt(2)) * rng.normal(size=len(kept)))
