"""A nation's establishments with jobs and payroll, one row each, in the shape of the QCEW's reports.

The Quarterly Census of Employment and Wages has employment, wages and establishments by county, six-digit industry and
ownership. Numbers of establishments and mean sizes of the sectors are public (`sectors`); mean pay is set near the
published annual averages of 2016. Codes are made up, but nest as real ones do: the first five, four, three and two
digits of an industry are its parents, and the first two of a county are its state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.simulate import draws, stream
from discreet.simulate.lodes import OWNERSHIP
from discreet.simulate.sectors import EMPLOYERS
from discreet.words.progress import Progress, silent

BLOCK = 1 << 17
"""Establishments in one batch of rows."""

TWO_DIGITS = {"31-33": ("31", "32", "33"), "44-45": ("44", "45"), "48-49": ("48", "49")}
"""Sectors that have several two-digit codes."""

CHILDREN = ((2, 6), (1, 5), (1, 3), (1, 2))
"""The least and the most codes of the next level in one of two, three, four and five digits."""

PAY = (30, 95, 100, 58, 64, 72, 30, 50, 95, 97, 53, 92, 113, 38, 48, 48, 37, 19, 35, 55)
"""Mean annual pay of a job in each sector, in thousands, in the order of EMPLOYERS."""

MOST_PAY = 250_000
"""No job pays more: the cap that the schema declares."""

_CODES, _PLACES, _EMPLOYERS = range(3)


@dataclass(frozen=True, slots=True)
class NationalShape:
    """The shape of the simulated nation at full size.

    Attributes
    ----------
    establishments, jobs : a third of the United States' in 2016.
    counties, states : those of the United States.
    county_sigma : lognormal spread of establishments by county.
    size_sigma, largest : as in the jobs of `lodes`.
    pay_sigma : lognormal spread of an establishment's mean pay around its sector's.
    """

    establishments: int = 3_000_000
    jobs: int = 43_000_000
    counties: int = 3_100
    states: int = 51
    county_sigma: float = 1.4
    size_sigma: float = 1.86
    largest: int = 20_000
    pay_sigma: float = 0.45


SHAPE = NationalShape()


@dataclass(frozen=True, slots=True)
class Firms:
    """Establishments as codes into `industries`, `counties` and OWNERSHIP."""

    industries: list[str]
    counties: list[str]
    industry: Integers
    county: Integers
    ownership: Integers
    size: Integers
    payroll: Integers


def write(
    folder: str | Path,
    *,
    seed: int = 0,
    share: float = 1.0,
    progress: Progress = silent,
    shape: NationalShape = SHAPE,
) -> dict[str, Any]:
    """Write `jobs.parquet`: one row per establishment with codes, `jobs` and `payroll`. Returns what was written."""
    found = firms(seed=seed, share=share, shape=shape)
    return stream.write(
        folder,
        _batches(found),
        about={"data": "national", "seed": seed, "share": share},
        total=len(found.size),
        progress=progress,
    )


def batches(*, seed: int = 0, share: float = 1.0, shape: NationalShape = SHAPE) -> stream.Batches:
    """Yield ("jobs", batch), a block of establishments at a time."""
    return _batches(firms(seed=seed, share=share, shape=shape))


def firms(*, seed: int = 0, share: float = 1.0, shape: NationalShape = SHAPE) -> Firms:
    """All establishments, drawn from a seed."""
    from scipy.special import ndtri

    draws.check(seed, share)
    codes, places, rng = (draws.generator(seed, path) for path in (_CODES, _PLACES, _EMPLOYERS))
    n, jobs = draws.scaled(shape.establishments, share), draws.scaled(shape.jobs, share)
    kinds = [
        (sector, ownership, *known)
        for sector, row in enumerate(EMPLOYERS)
        for ownership, known in enumerate((row.private, row.public))
        if known
    ]
    sector, ownership, count, mean = (np.array(column) for column in zip(*kinds, strict=True))
    kind = np.searchsorted(np.cumsum(count) / count.sum(), draws.midpoints(rng, n))
    relative = mean[kind] * np.exp(shape.size_sigma * ndtri(draws.midpoints_within(rng, kind)))
    relative = np.minimum(relative, relative.mean() * shape.largest * n / jobs)
    size = 1 + draws.to_integers((jobs - n) * relative / relative.sum(), rng)
    pay = np.array(PAY)[sector[kind]] * 1000 * np.exp(shape.pay_sigma * rng.standard_normal(n) - shape.pay_sigma**2 / 2)
    industries, first = _industries(codes)
    counties, reach = _counties(places, share=share, shape=shape)
    return Firms(
        industries,
        counties,
        _industry(rng, sector[kind], first),
        np.minimum(np.searchsorted(reach, rng.random(n)), len(counties) - 1),
        ownership[kind],
        size,
        np.rint(size * np.minimum(pay, MOST_PAY)).astype(np.int64),
    )


def _industries(rng: np.random.Generator) -> tuple[list[str], Integers]:
    """Six-digit codes in order, and where the codes of each sector begin, with the end at last."""
    found: list[str] = []
    first = [0]
    for row in EMPLOYERS:
        name = row.sector.split()[0]
        for two in TWO_DIGITS.get(name, (name,)):
            codes = [two]
            for least, most in CHILDREN:
                number = iter(rng.integers(least, most + 1, len(codes)).tolist())
                codes = [f"{code}{digit}" for code in codes for digit in range(1, 1 + next(number))]
            found += codes
        first.append(len(found))
    return found, np.array(first)


def _industry(rng: np.random.Generator, sector: Integers, first: Integers) -> Integers:
    """An industry of each establishment's sector; within a sector a few are common and most are rare."""
    size = first[sector + 1] - first[sector]
    return np.asarray(first[sector] + np.floor(size * rng.random(len(sector)) ** 2.5).astype(np.int64))


def _counties(rng: np.random.Generator, *, share: float, shape: NationalShape) -> tuple[list[str], Vector]:
    """Codes of five digits, the first two the state's, and the running shares of establishments."""
    n = draws.scaled(shape.counties, share**0.5, least=shape.states)
    state = np.sort(np.concatenate([np.arange(shape.states), rng.integers(shape.states, size=n - shape.states)]))
    within = np.arange(n) - np.searchsorted(state, state)
    weight = np.exp(shape.county_sigma * rng.standard_normal(n))
    codes = [f"{one + 1:02d}{2 * other + 1:03d}" for one, other in zip(state.tolist(), within.tolist(), strict=True)]
    return codes, np.cumsum(weight) / weight.sum()


def _batches(found: Firms) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa

    for start in range(0, len(found.size), BLOCK):
        rows = slice(start, start + BLOCK)
        columns = {
            "workplace": pa.array(np.arange(start, start + len(found.size[rows]))),
            "naics6": stream.categories(found.industry[rows].astype(np.int32), found.industries),
            "county": stream.categories(found.county[rows].astype(np.int32), found.counties),
            "ownership": stream.categories(found.ownership[rows].astype(np.int8), OWNERSHIP),
            "jobs": pa.array(found.size[rows]),
            "payroll": pa.array(found.payroll[rows]),
        }
        yield "jobs", pa.RecordBatch.from_pydict(columns)
