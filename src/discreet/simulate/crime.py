"""Monthly crime counts by census tract with leading indicators, in the shape of the dissertation's Pittsburgh data.

Schneider (2014, section 2.4): violent crimes in 175 tracts and 144 months (January 1990 to December 2001), led by drug
calls, shots-fired calls and simple assaults at lags of one to four months. Table 2.1 gives their moments, and the
constants here were chosen to meet them. No forecasting model had a part in the choice, so the panel has the paper's
shape and not its difficulty. Least squares on the indicators correlates 8.6 % with the five largest counts of each
month, where the paper prints 2.5 %. Without any lead (`follow=0`) it is still 5.5 %, because tracts drift slowly, as
Pittsburgh's do (6 % there). No strength of the lead reaches the paper's figure; more variance does (the study `pmf`).

A tract's level, the city's years and months and a slow local drift move all four series together. Flares, sudden
local rises that fade, appear in the indicators at once and in violent crime one to four months later; a part of them
never gets there. Counts are gamma-mixed Poisson.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.simulate import draws, stream
from discreet.words.progress import Progress, silent

# Violent offences of a month and of a year relative to their mean: City of Pittsburgh, January 1990 to June 2000;
# the last year is set to the one before.
_MONTH = np.array([0.99, 0.90, 0.97, 0.95, 0.96, 0.96, 1.06, 1.05, 1.00, 1.08, 0.99, 1.11])
_YEAR = np.array([1.12, 1.14, 1.29, 1.28, 1.09, 0.93, 0.75, 0.77, 0.83, 0.83, 0.94, 0.94])

_BEFORE = 36
"""Months drawn before the first one, so that drift and flares have started."""


@dataclass(frozen=True, slots=True)
class Series:
    """One kind of count.

    Attributes
    ----------
    mean : of table 2.1.
    floor : the part of the mean that every tract has alike.
    spread : coefficient of variation of tract levels above the floor, which are gamma.
    kinship : correlation of a tract's level with its level in general.
    dispersion : relative variance of the gamma factor of one month.
    flare : rise at a flare of height 1, in Poisson standard deviations of the tract's level.
    """

    mean: float
    floor: float
    spread: float
    kinship: float
    dispersion: float
    flare: float


@dataclass(frozen=True, slots=True)
class CityShape:
    """What the simulated city looks like.

    Attributes
    ----------
    tracts, months : the dissertation's.
    violent, drugs, shots, assaults : the four series, of which the first is led by the others.
    lead : weights of the flare one to four months before, in violent crime.
    flare_rate, flare_fading : probability that a flare begins in a tract and month; share that is left a month later.
    follow : share of the flares that reach violent crime.
    drift_sigma, drift_persistence : of a tract's slow drift in log level. Pittsburgh's tracts have
        autocorrelations of 0.23 at one month and 0.15 at twelve.
    """

    tracts: int = 175
    months: int = 144
    violent: Series = Series(1.2, 0.0, 1.18, 0.9, 0.05, 3.0)
    drugs: Series = Series(1.9, 0.0, 1.9, 0.8, 0.2, 4.0)
    shots: Series = Series(1.6, 0.4, 2.35, 0.8, 0.1, 3.0)
    assaults: Series = Series(3.8, 0.5, 0.95, 0.9, 0.05, 2.0)
    lead: tuple[float, float, float, float] = (0.4, 0.3, 0.2, 0.1)
    flare_rate: float = 0.02
    flare_fading: float = 0.6
    follow: float = 0.7
    drift_sigma: float = 0.25
    drift_persistence: float = 0.98


SHAPE = CityShape()


def write(
    folder: str | Path,
    *,
    seed: int = 0,
    share: float = 1.0,
    progress: Progress = silent,
    shape: CityShape = SHAPE,
) -> dict[str, Any]:
    """Write `crime.parquet`: tract, year, month, t, violent, drugs, shots, assaults, in order of tract and time."""
    return stream.write(
        folder,
        batches(seed=seed, share=share, shape=shape),
        about={"data": "crime", "seed": seed, "share": share},
        total=draws.scaled(shape.tracts, share) * shape.months,
        progress=progress,
    )


def batches(*, seed: int = 0, share: float = 1.0, shape: CityShape = SHAPE) -> stream.Batches:
    """Yield ("crime", batch), once: the panel is small. `share` scales the number of tracts."""
    import pyarrow as pa

    draws.check(seed, share)
    counts = _counts(draws.generator(seed), tracts=draws.scaled(shape.tracts, share), shape=shape)
    tract, t = np.indices(counts["violent"].shape)
    columns = {"tract": 1 + tract, "year": 1990 + t // 12, "month": 1 + t % 12, "t": 1 + t, **counts}
    return iter([("crime", pa.record_batch({name: column.ravel() for name, column in columns.items()}))])


def _counts(rng: np.random.Generator, *, tracts: int, shape: CityShape) -> dict[str, Any]:
    from scipy.signal import lfilter
    from scipy.special import gammaincinv, ndtri

    grid = (tracts, _BEFORE + shape.months)
    t = np.arange(-_BEFORE, shape.months)
    city = _MONTH[t % 12] * _YEAR[np.clip(t // 12, 0, len(_YEAR) - 1)]
    keep = shape.drift_persistence
    drift = lfilter([1.0], [1.0, -keep], np.sqrt(1 - keep**2) * shape.drift_sigma * rng.standard_normal(grid), axis=1)
    heights = np.where(rng.random(grid) < shape.flare_rate, rng.uniform(0.5, 1.5, grid), 0.0)
    follows = rng.random(grid) < shape.follow
    fading = ([1.0], [1.0, -shape.flare_fading])
    flare = lfilter(*fading, heights, axis=1)
    later = lfilter([0.0, *shape.lead], [1.0], lfilter(*fading, heights * follows, axis=1), axis=1)

    general = ndtri(draws.midpoints(rng, tracts))
    counts = {}
    for name in ("violent", "drugs", "shots", "assaults"):
        series: Series = getattr(shape, name)
        own = series.kinship * general + np.sqrt(1 - series.kinship**2) * ndtri(draws.midpoints(rng, tracts))
        place = (np.argsort(np.argsort(own)) + 0.5) / tracts
        level = gammaincinv(series.spread**-2, place)
        level = (series.floor + (series.mean - series.floor) * level / level.mean())[:, None]
        rate = level * city * np.exp(drift) + series.flare * np.sqrt(level) * (later if name == "violent" else flare)
        rate = rate[:, _BEFORE:] * series.mean / rate[:, _BEFORE:].mean()
        noise = rng.gamma(1 / series.dispersion, series.dispersion, rate.shape)
        counts[name] = rng.poisson(rate * noise)
    return counts
