"""The likely error of a release compared with noise infusion, on simulated data of the same shape.

The truth is confidential, so it is made up: cells with the published counts, filled with establishments whose sizes
are as skewed as in the LODES simulation. Their truth is known, so both protections can be compared with it. Only
published numbers and public constants enter, so the comparison reveals nothing beyond the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.audit.stand_in import MOST_JOBS, same_shape
from discreet.noise.source import SeededSource
from discreet.privacy.units import EstablishmentNodes
from discreet.report.comparison import Group, SimulatedErrors
from discreet.tables.infusion import Infusion
from discreet.tables.prepared import Prepared
from discreet.tables.query import CountQuery
from discreet.tables.ranking import spearman
from discreet.tables.release import CountRelease
from discreet.utility.strata import NAMES, stratum_of

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CELLS = 2_000
"""Workplace cells that are simulated; larger tables are sampled."""

FEWEST_CELLS = 20
"""Smaller tables have no shape to speak of."""

TRIALS = 4
MOST_STRATA = 24
EDGES = (0, 1, 10, 100, 1_000, 10_000, np.inf)
CLASSES = ("0", "1 to 9", "10 to 99", "100 to 999", "1000 to 9999", "10 000 and more")


def compare(
    published: CountRelease, query: CountQuery, ready: Prepared, *, stratum: str | None = None, seed: int = 0
) -> SimulatedErrors | str:
    """Compare the release's mechanism with infusion, or say why data of its shape would not show its error."""
    jobs = np.maximum(published.counts, 0).sum(axis=1, dtype=np.float64)
    filled, rng = np.flatnonzero(jobs), np.random.default_rng(seed)
    if why_not := _not_comparable(query, jobs[filled]):
        return why_not
    rows = np.sort(rng.choice(filled, min(MOST_CELLS, filled.size), replace=False))
    counts, keys = np.maximum(published.counts[rows], 0), published.keys.take(rows)
    firms = same_shape(counts, published.worker_by, published.levels, keys, rng)
    cells = firms.cells()
    ours, infused = np.zeros(cells.counts.shape), Infusion().expected_error(firms, rng=rng, trials=TRIALS)
    for trial in range(TRIALS):
        drawn = query._draw(ready, cells, SeededSource(seed + trial))
        ours += np.abs(drawn - cells.counts) / TRIALS
    factors = Infusion().factor(rng.random(len(firms.counts)))
    table = Infusion().publish(firms, factors, source=SeededSource(seed))
    true = cells.counts.sum(axis=1)
    name = stratum or _default_stratum(cells.keys)
    return SimulatedErrors(
        cells=len(rows),
        of=len(published.counts),
        whole=_group("all", np.ones(ours.shape, dtype=np.bool_), cells.counts, ours, infused),
        by_size=tuple(_by_size(cells.counts, ours, infused)),
        stratum=name,
        by_stratum=tuple(_by_stratum(cells.keys, name, cells.counts, ours, infused)) if name else (),
        rank=spearman(drawn.sum(axis=1), true),
        infused_rank=spearman(table.sum(axis=1), true),
    )


def _not_comparable(query: CountQuery, jobs: Vector) -> str:
    """Why no economy with so many jobs in its cells is simulated, if none is."""
    if query.magnitude is not None:
        return "Sums of amounts say little of the establishments behind them, so none are simulated."
    if isinstance(query.account.unit, EstablishmentNodes):
        return "The published counts do not include the establishments left out, which cause most of the error."
    if any(name in query.jobs.schema.worker_attributes for name in query.where):
        return "Only some workers are counted, so the published counts do not show how large the establishments are."
    if jobs.size < FEWEST_CELLS:
        return f"Fewer than {FEWEST_CELLS} workplace cells have jobs: too few for a shape to be simulated."
    if jobs.mean() * min(jobs.size, MOST_CELLS) > MOST_JOBS:
        return "The published counts are too large for an economy of their shape to be simulated."
    return ""


def _group(name: str, chosen: Mask, true: Integers, ours: Matrix, infused: Matrix) -> Group:
    return Group(
        name=name,
        counts=int(chosen.sum()),
        mean=float(true[chosen].mean()),
        ours=float(ours[chosen].mean()),
        infusion=float(infused[chosen].mean()),
    )


def _by_size(true: Integers, ours: Matrix, infused: Matrix) -> Iterator[Group]:
    for name, (low, high) in zip(CLASSES, pairwise(EDGES), strict=True):
        chosen = (true >= low) & (true < high)
        if chosen.any():
            yield _group(name, chosen, true, ours, infused)


def _default_stratum(keys: pa.Table) -> str:
    """Populations of places, else the attribute with the most values that can still be listed."""
    numbers = {name: len(keys[name].unique()) for name in keys.column_names}
    fitting = [name for name, n in numbers.items() if name == "place_population" or 1 < n <= MOST_STRATA]
    return max(fitting, key=lambda name: (name == "place_population", numbers[name]), default="")


def _by_stratum(keys: pa.Table, name: str, true: Integers, ours: Matrix, infused: Matrix) -> Iterator[Group]:
    if name == "place_population":
        codes, names = stratum_of(np.array(keys[name], dtype=np.int64)), list(NAMES)
    else:
        coded = keys[name].combine_chunks().dictionary_encode()
        codes, names = np.array(coded.indices), [str(value) for value in coded.dictionary.to_pylist()]
    for code in sorted(np.unique(codes)[:MOST_STRATA], key=lambda code: names[code] if len(names) > 4 else code):
        chosen = np.broadcast_to((codes == code)[:, None], true.shape)
        yield _group(names[code], chosen, true, ours, infused)
