"""Public facts about the sizes of cells, and the expected error of a release on them.

Either a public table with jobs per cell, or an earlier release. The noise of a cell depends on its largest
establishment. If that is not public, the whole cell is assumed, so the stated error is the largest possible. The same
is done if the noise depends on the workers of one kind, whose numbers are not public. If large establishments are left
out of the counts, their jobs are part of the error.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.data.lineage import with_levels
from discreet.plan.confidential import secret_lookups, shown_as_public
from discreet.plan.file import PlanSource
from discreet.privacy.losses import Loss
from discreet.release.files import MANIFEST
from discreet.release.tables import read_table
from discreet.tables.budget.errors import PublicCells, cells_of
from discreet.tables.intervals.widths import half_widths
from discreet.tables.prepared import Prepared, TableErrors
from discreet.tables.public_sizes import numeric, read_sizes
from discreet.tables.query import CountQuery
from discreet.words.errors import DataError, DiscreetError
from discreet.words.faults import Fault

if TYPE_CHECKING:
    import pyarrow as pa

CLASSES = (1, 10, 100, 1_000, 10_000)
"""Lower ends of the size classes in which errors are reported; smaller cells are empty."""

MISSING, KNOWN = "(jobs left out)", "(exactly so many)"  # beside attributes, which have other names


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected error of a table on publicly known sizes.

    Attributes
    ----------
    cells : workplace cells; each has one count per combination of worker attributes.
    mean : expected absolute error of one count.
    share : the expected error of all counts together, as a share of all jobs.
    by_size : for each class of cell sizes that occurs: its lower end, its cells, the mean error of a count, and whether
        that is an upper bound.
    half_widths : for each of these classes the mean of the typical half-widths of intervals; infinite where some have
        none.
    mostly_noise : for each of these classes the counts that will be mostly noise.
    is_bound : whether the mean is an upper bound: it depends on sizes of establishments, the second largest included,
        or on how workers divide into kinds, and these are not public.
    """

    cells: int
    mean: float
    share: float
    by_size: tuple[tuple[int, int, float, bool], ...]
    is_bound: bool
    half_widths: tuple[float, ...] = ()
    mostly_noise: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        widths = [width if np.isfinite(width) else None for width in self.half_widths]
        classes = [
            {
                "from": low,
                "cells": cells,
                "mean": mean,
                "is_upper_bound": at_most,
                "half_width": width,
                "mostly_noise": n,
            }
            for (low, cells, mean, at_most), width, n in zip(self.by_size, widths, self.mostly_noise, strict=True)
        ]
        return {
            "cells": self.cells,
            "mean": self.mean,
            "share_of_jobs": self.share,
            "is_upper_bound": self.is_bound,
            "by_cell_size": classes,
        }


@dataclass(frozen=True, slots=True)
class TableCheck:
    """One table of a release before it exists.

    Attributes
    ----------
    errors : the expected errors by the size of the cell's largest establishment.
    expected : the error on publicly known sizes, where there are any.
    notes : what has to be known to read the errors.
    cautions : what has to be known before anything else.
    """

    by: tuple[str, ...]
    loss: Loss
    errors: TableErrors
    expected: Expected | None
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        known, errors = self.expected, self.errors
        told = errors.to_dict()
        by_largest = told.pop("expected_error_by_largest_establishment")
        return {
            "by": list(self.by),
            **told,
            "loss": self.loss.to_dict(),
            "expected_error_by_largest_establishment": by_largest,
            "is_upper_bound_by_largest_establishment": {size: size in errors.error.at_most for size in errors.error},
            "half_width_by_largest_establishment": {
                size: {"alone": _finite(alone), "among_many": _finite(among)}
                for size, (alone, among) in errors.widths.items()
            },
            "scale_share": [
                {name: value if isinstance(value, str) else _finite(value) for name, value in asdict(trade).items()}
                for trade in errors.tradeoff
            ],
            "expected_error": None if known is None else known.to_dict(),
            "notes": list(self.notes),
            "cautions": list(self.cautions),
        }


@dataclass(frozen=True, slots=True, eq=False)
class PublicSizes:
    """A public table: some workplace attributes, `jobs`, `largest` where it is known, `at_most` where it is bounded.

    Attributes
    ----------
    is_bound : whether `largest` is not known and stands for the whole cell.
    is_whole : whether all jobs are in it; an earlier release that left out large establishments gives no sizes.
    derived : attributes that follow from others by prefix or lookup.
    """

    table: pa.Table
    is_bound: bool
    is_whole: bool = True
    derived: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: PlanSource) -> tuple[PublicSizes | None, list[Fault]]:
        """The facts that [public] of a source names, if any, or its faults."""
        if secret := list(shown_as_public(source)):
            return None, secret
        if any(secret_lookups(source.file)):
            return None, []  # the plan is refused: nothing is computed from confidential codes
        public = source.tables.public
        if public.sizes is not None and public.previous is not None:
            return None, [
                Fault(source.place("public"), "sizes and previous are both given. One is enough. Leave one out.")
            ]
        try:
            if public.sizes is not None:
                schema = source.schema()
                return cls(*read_sizes(source.path(public.sizes), schema), derived=schema.derived), []
            if public.previous is not None:
                found = _from_release(source.path(public.previous))
                return replace(found, table=with_levels(found.table, source.schema())), []
        except DiscreetError as error:
            key = "sizes" if public.sizes is not None else "previous"
            return None, [replace(fault, place=source.place("public", key)) for fault in error.faults]
        return None, []

    @classmethod
    def stated(cls, table: pa.Table, number: str, *, by: Sequence[str]) -> PublicSizes | None:
        """Numbers of jobs that an agency publishes, without the cells that it suppresses."""
        import pyarrow.compute as pc

        known = table.filter(pc.is_valid(table[number]))
        if not len(known):
            return None
        jobs = pc.max_element_wise(known[number], 0.0)
        cells = known.select(list(by)).append_column("jobs", jobs).group_by(list(by)).aggregate([("jobs", "sum")])
        cells = cells.rename_columns([name.replace("jobs_sum", "jobs") for name in cells.column_names])
        return cls(cells.append_column("largest", cells["jobs"]), is_bound=True)

    def expected(self, query: CountQuery, ready: Prepared, *, level: float) -> Expected | None:
        """The error of `query` on these sizes; None if they lack one of its attributes, or jobs."""
        table, keys = self._kept(query), list(query.workplace_by)
        if table is None:
            return None
        found = {"jobs": "sum", "largest": "max"} | ({"at_most": "max"} if "at_most" in table.column_names else {})
        dropped = ready.mechanism.left_out(*(np.array(table[name], dtype=np.float64) for name in ("jobs", "largest")))
        if dropped is not None:
            table = table.append_column(MISSING, [dropped[0]]).append_column(KNOWN, [dropped[1]])
            found |= {MISSING: "sum", KNOWN: "all"}
        cells = table.group_by(keys).aggregate(list(found.items()))
        jobs, largest = (np.array(cells[f"{n}_{found[n]}"], dtype=np.float64) for n in ("jobs", "largest"))
        parts = None if dropped is None else (np.array(cells[f"{MISSING}_sum"]), np.array(cells[f"{KNOWN}_all"]))
        error, at_most = ready.mechanism.mean_error(
            query.kinds, jobs=jobs, largest=largest, known=not self.is_bound, parts=parts
        )
        size = np.searchsorted(CLASSES, jobs, side="right")
        most = np.array(cells["at_most_max"], dtype=np.float64) if self._bounds(keys) else None
        width = half_widths(query, ready, jobs=jobs, largest=largest, level=level, at_most=most)
        noisy = ~(width <= jobs / query.levels)
        return Expected(
            cells=len(jobs),
            mean=float(error.mean()),
            share=float(error.sum() * query.levels / max(jobs.sum(), 1.0)),
            by_size=tuple(
                (int(np.r_[0, CLASSES][i]), int(chosen.sum()), float(error[chosen].mean()), bool(at_most[chosen].any()))
                for i in np.unique(size)
                for chosen in [size == i]
            ),
            is_bound=bool(at_most.any()),
            half_widths=tuple(float(width[size == i].mean()) for i in np.unique(size)),
            mostly_noise=tuple(int(noisy[size == i].sum()) * query.levels for i in np.unique(size)),
        )

    def jobs(self, query: CountQuery) -> Vector | None:
        """The jobs of the cells of a query; None where they are not public."""
        table, keys = self._kept(query), list(query.workplace_by)
        if table is None:
            return None
        return np.array(table.group_by(keys).aggregate([("jobs", "sum")])["jobs_sum"], dtype=np.float64)

    def _kept(self, query: CountQuery) -> pa.Table | None:
        """The sizes that `query` is about; None if they lack one of its attributes, or jobs."""
        import pyarrow.compute as pc

        workplace = query.jobs.schema.workplace_attributes
        kept = [name for name in query.where if name in workplace]
        if not self.is_whole or not {*query.workplace_by, *kept} <= set(self.table.column_names):
            return None
        table = self.table
        for name in kept:
            table = table.filter(pc.is_in(table[name], value_set=_like(table[name], query.where[name])))
        return table if len(table) else None

    def largest(self, by: Sequence[str]) -> Vector | None:
        """The sizes of the largest establishments of cells by these attributes; None where they are not public."""
        if not self.is_whole or not {*by} <= {*self.table.column_names} or not len(self.table):
            return None
        cells = self.table.group_by(list(by)).aggregate([("largest", "max")])
        return np.array(cells["largest_max"], dtype=np.float64)

    def cells(self, query: CountQuery) -> PublicCells | None:
        """The cells of a query with their sizes; None where they are not public."""
        return cells_of(self.table, query, is_bound=self.is_bound) if self.is_whole else None

    def _bounds(self, names: Sequence[str]) -> bool:
        """Whether a cell by these attributes has a bound: one of a part of it bounds no cell that is larger."""
        known = {*self.table.column_names}
        finest = known - {"jobs", "largest", "at_most", *self.derived}
        return "at_most" in known and finest <= {*names} <= known

    def at_most(self, keys: pa.Table) -> Vector | None:
        """The most workers that an establishment of each cell has, as is public; NaN where nothing is."""
        names = keys.column_names
        if not self._bounds(names):
            return None
        known: dict[tuple[str, ...], float] = {}
        rows = zip(*(map(str, self.table[name].to_pylist()) for name in names), strict=True) if names else None
        for key, most in zip(rows or [()] * len(self.table), np.array(self.table["at_most"]).tolist(), strict=True):
            known[key] = max(known.get(key, 0.0), float(most))
        asked = zip(*(map(str, keys[name].to_pylist()) for name in names), strict=True) if names else [()]
        return np.array([known.get(key, np.nan) for key in asked], dtype=np.float64)


def _finite(width: float) -> float | None:
    return width if np.isfinite(width) else None


def _from_release(folder: Path) -> PublicSizes:
    """The counts of an earlier release, from its table with the most workplace attributes."""
    import pyarrow.compute as pc

    try:
        about: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        finest = max(about["parameters"]["tables"], key=lambda table: len(table["by"]) - len(table["domains"]))
        files = [folder / name for name in sorted(about["files"], reverse=True)]
        path = next(path for path in files if path.parent == folder / finest["folder"])
    except (OSError, ValueError, LookupError, TypeError, StopIteration):
        raise DataError(
            f"{str(folder)!r} is not the folder of a release with tables.",
            f"Such a folder has a {MANIFEST}.",
            "Name the folder of an earlier release.",
            about="release",
        ) from None
    table = read_table(path, kind=path.suffix[1:], attributes=finest["by"])
    keys = [name for name in finest["by"] if name not in finest["domains"]]
    jobs = pc.max_element_wise(table["count"], 0)
    table = table.select(keys).append_column("jobs", jobs).append_column("largest", jobs)
    summed = table.group_by(keys).aggregate([("jobs", "sum"), ("largest", "sum")])
    named = summed.rename_columns([name.removesuffix("_sum") for name in summed.column_names])
    return PublicSizes(numeric(named, path.name), is_bound=True, is_whole=finest["mechanism"] != "node-truncation")


def _like(column: Any, values: Any) -> Any:
    """Values of a plan in the type of a public column."""
    import pyarrow as pa

    try:
        return pa.array(list(values), column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([], column.type)
