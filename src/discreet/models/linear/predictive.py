"""The law of a new count or share whose linear predictor is known up to a normal error: its quantiles.

Only arrays enter and only arrays leave. Probabilities are averaged over the error by the trapezoidal rule, whose steps
are finer than the law is wide, so that counts of any size have smooth sums.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.families import FamilyName, mean_count, probability

REACH = 7.0  # standard deviations of the error that are summed over
COARSEST, FINEST = 0.25, 1 / 32  # steps, in standard deviations
NEARLY = 1e9  # a size of the negative binomial from which Poisson's probabilities are its own
LARGEST = 2**20  # probabilities at once
MOST = 2.0**53


def quantiles(
    name: FamilyName, eta: Vector, error: Vector, own: Vector, trials: Vector, share: float
) -> tuple[Vector, Vector]:
    """The ends of the interval that leaves (1 - share) / 2 of the law on either side, or less.

    Responses are counts, or shares of `trials`.
    """
    scale = trials if name == "binomial" else np.ones(len(eta))
    wide = float(np.max(error * np.sqrt(mean_count(eta) if name != "binomial" else scale), initial=0.0))
    step = min(COARSEST, max(FINEST, 0.5 / max(wide, 1e-9)))
    nodes = np.arange(-REACH, REACH + step / 2, step)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    chunk = max(1, LARGEST // len(nodes))
    ends = np.empty((2, len(eta)))
    for start in range(0, len(eta), chunk):
        at = slice(start, start + chunk)
        drawn = eta[at, None] + error[at, None] * nodes

        def below(k: Vector, drawn: Vector = drawn, at: slice = at) -> Vector:
            return np.asarray(_at_most(name, k[:, None], drawn, own, trials[at, None]) @ weights)

        for end, wanted in enumerate(((1 - share) / 2, (1 + share) / 2)):
            ends[end, at] = _smallest(below, wanted, len(drawn))
    return ends[0] / scale, ends[1] / scale


def _smallest(below: object, wanted: float, count: int) -> Vector:
    """The smallest whole numbers that are not exceeded with the probability wanted."""
    assert callable(below)
    low, high = np.full(count, -1.0), np.zeros(count)
    while (short := (below(high) < wanted) & (high < MOST)).any():
        low, high = np.where(short, high, low), np.where(short, 2 * high + 1, high)
    while ((gap := high - low) > 1).any():
        middle = np.where(gap > 1, np.floor((low + high) / 2), high)
        enough = below(middle) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)


def _at_most(name: FamilyName, k: Vector, eta: Vector, own: Vector, trials: Vector) -> Vector:
    """The probability of at most k, given the linear predictor."""
    from scipy.special import bdtr, betaincc, pdtr

    if name == "binomial":
        return np.where(k >= trials, 1.0, bdtr(np.minimum(k, trials - 1), trials.astype(np.int64), probability(eta)))
    if "negative-binomial" in name and own[0] < np.log(NEARLY):
        found = betaincc(k + 1, float(np.exp(own[0])), probability(eta - own[0]))
    else:
        found = pdtr(k, mean_count(eta))
    if name.startswith("zero-inflated"):
        extra = float(probability(own[-1:])[0])
        found = extra + (1 - extra) * found
    return np.asarray(found)
