"""The law of least mean error for noise in proportion to a scale that neighbours may change: a linear programme.

Z has a constant density on cells of one width, and on two last ones, from where it goes on in rings (`steps`).
Neighbours turn Z = z into z' = (z - u) / w with 1 <= w <= 1 + growth and (w - 1) / growth <= u <= shift w. An
establishment that grows takes at most `shift` of the new scale with it, and the scale grows no more than the count. F =
-ln density keeps epsilon if F(z) <= F(z') + epsilon + ln w and F(z') <= F(z) + epsilon - ln w. Between two cells the
least w is the worst in the first inequality, the largest in the second, so a finite number of inequalities is the
proof; `excess` computes all of them. docs/proofs/ladder.md has it in full.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.noise.kept import Unsolved, damaged, rounded
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.arrays import Integers, Matrix, Vector

SLACK = 2.0**-11
"""The share of epsilon that is kept while solving: a solution that is nearly feasible becomes so."""

CLOSE = 2.0**-30
"""A computed u may be below its least value by this much: scales are doubles."""

ERROR = 2.0**-40
"""More than the rounding of logarithms can do to a computed inequality."""


LEAN = 0.05
"""The difference on one side of the law that is mixed in to move a mean."""

UNBIASED = 2.0**-44
"""What a mean may be off from zero, in units of E|Z|: more than doubles do to the weights of a law that has one."""

INEXACT = 2.0**-20
"""A smaller unknown of the programme is an inexact zero; all are about 1."""


class StepCells(NamedTuple):
    """Where the cells lie: `reach` of width shift / parts on either side, then a ring on either side.

    Attributes
    ----------
    growth, shift : of the scale and of the count, in the units of Z; see the module.
    parts, reach : how finely `shift` is divided, and how many cells there are on one side.
    """

    growth: float
    shift: float
    parts: int
    reach: int

    @property
    def width(self) -> float:
        return self.shift / self.parts

    @property
    def last(self) -> float:
        """Where the rings begin."""
        return self.width * self.reach

    @property
    def edges(self) -> Vector:
        inner = np.arange(-self.reach, self.reach + 1) * self.width
        ring = (1 + self.growth) * self.last + 1
        return np.concatenate([[-ring], inner, [ring]])

    @lru_cache(maxsize=1)  # noqa: B019  solving asks for them, and the check after it; cells are four numbers
    def costs(self) -> Matrix:
        """D[i, k] - epsilon: F of cell i may be above that of cell k by so much more than epsilon; infinite if by any.

        z in [z0, z1] of cell i and z' in [y0, y1] of cell k are neighbours for a w with w (y1 + shift) >= z0 and
        w (y0 + 1/growth) <= z1 + 1/growth.
        """
        start, end = self.edges[:-1], self.edges[1:]
        tip = 1 / self.growth
        low, high = np.ones((len(start), len(start))), np.full((len(start), len(start)), 1 + self.growth)
        meet = np.ones(low.shape, dtype=np.bool_)
        for factor, least in (
            (end[None, :] + self.shift, start[:, None]),
            (-(start[None, :] + tip), -(end[:, None] + tip + CLOSE)),
        ):
            factor, least = np.broadcast_arrays(factor, least)
            with np.errstate(divide="ignore", invalid="ignore"):
                bound = least / factor
            np.copyto(low, np.maximum(low, bound), where=factor > 0)
            np.copyto(high, np.minimum(high, bound), where=factor < 0)
            meet &= (factor != 0) | (least <= CLOSE)
        low, high = low * (1 - ERROR), high * (1 + ERROR)
        meet &= low <= high
        up = np.where(meet, np.log(low), np.inf)
        down = np.where(meet, -np.log(np.where(meet, high, 1)), np.inf)
        found = np.minimum(up, down.T)
        np.fill_diagonal(found, 0.0)
        found.setflags(write=False)
        return np.asarray(found)


class RingMoments(NamedTuple):
    """The mass of all rings of one side and its first moment, where the first ring has the density 1."""

    mass: float
    mean: float


def rings(cells: StepCells, epsilon: float) -> RingMoments:
    """Ring j ends at e_j = (1 + growth) e_(j-1) + 1, e_0 = last; each has e^-(epsilon - b) times the density within."""
    b = math.log1p(cells.growth)
    drop = epsilon - b
    if drop <= 2 * b:
        raise PrivacyError("RingMoments with a mean need epsilon > 3 ln(1 + growth).", about="epsilon")
    width, ratio, w = 1 + cells.growth * cells.last, math.exp(b - drop), 1 + cells.growth
    # Ring j has the width `width` w^(j-1), and with its density the mass `width` ratio^(j-1).
    mass = width / (1 - ratio)
    centres = (cells.last - width / cells.growth) / (1 - ratio) + width / cells.growth * (1 + w) / 2 / (1 - ratio * w)
    return RingMoments(mass, width * centres)


def solve(cells: StepCells, epsilon: float) -> NDArray[np.object_]:
    """The weights of the law with the least E|Z| and E Z = 0; not yet checked."""
    kept = epsilon * (1 - SLACK)
    costs = cells.costs() + kept
    mass, mean = _moments(cells, epsilon)
    density = _programme(cells, costs, kept, mass, mean, unbiased=True)
    density = np.exp(-_lowered(-np.log(density), costs))
    shares = density * mass / (density @ mass)
    return rounded(_centred(shares, mean / mass, most=SLACK * epsilon / 4)[None, :])


def least_mean(cells: StepCells, epsilon: float, *, unbiased: bool) -> float:
    """The least E|Z| itself, of laws with E Z = 0 or of all."""
    mass, mean = _moments(cells, epsilon)
    density = _programme(cells, cells.costs() + epsilon, epsilon, mass, mean, unbiased=unbiased)
    return float(density @ np.abs(mean) / (density @ mass))


def _moments(cells: StepCells, epsilon: float) -> tuple[Vector, Vector]:
    """The mass of every cell and of the rings on either side, and its first moment, where the density is 1."""
    tail = rings(cells, epsilon)
    mass = np.diff(cells.edges)
    mean = mass * (cells.edges[1:] + cells.edges[:-1]) / 2
    mass[[0, -1]], mean[[0, -1]] = tail.mass, [-tail.mean, tail.mean]
    return mass, mean


def _programme(
    cells: StepCells, costs: Matrix, epsilon: float, mass: Vector, mean: Vector, *, unbiased: bool
) -> Vector:
    """Densities of the least E|Z| that keep all inequalities up to the solver's precision."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix, vstack

    middle = (cells.edges[1:] + cells.edges[:-1]) / 2
    scale = np.exp(-epsilon * np.abs(middle) / cells.shift)  # so that all unknowns are of one size
    row, column, cost = _inequalities(costs)
    n = np.arange(len(row))
    ratio = np.exp(-cost) * scale[column] / scale[row]
    shape = (len(row), len(mass))
    least = coo_matrix((ratio, (n, column)), shape=shape) - coo_matrix((np.ones(len(row)), (n, row)), shape=shape)
    sides = [coo_matrix((scale * each)[None, :]) for each in (mass, mean)[: 1 + unbiased]]
    found = linprog(
        np.abs(mean) * scale,
        A_ub=least.tocsr(),
        b_ub=np.zeros(len(row)),
        A_eq=vstack(sides).tocsr(),
        b_eq=[1.0, 0.0][: 1 + unbiased],
        bounds=(0, None),
        method="highs",
    )
    if found.x is None:
        raise Unsolved
    return np.asarray(np.maximum(found.x, INEXACT) * scale)


def repaired(cells: StepCells, epsilon: float, level: Vector) -> NDArray[np.object_]:
    """The weights of a law that keeps epsilon, close to one with these levels; not yet checked.

    Densities that keep epsilon form a cone: a mixture of two of them keeps it, too. So one that leans the other way is
    mixed in until the mean is zero.
    """
    costs = cells.costs() + epsilon * (1 - SLACK / 8)
    mass, mean = _moments(cells, epsilon)
    density = np.exp(-_lowered(level, costs))
    off = density @ mean
    other = np.exp(-_lowered(level + LEAN * np.sign(off * mean), costs))
    share = off / (off - other @ mean) if off else 0.0
    if not 0 <= share <= 1:
        raise Unsolved
    shares = ((1 - share) * density + share * other) * mass
    return rounded((shares / shares.sum())[None, :])


def excess(cells: StepCells, weights: NDArray[np.object_], epsilon: float) -> float:
    """The excess over epsilon of the worst pair of cells, from the weights themselves."""
    mass = np.diff(cells.edges)
    mass[[0, -1]] = rings(cells, epsilon).mass
    level = np.log(mass) - np.array([math.log(weight) for weight in weights[0]])
    return float((level[:, None] - level[None, :] - cells.costs()).max()) - epsilon


def bias(cells: StepCells, weights: NDArray[np.object_], epsilon: float) -> Fraction:
    """The largest |E Z| of a row, in units of its E|Z|; of whole numbers, so that nothing cancels unseen."""
    tail, half = rings(cells, epsilon), Fraction(cells.width) / 2
    ring, odd = Fraction(tail.mean) / Fraction(tail.mass), range(1 - 2 * cells.reach, 2 * cells.reach, 2)
    worst = Fraction(0)
    for left, *inside, right in weights.tolist():
        mean = half * sum(weight * place for weight, place in zip(inside, odd, strict=True)) + ring * (right - left)
        size = half * sum(weight * abs(place) for weight, place in zip(inside, odd, strict=True))
        worst = max(worst, abs(mean) / (size + ring * (right + left)))
    return worst


def check(cells: StepCells, weights: NDArray[np.object_], epsilon: float) -> None:
    """Refuse weights that are no law of these cells, that lose more than epsilon or whose mean is not zero."""
    if weights.shape != (1, 2 * cells.reach + 2) or not all(weight > 0 for weight in weights[0]):
        raise damaged("it has other cells")
    if not excess(cells, weights, epsilon) + ERROR * 2**4 <= 0:
        raise damaged(f"it loses more than {epsilon:.6g}")
    if not bias(cells, weights, epsilon) <= UNBIASED:
        raise damaged("its mean is not zero")


def _inequalities(costs: Matrix) -> tuple[Integers, Integers, Vector]:
    """F_i <= F_k + cost, as i, k and cost: the density falls from the middle; implied inequalities are left out."""
    middle, every = len(costs) // 2, len(costs)
    binding = np.zeros(costs.shape, dtype=np.bool_)
    inner, outer = [], []
    for side in (np.arange(middle, every), np.arange(middle - 1, -1, -1)):
        least = np.minimum.accumulate(costs[:, side], axis=1)
        first = np.ones(least.shape, dtype=np.bool_)
        first[:, 1:] = least[:, 1:] < least[:, :-1]
        binding[:, side] = first & np.isfinite(costs[:, side])
        inner.append(side[:-1])
        outer.append(side[1:])
    np.fill_diagonal(binding, False)
    i, k = np.nonzero(binding)
    falls = np.zeros(every - 2)
    return np.concatenate([*inner, i]), np.concatenate([*outer, k]), np.concatenate([falls, costs[i, k]])


def _lowered(level: Vector, costs: Matrix) -> Vector:
    """The largest levels below these that keep every inequality: shortest paths."""
    level = level.copy()
    while True:
        lower = (level[None, :] + costs).min(axis=1)
        if not (lower < level).any():
            return level
        level = np.minimum(level, lower)


def _centred(shares: Vector, place: Vector, *, most: float) -> Vector:
    """The same shares, with a little more on one side to make their mean zero."""
    side = np.sign(place)
    tilt = (shares @ place) / (shares @ np.abs(place))
    if abs(tilt) > most:
        raise Unsolved
    moved = shares * (1 - tilt * side)
    return np.asarray(moved / moved.sum())
