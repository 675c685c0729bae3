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

Many positives are exchanged alone. Negatives are fixed there; their share of the variance, from the influence of each
on the area, widens the leads of the exchanges. A resampling of one to five positives, by contrast, hardly varies, and
calls noise a lead.

If cases come in clusters, such as the cases of one series or period, names are exchanged cluster by cluster: together
for what a cluster's positives add to the area and what its negatives take from it.
"""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.change import roc
from discreet.change.roc import Range

BLOCKS = 500
"""Positives beyond this number are exchanged in blocks, which is as exact and costs no more."""

SCARCE = 4
"""Positives, or clusters with one, up to which p-values can be randomised; more of them need no drawing."""

FEW = 30
"""Positives up to which negatives are exchanged as well; with scores that many cases share, they always are."""

CELLS = 2_000_000
COMPARED = 20_000_000
"""Comparisons of negatives with positives that are held at once; with more, negatives are many and hardly vary."""

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
    few = g.sum() <= FEW or _is_tied(x)
    if cluster is None and worth is None and few and len(x) ** 2 * g.sum() * (~g).sum() <= COMPARED:
        return _of_all_cases(g, x, lo, hi, exchanges, np.random.default_rng(rng))
    share = np.full(g.sum(), 1 / g.sum()) if worth is None else worth[g] / worth[g].sum()
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
    return int(g.sum() if cluster is None else len(np.unique(cluster[g]))) <= SCARCE


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


def _of_all_cases(g: Mask, x: Matrix, lo: float, hi: float, exchanges: int, rng: np.random.Generator) -> Vector:
    """The same with the ranks of every case exchanged, negatives included."""
    ranked = ExchangedRanks(g, x, lo, hi)
    names = np.arange(len(x))[None, :, None]
    cases = [int((~g).sum()), int(g.sum())]
    area = ranked.areas(*(np.broadcast_to(names, (1, len(x), count)) for count in cases))[0]
    lead = area.max() - area
    made, drawn, batch = np.zeros(len(x)), 0, max(1, CELLS // (len(x) * cases[0]))
    while drawn < exchanges:
        size = min(exchanges - drawn, batch)
        whose = [rng.permuted(np.broadcast_to(names, (size, len(x), count)), axis=1) for count in cases]
        made += (np.ptp(ranked.areas(*whose), axis=1)[:, None] >= lead - EQUAL).sum(axis=0)
        drawn += size
    return np.asarray((1 + made) / (1 + drawn))


class ExchangedRanks:
    """Cases whose ranks change names: how many negatives rank above a positive is read off how they fill the ranks.

    Tied cases share the ranks from the first of them to the last, each of them evenly. So ties of one method stay ties
    beside those of another, which begin and end at slightly different ranks.
    """

    def __init__(self, g: Mask, x: Matrix, lo: float, hi: float) -> None:
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
            found[:, name] = added.mean(axis=1)
        return found


def _taken(g: Mask, x: Matrix, share: Vector, lo: float, hi: float) -> Matrix:
    """The effect of each negative on the area of each method, of shape (methods, negatives).

    A negative at false positive rate u moves the area by the rise of the curve from u to the end of the range.
    """
    moved = []
    for row in x:
        order, worth = np.sort(row[~g]), np.zeros(len(row))
        worth[g] = share
        found, ends = roc.descending(row)
        false = np.append(0.0, np.cumsum(~g[found])[ends] / len(order))
        true = np.append(0.0, np.cumsum(worth[found])[ends])
        rate = 1 - (np.searchsorted(order, row[~g], "left") + np.searchsorted(order, row[~g], "right")) / 2 / len(order)
        moved.append(np.interp(np.clip(rate, lo, hi), false, true) - np.interp(hi, false, true))
    return np.asarray(np.stack(moved) / (~g).sum())
