"""Units of epsilon, handed out to tables where they take off most error.

If the error of each table depends on its own units alone, units go one by one to the steepest, on convex hulls: no
other allotment has less. Where errors depend on several tables, units are moved from one to another while that helps.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from discreet.arrays import Vector

TRIED = 3
"""Pairs of tables between which units are moved on trial."""


def handed_out(gains: Sequence[Vector], least: Sequence[int], total: int) -> list[float]:
    """Units for each table, from the least that it needs: one by one to the table whose error they lower most."""
    units = list(least)
    queue = [(-gain[0], k) for k, gain in enumerate(gains) if len(gain)]
    heapq.heapify(queue)
    for _ in range(total - sum(least)):
        _, k = heapq.heappop(queue)
        units[k] += 1
        done = units[k] - least[k]
        if done < len(gains[k]):
            heapq.heappush(queue, (-gains[k][done], k))
    return [float(u) for u in units]


def hull_gains(totals: Vector) -> Vector:
    """The reduction by each further unit, on the lower convex hull of totals: never more than by the one before."""
    hull = [0]
    for i in range(1, len(totals)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (totals[b] - totals[a]) * (i - a) <= (totals[i] - totals[a]) * (b - a):
                break
            hull.pop()
        hull.append(i)
    return -np.diff(np.interp(np.arange(len(totals)), hull, totals[hull]))


def polished(units: Sequence[float], least: Sequence[int], value: Callable[[Sequence[float]], float]) -> list[float]:
    """Move units from one table to another as long as that helps, in decreasing steps.

    What each move of one table alone changes tells which pairs are worth trying.
    """
    best, here = list(units), value(units)
    step = 256
    while step:
        cost = {k: value(_moved(best, k, -step)) for k in range(len(best)) if best[k] - step >= least[k]}
        gain = {k: value(_moved(best, k, step)) for k in range(len(best))}
        pairs = [(giver, taker) for giver in cost for taker in gain if giver != taker]
        promising = sorted(pairs, key=lambda pair: cost[pair[0]] + gain[pair[1]])[:TRIED]
        tried = [_moved(_moved(best, giver, -step), taker, step) for giver, taker in promising]
        found = min(((value(units), units) for units in tried), default=(here, best))
        if found[0] < here:
            here, best = found
        else:
            step //= 2
    return best


def _moved(units: Sequence[float], k: int, by: float) -> list[float]:
    return [u + by * (i == k) for i, u in enumerate(units)]
