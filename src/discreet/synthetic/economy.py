"""Everything but the rows: jobs and amounts of each cell that agree with all tables, and numbers of establishments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.synthetic.cells import JointCells, TableRows
from discreet.synthetic.margins import Margin, fit
from discreet.synthetic.sizes import SizeShape, number
from discreet.words.errors import DataError

MOST_JOBS = 2_000_000_000


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticEconomy:
    """Everything but the rows: jobs of each cell, amounts, and establishments of each workplace cell."""

    cells: JointCells
    jobs: Integers
    amounts: Mapping[str, Integers]
    caps: Mapping[str, float]
    workplace: Integers
    first: Integers
    establishments: Integers
    largest: Vector | None
    shape: SizeShape
    types: Mapping[str, Any]
    told: Sequence[dict[str, Any]]

    @classmethod
    def of(
        cls, cells: JointCells, found: Sequence[TableRows], shape: SizeShape, rng: np.random.Generator
    ) -> SyntheticEconomy:
        told: list[dict[str, Any]] = []
        counted = [source for source in found if "count" in source.of.columns]
        jobs = _fitted(cells, counted, "count", np.ones(cells.size), rng, told)
        if jobs.sum() > MOST_JOBS:
            raise DataError(
                f"The release counts {int(jobs.sum()):,} jobs.",
                f"At most {MOST_JOBS:,} are drawn.",
                "Give a release of fewer jobs.",
                about="release",
            )
        amounts, caps = {}, {}
        for name in dict.fromkeys(str(source.of.about.get("of")) for source in found if "sum" in source.of.columns):
            added = [s for s in found if "sum" in s.of.columns and str(s.of.about.get("of")) == name]
            caps[name] = min(float(s.of.about.get("cap") or np.inf) for s in added)
            amounts[name] = _fitted(cells, added, "sum", jobs.astype(np.float64), rng, told)
        workplace, first = cells.workplace_cells()
        total = np.bincount(workplace, weights=jobs, minlength=len(first)).astype(np.int64)
        there, largest = _public(cells, counted, workplace, first, rng)
        fresh = number(total, shape, rng)
        establishments = fresh if there is None else np.maximum(there, np.minimum(total, 1))
        types = {name: s.rows.schema.field(name).type for s in reversed(found) for name in s.by}
        return cls(cells, jobs, amounts, caps, workplace, first, establishments, largest, shape, types, told)


def _fitted(
    cells: JointCells,
    found: Sequence[TableRows],
    column: str,
    start: Vector,
    rng: np.random.Generator,
    told: list[dict[str, Any]],
) -> Integers:
    """Whole numbers of the cells that agree with tables; how well they do is added to `told`."""
    margins = []
    for source in sorted(found, key=lambda source: len(source.by)):
        numbers = [_numbers(source, name) for name in (column, "lower", "upper")]
        margins.append((source, Margin.of(cells.group(source), *numbers)))
    values = fit([margin for _, margin in margins], start, rng=rng)
    for source, margin in margins:
        has = np.isfinite(_numbers(source, "lower")) | np.isfinite(_numbers(source, "upper"))
        low, high = _numbers(source, "lower"), _numbers(source, "upper")
        sums = margin.sums(values)
        inside = ~(sums < low) & ~(sums > high)
        told.append(
            {
                "table": source.of.name,
                "of": column,
                "by": ", ".join(source.by),
                "sums": int(has.sum()),
                "met": int((has & inside).sum()),
                "without interval": int((~has).sum()),
                "mean distance": float(np.abs(sums - _numbers(source, column)).mean()),
            }
        )
    return values


def _numbers(source: TableRows, name: str) -> Vector:
    if name not in source.rows.column_names:
        return np.full(len(source.rows), np.nan)
    return np.asarray(source.rows[name].to_numpy(zero_copy_only=False), dtype=np.float64)


def _public(
    cells: JointCells, found: Sequence[TableRows], workplace: Integers, first: Integers, rng: np.random.Generator
) -> tuple[Integers | None, Vector | None]:
    """Numbers of establishments, where they are published; and the most workers of one, where something says it."""
    margins, largest = [], None
    for source in sorted(found, key=lambda source: len(source.by)):
        group = cells.group(source)[first]
        if "establishments" in source.rows.column_names and not source.where:
            # A table by kinds of workers repeats the number: rows of one workplace cell count as the first of them.
            numbers = _numbers(source, "establishments")
            margins.append(Margin.of(group, numbers, numbers, numbers))
        if {*cells.workplace} <= {*source.by} and "largest" in source.rows.column_names:
            known = _numbers(source, "largest")
            largest = np.where(group >= 0, np.maximum(known, 1.0)[group], np.inf)
    return (fit(margins, np.ones(len(first)), rng=rng) if margins else None), largest
