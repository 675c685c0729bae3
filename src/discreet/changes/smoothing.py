"""Exponential smoothing of many series at once, from every origin in one pass.

Only arrays. `values` has shape (series, periods), NaN where a series has no value: in such a period there is no error.
All members of a grid of smoothing constants run along the periods together. At each origin the member with the least
sum of squared one-step errors so far makes the forecast. So constants are estimated again at each origin, and no later
value has a part in them.

Levels start from the first value, trends from the mean of the first changes. Theta is that of Assimakopoulos and
Nikolopoulos (2000) in the form of Hyndman and Billah (2003, doi:10.1016/S0169-2070(01)00143-1): simple smoothing with
half the slope of a straight line as its drift. `by_chunks` keeps the arrays small, whatever the number of series.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Matrix, Vector

LEVELS = np.array([0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.36, 0.42, 0.5, 0.58, 0.66, 0.74, 0.82, 0.9, 0.96])
TREND_LEVELS = np.array([0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])
TRENDS = np.array([0.01, 0.05, 0.15, 0.4])
DAMPING = np.array([0.8, 0.9, 0.98])
WARM = 6
"""Values before a trend is smoothed; until then it is the mean change so far."""

CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Smoothed:
    """States of the best members at each origin, each of shape (series, origins)."""

    level: Matrix
    trend: Matrix
    alpha: Matrix
    phi: Matrix


def by_chunks(work: Callable[[Matrix], Matrix], values: Matrix, chunk: int = CHUNK) -> Matrix:
    """`work` on some rows at a time; it maps (series, periods) to (series, ...)."""
    parts = [work(values[start : start + chunk]) for start in range(0, len(values), chunk)]
    return np.concatenate(parts)


def simple(values: Matrix, origins: Integers, *, levels: Vector = LEVELS) -> Smoothed:
    """Simple exponential smoothing: l = l + alpha (y - l)."""
    level = np.full((len(values), len(levels)), np.nan)
    loss = np.zeros_like(level)
    best, chosen = np.full((2, len(values), len(origins)), np.nan)
    wanted = {int(origin): k for k, origin in enumerate(origins)}
    rows = np.arange(len(values))
    for t in range(int(origins.max()) + 1 if len(origins) else 0):
        y = values[:, t, None]
        error = y - level
        started, here = np.isfinite(level), np.isfinite(y)
        loss += np.where(started & here, error * error, 0.0)
        level = np.where(here, np.where(started, level + levels * error, y), level)
        if t in wanted:
            member = loss.argmin(axis=1)
            best[:, wanted[t]], chosen[:, wanted[t]] = level[rows, member], levels[member]
    return Smoothed(best, np.zeros_like(best), chosen, np.ones_like(best))


def with_trend(
    values: Matrix,
    origins: Integers,
    *,
    levels: Vector = TREND_LEVELS,
    trends: Vector = TRENDS,
    damping: Vector | None = None,
) -> Smoothed:
    """Holt's linear trend, or Gardner's damped one: l = l + phi b + alpha e, b = phi b + alpha beta e."""
    phis = np.ones(1) if damping is None else damping
    alpha, beta, phi = (grid.ravel() for grid in np.meshgrid(levels, trends, phis, indexing="ij"))
    level = np.full((len(values), len(alpha)), np.nan)
    trend, loss = np.zeros_like(level), np.zeros_like(level)
    count = np.cumsum(np.isfinite(values), axis=1)
    start = np.isfinite(values).argmax(axis=1)[:, None]
    begin = np.take_along_axis(values, start, axis=1)
    found = np.full((4, len(values), len(origins)), np.nan)
    wanted = {int(origin): k for k, origin in enumerate(origins)}
    rows = np.arange(len(values))
    for t in range(int(origins.max()) + 1 if len(origins) else 0):
        y = values[:, t, None]
        seen, here = count[:, t, None], np.isfinite(y)
        moving = seen > WARM
        ahead = level + phi * trend
        error = np.where(moving & here, y - ahead, 0.0)
        loss += error * error
        first = np.where(here, (y - begin) / np.maximum(t - start, 1), trend)
        trend = np.where(moving, phi * trend + alpha * beta * error, first)
        level = np.where(moving, ahead + alpha * error, np.where(here, y, ahead))
        if t in wanted:
            member = loss.argmin(axis=1)
            found[:, :, wanted[t]] = level[rows, member], trend[rows, member], alpha[member], phi[member]
    return Smoothed(*found)


def ahead(states: Smoothed, horizon: int) -> Matrix:
    """The forecast `horizon` periods after each origin: the level and the trend as it is damped."""
    steps = np.arange(1, horizon + 1)
    return np.asarray(states.level + states.trend * (states.phi[..., None] ** steps).sum(axis=-1))


def theta(values: Matrix, origins: Integers, horizon: int, *, levels: Vector = LEVELS) -> Matrix:
    """Theta forecasts of series without seasons."""
    states = simple(values, origins, levels=levels)
    count = np.cumsum(np.isfinite(values), axis=1)[:, origins]
    drift = _slopes(values)[:, origins] / 2
    remembered = (1 - (1 - states.alpha) ** count) / states.alpha
    return np.asarray(states.level + drift * (horizon - 1 + remembered))


def _slopes(values: Matrix) -> Matrix:
    """The slope of each series' straight line by least squares, up to each column; 0 from one value alone."""
    present = np.isfinite(values)
    n = np.cumsum(present, axis=1).astype(float)
    start = np.where(present.any(axis=1), values[np.arange(len(values)), present.argmax(axis=1)], 0.0)
    y = np.where(present, values - start[:, None], 0.0)
    ty = np.cumsum(n * y, axis=1) - (n + 1) / 2 * np.cumsum(y, axis=1)
    spread = n * (n * n - 1) / 12
    return np.asarray(np.divide(ty, spread, out=np.zeros_like(ty), where=n > 1))
