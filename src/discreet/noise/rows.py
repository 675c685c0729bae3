"""Steps for cells that one establishment dominates: one row of weights for every range of t, the ratio of two sizes.

If the largest establishment is alone in its size, a count falls mostly because that one shrinks, and then the scale
falls with it. Noise that depends on the largest alone has to allow for another of the same size. t is the second
largest size over the largest. Row 0 is the law of `steps` itself, for t close to 1; all rows have its cells and its
rings with the weights that they have there. Neighbours turn Z = z of a row into z' of the same row or of one beside it:

- the largest grows: z + tip = w (z' + tip) with 1 <= w <= 1 + growth, and t falls by w;
- another grows: z = z' + u with 0 <= u <= shift t', and t rises to t';
- another becomes the largest: from row 0 into row 0, which keeps epsilon by itself.

F = -ln density keeps epsilon if F(z) <= F(z') + epsilon + ln w and F(z') <= F(z) + epsilon - ln w. `excess` computes
every such inequality from the whole-number weights. docs/proofs/two-sizes.md has it in full.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.noise import least
from discreet.noise.kept import BITS, damaged, kept
from discreet.noise.steps import Steps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from discreet.arrays import Integers, Matrix, Vector

FORMAT = "rows, format 2"

POWERS = (1, 2, 4, 7)
"""Row i ends where t is shift^POWERS[i]; the last one goes on to 0. Below, t hardly matters."""

WIDER = 2.0**-20
"""So much more than a growth is a row: a growth never passes a whole one, however ratios are rounded."""

CLOSE = 2.0**-30
"""A computed z may be off by this much if the scale grows: scales are doubles."""

INSIDE = 2.0**-32
"""A t' is a move without growth of the scale if it is below `shift` by this much: scales have a margin of 2^-30."""

REPAIR = 2.0
"""Seconds that it takes to find rows at most, about."""

ERROR = 2.0**-36
"""More than the rounding of logarithms can do to a computed inequality."""


@dataclass(frozen=True, slots=True)
class RowSteps(Steps):
    """One row; `tip` is 1/alpha less the margin of scales, so z = -tip is a count without its largest establishment."""

    tip: float
    row: int = 0

    @property
    def weights(self) -> NDArray[np.object_]:
        """One row: all rings on the left, the cells, all rings on the right."""
        return self.first.weights if self.row == 0 else _rows(self.first_row)[self.row - 1 : self.row]

    @property
    def first(self) -> Steps:
        """The law of row 0."""
        return Steps(self.growth, self.shift, self.epsilon)

    @property
    def first_row(self) -> RowSteps:
        return self if self.row == 0 else replace(self, row=0)

    @property
    def ends(self) -> Vector:
        """The ends of rows, from t = 1 down to 0."""
        return _ends(self.shift)

    @property
    def all_rows(self) -> tuple[RowSteps, ...]:
        """The laws of all rows."""
        return tuple(replace(self, row=row) for row in range(len(POWERS) + 1))

    def place(self, largest: ArrayLike, second: ArrayLike) -> Integers:
        """The row of each cell; of a cell without workers the first."""
        x = np.maximum(np.asarray(largest, dtype=np.float64), 1.0)
        return np.asarray(
            np.searchsorted(-self.ends[1:-1], -np.asarray(second, dtype=np.float64) / x, side="left"), dtype=np.int64
        )


@dataclass(frozen=True, slots=True)
class Widest:
    """The tail that no row exceeds: intervals hold whatever the second size is."""

    rows: tuple[RowSteps, ...]

    def beyond(self, x: Vector) -> Vector:
        """P(|Z| > x), of the row where it is largest."""
        return np.asarray(np.max([law.beyond(x) for law in self.rows], axis=0))


class Joined(NamedTuple):
    """Pairs of cells that a move can join, before and after, and the least and the largest w of such moves."""

    here: Integers
    there: Integers
    least: Vector
    most: Vector


@lru_cache(maxsize=16)
def _ends(shift: float) -> Vector:
    found = np.concatenate([[1.0], (shift * (1 - WIDER)) ** np.array(POWERS, dtype=np.float64), [0.0]])
    found.setflags(write=False)
    return found


@lru_cache(maxsize=4)
def grown(law: RowSteps) -> Joined:
    """The largest grows: z + tip = w (z' + tip), up to CLOSE."""
    edges, top = law.cells.edges, 1 + law.growth
    y0, y1 = edges[:-1] + law.tip, edges[1:] + law.tip
    here, there = _between(
        edges, np.minimum(y0, top * y0) - law.tip - CLOSE, np.maximum(y1, top * y1) - law.tip + CLOSE
    )
    low, high = np.ones(len(here)), np.full(len(here), top)
    # w z' + (w - 1) tip covers cell `here` for w with w y1 >= z0 and w y0 <= z1, all from -tip on.
    for factor, least_value in (
        (y1[there], edges[here] + law.tip - CLOSE),
        (-y0[there], -(edges[here + 1] + law.tip + CLOSE)),
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = least_value / factor
        low = np.where(factor > 0, np.maximum(low, bound), low)
        high = np.where(factor < 0, np.minimum(high, bound), high)
    low, high = low * (1 - least.ERROR), high * (1 + least.ERROR)
    met = low <= high
    return Joined(here[met], there[met], low[met], high[met])


@lru_cache(maxsize=32)
def beside(law: RowSteps, row: int) -> Joined:
    """Another grows, into a row: z = z' + u, 0 < u < shift t'."""
    edges = law.cells.edges
    here, there = _between(edges, edges[:-1], edges[1:] + law.ends[row] * law.shift * (1 - INSIDE))
    one = np.ones(len(here))
    return Joined(here, there, one, one)


def _between(edges: Vector, low: Vector, high: Vector) -> tuple[Integers, Integers]:
    """All cells that an interval meets, and the index of that interval."""
    many = len(edges) - 2
    first = np.clip(np.searchsorted(edges, low, side="right") - 1, 0, many)
    last = np.clip(np.searchsorted(edges, high, side="left") - 1, 0, many)
    there = np.repeat(np.arange(len(low)), last - first + 1)
    start = np.repeat(np.cumsum(last - first + 1) - (last - first + 1), last - first + 1)
    return np.asarray(first[there] + np.arange(len(there)) - start, dtype=np.int64), np.asarray(there, dtype=np.int64)


def moves(law: RowSteps) -> Iterator[tuple[int, int, Joined]]:
    """The rows before and after, and what is joined, for all moves but those of row 0 alone."""
    many = len(POWERS) + 1
    for i in range(many):
        for j in (i, i + 1):
            if 0 < j < many:
                yield i, j, grown(law)
        for j in (i, i - 1):
            if i > 0:
                yield i, j, beside(law, j)


def levels(law: RowSteps, weights: NDArray[np.object_]) -> Matrix:
    """-ln density of every cell, and of the first ring on either side."""
    mass = np.diff(law.cells.edges)
    mass[[0, -1]] = least.rings(law.cells, law.epsilon).mass
    log = np.array([[math.log(one) for one in row] for row in weights.tolist()])
    return np.asarray(np.log(mass) + BITS * math.log(2) - log)


def excess(law: RowSteps, weights: NDArray[np.object_]) -> float:
    """The excess over epsilon of the worst pair of cells, from the weights themselves."""
    level, worst = levels(law, weights), -math.inf
    for i, j, met in moves(law):
        rise = level[i, met.here] - level[j, met.there]
        worst = max(worst, float((rise - np.log(met.least)).max()), float((np.log(met.most) - rise).max()))
    return worst - law.epsilon


def check(law: RowSteps, weights: NDArray[np.object_]) -> None:
    """Refuse weights of another shape or with other rings, that lose more than epsilon or whose mean is not zero."""
    own = law.first.weights
    if weights.shape != (len(POWERS), own.shape[1]) or not all(weight > 0 for weight in weights.ravel()):
        raise damaged("it has other cells")
    if any(weights[row, end] != own[0, end] for row in range(len(POWERS)) for end in (0, -1)):
        raise damaged("it has other rings")
    if not excess(law, np.concatenate([own, weights])) + ERROR <= 0:
        raise damaged(f"it loses more than {law.epsilon:.6g}")
    if not least.bias(law.cells, weights, law.epsilon) <= least.UNBIASED:
        raise damaged("the mean of a row is not zero")


@lru_cache(maxsize=32)
def _rows(law: RowSteps) -> NDArray[np.object_]:
    from discreet.noise import row_search

    return kept(
        FORMAT,
        (law, law.cells, POWERS),
        lambda: row_search.solve(law),
        lambda weights: check(law, weights),
        seconds=REPAIR,
    )
