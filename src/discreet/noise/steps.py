"""The law of least mean error in proportion to a scale: steps of one width, and rings of constant density beyond.

Its table is solved and checked in `least`, once for a growth and an epsilon, and kept. It is not symmetric: upwards
the scale grows with the count, downwards it does not. Its mean is zero. Proof: docs/proofs/ladder.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from discreet.noise import anchors, least
from discreet.noise.kept import BITS, Unsolved, kept
from discreet.noise.law import Rounded, positive
from discreet.noise.source import Choice
from discreet.noise.staircase import Staircase

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from discreet.arrays import Matrix, Vector

FORMAT = "steps, format 2"
DEPTH, MOST_PARTS, MOST_CELLS = 9.0, 64, 704
"""Rings begin where the density is about e^-9 of the highest; `shift` has at most so many parts, a side so many."""


SLOWEST = 15.0
"""Seconds that the programme takes with most cells."""


@dataclass(frozen=True, slots=True)
class Steps(Rounded):
    """The law of `least.solve` for `growth` and `shift`, at a loss of `epsilon`."""

    growth: float
    shift: float
    epsilon: float

    @property
    def cells(self) -> least.StepCells:
        """Where its cells lie."""
        return _cells(self)

    @property
    def width(self) -> float:
        """How wide a cell is."""
        return self.cells.width

    @property
    def reach(self) -> int:
        """The number of cells of a side; its rings are beyond."""
        return self.cells.reach

    @property
    def rings(self) -> Staircase:
        """A law whose rings are those beyond the cells."""
        return _rings(self)

    @property
    def weights(self) -> NDArray[np.object_]:
        """One row: all rings on the left, the cells, all rings on the right."""
        return _weights(self)

    @property
    def choice(self) -> Choice:
        """Draws of a cell, or of the rings of one side."""
        return _choice(self)

    @property
    def mean_abs(self) -> float:
        return float(self._excess[0])

    @property
    def variance(self) -> float:
        """Of the cells, and of the rings by their moments about the last edge."""
        sides, ring, last = self._sides, self.rings, self.cells.last
        inner = self._edges[:-1]
        width = self.width
        square = (inner**2 + inner * width + width**2 / 3)[None, :] * sides.mass
        beyond = ring.variance - _within(ring, last)
        return float(square.sum() + sides.beyond.sum() * beyond / self._outer)

    def log_density(self, z: ArrayLike) -> Vector:
        z = np.asarray(z, dtype=np.float64)
        side, x = (z > 0).astype(np.int64), np.abs(z)
        place = np.minimum((x / self.width).astype(np.int64), self.reach - 1)
        sides, ring = self._sides, self.rings
        inside = np.log(sides.mass[side, place] / self.width)
        outside = np.log(sides.beyond[side] / (self._outer / 2)) + ring.log_density(x)
        return np.asarray(np.where(x < self.cells.last, inside, outside))

    def beyond(self, x: Vector) -> Vector:
        return self._line.beyond(np.asarray(x, dtype=np.float64))

    def excess(self, x: Vector) -> Vector:
        x = np.asarray(x, dtype=np.float64)
        sides, last = self._sides, self.cells.last
        near = np.minimum(x, last)
        place = np.minimum((near / self.width).astype(np.int64), self.reach - 1)
        left, tail = self._edges[place + 1] - near, self._line.both[place + 1]
        own = sides.mass.sum(axis=0)[place] * left**2 / (2 * self.width)
        found = np.asarray(tail * left + own + self._excess[place + 1])
        if (far := x > last).any():
            found[far] = self._line.share.sum() * self.rings.excess(x[far])
        return found

    def probability(self, j: ArrayLike, scale: ArrayLike) -> Vector:
        j, scale = np.asarray(j, dtype=np.float64), positive(scale)
        # The ends of 0 lie on both sides.
        left, right = self._line.at((j - 0.5) / scale), self._line.at((j + 0.5) / scale)
        return np.asarray(np.where(j == 0, 1 - (left + right), np.abs(left - right)))

    @property
    def _edges(self) -> Vector:
        return _edges(self)

    @property
    def _sides(self) -> _Sides:
        return _sides(self)

    @property
    def _line(self) -> _Line:
        return _line(self)

    @property
    def _outer(self) -> float:
        return _outer(self)

    @property
    def _excess(self) -> Vector:
        return _excess_at_edges(self)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The masses of both sides, from the centre outwards: of cells, beyond each edge, and of the rings."""

    mass: NDArray[np.float64]
    tail: NDArray[np.float64]
    beyond: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Line:
    """The mass farther out than z, on its side: linear between the edges of cells and of rings.

    Attributes
    ----------
    edges, both : of the right side, and the mass beyond them on both sides.
    ends, mass : of both sides, from left to right; 0 stands twice.
    rings, share : what is beyond the last edge, as a law of both sides, and its part on the left and on the right.
    """

    edges: Vector
    both: Vector
    ends: Vector
    mass: Vector
    rings: Staircase
    share: Vector

    def at(self, z: Vector) -> Vector:
        """The mass farther out than z, which is not 0."""
        z, found = np.asarray(z), np.asarray(np.interp(z, self.ends, self.mass))
        if z.size and max(-z.min(), z.max()) > self.edges[-1]:
            far = np.abs(z) > self.edges[-1]
            found[far] = self.share[(z[far] > 0).astype(np.int64)] * self.rings.beyond(np.abs(z[far]))
        return found

    def beyond(self, x: Vector) -> Vector:
        """The mass farther out than -x and x."""
        found = np.asarray(np.interp(x, self.edges, self.both))
        if (far := x > self.edges[-1]).any():
            found[far] = self.share.sum() * self.rings.beyond(x[far])
        return found


@lru_cache(maxsize=64)
def _cells(law: Steps) -> least.StepCells:
    shifts = DEPTH / law.epsilon + 2
    # A power of two: cells of one epsilon are whole ones of another.
    parts = min(2 ** math.floor(math.log2(MOST_CELLS / shifts)), MOST_PARTS)
    return least.StepCells(law.growth, law.shift, parts, round(parts * shifts))


@lru_cache(maxsize=64)
def _rings(law: Steps) -> Staircase:
    return Staircase(law.epsilon - math.log1p(law.growth), law.growth, law.cells.last)


@lru_cache(maxsize=64)
def _edges(law: Steps) -> Vector:
    edges = np.asarray(np.arange(law.reach + 1) * law.width, dtype=np.float64)
    edges.setflags(write=False)
    return edges


@lru_cache(maxsize=64)
def _weights(law: Steps) -> NDArray[np.object_]:
    cells = law.cells
    return kept(
        FORMAT,
        (cells, law.epsilon),
        partial(_solved, law),
        lambda weights: least.check(cells, weights, law.epsilon),
        seconds=SLOWEST * (cells.reach / MOST_CELLS) ** 2,
    )


def _solved(law: Steps) -> NDArray[np.object_]:
    """From the anchors around it, or by the linear programme."""
    cells, near = law.cells, anchors.between("steps", law.growth, law.epsilon)
    if near is None:
        return least.solve(cells, law.epsilon)
    level = (1 - near.share) * on_cells(cells, near.lower[0]) + near.share * on_cells(cells, near.upper[0])
    try:
        return least.repaired(cells, law.epsilon, level)
    except Unsolved:
        return least.solve(cells, law.epsilon)


def on_cells(cells: least.StepCells, anchor: Vector) -> Vector:
    """The levels of an anchor where these cells lie; its first number is how many parts `shift` has there."""
    parts, levels = round(anchor[0] / anchors.UNIT), anchor[1:]
    middle = (cells.edges[1:] + cells.edges[:-1]) / 2
    middle[[0, -1]] = [-cells.last, cells.last]
    place = np.floor(middle * parts / cells.shift).astype(np.int64) + len(levels) // 2
    return np.asarray(levels[np.clip(place, 0, len(levels) - 1)])


def anchor(law: Steps) -> Matrix:
    """What `anchors.packed` is given of a law."""
    mass = np.diff(law.cells.edges)
    mass[[0, -1]] = least.rings(law.cells, law.epsilon).mass
    level = np.log(mass) - np.array([math.log(weight) for weight in law.weights[0]])
    return np.concatenate([[law.cells.parts * anchors.UNIT], level - level.min() + anchors.UNIT])[None, :]


@lru_cache(maxsize=64)
def _choice(law: Steps) -> Choice:
    return Choice(law.weights, bits=BITS)


@lru_cache(maxsize=64)
def _sides(law: Steps) -> _Sides:
    share = np.array([weight / 2**BITS for weight in law.weights[0]], dtype=np.float64)
    middle = len(share) // 2
    sides = np.stack([share[middle - 1 :: -1], share[middle:]])
    tail = np.cumsum(sides[:, ::-1], axis=1)[:, ::-1]
    return _Sides(sides[:, :-1], tail, sides[:, -1])


@lru_cache(maxsize=64)
def _line(law: Steps) -> _Line:
    sides, share, rings = law._sides, law._sides.beyond / law._outer, law.rings.jumps[1:]
    edges = np.concatenate([law._edges, rings])
    tail = np.concatenate([sides.tail, share[:, None] * law.rings.beyond(rings)], axis=1)
    ends, mass = np.concatenate([-edges[::-1], edges]), np.concatenate([tail[0, ::-1], tail[1]])
    return _Line(edges, tail.sum(axis=0), ends, mass, law.rings, share)


@lru_cache(maxsize=64)
def _outer(law: Steps) -> float:
    """The mass that the law of rings has beyond the last edge, on both sides."""
    return float(law.rings.beyond(np.array([law.cells.last]))[0])


@lru_cache(maxsize=64)
def _excess_at_edges(law: Steps) -> Vector:
    """E(|Z| - e)+ beyond each edge e: the integral of the tail, which is linear inside a cell."""
    sides, ring, last = law._sides, law.rings, law.cells.last
    tail = sides.tail.sum(axis=0)
    far = sides.beyond.sum() / law._outer * float(ring.excess(np.array([last]))[0])
    areas = (tail[1:] + tail[:-1]) / 2 * law.width
    return np.concatenate([np.cumsum(areas[::-1])[::-1] + far, [far]])


def _within(ring: Staircase, last: float) -> float:
    """The part of the second moment that lies within the plateau: of a constant density."""
    return float(np.exp(ring.log_density(0.0))) * 2 * last**3 / 3
