"""A law of integer noise for one count of a workplace cell, inside a window that is checked inequality by inequality.

The state of a cell is x, the workers of its largest establishment. A neighbour moves (x, n) to (x', n + g), and a law
L_x(k) = -ln P(noise = k) keeps epsilon if |L_x(k) - L_x'(k - g)| <= epsilon for every such move. Outside the window
(x >= sizes, or |k| too large) the law is that of an outer mechanism with a proof of its own. Inside it is the lowest
function that rises by at most epsilon with a move, from a plateau whose height makes each row a probability: a ladder.
What is found is rounded to integers, and every inequality is checked on those. docs/proofs/ladder.md has the proof.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from discreet.errors import PrivacyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.arrays import Integers, Mask, Matrix, Vector

FORMAT = "discreet ladder, format 1"
BITS = 126
"""The weights of a row add up to 2^126: a draw compares 62 random bits, and 64 more where those decide nothing."""

SLACK = 2.0**-10
"""The share of epsilon that is kept while solving: rows that are nearly probabilities become them at the end."""

STEPS, LEAST_DEPTH, MOST_DEPTH = 12, 14.0, 60.0
"""The window of a size ends where the outer law is less probable than e^(-12 epsilon), within these bounds.

The outer law falls by less with a step, so a deeper window lets the plateau be higher.
"""

HIGHEST = 70.0
"""No level inside the window is higher, so that a weight is a large whole number; a constant rises with no move."""

ERROR = 2.0**-36
"""More than the rounding of logarithms and of the outer law's probabilities can do to a checked difference."""


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
    """Where a law loses most: noise k at a largest establishment of x, against k - shift at x + rise."""

    loss: float
    x: int
    k: int
    move: Move


def growth(x: int, alpha: Fraction) -> int:
    """By how many workers an establishment of x may grow unnoticed."""
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

    def check(self, outer: Outer) -> None:
        """Refuse weights that are no law, or lose more than epsilon."""
        remedy = "It is computed once and kept. Delete the kept file, and it is computed again."
        if any(sum(row) != 2**BITS or min(row) < 0 for row in self.weights.tolist()):
            raise PrivacyError(
                f"A table of noise is damaged: its rows are no probabilities. {remedy}", about="mechanism"
            )
        worst = self.worst(outer)
        if not worst.loss + ERROR <= self.epsilon:
            raise PrivacyError(
                f"A table of noise loses {worst.loss:.6g} where {self.epsilon:.6g} is promised, at a largest "
                f"establishment of {worst.x} and noise {worst.k}. {remedy}",
                about="mechanism",
            )

    def _logs(self, outer: Outer, pad: int) -> Matrix:
        """-ln P for x = 1 .. sizes - 1 + pad and |k| <= reach + 2 pad: every move from or into the window is there."""
        k = np.arange(-self.reach - 2 * pad, self.reach + 2 * pad + 1)
        logs = -np.log(outer.probability(k, np.arange(1, self.sizes + pad)))
        inside = logs[: self.sizes - 1, 2 * pad : len(k) - 2 * pad]
        free = self.share > 0
        kept = np.where(free, np.exp(-inside), 0).sum(axis=1)  # what the outer law leaves to the window
        np.copyto(inside, -np.log(kept)[:, None] - np.log(np.where(free, self.share, 1)), where=free)
        return np.asarray(logs)


def solve(alpha: Fraction, epsilon: float, outer: Outer, *, sizes: int) -> Window:
    """The ladder below a size of the largest establishment, rounded to integers; not yet checked."""
    levels = _Ladder(alpha, epsilon * (1 - SLACK), outer, sizes).levels()
    probabilities = np.exp(-levels)
    return Window(alpha, epsilon, _rounded(probabilities / probabilities.sum(axis=1, keepdims=True)))


def _rounded(probabilities: Matrix) -> NDArray[np.object_]:
    """Integers in these proportions that add up to 2^126 in each row; what rounding leaves goes to the largest."""
    weights = np.frompyfunc(lambda share: int(math.ldexp(share, BITS)), 1, 1)(probabilities)
    for row in weights:
        row[probabilities.shape[1] // 2] += 2**BITS - sum(row)
    return np.asarray(weights)


class _Ladder:
    """The solver: levels L_x(k), free inside the window and those of the outer law around it."""

    def __init__(self, alpha: Fraction, epsilon: float, outer: Outer, sizes: int) -> None:
        self.alpha, self.epsilon, self.rows = alpha, epsilon, sizes - 1
        self.pad = growth(sizes - 1, alpha)
        depth = min(max(LEAST_DEPTH, STEPS * epsilon), MOST_DEPTH)
        reach, x = 1, np.arange(1, sizes + self.pad)
        while -math.log(outer.probability(np.array([reach]), x[self.rows - 1 : self.rows])[0, 0]) < depth:
            reach += 1
        k = np.arange(-reach - self.pad, reach + self.pad + 1)
        self.fixed = -np.log(outer.probability(k, x))
        self.inner = slice(self.pad, len(k) - self.pad)
        self.free = np.zeros(self.fixed.shape, dtype=np.bool_)
        self.free[: self.rows, self.inner] = self.fixed[: self.rows, self.inner] < depth
        self.room = np.where(self.free, np.exp(-self.fixed), 0)[: self.rows].sum(axis=1)
        self.moves = [move for move in moves(alpha, sizes) if move.least <= self.rows]
        self.base = np.full(self.fixed.shape, np.inf)
        half = self._half_widths(sizes)
        with np.errstate(divide="ignore"):
            self.base[: self.rows] = -np.log(np.clip(half[:, None] + 0.5 - np.abs(k)[None, :], 0, 1))
        self.floor = np.where(self.free, -np.inf, self.fixed)
        self._relax(self.floor, -epsilon, np.maximum)

    def levels(self) -> Matrix:
        """The levels at which every row of the window is a probability; infinite outside."""
        height = np.zeros(len(self.fixed))
        height[: self.rows] = np.log(np.exp(-self.base[: self.rows]).sum(axis=1))
        rise, few, levels = math.inf, False, self.fixed.copy()
        for _ in range(400):
            levels[self.free] += rise
            np.minimum(levels, np.minimum(height[:, None] + self.base, HIGHEST), out=levels, where=self.free)
            self._relax(levels, self.epsilon, np.minimum, sweeps=6 if few else 400)
            step = np.log(self._inside(levels).sum(axis=1) / self.room)
            rise = float(np.abs(step).max())
            if rise < SLACK * self.epsilon / 4 and not few:
                break
            height[: self.rows] += step
            few = SLACK * self.epsilon / 4 <= rise < 0.05  # near the end a few sweeps follow; the last are complete
        else:
            raise PrivacyError(
                "A table of noise did not settle. Others do. Change epsilon, or use polynomial.", about="epsilon"
            )
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(self._inside(levels)[:, self.inner]))

    def _inside(self, levels: Matrix) -> Matrix:
        """The probabilities of the window."""
        return np.where(self.free, np.exp(-np.maximum(levels, self.floor)), 0)[: self.rows]

    def _relax(self, levels: Matrix, step: float, keep: np.ufunc, *, sweeps: int = 400) -> None:
        """Move free levels to their neighbours' with a step, where `keep` prefers that, until nothing changes."""
        left, right = self.inner.start, self.inner.stop
        for _ in range(sweeps):
            before = levels.copy()
            for rise, shift, least in self.moves:
                lower, upper = slice(least - 1, self.rows), slice(least - 1 + rise, self.rows + rise)
                here, there = levels[lower, left:right], levels[upper, left - shift : right - shift]
                keep(here, there + step, out=here, where=self.free[lower, left:right])
                here, there = levels[upper, left:right], levels[lower, left + shift : right + shift]
                keep(here, there + step, out=here, where=self.free[upper, left:right])
            if np.array_equal(before, levels):
                return

    def _half_widths(self, sizes: int) -> Vector:
        """Half the width of each row's plateau: what is best if all sizes were alike, smoothed over two growths."""
        span = float((1 + self.alpha) ** 2)
        best = [_best_plateau(growth(x, self.alpha), self.epsilon) for x in range(1, math.ceil(sizes * span) + 2)]
        total = np.concatenate([[0.0], np.cumsum(np.maximum.accumulate(best))])
        x = np.arange(1, sizes)
        low, high = np.ceil(x / span).astype(int), np.floor(x * span).astype(int)
        return np.asarray(np.where(x * float(self.alpha) <= 1, 0.5, (total[high] - total[low - 1]) / (high - low + 1)))


def _best_plateau(step: int, epsilon: float) -> float:
    """Half the width of the plateau 2r + 1 of the staircase with the least mean error, for steps of one width."""
    m = math.exp(-epsilon)
    beyond, distance = m / (1 - m), m / (1 - m) ** 2  # sums of m^s and of s m^s
    r = np.arange(0, step + 1)
    # Step s covers r + (s-1) step + 1 .. r + s step on both sides.
    mass = 2 * r + 1 + 2 * step * beyond
    error = r * (r + 1) + 2 * step * (beyond * (r + (1 - step) / 2) + distance * step)
    return float(r[np.argmin(error / mass)]) + 0.5


def kept(alpha: Fraction, epsilon: float, outer: Outer, *, sizes: int, key: object) -> Window:
    """The window of an outer law, from the file that keeps it or solved and written there; checked in either case."""
    name = sha256(repr((FORMAT, alpha, epsilon, sizes, key)).encode()).hexdigest()[:32]
    path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "discreet" / f"ladder-{name}.json"
    window = _read(path, alpha, epsilon)
    if window is None:
        window = solve(alpha, epsilon, outer, sizes=sizes)
        window.check(outer)
        _write(path, window)
    elif window.sizes != sizes:
        raise _damaged(path)
    else:
        window.check(outer)
    return window


def _read(path: Path, alpha: Fraction, epsilon: float) -> Window | None:
    try:
        text = path.read_text(encoding="ascii")
    except OSError:
        return None
    try:
        rows = [[int(weight, 16) for weight in row] for row in json.loads(text)]
        weights = np.array(rows, dtype=object)
        if weights.ndim != 2 or weights.shape[1] % 2 == 0:
            raise ValueError
    except (ValueError, TypeError):
        raise _damaged(path) from None
    return Window(alpha, epsilon, weights)


def _write(path: Path, window: Window) -> None:
    """Keep a window for the next process; where that cannot be, it is solved again."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_text(json.dumps([[f"{weight:x}" for weight in row] for row in window.weights]), encoding="ascii")
        partial.replace(path)


def _damaged(path: Path) -> PrivacyError:
    return PrivacyError(
        f"The kept table of noise {path.name} is damaged. It is a table of whole numbers. Delete {path}, and it is "
        "computed again.",
        about="mechanism",
    )
