"""Are several methods equally good? A test of partial areas that stays true with one positive.

Only arrays. If methods are equally good, their names could be exchanged case by case. A partial area is the mean over
positives of what each adds to it (`roc.contributions`), so the names are exchanged positive by positive, and the lead
of the best is held against the largest leads that exchanging makes (Venkatraman and Begg 1996, doi:10.1093/biomet/
83.4.835, exchange ranks the same way). The largest lead of any method over any other takes part, since the best was
chosen on the same cases: if all methods are equally good, the chance that some p-value falls below a level is at most
that level. Exchanges are random with the data among them, which keeps the level exact (Phipson and Smyth 2010,
doi:10.2202/1544-6115.1585).

Negatives are many as a rule and fixed here; their share of the variance, from the influence of each on the area, widens
the leads of the exchanges. A resampling of one to five positives, by contrast, hardly varies, and calls noise a lead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Mask, Vector
from discreet.change import roc
from discreet.change.roc import Range

BLOCKS = 500
"""Positives beyond this number are exchanged in blocks, which is as exact and costs no more."""

CELLS = 2_000_000
EQUAL = 1e-12
"""Leads that differ by less are equal; rounding must not decide."""


def leads(
    positive: ArrayLike,
    scores: ArrayLike,
    *,
    fpr: Range = (0.0, 0.2),
    exchanges: int = 1000,
    rng: np.random.Generator | int = 0,
) -> Vector:
    """p-value of every method: how often would equally good methods differ by as much as the best leads it?

    The best itself gets 1.
    """
    g, x = roc.checked(positive, scores)
    lo, hi = roc.false_positive_range(fpr)
    added = np.stack([roc.contributions(row[g], row[~g], lo, hi) for row in x])
    block = np.arange(added.shape[1]) % BLOCKS
    parts = np.stack([np.bincount(block, weights=row) for row in added]).T / added.shape[1]
    widen = np.sqrt(1 + _share_of_negatives(g, x, parts.var(axis=1).sum(), lo, hi))
    area = parts.sum(axis=0)
    lead = area.max() - area
    generator, made, drawn = np.random.default_rng(rng), np.zeros(len(area)), 0
    while drawn < exchanges:
        size = min(exchanges - drawn, max(1, CELLS // parts.size))
        exchanged = generator.permuted(np.broadcast_to(parts, (size, *parts.shape)), axis=2).sum(axis=1)
        made += (widen * np.ptp(exchanged, axis=1)[:, None] >= lead - EQUAL).sum(axis=0)
        drawn += size
    return np.asarray((1 + made) / (1 + drawn))


def _share_of_negatives(g: Mask, x: np.ndarray, positives: float, lo: float, hi: float) -> float:
    """Variance that negatives add to leads, relative to that of positives.

    A negative at false positive rate u moves the area by the rise of the curve from u to the end of the range.
    """
    moved = []
    for row in x:
        curve = roc.curve(g, row)
        order = np.sort(row[~g])
        rate = 1 - (np.searchsorted(order, row[~g], "left") + np.searchsorted(order, row[~g], "right")) / 2 / len(order)
        moved.append(curve.at(np.clip(rate, lo, hi)) - curve.at([hi]))
    negatives = np.var(moved, axis=0).sum() / (~g).sum() ** 2
    return float(negatives / positives) if positives > 0 else 0.0
