"""Whole numbers in the cells of a table whose sums lie in given intervals.

Real numbers come first. Iterative proportional fitting to the published numbers gives the least surprising table that
has them (conditional independence unless a table says otherwise). Then every sum outside its interval is scaled to the
nearer end. Whole numbers come next. Running totals are rounded, in the order of the cells, so that every sum of
neighbouring cells stays in its interval, because the ends are whole. Sums across are mended one by one. Intervals can
contradict each other, as each fails with a small probability: few of them give way (`contradictions`), and what is
missed is counted, never hidden.

Functions on arrays. A margin's `group` says for each cell in which of its sums it is, -1 for none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Mask, Vector

FITTING, SCALING, MENDING = 60, 400, 120
"""Rounds of each step, at most."""

LEAST_SCALING = 80
CLOSE = 1e-9
SEED_OF_A_CELL = 1e-6
"""The value of an empty cell before scaling: it can grow if a sum needs it."""


@dataclass(frozen=True, slots=True, eq=False)
class Margin:
    """Sums of cells, with what they should be and the ends between which they must be.

    Attributes
    ----------
    group : for each cell, its sum; -1 where it is in none.
    target : the published number of each sum.
    lower, upper : whole ends, at least 0; infinite where there is none.
    """

    group: Integers
    target: Vector
    lower: Vector
    upper: Vector

    @classmethod
    def of(cls, group: Integers, published: Vector, lower: Vector, upper: Vector) -> Margin:
        """With ends as published: NaN where there is none, perhaps below zero, perhaps no whole numbers."""
        low = np.maximum(np.ceil(np.nan_to_num(lower, nan=0.0, neginf=0.0)), 0.0)
        high = np.maximum(np.floor(np.nan_to_num(upper, nan=np.inf, posinf=np.inf)), low)
        reached = np.bincount(group[group >= 0], minlength=len(low)) > 0  # no cell can fill the others
        low, high = np.where(reached, low, 0.0), np.where(reached, high, np.inf)
        return cls(group, np.clip(np.nan_to_num(published), low, high), low, high)

    def sums(self, values: Vector | Integers) -> Vector:
        """The sums of the cells' values."""
        inside = self.group >= 0
        weights = values[inside].astype(np.float64)
        return np.asarray(
            np.bincount(self.group[inside], weights=weights, minlength=len(self.target)), dtype=np.float64
        )

    def outside(self, values: Vector | Integers, *, by: float = CLOSE) -> Mask:
        """Which sums are not in their intervals."""
        found = self.sums(values)
        return np.asarray((found < self.lower - by) | (found > self.upper + by))


def fit(margins: Sequence[Margin], start: Vector, *, rng: np.random.Generator) -> Integers:
    """Whole numbers of cells whose sums are near the published numbers and in their intervals, as far as possible.

    `start` are numbers proportional to what is believed without the margins; a cell of 0 stays 0.
    """
    from discreet.synthetic.contradictions import reconciled

    possible = start > 0
    first = _met(margins, start, possible, rng)
    if not _missed(margins, first):
        return first
    second = _met(reconciled(margins, first, possible), start, possible, rng)
    return min((first, second), key=lambda values: _missed(margins, values))


def _met(margins: Sequence[Margin], start: Vector, possible: Mask, rng: np.random.Generator) -> Integers:
    real = _scaled(margins, _fitted(margins, np.asarray(start, dtype=np.float64)), possible)
    return _mended(margins, rounded(real), possible, rng)


def _missed(margins: Sequence[Margin], values: Integers) -> int:
    """How many sums are not in their intervals."""
    return sum(int(margin.outside(values).sum()) for margin in margins)


def rounded(values: Vector) -> Integers:
    """Whole numbers whose running totals are the rounded running totals of the values."""
    total = np.floor(np.cumsum(values) + 0.5)
    return np.diff(total, prepend=0.0).astype(np.int64)


def _fitted(margins: Sequence[Margin], start: Vector) -> Vector:
    """Iterative proportional fitting to the published numbers; the last margin is met best."""
    values = start.copy()
    for _ in range(FITTING):
        before = values.copy()
        for margin in margins:
            found = margin.sums(values)
            factor = np.divide(margin.target, found, out=np.zeros_like(found), where=found > 0)
            inside = margin.group >= 0
            values[inside] *= factor[margin.group[inside]]
        if np.allclose(values, before, rtol=1e-6, atol=1e-6):
            break
    return values


def _scaled(margins: Sequence[Margin], values: Vector, possible: Mask) -> Vector:
    """Scale sums that are outside their intervals to the nearer end, again and again."""
    values = np.where(possible, np.maximum(values, SEED_OF_A_CELL), 0.0)
    least = np.inf
    for turn in range(SCALING):
        moved = 0.0
        for margin in margins:
            found = margin.sums(values)
            wanted = np.clip(found, margin.lower, margin.upper)
            wrong = np.abs(wanted - found) > CLOSE * np.maximum(found, 1.0)
            if not wrong.any():
                continue
            factor = np.ones_like(found)
            np.divide(wanted, found, out=factor, where=wrong & (found > 0))
            inside = margin.group >= 0
            values[inside] *= factor[margin.group[inside]]
            moved += float(np.abs(wanted - found)[wrong].sum())
        # Nothing is wrong any more; or some intervals contradict each other, and the others have had their turns.
        if not moved or (turn >= LEAST_SCALING and moved > 0.999 * least):
            break
        least = moved
    return values


def _mended(margins: Sequence[Margin], values: Integers, possible: Mask, rng: np.random.Generator) -> Integers:
    """Move whole numbers where sums across are outside their intervals, preferring cells whose other sums allow it."""
    cells = [_cells_of(margin) for margin in margins]
    best, least = values, np.inf
    for _ in range(MENDING):
        sums = [margin.sums(values) for margin in margins]
        wrong = [(m, g) for m, margin in enumerate(margins) for g in np.flatnonzero(margin.outside(values)).tolist()]
        if len(wrong) < least:
            best, least = values.copy(), len(wrong)
        if not wrong:
            break
        values = values.copy()
        for m, g in wrong:
            _mend(margins, sums, values, m, g, cells[m](g), possible, rng)
    return best


def _mend(
    margins: Sequence[Margin],
    sums: list[Vector],
    values: Integers,
    m: int,
    g: int,
    cells: Integers,
    possible: Mask,
    rng: np.random.Generator,
) -> None:
    """Bring one sum into its interval."""
    short, over = margins[m].lower[g] - sums[m][g], sums[m][g] - margins[m].upper[g]
    step = 1 if short > 0 else -1
    needed = int(max(short, over))
    cells = cells[possible[cells]] if step > 0 else cells[values[cells] > 0]
    if needed <= 0 or not len(cells):
        return
    room = np.full(len(cells), np.inf) if step > 0 else values[cells].astype(np.float64)
    for k, margin in enumerate(margins):
        at = margin.group[cells]
        left = margin.upper[at] - sums[k][at] if step > 0 else sums[k][at] - margin.lower[at]
        room = np.where((at >= 0) & (k != m), np.minimum(room, np.maximum(left, 0.0)), room)
    order = np.lexsort((rng.random(len(cells)), -room))
    for i in order[: max(64, needed)].tolist():
        # Where nothing has room one cell is moved all the same: another sum is then mended in the next round.
        most = min(needed, room[i]) if room[i] > 0 else 1
        change = int(min(most, needed, values[cells[i]] if step < 0 else needed))
        values[cells[i]] += step * change
        for k, margin in enumerate(margins):
            at = margin.group[cells[i]]
            if at >= 0:
                sums[k][at] += step * change
        needed -= change
        if needed <= 0:
            break


def _cells_of(margin: Margin) -> Callable[[int], Integers]:
    """A function that gives the cells of a sum."""
    order = np.argsort(margin.group, kind="stable")
    bounds = np.searchsorted(margin.group[order], np.arange(len(margin.target) + 1))
    return lambda g: np.asarray(order[bounds[g] : bounds[g + 1]])
