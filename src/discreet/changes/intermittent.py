"""Croston's method and TSB for intermittent series, many at once and from every origin in one pass.

Only arrays, as in `smoothing`. Croston (1972, doi:10.1057/jors.1972.50) smooths the sizes of events and the periods
between them; `bias` corrected it is Syntetos and Boylan's (2005). TSB (Teunter, Syntetos and Babai 2011,
doi:10.1016/j.ejor.2011.05.018) smooths the chance of an event in every period, so it decreases when nothing happens.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Integers, Matrix, Vector

CROSTON = 0.1
SIZES = np.array([0.05, 0.1, 0.2, 0.4])
CHANCES = np.array([0.02, 0.05, 0.1, 0.2, 0.4])


def croston(values: Matrix, origins: Integers, *, alpha: float = CROSTON, bias: bool = False) -> Matrix:
    """Size over interval of events; 0 before the first event."""
    series = len(values)
    size, interval, since = np.full(series, np.nan), np.full(series, np.nan), np.ones(series)
    found = np.zeros((series, len(origins)))
    wanted = {int(origin): k for k, origin in enumerate(origins)}
    for t in range(int(origins.max()) + 1 if len(origins) else 0):
        y = values[:, t]
        event, begun = np.isfinite(y) & (y != 0), np.isfinite(size)
        size = np.where(event, np.where(begun, size + alpha * (y - size), y), size)
        interval = np.where(event, np.where(begun, interval + alpha * (since - interval), since), interval)
        since = np.where(event, 1.0, since + np.isfinite(y))
        if t in wanted:
            rate = np.where(np.isfinite(size), size / interval, 0.0)
            found[:, wanted[t]] = rate * (1 - alpha / 2) if bias else rate
    return found


def tsb(values: Matrix, origins: Integers, *, sizes: Vector = SIZES, chances: Vector = CHANCES) -> Matrix:
    """Chance of an event times its size; the constants with the least squared errors so far."""
    a, b = (grid.ravel() for grid in np.meshgrid(sizes, chances, indexing="ij"))
    size = np.full((len(values), len(a)), np.nan)
    chance, loss = np.full_like(size, np.nan), np.zeros_like(size)
    found = np.zeros((len(values), len(origins)))
    wanted = {int(origin): k for k, origin in enumerate(origins)}
    rows = np.arange(len(values))
    for t in range(int(origins.max()) + 1 if len(origins) else 0):
        y = values[:, t, None]
        here = np.isfinite(y)
        event = here & (y != 0)
        rate = np.where(np.isfinite(size), size * chance, 0.0)
        loss += np.where(here & np.isfinite(chance), (y - rate) ** 2, 0.0)
        size = np.where(event, np.where(np.isfinite(size), size + a * (y - size), y), size)
        chance = np.where(here, np.where(np.isfinite(chance), chance + b * (event - chance), event), chance)
        if t in wanted:
            member = loss.argmin(axis=1)
            rate = size[rows, member] * chance[rows, member]
            found[:, wanted[t]] = np.where(np.isfinite(rate), rate, 0.0)
    return found
