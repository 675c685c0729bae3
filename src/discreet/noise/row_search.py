"""The search for the rows of `rows`: from rows that were solved when this version was made, and a small repair.

Those are of a linear programme that takes up to a minute; `bench/anchors.py` solves it. Their differences from row 0
are interpolated between two epsilons. Nothing here is believed: `rows.check` computes every inequality from what is
found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.noise import anchors, least, rows
from discreet.noise.kept import BITS, Unsolved
from discreet.noise.steps import on_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.arrays import Integers, Matrix, Vector
    from discreet.noise.rows import RowSteps

SLACK = 2.0**-15
"""The share of epsilon that is kept while solving: rows that are nearly probabilities become them at the end."""

SHARES = (0.05, 0.05, 0.1, 0.8)
"""The weight of the mean error of a row: most of a table's error is in cells where one establishment dominates."""

LEAST_SIZE = 0.25
"""x + noise over x counts as this where it is less: there, how density falls outwards is left open."""

NEARLY = 2.0**-12
"""An inequality of the programme that tightens another by less is left out; the remaining violation is repaired."""

LEAST = 1e-300
"""An unknown of the programme that is smaller is an inexact zero."""

PARTS = (1.0, 0.75, 0.5, 0.25)
"""The parts of the difference from row 0 that are tried, in turn."""

MOST_TRIALS, MOST_SWEEPS = 60, 400

CENTRED = 16
"""How often a row is moved to mean zero at the end; what is left falls about a thousandfold each time."""


class _Frame(NamedTuple):
    """Moments of cells and rings, and the levels that row 0 and the rings have."""

    mass: Vector
    mean: Vector
    first: Vector
    room: float
    beside: float


def _frame(law: RowSteps) -> _Frame:
    tail, edges = least.rings(law.cells, law.epsilon), law.cells.edges
    mass = np.diff(edges)
    mean = mass * (edges[1:] + edges[:-1]) / 2
    mass[[0, -1]], mean[[0, -1]] = tail.mass, [-tail.mean, tail.mean]
    first = rows.levels(law, law.first.weights)[0]
    ring = np.exp(-first[[0, -1]])
    return _Frame(mass, mean, first, 1 - float(ring @ mass[[0, -1]]), float(ring @ mean[[0, -1]]))


def solve(law: RowSteps) -> NDArray[np.object_]:
    """The weights of all rows but the first; not yet checked. If nothing better is found, all rows are row 0."""
    near = anchors.between("rows", law.growth, law.epsilon)
    first = anchors.between("steps", law.growth, law.epsilon, beside="rows")
    if near is not None and first is not None:
        with contextlib.suppress(Unsolved):
            return repaired(law, near, first)
    return np.repeat(law.first.weights, len(rows.POWERS), axis=0)


class _Held(NamedTuple):
    """F[here] <= F[there] + cost between cells of rows 1 and up, and the bounds that row 0 and the rings set."""

    here: Integers
    there: Integers
    cost: Vector
    lower: Matrix
    upper: Matrix


def _held(law: RowSteps, frame: _Frame, epsilon: float, *, shape: Vector | None) -> _Held:
    """The bounds, and of the inequalities those that do not follow from others where levels plus `shape` rise outwards.

    Without a shape, the bounds alone.
    """
    many, every = len(rows.POWERS), len(frame.mass)
    lower, upper = np.full((many, every), -np.inf), np.full((many, every), np.inf)
    nothing = np.empty(0, dtype=np.int64)
    here, there, cost = [nothing], [nothing], [np.empty(0)]
    fixed = np.zeros(every, dtype=np.bool_)
    fixed[[0, -1]] = True
    for i, j, met in rows.moves(law):
        for one, other, k, m, more in (
            (i, j, met.here, met.there, np.log(met.least)),
            (j, i, met.there, met.here, -np.log(met.most)),
        ):
            step = epsilon + more
            bound = fixed[m] | (other == 0)
            if one > 0:
                np.minimum.at(upper[one - 1], k[bound], (frame.first[m] + step)[bound])
            bound = fixed[k] | (one == 0)
            if other > 0:
                np.maximum.at(lower[other - 1], m[bound], (frame.first[k] - step)[bound])
            if one > 0 and other > 0 and shape is not None:
                free = ~(fixed[k] | fixed[m]) & ((k != m) | (one != other))
                k, m, step = k[free], m[free], step[free]
                keep = _binding(shape, k, m, step)
                k, m, step = k[keep], m[keep], step[keep]
                here.append((one - 1) * every + k)
                there.append((other - 1) * every + m)
                cost.append(step)
    return _Held(np.concatenate(here), np.concatenate(there), np.concatenate(cost), lower, upper)


def _size(law: RowSteps) -> Vector:
    """ln of x + noise over x: density times it falls outwards in the laws that are looked for."""
    middle = (law.cells.edges[1:] + law.cells.edges[:-1]) / 2
    return np.asarray(np.log(np.maximum(1 + middle / law.tip, LEAST_SIZE)))


def _binding(size: Vector, k: Integers, m: Integers, cost: Vector) -> NDArray[np.bool_]:
    """Which inequalities do not follow from others, where levels plus `size` rise from the middle outwards."""
    every = len(size)
    table = np.full((every, every), np.inf)
    np.minimum.at(table, (k, m), np.floor((cost + size[m] - size[k]) / NEARLY))
    middle = every // 2
    sides = (np.arange(middle, every - 1), np.arange(middle - 1, 0, -1))
    found = np.zeros(table.shape, dtype=np.bool_)
    for side in sides:
        least_value = np.minimum.accumulate(table[:, side], axis=1)
        first = np.ones(least_value.shape, dtype=np.bool_)
        first[:, 1:] = least_value[:, 1:] < least_value[:, :-1]
        found[:, side] = first & np.isfinite(table[:, side])
    for side in sides:
        outer = side[::-1]
        held = np.where(found, table, np.inf)[outer]
        least_value = np.minimum.accumulate(held, axis=0)
        found[outer[1:]] &= held[1:] < least_value[:-1]
    return np.asarray(found[k, m])


def programme(law: RowSteps) -> NDArray[np.object_]:
    """The rows of the least weighted E|Z| with E Z = 0 in each, of densities that fall outwards.

    First of those that fall times x + noise: that is quicker, and row 0 is not always such a one.
    """
    size = _size(law)
    for shape in (size, np.zeros_like(size)):
        with contextlib.suppress(Unsolved):
            return _programme(law, shape)
    raise Unsolved


def _programme(law: RowSteps, size: Vector) -> NDArray[np.object_]:
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix, vstack

    frame, epsilon = _frame(law), law.epsilon * (1 - SLACK)
    many, every = len(rows.POWERS), len(frame.mass)
    held = _held(law, frame, epsilon, shape=size)
    middle = every // 2
    here, there, cost = [held.here], [held.there], [held.cost]
    for row in range(many):
        for side in (np.arange(middle, every - 1), np.arange(middle - 1, 0, -1)):
            here.append(row * every + side[:-1])
            there.append(row * every + side[1:])
            cost.append(size[side[:-1]] - size[side[1:]])
    one, other, step = np.concatenate(here), np.concatenate(there), np.concatenate(cost)
    centre = np.abs((law.cells.edges[1:] + law.cells.edges[:-1]) / 2)
    scale = np.tile(np.exp(-law.epsilon * centre), many)  # so that all unknowns are of one size
    n, shape = np.arange(len(one)), (len(one), many * every)
    ratio = np.exp(-step) * scale[other] / scale[one]
    kept = coo_matrix((ratio, (n, other)), shape=shape) - coo_matrix((np.ones(len(n)), (n, one)), shape=shape)
    inner = np.ones(every)
    inner[[0, -1]] = 0
    rank, place = np.repeat(np.arange(many), every), np.arange(many * every)
    sides = [
        coo_matrix((np.tile(each * inner, many) * scale, (rank, place)), shape=(many, many * every))
        for each in (frame.mass, frame.mean)
    ]
    low, high = np.exp(-held.upper), np.exp(-held.lower)
    low[:, [0, -1]] = high[:, [0, -1]] = 0  # rings are known
    found = linprog(
        np.concatenate([share * np.abs(frame.mean) for share in SHARES]) * scale,
        A_ub=kept.tocsr(),
        b_ub=np.zeros(len(n)),
        A_eq=vstack(sides).tocsr(),
        b_eq=np.repeat([frame.room, -frame.beside], many),
        bounds=np.column_stack([low.ravel() / scale, high.ravel() / scale]),
        method="highs-ipm",
    )
    if found.x is None:
        raise Unsolved
    with np.errstate(divide="ignore"):
        level = -np.log(np.maximum(found.x * scale, np.maximum(low.ravel(), LEAST))).reshape(many, every)
    return _settled(law, frame, _room(law, frame), level)


def repaired(law: RowSteps, near: anchors.Between, first: anchors.Between) -> NDArray[np.object_]:
    """The difference of anchors on either side from row 0, or a part of it, added to row 0."""
    away = [
        np.array([on_cells(law.cells, row) - on_cells(law.cells, own[0]) for row in each])
        for each, own in ((near.lower, first.lower), (near.upper, first.upper))
    ]
    frame = _frame(law)
    room = _room(law, frame)
    for part in PARTS:
        with contextlib.suppress(Unsolved):
            found = _settled(law, frame, room, frame.first + part * ((1 - near.share) * away[0] + near.share * away[1]))
            error = (found / 2**BITS / frame.mass).astype(np.float64) @ np.abs(frame.mean)
            if error.max() < law.first.mean_abs:  # no cell errs more than with row 0
                return found
    raise Unsolved


def anchor(law: RowSteps, weights: NDArray[np.object_]) -> Matrix:
    """The part of all rows but the first that `anchors.packed` takes; levels are counted from a row's lowest one."""
    level = rows.levels(law, weights)
    level = level - level.min(axis=1, keepdims=True) + anchors.UNIT
    return np.column_stack([np.full(len(level), law.cells.parts * anchors.UNIT), level])


class _Pairs(NamedTuple):
    """Bounds of cells by the levels of others in a row, each with a cost of its own."""

    place: Integers
    start: Integers
    other: Integers
    cost: Vector

    @classmethod
    def of(cls, here: Integers, there: Integers, cost: Vector) -> _Pairs:
        order = np.argsort(here, kind="stable")
        place, start = np.unique(here[order], return_index=True)
        return cls(place, start, there[order], cost[order])

    def best(self, row: Vector, keep: np.ufunc) -> Vector:
        return np.asarray(keep.reduceat(row[self.other] + self.cost, self.start))


class _Runs(NamedTuple):
    """The same by runs of others at one cost: of each run the preferred level is that of two parts which cover it."""

    place: Integers
    power: Integers
    first: Integers
    last: Integers
    cost: float

    @classmethod
    def of(cls, here: Integers, there: Integers, cost: float) -> _Runs:
        order = np.argsort(here, kind="stable")
        place, start = np.unique(here[order], return_index=True)
        first, last = (keep.reduceat(there[order], start) for keep in (np.minimum, np.maximum))
        power = np.frexp(last - first + 1)[1] - 1
        return cls(place, power, first, last - 2**power + 1, cost)

    def best(self, row: Vector, keep: np.ufunc) -> Vector:
        parts = np.tile(row, (int(self.power.max()) + 1, 1))  # of 1, 2, 4, ... cells from each on
        for k, part in enumerate(parts[1:]):
            part[: -(2**k)] = keep(parts[k, : -(2**k)], parts[k, 2**k :])
        return np.asarray(keep(parts[self.power, self.first], parts[self.power, self.last]) + self.cost)


class _Sweep(NamedTuple):
    """All bounds: for each row those that it sets, and the rows that they hold for, counted from it."""

    bounds: Sequence[Sequence[tuple[_Pairs | _Runs, tuple[int, ...]]]]

    @classmethod
    def of(cls, law: RowSteps, epsilon: float, *, down: bool) -> _Sweep:
        """F[here] <= F[there] + cost: `here` is bounded from above, or `there` from below."""
        grown = _inner(rows.grown(law), law)
        forth, back = epsilon + np.log(grown.least), epsilon - np.log(grown.most)
        there, here = (
            (_Pairs.of(grown.there, grown.here, back), _Pairs.of(grown.here, grown.there, forth))
            if down
            else (_Pairs.of(grown.there, grown.here, -forth), _Pairs.of(grown.here, grown.there, -back))
        )
        found: list[list[tuple[_Pairs | _Runs, tuple[int, ...]]]] = []
        before: _Runs | None = None
        for row in range(1, len(rows.POWERS) + 1):
            met = _inner(rows.beside(law, row), law)
            shrunk, moved = (
                _Runs.of(one, other, epsilon if down else -epsilon)
                for one, other in ((met.there, met.here), (met.here, met.there))
            )
            found.append([(here, (0, -1)), (there, (0, 1)), (moved, (0, 1)), (shrunk, (0,))])
            if before is not None:
                found[-1].append((before, (-1,)))
            before = shrunk
        return cls(found)

    def settle(self, level: Matrix, keep: np.ufunc) -> None:
        """Move levels to their bounds until nothing changes."""
        for _ in range(MOST_SWEEPS):
            before = level.copy()
            for source, bounds in enumerate(self.bounds):
                for bound, targets in bounds:
                    best = bound.best(level[source], keep)
                    for target in targets:
                        if 0 <= source + target < len(level):
                            own = level[source + target]
                            own[bound.place] = keep(own[bound.place], best)
            if np.array_equal(before, level):
                return
        raise Unsolved


def _inner(met: rows.Joined, law: RowSteps) -> rows.Joined:
    """Without the rings, whose levels are known."""
    last = len(law.cells.edges) - 2
    free = (met.here > 0) & (met.here < last) & (met.there > 0) & (met.there < last)
    return rows.Joined(met.here[free], met.there[free], met.least[free], met.most[free])


class _Room(NamedTuple):
    """Between which levels rows that keep every inequality lie, and what lowers others until they keep it."""

    lower: Matrix
    upper: Matrix
    down: _Sweep


def _room(law: RowSteps, frame: _Frame) -> _Room:
    kept = law.epsilon * (1 - SLACK / 4)
    held, down = _held(law, frame, kept, shape=None), _Sweep.of(law, kept, down=True)
    lower, upper = held.lower, held.upper
    lower[:, [0, -1]] = upper[:, [0, -1]] = frame.first[[0, -1]]
    _Sweep.of(law, kept, down=False).settle(lower, np.maximum)
    down.settle(upper, np.minimum)
    return _Room(lower, upper, down)


def _settled(law: RowSteps, frame: _Frame, room: _Room, natural: Matrix) -> NDArray[np.object_]:
    """Weights close to these levels that keep every inequality, are probabilities and have the mean zero.

    The levels of a row are lifted, and leant to one side, until the lowest function below them that rises by at most
    epsilon with a move is a probability with mean zero.
    """
    side = np.sign(frame.mean)
    mass, mean = frame.mass.copy(), frame.mean.copy()
    mass[[0, -1]] = mean[[0, -1]] = 0
    height, lean = np.log(np.exp(-natural) @ mass / frame.room), np.zeros(len(natural))
    for _ in range(MOST_TRIALS):
        level = np.minimum(natural + height[:, None] + lean[:, None] * side, room.upper)
        room.down.settle(level, np.minimum)
        level = np.maximum(level, room.lower)
        density = np.exp(-level)
        step = np.log(density @ mass / frame.room)
        off = (density @ mean + frame.beside) / (density @ np.abs(mean))
        if max(np.abs(step).max(), np.abs(off).max()) < SLACK * law.epsilon / 16:
            return _rounded(law, frame, density)
        height += step
        lean += np.clip(off, -0.05, 0.05)
    raise Unsolved


def _rounded(law: RowSteps, frame: _Frame, density: Matrix) -> NDArray[np.object_]:
    """Whole numbers in these proportions beside the weights of row 0's rings, with mean zero."""
    own = law.first.weights[0]
    found = []
    for row in density[:, 1:-1]:
        mean = frame.mean[1:-1]
        for _ in range(CENTRED):
            shares = row * frame.mass[1:-1]
            row = row * (frame.room / shares.sum())
            row = row * (1 - (row @ mean + frame.beside) / (row @ np.abs(mean)) * np.sign(mean))
        shares = row * frame.mass[1:-1] / (row @ frame.mass[1:-1])
        whole = [int(np.ldexp(share, BITS)) for share in (shares * frame.room).tolist()]
        whole[int(np.argmax(shares))] += 2**BITS - own[0] - own[-1] - sum(whole)
        found.append([own[0], *whole, own[-1]])
    return np.array(found, dtype=object)
