"""Every establishment's own histogram of workers: noise infusion multiplies it, and attacks are scored against it.

Haney et al. (2017, section 5.1) call the table WorkplaceFull: one row per workplace w with its counts h(w, c) over all
combinations c of the workers' attributes. This is as confidential as the jobs themselves; formal mechanisms need only
`tables.cells`, which lets no single establishment out of the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers
from discreet.data.jobs import Jobs
from discreet.data.schema import Label
from discreet.tables.cells import Cells, cell_statistics

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Histograms:
    """h(w, c) of W establishments in d levels, sorted by workplace cell and then by establishment.

    Attributes
    ----------
    keys : one row per workplace cell, in the order of `Cells`. Public.
    worker_by, levels : as in `Cells`. Public.
    establishment : identifiers, shape (W,). Public.
    start : the first establishment of each workplace cell, shape (cells,). Public.
    counts : jobs, shape (W, d).
    size : the whole workforce, also where `where` leaves some of it out of `counts`, shape (W,).
    """

    keys: pa.Table
    worker_by: tuple[str, ...]
    levels: tuple[tuple[Label, ...], ...]
    establishment: pa.Array
    start: Integers
    counts: Integers
    size: Integers

    def __repr__(self) -> str:
        by = ", ".join([*self.keys.column_names, *self.worker_by]) or "no attribute"
        return f"Histograms by {by}: {len(self.counts):,} establishments x {len(self.levels)} levels, confidential"

    @property
    def establishments(self) -> Integers:
        """The number of establishments in each workplace cell, shape (cells,). Public."""
        return np.diff(self.start, append=len(self.counts))

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums over the establishments of each workplace cell of something that each of them has."""
        return np.asarray(np.add.reduceat(values, self.start, axis=0))

    def cells(self, *, unions: bool = False) -> Cells:
        """The same statistics as `cell_statistics`, without asking the engine again."""
        return Cells(
            keys=self.keys,
            worker_by=self.worker_by,
            levels=self.levels,
            counts=self.total(self.counts),
            largest=np.maximum.reduceat(self.counts, self.start, axis=0),
            largest_total=np.maximum.reduceat(self.size, self.start),
            establishments=self.establishments,
            unions=self._unions() if unions else None,
            second=self.second(self.counts),
            second_total=self.second(self.size),
        )

    def second(self, values: Integers) -> Integers:
        """The second largest value among the establishments of each workplace cell; 0 if there is only one."""
        most = np.maximum.reduceat(values, self.start, axis=0)
        top = values == np.repeat(most, self.establishments, axis=0)
        below = np.maximum.reduceat(np.where(top, 0, values), self.start, axis=0)
        return np.where(self.total(top.astype(np.int64)) > 1, most, below)

    def _unions(self) -> Integers:
        d = self.counts.shape[1]
        sets = np.arange(2**d)[:, None] >> np.arange(d) & 1
        return np.stack([np.maximum.reduceat(self.counts @ some, self.start) for some in sets], axis=1)


def histograms(
    jobs: Jobs,
    *,
    workplace_by: Sequence[str] = (),
    worker_by: Sequence[str] = (),
    where: Mapping[str, Label | Sequence[Label]] | None = None,
    magnitude: str | None = None,
) -> Histograms:
    """Count every establishment's jobs by every combination of the workers' attributes.

    A workplace cell that holds one establishment is a cell like any other. So the plan and `where` are those of
    `cell_statistics`, with the establishment's identifier as one more workplace attribute.
    """
    import narwhals.stable.v2 as nw

    itself = f"{jobs.schema.establishment} itself"
    copied = nw.col(jobs.schema.establishment).alias(itself)
    schema = replace(jobs.schema, workplace_attributes=[*jobs.schema.listed, itself])
    if jobs.workplaces is None:
        known = None if jobs.known is None else jobs.known.with_columns(copied)
        jobs = replace(jobs, schema=schema, table=jobs.table.with_columns(copied), known=known)
    else:
        jobs = replace(jobs, schema=schema, workplaces=jobs.workplaces.with_columns(copied))
    firms = cell_statistics(
        jobs, workplace_by=[*workplace_by, itself], worker_by=worker_by, where=where, magnitude=magnitude
    )
    start = _starts(firms.keys, workplace_by)
    return Histograms(
        keys=firms.keys.select(list(workplace_by)).take(start),
        worker_by=firms.worker_by,
        levels=firms.levels,
        establishment=firms.keys[itself].combine_chunks(),
        start=start,
        counts=firms.counts,
        size=firms.largest_total,
    )


def _starts(keys: pa.Table, of: Sequence[str]) -> Integers:
    """Where a row's keys differ from those of the row before."""
    new = np.zeros(len(keys), dtype=np.bool_)
    new[:1] = True
    for name in of:
        codes = keys[name].combine_chunks().dictionary_encode().indices
        new[1:] |= np.diff(np.from_dlpack(codes)) != 0
    return np.flatnonzero(new)
