"""The least error of noise that depends on the two largest establishments of a cell: a linear programme.

The mechanism `two-sizes` comes close to it; here are cells in proportion to x + noise, which growths carry into cells.
If one establishment dominates, the count falls mostly because that one shrinks, and then the scale may fall with it.
Noise that depends on the largest alone must allow for another of the same size. The state is x, the largest, and t = x2
/ x, x2 the second largest. RatioRows are intervals of t, cells are intervals of z = noise / (alpha x), and the density
is constant on each. docs/explanation/limits.md derives the moves. Every pair of cells that a move can join is a
constraint. So a solution is a law that keeps epsilon on these cells, for sizes at which workers need not be counted
singly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.noise.kept import Unsolved
from discreet.noise.least import StepCells, rings
from discreet.noise.steps import DEPTH
from discreet.tables.optimal.ladder import growth
from discreet.tables.optimal.limits import floor, minimised

if TYPE_CHECKING:
    from discreet.arrays import Integers, Matrix, Vector

CLOSE = 2.0**-30
"""Cells that a move joins by less than this only touch."""

WIDER = 2.0**-20
"""So much more than a growth is a row: a growth never passes a whole one, however ratios are rounded."""

LEAST = 0.5
"""Below this ratio of the two sizes the law is nearly that of a lone establishment."""

SHARE = 0.02
"""The weight of every row beside its share of the data: no row is given up."""


class Ratios(NamedTuple):
    """The least and the largest growth of the scale for one move between two cells; NaN where no move joins them."""

    least: Matrix
    most: Matrix


@dataclass(frozen=True)
class RatioRows:
    """Where rows and cells lie.

    Attributes
    ----------
    alpha, epsilon : the promise.
    parts : how many cells a growth by 1 + alpha has.
    """

    alpha: float
    epsilon: float
    parts: int

    @cached_property
    def ratios(self) -> Vector:
        """The ends of the rows, from t = 1 down: each is a little more than a growth; ranks change in the first."""
        growths = math.ceil(math.log(1 / LEAST) / math.log1p(self.alpha))
        return np.concatenate([((1 + self.alpha) * (1 + WIDER)) ** -np.arange(growths + 1.0), [0.0]])

    @property
    def steps(self) -> StepCells:
        """Cells of one width that end where these do: beyond are the rings of `least`."""
        return StepCells(self.alpha, 1 / (1 + self.alpha), 1, round(DEPTH / self.epsilon + 2))

    @cached_property
    def edges(self) -> Vector:
        """In proportion to x + noise, as growths are; of one width far below zero."""
        a, last, low = self.alpha, self.steps.last, self.ratios[-2] / (1 + self.alpha)
        up = ((1 + a) ** (np.arange(1, 10**4) / self.parts) - 1) / a
        near = np.arange(math.ceil(-math.log(low) / math.log1p(a) * self.parts) + 1)
        down = ((1 + a) ** (-near / self.parts) - 1) / a
        further = np.arange(down[-1] - (down[-2] - down[-1]), -last, down[-1] - down[-2])
        inner = np.concatenate([further[::-1], down[::-1], up])
        ring = (1 + a) * last + 1
        return np.concatenate([[-ring, -last], inner[np.abs(inner) < last * (1 - CLOSE)], [last, ring]])

    @property
    def middle(self) -> int:
        """The first cell above zero."""
        return int(np.searchsorted(self.edges, 0.0))

    def row(self, largest: Vector | Integers, second: Vector | Integers) -> Integers:
        """The row of each cell."""
        return np.asarray(
            np.searchsorted(-self.ratios[1:-1], -np.asarray(second) / np.asarray(largest), side="right"),
            dtype=np.int64,
        )

    def moves(self, i: int, j: int) -> Iterator[Ratios]:
        """The effect of a growing establishment on z in row i and z' in row j; z on the first axis."""
        a, t = self.alpha, self.ratios
        z0, z1 = self.edges[:-1, None], self.edges[1:, None]
        y0, y1 = self.edges[None, :-1], self.edges[None, 1:]
        # The largest grows: z + 1/alpha = w (z' + 1/alpha), and t falls by w.
        least, most = max(1.0, t[i + 1] / t[j]), 1 + a
        if t[j + 1] > 0:
            most = min(most, t[i] / t[j + 1])
        if j >= i and least <= most:
            yield _between(y1 + 1 / a, z0 + 1 / a, y0 + 1 / a, z1 + 1 / a, least, most)
        # Another grows to at most the largest: t rises to t', and the count by t' - t to alpha t' / (1 + alpha).
        if j <= i and t[j + 1] < (1 + a) * t[i] * (1 - CLOSE):
            low, high = max(0.0, t[j + 1] - t[i]) / a, t[j] / (1 + a)
            joined = (z0 < y1 + high - CLOSE) & (z1 > y0 + low + CLOSE)
            yield Ratios(np.where(joined, 1.0, np.nan), np.where(joined, 1.0, np.nan))
        # Another becomes the largest, with w times its size: only from the first row, and into it.
        if i == j == 0:
            yield _between(y1 + 1 / (1 + a), z0, y0 + 1 / a, z1 + 1 / a, 1.0, 1 + a)

    def costs(self) -> dict[tuple[int, int], Matrix]:
        """-ln density of cell k in row i may be above that of cell l in row j by epsilon + costs[i, j][k, l]."""
        found: dict[tuple[int, int], Matrix] = {}
        for i in range(len(self.ratios) - 1):
            for j in range(max(0, i - 1), min(len(self.ratios) - 1, i + 2)):
                for w in self.moves(i, j):
                    up = np.where(np.isnan(w.least), np.inf, np.log(w.least))
                    down = np.where(np.isnan(w.most), np.inf, -np.log(w.most)).T
                    found[i, j] = np.minimum(found.get((i, j), np.inf), up)
                    found[j, i] = np.minimum(found.get((j, i), np.inf), down)
        return found


def _between(p: Matrix, q: Matrix, r: Matrix, v: Matrix, least: float, most: float) -> Ratios:
    """The least and the largest w from `least` to `most` with w p > q and w r < v."""
    p, q, r, v = np.broadcast_arrays(p, q + CLOSE, r, v - CLOSE)
    low, high = np.full(p.shape, least), np.full(p.shape, most)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(p > 0, np.maximum(low, q / p), low)
        high = np.where(p < 0, np.minimum(high, q / p), high)
        high = np.where(r > 0, np.minimum(high, v / r), high)
        low = np.where(r < 0, np.maximum(low, v / r), low)
    joined = (low <= high) & ~((p == 0) & (q > 0)) & ~((r == 0) & (v < 0))
    return Ratios(np.where(joined, low, np.nan), np.where(joined, high, np.nan))


class TwoSizes(NamedTuple):
    """A law by rows: densities of z on cells, those of the rings at both ends, and E|z| of each row."""

    rows: RatioRows
    density: Matrix
    errors: Vector

    def log_density(self, row: int, z: Vector) -> Vector:
        """The logarithm of the density at z, of one row."""
        rows, size = self.rows, np.abs(z)
        last, a = rows.steps.last, rows.alpha
        cell = np.clip(np.searchsorted(rows.edges, z) - 1, 0, self.density.shape[1] - 1)
        # Rings end at (1 + alpha)^j (last + 1/alpha) - 1/alpha.
        ring = np.floor(np.log(np.maximum((size + 1 / a) / (last + 1 / a), 1)) / math.log1p(a))
        return np.asarray(np.log(self.density[row, cell]) - ring * (rows.epsilon - math.log1p(a)))


def two_sizes(rows: RatioRows, *, weights: Vector | None = None, unbiased: bool = True) -> TwoSizes:
    """The law that has the least weighted E|z|, with mean zero in every row if it has to be `unbiased`."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix, vstack

    many, every = len(rows.ratios) - 1, len(rows.edges) - 1
    weight = np.full(many, 1 / many) if weights is None else np.asarray(weights) / np.sum(weights) + SHARE
    mass, mean = _moments(rows)
    place, scale = _places(many, every), np.tile(_scale(rows), many)
    scale = scale[np.unique(place, return_index=True)[1]]
    here, there, gain = _inequalities(rows, place)
    unknowns, n = len(scale), np.arange(len(here))
    shape = (len(here), unknowns)
    held = coo_matrix((np.exp(-gain) * scale[there] / scale[here], (n, there)), shape=shape)
    held = held - coo_matrix((np.ones(len(here)), (n, here)), shape=shape)
    row = np.repeat(np.arange(many), every)
    sides = [
        coo_matrix((np.tile(each, many) * scale[place.ravel()], (row, place.ravel())), shape=(many, unknowns))
        for each in (mass, mean)[: 1 + unbiased]
    ]
    cost = np.bincount(place.ravel(), weights=(weight[:, None] * np.abs(mean)).ravel(), minlength=unknowns) * scale
    found = linprog(
        cost,
        A_ub=held.tocsr(),
        b_ub=np.zeros(len(here)),
        A_eq=vstack(sides).tocsr(),
        b_eq=np.repeat([1.0, 0.0][: 1 + unbiased], many),
        method="highs-ipm",
    )
    if found.x is None:
        raise Unsolved
    density = (np.maximum(found.x, 0.0) * scale)[place]
    return TwoSizes(rows, density, density @ np.abs(mean) / (density @ mass))


def on_integers(alpha: Fraction, epsilon: float, *, most: int, reach: int) -> Matrix:
    """Mean errors of the best integer noise with mean zero, x2 = 0..most a column, x = 1..most a row; NaN if x2 > x.

    As `limits.one_count`, whose law has one row for all x2: larger sizes are free, and close to the end the values are
    too low.
    """
    states = [(x, second) for x in range(1, most + 1) for second in range(x + 1)]
    place = {state: i for i, state in enumerate(states)}
    width, k = 2 * reach + 1, np.arange(-reach, reach + 1)
    here, there = [], []
    for before, after, shift in _integer_moves(alpha, states):
        if after in place:
            noise = np.arange(shift, width)
            here.append(place[before] * width + noise)
            there.append(place[after] * width + noise - shift)
    one, other = np.concatenate(here), np.concatenate(there)
    row, far = np.repeat(np.arange(len(states)), width), np.tile(np.abs(k), len(states)).astype(np.float64)
    weight = np.repeat([1 / floor(x, alpha, epsilon) for x, _ in states], width)
    sides = [(row, np.ones(len(far)), 1.0), (row, np.tile(k, len(states)).astype(np.float64), 0.0)]
    found = minimised(
        weight * far,
        np.concatenate([one, other]),
        np.concatenate([other, one]),
        np.full(2 * len(one), epsilon),
        sides,
        np.ones(len(far)),
    )
    errors = np.full((most, most + 1), np.nan)
    x, second = np.array(states).T
    errors[x - 1, second] = (found * far).reshape(len(states), -1).sum(axis=1)
    return errors


def _integer_moves(
    alpha: Fraction, states: list[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], tuple[int, int], int]]:
    """States before and after an establishment grows, and by how many workers."""
    for x, second in states:
        for shift in range(1, growth(x, alpha) + 1):
            yield (x, second), (x + shift, second), shift
        found = {(max(y + g, second), g) for y in range(second + 1) for g in range(1, growth(y, alpha) + 1)}
        for grown, shift in sorted(found):
            yield (x, second), (max(x, grown), min(x, grown)), shift


def _moments(rows: RatioRows) -> tuple[Vector, Vector]:
    """The mass and the first moment of every cell, and of all rings on either side, where the density is 1."""
    tail, edges = rings(rows.steps, rows.epsilon), rows.edges
    mass = np.diff(edges)
    mean = mass * (edges[1:] + edges[:-1]) / 2
    mass[[0, -1]], mean[[0, -1]] = tail.mass, [-tail.mean, tail.mean]
    return mass, mean


def _places(many: int, every: int) -> Integers:
    """The unknown of every cell: the rings are the same in all rows, so rings keep epsilon as those of one row do."""
    place = np.arange(many * every).reshape(many, every)
    place[:, [0, -1]] = place[0, [0, -1]]
    return np.unique(place, return_inverse=True)[1].reshape(many, every)


def _scale(rows: RatioRows) -> Vector:
    """About the density, so that all unknowns have one size."""
    middle = (rows.edges[1:] + rows.edges[:-1]) / 2
    return np.asarray(np.exp(-rows.epsilon * np.abs(middle)))


def _inequalities(rows: RatioRows, place: Integers) -> tuple[Integers, Integers, Vector]:
    """ln density[there] - ln density[here] <= gain: all that bind where density times x + noise falls outwards."""
    middle, every = rows.middle, place.shape[1]
    sides = (np.arange(middle, every), np.arange(middle - 1, -1, -1))
    centre = (rows.edges[1:] + rows.edges[:-1]) / 2
    size = np.log(np.maximum(1 + rows.alpha * centre, rows.ratios[-2]))
    size[[0, -1]] = size[[1, -2]]
    here, there, gain = [], [], []
    for own in place:
        for side in sides:
            here.append(own[side[:-1]])
            there.append(own[side[1:]])
            gain.append(size[side[:-1]] - size[side[1:]])
    for (i, j), cost in rows.costs().items():
        k, m = _binding(cost + size[None, :] - size[:, None], sides)
        apart = place[i, k] != place[j, m]
        here.append(place[i, k][apart])
        there.append(place[j, m][apart])
        gain.append(cost[k, m][apart] + rows.epsilon)
    return np.concatenate(here), np.concatenate(there), np.concatenate(gain)


def _binding(cost: Matrix, sides: tuple[Integers, Integers]) -> tuple[Integers, Integers]:
    """Pairs that do not follow from others, where levels rise from the middle outwards."""
    binding = np.zeros(cost.shape, dtype=np.bool_)
    for side in sides:
        least = np.minimum.accumulate(cost[:, side], axis=1)
        first = np.ones(least.shape, dtype=np.bool_)
        first[:, 1:] = least[:, 1:] < least[:, :-1]
        binding[:, side] = first & np.isfinite(cost[:, side])
    for side in sides:
        outer = side[::-1]
        held = np.where(binding, cost, np.inf)[outer]
        least = np.minimum.accumulate(held, axis=0)
        binding[outer[1:]] &= held[1:] < least[:-1]
    k, m = np.nonzero(binding)
    return k, m
