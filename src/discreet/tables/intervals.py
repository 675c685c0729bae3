"""How far off a published count may be, told without telling the confidential scale of its noise.

The scale is factor * max(alpha x, floor) with x the largest establishment, which is confidential. But x is at most the
cell's true count, so a count n is plausible for a published m only if |m - n| <= q factor max(alpha n, floor) + 1/2,
q the law's quantile. The set of plausible n is an interval whose ends depend on m alone: it holds the true count
with at least the stated probability, and costs nothing. Where many establishments share the cell it is wider than
needed; that is the price of a confidential scale. Where a share of epsilon paid for a noisy size of every cell's
largest establishment (`sizes`), both bounds are used and the probability to fail is divided between them.
Quantiles and ends are rounded outward: docs/proofs/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from numbers import Real

import numpy as np
from scipy import special

from discreet.arrays import Integers, Vector
from discreet.errors import PrivacyError
from discreet.noise.laws import DiscreteLaplace, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.tables.expected import radius
from discreet.tables.mechanisms import Baseline, LogLaplace, SmoothNoise
from discreet.tables.sizes import half_width

BY_SIZES = 0.8
"""The share of the probability to fail that goes to the bound by noisy sizes, where there are two bounds."""

OUTWARD = 1 + 2.0**-30
"""More than the relative error of a quantile."""

BLUR = 2.0**-40
"""More than the error of an end, in units of the largest number that enters it."""

CELLS = 2**14
"""Of the logarithm of a radius, in each of which the largest one counts."""

COUNTS = 8192  # whose temporaries stay in a processor's second-level cache


def intervals(
    published: Integers,
    mechanism: SmoothNoise | LogLaplace | Baseline,
    *,
    level: float,
    bounded: bool,
    largest: Integers | None = None,
    sizes: LogLaplace | None = None,
) -> tuple[Vector, Vector]:
    """Lower and upper ends for every count, each holding its true count with probability at least `level`.

    `published` has one row per workplace cell. `bounded` tells that the row's sum (or the count itself, when noise is
    per cell) is at least the size that sets the scale. `largest` is what `sizes` published for each workplace cell.
    Without either there is no interval, and both ends are NaN; an upper end that nothing bounds is infinite.
    """
    if largest is None or sizes is None or not isinstance(mechanism, SmoothNoise):
        return _from_counts(published, mechanism, level=level, bounded=bounded)
    by_sizes = 1 - BY_SIZES * (1 - level) if bounded else level
    reach = half_width(largest, mechanism, sizes, level=by_sizes)[:, None]
    lower, upper = _not_below_zero(published - reach, published + reach)
    if bounded:
        low, high = _from_counts(published, mechanism, level=1 - (1 - BY_SIZES) * (1 - level), bounded=True)
        upper = np.minimum(upper, high)
        lower = np.minimum(np.maximum(lower, low), upper)
    return lower, upper


def _from_counts(
    published: Integers, mechanism: SmoothNoise | LogLaplace | Baseline, *, level: float, bounded: bool
) -> tuple[Vector, Vector]:
    """The ends that follow from the published counts alone."""
    lower, upper = np.empty(published.shape), np.empty(published.shape)
    size = max(1, COUNTS // published.shape[1])
    for start in range(0, len(published), size):
        rows = slice(start, start + size)
        lower[rows], upper[rows] = _ends(published[rows].astype(np.float64), mechanism, level, bounded=bounded)
    return lower, upper


def _ends(
    counts: Vector, mechanism: SmoothNoise | LogLaplace | Baseline, level: float, *, bounded: bool
) -> tuple[Vector, Vector]:
    if isinstance(mechanism, LogLaplace):
        return _log_interval(counts, mechanism, level)
    if isinstance(mechanism, Baseline):
        if mechanism.name == "down-sensitivity":
            return np.full_like(counts, np.nan), np.full_like(counts, np.nan)
        law, width = mechanism.law, mechanism.width
        laplace = width * -math.log(1 - level) * OUTWARD + 0.5
        reach = law.reach(level, width) if isinstance(law, DiscreteLaplace) else laplace
        return _not_below_zero(counts - reach, counts + reach)
    if not bounded:
        return np.full_like(counts, np.nan), np.full_like(counts, np.nan)
    if mechanism.joint:
        return _joint_interval(counts, mechanism, level)
    assert not isinstance(mechanism.law, RadialPolynomial), mechanism.law
    reach = mechanism.factor * line_quantile(mechanism.law, level)
    return _plausible(counts, reach, float(mechanism.unit.alpha), mechanism.floor)


def check_level(level: float) -> None:
    """Refuse a level that is not a probability, before anything is spent."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise PrivacyError(f"level={level!r:.40} is not a probability. It lies between 0 and 1. Use for example 0.95.")


def _plausible(counts: Vector, reach: float, alpha: float, floor: float) -> tuple[Vector, Vector]:
    """All n >= 0 with |m - n| <= reach * max(alpha n, floor) + 1/2; either side is monotone in n."""
    low, high = counts - 0.5, counts + 0.5
    lower = np.minimum(low / (1 + reach * alpha), low - reach * floor)
    widest = high / (1 - reach * alpha) if reach * alpha < 1 else np.full_like(counts, np.inf)
    upper = np.maximum(widest, high + reach * floor)
    return _not_below_zero(lower, upper)


def _not_below_zero(lower: Vector, upper: Vector, *, beside: float = 1.0) -> tuple[Vector, Vector]:
    """The whole numbers between two ends that a count can be; zero alone where there is none.

    `beside` is the size of what was added and taken away again.
    """
    with np.errstate(invalid="ignore"):
        lower, upper = lower - BLUR * (np.abs(lower) + beside), upper + BLUR * (np.abs(upper) + beside)
    upper = np.maximum(np.floor(upper), 0.0)
    return np.minimum(np.maximum(np.ceil(lower), 0.0), upper), upper


def _log_interval(counts: Vector, mechanism: LogLaplace, level: float) -> tuple[Vector, Vector]:
    offset = mechanism.offset
    spread = math.exp(mechanism.exponent * -math.log(1 - level) * OUTWARD) * OUTWARD
    low = (counts - 0.5 + offset) / mechanism.shrink / spread - offset
    high = (counts + 0.5 + offset) / mechanism.shrink * spread - offset
    return _not_below_zero(low, high, beside=offset)


def _joint_interval(counts: Vector, mechanism: SmoothNoise, level: float) -> tuple[Vector, Vector]:
    """Half of the error probability bounds the cell's whole count, and so the scale; half bounds each count."""
    law, alpha, d = mechanism.law, float(mechanism.unit.alpha), counts.shape[1]
    assert isinstance(law, RadialPolynomial), law
    miss = (1 - level) / 2
    reach = mechanism.factor * sum_quantile(law, miss)
    total = counts.sum(axis=1)
    # Each of the d counts was rounded by at most 1/2.
    widest = (total + d / 2) / (1 - reach * alpha) if reach * alpha < 1 else np.full_like(total, np.inf)
    most = np.maximum(widest, total + d / 2 + reach * mechanism.floor) * OUTWARD
    scale = np.maximum(alpha * most, mechanism.floor) * mechanism.factor
    own = scale[:, None] * coordinate_quantile(law, miss) + 0.5
    return _not_below_zero(counts - own, counts + own)


@lru_cache(maxsize=64)
def line_quantile(law: Laplace | GeneralisedCauchy | Polynomial, level: float) -> float:
    """q with P(|Z| <= q) >= level."""
    return -float(law.quantile((1 - level) / 2)) * OUTWARD


@lru_cache(maxsize=64)
def coordinate_quantile(law: RadialPolynomial, miss: float) -> float:
    """q with P(|Z_1| > q) <= miss: given the radius R, |Z_1| / R is Beta(1, d - 1)."""
    return _radial_quantile(law, miss, lambda share: (1 - share) ** (law.d - 1))


@lru_cache(maxsize=64)
def sum_quantile(law: RadialPolynomial, miss: float) -> float:
    """q with P(|Z_1 + ... + Z_d| > q) <= miss.

    Of d exponential magnitudes k have a plus, k binomial; the plus side's share of R is Beta(k, d - k).
    """
    d = law.d
    plus = np.arange(1, d)[:, None]
    chance = special.binom(d, plus) / 2.0**d

    def beyond(share: Vector) -> Vector:
        same_sign = 2.0 ** (1 - d)  # the sum is then R itself
        return np.asarray(same_sign + 2 * (chance * special.betainc(plus, d - plus, (1 - share) / 2)).sum(axis=0))

    return _radial_quantile(law, miss, beyond)


def _radial_quantile(law: RadialPolynomial, miss: float, beyond: Callable[[Vector], Vector]) -> float:
    """The least q of a grid with P(X > q) <= miss, X / R independent of R and P(X > share R) = `beyond`(share).

    P(X > q) grows with R. In every cell of the logarithm of R its value at the upper end is taken, with the exact
    probability of the cell, so that the sum is an upper bound.
    """
    near, far = np.log(radius(law)[0][[0, -1]]).tolist()
    edges = np.linspace(near, far, CELLS + 1)
    survival = law.radius_survival(np.exp(edges))
    cell, last = -np.diff(survival), survival[-1]
    given = beyond(np.exp(-(edges[1:] - edges[0])))  # by how many cells the radius is ahead of q

    def bound(at: int) -> float:
        return float(cell[at:] @ given[: CELLS - at] + last) * OUTWARD

    low, high = 0, CELLS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= miss else (middle + 1, high)
    return math.exp(edges[low]) * OUTWARD if bound(low) <= miss else math.inf
