"""The mass that a density of t = |z_1| + ... + |z_d| gives to the cube which rounding sends to one integer vector.

Over a cube, t is a constant plus independent uniform variables, of width 1, or 1/2 where the coordinate is 0: there
|z| is folded. A uniform variable of width 1 is one of width 1/2 plus 0 or 1/2 by the toss of a coin, so t has a
density that is a binomial mixture of one B-spline with knots half a cell apart. Gauss's rule between the knots, and
between a knot and the density's kink, adds positive numbers only and so keeps relative accuracy everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from discreet.arrays import Integers, Matrix, Vector


PARTS = 200_000  # pairs of a cube and a ball examined at a time


def cube_mass(
    log_density: Callable[[Vector], Vector], j: Matrix, scale: Vector, *, kink: float, slope: float
) -> Vector:
    """P(round(scale * Z) = j) for every vector of integers j; its coordinates are on the last axis.

    `log_density` takes t, falls by at most `slope` a unit, and is smooth on both sides of t = `kink`.
    """
    d = j.shape[-1]
    scale, coins = np.broadcast_arrays(scale, np.count_nonzero(j, axis=-1))
    shape = scale.shape
    half = 0.5 / scale.reshape(-1, 1)
    start = half * (2 * np.abs(j).sum(axis=-1) - coins).reshape(-1, 1)
    kinds, kind = np.unique(coins.ravel(), return_inverse=True)
    mixture = _mixture(kinds, d)
    x, weight = _rule(d, drop=slope * half.max(initial=0.0))

    def mass(u: Matrix, share: Matrix) -> Vector:
        """A weighted sum of the cube's volume times the density at u half cells from its nearest corner."""
        return np.asarray((share * np.exp(log_density(start + u * half) + d * np.log(2 * half))).sum(axis=-1))

    at = np.clip((kink - start) / half, 0, 2 * d)
    split = np.minimum(np.floor(at), 2 * d - 1)
    left = at - split
    y = np.concatenate([left * x, left + (1 - left) * x], axis=-1)
    around = np.einsum("...i,...ki", mixture[kind, split[:, 0].astype(np.int64)], _b_splines(y, d))
    around *= np.concatenate([left * weight, (1 - left) * weight], axis=-1)
    between = mixture @ (_b_splines(x, d) * weight[:, None]).T
    knots = np.repeat(np.arange(2 * d), x.size)
    whole = np.where(knots == split, 0, between.reshape(-1, knots.size)[kind])
    return (mass(split + y, around) + mass(knots + np.tile(x, 2 * d), whole)).reshape(shape)


def ball_mass(j: Matrix, scale: Vector, *, radius: Vector, chance: Vector) -> Vector:
    """P(round(scale * Z) = j), Z uniform on an L1 ball of one of these radii with these chances.

    Radii grow. t of a point of the cube is its least value plus a sum of d uniform variables and some coins, in half
    cells; the distribution function of such a sum is one of splines of the next degree: again nothing cancels.
    """
    from scipy.special import gammaln

    d = j.shape[-1]
    scale, coins = np.broadcast_arrays(scale, np.count_nonzero(j, axis=-1))
    start = (2 * np.abs(j).sum(axis=-1) - coins).ravel()  # in half cells
    log_volume = d * (np.log(2.0) + np.log(radius)) - gammaln(d + 1)
    half, heads = 0.5 / scale.ravel(), coins.ravel()
    density = chance * np.exp(-log_volume)
    whole = np.append(np.cumsum(density[::-1])[::-1], 0.0)  # of balls from this one on
    first, last = (np.searchsorted(radius, half * end) for end in (start, start + d + heads))
    found = whole[last]
    # Balls that hold a part of the cube, one row for each point and each of them.
    many = last - first
    for points in np.array_split(np.arange(many.size), int(many.sum()) // PARTS + 1):
        point = np.repeat(points, many[points])
        ball = first[point] + np.arange(point.size) - np.repeat(np.cumsum(many[points]) - many[points], many[points])
        inside = radius[ball] / half[point] - start[point]
        covered = np.zeros(point.size)
        for toss in range(int(heads[points].max(initial=0)) + 1):
            ways = gammaln(heads[point] + 1) - gammaln(toss + 1) - gammaln(heads[point] - toss + 1)
            covered += np.exp(ways - heads[point] * math.log(2)) * _sum_below(inside - toss, d)
        found += np.bincount(point, weights=covered * density[ball], minlength=many.size)
    return np.asarray(found * np.exp(d * np.log(2 * half))).reshape(scale.shape)


def _sum_below(y: Vector, d: int) -> Vector:
    """P(the sum of d uniform variables on (0, 1) is at most y)."""
    whole = np.clip(np.floor(y), 0, d - 1)
    splines = _b_splines(np.clip(y - whole, 0, 1), d + 1)
    below = np.cumsum(splines, axis=-1)
    inside = np.take_along_axis(below, whole.astype(np.int64)[..., None], axis=-1)[..., 0]
    return np.asarray(np.where(y <= 0, 0.0, np.where(y >= d, 1.0, inside)))


def _mixture(coins: Integers, d: int) -> Vector:
    """The weight of the spline's piece i in half cell n of a cube: the chance that n - i of its coins show 1/2."""
    from scipy.special import gammaln

    heads = np.arange(2 * d)[:, None] - np.arange(d)
    coins = coins[:, None, None]
    ways = gammaln(coins + 1) - gammaln(heads + 1) - gammaln(coins - heads + 1)
    return np.asarray(np.exp(ways - coins * math.log(2)))


def _b_splines(x: Vector, d: int) -> Vector:
    """The density at x, x + 1, ..., x + d - 1 of the sum of d uniform variables on (0, 1); a last axis, 0 <= x <= 1."""
    at = x[..., None] + np.arange(d)
    spline = np.zeros_like(at)
    spline[..., 0] = 1
    for n in range(1, d):
        before = np.roll(spline, 1, axis=-1)  # its last element, which comes first, is still 0
        spline = (at * spline + (n + 1 - at) * before) / n
    return spline


def _rule(d: int, drop: float) -> tuple[Vector, Vector]:
    """Nodes and weights on (0, 1) for splines of degree d - 1 times a function whose logarithm falls by `drop`.

    If that is much, most of the mass is on the left: pieces double in length from there.
    """
    nodes, weights = np.polynomial.legendre.leggauss(d + 16)
    first = (d + 8) / max(drop, d + 8)
    pieces = math.ceil(math.log2(1 / first + 1))
    edges = np.minimum(first * (2.0 ** np.arange(pieces + 1) - 1), 1)
    lengths = np.diff(edges)[:, None]
    return (edges[:-1, None] + lengths * (1 + nodes) / 2).ravel(), (lengths * weights / 2).ravel()
