"""Job histories: who worked where in which quarter, shaped like the data behind the Quarterly Workforce Indicators.

Establishments lie in counties of states and have an industry; sizes are lognormal around the industry's public mean. In
every quarter an establishment has a target, a slow random walk whose steps are larger in some counties and industries.
Jobs also end at a rate of their own. New jobs are filled by people without a job, some of whom worked before. A worker
has one job in a quarter. Flows follow from the rows alone: nothing here computes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.simulate import draws, stream
from discreet.simulate.sectors import EMPLOYERS, SECTORS
from discreet.words.progress import Progress, silent

_DESIGN, _LEVELS, _JOBS = range(3)


@dataclass(frozen=True, slots=True)
class HistoryShape:
    """The shape of the simulated histories at full size.

    Attributes
    ----------
    counties, states, establishments, quarters : how many there are.
    first : the year of the first quarter.
    county_sigma : lognormal spread of how many establishments a county has.
    size_sigma : lognormal spread of sizes around the industry's mean.
    step : standard deviation of a quarter's change of the logarithm of an establishment's target.
    county_step, industry_step : lognormal spreads of that standard deviation.
    ending : the share of jobs that end in a quarter and are filled again.
    returning : the share of those who are hired who worked before.
    """

    counties: int = 200
    states: int = 20
    establishments: int = 160_000
    quarters: int = 8
    first: int = 2024
    county_sigma: float = 1.0
    size_sigma: float = 1.1
    step: float = 0.10
    county_step: float = 0.5
    industry_step: float = 0.3
    ending: float = 0.10
    returning: float = 0.6


SHAPE = HistoryShape()


@dataclass(frozen=True, slots=True)
class HistoryDesign:
    """Establishments, in order of their number."""

    county: Integers
    industry: Integers
    target: Vector
    step: Vector
    state_of_county: Integers


def quarter_names(shape: HistoryShape = SHAPE) -> tuple[str, ...]:
    """The quarters in their order, such as 2024Q1."""
    return tuple(f"{shape.first + t // 4}Q{t % 4 + 1}" for t in range(shape.quarters))


def write(
    folder: str | Path,
    *,
    seed: int = 0,
    share: float = 1.0,
    progress: Progress = silent,
    shape: HistoryShape = SHAPE,
) -> dict[str, Any]:
    """Write `job.parquet` (worker, workplace, quarter) and `workplace.parquet` (workplace, state, county, industry)."""
    employers = design(draws.generator(seed, _DESIGN), share=share, shape=shape)
    return stream.write(
        folder,
        batches(seed=seed, share=share, shape=shape),
        about={"data": "histories", "seed": seed, "share": share, "quarters": list(quarter_names(shape))},
        total=len(employers.county) + round(float(employers.target.sum())) * shape.quarters,
        progress=progress,
    )


def batches(*, seed: int = 0, share: float = 1.0, shape: HistoryShape = SHAPE) -> stream.Batches:
    """Yield ("workplace", batch), then ("job", batch) quarter by quarter; memory holds one quarter's jobs."""
    import pyarrow as pa

    draws.check(seed, share)
    employers = design(draws.generator(seed, _DESIGN), share=share, shape=shape)
    state = employers.state_of_county
    yield (
        "workplace",
        pa.record_batch(
            {
                "workplace": np.arange(len(employers.county)),
                "state": stream.categories(state[employers.county], [f"S{k:02d}" for k in range(state.max() + 1)]),
                "county": stream.categories(employers.county, [f"S{s:02d}-{k:04d}" for k, s in enumerate(state)]),
                "industry": stream.categories(employers.industry, SECTORS),
            }
        ),
    )
    names = quarter_names(shape)
    for quarter, (workplace, worker) in enumerate(_quarters(seed, employers, shape=shape)):
        yield (
            "job",
            pa.record_batch(
                {
                    "worker": worker,
                    "workplace": workplace,
                    "quarter": stream.categories(np.full(len(worker), quarter, dtype=np.int32), names),
                }
            ),
        )


def design(rng: np.random.Generator, *, share: float, shape: HistoryShape) -> HistoryDesign:
    """Establishments: where they are, how large, and how much their size changes."""
    from scipy.special import ndtri

    counties, n = draws.scaled(shape.counties, share, least=6), draws.scaled(shape.establishments, share, least=60)
    states = min(shape.states, counties)
    weight = np.exp(shape.county_sigma * ndtri(draws.midpoints(rng, counties)))
    county = np.sort(rng.choice(counties, n, p=weight / weight.sum()))
    number, mean = np.array([row.private or row.public for row in EMPLOYERS], dtype=np.float64).T
    industry = rng.choice(len(EMPLOYERS), n, p=number / number.sum())
    sigma = shape.size_sigma
    target = mean[industry] * np.exp(sigma * ndtri(draws.midpoints(rng, n)) - sigma**2 / 2)
    turbulence = shape.county_step * ndtri(draws.midpoints(rng, counties))[county]
    turbulence = turbulence + shape.industry_step * ndtri(draws.midpoints(rng, len(EMPLOYERS)))[industry]
    state = np.sort(rng.integers(0, states, counties))
    return HistoryDesign(county, industry, target, shape.step * np.exp(turbulence), state)


def _quarters(seed: int, employers: HistoryDesign, *, shape: HistoryShape) -> Iterator[tuple[Integers, Integers]]:
    """Establishment and worker of every job, quarter by quarter."""
    n, levels = len(employers.county), draws.generator(seed, _LEVELS)
    log_target = np.log(employers.target)
    workplace, worker = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    people, without = 0, np.empty(0, dtype=np.int64)
    for quarter in range(shape.quarters):
        rng = draws.generator(seed, _JOBS, quarter)
        log_target = log_target + employers.step * levels.standard_t(5, n)
        target = np.floor(np.exp(log_target).clip(0, 1e6) + rng.random(n)).astype(np.int64)
        kept = rng.random(len(worker)) >= shape.ending
        kept &= _rank(workplace, kept, rng) < target[workplace]
        leaving, workplace, worker = worker[~kept], workplace[kept], worker[kept]
        hired = np.maximum(target - np.bincount(workplace, minlength=n), 0)
        places = np.repeat(np.arange(n), hired)
        back = min(round(shape.returning * len(places)), len(without))
        without = rng.permutation(without)
        fresh = np.arange(people, people + len(places) - back)
        people += len(fresh)
        newcomers = rng.permutation(np.concatenate([without[:back], fresh]))
        without = np.concatenate([without[back:], leaving])
        workplace, worker = np.concatenate([workplace, places]), np.concatenate([worker, newcomers])
        order = np.argsort(workplace, kind="stable")
        workplace, worker = workplace[order], worker[order]
        yield workplace, worker


def _rank(workplace: Integers, kept: Any, rng: np.random.Generator) -> Integers:
    """The place of every job among those kept at its establishment, in random order; `workplace` is sorted."""
    order = np.lexsort((rng.random(len(workplace)), ~kept, workplace))
    first = np.searchsorted(workplace, workplace[order], side="left")
    rank = np.empty(len(workplace), dtype=np.int64)
    rank[order] = np.arange(len(workplace)) - first
    return rank
