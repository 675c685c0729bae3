"""Jobs, workers and workplaces of the Tables paper's size, in the shape of LODES.

Haney et al. (2017, sections 3, 6 and 10) describe their extract: three tables, one job per worker, 10.9 million jobs at
about 527,000 establishments, 740 to 815 of them above 1,000 workers. In place x sector x ownership at least half of the
cells have one establishment with more than 65 % of the jobs, and over 93 % of the cells have fewer than 1,000.
Employers and workers of a sector follow public margins (`sectors`); `EconomyShape` holds what was chosen to meet the
paper's figures. Every establishment lies in a place, every establishment has at least one worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from string import ascii_uppercase
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.simulate import draws, stream
from discreet.simulate.sectors import EMPLOYERS, SECTORS, WORKERS
from discreet.words.errors import DataError
from discreet.words.faults import Argument
from discreet.words.progress import Progress, silent

Codes: TypeAlias = NDArray[np.int8]

OWNERSHIP = ("private", "public")
SEX = ("male", "female")
EDUCATION = ("less than high school", "high school", "some college", "bachelor or more")
AGE = ("14-18", "19-21", "22-24", "25-34", "35-44", "45-54", "55-64", "65-99")
RACE = ("White", "Black", "American Indian", "Asian", "Pacific Islander", "two or more")
ETHNICITY = ("not Hispanic", "Hispanic")

STRATA = (100, 10_000, 100_000)
"""Population limits of the paper's four kinds of place."""

SLOTS = 1 << 16
"""Room for workers in an establishment: worker = workplace * SLOTS + slot, the same in every year."""

BLOCK = 1 << 14
"""Establishments in one batch of rows."""

# Where LODES has three age groups and QWI eight: illustrative splits of 29 or younger, 30 to 54, 55 or older.
_AGE_SPLIT = np.array(
    [
        [0.09, 0.20, 0.25, 0.46, 0, 0, 0, 0],
        [0, 0, 0, 0.22, 0.42, 0.36, 0, 0],
        [0, 0, 0, 0, 0, 0, 0.74, 0.26],
    ]
)
# How much likelier an age is at an education than on average: illustrative, no graduates below 19.
_AGE_BY_EDUCATION = np.ones((4, 8), np.float32)
_AGE_BY_EDUCATION[:, :3] = [[4.0, 1.2, 1.0], [1.0, 1.5, 1.2], [0.1, 1.3, 1.2], [0.0, 0.05, 0.8]]

# Paths of the generators.
_PLACES, _EMPLOYERS, _WORKFORCE, _WORKER, _YEAR = range(5)


@dataclass(frozen=True, slots=True)
class EconomyShape:
    """The shape of the simulated economy at full size.

    Attributes
    ----------
    establishments, jobs : the paper's section 10.
    places, counties, states : as many places as 10.9 million jobs fill in the United States (29,500 places).
    population_median, population_sigma : lognormal place populations; US places have a median near 1,300.
    strata : share of the places in each of the paper's four strata, as among US places.
    activity_sigma : lognormal spread of establishments per inhabitant.
    size_sigma : lognormal spread of sizes within a sector, set by the 740 to 815 establishments above 1,000.
    largest : no establishment is larger.
    concentration : of the Dirichlet law of an establishment's worker shares around its sector's.
    growth_scale, growth_exponent : yearly log growth is Laplace with scale growth_scale * size ** -growth_exponent
        (tent-shaped growth rates whose spread falls with size, Stanley et al. 1996, doi:10.1038/379804a0).
    drift : expected yearly growth of a surviving establishment.
    deaths : yearly probability that an establishment of one worker closes; falls with the root of its size.
    births : new establishments per establishment and year.
    birth_size : mean size of a new establishment.
    """

    establishments: int = 527_000
    jobs: int = 10_900_000
    places: int = 2_500
    counties: int = 210
    states: int = 4
    population_median: float = 1_340.0
    population_sigma: float = 1.95
    strata: tuple[float, float, float, float] = (0.08, 0.81, 0.10, 0.01)
    activity_sigma: float = 0.5
    size_sigma: float = 1.86
    largest: int = 20_000
    concentration: float = 30.0
    growth_scale: float = 0.2
    growth_exponent: float = 0.15
    drift: float = 0.01
    deaths: float = 0.03
    births: float = 0.015
    birth_size: float = 5.0


SHAPE = EconomyShape()


@dataclass(frozen=True, slots=True)
class Places:
    """Places in order of population, with the county and state that hold them (codes from 0)."""

    population: Integers
    county: Integers
    state_of_county: Integers


@dataclass(frozen=True, slots=True)
class Workplaces:
    """Establishments of one year, as codes into `places`, SECTORS and OWNERSHIP; `id` is the same in every year."""

    places: Places
    id: Integers
    place: Integers
    sector: Integers
    ownership: Integers
    size: Integers

    def rows(self, chosen: slice | Mask) -> Workplaces:
        """Some of the establishments."""
        columns = (self.id, self.place, self.sector, self.ownership, self.size)
        return Workplaces(self.places, *(column[chosen] for column in columns))


@dataclass(frozen=True, slots=True)
class SimulatedWorkers:
    """Workers as codes into SEX, AGE, RACE, ETHNICITY and EDUCATION; `workplace` is a row of their `Workplaces`."""

    id: Integers
    workplace: Integers
    sex: Codes
    age: Codes
    race: Codes
    ethnicity: Codes
    education: Codes


def write(
    folder: str | Path,
    *,
    seed: int = 0,
    share: float = 1.0,
    year: int = 0,
    progress: Progress = silent,
    shape: EconomyShape = SHAPE,
) -> dict[str, Any]:
    """Write `workplace`, `worker`, `job` and the joined `jobs` (WorkerFull, one row per job) as Parquet.

    `share` of full size; `year` counts years after the first: the same establishments, some closed, some new.
    Returns what was written.
    """
    size = _frame(seed=seed, share=share, year=year, shape=shape).size
    return stream.write(
        folder,
        batches(seed=seed, share=share, year=year, shape=shape),
        about={"data": "lodes", "seed": seed, "share": share, "year": year},
        total=int((size > 0).sum() + 3 * size.sum()),
        progress=progress,
    )


def batches(*, seed: int = 0, share: float = 1.0, year: int = 0, shape: EconomyShape = SHAPE) -> stream.Batches:
    """Yield ("workplace" | "worker" | "job" | "jobs", batch), a block of establishments at a time."""
    frame = _frame(seed=seed, share=share, year=year, shape=shape)
    parts = (frame.rows(slice(start, start + BLOCK)) for start in range(0, len(frame.id), BLOCK))
    return (named for part in parts for named in _tables(part, _workers(part, seed=seed, shape=shape)))


def workplaces(*, seed: int = 0, share: float = 1.0, year: int = 0, shape: EconomyShape = SHAPE) -> Workplaces:
    """The establishments of a year with their sizes: all that the workers hang on, without the workers."""
    frame = _frame(seed=seed, share=share, year=year, shape=shape)
    return frame.rows(frame.size > 0)


def _frame(*, seed: int, share: float, year: int, shape: EconomyShape) -> Workplaces:
    """Every establishment that ever opened; closed ones have size 0, so row and id agree in every year."""
    draws.check(seed, share)
    if year < 0:
        raise DataError(
            (Argument("year", year), " is before the first."),
            "Years count from 0.",
            "Ask for 0, 1 or later.",
            about="year",
        )
    places = _places(draws.generator(seed, _PLACES), share=share, shape=shape)
    frame = _first_year(draws.generator(seed, _EMPLOYERS), places, share=share, shape=shape)
    for later in range(1, year + 1):
        frame = _next_year(draws.generator(seed, _YEAR, later), frame, shape=shape)
    return frame


def _places(rng: np.random.Generator, *, share: float, shape: EconomyShape) -> Places:
    from scipy.special import ndtr, ndtri

    centre, spread = np.log(shape.population_median), shape.population_sigma
    edges = ndtr((np.log([5, *STRATA, 4_000_000]) - centre) / spread)
    populations = []
    for low, high, part in zip(edges[:-1], edges[1:], shape.strata, strict=True):
        n = draws.scaled(shape.places, part * share)
        populations.append(np.exp(centre + spread * ndtri(low + (high - low) * draws.midpoints(rng, n))))
    population = np.sort(np.concatenate(populations)).astype(np.int64)
    counties = draws.scaled(shape.counties, share, least=shape.states)
    state = np.sort(np.concatenate([np.arange(shape.states), rng.integers(shape.states, size=counties)])[:counties])
    return Places(population, rng.integers(counties, size=len(population)), state)


def _first_year(rng: np.random.Generator, places: Places, *, share: float, shape: EconomyShape) -> Workplaces:
    """Sizes first, then a place with at least as many inhabitants as the establishment has workers."""
    from scipy.special import ndtri

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

    weight = places.population * np.exp(shape.activity_sigma * rng.standard_normal(len(places.population)))
    reach = np.concatenate([[0.0], np.cumsum(weight) / weight.sum()])
    smallest = np.minimum(np.searchsorted(places.population, size), len(weight) - 1)
    at = reach[smallest] + (1 - reach[smallest]) * rng.random(n)
    place = np.minimum(np.searchsorted(reach, at, side="right") - 1, len(weight) - 1)
    return Workplaces(places, np.arange(n), place, sector[kind], ownership[kind], size)


def _next_year(rng: np.random.Generator, before: Workplaces, *, shape: EconomyShape) -> Workplaces:
    """Survivors grow, some close, new ones open where others are."""
    n = len(before.id)
    root = np.sqrt(np.maximum(before.size, 1))
    scale = shape.growth_scale * root ** (-2 * shape.growth_exponent)
    growth = np.exp(rng.laplace(scale=scale)) * (1 - scale**2) * (1 + shape.drift)
    size = np.floor(before.size * growth + rng.random(n)).astype(np.int64).clip(1, SLOTS - 1)
    size[(before.size == 0) | (rng.random(n) < shape.deaths / root)] = 0
    model = rng.integers(n, size=round(shape.births * n))
    place, sector, ownership = (
        np.concatenate([code, code[model]]) for code in (before.place, before.sector, before.ownership)
    )
    size = np.concatenate([size, rng.geometric(1 / shape.birth_size, len(model))])
    return Workplaces(before.places, np.arange(len(size)), place, sector, ownership, size)


def _workers(part: Workplaces, *, seed: int, shape: EconomyShape) -> SimulatedWorkers:
    """An establishment's shares come from generators of its block, a worker's draws from their own number.

    Later years append to a block, so each group of attributes needs a generator to itself.
    """
    block = int(part.id[0]) // BLOCK
    skill, age, origin = (
        draws.generator(seed, _WORKFORCE, block, group)
        .standard_gamma(shape.concentration * shares[part.sector])
        .astype(np.float32)
        for group, shares in enumerate(sector_shares())
    )
    at = np.repeat(np.arange(len(part.id)), part.size)
    slot = np.arange(len(at)) - (np.cumsum(part.size) - part.size)[at]
    worker = part.id[at] * SLOTS + slot
    draw = [draws.hashed(key, worker.astype(np.uint64)) for key in draws.keys(seed, 3, _WORKER)]
    sex, education = np.divmod(_pick(skill[at], draw[0]), len(EDUCATION))
    race, ethnicity = np.divmod(_pick(origin[at], draw[1]), len(ETHNICITY))
    ages = _pick(age[at] * _AGE_BY_EDUCATION[education], draw[2])
    return SimulatedWorkers(worker, at, sex, ages, race, ethnicity, education)


def _pick(weight: NDArray[np.float32], draw: Vector) -> NDArray[np.int8]:
    """The category of each row whose share of the weight holds the uniform draw."""
    reach = np.cumsum(weight, axis=1)
    passed = reach[:, :-1] <= draw[:, None] * reach[:, -1:]
    return np.asarray(passed.sum(axis=1), dtype=np.int8)


def sector_shares() -> tuple[Matrix, Matrix, Matrix]:
    """Shares of sex x education, age and race x ethnicity, one row per sector; rows add up to 1."""
    female, education, age, race, hispanic = (np.array(column) for column in zip(*WORKERS, strict=True))
    sex, ethnicity = np.stack([1 - female, female], axis=1), np.stack([1 - hispanic, hispanic], axis=1)
    skill = (sex[:, :, None] * education[:, None, :]).reshape(len(SECTORS), -1)
    origin = (race[:, :, None] * ethnicity[:, None, :]).reshape(len(SECTORS), -1)
    ages = age @ _AGE_SPLIT
    return skill / skill.sum(1, keepdims=True), ages / ages.sum(1, keepdims=True), origin / origin.sum(1, keepdims=True)


def state_names(count: int) -> list[str]:
    """A to Z, then AA, AB and so on."""
    names = (first + second for first in ("", *ascii_uppercase) for second in ascii_uppercase)
    return list(islice(names, count))


def _tables(part: Workplaces, workers: SimulatedWorkers) -> stream.Batches:
    """The block's rows of the four tables; codes become labels."""
    import pyarrow as pa

    places = part.places
    county, states = places.county[part.place], state_names(int(places.state_of_county.max()) + 1)
    state = [states[code] for code in places.state_of_county]
    workplace = {
        "workplace": pa.array(part.id),
        "state": stream.categories(places.state_of_county[county], states),
        "county": stream.categories(county, [f"{state[k]}{k:03d}" for k in range(len(state))]),
        "place": stream.categories(part.place, [f"{state[c]}{k:05d}" for k, c in enumerate(places.county)]),
        "place_population": pa.array(places.population[part.place]),
        "sector": stream.categories(part.sector, SECTORS),
        "ownership": stream.categories(part.ownership, OWNERSHIP),
    }
    worker = {
        "worker": pa.array(workers.id),
        "sex": stream.categories(workers.sex, SEX),
        "age": stream.categories(workers.age, AGE),
        "race": stream.categories(workers.race, RACE),
        "ethnicity": stream.categories(workers.ethnicity, ETHNICITY),
        "education": stream.categories(workers.education, EDUCATION),
    }
    employer = {name: column.take(pa.array(workers.workplace)) for name, column in workplace.items()}
    yield "workplace", pa.record_batch(workplace).filter(pa.array(part.size > 0))
    yield "worker", pa.record_batch(worker)
    yield "job", pa.record_batch({"worker": worker["worker"], "workplace": employer["workplace"]})
    yield "jobs", pa.record_batch({**employer, **worker})
