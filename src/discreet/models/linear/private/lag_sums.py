"""Sums in which a confidential response stands twice: in its own row, and as an earlier value in later rows.

Write k_i for the whole number of row i's response, P for the places 0, l_1, ..., l_R of a `SeriesPanel`, and w_p for
the responses in place p of the used rows: w_0 is the response, w_p its lag. A model with lags needs A'w_p for A = [Z X]
and w_p'w_q. One response is in up to R + 1 places. Sums that share rows are made of disjoint classes, so it counts
once:

- rows whose series lies in one column of a piece are classed by that column and by the places they have;
- pairs of rows of one distance in time are classed by the pairs of places they have.

The rest, columns that change within a series, has a sum for each place. All of this is public but the sums. The proof
is docs/proofs/mixed-lags.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.arrays import Integers, Mask, Matrix
from discreet.models.linear.private.panel import SeriesPanel

CHUNK = 2**20  # rows whose products are summed at a time


@dataclass(frozen=True, slots=True)
class RowClasses:
    """Disjoint classes of rows, whose sums make up those of a piece in every place.

    Attributes
    ----------
    label : the class of each row of the data, -1 for none; `column`, the column of each class.
    places : whether the rows of a class stand in each place, (classes, places).
    """

    label: Integers = field(repr=False)
    column: Integers = field(repr=False)
    places: Mask = field(repr=False)

    @classmethod
    def of(cls, panel: SeriesPanel, at: Integers) -> RowClasses | None:
        """Of a piece that used rows touch in the columns `at`, -1 for none; None where a series changes its column."""
        size = int(panel.series.max()) + 1
        column, there = np.full(size, -2), panel.series[panel.used]
        column[there] = at
        if not np.array_equal(column[there], at):
            return None
        own, places = column[panel.series], panel.places
        label, pattern = np.full(len(own), -1), places @ (1 << np.arange(places.shape[1]))
        chosen = np.flatnonzero((own >= 0) & (pattern > 0))
        key = (own[chosen] << places.shape[1]) + pattern[chosen]
        _, first, label[chosen] = np.unique(key, return_index=True, return_inverse=True)
        return cls(label, own[chosen[first]], places[chosen[first]])

    def sums(self, k: Integers) -> Integers:
        """Of the responses by class; confidential."""
        return _summed(self.label, k, len(self.column))

    def by_place(self, values: Integers, width: int) -> Matrix:
        """Sums of classes as those of each place and column, (places, width)."""
        return np.array([np.bincount(self.column[p], values[p], width) for p in self.places.T])

    def shared(self, width: int) -> Matrix:
        """The number of classes of a column that are in both of two places, (places, places, width)."""
        both = [[np.bincount(self.column[p & q], minlength=width) for q in self.places.T] for p in self.places.T]
        return np.array(both, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class PairClasses:
    """Disjoint classes of pairs of rows that lie one distance apart, whose products make up w_p'w_q.

    Attributes
    ----------
    distance : in periods; 0 for squares. `reach` : the most pairs that one row is in, 1 or 2.
    earlier, later : the rows of each pair that some used row has; `label`, its class.
    places : the pairs of places of the two rows that a class has, in both orders, (classes, places, places).
    """

    distance: int
    reach: int
    earlier: Integers = field(repr=False)
    later: Integers = field(repr=False)
    label: Integers = field(repr=False)
    places: Mask = field(repr=False)

    def sums(self, k: Integers, centre: int) -> Integers:
        """Of the products of responses, measured from the centre, by class; confidential."""
        found = np.zeros(len(self.places), dtype=np.int64)
        for at in range(0, len(self.label), CHUNK):
            some = slice(at, at + CHUNK)
            products = (k[self.earlier[some]] - centre) * (k[self.later[some]] - centre)
            found += _summed(self.label[some], products, len(found))
        return found

    @property
    def counts(self) -> Integers:
        """Pairs by class."""
        return np.bincount(self.label, minlength=len(self.places))

    def totals(self, k: Integers) -> Integers:
        """Sums of the responses of both rows of each pair, by class; confidential."""
        return _summed(self.label, k[self.earlier] + k[self.later], len(self.places))

    def sensitivity(self, half: int, centre: int) -> int:
        """The most that one response in [-half, half] can change in all classes together, in L1 and in L2."""
        farthest = half + abs(centre)
        return farthest**2 if self.distance == 0 else self.reach * 2 * half * farthest


def pair_classes(panel: SeriesPanel) -> tuple[PairClasses, ...]:
    """By distance, ascending: all pairs of places with that many periods between them."""
    shifts, size = panel.shifts, panel.target.shape[1]
    found = []
    for distance in sorted({b - a for a in shifts for b in shifts if a <= b}):
        pairs = [(p, q) for p, a in enumerate(shifts) for q, b in enumerate(shifts) if a - b == distance]
        # The earlier row has the longer lag, and each row has at most one partner at this distance.
        partner, pattern = np.full(size, -1), np.zeros(size, dtype=np.int64)
        for bit, (p, q) in enumerate(pairs):
            partner[panel.source[p]] = panel.source[q]
            pattern[panel.source[p]] += 1 << bit
        earlier = np.flatnonzero(partner >= 0)
        later = partner[earlier]
        kinds, label = np.unique(pattern[earlier], return_inverse=True)
        places = np.zeros((len(kinds), len(shifts), len(shifts)), dtype=bool)
        for bit, (p, q) in enumerate(pairs):
            places[:, p, q] = places[:, q, p] = (kinds >> bit) & 1
        degree = np.bincount(earlier, minlength=size) + np.bincount(later, minlength=size)
        reach = 1 if distance == 0 else int(degree.max())
        found.append(PairClasses(distance, reach, earlier, later, label.ravel(), places))
    return tuple(found)


def place_sums(panel: SeriesPanel, k: Integers, at: Integers, x: Integers, width: int) -> Integers:
    """Sums over used rows of the response in each place times x, by the columns `at`; confidential."""
    return np.concatenate([_summed(at, k[source] * x, width) for source in panel.source])


def place_sizes(panel: SeriesPanel, at: Integers, x: Integers) -> tuple[int, int]:
    """The most that one step of one response can change in `place_sums`: the sum of sizes, and that of squares."""
    size = np.where(at >= 0, np.abs(x), 0).astype(np.int64)
    met = np.where(panel.target >= 0, size[np.maximum(panel.target, 0)], 0)
    return int(met.sum(axis=0).max()), int((met**2).sum(axis=0).max())


def gram(classes: Sequence[PairClasses], sums: Sequence[Integers]) -> Matrix:
    """w_p'w_q of all places, from the sums of classes."""
    return np.asarray(sum(np.tensordot(s, c.places.astype(float), 1) for c, s in zip(classes, sums, strict=True)))


def _summed(label: Integers, values: Integers, size: int) -> Integers:
    """Whole sums by label; -1 counts nowhere. Doubles would round beyond 2^53, so halves of the bits are summed."""
    there = label >= 0
    label, values = label[there], values[there].astype(np.int64)
    high, low = values >> 20, values & (2**20 - 1)
    parts = [np.bincount(label, part, size) for part in (high, low)]
    return np.asarray((parts[0].astype(np.int64) << 20) + parts[1].astype(np.int64))
