"""The least mean error that any noise can have under a definition: linear programmes, and floors in closed form.

A programme gives the optimum of its class of laws: all laws of one count on integers, laws in proportion to the largest
establishment, or laws that follow a radius. A floor is below every law. Mechanisms are compared with both; none is
calibrated here. Notation: docs/proofs/ladder.md and docs/proofs/rings.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.noise.kept import Unsolved
from discreet.noise.least import StepCells, least_mean
from discreet.noise.rings import Rings, descent, table
from discreet.noise.steps import DEPTH
from discreet.tables.mechanisms.joint_rings import shaped
from discreet.tables.optimal.ladder import growth, moves, plateau_errors

if TYPE_CHECKING:
    from discreet.arrays import Integers, Matrix, Vector

SEEN = 1e-10
"""A ring beyond which a law has less probability adds nothing to its mean."""

RATIOS = 9
"""Changes of scale between none and the largest at which a radial law is held."""


def floor(size: int, alpha: Fraction, epsilon: float) -> float:
    """A bound from below for one count, at a largest establishment of this size, whatever the law.

    Another establishment may grow to this size by `step` workers and leave the largest as it is. So the law of this
    size alone bears a shift of `step` within epsilon, and the best such law is a staircase (Geng and Viswanath 2016).
    """
    step = max((growth(y, alpha) for y in range(size) if y + growth(y, alpha) <= size), default=1)
    return float(plateau_errors(step, epsilon).min())


def far_floor(alpha: float, epsilon: float) -> float:
    """The same for a large establishment, in units of alpha times its size: a shift of alpha x / (1 + alpha)."""
    return math.exp(epsilon / 2) / math.expm1(epsilon) / (1 + alpha)


def one_count(alpha: Fraction, epsilon: float, *, most: int, reach: int, unbiased: bool) -> Vector:
    """Mean errors of the best integer noise of one count, for largest establishments of 1 to `most` workers."""
    found = best_laws(alpha, epsilon, most=most, reach=reach, bias=0.0 if unbiased else math.inf)
    return np.asarray(found @ np.abs(np.arange(-reach, reach + 1)))


def best_laws(alpha: Fraction, epsilon: float, *, most: int, reach: int, bias: float) -> Matrix:
    """Probabilities of -reach to reach, a row for each size, of means of at most `bias` times the size's floor.

    All moves between these sizes are constraints, larger sizes are free, and noise beyond `reach` is left out: close to
    the end the values are too low. The sum over sizes is minimised, each over its floor.
    """
    k = np.arange(-reach, reach + 1)
    here, there = _pairs(alpha, most, reach)
    floors = np.array([floor(x, alpha, epsilon) for x in range(1, most + 1)])
    far = np.tile(np.abs(k), most).astype(np.float64)
    row = np.repeat(np.arange(most), len(k))
    mean = (row, np.tile(k, most).astype(np.float64), 0.0)
    found = minimised(
        np.repeat(1 / floors, len(k)) * far,
        here,
        there,
        np.full(len(here), epsilon),
        [(row, np.ones(len(far)), 1.0)] + [mean] * (bias == 0),
        np.ones(len(far)),
        within=(row, mean[1], bias * floors) if 0 < bias < math.inf else None,
    )
    return found.reshape(most, -1)


def alone(alpha: Fraction, epsilon: float, *, reach: int, weight: Vector, unbiased: bool = True) -> float:
    """The least sum of mean errors, each times its weight, of noise that may follow all of a cell.

    Sizes are 1 to as many as there are weights. Any noise, with the other establishments of a cell given, is a law for
    every size of one of them. The growths of that one are the constraints here, and no other move is.
    """
    most, k = len(weight), np.arange(-reach, reach + 1)
    here, there = _pairs(alpha, most, reach, alone=True)
    far = np.tile(np.abs(k), most).astype(np.float64)
    row = np.repeat(np.arange(most), len(k))
    sides = [(row, np.ones(len(far)), 1.0)] + [(row, np.tile(k, most).astype(np.float64), 0.0)] * unbiased
    cost = np.repeat(weight / weight.mean(), len(k)) * far
    found = minimised(cost, here, there, np.full(len(here), epsilon), sides, np.ones(len(far)), method="highs-ipm")
    return float(np.repeat(weight, len(k)) * far @ found)


def in_proportion(alpha: float, epsilon: float, *, parts: int, unbiased: bool) -> float:
    """The least E|noise| over alpha x of noise in proportion to a large x.

    Laws that are constant on cells of 1/parts and of half that are solved for, and the limit is extrapolated from the
    two: the error of a grid is proportional to its width.
    """
    coarse, fine = (
        least_mean(
            StepCells(alpha, 1 / (1 + alpha), each, round(each * (DEPTH / epsilon + 2))), epsilon, unbiased=unbiased
        )
        for each in (parts, 2 * parts)
    )
    return 2 * fine - coarse


def radial(d: int, epsilon: float, alpha: float, *, strong: bool) -> float:
    """E|noise| of one of d counts over its scale, for the best law that follows a radius: docs/proofs/rings.md.

    Under the weak definition that radius is of the norm of `weak-joint`, and the number is E r / d.
    """
    law = shaped(d, epsilon, alpha, strong)
    return _radius(law) / d


def _radius(law: Rings) -> float:
    """The least mean radius of a density that never rises and keeps the conditions on the law's rings."""
    found, d = table(law), law.d
    n = int(np.searchsorted(-law.radius_survival(found.edges), -SEEN))
    edges, w1 = found.edges[: n + 1], 1 + law.growth
    lower, upper = edges[:-1], edges[1:]
    start = descent(law, edges)
    inner, outer, gain = [np.arange(1, n)], [np.arange(n - 1)], [np.zeros(n - 1)]  # the density falls
    for w in np.linspace(1, w1, RATIOS):
        volume = d * math.log(w)
        reached = np.searchsorted(lower, w * (upper + 1), side="left") - 1
        near = np.searchsorted(lower, upper / w + 1 if law.coupled else upper + 1, side="left") - 1
        loss = law.epsilon - (volume if law.coupled else d * math.log(w1))
        for place, allowed in ((reached, law.epsilon + volume * law.coupled), (near, loss)):
            place = np.minimum(place, n - 1)
            further = place > np.arange(n)
            inner.append(np.flatnonzero(further))
            outer.append(place[further])
            gain.append(np.full(int(further.sum()), allowed))
    mass, first = np.diff(edges**d), np.diff(edges ** (d + 1)) * d / (d + 1)
    scale = np.exp(-start)
    size = float((scale * mass).sum())
    density = minimised(
        first / size,
        np.concatenate(inner),
        np.concatenate(outer),
        np.concatenate(gain),
        [(np.zeros(n, dtype=np.int64), mass / size, 1.0)],
        scale,
    )
    return float(density @ first / size)


def _pairs(alpha: Fraction, most: int, reach: int, *, alone: bool = False) -> tuple[Integers, Integers]:
    """Both ways of every move, or of those of the largest itself: places of (x, k) and of its neighbour, by rows."""
    width = 2 * reach + 1
    here, there = [], []
    for rise, shift, least in moves(alpha, most + 1):
        if alone and rise < shift:
            continue
        x = np.arange(least, most + 1 - rise)[:, None]
        k = np.arange(shift, width)[None, :]
        here.append(((x - 1) * width + k).ravel())
        there.append(((x - 1 + rise) * width + k - shift).ravel())
    one, other = np.concatenate(here), np.concatenate(there)
    return np.concatenate([one, other]), np.concatenate([other, one])


def minimised(
    cost: Vector,
    here: Integers,
    there: Integers,
    gain: Vector,
    sides: list[tuple[Integers, Vector, float]],
    scale: Vector,
    *,
    method: str = "highs",
    within: tuple[Integers, Vector, Vector] | None = None,
) -> Matrix:
    """p >= 0 of the least cost with p[here] <= e^gain p[there] and sums by row as `sides` say; others `within`."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix, vstack

    n, every = len(here), np.arange(len(here))
    ratio = np.exp(gain) * scale[there] / scale[here]
    keep = coo_matrix((np.ones(n), (every, here)), shape=(n, len(cost))) - coo_matrix(
        (ratio, (every, there)), shape=(n, len(cost))
    )
    column = np.arange(len(cost))
    equal = [coo_matrix((value * scale, (row, column))) for row, value, _ in sides]
    total = np.concatenate([np.full(side.shape[0], value) for side, (_, _, value) in zip(equal, sides, strict=True)])
    bounds, most = [keep], [np.zeros(n)]
    if within is not None:
        row, value, bound = within
        part = coo_matrix((value * scale, (row, column)))
        bounds, most = [*bounds, part, -part], [*most, bound, bound]
    done = linprog(
        cost * scale,
        A_ub=vstack(bounds).tocsr(),
        b_ub=np.concatenate(most),
        A_eq=vstack(equal).tocsr(),
        b_eq=total,
        method=method,
    )
    if done.x is None:
        raise Unsolved
    return np.asarray(done.x * scale)
