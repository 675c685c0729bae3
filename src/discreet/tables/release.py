"""A published table of counts: everything in it may be shown to anybody.

Holds no confidential value, so it prints, converts and compares freely. Post-processing returns a new release whose
guarantee says what was done; it never costs anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.columns import column_of, column_of_words
from discreet.data.hierarchy import covers
from discreet.data.lineage import Lineage
from discreet.data.schema import Label
from discreet.ledger import Entry
from discreet.privacy.guarantee import Guarantee
from discreet.results import Result, both_ends, tidy_table
from discreet.tables.quality import Words, quality, quality_column

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.release.account import Released


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CountRelease(Result):
    """Published counts with intervals.

    Attributes
    ----------
    keys : the workplace cells, one column per attribute.
    worker_by, levels : the worker attributes and their combinations.
    counts : shape (workplace cells, levels).
    lower, upper : intervals that hold the true count with probability at least `level`, computed from the published
        counts and public constants alone; NaN where there is none, and infinite above where nothing bounds it.
    parameters : what was asked for, in plain words for the ledger and release.json.
    largest : a noisy size of the largest establishment of each workplace cell, where a share of epsilon paid for it.
    check : what was known before it was paid for: price, what was left, expected error.
    at_most : public facts about that size, if there are any: intervals hold if they are true.
    magnitude : what was added up, where these are no counts of jobs but sums of amounts.
    establishments : how many there are in each workplace cell, where they were asked for. Public, without noise.
    ends : the ends of intervals of another level, from published counts and public constants.
    lineage : the parents of the keys' codes, where hierarchies are declared: which counts a count is part of.
    """

    keys: pa.Table
    worker_by: tuple[str, ...]
    levels: tuple[tuple[Label, ...], ...]
    counts: Integers
    lower: Vector
    upper: Vector
    level: float
    guarantee: Guarantee
    parameters: Mapping[str, Any] = field(default_factory=dict)
    entry: Entry | None = None
    name: str = ""
    largest: Integers | None = None
    check: Any = None
    at_most: Vector | None = None
    lineage: Lineage | None = None
    magnitude: str | None = None
    establishments: Integers | None = None
    ends: Callable[[float], tuple[Vector, Vector]] | None = None

    def of(self, released: Released[Any]) -> CountRelease:
        """The same table with what its release promises and the ledger line that paid for it."""
        notes = self.guarantee.notes  # of post-processing too
        guarantee = replace(released.guarantee, notes=notes)
        return replace(self, guarantee=guarantee, entry=released.entry, name=released.name, check=released.check)

    def take(self, rows: Integers) -> CountRelease:
        """The same table with its cells in another order."""
        held = {"counts": self.counts, "lower": self.lower, "upper": self.upper, "establishments": self.establishments}
        taken = {name: values[rows] for name, values in held.items() if values is not None}
        return replace(self, keys=self.keys.take(column_of(rows)), **taken)  # type: ignore[arg-type]

    @property
    def by(self) -> tuple[str, ...]:
        """The attributes that span the table, those of workplaces first."""
        return (*self.keys.column_names, *self.worker_by)

    @property
    def value(self) -> str:
        """The column of the published numbers: `count`, or `sum` of a magnitude."""
        return "count" if self.magnitude is None else "sum"

    def covers(self, other: CountRelease) -> bool:
        """Whether the other table's counts are sums of counts of this one."""
        return covers(self.by, other.by, () if self.lineage is None else self.lineage.chains)

    @property
    def quality(self) -> Words:
        """How much of each count is noise, by its interval: see `QUALITY`."""
        return quality(self.counts, self.lower, self.upper)

    def to_arrow(self, *, cells: pa.Table | None = None) -> pa.Table:
        """One row per count: the attributes, `count` or `sum`, `lower`, `upper`, `quality`; `largest`, `at_most`.

        An interval that lacks an end is none, and both are null. `cells` is such a table of the same cells, whose
        columns of attributes need not be made again.
        """
        import pyarrow as pa

        columns = self._attributes() if cells is None else {name: cells[name] for name in self.by}
        d = self.counts.shape[1]
        columns[self.value] = column_of(self.counts.ravel())
        columns["lower"], columns["upper"] = both_ends(self.lower.ravel(), self.upper.ravel())
        columns["quality"] = quality_column(self.counts.ravel(), self.lower.ravel(), self.upper.ravel())
        if self.establishments is not None:
            columns["establishments"] = column_of(np.repeat(self.establishments, d))
        if self.largest is not None:
            columns["largest"] = column_of(np.repeat(self.largest, d))
        if self.at_most is not None:
            bound = np.repeat(self.at_most, d)
            columns["at_most"] = column_of(bound, missing=~np.isfinite(bound))
        return pa.table(columns)

    def _attributes(self) -> dict[str, Any]:
        """The cell and the kind of every count."""
        (cells, d), columns = self.counts.shape, {}
        rows, kinds = (column_of(each) for each in (np.repeat(np.arange(cells), d), np.tile(np.arange(d), cells)))
        for name in self.keys.column_names:
            columns[name] = self.keys[name].combine_chunks().take(rows)
        for i, name in enumerate(self.worker_by):
            columns[name] = column_of_words([level[i] for level in self.levels]).take(kinds)
        return columns

    def tidy(self) -> pa.Table:
        """One row per count, in the columns of `discreet.results.COLUMNS`."""
        table = self.to_arrow()
        values = [map(str, table[name].to_pylist()) for name in self.by]
        return tidy_table(
            effect=self.value,
            group=", ".join(self.by) or None,
            level=[", ".join(cell) for cell in zip(*values, strict=True)] if values else None,
            estimate=self.counts.ravel(),
            lower=self.lower.ravel(),
            upper=self.upper.ravel(),
            flag=table["quality"].to_pylist(),
        )

    def non_negative(self) -> CountRelease:
        """Negative counts set to zero. Adds a small upward bias in sums of many small cells."""
        return replace(
            self,
            counts=np.maximum(self.counts, 0),
            guarantee=self.guarantee.noted("Negative counts were set to zero"),
        )

    def shrunk(self, towards: Sequence[str]) -> CountRelease:
        """Counts of worker kinds drawn towards the published shape of the groups `towards`, in whole numbers >= 0."""
        from discreet.tables.attributes import refuse_shrinking
        from discreet.tables.consistency import project, round_to_totals
        from discreet.tables.shrinkage import shrink

        refuse_shrinking(towards, workplace_by=self.keys.column_names, worker_by=self.worker_by)
        codes = [np.unique(self.keys[name].to_numpy(zero_copy_only=False), return_inverse=True)[1] for name in towards]
        groups = (
            np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)[1] if codes else np.zeros(len(self.counts))
        )
        cells = np.repeat(np.arange(len(self.counts)), len(self.levels))
        moved = shrink(self.counts, groups.ravel().astype(np.int64)).ravel()
        return replace(
            self,
            counts=round_to_totals(project(moved, cells), cells).reshape(self.counts.shape),
            guarantee=self.guarantee.noted(
                f"Counts were drawn towards the shape of {' x '.join(towards) or 'the whole'}"
            ),
        )

    def __repr__(self) -> str:
        cells, d = self.counts.shape
        kind = "counts" if self.magnitude is None else f"sums of {self.magnitude}"
        return f"<CountRelease {cells:,} x {d} {kind} by {', '.join(self.by) or 'no attribute'}: {self.guarantee.loss}>"

    def __str__(self) -> str:
        return f"{self!r}\n{self.guarantee}"
