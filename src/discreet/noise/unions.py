"""Draws of rings in the norm g(z+) + g(z-), g(y) = max over all sets A of kinds of y(A) / S_A: docs/proofs/rings.md.

Its ball has no simple volume, and needs none. The kinds with the fewest workers are a block, whose counts lie in a
simplex; every other kind is alone. How often a set of positive kinds is proposed then depends on how many kinds the
block has, and on nothing else. A point is proposed, and drawn again if it is outside the ball; single kinds and pairs
find nearly all of those, in short numbers. Sets are binary numbers: kind c is in A if bit c of A is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.errors import PrivacyError
from discreet.noise.balls import ROUNDING, SLACK, UNDERFLOW, Balls
from discreet.noise.sampler import check_scale, draw_integers, ring_radii, settle
from discreet.noise.transforms import ring_radius, within_unions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from discreet.arrays import Integers, Mask, Matrix, Vector
    from discreet.noise.rings import Rings
    from discreet.noise.source import Source

MOST_KINDS = 8
ROWS = 8192  # vectors that are drawn at a time
TIMES = 2  # proposals for each of them
TOGETHER = 4096  # proposals whose short numbers stay in a processor's cache
NEAR = 256  # vectors whose bounds stay in a processor's cache
SHORT = 32
"""Binary digits of a uniform variable that are drawn first. A point that may be inside gets more."""

LEAST_UNIFORM, LEAST_SIZE = 2.0**-10, 2.0**-4
"""Where a uniform variable, or the sum that divides a simplex, is less, short numbers decide nothing."""

LOST = 2.0**-38
"""More than doubles of a point can be off, but for the missing digits of its uniform variables."""

NARROWEST = 2.0**-100
"""Scales between this and its inverse are ordinary short numbers."""

MARGIN = 2.0**-9
"""More than short numbers can be off, relative to the side of a kind's simplex."""


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
    radii = np.stack(ring_radii(law, len(others), source))
    cover, start = Cover.of(sizes, others, table), 0
    left = np.empty(0, dtype=np.int64)
    while left.size or start < len(others):
        stop = min(start + ROWS - left.size, len(others))
        left, start = np.concatenate([left, np.arange(start, stop)]), stop
        chosen, points = cover.propose(left, max(TIMES, min(ROWS // left.size, 32)), source)
        rows = left[chosen]
        bounds = Bounds(sizes, others[rows], table)
        integers, kept = points.decide(radii[:, rows], bounds, source=source, exact=exact)
        draws[others[rows[kept]]] = integers[:, kept].T
        again = np.ones(left.size, dtype=np.bool_)
        again[chosen[kept]] = False
        left = left[again]
    return draws


class Points(NamedTuple):
    """Proposals that may be inside, kinds in their own order, the last axis of all.

    Attributes
    ----------
    words : uniform variables: of every kind, and one for the positive and one for the negative kinds of the block.
    up : which kinds are positive.
    shared : which kinds are of the block.
    side : S of the block for its kinds, of the kind alone for others.
    least : the least S of a kind.
    """

    words: NDArray[np.uint64]
    up: Mask
    shared: Mask
    side: Matrix
    least: Vector

    def decide(self, radii: Matrix, bounds: Bounds, *, source: Source, exact: bool) -> tuple[Integers, Mask]:
        """Integers, one column a proposal, and whether it is accepted."""
        d, many = self.up.shape
        words = np.concatenate([self.words, source.words((d + 1) * many).reshape(d + 1, many)])
        with np.errstate(all="ignore"):
            integers, decided, accepted = self._in_doubles(words, radii, bounds)
        flags = [*self.up, *self.shared, *self.side, ~self.up.any(axis=0), self.up.all(axis=0), *radii]
        return settle(
            within_unions(d),
            words,
            lambda i: [*(float(x[i]) for x in flags), *bounds.of(i)],
            (integers, decided & (not exact), accepted),
            source=source,
        )

    def _in_doubles(self, words: NDArray[np.uint64], radii: Matrix, bounds: Bounds) -> tuple[Integers, Mask, Mask]:
        """Integers, where they and their acceptance are certain, and where they are accepted: proofs/rings.md."""
        d = len(self.up)
        uniform = (words >> np.uint64(1)).view(np.int64).astype(np.float64)
        uniform += 0.5
        uniform *= 2.0**-63
        point, half = uniform[: d + 2], uniform[d + 2 : 2 * d + 2]
        size = np.log(point)
        np.negative(size, out=size)
        up, shared = self.up.astype(np.float64), self.shared.astype(np.float64)
        down = 1 - up
        part = size[:d] * shared
        above, below = size[d] + (part * up).sum(axis=0), size[d + 1] + (part * down).sum(axis=0)
        z = part / (above * up + below * down)  # a number times 0 or 1 is exact
        z += point[:d] * (1 - shared)
        z *= self.side
        z *= up - down
        # In units of its side no kind is off by more than this.
        off = (2.0**-58 / point.min(axis=0) + LOST) / np.minimum(np.minimum(above, below), 1.0)
        highest, lowest = bounds.reach(z)
        lost = off * self.side.sum(axis=0) / self.least
        radius = ring_radius(Balls.uniforms(words[2 * d + 2]), d, *map(Balls, radii))
        far = 2.0**-59 / half.min(axis=0) + LOST
        halves = [
            -Balls(mid, mid * far).log() for mid in ((half * up + down).prod(axis=0), (half * down + up).prod(axis=0))
        ]
        unit = radius / (halves[0] + halves[1])
        rise, fall = (
            unit * own / Balls(most + nothing, lost)
            for own, most, nothing in zip(halves, (highest, lowest), (down.all(axis=0), up.all(axis=0)), strict=True)
        )
        times, spread = (a * up + b * down for a, b in ((rise.mid, fall.mid), (rise.rad, fall.rad)))
        rad = self.side * off * (times + spread) + np.abs(z) * spread
        z *= times
        rad += np.abs(z) * ROUNDING
        integers = np.rint(z)
        decided = (np.abs(z - integers) + rad * SLACK < 0.5 - UNDERFLOW).all(axis=0)
        excess = np.maximum(highest, lowest) - 1
        unknown = lost * SLACK + UNDERFLOW
        outside, inside = excess > unknown, excess < -unknown
        return integers.astype(np.int64), outside | (decided & inside), inside


class Bounds(NamedTuple):
    """S_A of some vectors: which rows of `sizes` they are, and the table of S by x."""

    sizes: Integers
    rows: Integers
    table: Vector

    def of(self, i: int) -> list[float]:
        """Of one vector, but for the empty set."""
        return list(self.table[self.sizes[self.rows[i], 1:]].tolist())

    @property
    def kinds(self) -> int:
        return int(self.sizes.shape[1]).bit_length() - 1

    def reach(self, z: Matrix) -> tuple[Vector, Vector]:
        """The largest z(A) / S_A and -z(A) / S_A of every vector; the empty set has 0."""
        many, sets = z.shape[1], members(self.kinds).T.astype(np.float64)
        own = np.empty((NEAR, sets.shape[1]), dtype=self.sizes.dtype)
        bound, share = np.empty((2, NEAR, sets.shape[1]))
        highest, lowest = np.empty((2, many))
        for start in range(0, many, NEAR):
            at, n = slice(start, start + NEAR), min(NEAR, many - start)
            np.take(self.sizes, self.rows[at], axis=0, out=own[:n], mode="clip")
            np.take(self.table, own[:n], out=bound[:n], mode="clip")
            np.matmul(z[:, at].T, sets, out=share[:n])
            share[:n] /= bound[:n]
            share[:n].max(axis=1, out=highest[at])
            share[:n].min(axis=1, out=lowest[at])
        return highest, -lowest


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """For every vector a product of a simplex and intervals around its ball, kinds in the order of their sizes.

    Attributes
    ----------
    order : kinds, those of the fewest workers first; the last axis of this and all others is vectors.
    many : how many of them are the block.
    side : S of the block for its kinds, of the kind alone for others.
    least : the least S of a kind.
    most : what short numbers of single kinds and of pairs may be.
    """

    order: Integers
    many: Integers
    side: Matrix
    least: Vector
    most: NDArray[np.float32]

    @classmethod
    def of(cls, sizes: Integers, rows: Integers, table: Vector) -> Cover:
        d, n = sizes.shape[1].bit_length() - 1, len(rows)
        made = cls(
            np.empty((d, n), dtype=np.int64),
            np.empty(n, dtype=np.int64),
            np.empty((d, n)),
            np.empty(n),
            np.empty((d + d * (d - 1) // 2, n), dtype=np.float32),
        )
        for start in range(0, n, ROWS // 4):
            made._fill(slice(start, start + ROWS // 4), sizes.ravel(), rows[start : start + ROWS // 4] << d, table)
        return made

    def _fill(self, at: slice, sizes: Integers, row: Integers, table: Vector) -> None:
        """The block of the least volume, of those of the smallest kinds."""
        d = len(self.order)
        workers = sizes[row + (1 << np.arange(d))[:, None]]
        # Kinds in the order of their sizes; the lowest bits say which one it is.
        ranked = np.sort((workers << 3 | np.arange(d)[:, None]).T, axis=1).T
        order = ranked & 7
        kind = np.int64(1) << order
        scale, block = table[ranked >> 3], table[sizes[row + np.cumsum(kind, axis=0)]]
        own = np.log(scale)
        volume = np.log(block) * np.arange(1, d + 1)[:, None] + _shapes(d)[:, None]
        volume += own.sum(axis=0) - np.cumsum(own, axis=0)
        many = volume.argmin(axis=0) + 1
        side = np.where(np.arange(d)[:, None] < many, block[many - 1, np.arange(len(row))], scale)
        self.order[:, at], self.many[at], self.side[:, at], self.least[at] = order, many, side, scale[0]
        spare = side * (2 * MARGIN)
        self.most[:d, at] = scale + spare
        for place, (i, j) in enumerate(combinations(range(d), 2), start=d):
            self.most[place, at] = table[sizes[row + kind[i] + kind[j]]] + spare[i] + spare[j]

    def propose(self, rows: Integers, times: int, source: Source) -> tuple[Integers, Points]:
        """For every vector the first of several proposals that may be inside; not all vectors have one."""
        d, n = len(self.order), len(rows)
        many, side = self.many[rows], self.side[:, rows]
        positive = signs(d).draw(np.tile(many, times), source).reshape(times, n)
        words = _short((d + 2) * times * n, source).reshape(d + 2, times, n)
        short, most = side.astype(np.float32), self.most[:, rows]
        maybe = np.empty((times, n), dtype=np.bool_)
        for start in range(0, n, step := max(1, TOGETHER // times)):
            at = slice(start, start + step)
            with np.errstate(all="ignore"):
                maybe[:, at] = _maybe(many[at], short[:, at], most[:, at], positive[:, at], words[:, :, at])
        chosen = np.flatnonzero(maybe.any(axis=0))
        place = maybe[:, chosen].argmax(axis=0) * n + chosen
        first = words.reshape(d + 2, -1)[:, place].astype(np.uint64)
        long = first << np.uint64(SHORT) | _short(first.size, source).reshape(first.shape)
        # From the order of sizes to that of kinds.
        turn = self.order[:, rows[chosen]] * len(chosen) + np.arange(len(chosen))
        bits = positive.ravel()[place] >> np.arange(d, dtype=np.uint8)[:, None] & np.uint8(1)
        up, own = np.empty(turn.shape, dtype=np.uint8), np.empty(turn.shape)
        shared, mixed = np.empty(turn.shape, dtype=np.bool_), long.copy()
        up.ravel()[turn], own.ravel()[turn], mixed[:d].ravel()[turn] = bits, side[:, chosen], long[:d]
        shared.ravel()[turn] = np.arange(d)[:, None] < many[chosen]
        return chosen, Points(mixed, up.view(np.bool_), shared, own, self.least[rows[chosen]])


def _maybe(
    many: Integers,
    side: NDArray[np.float32],
    most: NDArray[np.float32],
    positive: NDArray[np.uint8],
    words: NDArray[np.uint32],
) -> Mask:
    """Which proposals may be inside, by short numbers."""
    d = len(side)
    uniform = words.astype(np.float32)
    uniform += np.float32(0.5)
    uniform *= np.float32(2.0**-SHORT)
    size = np.log(uniform)
    np.negative(size, out=size)
    bits = (positive >> np.arange(d, dtype=np.uint8)[:, None, None] & np.uint8(1)).astype(np.float32)
    inside = (np.arange(d)[:, None] < many)[:, None].astype(np.float32)
    part = size[:d] * inside
    first = part * bits
    above, below = size[d] + first.sum(axis=0), size[d + 1] + (part - first).sum(axis=0)
    unsure = uniform.min(axis=0) < np.float32(LEAST_UNIFORM)
    block = ((1 << many) - 1).astype(np.uint8)
    unsure |= (above < np.float32(LEAST_SIZE)) & (positive & block != 0)
    unsure |= (below < np.float32(LEAST_SIZE)) & (~positive & block != 0)
    part /= above * bits + below * (1 - bits)  # a number times 0 or 1 is exact
    part += uniform[:d] * (1 - inside)
    part *= side[:, None]
    wrong = np.asarray((part > most[:d, None]).any(axis=0))
    z = part * (2 * bits - 1)
    both, beyond = np.empty_like(z[0]), np.empty(wrong.shape, dtype=np.bool_)
    for place, (i, j) in enumerate(combinations(range(d), 2), start=d):
        np.add(z[i], z[j], out=both)
        np.abs(both, out=both)
        np.greater(both, most[place], out=beyond)
        np.logical_or(wrong, beyond, out=wrong)
    return np.asarray(unsure | ~wrong)


def _short(n: int, source: Source) -> NDArray[np.uint32]:
    """So many numbers of 32 random bits."""
    return source.words((n + 1) // 2).view(np.uint32)[:n]


@cache
def _shapes(d: int) -> Vector:
    """Of a block of 1 to d kinds the logarithm of about how much room it has beside intervals."""
    return np.array([math.log(math.comb(2 * m, m) / math.factorial(m) / 2**m) for m in range(1, d + 1)])


@dataclass(frozen=True, slots=True, eq=False)
class Signs:
    """Sets of positive places, as often as they have to be proposed, for every number of places in the block."""

    total: Integers
    start: Integers
    sets: NDArray[np.uint8]

    def draw(self, many: Integers, source: Source) -> NDArray[np.uint8]:
        return np.asarray(self.sets[self.start[many] + below(self.total[many], source)])


@cache
def signs(d: int) -> Signs:
    """Every set P as often as C(m, j) / C(d, k) says: k its places, j of them among the m first."""
    whole = math.lcm(*(math.comb(d, k) for k in range(d + 1)))
    size = members(d).sum(axis=1)
    sets = []
    for m in range(d + 1):
        first = members(d)[:, :m].sum(axis=1)
        times = [math.comb(m, j) * whole // math.comb(d, k) for j, k in zip(first.tolist(), size.tolist(), strict=True)]
        sets.append(np.repeat(np.arange(2**d, dtype=np.uint8), times))
    total = np.array([len(some) for some in sets])
    return Signs(total, np.cumsum(total) - total, np.concatenate(sets))


@cache
def members(d: int) -> Integers:
    """Row A, column c: whether kind c is in the set A."""
    return np.arange(2**d)[:, None] >> np.arange(d) & 1


def below(total: Integers, source: Source) -> Integers:
    """A whole number from 0 to below each total, all equally likely."""
    limit, word = total.astype(np.uint32), _short(total.size, source)
    rest = word % limit
    fair = word - rest <= np.uint32(2**32 - 1) - limit + np.uint32(1)  # a whole round of numbers lies ahead
    found = rest.astype(np.int64)
    again = np.flatnonzero(~fair)
    if again.size:
        found[again] = below(total[again], source)
    return found
