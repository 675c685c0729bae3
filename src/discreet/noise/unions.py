"""Draws of rings in the norm g(z+) + g(z-), g(y) = max over all sets A of kinds of y(A) / S_A: docs/proofs/rings.md.

Its ball has no simple volume, and needs none. A point of it is drawn together with a share t: the positive part is
within t times the bounds of all sets, the negative part within 1 - t times. Such pairs lie in a simple body, from which
they are proposed until one of them is inside: the kinds with the fewest workers are a block, a simplex with t, and
every other kind is in an interval as long as its own S, wherever t is. Numbers are short first, long where short ones
leave something open, and then exact. Sets are binary numbers: kind c is in A if bit c of A is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from discreet.noise.balls import Balls
from discreet.noise.sampler import check_scale, draw_integers, ring_radii, settle
from discreet.noise.transforms import ring_radius, within_unions
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from discreet.arrays import Integers, Mask, Matrix, Vector
    from discreet.noise.rings import Rings
    from discreet.noise.source import Source

    Real: TypeAlias = NDArray[np.floating[Any]]

MOST_KINDS = 8
PLACES = 8192  # vectors that are drawn at a time
TOGETHER = 4096  # proposals whose numbers stay in a processor's cache
NEAR = 128
"""Vectors whose bounds stay in a processor's cache, and for whose sums NumPy's OpenBLAS starts no threads.

Their product with all sets takes NEAR * 8 * 2^8 multiplications; above 2^18 threads wait for each other and cost more
than they do.
"""

NARROWEST = 2.0**-100
"""Scales between this and its inverse are ordinary short numbers."""

MARGIN = 2.0**-9
"""Short numbers that may be off by more, relative to the side of their kind, refuse nothing."""


class Precision(NamedTuple):
    """Of numbers of one length: what missing digits of a uniform variable, and roundings, can do to a point."""

    missing: float
    lost: float


SHORT = Precision(2.0**-27, 2.0**-16)
LONG = Precision(2.0**-58, 2.0**-38)

KNOWN = 2.0**-4
"""Beyond this the bound of what a point is off is none, and nothing is decided."""


def draw_unions(law: Rings, *, sizes: Integers, scale: ArrayLike, source: Source, exact: bool = False) -> Integers:
    """Draw a vector for each row of `sizes`, whose column A is x(A); S_A is `scale` at x(A), a double taken as exact.

    Neither sizes nor scales fall: not x when a kind is added to a set, nor S when x grows. Column 0 is not used.
    """
    table = check_scale(scale)
    if not (table.min(initial=1.0) >= NARROWEST and table.max(initial=1.0) <= 1 / NARROWEST):
        raise PrivacyError(
            "A scale of the noise is very small or very large.",
            "Noise for every union has scales between 2**-100 and 2**100.",
            "Count in other units.",
            about="scale",
        )
    draws = np.empty((len(sizes), law.d), dtype=np.int64)
    least = table[sizes[:, 1 << np.arange(law.d)].min(axis=1)]
    same = least == table[sizes[:, -1]]  # the ball of |z_1| + ... + |z_d|
    draws[same] = draw_integers(law, scale=least[same], source=source, exact=exact).reshape(-1, law.d)
    others = np.flatnonzero(~same)
    radii = Radii.draw(law, len(others), source)
    places, start = Slots.empty(law.d, min(PLACES, len(others))), 0
    free = np.arange(len(places.row))
    while free.size < len(places.row) or start < len(others):
        rows = np.arange(start, min(start + free.size, len(others)))
        start += rows.size
        places.put(free[: rows.size], rows, sizes, others[rows], table)
        places = places.without(free[rows.size :])
        chosen, points, short = places.propose(source)
        found = places.row[chosen]
        with np.errstate(all="ignore"):
            most = reach(short.z, places.inverse, places.own[chosen])
            integers, decided, kept = short.decide(most, radii.of(found), SHORT)
        if (some := np.flatnonzero(~decided | exact)).size:
            bounds = table[sizes[others[found[some]]]]
            answer = points.of(some).decide(bounds, radii.of(found[some]), source=source, exact=exact)
            integers[:, some], kept[some] = answer
        draws[others[found[kept]]] = integers[:, kept].T
        free = chosen[kept]
    return draws


class Radii(NamedTuple):
    """Of every vector the ring it is in, a uniform variable, and the radius as a ball."""

    ring: NDArray[np.float64]
    word: NDArray[np.uint64]
    mid: Vector
    rad: Vector

    @classmethod
    def draw(cls, law: Rings, many: int, source: Source) -> Radii:
        ring, word = np.stack(ring_radii(law, many, source)), source.words(many)
        with np.errstate(all="ignore"):
            radius = ring_radius(Balls.uniforms(word), law.d, *map(Balls, ring))
        return cls(ring, word, np.asarray(radius.mid), np.asarray(radius.rad))

    def of(self, rows: Integers) -> Radii:
        return Radii(self.ring[:, rows], self.word[rows], self.mid[rows], self.rad[rows])


class Points(NamedTuple):
    """Proposals, the last axis of all.

    Attributes
    ----------
    words : the first 32 binary digits of uniform variables: of every kind, and two for the ends of the block.
    up : which kinds are positive, if they are of the block.
    shared : which kinds are of the block.
    block : the set of these.
    """

    words: NDArray[np.uint32]
    up: Mask
    shared: Mask
    block: Integers

    def of(self, some: Integers) -> Points:
        return Points(self.words[:, some], self.up[:, some], self.shared[:, some], self.block[some])

    def decide(self, bounds: Matrix, radii: Radii, *, source: Source, exact: bool) -> tuple[Integers, Mask]:
        """Integers, one column a proposal, and whether it is accepted, by more digits; a row of `bounds` is its S."""
        d, each = len(self.up), np.arange(len(bounds))
        words = self.words.astype(np.uint64) << np.uint64(32)
        words |= _short(words.size, source).reshape(words.shape)
        uniform = (words >> np.uint64(1)).view(np.int64).astype(np.float64)
        uniform += 0.5
        uniform *= 2.0**-63
        alone = bounds[:, 1 << np.arange(d)].T
        side = np.where(self.shared, bounds[each, self.block], alone)
        total = side.sum(axis=0) / alone.min(axis=0)
        with np.errstate(all="ignore"):
            point = Located.of(uniform, self.up.astype(np.float64), self.shared.astype(np.float64), side, total, LONG)
            integers, decided, accepted = point.decide(reach(point.z, 1 / bounds, each), radii, LONG)
        flags = [*self.up, *self.shared, *side, *radii.ring]
        return settle(
            within_unions(d),
            np.concatenate([words, radii.word[None]]),
            lambda i: [*(float(x[i]) for x in flags), *bounds[i, 1:].tolist()],
            (integers, decided & (not exact), accepted),
            source=source,
        )


class Located(NamedTuple):
    """Points in numbers of one precision.

    Attributes
    ----------
    z : the point, positive kinds over t and negative kinds over 1 - t.
    above : t.
    below : 1 - t.
    off : more than any kind of `z` can be off, in units of its side; and more than t can be.
    side : S of the block for its kinds, of the kind alone for others.
    total : the sum of all sides over the least S of a kind.
    """

    z: Real
    above: Real
    below: Real
    off: Real
    side: Real
    total: Real

    @classmethod
    def of(cls, uniform: Real, up: Real, shared: Real, side: Real, total: Real, precision: Precision) -> Located:
        d = len(side)
        size = np.log(uniform)
        np.negative(size, out=size)
        part = size[:d] * shared
        first = part * up
        part -= first  # a number times 0 or 1 is exact
        above, below = first.sum(axis=0), part.sum(axis=0)
        above += size[d]
        below += size[d + 1]
        whole, least = above + below, np.minimum(above, below)
        above /= whole
        below /= whole
        np.minimum(np.minimum(above, below), least, out=least)
        off = precision.missing / uniform.min(axis=0)
        off += precision.lost
        off /= least
        first -= part
        first /= whole
        z = uniform[:d] - below
        z *= 1 - shared
        z += first
        rise = np.maximum(z, 0)
        z -= rise
        rise /= above
        z /= below
        z += rise
        z *= side
        return cls(z, above, below, off, side, total)

    def decide(self, most: tuple[Real, Real], radii: Radii, precision: Precision) -> tuple[Integers, Mask, Mask]:
        """Integers, where they and their acceptance are certain, and where they are accepted: proofs/rings.md."""
        z, above, below, off, side, total = self
        highest, lowest = most
        lost, known = total * off, off < KNOWN
        excess = np.maximum(highest, lowest)
        excess -= 1
        outside, inside = (excess > lost) & known, (excess < -lost) & known
        norm = highest * above
        norm += lowest * below
        radius = radii.mid.astype(z.dtype)
        unit = radius / norm
        # Relative to itself: of the norm, of the radius, and roundings.
        lost *= 2
        spread = lost / np.maximum(norm - lost, 0)
        spread += (1 + spread) * (radii.rad / radii.mid * 2).astype(z.dtype)
        spread += precision.lost
        rise, fall = above * unit, below * unit
        z = np.maximum(z, 0) * rise + np.minimum(z, 0) * fall
        room = side * (off * unit * (1 + spread) * 2)
        room += np.abs(z) * spread
        integers = np.rint(z)
        z -= integers
        room += np.abs(z, out=z)
        decided = (room < 0.5 - 2.0**-20).all(axis=0)
        return integers.astype(np.int64), outside | (decided & inside), inside


def reach(z: Real, inverse: Real, rows: Integers) -> tuple[Real, Real]:
    """The largest z(A) / S_A and -z(A) / S_A of every vector, whose row of `inverse` has 1 / S; the empty set has 0."""
    many, sets = z.shape[1], members(len(z)).T.astype(z.dtype)
    own, share = np.empty((2, NEAR, sets.shape[1]), dtype=z.dtype)
    highest, lowest = np.empty((2, many), dtype=z.dtype)
    for start in range(0, many, NEAR):
        at, n = slice(start, start + NEAR), min(NEAR, many - start)
        np.take(inverse, rows[at], axis=0, out=own[:n], mode="clip")
        np.matmul(z[:, at].T, sets, out=share[:n])
        share[:n] *= own[:n]
        np.maximum.reduce(share[:n], axis=1, out=highest[at])
        np.minimum.reduce(share[:n], axis=1, out=lowest[at])
    return highest, -lowest


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Vectors that are being drawn, and around the ball of each a product of a simplex and intervals.

    Attributes
    ----------
    row : which vector it is; the last axis of this and all others is places.
    block : the set of kinds of the block.
    shared : which kinds these are, 1 or 0.
    side : S of the block for its kinds, of the kind alone for others.
    total : the sum of all sides over the least S of a kind.
    most : what short numbers of single kinds and of pairs may be.
    own : which row of `inverse` is its own.
    inverse : of all sets 1 / S, sets the last axis.
    """

    row: Integers
    block: Integers
    shared: NDArray[np.float32]
    side: NDArray[np.float32]
    total: NDArray[np.float32]
    most: NDArray[np.float32]
    own: Integers
    inverse: NDArray[np.float32]

    @classmethod
    def empty(cls, d: int, n: int) -> Slots:
        shared, side, total, most = (np.empty((k, n), dtype=np.float32) for k in (d, d, 1, len(_few(d))))
        row, block = np.empty((2, n), dtype=np.int64)
        return cls(row, block, shared, side, total, most, np.arange(n), np.empty((n, 2**d), dtype=np.float32))

    def without(self, some: Integers) -> Slots:
        if not some.size:
            return self
        kept = np.ones(len(self.row), dtype=np.bool_)
        kept[some] = False
        names = [x.name for x in fields(self) if x.name != "inverse"]
        return replace(self, **{name: np.compress(kept, getattr(self, name), axis=-1) for name in names})

    def put(self, at: Integers, names: Integers, sizes: Integers, rows: Integers, table: Vector) -> None:
        """Vectors into places, each with the block of the least volume, of those of the smallest kinds."""
        d = len(self.side)
        scale, inverse, log = (x.astype(np.float32) for x in (table, 1 / table, np.log(table)))
        size = np.empty((len(_few(d)), len(at)), dtype=np.int64)
        for start in range(0, len(at), NEAR):
            few = slice(start, start + NEAR)
            every = _rows(sizes, rows[few])
            self.inverse[self.own[at[few]]] = inverse.take(every, mode="clip")
            size[:, few] = every.take(_few(d), axis=1, mode="clip").T
        row = rows << d
        # Kinds in the order of their sizes; the lowest bits say which one it is.
        ranked = np.sort((size[:d] << 3 | np.arange(d)[:, None]).T, axis=1).T
        sets = np.cumsum(np.int64(1) << (ranked & 7), axis=0)
        whole = sizes.ravel().take(row + sets, mode="clip")
        volume = log.take(whole, mode="clip") * np.arange(1, d + 1, dtype=np.float32)[:, None]
        volume -= np.cumsum(log.take(ranked >> 3, mode="clip"), axis=0)
        volume += _shapes(d)[:, None]
        best, each = volume.argmin(axis=0), np.arange(len(rows))
        block = sets[best, each]
        shared = block >> np.arange(d)[:, None] & 1
        own = scale.take(size, mode="clip")
        side = np.where(shared, scale[whole[best, each]], own[:d])
        self.total[0, at] = side.sum(axis=0) / own[:d].min(axis=0)
        spare = side * np.float32(2 * MARGIN)
        own[:d] += spare
        for i, pairs in enumerate(_pairs(d)):
            own[pairs] += spare[i] + spare[i + 1 :]
        self.row[at], self.block[at] = names, block
        for old, new in ((self.shared, shared), (self.side, side), (self.most, own)):
            for kept, found in zip(old, new, strict=True):  # one axis takes less than half as long as two
                kept[at] = found

    def propose(self, source: Source) -> tuple[Integers, Points, Located]:
        """For every vector the first of some proposals that may be inside; not all vectors have one."""
        d, n = self.side.shape
        times = max(1, min(PLACES // n, 32))
        words = _short((d + 2) * times * n, source).reshape(d + 2, times, n)
        signs = source.words((times * n + 7) // 8).view(np.uint8)[: times * n].reshape(times, n)
        maybe = np.empty((times, n), dtype=np.bool_)
        z = np.empty((d + 3, times, n), dtype=np.float32)
        for start in range(0, n, step := max(1, TOGETHER // times)):
            at = slice(start, start + step)
            with np.errstate(all="ignore"):
                maybe[:, at] = self._maybe(at, words[:, :, at], signs[:, at], z[:, :, at])
        chosen = np.flatnonzero(maybe.any(axis=0)) if times > 1 else np.flatnonzero(maybe[0])
        place = maybe[:, chosen].argmax(axis=0) * n + chosen if times > 1 else chosen
        found = z.reshape(d + 3, -1).take(place, axis=1, mode="clip")
        side = self.side.take(chosen, axis=1, mode="clip")
        points = Points(
            words.reshape(d + 2, -1).take(place, axis=1, mode="clip"),
            _bits(signs.ravel()[place], d) == 1,
            self.shared.take(chosen, axis=1, mode="clip") == 1,
            self.block[chosen],
        )
        above, below, off = found[d:]
        return chosen, points, Located(found[:d], above, below, off, side, self.total[0, chosen])

    def _maybe(self, at: slice, words: NDArray[np.uint32], signs: NDArray[np.uint8], found: Real) -> Mask:
        """Which proposals may be inside, by short numbers, which are kept in `found`."""
        d, shared, side, most = len(self.side), self.shared[:, None, at], self.side[:, None, at], self.most[:, None, at]
        uniform = words.astype(np.float32)
        uniform += np.float32(0.5)
        uniform *= np.float32(2.0**-32)
        point = Located.of(uniform, _bits(signs, d).astype(np.float32), shared, side, self.total[:, at], SHORT)
        z = found[:d] = point.z
        found[d], found[d + 1], found[d + 2] = point.above, point.below, point.off
        wrong = (np.abs(z) > most[:d]).any(axis=0)
        for i, pairs in enumerate(_pairs(d)):
            both = z[i] + z[i + 1 :]
            np.abs(both, out=both)
            wrong |= (both > most[pairs]).any(axis=0)
        return np.asarray((point.off > np.float32(MARGIN)) | ~wrong)


def _bits(sets: NDArray[np.uint8], d: int) -> NDArray[np.uint8]:
    """A new first axis: whether each kind is in the set, 1 or 0."""
    return np.asarray(sets >> np.arange(d, dtype=np.uint8).reshape(d, *[1] * sets.ndim) & np.uint8(1))


def _rows(sizes: Integers, rows: Integers) -> Integers:
    """Rows in rising order, without a copy where none is left out."""
    first, last = int(rows[0]), int(rows[-1])
    return sizes[first : last + 1] if last - first == len(rows) - 1 else sizes.take(rows, axis=0, mode="clip")


def _short(n: int, source: Source) -> NDArray[np.uint32]:
    """So many numbers of 32 random bits."""
    return source.words((n + 1) // 2).view(np.uint32)[:n]


@cache
def _few(d: int) -> Integers:
    """Single kinds, then pairs."""
    return np.array([*(1 << i for i in range(d)), *(1 << i | 1 << j for i, j in combinations(range(d), 2))])


@cache
def _pairs(d: int) -> list[slice]:
    """Where pairs are whose first kind is this one."""
    ends = np.cumsum([d, *range(d - 1, 0, -1)]).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


@cache
def _shapes(d: int) -> NDArray[np.float32]:
    """Of a block of 1 to d kinds the logarithm of how much room it has with t, beside intervals."""
    room = [math.log(2**m / math.factorial(m + 1)) for m in range(1, d + 1)]
    return np.array(room, dtype=np.float32)


@cache
def members(d: int) -> Integers:
    """Row A, column c: whether kind c is in the set A."""
    return np.arange(2**d)[:, None] >> np.arange(d) & 1
