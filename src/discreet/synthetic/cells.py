"""The cells that all released tables have together, and where each cell lies in each table.

Tables that share attributes are joined on them; levels of a hierarchy follow from the finest by the published parents.
If no table has two attributes together, all pairs are possible.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile
from zlib import error

import numpy as np

from discreet.archive.findings import RefutedError
from discreet.archive.unpacking import opened, text
from discreet.arrays import Integers
from discreet.data.codes import Codes
from discreet.release.folder import FORMS, PublishedTable, ReleaseFolder
from discreet.words.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

AS_DRAWN = ("research", "value")
"""Forms with the categories of the data; another form has labels for them."""

MOST_CELLS = 20_000_000
"""Cells of all tables together, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """A released table with its rows."""

    of: PublishedTable
    rows: pa.Table

    @property
    def by(self) -> tuple[str, ...]:
        return self.of.attributes

    @property
    def where(self) -> Mapping[str, Sequence[Any]]:
        """The values that it keeps."""
        return dict(self.of.about.get("where") or {})

    @property
    def kinds(self) -> tuple[str, ...]:
        """The attributes of workers among its attributes."""
        domains = self.of.about.get("domains")
        if domains is not None:
            return tuple(name for name in self.by if name in domains)
        levels, found = int(self.of.about.get("levels") or 1), 1
        for at in range(len(self.by), 0, -1):  # they are last, and have so many levels together
            if found >= levels:
                return self.by[at:]
            found *= len(self.rows[self.by[at - 1]].unique())
        return () if levels == 1 else self.by


@dataclass(frozen=True, slots=True, eq=False)
class JointCells:
    """All cells: codes of each attribute, in the order in which coarser cells are neighbours.

    Attributes
    ----------
    values : the categories of each attribute.
    codes : for each attribute, the place of each cell's category among them.
    workplace, workers : the attributes of establishments, and of workers.
    """

    values: Mapping[str, pa.Array]
    codes: Mapping[str, Integers]
    workplace: tuple[str, ...]
    workers: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(next(iter(self.codes.values()))) if self.codes else 1

    def group(self, source: TableRows) -> Integers:
        """For each cell the row of a table that counts it, -1 for none."""
        import pyarrow.compute as pc

        cells, rows = np.zeros(self.size, dtype=np.int64), np.zeros(len(source.rows), dtype=np.int64)
        for name in source.by:
            place = pc.index_in(_text(source.rows[name]), value_set=self.values[name])
            own = np.asarray(place.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
            n = len(self.values[name])
            cells, rows = cells * n + self.codes[name], np.where(own < 0, -1, rows * n + own)
            if n and cells.max(initial=0) > 2**50:
                dense = np.unique(np.concatenate([cells, rows]), return_inverse=True)[1]
                cells, rows = dense[: len(cells)], dense[len(cells) :]
        order = np.argsort(rows, kind="stable")
        at = np.minimum(np.searchsorted(rows[order], cells), len(rows) - 1)
        group = np.where(rows[order][at] == cells, order[at], -1)
        for name, kept in source.where.items():
            if name in self.codes:
                chosen = [i for i, value in enumerate(self.values[name].to_pylist()) if value in Codes.of(kept)]
                group = np.where(np.isin(self.codes[name], chosen), group, -1)
        return np.asarray(group, dtype=np.int64)

    def workplace_cells(self) -> tuple[Integers, Integers]:
        """For each cell its workplace cell, and for each workplace cell its first cell."""
        key = np.zeros(self.size, dtype=np.int64)
        for name in self.workplace:
            key = np.unique(key * len(self.values[name]) + self.codes[name], return_inverse=True)[1]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return inverse.astype(np.int64), first


def _told_sources(releases: Sequence[ReleaseFolder]) -> dict[str, str]:
    """Which source of its plan each release is from, as the reviewer's bundles beside them say; empty without one."""
    found: dict[str, str] = {}
    for folder in {release.folder.parent for release in releases}:
        for bundle in sorted(folder.glob("bundle*.zip")):
            with suppress(LookupError, ValueError, TypeError, AttributeError, OSError, BadZipFile, error, RefutedError):
                with opened(bundle) as packed:
                    asked = json.loads(text(packed, "request.json"))["releases"]
                found |= {str(each["name"]): str(each["source"]) for each in asked if each.get("source") is not None}
    return found


def sources(releases: Sequence[ReleaseFolder]) -> list[TableRows]:
    """Every table of counts or sums, in the drawn form if that was released."""
    periods = sorted({str(release.period or "no period") for release in releases})
    if len(periods) > 1:
        raise DataError(
            f"The releases are about different periods: {', '.join(map(repr, periods))}.",
            "Synthetic jobs are those of one period.",
            "Give the folder of one release, or of those about one period.",
            about="release",
        )
    told = _told_sources(releases)
    named = sorted({told[release.name] for release in releases if release.name in told})
    if len(named) > 1:
        raise DataError(
            f"The releases are from different sources of their plan: {', '.join(map(repr, named))}.",
            "Jobs of two sources are not the same jobs, also where both are of one data set, such as two quarters.",
            "Give the folder of one release, or a folder with those of one source.",
            about="release",
        )
    forms = [{of.form for form in FORMS for of in _tables(release, form)} for release in releases]
    raw = all({*known} & {*AS_DRAWN} or not known for known in forms)
    chosen = AS_DRAWN if raw else FORMS[:1]
    found = [TableRows(of, of.read()) for release in releases for form in chosen for of in _tables(release, form)]
    if not any("count" in source.of.columns for source in found):
        raise DataError(
            "No release here has counts of jobs.",
            "Synthetic jobs agree with released counts, and with sums beside them.",
            "Give the folder of a release of kind 'count' or 'counts'. A model gives synthetic responses: "
            "`discreet synthesize --rows`, or dc.synthetic_responses.",
            about="release",
        )
    for source in found:
        for name in source.where:
            others = [other for other in found if other.where.get(name) != source.where[name]]
            if name not in {by for other in found for by in other.by} and others:
                raise DataError(
                    f"{source.of.name!r} keeps some values of {name!r}, which no table is by, and "
                    f"{others[0].of.name!r} keeps others.",
                    "Tables are put together that count the same jobs.",
                    "Give one of these releases.",
                    about="release",
                )
    return found


def _tables(release: ReleaseFolder, form: str) -> list[PublishedTable]:
    try:
        tables = release.tables(form)
    except DataError:
        return []
    return [of for of in tables if of.form == form and of.values in (("count",), ("sum",))]


def joint(releases: Sequence[ReleaseFolder], found: Sequence[TableRows]) -> JointCells:
    """The cells of all tables together."""
    import pyarrow as pa

    lineages = [_as_text(table) for release in releases for table in release.parents().values()]
    cells: pa.Table | None = None
    for source in sorted(found, key=lambda source: -len(source.by)):
        keys = _as_text(source.rows.select(list(source.by)))
        keys = keys.group_by(keys.column_names).aggregate([]) if keys.column_names else keys
        if cells is None:
            cells = keys
        elif not {*keys.column_names} <= {*cells.column_names}:
            cells = _joined(cells, keys)
        for lineage in lineages:
            cells = _with_parents(cells, lineage, {name for other in found for name in other.by})
    assert cells is not None
    kinds = list(dict.fromkeys(kind for source in found for kind in source.kinds))
    workplace = [name for name in cells.column_names if name not in kinds]
    order = sorted(workplace, key=lambda name: (len(cells[name].unique()), name)) + kinds
    values, codes = {}, {}
    for name in order:
        coded = cells[name].combine_chunks().dictionary_encode()
        words = coded.dictionary.to_pylist()
        rank = np.argsort(np.argsort(words)) if words else np.zeros(0, dtype=np.int64)
        values[name] = pa.array(sorted(words), pa.string())
        codes[name] = rank[np.asarray(coded.indices.to_numpy(zero_copy_only=False))].astype(np.int64)
    if order:
        at = np.lexsort([codes[name] for name in reversed(order)])
        codes = {name: column[at] for name, column in codes.items()}
    return JointCells(values, codes, tuple(order[: len(workplace)]), tuple(kinds))


def _joined(cells: pa.Table, keys: pa.Table) -> pa.Table:
    """Both together, on what they share."""
    import pyarrow as pa

    shared = [name for name in keys.column_names if name in cells.column_names]
    if shared:
        most = keys.group_by(shared).aggregate([([], "count_all")])["count_all"]
        _refuse(len(cells) * max(most.to_pylist(), default=1))
        return cells.join(keys, keys=shared, join_type="inner")
    _refuse(len(cells) * len(keys))
    ours = cells.take(pa.array(np.repeat(np.arange(len(cells)), len(keys))))
    theirs = keys.take(pa.array(np.tile(np.arange(len(keys)), len(cells))))
    for name in theirs.column_names:
        ours = ours.append_column(name, theirs[name])
    return ours


def _refuse(cells: int) -> None:
    if cells > MOST_CELLS:
        raise DataError(
            f"The tables together have up to {cells:,} cells.",
            f"At most {MOST_CELLS:,} are filled.",
            "Give releases whose tables share more attributes, or fewer of them.",
            about="release",
        )


def _with_parents(cells: pa.Table, lineage: pa.Table, asked: set[str]) -> pa.Table:
    """Cells with the coarser levels that some table is by."""
    there = [name for name in lineage.column_names if name in cells.column_names]
    wanted = [name for name in lineage.column_names if name in asked and name not in cells.column_names]
    if not there or not wanted:
        return cells
    finest = there[0]
    wanted = [name for name in wanted if lineage.column_names.index(name) > lineage.column_names.index(finest)]
    codes = lineage.select([finest, *wanted])
    codes = codes.group_by(codes.column_names).aggregate([])
    return cells.join(codes, keys=finest, join_type="inner") if wanted else cells


def _as_text(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    if not table.column_names:
        return table
    return pa.table({name: _text(table[name]) for name in table.column_names})


def _text(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks().cast(pa.string()).fill_null("")
