"""Pairs of neighbouring cells, for verification: one establishment grows, beside others of every size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.arrays import Integers
from discreet.privacy.units import Establishments

LARGEST_SIZE = 10**6
PARTS = 20
SMALLEST, SINGLY = 20, 200
MOST = 2**53
"""Amounts of all rows add up to less, or reading refuses them."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Pairs of neighbouring cells: one establishment grows from `before` to `after` workers.

    `other` is the largest other establishment of the cell and `rest` all further workers in it.
    """

    before: Integers
    after: Integers
    other: Integers
    rest: Integers

    def __len__(self) -> int:
        return len(self.before)

    def of_one_worker(self, step: int = 1) -> Neighbours:
        """The pairs in which one worker is hired, who adds at most `step`."""
        one = self.after <= self.before + step
        return Neighbours(self.before[one], self.after[one], self.other[one], self.rest[one])

    def of_three(self, shares: Sequence[float]) -> Neighbours:
        """The same growths beside two others, of which the smaller one is all the `rest`.

        The larger one also lies on either side of these shares of the one that grows, before and after, with more than
        200 workers by its largest growth alone. The smaller one is absent, as large, or on either side of these shares
        of the larger one. If the one that grows has less than half of the larger one's workers, it is not the second
        beside these: then its largest growth alone is tried, of the smallest ones and beside the largest of all.
        """
        around = [(share, more) for share in shares for more in (0, 1)]
        cells = distinct_columns(np.stack([self.before, self.after, self.other]))[0]
        growths = distinct_columns(cells[:2])[0]
        most = np.zeros(int(cells[0].max(initial=0)) + 1, dtype=np.int64)
        np.maximum.at(most, cells[0], cells[1])
        growths = growths[:, (growths[0] <= SINGLY) | (growths[1] == most[growths[0]])]
        sizes = [np.floor(size * share).astype(np.int64) + more for size in growths for share, more in around]
        cells = distinct_columns(np.concatenate([cells, *(np.vstack([growths, size]) for size in sizes)], axis=1))[0]
        larger = cells[:, cells[2] > cells[0]]
        ends = (larger[0] <= SMALLEST) | (larger[2] == larger[2].max(initial=0))
        larger = larger[:, (larger[2] <= 2 * larger[1]) | (larger[1] == most[larger[0]]) & ends]
        thirds = [larger[2], *(np.floor(larger[2] * share).astype(np.int64) + more for share, more in around)]
        found = [np.vstack([cells, np.zeros_like(cells[:1])])]
        found += [np.vstack([larger, np.minimum(third, larger[2])]) for third in thirds]
        return Neighbours(*distinct_columns(np.concatenate(found, axis=1))[0])


def distinct_columns(keys: Integers) -> tuple[Integers, Integers]:
    """The distinct columns in order, and where each is found first."""
    order = np.lexsort(keys[::-1])
    keys = keys[:, order]
    new = np.concatenate([np.ones(1, dtype=bool), (keys[:, 1:] != keys[:, :-1]).any(axis=0)])[: keys.shape[1]]
    return keys[:, new], np.asarray(order[new], dtype=np.int64)


@lru_cache(maxsize=8)
def neighbouring_cells(unit: Establishments, *, largest: int = LARGEST_SIZE, step: int = 1) -> Neighbours:
    """Neighbouring cells with establishments of 0 to `largest` workers, or times `step` where they add amounts.

    Every size up to 200 is paired with every size it may grow to. Beyond that there is a geometric ladder, and the
    sizes at which (1 + alpha) times the size is whole: the worst growth is attained exactly there. Other establishments
    of the cell are absent, smaller, between, equal and larger. Amounts are no multiples of what one worker adds at
    most: the small ones go by a twentieth of that.
    """
    whole = unit.alpha.denominator
    turning = math.floor(1 / unit.alpha)
    ladder = np.unique(np.geomspace(200, largest, 120).astype(np.int64))
    sizes = {*range(201), *ladder.tolist(), *(int(s) // whole * whole for s in ladder), largest}
    sizes |= {turning + i for i in range(-2, 4)} | {whole * i for i in range(1, 6)}
    if step > 1:
        fine, edge = max(step // PARTS, 1), math.floor(step / unit.alpha)
        sizes = {size * step for size in sizes} | {fine * i for i in range(10 * PARTS + 1)}
        sizes |= {edge + i for i in range(-2, 3)}
        largest, turning = min(largest * step, MOST), edge
    rows: set[tuple[int, int, int, int]] = set()
    for before in sorted(size for size in sizes if 0 <= size <= largest):
        top = unit.largest_neighbour(before, step=step)
        few = step == 1 and before <= 200 and top - before <= 200
        afters = range(before + 1, top + 1) if few else {before + 1, (before + top) // 2, top - 1, top}
        for after in afters:
            if not before < after <= top:
                continue
            for other in {
                0,
                before // 2,
                before,
                (before + after) // 2,
                after,
                turning,
                turning + 1,
                min(10 * after, MOST),
                largest,
            }:
                rests = {0, other, min(50 * other + 7, MOST)} if other else {0}
                rows.update((before, after, other, rest) for rest in rests)
    columns = np.array(sorted(rows), dtype=np.int64).T
    return Neighbours(*(np.ascontiguousarray(column) for column in columns))
