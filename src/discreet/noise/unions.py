"""Draws of rings in the norm g(z+) + g(z-), g(y) = max over all sets A of kinds of y(A) / S_A: docs/proofs/rings.md.

Its ball has no simple volume, and needs none. For every set of positive kinds the part of the ball lies in a product of
simplices, one for each block of a partition of the kinds that keeps it small. A set is drawn as often as its product is
large, then a point of that product; points outside the ball are drawn again. Sets are binary numbers: kind c is in A if
bit c of A is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.noise.sampler import check_scale, decide, draw_integers, ring_radii
from discreet.noise.transforms import subsets, within_unions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from discreet.arrays import Integers, Mask, Matrix, Vector
    from discreet.noise.rings import Rings
    from discreet.noise.source import Source

MOST_KINDS = 8
ROWS = 16384  # vectors that are drawn at a time
FINEST = 40
"""Bits of the whole number that says how often the most frequent set is proposed."""

SPARE = 2.0**-20
"""Proposals are more frequent than needed by this much, in logarithms: far more than the roundings of their weights."""


def draw_unions(law: Rings, *, scale: ArrayLike, source: Source, exact: bool = False) -> Integers:
    """Draw a vector for each row of `scale`, whose column A is S_A; column 0, of no kind, is not used.

    S never falls when a kind is added to a set. The doubles are taken as exact.
    """
    bounds = check_scale(scale)
    draws = np.empty((len(bounds), law.d), dtype=np.int64)
    same = (bounds[:, 1:] == bounds[:, 1:2]).all(axis=1)  # the ball of |z_1| + ... + |z_d|
    draws[same] = draw_integers(law, scale=bounds[same, 1], source=source, exact=exact).reshape(-1, law.d)
    others = np.flatnonzero(~same)
    draws[others] = _draw(bounds[others], ring_radii(law, len(others), source), source, exact)
    return draws


def _draw(bounds: Matrix, radii: list[Vector], source: Source, exact: bool) -> Integers:
    d = bounds.shape[1].bit_length() - 1
    draws = np.empty((len(bounds), d), dtype=np.int64)
    cover, start = Cover.of(bounds[:0]), 0
    left = rows = np.empty(0, dtype=np.int64)  # rows of the cover that are not drawn yet, and which vectors they are
    while left.size or start < len(bounds):
        if left.size < ROWS // 2 and start < len(bounds):
            fresh = np.arange(start, min(start + ROWS, len(bounds)))
            cover, rows, start = (
                cover.joined(left, Cover.of(bounds[fresh])),
                np.concatenate([rows[left], fresh]),
                start + ROWS,
            )
            local, left = [x[rows] for x in radii], np.arange(rows.size)
        # Of several proposals for one vector, all of them independent, the first that is accepted is taken.
        times = 1 if exact else min(max(1, ROWS // (2 * left.size)), 32)
        found, kept = _propose(cover, local, np.repeat(left, times), source, exact)
        first = kept.reshape(-1, times).argmax(axis=1) + times * np.arange(left.size)
        done = kept[first]
        draws[rows[left[done]]] = found[first[done]]
        left = left[~done]
    return draws


def _propose(cover: Cover, radii: list[Vector], rows: Integers, source: Source, exact: bool) -> tuple[Integers, Mask]:
    """One vector for each of these rows, and whether it is accepted."""
    positive, weight = cover.choose(rows, source)
    order, block, place = cover.blocks(rows, positive)
    d = order.shape[1]
    many, kept = members(d)[positive].sum(axis=1), np.zeros(rows.size, dtype=np.bool_)
    left = members(d).sum(axis=1)[block] - place
    found = np.empty((rows.size, d), dtype=np.int64)
    for k in np.unique(many).tolist():
        at = np.flatnonzero(many == k)
        own, kinds = rows[at], order[at]
        parameters = [
            weight[at].astype(np.float64),
            cover.margin[own],
            *cover.bounds[own[:, None], block[at]].T,
            *left[at].astype(np.float64).T,
            *(place[at] > 0).astype(np.float64).T,
            *(x[own] for x in radii),
            *cover.bounds[own, _subsets(kinds[:, :k])],
            *cover.bounds[own, _subsets(kinds[:, k:])],
        ]
        integers, kept[at] = decide(within_unions(d, k), parameters, source=source, exact=exact)
        found[at[:, None], kinds] = integers.T
    return found, kept


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """For every vector a partition of the kinds: a product of simplices around its ball for every set of kinds.

    Attributes
    ----------
    bounds : S_A, a row a vector.
    part : the block of the partition that holds each kind, shape (vectors, d).
    total : whole numbers, summed up: how often each set is proposed as that of the positive kinds, shape (vectors,
        sets).
    margin : a number M of each vector; a set of weight W whose two products have volume V is proposed W e^M / V times
        as often as needed, at least once.
    """

    bounds: Matrix
    part: Integers
    total: Integers
    margin: Vector

    @classmethod
    def of(cls, bounds: Matrix) -> Cover:
        many, sets = bounds.shape
        d = sets.bit_length() - 1
        size = members(d).sum(axis=1)
        alone = np.log(bounds) * size - np.array([math.lgamma(k + 1) for k in size])
        part = partition(alone)
        row, least = np.arange(many)[:, None], np.zeros((many, sets))
        single = part == 1 << np.arange(d)
        least += (alone[:, 1 << np.arange(d)] * single) @ members(d).T
        # Of every other block the first kind's place stands for it.
        others = np.sort(np.where(single | (part & -part != 1 << np.arange(d)), 0, part), axis=1)[:, ::-1]
        for block in others.T:
            at = np.flatnonzero(block)
            if not at.size:
                break
            least[at] += alone[row[at], np.arange(sets) & block[at, None]]
        ways = np.array([math.log(math.comb(d, k)) for k in size])
        wanted = least + least[:, ::-1] - ways
        most = wanted.max(axis=1, initial=-np.inf)
        weights = np.ceil(np.exp(wanted - most[:, None]) * 2.0**FINEST).astype(np.int64)
        return cls(bounds, part, np.cumsum(weights, axis=1), most - FINEST * math.log(2) + SPARE)

    def joined(self, rows: Integers, other: Cover) -> Cover:
        """Some of these vectors, then others."""
        pairs = [(getattr(self, name)[rows], getattr(other, name)) for name in ("bounds", "part", "total", "margin")]
        return Cover(*(np.concatenate(pair) for pair in pairs))

    def choose(self, rows: Integers, source: Source) -> tuple[Integers, Integers]:
        """A set of positive kinds for each of these vectors, exactly as often as the weights say, and its weight."""
        total = self.total[rows]
        number = below(total[:, -1], source)
        found = (total <= number[:, None]).sum(axis=1)
        before = np.where(found > 0, np.take_along_axis(total, np.maximum(found - 1, 0)[:, None], axis=1)[:, 0], 0)
        return found, np.take_along_axis(total, found[:, None], axis=1)[:, 0] - before

    def blocks(self, rows: Integers, positive: Integers) -> tuple[Integers, Integers, Integers]:
        """Kinds in the order of their blocks, the positive ones first; each one's block, and its place in there."""
        part = self.part[rows]
        d = part.shape[1]
        block = part & np.where(members(d)[positive] == 1, positive[:, None], (2**d - 1) ^ positive[:, None])
        negative = 1 - members(d)[positive]
        order = np.argsort(negative << d | block, axis=1, kind="stable")
        block = np.take_along_axis(block, order, axis=1)
        place = np.zeros_like(block)
        for c in range(1, d):
            place[:, c] = np.where(block[:, c] == block[:, c - 1], place[:, c - 1] + 1, 0)
        return order, block, place


@cache
def members(d: int) -> Integers:
    """Row A, column c: whether kind c is in the set A."""
    return np.arange(2**d)[:, None] >> np.arange(d) & 1


def below(total: Integers, source: Source) -> Integers:
    """A whole number from 0 to below each total, all equally likely."""
    found = np.empty(total.shape, dtype=np.int64)
    left = np.arange(total.size)
    while left.size:
        limit, word = total[left].astype(np.uint64), source.words(left.size)
        rest = word % limit
        fair = word - rest <= np.uint64(2**64 - 1) - limit + np.uint64(1)  # a whole round of numbers lies ahead
        found[left[fair]] = rest[fair].astype(np.int64)
        left = left[~fair]
    return found


def partition(alone: Matrix) -> Integers:
    """For every vector the block of each kind: two blocks become one if that makes the product of simplices smaller.

    Column A of `alone` is the logarithm of the volume of A's simplex.
    """
    many, d = len(alone), alone.shape[1].bit_length() - 1
    one, two = np.triu_indices(d, 1)
    block = np.tile(np.int64(1) << np.arange(d), (many, 1))  # at the place of its first kind; 0 elsewhere
    part, left = block.copy(), np.arange(many)
    while left.size:
        own, row = block[left], left[:, None]
        volume = alone[row, own]
        gain = alone[row, own[:, one] | own[:, two]] - volume[:, one] - volume[:, two]
        gain[(own[:, one] == 0) | (own[:, two] == 0)] = 0
        best = gain.argmin(axis=1)
        better = gain[np.arange(left.size), best] < 0
        left, best = left[better], best[better]
        joined = block[left, one[best]] | block[left, two[best]]
        block[left, one[best]], block[left, two[best]] = joined, 0
        part[left] = np.where(joined[:, None] >> np.arange(d) & 1, joined[:, None], part[left])
    return part


def _subsets(kinds: Integers) -> Integers:
    """The sets of some kinds of each row, in the order of `transforms.subsets`, a column a row."""
    return np.asarray(subsets(kinds.shape[1]).astype(np.int64) @ (np.int64(1) << kinds).T)
