"""A law of integer noise for one count of a workplace cell, inside a window that is checked inequality by inequality.

The state of a cell is x, the workers of its largest establishment. A neighbour moves (x, n) to (x', n + g). A law
L_x(k) = -ln P(noise = k) keeps epsilon if |L_x(k) - L_x'(k - g)| <= epsilon for every such move. Outside the window (x
>= sizes, or |k| too large) the law is that of an outer mechanism with a proof of its own. Inside it is the lowest
function that rises by at most epsilon with a move, from a plateau whose height makes each row a probability: a ladder.
The solution is rounded to integers, and every inequality is checked on those. docs/proofs/ladder.md has the proof.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from discreet.noise import anchors
from discreet.noise.kept import BITS, Unsolved, damaged, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.arrays import Integers, Mask, Matrix, Vector

FORMAT = "ladder, format 5"

SLACK = 2.0**-10
"""The share of epsilon that is kept while solving: rows that are nearly probabilities become them at the end."""

MOST_TRIALS, SETTLED = 1000, 15
"""How often rows are scaled to probabilities; after the first times their means are also moved to zero."""

WIDE = 16
"""The mean of the outer law is summed as far as this many windows."""

MOST_SWEEPS, SWEPT = 8000, 6.5e8
"""A search ends after so many passes over the window, found or not; places times moves that a second passes over."""

SLOWEST, FASTEST = 0.02, 50.0
"""The move of a plateau by a mean's distance from zero; one part in e^epsilon decides beside it."""

MOVED, MOST_LEAN = 1.75, 0.95
"""From this epsilon on a mean is moved by its plateau, below it by the slopes beside it: each is better there."""

STEPS, LEAST_DEPTH, MOST_DEPTH = 7, 14.0, 60.0
"""The window of a size ends where the outer law is less probable than e^(-7 epsilon), within these bounds.

The outer law falls by less with a step, so a deeper window lets the plateau be higher.
"""

HIGHEST = 70.0
"""No level inside the window is higher, so a weight is a large whole number; a constant rises with no move."""

ERROR = 2.0**-36
"""More than the rounding of logarithms and of the outer law's probabilities can do to a checked difference."""


UNBIASED, CENTRED = 2.0**-20, 3
"""What a mean may be off from zero, in units of the mean size: tables of before were moved there once, not so often."""


class Outer(Protocol):
    """The law outside the window."""

    def probability(self, k: Integers, largest: Integers) -> Matrix:
        """P(noise = k), one row for each size of the largest establishment."""


class Move(NamedTuple):
    """A neighbour: x grows by `rise` and the count by `shift`, for every x of at least `least`."""

    rise: int
    shift: int
    least: int


class WorstMove(NamedTuple):
    """The place of a law's largest loss: noise k at a largest establishment of x, against k - shift at x + rise."""

    loss: float
    x: int
    k: int
    move: Move


def growth(x: int, alpha: Fraction) -> int:
    """The number of workers by which an establishment of x may grow without being noticed."""
    return max(math.floor(alpha * x), 1)


def moves(alpha: Fraction, most: int) -> Iterator[Move]:
    """All neighbours of cells whose largest establishment has fewer than `most` workers.

    An establishment of y <= x workers, y >= shift/alpha or shift = 1, becomes one of y + shift: the largest is then
    max(x, y + shift), any number from x to x + shift.
    """
    for shift in range(1, growth(most - 1, alpha) + 1):
        smallest = 0 if shift == 1 else math.ceil(shift / alpha)
        for rise in range(shift + 1):
            yield Move(rise, shift, max(smallest + shift - rise, 1))


@dataclass(frozen=True, eq=False)
class Window:
    """The weights of noise k = -reach..reach for the largest establishments x = 1..sizes-1; zero outside the window."""

    alpha: Fraction
    epsilon: float
    weights: NDArray[np.object_]

    @property
    def sizes(self) -> int:
        """From this size of the largest establishment on the outer law is used."""
        return len(self.weights) + 1

    @property
    def reach(self) -> int:
        """The largest noise inside the window."""
        return int(self.weights.shape[1]) // 2

    @cached_property
    def share(self) -> Matrix:
        """The weights as shares of their rows."""
        return np.asarray(self.weights / 2**BITS, dtype=np.float64)

    def covers(self, k: Integers, largest: Integers) -> Mask:
        """Whether noise lies inside the window."""
        k, x = np.broadcast_arrays(k, np.maximum(largest, 1))
        near = (np.abs(k) <= self.reach) & (x < self.sizes)
        return np.asarray(near & (self.share[np.where(near, x, 1) - 1, np.where(near, k, 0) + self.reach] > 0))

    def worst(self, outer: Outer) -> WorstMove:
        """The largest loss of any move that begins inside the window, from the integers themselves."""
        pad = growth(self.sizes - 1, self.alpha)
        logs = self._logs(outer, pad)
        worst, width = WorstMove(-1.0, 0, 0, Move(0, 0, 0)), logs.shape[1]
        for move in moves(self.alpha, self.sizes):
            if move.least < self.sizes:
                here = logs[move.least - 1 : self.sizes - 1, pad : width - pad]
                there = logs[move.least - 1 + move.rise : self.sizes - 1 + move.rise]
                # The count grows by `shift`: noise k here is noise k - shift there.
                loss = np.abs(here - there[:, pad - move.shift : width - pad - move.shift])
                row, column = np.unravel_index(int(np.argmax(loss)), loss.shape)
                if not loss[row, column] <= worst.loss:  # a NaN is worse than any number
                    k = int(column) - self.reach - pad
                    worst = WorstMove(float(loss[row, column]), int(row) + move.least, k, move)
        return worst

    def bias(self, outer: Outer) -> Vector:
        """The mean of every size's noise in units of its mean size, with the outer law as far as `WIDE` windows."""
        pad, k = growth(self.sizes - 1, self.alpha), range(-self.reach, self.reach + 1)
        end = WIDE * (2 * (self.reach + pad) + 1)
        wide, found = np.arange(-end, end + 1), np.empty(self.sizes - 1)
        for i, row in enumerate(self.weights.tolist()):
            chance = outer.probability(wide, np.array([i + 1]))[0]
            inside = chance[end - self.reach : end + self.reach + 1]
            free = self.share[i] > 0
            room = inside[free].sum() / 2**BITS
            inside[free] = 0
            mean = sum(weight * noise for weight, noise in zip(row, k, strict=True))
            size = sum(weight * abs(noise) for weight, noise in zip(row, k, strict=True))
            found[i] = (mean * room + chance @ wide) / (size * room + chance @ np.abs(wide))
        return found

    def check(self, outer: Outer, *, sizes: int) -> None:
        """Refuse weights of another shape, that lose more than epsilon or whose noise has a mean."""
        if self.sizes != sizes or self.weights.shape[1] % 2 == 0:
            raise damaged("it has other sizes")
        worst = self.worst(outer)
        if not worst.loss + ERROR <= self.epsilon:
            raise damaged(
                f"it loses {worst.loss:.6g} where {self.epsilon:.6g} is promised, at a largest establishment of "
                f"{worst.x} and noise {worst.k}"
            )
        if not np.abs(self.bias(outer)).max() <= UNBIASED:
            raise damaged("the mean of its noise is not zero")

    def _logs(self, outer: Outer, pad: int) -> Matrix:
        """-ln P for x = 1 .. sizes - 1 + pad and |k| <= reach + 2 pad: every move from or into the window is there."""
        k = np.arange(-self.reach - 2 * pad, self.reach + 2 * pad + 1)
        logs = -np.log(outer.probability(k, np.arange(1, self.sizes + pad)))
        inside = logs[: self.sizes - 1, 2 * pad : len(k) - 2 * pad]
        free = self.share > 0
        kept = np.where(free, np.exp(-inside), 0).sum(axis=1)  # what the outer law leaves to the window
        np.copyto(inside, -np.log(kept)[:, None] - np.log(np.where(free, self.share, 1)), where=free)
        return np.asarray(logs)


def solve(alpha: Fraction, epsilon: float, outer: Outer, *, sizes: int) -> NDArray[np.object_]:
    """The weights of the ladder below a size of the largest establishment; not yet checked."""
    search = _Ladder(alpha, epsilon * (1 - SLACK), outer, sizes)
    near = anchors.between(kind(sizes), float(alpha), epsilon)
    if near is not None:
        with contextlib.suppress(Unsolved):
            return rounded(search.shares(near))
    return rounded(search.shares())


def kind(sizes: int) -> str:
    """The name in anchors of tables that end at this size."""
    return f"ladder-{sizes}"


def seconds(alpha: Fraction, epsilon: float, *, sizes: int) -> float:
    """The approximate longest time of `solve`: the places of the window, times moves, times passes."""
    step = growth(sizes - 1, alpha)
    reach = step * (depth_of(epsilon) / epsilon + 3)
    moved = (step + 1) * (step + 2) / 2
    return sizes * 2 * reach * moved * MOST_SWEEPS / SWEPT


def depth_of(epsilon: float) -> float:
    """-ln of the outer law's probability where the window of a size ends."""
    return min(max(LEAST_DEPTH, STEPS * epsilon), MOST_DEPTH)


def anchor(window: Window) -> Matrix:
    """The part of a window that `anchors.packed` takes; zero outside."""
    inside = window.share > 0
    return np.asarray(np.where(inside, -np.log(np.where(inside, window.share, 1)), 0))


class _Ladder:
    """The solver: levels L_x(k), free inside the window and those of the outer law around it."""

    def __init__(self, alpha: Fraction, epsilon: float, outer: Outer, sizes: int) -> None:
        self.alpha, self.epsilon, self.rows, self.sweeps = alpha, epsilon, sizes - 1, 0
        self.pad = growth(sizes - 1, alpha)
        depth = depth_of(epsilon)
        reach, x = 1, np.arange(1, sizes + self.pad)
        while -math.log(outer.probability(np.array([reach]), x[self.rows - 1 : self.rows])[0, 0]) < depth:
            reach += 1
        k = np.arange(-reach - self.pad, reach + self.pad + 1)
        self.fixed = -np.log(outer.probability(k, x))
        self.inner = slice(self.pad, len(k) - self.pad)
        self.free = np.zeros(self.fixed.shape, dtype=np.bool_)
        self.free[: self.rows, self.inner] = self.fixed[: self.rows, self.inner] < depth
        self.room = np.where(self.free, np.exp(-self.fixed), 0)[: self.rows].sum(axis=1)
        self.shifts = [
            (move.shift, move.least)
            for move in moves(alpha, sizes)
            if move.rise == 0 and max(move.least - move.shift, 1) <= self.rows
        ]
        self.k = k
        self.half = self._half_widths(sizes)
        self.floor = np.where(self.free, -np.inf, self.fixed)
        self._relax(self.floor, -epsilon, np.maximum)
        # What the outer law has of the mean outside the window, as far as it matters.
        wide = np.arange(-WIDE * len(k), WIDE * len(k) + 1)
        inside = (np.where(self.free, np.exp(-self.fixed), 0)[: self.rows] * k).sum(axis=1)
        self.beside = (
            np.array([float(outer.probability(wide, x[i : i + 1])[0] @ wide) for i in range(self.rows)]) - inside
        )

    def shares(self, near: anchors.Between | None = None) -> Matrix:
        """The window's probabilities, each row a share of one; rows are probabilities, and their means are zero.

        The search begins at flat plateaus, or at the levels of anchors on either side.
        """
        height, lean = np.zeros(len(self.fixed)), np.zeros(self.rows)
        pace, before, levels = np.full(self.rows, 0.5), np.zeros(self.rows), self.fixed.copy()
        if near is None:
            height[: self.rows] = np.log(2 * self.half)
            natural = plateaus = self._plateaus(lean)
        else:
            start = self._start(near)
            height[: self.rows] = start.min(axis=1)
            natural = plateaus = start - height[: self.rows, None]
        for trial in range(0 if near is None else SETTLED + 1, MOST_TRIALS):
            if self.epsilon >= MOVED and near is None:
                base = self._plateaus(lean)
            else:
                base = np.minimum(plateaus, self._tilted(natural, lean))
            levels[self.free] = np.inf
            np.minimum(
                levels[: self.rows],
                height[: self.rows, None] + base,
                out=levels[: self.rows],
                where=self.free[: self.rows],
            )
            np.minimum(levels, HIGHEST, out=levels, where=self.free)
            self._relax(levels, self.epsilon, np.minimum)
            inside = self._inside(levels)
            step = np.log(inside.sum(axis=1) / self.room)
            size = (inside * np.abs(self.k)).sum(axis=1)
            mean = ((inside * self.k).sum(axis=1) + self.beside * np.exp(step)) / size
            off = np.where(np.abs(mean) > SLACK * self.epsilon / 10, mean, 0.0)
            if np.abs(step).max() < SLACK * self.epsilon / 4 and not off.any() and trial > SETTLED:
                return self._centred(inside, size)
            height[: self.rows] += step
            if trial == SETTLED:
                natural = np.maximum(levels[: self.rows] - height[: self.rows, None], 0)
            if trial >= SETTLED:
                pace *= np.where(off * before > 0, 1.25, np.where(off * before < 0, 0.4, 1))
                pace = np.clip(pace, SLOWEST * min(math.exp(4 - self.epsilon), 1.0), FASTEST)
                lean = np.clip(lean + np.clip(pace * off, -0.03, 0.03), -MOST_LEAN, MOST_LEAN)
                before = off
        raise Unsolved

    def _start(self, near: anchors.Between) -> Matrix:
        """The levels between those of two anchors, or the outer law's where one of them ends."""
        found, outer = [], self.fixed[: self.rows]
        for levels in (near.lower, near.upper):
            beside = (outer.shape[1] - levels.shape[1]) // 2
            wide = np.pad(levels, ((0, 0), (beside, beside))) if beside >= 0 else levels[:, -beside:beside]
            found.append(wide - np.log(self.room)[:, None] * (wide > 0))
        level = (1 - near.share) * found[0] + near.share * found[1]
        return np.asarray(np.where((found[0] > 0) & (found[1] > 0), level, outer))

    def _plateaus(self, lean: Vector) -> Matrix:
        """Zero on plateaus that are moved down by `lean`; a number at the edge belongs to one in part."""
        away = np.abs(self.k[None, :] + lean[:, None])
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(np.clip(self.half[:, None] + 0.5 - away, 0, 1)))

    def _tilted(self, natural: Matrix, lean: Vector) -> Matrix:
        """Levels that rise more slowly downwards, and faster upwards, than they would by themselves."""
        return np.asarray(np.where(self.k < 0, 1 - lean[:, None], 1 + lean[:, None]) * natural)

    def _centred(self, inside: Matrix, size: Vector) -> Matrix:
        """The rows as shares, with a little more on one side to make their means zero."""
        for _ in range(
            CENTRED
        ):  # what is more on one side is less on the other but for a part, which the next time has
            room = inside.sum(axis=1)
            tilt = ((inside * self.k).sum(axis=1) / room * self.room + self.beside) / (size / room * self.room)
            inside = inside * (1 - tilt[:, None] * np.sign(self.k))
            size = (inside * np.abs(self.k)).sum(axis=1)
        return np.asarray((inside / inside.sum(axis=1, keepdims=True))[:, self.inner])

    def _inside(self, levels: Matrix) -> Matrix:
        """The probabilities of the window."""
        return np.where(self.free, np.exp(-np.maximum(levels, self.floor)), 0)[: self.rows]

    def _relax(self, levels: Matrix, step: float, keep: np.ufunc, *, sweeps: int = 400) -> None:
        """Move free levels to their neighbours' with a step, where `keep` prefers that, until nothing changes."""
        left, right, rows = self.inner.start, self.inner.stop, self.rows
        never = np.inf if keep is np.minimum else -np.inf
        toll, free = np.where(self.free, step, never)[:rows, left:right], levels[:rows, left:right]
        for _ in range(sweeps):
            self.sweeps += 1
            if self.sweeps > MOST_SWEEPS:
                raise Unsolved
            before = free.copy()
            for shift, least in self.shifts:
                # x <= rows becomes any of max(x, least) .. x + shift.
                start = max(least - shift, 1)
                there = levels[least - 1 : rows + shift, left - shift : right - shift]
                few = keep.accumulate(there[:shift], axis=0)[start + shift - least : rows + shift - least + 1]
                best = np.concatenate([few, _windows(there, shift + 1, keep)])
                here = free[start - 1 :]
                keep(here, best + toll[start - 1 :], out=here)
                # x >= least was any of max(x - shift, 1) .. x.
                there = levels[start - 1 : rows, left + shift : right + shift]
                few = keep.accumulate(there[:shift], axis=0)[least - 1 :] if least <= shift else there[:0]
                best = np.concatenate([few, _windows(there, shift + 1, keep)])
                here = free[least - 1 :]
                keep(here, best + toll[least - 1 :], out=here)
            if np.array_equal(before, free):
                return

    def _half_widths(self, sizes: int) -> Vector:
        """Half the width of each row's plateau: what is best if all sizes were alike, smoothed over two growths."""
        span = float((1 + self.alpha) ** 2)
        best = [_best_plateau(growth(x, self.alpha), self.epsilon) for x in range(1, math.ceil(sizes * span) + 2)]
        total = np.concatenate([[0.0], np.cumsum(np.maximum.accumulate(best))])
        x = np.arange(1, sizes)
        low, high = np.ceil(x / span).astype(int), np.floor(x * span).astype(int)
        return np.asarray(np.where(x * float(self.alpha) <= 1, 0.5, (total[high] - total[low - 1]) / (high - low + 1)))


def _windows(rows: Matrix, many: int, keep: np.ufunc) -> Matrix:
    """The preferred level of so many neighbouring rows, for each run of them."""
    width = 1
    runs = max(len(rows) - many + 1, 0)
    while 2 * width <= many:
        rows, width = keep(rows[:-width], rows[width:]), 2 * width
    return np.asarray(keep(rows[:runs], rows[many - width : many - width + runs]) if runs else rows[:0])


def _best_plateau(step: int, epsilon: float) -> float:
    """Half the width of the plateau 2r + 1 of the staircase with the least mean error, for steps of one width."""
    return float(np.argmin(plateau_errors(step, epsilon))) + 0.5


def plateau_errors(step: int, epsilon: float) -> Vector:
    """Mean errors of integer staircases with plateaus 2r + 1, r = 0..step, and steps of one width."""
    m = math.exp(-epsilon)
    beyond, distance = m / (1 - m), m / (1 - m) ** 2  # sums of m^s and of s m^s
    r = np.arange(0, step + 1)
    # Step s covers r + (s-1) step + 1 .. r + s step on both sides.
    mass = 2 * r + 1 + 2 * step * beyond
    error = r * (r + 1) + 2 * step * (beyond * (r + (1 - step) / 2) + distance * step)
    return np.asarray(error / mass)
