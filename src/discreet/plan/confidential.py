"""The confidential data of a plan: which files; opened when first asked for, every row checked, counted once."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.data.databases import Address, is_address
from discreet.data.frames import called, count_if, tally
from discreet.data.hierarchy import Hierarchy
from discreet.data.histories import Histories, read_histories
from discreet.data.jobs import Jobs, read_jobs
from discreet.data.lineage import read_lookup
from discreet.data.scans import folder_of, tables_in
from discreet.data.stamps import files_of
from discreet.data.unnamed import names_of, unnamed
from discreet.ledger.openings import alike
from discreet.plan.engine import engine_of, watch
from discreet.plan.file import PlanFile, PlanSource
from discreet.privacy.units import Establishments
from discreet.release.files import MANIFEST
from discreet.tables.cells import Cells
from discreet.tables.prepared import Prepared
from discreet.tables.query import CountQuery
from discreet.words.errors import DataError, DiscreetError
from discreet.words.faults import Fault, Place

if TYPE_CHECKING:
    from discreet.data.delimited import Reading
    from discreet.data.engines import Engine
    from discreet.data.frames import Frame


MOST_VALUES = 100_000_000
"""Values that come from a cluster to this machine for one release: 0.8 GB of numbers."""


@dataclass(slots=True)
class Confidential:
    """The data of one source of a plan."""

    source: PlanSource
    _jobs: Jobs | None = None
    _histories: Histories | None = None
    _read: dict[Hashable, Cells] = field(default_factory=dict)
    _paired: set[Hashable] = field(default_factory=set)

    @property
    def path(self) -> Path | str:
        return self._readable("source", self.source.tables.data.source)

    @property
    def engine(self) -> Engine | None:
        """The engine that computes, if it is not the one of this process."""
        return engine_of(self.source.file)

    def table(self, readings: Mapping[str, Reading]) -> Any:
        """The rows that models and summaries are of, in the plan's engine."""
        path, engine = self.path, self.engine
        return path if engine is None else engine.read(path, name="data", readings=readings)

    def refuse_collection(self, table: Frame, columns: Iterable[str]) -> None:
        """Refuse rows that would have to come from a cluster to this machine, where they are too many."""
        import narwhals.stable.v2 as nw

        rows, width = tally(table, {"rows": nw.len()}, step="number of rows")["rows"], len([*columns])
        if rows * width > MOST_VALUES:
            raise DataError(
                f"Its {rows:,} rows of {width} columns would come from Spark to this machine.",
                f"At most {MOST_VALUES:,} values do; sums by categories are computed on the cluster.",
                "Use a model with a category and without lags, splines and polynomials, or leave [engine] out.",
                about="formula",
            )

    def jobs(self) -> Jobs:
        """The table of jobs, after every row was found to be as the schema promises."""
        if self._jobs is None:
            data = self.source.tables.data
            with self._blaming():
                self._jobs = read_jobs(
                    self.path,
                    workplaces=None if data.workplaces is None else self._readable("workplaces", data.workplaces),
                    workers=None if data.workers is None else self._readable("workers", data.workers),
                    schema=self.source.schema(),
                    allow_multiple=data.allow_multiple,
                    engine=self.engine,
                )
            self.source.file.document.refuse(list(self._unlabelled_twins(self._jobs)))
        return self._jobs

    def histories(self) -> Histories:
        """The jobs of all quarters, after every row was found to be as the schema promises."""
        if self._histories is None:
            data = self.source.tables.data
            with self._blaming():
                self._histories = read_histories(
                    self.path,
                    quarters=data.quarters,
                    time=data.time,
                    workplaces=None if data.workplaces is None else self._readable("workplaces", data.workplaces),
                    schema=self.source.schema(),
                    allow_multiple=data.allow_multiple,
                    engine=self.engine,
                )
            self.source.file.document.refuse(list(self._unlabelled_twins(self._histories.jobs)))
        return self._histories

    def unnamed(self) -> list[Fault]:
        """The fault of columns of jobs without a role, by their names in the head of a file; no cluster is asked.

        What cannot be opened, and what a cluster or a server stores, a run refuses before it pays.
        """
        data = self.source.tables.data
        with suppress(DiscreetError, OSError, ValueError):  # Arrow's failures are of these
            path: Any = self.source.data(data.source)
            if (folder := folder_of(path)) is not None and folder == Path(path):
                path = tables_in(folder, None, None)[0]
            found = names_of(path)
            schema = self.source.schema()
            if not {*schema.keys} <= {*found}:
                return []  # names that are written otherwise are told by who opens the rows
            others = [column for column in found if not (data.quarters and column == data.time)]
            faults = unnamed(schema, others, name=called(path, "jobs"))
            return [replace(fault, place=self._place(fault)) for fault in faults]
        return []

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        """Refuse what is wrong with the data at the keys that name them."""
        try:
            yield
        except DataError as error:
            self.source.file.document.refuse([replace(fault, place=self._place(fault)) for fault in error.faults])
            raise

    def _readable(self, key: str, text: str) -> Path | str:
        """The path under a key of [data], if this user may read what is there; servers are asked when it is read."""
        path = self.source.data(text)
        watch(self.source.file, path)
        if isinstance(path, str):
            return path
        closed = next((found for found in files_of(path) if not os.access(found, os.R_OK)), None)
        if closed is not None:
            words = (
                f"{str(closed)!r} may not be read by this user. Data are read where they are. Give the right to read."
            )
            self.source.file.document.refuse([Fault(self.source.place("data", key), words)])
        return path

    def _place(self, fault: Fault) -> Place:
        """The key that a fault of the jobs is about; what the plan does not name is part of its source."""
        about, _, name = (fault.about or "").partition(".")
        if about == "hierarchy" and name in self.source.tables.hierarchy:
            return self.source.place("hierarchy", name)
        if about == "schema":
            return self.source.place("data", about)
        return self.source.place("data", about if about in self.source.tables.data.model_fields_set else "source")

    def _unlabelled_twins(self, jobs: Jobs) -> Iterator[Fault]:
        """Labels that equal another, unlabelled value of a workplace attribute, where these values are public."""
        import narwhals.stable.v2 as nw

        if jobs.workplaces is None and not isinstance(self.source.unit, Establishments):
            return  # only jobs would tell; no table has such values then
        labels = {name: self.source.tables.data.labels.get(name, {}) for name in jobs.schema.workplace_attributes}
        taken = {name: [word for word in words.values() if word not in words] for name, words in labels.items()}
        checks = {name: count_if(nw.col(name).cast(nw.String).is_in(words)) for name, words in taken.items() if words}
        listed = jobs.table if jobs.workplaces is None else jobs.workplaces
        for name, found in tally(listed, checks, step="check labels").items():
            if found:
                yield Fault(
                    self.source.place("data", "labels", name),
                    f"a label equals another value of {name!r} that has no label. Readers tell categories apart by "
                    "their labels. Choose another label, or label that value too.",
                )

    def statistics(self, query: CountQuery, ready: Prepared) -> Cells:
        """The confidential aggregates of a table.

        A count by kinds of workers also gives the count and the largest establishment of all workers of a cell. So a
        table without worker attributes needs no pass of its own after one that has them.
        """
        cells, pairs, whole = _cells(query, ready), ready.mechanism.by_pairs, not query.concerns_workers
        known = self._read.get(cells) if whole else None
        if known is not None and not (pairs and known.second_total is None):
            return _all_workers(known)
        paired = cells in self._paired or (whole and pairs)
        found = replace(query, jobs=self.jobs()).statistics(ready, second_total=paired)
        if len(cells.kept) == len(query.where):
            self._read[cells] = found
        return found

    def expect(self, query: CountQuery, ready: Prepared) -> None:
        """Make the first pass over these cells tell what this table will need of all workers."""
        if ready.mechanism.by_pairs and not query.concerns_workers:
            self._paired.add(_cells(query, ready))


class _CellsOf(NamedTuple):
    """What tables with the same statistics of all workers have in common."""

    by: tuple[str, ...]
    kept: tuple[tuple[str, Any], ...]
    theta: int | None
    magnitude: str | None


def _cells(query: CountQuery, ready: Prepared) -> _CellsOf:
    workers = query.jobs.schema.worker_attributes
    kept = tuple((name, values) for name, values in query.where.items() if name not in workers)
    return _CellsOf(query.workplace_by, kept, ready.mechanism.theta, query.magnitude)


def _all_workers(cells: Cells) -> Cells:
    """The statistics of the same cells for workers of all kinds together."""
    return replace(
        cells,
        worker_by=(),
        levels=((),),
        counts=cells.counts.sum(axis=1, keepdims=True),
        largest=cells.largest_total[:, None],
        second=None if cells.second_total is None else cells.second_total[:, None],
        unions=None,
    )


def shown_as_public(source: PlanSource) -> Iterator[Fault]:
    """Faults of [public] where it names confidential data, of which `check` would print numbers.

    A file is identified by its device and number, so links, hard links, globs and folders cannot hide it. The list of
    establishments is public, wherever it lies.
    """
    public = source.tables.public
    if public.sizes is None and public.previous is None:
        return
    if public.sizes is not None and not _is_table(source.path(public.sizes)):
        yield Fault(source.place("public", "sizes"), _NO_TABLE.format(public.sizes))
        return
    secret = _all_secret(source)
    if public.sizes is not None and is_secret(source, source.path(public.sizes)):
        yield Fault(source.place("public", "sizes"), _SECRET.format(public.sizes))
    if public.previous is not None and secret & _numbers(_manifested(source.path(public.previous))):
        yield Fault(source.place("public", "previous"), _SECRET.format(public.previous))


def secret_lookups(file: PlanFile) -> Iterator[Fault]:
    """Hierarchies whose lookup is confidential data: codes and their parents are published as they stand there."""
    for source, name, hierarchy, place in _lookups(file):
        if is_secret(source, Path(str(hierarchy.lookup))):
            yield Fault(
                place,
                f"the lookup of hierarchy {name!r} is among the confidential data, or holds some. Codes and "
                "their parents are published. Name a public file with one column for each level.",
            )


def public_lookups(file: PlanFile, sources: Collection[str]) -> Iterator[Fault]:
    """Lookups of these sources that are public and cannot be read, lack a level, or give a code two parents."""
    for source, name, hierarchy, place in _lookups(file):
        if source.name in sources and not is_secret(source, Path(str(hierarchy.lookup))):
            try:
                read_lookup(name, hierarchy)
            except DataError as error:
                yield from (replace(fault, place=place) for fault in error.faults)


def _lookups(file: PlanFile) -> Iterator[tuple[PlanSource, str, Hierarchy, Place]]:
    for source in file.sources:
        try:
            hierarchies = source.schema().hierarchy
        except DiscreetError:
            continue  # the schema's own faults are reported elsewhere
        for name, hierarchy in hierarchies.items():
            if hierarchy.lookup is not None:
                own = name in source.tables.hierarchy
                yield (
                    source,
                    name,
                    hierarchy,
                    source.place("hierarchy", name) if own else source.place("data", "schema"),
                )


def is_secret(source: PlanSource, path: Path) -> bool:
    """Whether confidential data of the plan are at a path."""
    return bool(_all_secret(source) & _numbers(files_of(path)))


def _all_secret(source: PlanSource) -> set[tuple[int, int]]:
    """The files of all confidential data of the plan."""
    return {number for each in source.file.sources for number in _secret(each)}


def _secret(source: PlanSource) -> set[tuple[int, int]]:
    """The files of a source's confidential data."""
    data = source.tables.data
    places = [text for text in (data.source, data.workers) if text is not None]
    if is_address(data.source):
        return _numbers(found for text in places if not is_address(text) for found in files_of(source.path(text)))
    named = [source.path(text) for text in places if not is_address(text)]
    secret = _numbers(found for path in named for found in files_of(path))
    tables = [named[0] / f"{name}.parquet" for name in ("jobs", "job", "worker")]
    if any(path.is_file() for path in tables[:2]):  # a folder in which each file has its role
        listed = named[0] / "workplace.parquet" if data.workplaces is None else source.path(data.workplaces)
        secret -= _numbers([listed]) - _numbers([*tables, *named[1:]])
    return secret


def shared_data(file: PlanFile) -> Iterator[Fault]:
    """Sources that are the same data under two names in the ledger: what is spent under one is not seen by the other.

    Two tables of one database file are two data.
    """
    earlier: list[tuple[PlanSource, str, set[tuple[int, int]]]] = []
    for source in file.sources:
        text = source.tables.data.source
        mine = _secret(source) if len(file.sources) > 1 else set()
        for other, named, theirs in earlier:
            if other.dataset != source.dataset and _same(source, text, named, shared=bool(mine & theirs)):
                yield Fault(
                    source.place("budget", "dataset"),
                    f"{source.dataset!r} and {other.dataset!r} (source {other.name!r}) are the same data. All "
                    f"releases of one data set are paid from one budget. Give both sources the same dataset and "
                    f"budget.",
                )
            elif other.dataset != source.dataset and alike(other.dataset, source.dataset):
                yield Fault(
                    source.place("budget", "dataset"),
                    f"{source.dataset!r} and {other.dataset!r} (source {other.name!r}) differ in case, spaces or signs "
                    "alone. All releases of one data set are paid from one budget. Use one name, or names that cannot "
                    "be confused.",
                )
        earlier.append((source, text, mine))


def _same(source: PlanSource, text: str, named: str, *, shared: bool) -> bool:
    """Whether two places are the same data; `shared` says that a file belongs to both."""
    if is_address(text) or is_address(named):
        return shared or (is_address(text) and is_address(named) and Address.of(text).same_as(Address.of(named)))
    tables = text.partition("::")[2], named.partition("::")[2]
    return (shared or source.path(text) == source.path(named)) and (tables[0] == tables[1] or not all(tables))


_SECRET = (
    "{!r} is among the confidential data, or holds some of them. Only public facts belong here, because `check` "
    "prints what follows from them. Name a public table or an earlier release, or leave it out."
)


_NO_TABLE = (
    "{!r} is a folder without Parquet files, or a pattern that goes through folders. Sizes are one table, as a file or "
    "as a folder of Parquet files alone. Name that."
)


def _is_table(path: Path) -> bool:
    """Whether a path can be one table, without a look into folders below it."""
    if not os.path.isdir(path):  # noqa: PTH112 (no error for what cannot be a path)
        return "**" not in path.parts
    try:
        with os.scandir(path) as found:
            return any(
                Path(entry.name).suffix == ".parquet" or ("=" in entry.name and entry.is_dir()) for entry in found
            )
    except OSError:
        return False


def _manifested(folder: Path) -> Iterator[Path]:
    """The files of an earlier release: its manifest and the files that the manifest names."""
    yield folder / MANIFEST
    try:
        yield from (folder / name for name in json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, LookupError, TypeError):
        return


def _numbers(files: Iterable[Path]) -> set[tuple[int, int]]:
    """Files by their identity, under any name; files that are absent or cannot be seen are left out."""
    found = set()
    for path in files:
        try:
            about = path.stat()
        except (OSError, ValueError):
            continue
        found.add((about.st_dev, about.st_ino))
    return found
