"""A radial law of rings: constant between edges, falling outward as steeply as two steps allow, at last a power.

The density of z in R^d is exp(-psi(r)), r the norm of z. Between neighbours a radius r becomes at most r/w + 1 or
w (r + 1), 1 <= w <= 1 + growth, while the density at the centre changes by w^d (`coupled`), or by anything from 1 to
(1 + growth)^d. So psi may rise by so much on such a step and no more (docs/proofs/rings.md):

    coupled:      epsilon - d ln w on r -> r/w + 1,           epsilon + d ln w on r -> w (r + 1)
    not coupled:  epsilon - d ln(1 + growth) on r -> r + 1,   epsilon          on r -> (1 + growth) (r + 1)

psi starts with a plateau and a rise in [0, 1); from there on every ring is as thin as all steps to it allow. The law is
that of `RingTable.weights`, whole numbers in units of 2^-BITS: how likely each ring is. It is a mixture of uniform laws
on balls, from which moments and tails follow in closed form, here for the norm |z_1| + ... + |z_d|.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.noise.law import Rounded, positive, require
from discreet.noise.mass import ball_mass, cube_mass
from discreet.noise.source import Choice

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from discreet.arrays import Integers, Matrix, Vector
    from discreet.noise.source import Source

MOST_COORDINATES = 64
BITS = 256
"""The precision of a draw of the ring: probabilities are multiples of 2^-BITS."""

FAR = 40.0
"""The power begins where the law has lost so much of its mass, in logarithms, about."""

THINNEST = 100 * math.log(2)
"""Rings thinner than the thickest one by more, in logarithms, are one with the innermost, or left to the power."""

FARTHEST = 2.0**32
ROWS = 512  # of numbers that meet all balls at a time
TOGETHER = 64  # rings to which the steps are computed at a time

COARSE = 0.02
"""The relative width of rings beyond the body of the law."""


@dataclass(frozen=True, slots=True)
class Rings(Rounded):
    """Rings of 1/steps from the centre on, wider ones further out; `plateau` and `rise` are the shape of psi in [0, 1).

    There psi is 0 up to `plateau`, jumps by 1 - rise of what one step allows, and climbs by the rest.
    """

    d: int
    epsilon: float
    growth: float
    coupled: bool
    steps: int
    plateau: float
    rise: float

    def __post_init__(self) -> None:
        e, g, d = self.epsilon, self.growth, self.d
        exists = 1 <= d <= MOST_COORDINATES and math.isfinite(e + g) and g > 0 and e > d * math.log1p(g)
        # Edges have to be exact numbers, one unit a whole number of rings.
        shaped = 1 <= self.steps <= 2**10 and self.steps & (self.steps - 1) == 0
        shaped = shaped and 0 <= self.plateau < 1 and 0 <= self.rise <= 1
        require(
            exists and shaped and e > self._most_moment(0),
            str(self),
            f"1 <= d <= {MOST_COORDINATES}, growth > 0, epsilon > d ln(1 + growth) (not coupled: of d + 1), "
            "steps a power of two, 0 <= plateau < 1 and 0 <= rise <= 1",
        )

    def _most_moment(self, k: int) -> float:
        """The epsilon above which E|Z|^k is finite."""
        return (k if self.coupled else self.d + k) * math.log1p(self.growth)

    @property
    def dimension(self) -> int:
        return self.d

    stepped: ClassVar[bool] = True

    @property
    def jumps(self) -> Vector:
        """The edges; beyond the last one the density is a power."""
        return table(self).edges[1:]

    @property
    def mean_abs(self) -> float:
        return self._moment(1) / (self.d + 1)

    @property
    def mean_radius(self) -> float:
        """E r, in any norm."""
        return self.mean_abs * self.d

    @property
    def variance(self) -> float:
        return self._moment(2) * 2 / ((self.d + 1) * (self.d + 2))

    def _moment(self, k: int) -> float:
        """E R^k of the radii of balls."""
        return table(self).moment(k)

    def log_density(self, z: ArrayLike) -> Vector:
        found = table(self)
        return np.asarray(found.log_height(self._radius(z)) - self.d * math.log(2) + math.lgamma(self.d + 1))

    def beyond(self, x: Vector) -> Vector:
        """Of a ball of radius R, P(|Z_1| > x) = (1 - x/R)^d."""
        radius, chance = table(self).balls
        return _mixed(x, lambda x: np.maximum(1 - x / radius, 0.0) ** self.d @ chance)

    def excess(self, x: Vector) -> Vector:
        radius, chance = table(self).balls
        return _mixed(x, lambda x: np.maximum(1 - x / radius, 0.0) ** (self.d + 1) @ (chance * radius) / (self.d + 1))

    def radius_survival(self, r: ArrayLike) -> Vector:
        """P(norm > r): of every larger ball of radius R the share 1 - (r/R)^d."""
        radius, chance = table(self).balls
        r = np.asarray(r, dtype=np.float64)
        place = np.searchsorted(radius, r, side="right")
        larger = np.append(np.cumsum(chance[::-1])[::-1], 0.0)[place]
        # Sums are taken about the next larger ball, so that no power overflows.
        inner = np.append(_suffixes(chance, np.log(radius), self.d), 0.0)[place]
        share = (r / np.append(radius, np.inf)[place]) ** self.d
        return np.asarray(np.maximum(larger - share * inner, 0.0))

    @property
    def radius_range(self) -> tuple[float, float]:
        """Radii between which nearly all of the law lies."""
        radius, chance = table(self).balls
        beyond = np.cumsum(chance[::-1])[::-1]
        return float(radius[0]) * 2.0**-20, float(radius[min(int(np.searchsorted(-beyond, -1e-20)), len(radius) - 1)])

    def probability(self, j: ArrayLike, scale: ArrayLike) -> Vector:
        """Of the norm |z_1| + ... + |z_d|."""
        found, vectors, scale = table(self), self._vectors(j), positive(scale)
        radius, chance = found.inner_balls
        end, constant = found.edges[-1], math.lgamma(self.d + 1) - self.d * math.log(2)

        def power(t: Vector) -> Vector:
            with np.errstate(divide="ignore"):
                return np.where(t < end, -np.inf, constant + found.log_height(np.maximum(t, end)))

        inside = ball_mass(vectors, scale, radius=radius, chance=chance)
        return inside + cube_mass(power, vectors, scale, kink=end, slope=found.power / end)

    def _radius(self, z: ArrayLike) -> Vector:
        z = np.asarray(z, dtype=np.float64)
        return np.abs(z) if self.d == 1 else np.asarray(np.abs(self._vectors(z)).sum(axis=-1))

    def _vectors(self, z: ArrayLike) -> Vector:
        z = np.asarray(z, dtype=np.float64)
        if self.d == 1 and (z.ndim == 0 or z.shape[-1] != 1):
            return z[..., None]
        require(
            z.ndim > 0 and z.shape[-1] == self.d,
            f"A point of shape {z.shape} for {self}",
            f"a last axis of length {self.d}",
        )
        return z


@dataclass(frozen=True, slots=True, eq=False)
class RingTable:
    """What a law of rings is, in numbers.

    Attributes
    ----------
    edges : of the rings, from 0 on; ring j lies between edges j and j + 1, and the power beyond the last.
    weights : the probability of each ring and, last, of what lies beyond, in units of 2^-BITS; they add up to 2^BITS.
    power : beyond the last edge T the density is proportional to (r/T)^-power.
    """

    d: int
    edges: Vector
    weights: tuple[int, ...]
    power: float

    def log_height(self, r: Vector) -> Vector:
        """The logarithm of the density at radius r, in units of the volume of the unit ball."""
        heights = self.heights
        ring = np.minimum(np.searchsorted(self.edges, r, side="right") - 1, len(heights) - 1)
        far = np.log(np.maximum(r / self.edges[-1], 1.0))
        return np.asarray(heights[ring] - self.power * far)

    @property
    def heights(self) -> Vector:
        """Logarithms of densities, one a ring; the last ring's is that where the power begins."""
        return _heights(self)

    @property
    def balls(self) -> tuple[Vector, Vector]:
        """The law of r as that of a mixture of balls: their radii and probabilities."""
        return _balls(self)

    @property
    def inner_balls(self) -> tuple[Vector, Vector]:
        """The balls of the rings alone; their chances are 1 less that of what lies beyond the last edge."""
        return _inner_balls(self)

    def moment(self, k: int) -> float:
        """E R^k of the radii of balls."""
        radius, chance = self.balls
        return float(chance @ radius**k) if self.power > self.d + k else math.inf

    def draw(self, n: int, source: Source) -> Integers:
        """Rings of n draws, exactly as likely as their weights say."""
        return _choice(self).draw(np.zeros(n, dtype=np.int64), source)


def _mixed(x: ArrayLike, term: Callable[[Matrix], Vector]) -> Vector:
    """A function of a column of numbers, some at a time."""
    column = np.asarray(x, dtype=np.float64).reshape(-1, 1)
    parts = [term(column[start : start + ROWS]) for start in range(0, len(column), ROWS)]
    return np.concatenate([*parts, np.empty(0)]).reshape(np.shape(x))


def _suffixes(chance: Vector, log_radius: Vector, d: int) -> Vector:
    """sum over j >= i of chance_j (R_i / R_j)^d, for every i."""
    shrink = np.exp(-d * np.diff(log_radius))
    found = chance.copy()
    for i in range(len(found) - 2, -1, -1):
        found[i] += shrink[i] * found[i + 1]
    return found


@lru_cache(maxsize=64)
def table(law: Rings) -> RingTable:
    """The table of a law: the steepest descent that its steps allow."""
    return tables([law])[0]


def tables(laws: Sequence[Rings]) -> list[RingTable]:
    """The tables of laws that differ in the shape of their first unit alone."""
    edges = _edges(laws[0])
    return [_tabled(law, edges, psi) for law, psi in zip(laws, descents(laws, edges), strict=True)]


def _tabled(law: Rings, edges: Vector, psi: Vector) -> RingTable:
    """Weights of rings that descend by psi; thin ones at either end are left out first."""
    d, b = law.d, math.log1p(law.growth)
    reached = _log_volumes(edges, d) - psi
    thick = np.flatnonzero(reached > reached.max() - THINNEST)
    if thick[0] > 0 or thick[-1] < len(psi) - 2:
        edges = np.append(0.0, edges[thick[0] + 1 : thick[-1] + 2])
        edges = _ended(law, edges) if thick[-1] < len(psi) - 1 else edges
        psi = descent(law, edges)
    last = math.log1p(1 / edges[-1])
    if law.coupled:
        power = min(law.epsilon / last, (law.epsilon + d * b) / (b + last))
    else:
        power = min((law.epsilon - d * b) / last, law.epsilon / (b + last))
    log_volume = _log_volumes(edges, d)
    beyond = d * math.log(edges[-1]) + math.log(d / (power - d))
    log_mass = np.append(log_volume, beyond) - np.append(psi, psi[-1])
    share = np.exp(log_mass - log_mass.max())
    share /= share.sum()
    weights = [int(math.ldexp(x, 1000)) >> (1000 - BITS) for x in share.tolist()]
    heaviest = int(np.argmax(share))
    weights[heaviest] += 2**BITS - sum(weights)
    return RingTable(d, edges, tuple(weights), power)


def descent(law: Rings, edges: Vector) -> Vector:
    """psi of every ring of a law."""
    return np.asarray(descents([law], edges)[0])


def descents(laws: Sequence[Rings], edges: Vector) -> Matrix:
    """psi of every ring, a row for each law: in [0, 1) as its shape says, and nowhere more than the steps allow.

    The laws differ in their shapes alone.
    """
    d, epsilon, w1 = laws[0].d, laws[0].epsilon, 1 + laws[0].growth
    plateau, rise = (np.array([getattr(law, name) for law in laws]) for name in ("plateau", "rise"))
    lower, upper = edges[:-1], edges[1:]
    gain = epsilon - d * math.log(w1)
    psi = np.zeros((len(laws), len(lower)))
    reached = np.searchsorted(w1 * (upper + 1), lower, side="right")  # rings before cannot reach this one
    near = np.maximum(np.searchsorted(upper + 1, lower, side="right"), reached)
    costs, first = np.empty((0, 0)), 0
    for j in range(1, len(lower)):
        if not laws[0].coupled:
            allowed = psi[:, reached[j]] + epsilon
            allowed = np.minimum(allowed, psi[:, near[j]] + gain) if near[j] < j else allowed
        else:
            row = (j - 1) % TOGETHER
            if row == 0:
                first = reached[j]
                costs = _costs(lower[j : j + TOGETHER], upper[first : j + TOGETHER - 1], d, epsilon, w1)
            allowed = (psi[:, reached[j] : j] + costs[row, reached[j] - first : j - first]).min(axis=1)
        if lower[j] < 1:
            climbed = (lower[j] - plateau) / (1 - plateau)
            allowed = np.minimum(allowed, np.where(climbed < 0, 0.0, gain * (1 - rise + rise * climbed)))
        psi[:, j] = np.maximum(psi[:, j - 1], allowed)
    return psi


def _costs(at: Vector, upper: Vector, d: int, epsilon: float, w1: float) -> Matrix:
    """The allowed rise of psi to a ring that begins at `at`, a row for each, from one that ends at `upper`."""
    begins, ends = at[:, None], upper[None, :]
    with np.errstate(divide="ignore"):
        shrunk = np.where(begins > 1, np.minimum(ends / (begins - 1), w1), w1)
    inward = np.where(shrunk > 1, epsilon - d * np.log(np.maximum(shrunk, 1.0)), np.inf)
    outward = epsilon + d * np.log(np.maximum(begins / (ends + 1), 1.0))
    return np.asarray(np.minimum(inward, outward))


def _edges(law: Rings) -> Vector:
    """Edges that are multiples of 1/steps, exactly: every one in the body of the law, fewer beyond."""
    d, b, m = law.d, math.log1p(law.growth), law.steps
    typical = typical_radius(d, law.epsilon, law.growth, law.coupled)
    body = 4 * typical + 4
    edges = list(range(math.ceil(m * body) + 1))
    tail = law.epsilon / b if not law.coupled else d + law.epsilon / b
    end = m * min(max(body, 20.0, 4 / b) * math.exp(FAR / max(tail - d, 1.0)), FARTHEST)
    while edges[-1] < end:
        edges.append(edges[-1] + max(1, math.floor(edges[-1] * min(COARSE, b / 4))))
    return _ended(law, np.array(edges, dtype=np.float64) / m)


def typical_radius(d: int, epsilon: float, growth: float, coupled: bool) -> float:
    """About where the density of r is largest: where the slope of psi is d / r."""
    volume = d * math.log1p(growth)
    if not coupled:
        return d / (epsilon - volume)
    return d / min(epsilon, max(epsilon - volume, (epsilon + volume) / (1 + growth * (1 + d / epsilon))))


def _ended(law: Rings, edges: Vector) -> Vector:
    """Edges with a last ring that is so wide that no other one reaches the power in one step."""
    return np.append(edges, (math.ceil((edges[-1] + 1) * (1 + law.growth) * law.steps) + 1) / law.steps)


def _log_volumes(edges: Vector, d: int) -> Vector:
    """The logarithm of e_(j+1)^d - e_j^d."""
    with np.errstate(divide="ignore"):
        inner = d * (np.log(edges[:-1]) - np.log(edges[1:]))
    return np.asarray(d * np.log(edges[1:]) + np.log(-np.expm1(inner)))


@lru_cache(maxsize=16)
def _heights(found: RingTable) -> Vector:
    weight = np.array([math.log(w) if w else -math.inf for w in found.weights[:-1]]) - BITS * math.log(2)
    return np.asarray(weight - _log_volumes(found.edges, found.d))


@lru_cache(maxsize=16)
def _inner_balls(found: RingTable) -> tuple[Vector, Vector]:
    """Each ring's density less that of the next one is a ball's."""
    heights = np.append(found.heights, -np.inf)
    with np.errstate(divide="ignore"):
        drop = heights[:-1] + np.log(np.maximum(-np.expm1(np.diff(heights)), 0.0))
    chance = np.exp(drop + found.d * np.log(found.edges[1:]))
    return found.edges[1:][chance > 0], chance[chance > 0]


@lru_cache(maxsize=16)
def _balls(found: RingTable) -> tuple[Vector, Vector]:
    """The power is one of balls of Pareto's radii, which are rounded up to a grid."""
    d, (radius, chance) = found.d, found.inner_balls
    grid = np.exp(np.linspace(0, 40 / (found.power - d), 401))
    survival = grid ** (d - found.power)
    # The last ball of the rings is the part of these that lies within the last edge.
    pareto = np.append(-np.diff(survival), survival[-1]) * chance[-1] * found.power / (found.power - d)
    radius = np.concatenate([radius[:-1], found.edges[-1] * np.append(grid[1:], grid[-1])])
    chance = np.concatenate([chance[:-1], pareto])
    return radius, chance / chance.sum()


@lru_cache(maxsize=16)
def _choice(found: RingTable) -> Choice:
    return Choice(np.array([found.weights], dtype=object), bits=BITS)
