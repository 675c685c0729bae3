"""The worst loss of noise whose norm follows every kind of workers and their sum, for the weak definition.

Between neighbours every scale grows by a ratio of 1 to w, and the centre moves by at most u in the new norm. So the
volume of the unit ball grows by 1 to w^d, and a radius r becomes at most r + u, or back at most w (r + u). The loss
over all (u, w) is a bound for every pair (docs/proofs/rings.md). Pairs of real establishments are also examined, with
the exact volumes of their balls, so a broken promise has a witness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy import special

from discreet.arrays import Integers, Matrix, Vector
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.stepped import SteppedLaw, on_axis
from discreet.privacy.units import Establishments

MOST_EXAMINED = 8
"""Kinds for which volumes of balls are summed up, over 3^d pieces."""

SIZES = (1, 2, 7, 20, 1000)
"""Of the establishments that are examined, in units of 1 / alpha."""


@runtime_checkable
class KindsMechanism(Protocol):
    """A mechanism whose noise follows the largest establishment of every kind, and of all."""

    by_kinds: bool
    by_unions: bool

    @property
    def unit(self) -> Establishments: ...

    @property
    def law(self) -> Any: ...

    def scale(self, largest: Vector) -> Vector: ...

    def scales(self, largest: Integers | Vector) -> tuple[Vector, Vector]: ...


class Pair(NamedTuple):
    """An establishment of workforce `before` (by kind) that gains `gain`; `others` are those beside it, one a row."""

    before: Integers
    gain: Integers
    others: Integers


class Found(NamedTuple):
    """The bound for all pairs, and the worst loss between real ones: at which pair, and how far out."""

    bound: float
    loss: float
    pair: Pair
    output: float


def kinds_supremum(mechanism: KindsMechanism, pairs: Neighbours) -> Found:
    """The most that such a mechanism loses, and the worst of some real pairs."""
    large, small = (mechanism.scale(np.maximum(x, pairs.other).astype(float)) for x in (pairs.after, pairs.before))
    shift, ratio = float(((pairs.after - pairs.before) / large).max()), float((large / small).max())
    law: SteppedLaw = mechanism.law
    bound = ring_bound(law, shift, ratio)
    worst = Found(bound, -1.0, Pair(*(np.zeros(1, dtype=np.int64),) * 3), 0.0)
    if 1 < law.dimension <= MOST_EXAMINED:
        for pair in real_pairs(mechanism.unit, law.dimension):
            loss, output = pair_loss(mechanism, pair)
            if loss > worst.loss:
                worst = Found(bound, loss, pair, output)
    return worst


def ring_bound(law: SteppedLaw, shift: float, ratio: float) -> float:
    """The most that is lost if a radius moves by at most `shift` and the volume by anything up to a power of `ratio`.

    Of a ring the far end matters, and beyond the last edge the point next to it.
    """
    edges = law.jumps
    up = max(rise(law, edges + shift), rise(law, np.append(edges, edges[-1] * 1e6) + shift))
    volume = law.dimension * math.log(ratio)
    bounds = (volume + up, rise(law, ratio * (edges + shift)), power_of(law) * math.log(ratio))
    return max(bounds) if all(math.isfinite(bound) for bound in bounds) else math.inf


def rise(law: SteppedLaw, reached: Vector) -> float:
    """The most that psi rises from the rings to what their far ends become."""
    heights = on_axis(law, _inside(law.jumps))
    return float((heights[: len(reached)] - just_within(law, reached)[: len(heights)]).max())


def just_within(law: SteppedLaw, radius: Vector) -> Vector:
    """The log density just within a radius."""
    edges = law.jumps
    ring = np.minimum(np.searchsorted(edges, radius, side="left"), len(edges) - 1)
    inside = _inside(edges)[ring]
    return on_axis(law, np.where(radius > edges[-1], radius, inside))


def _inside(edges: Vector) -> Vector:
    return np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2])


def power_of(law: SteppedLaw) -> float:
    """How fast the density falls in the tail: minus the slope of its logarithm."""
    far = law.jumps[-1] * np.array([1e3, 1e6])
    return float(-np.diff(on_axis(law, far))[0] / np.diff(np.log(far))[0])


def real_pairs(unit: Establishments, d: int) -> Iterator[Pair]:
    """Establishments that grow by all that is allowed: of one kind beside mixed ones, of all kinds, of all but one."""

    def grown(y: int) -> int:
        return unit.largest_neighbour(y) - y

    for times in SIZES:
        y = math.ceil(times / unit.alpha)
        gain = grown(y)
        pure = np.zeros(d, dtype=np.int64)
        pure[0] = y
        more = np.zeros(d, dtype=np.int64)
        more[0] = gain
        spread = np.full((1, d), (y + gain) // (d - 1), dtype=np.int64)
        spread[0, 0] = 0
        yield Pair(pure, more, spread)
        yield Pair(pure, more, np.eye(d, dtype=np.int64)[1:] * (y + gain))
        yield Pair(np.full(d, y), np.full(d, gain), np.zeros((1, d), dtype=np.int64))
        beside = np.zeros((1, d), dtype=np.int64)
        beside[0, 0] = y + gain
        yield Pair(np.full(d, y), np.full(d, gain), beside)
    one = np.eye(d, dtype=np.int64)[0]
    nobody = np.zeros((1, d), dtype=np.int64)
    for x in [x for x in range(1, 3 * math.ceil(1 / unit.alpha)) if grown(x) == 1][-8:]:
        yield Pair(x * np.eye(d, dtype=np.int64)[1], one, nobody)
        yield Pair(x * one, one, nobody)


def is_weak_pair(unit: Establishments, pair: Pair) -> bool:
    """Whether every set of kinds grows at most by a share alpha, or by one worker."""
    kinds = range(len(pair.gain))
    return all(
        pair.before[list(some)].sum() + pair.gain[list(some)].sum()
        <= unit.largest_neighbour(int(pair.before[list(some)].sum()))
        for size in range(1, len(pair.gain) + 1)
        for some in combinations(kinds, size)
    )


def pair_loss(mechanism: KindsMechanism, pair: Pair) -> tuple[float, float]:
    """The largest loss between two real cells over outputs on the axes and along the gain, in both directions."""
    law: SteppedLaw = mechanism.law
    rows = [np.vstack([grown[None], pair.others]) for grown in (pair.before, pair.before + pair.gain)]
    norms, volume = _by_unions(mechanism, rows) if mechanism.by_unions else _by_kinds(mechanism, rows)
    gain = pair.gain.astype(np.float64)
    worst, output = -math.inf, 0.0
    for axis in [gain, *np.eye(len(gain))[np.flatnonzero(gain)]]:
        for narrow, grown in ((0, volume[0]), (1, -volume[1])):
            length = norms[narrow](axis[None])[0]
            points = law.jumps[:, None] / length * axis * (1 - 2.0**-40)
            reached = norms[1 - narrow](points + gain)
            losses = grown + on_axis(law, _inside(law.jumps)) - just_within(law, reached)
            losses = np.where(np.isfinite(losses), losses, np.inf)
            if losses.max() > worst:
                worst, output = float(losses.max()), float(law.jumps[int(np.argmax(losses))])
    return worst, output


Norm = Callable[[Matrix], Vector]


def _by_kinds(mechanism: KindsMechanism, rows: Sequence[Integers]) -> tuple[list[Norm], tuple[float, float]]:
    """The norms of both cells for rows that are not negative, and how much the volume of the ball grows."""
    own, whole = mechanism.scales(np.array([[*row.max(axis=0), row.sum(axis=1).max()] for row in rows]))
    grown = log_volume(own[1], whole[1]) - log_volume(own[0], whole[0])
    return [partial(gauge, own=own[i], whole=whole[i]) for i in (0, 1)], (grown, grown)


def _by_unions(mechanism: KindsMechanism, rows: Sequence[Integers]) -> tuple[list[Norm], tuple[float, float]]:
    """The same with every set of kinds: the volume grows by the power d of a ratio between the least and the most."""
    d = rows[0].shape[1]
    sets = np.arange(1, 2**d)[:, None] >> np.arange(d) & 1
    small, large = (mechanism.scale((row @ sets.T).max(axis=0).astype(np.float64)) for row in rows)
    ratio = np.log(large / small)
    return [partial(union_gauge, sets=sets, bounds=x) for x in (small, large)], (d * ratio.min(), d * ratio.max())


def union_gauge(y: Matrix, sets: Integers, bounds: Vector) -> Vector:
    """g(y) = max over sets A of y(A) / S_A of rows that are not negative."""
    return np.asarray((y @ sets.T / bounds).max(axis=1))


def gauge(y: Vector, own: Vector, whole: float) -> Vector:
    """g(y) = max(max y_c / s_c, sum y_c / S) of rows that are not negative."""
    return np.asarray(np.maximum((y / own).max(axis=1), y.sum(axis=1) / whole))


def log_volume(own: Vector, whole: float) -> float:
    """The logarithm of the volume of {g(z+) + g(z-) <= 1}: over the kinds that are positive, of two cut boxes.

    The part with j positive kinds P is vol(P) vol(N) j! (d-j)! / d!, and a box cut by its sum is an alternating sum
    over its corners.
    """
    d = len(own)
    sets = np.arange(2**d)
    member = (sets[:, None] >> np.arange(d)) & 1
    size = member.sum(axis=1)
    left = np.maximum(1 - member @ (own / whole), 0.0)
    # Rows are sets of kinds, columns the corners of their boxes.
    corner = (sets[:, None] & sets) == sets
    pieces = np.where(corner, (1 - 2 * (size % 2)) * left ** size[:, None], 0.0)
    # Where the sum cuts nothing off, the box has its own volume, and the alternating sum no digits.
    uncut = np.prod(np.where(member == 1, own / whole, 1.0), axis=1)
    cut = np.where(member @ own <= whole, uncut, pieces.sum(axis=1) / special.factorial(size))
    total = math.fsum(cut * cut[::-1] / special.comb(d, size))
    return math.log(total) + d * math.log(whole)
