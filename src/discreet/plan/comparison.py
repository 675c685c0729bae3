"""The likely error of a release compared with noise infusion, on simulated data of the same shape.

The truth is confidential, so it is made up: cells with the published counts, filled with establishments whose sizes
are as skewed as in the LODES simulation. Their truth is known, so both protections can be compared with it. Only
published numbers and public constants enter, so the comparison reveals nothing beyond the release.

Sums are divided in the same way. How many establishments share one is public where their number is published beside it.
Elsewhere it follows from how much of the cap a worker adds on average, which nobody knows: three shares are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.audit.stand_in import MOST_JOBS, same_shape
from discreet.data.columns import column_of, integers_of
from discreet.noise.source import SeededSource
from discreet.privacy.units import EstablishmentNodes
from discreet.report.comparison import SHARES_OF_CAP, SHOWN, Group, SimulatedErrors, shares_told
from discreet.simulate.lodes import SHAPE
from discreet.simulate.national import NationalShape
from discreet.tables.baseline.establishments import Histograms
from discreet.tables.baseline.infusion import Infusion
from discreet.tables.cells import Cells
from discreet.tables.prepared import Prepared
from discreet.tables.query import CountQuery
from discreet.tables.ranking import spearman
from discreet.tables.release import CountRelease
from discreet.utility.strata import NAMES, stratum_of

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CELLS = 2_000
"""Workplace cells that are simulated; larger tables are sampled."""

FEW_CELLS = 500
"""Cells that are simulated before anything is released."""

FEWEST_CELLS = 20
"""Smaller tables have no shape to speak of."""

TRIALS = 4
MOST_STRATA = 24
EDGES = (0, 1, 10, 100, 1_000, 10_000, np.inf)
CLASSES = ("0", "1 to 9", "10 to 99", "100 to 999", "1000 to 9999", "10 000 and more")
CLASSES_OF_SUMS = (
    "below the cap",
    *(f"{low} to {high} caps" for low, high in (("1", "10"), ("10", "100"), ("100", "1000"), ("1000", "10 000"))),
    "10 000 caps and more",
)
SIGMA_OF_AMOUNTS = float(np.hypot(SHAPE.size_sigma, NationalShape().pay_sigma))
"""Lognormal spread of an establishment's amount: of its size, and of what it pays on average."""


def compare(
    published: CountRelease, query: CountQuery, ready: Prepared, *, stratum: str | None = None, seed: int = 0
) -> SimulatedErrors | str:
    """Compare the release's mechanism with infusion, or say why data of its shape would not show its error."""
    values = np.maximum(published.counts, 0).sum(axis=1, dtype=np.float64)
    filled, rng = np.flatnonzero(values), np.random.default_rng(seed)
    if why_not := _not_comparable(query, values[filled]):
        return why_not
    rows = np.sort(rng.choice(filled, min(MOST_CELLS, filled.size), replace=False))
    counts, keys = np.maximum(published.counts[rows], 0), published.keys.take(column_of(rows))
    names = (published.worker_by, published.levels, keys)
    if query.magnitude is None:
        worlds = {SHOWN: same_shape(counts, *names, rng)}
    elif published.establishments is not None:
        numbers = {SHOWN: np.asarray(published.establishments[rows], dtype=np.int64)}
    else:
        numbers = {share: _establishments(values[rows] / (share * query.step), rng) for share in SHARES_OF_CAP}
    if query.magnitude is not None:
        about: dict[str, Any] = {"sigma": SIGMA_OF_AMOUNTS}
        worlds = {share: same_shape(counts, *names, rng, number=each, **about) for share, each in numbers.items()}
    errors = {share: _errors(query, ready, each, rng, seed) for share, each in worlds.items()}
    world, (cells, drawn, ours, infused) = worlds[SHOWN], errors[SHOWN]
    infusion, true = _infusion(query), cells.counts.sum(axis=1)
    factors = infusion.factor(rng.random(len(world.counts)))
    table = infusion.publish(world, factors, source=SeededSource(seed))
    name = stratum or _default_stratum(cells.keys)
    return SimulatedErrors(
        cells=len(rows),
        of=len(published.counts),
        whole=_group("all", np.ones(ours.shape, dtype=np.bool_), cells.counts, ours, infused),
        by_size=tuple(_by_size(cells.counts, ours, infused, query)),
        stratum=name,
        by_stratum=tuple(_by_stratum(cells.keys, name, cells.counts, ours, infused)) if name else (),
        rank=spearman(drawn.sum(axis=1), true),
        infused_rank=spearman(table.sum(axis=1), true),
        magnitude=query.magnitude,
        by_share_of_cap={share: each.ratio for share, each in errors.items()} if len(errors) > 1 else {},
    )


class Foreseen(NamedTuple):
    """Before anything is released: the error beside infusion's, and the shares of numbers that are drawn below zero."""

    told: str
    below: tuple[float, ...]


def foreseen(query: CountQuery, ready: Prepared, jobs: Vector) -> Foreseen | None:
    """The same before anything is released, on establishments of public sizes; None where they would not show it."""
    import pyarrow as pa

    jobs = np.floor(jobs[jobs >= 1])
    if _not_comparable(query, jobs):
        return None
    rng = np.random.default_rng(0)
    jobs = rng.choice(jobs, min(FEW_CELLS, jobs.size), replace=False)
    names = (("kind",), tuple((i,) for i in range(query.levels)), pa.table({"cell": np.arange(len(jobs))}))
    found, below = [], []
    for share in SHARES_OF_CAP if query.magnitude is not None else (1.0,):
        whole = np.rint(jobs * share * query.step).astype(np.int64)
        counts = np.repeat(whole[:, None] // query.levels, query.levels, axis=1)
        counts[:, 0] += whole - counts.sum(axis=1)
        number, sigma = _establishments(jobs, rng), SHAPE.size_sigma if query.magnitude is None else SIGMA_OF_AMOUNTS
        world = same_shape(counts, *names, rng, number=number, sigma=sigma)
        errors = _errors(query, ready, world, rng, 0)
        found.append(f"{errors.ratio:.2f}")
        below.append(float((query._draw(ready, errors.cells, SeededSource(0)) < 0).mean()))
    told = f"On simulated establishments of the public sizes the error is {' or '.join(found)} times that of noise "
    told += "infusion, which promises nothing"
    supposed = "" if query.magnitude is None else f", if a worker adds {shares_told()} of the cap on average"
    return Foreseen(f"{told}{supposed}.", tuple(below))


class _Simulated(NamedTuple):
    """The mean absolute error of every number under the release's mechanism, and under infusion.

    They are of these cells; `drawn` are the numbers of the last trial.
    """

    cells: Cells
    drawn: Integers
    ours: Matrix
    infused: Matrix

    @property
    def ratio(self) -> float:
        return float(self.ours.mean() / self.infused.mean()) if self.infused.any() else np.inf


def _errors(query: CountQuery, ready: Prepared, world: Histograms, rng: np.random.Generator, seed: int) -> _Simulated:
    cells = world.cells(unions=ready.mechanism.by_unions)
    ours = np.zeros(cells.counts.shape)
    for trial in range(TRIALS):
        drawn = query._draw(ready, cells, SeededSource(seed + trial))
        ours += np.abs(drawn - cells.counts) / TRIALS
    return _Simulated(cells, drawn, ours, _infusion(query).expected_error(world, rng=rng, trials=TRIALS))


def _infusion(query: CountQuery) -> Infusion:
    """Small counts are replaced; a sum is no small count."""
    return Infusion() if query.magnitude is None else Infusion(small=0)


def _establishments(jobs: Vector, rng: np.random.Generator) -> Integers:
    """How many establishments cells with so many jobs have, as in LODES."""
    return np.asarray(rng.poisson(np.minimum(jobs, MOST_JOBS) * SHAPE.establishments / SHAPE.jobs), dtype=np.int64)


def _not_comparable(query: CountQuery, values: Vector) -> str:
    """Why no economy with so many jobs, or such sums, in its cells is simulated, if none is."""
    if isinstance(query.account.unit, EstablishmentNodes):
        return "The published counts do not include the establishments left out, which cause most of the error."
    if any(name in query.jobs.schema.worker_attributes for name in query.where):
        return "Only some workers are counted, so the published counts do not show how large the establishments are."
    if values.size < FEWEST_CELLS:
        found = "jobs" if query.magnitude is None else f"{query.magnitude} above zero"
        return f"Fewer than {FEWEST_CELLS} workplace cells have {found}: too few for a shape to be simulated."
    jobs = values / (min(SHARES_OF_CAP) * query.step) if query.magnitude is not None else values
    if jobs.mean() * min(jobs.size, MOST_CELLS) > MOST_JOBS:
        return "The published numbers are too large for an economy of their shape to be simulated."
    return ""


def _group(name: str, chosen: Mask, true: Integers, ours: Matrix, infused: Matrix) -> Group:
    return Group(
        name=name,
        counts=int(chosen.sum()),
        mean=float(true[chosen].mean()),
        ours=float(ours[chosen].mean()),
        infusion=float(infused[chosen].mean()),
    )


def _by_size(true: Integers, ours: Matrix, infused: Matrix, query: CountQuery) -> Iterator[Group]:
    names = CLASSES if query.magnitude is None else CLASSES_OF_SUMS
    for name, (low, high) in zip(names, pairwise(EDGES), strict=True):
        chosen = (true >= low * query.step) & (true < high * query.step)
        if chosen.any():
            yield _group(name, chosen, true, ours, infused)


def _default_stratum(keys: pa.Table) -> str:
    """Populations of places, else the attribute with the most values that can still be listed."""
    numbers = {name: len(keys[name].unique()) for name in keys.column_names}
    fitting = [name for name, n in numbers.items() if name == "place_population" or 1 < n <= MOST_STRATA]
    return max(fitting, key=lambda name: (name == "place_population", numbers[name]), default="")


def _by_stratum(keys: pa.Table, name: str, true: Integers, ours: Matrix, infused: Matrix) -> Iterator[Group]:
    if name == "place_population":
        codes, names = stratum_of(integers_of(keys[name])), list(NAMES)
    else:
        coded = keys[name].combine_chunks().dictionary_encode()
        codes = np.asarray(np.from_dlpack(coded.indices), dtype=np.int64)
        names = [str(value) for value in coded.dictionary.to_pylist()]
    for code in sorted(np.unique(codes)[:MOST_STRATA], key=lambda code: names[code] if len(names) > 4 else code):
        chosen = np.broadcast_to((codes == code)[:, None], true.shape)
        yield _group(names[code], chosen, true, ours, infused)
