"""Seasons: whether a series is seasonal, and what remains without the season, as known at each origin.

Only arrays. Classical decomposition with centred moving averages; the seasonal figures of an origin are means of what
lies within its history. Positive series are divided by theirs, others have them taken off. A series is adjusted where
its autocorrelation at the season's length stands out (the rule of the M3 and M4 competitions' benchmarks: 90 %) and it
has three seasons.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Mask, Matrix, Vector

STANDS_OUT = 1.645
SEASONS = 3


class Seasons:
    """Seasonal figures of a chunk of series at any origin."""

    def __init__(self, values: Matrix, season: int) -> None:
        self.values, self.season = values, season
        self.half = season // 2
        average = _centred(values, season)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.ratio = _running(values / average, season)
        self.gap = _running(values - average, season)

    def at(self, origin: int) -> tuple[Mask, Mask, Matrix]:
        """Which series are seasonal, which of them by ratio, and the figures of the `season` periods up to `origin`."""
        known = self.values[:, : origin + 1]
        low = np.where(np.isfinite(known), known, np.inf).min(axis=1, initial=np.inf)
        positive = low > 0
        column = origin - self.half
        figures = np.where(positive[:, None], self._mean(self.ratio, column), self._mean(self.gap, column))
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = figures.mean(axis=1, keepdims=True)
            figures = np.where(positive[:, None], figures / middle, figures - middle)
        usable = np.isfinite(figures).all(axis=1) & (~positive | (figures > 0).all(axis=1))
        figures = np.roll(figures, -self.half, axis=1)  # from the periods before `column` to those before `origin`
        return usable & is_seasonal(known, self.season), positive, figures

    def _mean(self, running: tuple[Matrix, Matrix], column: int) -> Matrix:
        if column - self.season + 1 < 0:
            return np.full((len(self.values), self.season), np.nan)
        window = slice(column - self.season + 1, column + 1)
        total, count = (each[:, window] for each in running)
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def adjusted(values: Matrix, origin: int, found: tuple[Mask, Mask, Matrix]) -> Matrix:
    """The values up to `origin` without their seasons; series that are not seasonal as they are."""
    seasonal, positive, figures = found
    season = figures.shape[1]
    whole = figures[:, (np.arange(origin + 1) - origin - 1) % season]
    known = values[:, : origin + 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        without = np.where(positive[:, None], known / whole, known - whole)
    return np.where(seasonal[:, None], without, known)


def restored(forecast: Vector, horizon: int, found: tuple[Mask, Mask, Matrix]) -> Vector:
    """Forecasts of adjusted series with the season of their period."""
    seasonal, positive, figures = found
    figure = figures[:, (horizon - 1) % figures.shape[1]]
    return np.where(seasonal, np.where(positive, forecast * figure, forecast + figure), forecast)


def is_seasonal(known: Matrix, season: int) -> Mask:
    """Whether the autocorrelation at the season's length is clearly larger than those before it."""
    present = np.isfinite(known)
    count = present.sum(axis=1)
    if season < 2 or known.shape[1] < SEASONS * season:
        return np.zeros(len(known), bool)
    mean = np.where(present, known, 0.0).sum(axis=1) / np.maximum(count, 1)
    away = np.where(present, known - mean[:, None], 0.0)
    power = np.einsum("st,st->s", away, away)
    lags = [np.einsum("st,st->s", away[:, lag:], away[:, :-lag]) for lag in range(1, season + 1)]
    r = np.divide(np.stack(lags), power, out=np.zeros((season, len(known))), where=power > 0)
    limit = STANDS_OUT * np.sqrt((1 + 2 * (r[:-1] ** 2).sum(axis=0)) / np.maximum(count, 1))
    return np.asarray((count >= SEASONS * season) & (np.abs(r[-1]) > limit))


def _centred(values: Matrix, season: int) -> Matrix:
    """Centred moving averages over a season; NaN where the window is not full."""
    weights = np.ones(season) if season % 2 else np.concatenate([[0.5], np.ones(season - 1), [0.5]])
    half = len(weights) // 2
    average = np.full_like(values, np.nan)
    if values.shape[1] >= len(weights):
        windows = np.lib.stride_tricks.sliding_window_view(values, len(weights), axis=1)
        average[:, half : values.shape[1] - half] = windows @ (weights / season)
    return average


def _running(parts: Matrix, season: int) -> tuple[Matrix, Matrix]:
    """Sums and numbers of the finite parts so far in the same place of the season."""
    count = np.isfinite(parts).astype(float)
    total = np.where(count > 0, parts, 0.0)
    for t in range(season, parts.shape[1]):
        total[:, t] += total[:, t - season]
        count[:, t] += count[:, t - season]
    return total, count
