"""Calibration by period: how far chances and numbers of right alarms may be from what is expected.

Cases of one period share its shocks: a month with a strike has many declines. So periods, not cases, are resampled
(`Periods.resampled`). The number of right alarms on a list varies more than with independent alarms: by a factor common
to the period, whose variance is estimated from past lists (`spread_of_periods`). An interval of that number is that of
the beta-binomial law with this mean and variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.roc import curve as roc

LEVEL = 0.9
RESAMPLES = 200
BINS = 100


@dataclass(frozen=True, slots=True)
class Periods:
    """Past cases in bins of their scores: cases and large changes, each of shape (periods, bins), alarming bins last.

    `edges` are the lowest scores of the bins but the first.
    """

    cases: Matrix
    hits: Matrix
    edges: Vector

    @classmethod
    def of(cls, score: Vector, positive: Mask, period: Integers, *, bins: int = BINS) -> Periods:
        """Bins of about equal size, narrower where scores are most alarming, since the lists are made there."""
        share = 1 - np.geomspace(1, 1 / max(len(score), 2), bins + 1)[1:-1]
        edges = np.unique(np.quantile(score, share))
        place = np.searchsorted(edges, score, side="right")
        shape = int(period.max()) + 1, len(edges) + 1
        key = period * shape[1] + place
        cases = np.bincount(key, minlength=shape[0] * shape[1]).reshape(shape)
        hits = np.bincount(key, weights=positive, minlength=shape[0] * shape[1]).reshape(shape)
        return cls(cases.astype(float), np.asarray(hits, float), edges)

    def resampled(self, *, resamples: int = RESAMPLES, seed: int = 0) -> tuple[Matrix, Matrix]:
        """Cases and large changes by bin in resamples of whole periods, each of shape (resamples, bins)."""
        many = len(self.cases)
        weight = np.random.default_rng(seed).multinomial(many, np.full(many, 1 / many), size=resamples)
        return weight @ self.cases, weight @ self.hits

    def chances(self, score: Vector, *, lean: float = 1.0, seed: int = 0) -> tuple[Vector, Vector]:
        """Limits of the chance of a large change at these scores; `lean` draws them towards the prevalence."""
        from scipy.optimize import isotonic_regression

        cases, hits = self.resampled(seed=seed)
        found = np.empty_like(cases)
        for k in range(len(cases)):
            share = hits[k].sum() / max(cases[k].sum(), 1.0)
            weight = np.maximum(cases[k], 1e-9)
            weight[[0, -1]] += 1.0
            rate = hits[k] / np.maximum(cases[k], 1e-9)
            rate = np.where(cases[k] > 0, rate, share)
            rate[[0, -1]] = (hits[k][[0, -1]] + share) / (cases[k][[0, -1]] + 1.0)
            found[k] = share + lean * (isotonic_regression(rate, weights=weight).x - share)
        low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        place = np.searchsorted(self.edges, score, side="right")
        return low[place], high[place]

    def areas(self, fpr: roc.Range, *, seed: int = 0) -> tuple[float, float]:
        """Limits of the partial area."""
        cases, hits = self.resampled(seed=seed)
        both = [(cases - hits)[:, ::-1], hits[:, ::-1]]
        usable = (both[0].sum(axis=1) > 0) & (both[1].sum(axis=1) > 0)
        if not usable.any():
            return 0.0, fpr[1] - fpr[0]
        x, y = (
            np.concatenate([np.zeros((usable.sum(), 1)), each[usable].cumsum(axis=1)], axis=1)
            / each[usable].sum(axis=1, keepdims=True)
            for each in both
        )
        low, high = np.quantile(roc.area(x, y, *fpr), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(low), float(high)


@dataclass(frozen=True, slots=True)
class RightAlarms:
    """The number of right alarms of a list.

    Attributes
    ----------
    expected : the mean.
    low, high : what the number lies between in 9 of 10 periods.
    """

    expected: float
    low: int
    high: int


def spread_of_periods(expected: Vector, variance: Vector, got: Vector) -> float:
    """The variance of the factor that the alarms of a period share, from past lists.

    `expected` and `variance` are of the number of right alarms if cases were independent. Periods in which nothing was
    expected say nothing.
    """
    told = expected > 0
    if not told.any():
        return 0.0
    excess = ((got - expected) ** 2 - variance)[told].sum() / (expected[told] ** 2).sum()
    return float(max(excess, 0.0))


def right_alarms(chance: Vector, *, spread: float = 0.0, periods: int = 0, known: float = 0.0) -> RightAlarms:
    """The number of right alarms of a list with these chances.

    `spread` is the variance of the period's factor, estimated on `periods` of them; `known` is the number of right
    alarms from which the chances were learnt.
    """
    from scipy.stats import betabinom, binom

    size, mean = len(chance), float(chance.sum())
    if not size or mean <= 0:
        return RightAlarms(mean, 0, 0)
    mean = min(mean, size * (1 - 1e-9))
    variance = float((chance * (1 - chance)).sum())
    variance += mean**2 * (spread * (1 + 1 / max(periods, 1)) + 1 / max(known, 1.0))
    share, least, most = mean / size, mean * (1 - mean / size), size * mean * (1 - mean / size)
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    if size == 1 or variance <= least * (1 + 1e-6):
        low, high = binom.ppf(tails, size, share)
    else:
        variance = min(variance, most * (1 - 1e-6))
        within = (size * least - variance) / (variance - least)  # a + b of the beta law
        low, high = betabinom.ppf(tails, size, share * within, (1 - share) * within)
    return RightAlarms(mean, int(low), int(high))
