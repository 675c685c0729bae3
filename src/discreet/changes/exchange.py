"""Are several methods equally good? A test of partial areas that stays true with one positive.

Only arrays. If methods are equally good, their names could be exchanged case by case. A partial area is the mean over
positives of what each adds to it (`roc.contributions`). So the names of the methods are exchanged positive by positive,
and the lead of the best is compared with the largest leads after exchanges. Venkatraman and Begg (1996,
doi:10.1093/biomet/83.4.835) exchange ranks in the same way. The largest lead of any method over any other is used,
because the best was chosen on the same cases. If all methods are equally good, the chance that some p-value falls below
a level is at most that level. Exchanges are random with the data among them, which keeps the level exact (Phipson and
Smyth 2010, doi:10.2202/1544-6115.1585).

Few positives make few leads by themselves, and a test of those rejects far too seldom. There the names are exchanged
for negatives too, on ranks. Even so the number of positives bounds what can be found: see `least`. One or two tell
nothing: all exchanges have nearly one lead, and no p-value is small. A test that rejects at its level even then must
draw at random among equal leads. That is the `randomised` p-value, which is uniform if methods are equally good.

Where many cases share a score, negatives are exchanged too, however many positives there are: all positives of a tie
share the luck of the negatives in it. If that is too much work, the lead is compared with the largest lead of a normal
law, whose covariances come from the influence of each case (DeLong, DeLong and Clarke-Pearson 1988,
doi:10.2307/2531595); so many cases are normal.

Other positives, if they are many, are exchanged alone. Negatives are fixed there; their share of the variance, from the
influence of each on the area, widens the leads of the exchanges. A resampling of one to five positives, by contrast,
hardly varies, and calls noise a lead.

If cases come in clusters, such as the cases of one series or period, names are exchanged cluster by cluster: together
for what a cluster's positives add to the area and what its negatives take from it, or for the ranks of all its cases.
"""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.roc import curve as roc
from discreet.roc.curve import Range

BLOCKS = 500
"""Positives beyond this number are exchanged in blocks, which is as exact and costs no more."""

SCARCE = 6
"""Positives, or clusters with one, up to which p-values can be randomised; more of them need no drawing."""

FEW = 30
"""Positives up to which negatives are exchanged as well; with scores that many cases share, they always are."""

CELLS = 2_000_000
RANKED = 100_000_000
"""Ranks that exchanges of all cases may read; with more there are fewer exchanges, or other ways."""

LEAST = 199
"""Exchanges of all cases that are made however many ranks they read."""

MANY = 500
"""Positives, or clusters with one, from which areas are normal."""

WHOLE = 1e-7
"""Weight of the whole area beside the partial one: it decides only between partial areas that are equal."""

EQUAL = 1e-12
"""Leads that differ by less are equal; rounding must not decide."""

TIED = 1e-9
"""Negatives beside a positive, as a share of all, below which there are none; rounding must not make ties."""


def leads(
    positive: ArrayLike,
    scores: ArrayLike,
    *,
    fpr: Range = (0.0, 0.2),
    exchanges: int = 1000,
    rng: np.random.Generator | int = 0,
    value: ArrayLike | None = None,
    cluster: Integers | None = None,
    randomised: bool = False,
) -> Vector:
    """p-value of every method: how often would equally good methods differ by as much as the best leads it?

    The best itself gets 1, but where p-values are drawn. `value` weights positives, `cluster` numbers clusters of cases
    from 0, `randomised` draws among equal leads where positives are scarce.
    """
    g, x = roc.checked(positive, scores)
    lo, hi = roc.false_positive_range(fpr)
    worth = roc.worth(g, value)
    if randomised and is_scarce(g, cluster):
        return _drawn(g, x, worth, cluster, (lo, hi), exchanges, np.random.default_rng(rng))
    share = np.full(g.sum(), 1 / g.sum()) if worth is None else worth[g] / worth[g].sum()
    tied = _is_tied(x)
    groups, light = _groups(g, cluster), x.size * exchanges <= RANKED
    if tied and not light and groups >= MANY:
        return _by_normal_law(g, x, share, cluster, (lo, hi), exchanges, np.random.default_rng(rng))
    if tied or (light and groups <= FEW):
        fewer = exchanges if light else min(exchanges, max(LEAST, RANKED // x.size))
        return _of_all_cases(g, x, share, cluster, (lo, hi), fewer, np.random.default_rng(rng))
    added = np.stack([roc.contributions(row[g], row[~g], lo, hi) * share for row in x])
    if cluster is None:
        block = np.arange(added.shape[1]) % BLOCKS
        parts = np.stack([np.bincount(block, weights=row) for row in added]).T
        taken = _taken(g, x, share, lo, hi).var(axis=0).sum()
        positives = parts.var(axis=1).sum()
        widen = np.sqrt(1 + (taken / positives if positives > 0 else 0.0))
    else:
        whole, taken = np.empty(x.shape), _taken(g, x, share, lo, hi)
        whole[:, g], whole[:, ~g] = added, taken - taken.mean(axis=1, keepdims=True)
        parts, widen = np.stack([np.bincount(cluster, weights=row) for row in whole]).T, 1.0
    area = parts.sum(axis=0)
    lead = area.max() - area
    generator, made, drawn = np.random.default_rng(rng), np.zeros(len(area)), 0
    while drawn < exchanges:
        size = min(exchanges - drawn, max(1, CELLS // parts.size))
        exchanged = generator.permuted(np.broadcast_to(parts, (size, *parts.shape)), axis=2).sum(axis=1)
        made += (widen * np.ptp(exchanged, axis=1)[:, None] >= lead - EQUAL).sum(axis=0)
        drawn += size
    return np.asarray((1 + made) / (1 + drawn))


def _is_tied(x: Matrix) -> bool:
    """Whether cases share few scores: then what positives add is the luck of few false positive rates."""
    return any(2 * len(np.unique(row)) < len(row) for row in x)


def is_scarce(g: Mask, cluster: Integers | None = None) -> bool:
    """Whether positives, or clusters with one, are so few that p-values of an exact test are seldom small."""
    return _groups(g, cluster) <= SCARCE


def _groups(g: Mask, cluster: Integers | None) -> int:
    """Positives, or clusters with one."""
    return int(g.sum() if cluster is None else len(np.unique(cluster[g])))


def _drawn(
    g: Mask,
    x: Matrix,
    worth: Vector | None,
    cluster: Integers | None,
    fpr: tuple[float, float],
    exchanges: int,
    rng: np.random.Generator,
) -> Vector:
    """Randomised p-values: of exchanges with the same lead, a share drawn at random counts as larger.

    Ties are broken at random too. Left as they are, all positives of a tie would share the luck of one method's ties.
    """
    x = np.stack([row if len(np.unique(row)) == len(row) else _untied(row, rng) for row in x])
    share = np.full(g.sum(), 1 / g.sum()) if worth is None else worth[g] / worth[g].sum()
    added = [
        (roc.contributions(row[g], row[~g], *fpr) + WHOLE * roc.contributions(row[g], row[~g], 0.0, 1.0)) * share
        for row in x
    ]
    whose = np.arange(g.sum()) if cluster is None else np.unique(cluster[g], return_inverse=True)[1]
    parts = np.stack([np.bincount(whose, weights=row) for row in added]).T
    area = parts.sum(axis=0)
    lead = area.max() - area
    made = np.ptp(rng.permuted(np.broadcast_to(parts, (exchanges, *parts.shape)), axis=2).sum(axis=1), axis=1)[:, None]
    same = np.abs(made - lead) <= EQUAL
    larger = (made > lead) & ~same
    return np.asarray((larger.sum(axis=0) + rng.random() * (1 + same.sum(axis=0))) / (1 + exchanges))


def _untied(row: Vector, rng: np.random.Generator) -> Vector:
    """Ranks, in which the order of equal scores is drawn."""
    rank = np.empty(len(row))
    rank[np.lexsort((rng.random(len(row)), row))] = np.arange(len(row))
    return rank


def least(methods: int, positives: int) -> float:
    """About the smallest p-value that so few positives can give.

    Names exchanged for all positives alike change no lead. Negatives decide between these, half the time either way.
    """
    return float(factorial(methods)) ** (1 - positives) / 2


def _of_all_cases(
    g: Mask,
    x: Matrix,
    share: Vector,
    cluster: Integers | None,
    fpr: tuple[float, float],
    exchanges: int,
    rng: np.random.Generator,
) -> Vector:
    """The same with the ranks of every case exchanged, negatives included; those of a cluster together."""
    ranked = ExchangedRanks(g, x, *fpr, share)
    names = np.arange(len(x))[None, :, None]
    group = np.arange(len(g)) if cluster is None else cluster
    groups = int(group.max()) + 1
    area = ranked.areas(*(np.broadcast_to(names, (1, len(x), int(side.sum()))) for side in (~g, g)))[0]
    lead = area.max() - area
    made, drawn, batch = np.zeros(len(x)), 0, max(1, CELLS // x.size)
    while drawn < exchanges:
        size = min(exchanges - drawn, batch)
        whose = rng.permuted(np.broadcast_to(names, (size, len(x), groups)), axis=1)
        areas = ranked.areas(*(whose[:, :, group[side]] for side in (~g, g)))
        made += (np.ptp(areas, axis=1)[:, None] >= lead - EQUAL).sum(axis=0)
        drawn += size
    return np.asarray((1 + made) / (1 + drawn))


def _by_normal_law(
    g: Mask,
    x: Matrix,
    share: Vector,
    cluster: Integers | None,
    fpr: tuple[float, float],
    exchanges: int,
    rng: np.random.Generator,
) -> Vector:
    """The same by a normal law with the covariances of what each case, or each cluster, does to the areas."""
    added = np.stack([roc.contributions(row[g], row[~g], *fpr) for row in x])
    taken, whole = _taken(g, x, share, *fpr), np.empty(x.shape)
    whole[:, g] = (added - (added * share).sum(axis=1, keepdims=True)) * share
    whole[:, ~g] = taken - taken.mean(axis=1, keepdims=True)
    parts = whole if cluster is None else np.stack([np.bincount(cluster, weights=row) for row in whole])
    area = (added * share).sum(axis=1)
    lead = area.max() - area
    drawn = rng.multivariate_normal(np.zeros(len(x)), parts @ parts.T, size=exchanges, method="eigh")
    made = (np.ptp(drawn, axis=1)[:, None] >= lead - EQUAL).sum(axis=0)
    return np.asarray((1 + made) / (1 + exchanges))


class ExchangedRanks:
    """Cases whose ranks change names: how many negatives rank above a positive is read off how they fill the ranks.

    Tied cases share the ranks from the first of them to the last, each of them evenly. So ties of one method stay ties
    beside those of another, which begin and end at slightly different ranks.
    """

    def __init__(self, g: Mask, x: Matrix, lo: float, hi: float, share: Vector) -> None:
        self.share = share
        order = np.sort(x, axis=1)
        first, last = (
            np.stack([np.searchsorted(*each, side=side) for each in zip(order, x, strict=True)])
            for side in ("left", "right")
        )
        self.negatives, self.positives, self.range = (first[:, ~g], last[:, ~g]), (first[:, g], last[:, g]), (lo, hi)

    def areas(self, negatives: Integers, positives: Integers) -> Matrix:
        """Areas by name, from whose ranks each name has, of shape (exchanges, methods, cases)."""
        found = np.empty(negatives.shape[:2])
        cases, others = negatives.shape[-1], positives.shape[-1]
        row, edges = np.arange(len(negatives))[:, None], cases + others + 1
        for name in range(negatives.shape[1]):
            first, last = (each[negatives[:, name], np.arange(cases)] for each in self.negatives)
            share = (1 / (last - first)).ravel()
            begun, ended = (
                np.bincount((each + row * edges).ravel(), share, len(row) * edges).reshape(-1, edges)
                for each in (first, last)
            )
            filled = np.cumsum(begun - ended, axis=1)  # negatives per rank, then below each edge between ranks
            below = np.cumsum(filled, axis=1) - filled
            beside, above = (
                1 - below[row, each[positives[:, name], np.arange(others)]] / cases for each in self.positives
            )
            beside = np.where(beside - above > TIED, beside, above)
            added = roc.added(above, beside, *self.range) + WHOLE * (1 - (above + beside) / 2)
            found[:, name] = added @ self.share
        return found


def _taken(g: Mask, x: Matrix, share: Vector, lo: float, hi: float) -> Matrix:
    """The effect of each negative on the area of each method, of shape (methods, negatives).

    A negative at false positive rate u moves the area by the rise of the curve from u to the end of the range; one of a
    tie by the mean of that over the rates of the tie.
    """
    moved = []
    for row in x:
        order, worth = np.sort(row[~g]), np.zeros(len(row))
        worth[g] = share
        found, ends = roc.descending(row)
        false = np.append(0.0, np.cumsum(~g[found])[ends] / len(order))
        true = np.append(0.0, np.cumsum(worth[found])[ends])
        low, high = np.interp([lo, hi], false, true)
        cut = np.searchsorted(false, [lo, hi], side="right")
        x_axis, y_axis = np.insert(false, cut, [lo, hi]), np.clip(np.insert(true, cut, [low, high]), low, high)
        below = np.append(0.0, np.cumsum((y_axis[1:] + y_axis[:-1]) / 2 * np.diff(x_axis)))
        last, first = (1 - np.searchsorted(order, row[~g], side) / len(order) for side in ("left", "right"))
        tie = np.interp(last, x_axis, below) - np.interp(first, x_axis, below)
        moved.append(tie / (last - first) - high)
    return np.asarray(np.stack(moved) / (~g).sum())
