"""Paired bootstrap of partial areas, tests between methods, confidence bands.

A resample is a column of multiplicities, drawn once and used by every method. Two running sums of it along a method's
own ranking give the whole resampled curve, so a thousand resamples are one pass of array arithmetic. Positives and
negatives are resampled separately, so every resample has as many of each as the data, as in Robin et al. (2011,
doi:10.1186/1471-2105-12-77), whose `roc.test` this reproduces.

Cases of one series, or of one period, are alike. With a `cluster` for every case whole clusters are drawn, so that
limits allow for dependence within clusters (Field and Welsh 2007, doi:10.1111/j.1467-9868.2007.00593.x). With a
`block`, that many consecutive clusters are drawn at a time, around the end to the beginning (Politis and Romano 1992),
for periods that depend on their neighbours. A resample that lacks positives or negatives is drawn again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.roc import curve as roc
from discreet.roc.curve import Alternative, Range
from discreet.words.errors import DataError

CELLS = 4_000_000
"""Multiplicities held at once; larger problems run in batches of resamples."""


@dataclass(frozen=True, slots=True)
class Replicates:
    """Partial areas of several methods, and of the same methods on common resamples.

    Attributes
    ----------
    area : on the data, shape (methods,).
    draws : on the resamples, shape (methods, resamples); columns are paired.
    """

    area: Vector
    draws: Matrix

    def test(
        self, first: int, second: int, *, alternative: Alternative = "greater", kind: str = "normal"
    ) -> tuple[float, float]:
        """Statistic and p-value of area[first] against area[second].

        `normal` divides the difference by its standard deviation over resamples (pROC's test and the paper's);
        `percentile` is the share of resamples in which the sign turns.
        """
        difference = float(self.area[first] - self.area[second])
        draws = self.draws[first] - self.draws[second]
        if kind == "normal":
            return roc.z_test(difference, float(draws.std(ddof=1)), alternative=alternative)
        if kind != "percentile":
            raise DataError(f"Test {kind!r} is not known.", "It is 'normal' or 'percentile'.", about="kind")
        upper, lower = (1 + (draws <= 0).sum()) / (1 + draws.size), (1 + (draws >= 0).sum()) / (1 + draws.size)
        p = {"greater": upper, "less": lower, "two-sided": min(1.0, 2 * min(upper, lower))}[alternative]
        return difference, float(p)

    def interval(self, *, level: float = 0.95) -> Matrix:
        """Percentile limits, shape (methods, 2)."""
        tail = (1 - level) / 2
        return np.quantile(self.draws, [tail, 1 - tail], axis=1).T


def replicate(
    positive: ArrayLike,
    scores: ArrayLike,
    *,
    fpr: Range = (0.0, 0.2),
    resamples: int = 1000,
    rng: np.random.Generator | int = 0,
    value: ArrayLike | None = None,
    cluster: Integers | None = None,
    block: int = 1,
) -> Replicates:
    """Partial areas of every method on the data and on the same resamples: stratified, or of whole clusters.

    `cluster` numbers the clusters from 0, in order of time where a `block` is asked for.
    """
    g, x = roc.checked(positive, scores)
    lo, hi = roc.false_positive_range(fpr)
    worth = roc.worth(g, value)
    rankings = [roc.descending(row) for row in x]
    generator = np.random.default_rng(rng)
    drawn = (
        _multiplicities(g, resamples, generator)
        if cluster is None
        else _of_clusters(g, cluster, block, resamples, generator)
    )
    draws = [
        np.stack([_areas(g, order, ends, _valued(weights, g, worth), lo, hi) for order, ends in rankings])
        for weights in drawn
    ]
    return Replicates(area=roc.partial_area(g, x, lo, hi, worth), draws=np.concatenate(draws, axis=1))


def _valued(weights: Integers, g: Mask, worth: Vector | None) -> Matrix:
    return np.asarray(weights if worth is None else weights * np.where(g, worth, 1.0)[:, None])


def band(
    positive: ArrayLike,
    score: ArrayLike,
    *,
    at: ArrayLike,
    level: float = 0.95,
    resamples: int = 1000,
    rng: np.random.Generator | int = 0,
) -> Matrix:
    """Pointwise limits of the true positive rate at given false positive rates, shape (len(at), 2)."""
    g, x = roc.checked(positive, score)
    order, ends = roc.descending(x[0])
    hit, at = g[order, None], np.asarray(at, float)
    rates = []
    for weights in _multiplicities(g, resamples, np.random.default_rng(rng)):
        ranked = weights[order]
        for fp, tp in zip(np.cumsum(ranked * ~hit, 0)[ends].T, np.cumsum(ranked * hit, 0)[ends].T, strict=True):
            rates.append(np.interp(at, np.append(0, fp / fp[-1]), np.append(0, tp / tp[-1])))
    tail = (1 - level) / 2
    return np.asarray(np.quantile(rates, [tail, 1 - tail], axis=0).T)


def _batches(cases: int, resamples: int) -> Iterator[int]:
    """How many resamples to hold at once."""
    if resamples < 2:
        raise DataError(
            f"{resamples} resamples have no spread.", remedy="Ask for at least 2, usually 1000.", about="resamples"
        )
    batch = max(1, CELLS // cases)
    for start in range(0, resamples, batch):
        yield min(batch, resamples - start)


def _of_clusters(
    g: Mask, cluster: Integers, block: int, resamples: int, rng: np.random.Generator
) -> Iterator[Integers]:
    """The same where whole clusters are drawn, or runs of them."""
    count = int(cluster.max()) + 1
    inside = np.bincount(cluster[g], minlength=count) > 0
    if inside.sum() < 2 or not 1 <= block < count:
        raise DataError(
            f"{int(inside.sum())} of {count} clusters have large changes, and {block} at a time are drawn.",
            "A bootstrap of clusters needs two with large changes, and blocks shorter than all of them.",
            "Resample cases, or lower the cutoff.",
            about="resample",
        )
    outside = np.bincount(cluster[~g], minlength=count) > 0
    runs = np.ones(-(-count // block), np.int64) * block
    runs[-1] -= runs.sum() - count
    step = np.repeat(np.arange(len(runs)), runs), np.concatenate([np.arange(run) for run in runs])
    for size in _batches(len(g), resamples):
        times, missing = np.empty((count, size), np.int64), np.arange(size)
        while missing.size:
            begin = rng.integers(count, size=(len(runs), missing.size))
            chosen = (begin[step[0]] + step[1][:, None]) % count * missing.size + np.arange(missing.size)
            times[:, missing] = np.bincount(chosen.ravel(), minlength=count * missing.size).reshape(count, -1)
            empty = (times[inside][:, missing].sum(axis=0) == 0) | (times[outside][:, missing].sum(axis=0) == 0)
            missing = missing[empty]
        yield times[cluster]


def _multiplicities(g: Mask, resamples: int, rng: np.random.Generator) -> Iterator[Integers]:
    """The number of times that each case occurs in each resample, shape (cases, batch), batch by batch."""
    for size in _batches(len(g), resamples):
        weights = np.zeros((len(g), size), np.int64)
        for cases in (np.flatnonzero(g), np.flatnonzero(~g)):
            drawn = rng.integers(len(cases), size=(len(cases), size)) * size + np.arange(size)
            counts = np.bincount(drawn.ravel(), minlength=len(cases) * size)
            weights[cases] = counts.reshape(len(cases), size)
        yield weights


def _areas(g: Mask, order: Integers, ends: Integers, weights: Matrix, lo: float, hi: float) -> Vector:
    """Partial areas of one method on each resample.

    Only negatives move a curve to the right. So the sum is over negatives, at the height of the positives ranked above;
    a tie of both kinds adds its slope. Negatives far below `hi` are never read.
    """
    hit = g[order]
    group = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))
    negatives, positives = order[~hit], order[hit]
    groups, last = np.unique(group[~hit][::-1], return_index=True)
    last = len(negatives) - 1 - last
    above, through = (np.searchsorted(group[hit], groups, side=side) for side in ("left", "right"))
    count, found = weights[negatives].sum(axis=0), weights[positives].sum(axis=0)
    left, right = lo * count, hi * count
    reach = int(np.searchsorted(last, 1.3 * hi * len(negatives) + 10)) + 1
    while True:
        steps = slice(0, reach)
        near = last[steps]
        x = np.zeros((len(near) + 1, weights.shape[1]))
        x[1:] = np.cumsum(weights[negatives[: near[-1] + 1]], axis=0)[near - near[-1] - 1]
        if reach >= len(last) or (x[-1] >= right).all():
            break
        reach *= 2
    y = np.zeros((through[steps][-1] + 1, weights.shape[1]))
    np.cumsum(weights[positives[: len(y) - 1]], axis=0, out=y[1:])
    edges = np.clip(x, left, right)
    total = np.einsum("ir,ir->r", np.diff(edges, axis=0), y[above[steps]])
    mixed = np.flatnonzero(above[steps] < through[steps])
    if mixed.size:
        width, inside = x[mixed + 1] - x[mixed], edges[mixed + 1] - edges[mixed]
        share = inside * ((edges[mixed] + edges[mixed + 1]) / 2 - x[mixed])
        np.divide(share, width, out=share, where=width > 0)
        total += np.einsum("ir,ir->r", share, y[through[mixed]] - y[above[mixed]])
    return np.asarray(total / (count * found))
