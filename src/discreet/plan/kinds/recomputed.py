"""What follows from the drawn numbers of a published release, computed again for a reviewer and held beside its files.

Everything is computed from the research form and public constants. Nothing here has a part in a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet.archive.findings import RefutedError, UncheckedError
from discreet.data.columns import every_so_many
from discreet.data.lineage import positions
from discreet.plan.kinds.columns import alike, close, distinct, equal, repeats
from discreet.plan.outputs import noise, shortened
from discreet.plan.readers import drawn_table
from discreet.release.tables import read_table
from discreet.results import complete
from discreet.tables.prepared import Drawn

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.plan.kinds.counts import PlannedCounts
    from discreet.plan.kinds.flows import PlannedFlows
    from discreet.tables.release import CountRelease


class Recomputed(Protocol):
    """The checks of one release by what its drawn numbers give; each says what it found, or refutes a claim."""

    @property
    def by_rule(self) -> bool:
        """Whether a rule moved the numbers of the basic form, which other code may do otherwise."""

    def check_cells(self, about: Mapping[str, Any]) -> str:
        """Every cell is there once."""

    def check_intervals(self, about: Mapping[str, Any]) -> str:
        """The ends of the research form are those that its numbers and public constants give."""

    def basic(self) -> Sequence[pa.Table]:
        """The basic form of each table, in the order of its places, without labels."""


@dataclass
class CountsAgain:
    """The drawn tables of a release as published and the sums of them: read and added up once for all checks."""

    request: PlannedCounts
    folder: Path

    @cached_property
    def tables(self) -> list[CountRelease]:
        return [drawn_table(self.request, self.folder, number) for number in range(len(self.request.queries))]

    @cached_property
    def sums(self) -> list[CountRelease]:
        """The sums, their cells in the order of the published ones: earlier versions had another."""
        sums = zip(self.request.derived_folders, self.request.derived, self.request.sums(self.tables), strict=True)
        return [self._in_order(table, self.folder / place, query.levels) for place, query, table in sums]

    def _in_order(self, table: CountRelease, place: Path, levels: int) -> CountRelease:
        by = table.keys.column_names
        if not by or "research" not in self.request.details["forms"]:
            return table
        cells = every_so_many(published(self.request.details, place, "research", by, columns=by), levels)
        try:
            rows = positions(cells, table.keys)
        except LookupError:
            return table
        return table.take(rows) if np.array_equal(np.sort(rows), np.arange(len(table.keys))) else table

    @property
    def by_rule(self) -> bool:
        return self.request.details["shrink"] is not None or bool(self.request.details["add_up"])

    def basic(self) -> Sequence[pa.Table]:
        return [self.request.basic(table, {}) for table in self.request.improved([*self.tables, *self.sums])]

    def check_cells(self, about: Mapping[str, Any]) -> str:
        for number, place in enumerate(self.request.folders):
            self._check_kinds(number, self.folder / place, labelled=has_labels(about, number))
        return ", each workplace cell once and with every kind of worker"

    def _check_kinds(self, number: int, folder: Path, *, labelled: bool) -> None:
        query, details = self.request.queries[number], self.request.details
        domains = details["tables"][number]["domains"]
        form = _readable_form(details, labelled=labelled)
        by = [*query.workplace_by, *query.worker_by]
        # of no columns the file would tell no rows
        table = published(details, folder, form, by, columns=by or None)
        kinds = list(product(*(domains[name] for name in query.worker_by)))
        if len(table) % len(kinds) or not all(
            repeats(table[name], [kind[i] for kind in kinds]) for i, name in enumerate(query.worker_by)
        ):
            raise RefutedError("a workplace cell lacks a kind of worker, or has one twice")
        each = np.arange(0, len(table), len(kinds))
        cells = table.select(query.workplace_by).take(each)
        once = len(distinct(cells.columns)) == len(cells) if query.workplace_by else len(each) <= 1
        again = cells.take(np.repeat(np.arange(len(each)), len(kinds)))
        if not once or not all(equal(table[name], again[name]) for name in query.workplace_by):
            raise RefutedError("a workplace cell is there twice, or its kinds of workers are apart")

    def check_intervals(self, about: Mapping[str, Any]) -> str:
        request, details = self.request, self.request.details
        _refuse_unwritten(details)
        import pyarrow as pa

        for number, (query, ready) in enumerate(zip(request.queries, request.ready, strict=True)):
            _check_constants(noise(ready), about, number)
            table = self.tables[number]
            ends = query.ends(ready, Drawn(table.counts, table.largest, table.at_most))(table.level)
            for stated, found in zip((table.lower, table.upper), complete(*ends), strict=True):
                if not np.allclose(stated, found, rtol=1e-9, atol=1e-9, equal_nan=True):
                    raise RefutedError("they are not those that the counts and the constants give")
            place = self.folder / request.folders[number]
            flags = published(details, place, "research", [], columns=["quality"])["quality"]
            if not equal(flags, pa.chunked_array([pa.array(table.quality.ravel().astype(str), pa.string())])):
                raise RefutedError("the quality flags are not those that the intervals give")
        for name, table in zip(request.derived_folders, self.sums, strict=True):
            found, again = published(details, self.folder / name, "research", list(table.by)), table.to_arrow()
            if found.column_names != again.column_names or not all(
                equal(found[n], again[n]) for n in again.column_names
            ):
                raise RefutedError(f"{name!r} is not the sum of the tables that were drawn")
        return "computed again from the counts and the constants: the same"


@dataclass(frozen=True)
class FlowsAgain:
    """Flows or changes of a release, from its drawn integers."""

    request: PlannedFlows
    folder: Path
    by_rule: bool = False

    def check_cells(self, about: Mapping[str, Any]) -> str:
        table = self.request.published(self.folder, _readable_form(self.request.details, labelled=has_labels(about, 0)))
        if len(distinct([table[name] for name in self.request.places[0][1]])) < len(table):
            raise RefutedError("a workplace cell is there twice")
        return ""

    def check_intervals(self, about: Mapping[str, Any]) -> str:
        request = self.request
        _refuse_unwritten(request.details)
        _check_constants(request.ready.constants, about, 0)
        table = request.published(self.folder, "research")
        try:
            again = request.ready.again(table).to_arrow()
        except ValueError:
            raise RefutedError("its rows are not those of all quarters") from None
        if table.column_names != again.column_names:
            raise RefutedError("it has other columns than flows have")
        odd = [name for name in again.column_names if not close(table[name], again[name])]
        if odd:
            raise RefutedError(f"{odd[0]!r} is not what the drawn flows and the constants give")
        return "identities, rates, ends and flags computed again from the drawn flows and the constants: the same"

    def basic(self) -> Sequence[pa.Table]:
        [(place, by)] = self.request.places
        return [self.request.basic(published(self.request.details, self.folder / place, "research", by), {})]


@dataclass(frozen=True)
class RowsAgain:
    """Answers about rows."""

    details: Mapping[str, Any]
    folder: Path
    by_rule: bool = False

    def check_cells(self, about: Mapping[str, Any]) -> str:
        return ""

    def check_intervals(self, about: Mapping[str, Any]) -> str:
        raise UncheckedError("standard errors and intervals follow from the model's public design, which is not here")

    def basic(self) -> Sequence[pa.Table]:
        return [shortened(published(self.details, self.folder, "research", []))]


def published(
    details: Mapping[str, Any],
    folder: Path,
    form: str,
    attributes: Sequence[str],
    kind: str | None = None,
    columns: list[str] | None = None,
) -> pa.Table:
    """A table of a release in one of its formats: the first that keeps every digit, unless a `kind` is asked for."""
    kind = kind or ("parquet" if "parquet" in details["formats"] else "csv")
    return read_table(folder / f"{form}.{kind}", kind=kind, attributes=attributes, columns=columns)


def has_labels(about: Mapping[str, Any], number: int) -> bool:
    """Whether the basic form of a table has other names for its categories."""
    parameters = about["parameters"]
    tables = [*parameters.get("tables", ()), *parameters.get("derived", ())]
    return bool(tables) and tables[number]["labels"] is not None


def _readable_form(details: Mapping[str, Any], *, labelled: bool) -> str:
    """A form whose categories are those of the plan."""
    if "research" in details["forms"]:
        return "research"
    if labelled:
        raise UncheckedError("the basic form has labels for codes, and there is no research form")
    return "basic"


def _refuse_unwritten(details: Mapping[str, Any]) -> None:
    if "research" not in details["forms"]:
        raise UncheckedError("there is no research form to compute them from")


def _check_constants(found: Mapping[str, Any], about: Mapping[str, Any], number: int) -> None:
    if not alike(found, about["parameters"]["tables"][number]["noise"]):
        raise UncheckedError("the stated constants are not those that this code would use")
