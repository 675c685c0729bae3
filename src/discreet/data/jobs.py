"""The confidential table of jobs: how it is read, and what must be true before anything is published from it.

Haney et al. (2017, section 3) have three tables: workplaces with public attributes, workers with private ones, and
jobs that tie a worker to a workplace. They may come apart or joined, from any engine. Statistics are computed
elsewhere (`tables.cells`). No value is printed here, in an error or in a repr.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.codes import unspelled
from discreet.data.databases import SomeColumns, one_moment
from discreet.data.engines import Engine
from discreet.data.frames import Kind, as_text, called, open_frame, refuse, require, working
from discreet.data.lineage import Lineage, derive, trace
from discreet.data.one_at_a_time import in_turn
from discreet.data.row_checks import (
    ROW,
    SEVERAL,
    WHERE,
    Pass,
    RowCheck,
    amounts,
    differ,
    each_row,
    empty,
    ends,
    faults_of,
    names_again,
    nulls,
    once,
    one_row_per_job,
    outside,
    sizes,
    tick,
    twice,
    whole_units,
)
from discreet.data.scans import folder_of, origin_of, tables_in
from discreet.data.schema import Label, Schema, several_jobs
from discreet.data.stamps import UNWATCHED, Stamps
from discreet.data.unnamed import columns_of, unnamed
from discreet.privacy.units import EstablishmentNodes, Establishments, Unit, is_weak
from discreet.words.arguments import of_kinds
from discreet.words.errors import concerning
from discreet.words.faults import Argument, Fault

if TYPE_CHECKING:
    from discreet.data.frames import Frame

OWN = "__own "  # what jobs call their own copies of listed columns begins so; schemas have no such names
TRUNCATED = (
    "Jobs of establishments larger than theta are not counted: counts are of the others, and so are their intervals, "
    "which need not hold the count of all jobs"
)
WEAKLY = (
    "The weak definition hides growth of any kind of worker, and of any kinds together, by such a share or by one; "
    "many more of a kind that an establishment has few of, or one of each of several such kinds, it does not hide"
)
NOT_VALIDATED = (
    "The rows were not validated: an establishment in two cells, or a worker with two jobs, would not be covered"
)
ASSUMED_PUBLIC = (
    "No public list of establishments was given: the cells are those of the establishments in the table of jobs, "
    "whose existence is taken to be public"
)
NO_NAMES = (
    "Workers have no name in these data, so two jobs of one are taken for two workers: the promise is about one job"
)
ANY_NUMBER = (
    "A worker may have jobs at several establishments: the promise is about one of them, not about all jobs of a "
    "worker together"
)
SEVERAL_JOBS = (
    "A worker may have jobs at up to {0} establishments: all of them together count as {0} such changes, and are "
    "protected by {0} times the epsilon"
)
_FIRST_SEVERAL_JOBS = (
    "A worker may have jobs at up to {0} establishments: about all of them together as much may be told as about {0} "
    "such changes, {0} times the epsilon"
)


def first_limit(note: str) -> str:
    """A note of `Jobs.limits` in the words of the first bundles."""
    most = note.removeprefix("A worker may have jobs at up to ").partition(" ")[0]
    return _FIRST_SEVERAL_JOBS.format(most) if note == SEVERAL_JOBS.format(most) else note


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Jobs:
    """The confidential table of jobs, still in its engine.

    Attributes
    ----------
    table : one row per job, or per count of jobs if the schema has a size.
    schema : which column is what.
    workplaces : the public list of establishments; without it, those in the rows are the public ones.
    workers : the workers' attributes, where they are not columns of `table`.
    allow_multiple : a worker may have jobs at any number of establishments, or at so many; at one of them always one.
    name : what messages call it.
    validated : every row was checked.
    counted : rows with a size, unchanged: all their columns together identify them.
    lineage : the codes of declared hierarchies with their parents. Public.
    origin : the files that were read, by which a ledger recognises them; None for frames.
    known : without a public list, establishments that other rows than those of `table` show to exist, and its own.
    files : the files as they were before they were read.
    quarters : of jobs from histories, the quarters of all rows behind them.
    """

    table: Frame
    schema: Schema
    workplaces: Frame | None = None
    workers: Frame | None = None
    allow_multiple: bool | int = False
    name: str = "jobs"
    validated: bool = False
    counted: Frame | None = None
    lineage: Lineage | None = None
    origin: str | None = None
    known: Frame | None = None
    files: Stamps = UNWATCHED
    quarters: tuple[Label, ...] = ()

    @property
    def listed(self) -> Frame:
        """The rows that say where establishments are: the public list, or the jobs."""
        return next((each for each in (self.workplaces, self.known) if each is not None), self.table)

    @property
    def most_jobs(self) -> int | None:
        """The number of establishments at which a worker may have a job; None where any number is allowed."""
        multiple = self.allow_multiple
        return (None if multiple else 1) if isinstance(multiple, bool) else multiple

    @property
    def of_one_worker(self) -> int | None:
        """The most jobs that one worker can have; None where there is no bound, or workers have no name."""
        return None if self.schema.worker is None else self.most_jobs

    def limits(self, unit: Unit) -> tuple[str, ...]:
        """What a promise about these jobs does not cover. It depends on what was declared, never on the rows."""
        notes = {
            ASSUMED_PUBLIC: self.workplaces is None,
            NOT_VALIDATED: not self.validated,
            TRUNCATED: isinstance(unit, EstablishmentNodes),
            WEAKLY: isinstance(unit, Establishments) and is_weak(unit.strength),
            self._several(): not isinstance(unit, EstablishmentNodes),  # whole establishments have all of their jobs
        }
        return tuple(note for note, applies in notes.items() if applies and note)

    def _several(self) -> str:
        """What the promise covers if a worker may have several jobs."""
        if self.schema.worker is None:
            return NO_NAMES
        if self.most_jobs is None:
            return ANY_NUMBER
        return SEVERAL_JOBS.format(self.most_jobs) if self.most_jobs > 1 else ""

    @property
    def frame(self) -> Frame:
        """One row per job, with the worker's attributes."""
        workers = self.workers
        return self.table if workers is None else self.table.join(workers, on=self.schema.worker, how="left")

    def __repr__(self) -> str:
        schema = self.schema
        domains = (f"{name} ({len(domain)} categories)" for name, domain in schema.worker_attributes.items())
        lines = {
            "establishment": schema.establishment,
            "size" if schema.size else "worker": schema.size or schema.worker,
            "workplace attributes": ", ".join(schema.workplace_attributes) or "none",
            "worker attributes": ", ".join(domains) or "none",
            "establishments": "those in its rows" if self.workplaces is None else "a public list",
        }
        head = f"Jobs {self.name!r} ({self.table.implementation.name.lower()}). Confidential: only the schema is shown."
        return "\n".join([head, *(f"  {name:20}  {value}" for name, value in lines.items())])

    def validate(self, *, may_be_empty: bool = False) -> Jobs:
        """Check every row, lists first, and report all faults together.

        No value is missing. Every category is in its public domain. Every job has an establishment and a worker that
        exist. A worker has as many jobs as allowed, and one value of each attribute. An establishment has one value of
        each attribute, the same in every table. Sizes are not negative and not huge, and no counted row appears twice.
        """
        with working(f"check {self.name}"):
            refuse(faults_of(self.passes_of_lists, partial(self.passes, may_be_empty=may_be_empty)))
        return replace(self, validated=True, table=self.distinct())

    def distinct(self, *, compared: bool = True) -> Frame:
        """One row per worker at an establishment, if a worker may have several rows.

        Own copies of listed columns are left out once they were `compared`: a row without one would be another job.
        """
        several = self.schema.worker is not None and self.allow_multiple is not False
        own = [name for name in self.table.collect_schema() if compared and (name == ROW or name.startswith(OWN))]
        return self.table.drop(*own).unique() if several else self.table

    def passes_of_lists(self) -> Iterator[Pass]:
        """Checks of lists, and of the jobs of one establishment or worker."""
        schema = self.schema
        key, attributes = schema.establishment, schema.listed
        if self.workplaces is not None:
            checks = [*empty("workplaces"), *nulls("workplaces", [key, *attributes])]
            checks += names_again("workplaces", self.workplaces, [key, *attributes])
            yield Pass("workplaces", self.workplaces, checks, self.workplaces)
            yield once(self.workplaces, "workplaces", key)
        elif attributes:
            remedy = "An establishment lies in one cell: correct it, or give each site a number of its own."
            checks = differ(self.name, key, attributes, "in some establishment", remedy)
            yield Pass("source", self.table.group_by(key).agg(*ends(attributes)), checks, self.table)
        worker, domains = schema.worker, schema.worker_attributes
        if self.workers is not None and worker is not None:
            checks = [*nulls("workers", [worker, *domains]), *outside("workers", domains)]
            checks += names_again("workers", self.workers, [worker, *domains])
            yield Pass("workers", self.workers, checks, self.workers)
            yield once(self.workers, "workers", worker)
        if worker is not None and self.allow_multiple is not False:
            yield from self._several_jobs(worker, () if self.workers is not None else tuple(domains))

    def _several_jobs(self, key: str, attributes: Sequence[str]) -> Iterator[Pass]:
        """The faults of workers who have several jobs. A job is a worker at an establishment."""
        import narwhals.stable.v2 as nw

        remedy = "A worker has one value of each attribute: correct it, or give each person a number of their own."
        checks = differ(self.name, key, attributes, "for some worker", remedy)
        if self.most_jobs is not None:
            fault = Fault(
                "allow_multiple",
                (
                    f"Some workers of {self.name} have jobs at more establishments than {self.most_jobs}, which ",
                    Argument("allow_multiple", self.most_jobs),
                    " allows.",
                ),
                remedy=("Raise it to the most that one worker may have, or drop jobs.", WHERE),
            )
            jobs = nw.col(self.schema.establishment).n_unique().over(key)
            checks.append(RowCheck(fault, (nw.col("__jobs") > self.most_jobs).any(), jobs > self.most_jobs))
        if checks:
            by_worker = self.distinct().group_by(key).agg(nw.len().alias("__jobs"), *ends(attributes))
            yield Pass("source", by_worker, checks, self.table)

    def passes(self, *, sound_lists: bool, may_be_empty: bool = False) -> Iterator[Pass]:
        """Checks of the rows of jobs. A list that is not sound gives only its keys, each once."""
        import narwhals.stable.v2 as nw

        schema, table = self.schema, self.table
        checks = [*([] if may_be_empty else empty(self.name)), *nulls(self.name, schema.keys)]
        checks += names_again(self.name, table, schema.keys)
        if self.workplaces is None:
            checks += nulls(self.name, schema.listed)
        if self.workers is None:
            checks += [*nulls(self.name, schema.worker_attributes), *outside(self.name, schema.worker_attributes)]
        if schema.worker is not None and self.allow_multiple is False:
            yield once(self.table, self.name, schema.worker, SEVERAL)
        if self.counted is not None:
            yield twice(self.counted, name=self.name)
        if schema.size is not None:
            checks += sizes(schema.size, self.name)
        checks += amounts(schema.magnitudes, self.name, jobs=schema.size)
        there = table.collect_schema()
        for kind, key, found in _links(self):
            known, listed = f"known {kind}", found if sound_lists else found.select(key).unique()
            types = listed.collect_schema()
            both = [name for name in types if _own(name) in there]
            theirs = [nw.col(name).alias(f"{known} {name}") for name in both]
            table = table.join(listed.select(nw.col(key), nw.lit(1).alias(known), *theirs), on=key, how="left")
            words = f"Some rows of {self.name} have a {key!r} not in {kind}s."
            fault = Fault("source", words, remedy=(f"Add the {kind} or drop the rows.", WHERE))
            right = f"{tick(known)} IS NOT NULL"
            checks.append(each_row(fault, ~nw.col(key).is_null() & nw.col(known).is_null(), right, joined=True))
            for name in both:
                fault = Fault(
                    "source",
                    f"Column {name!r} of {self.name} differs from {kind}s in some rows.",
                    f"A {kind} has one value of it.",
                    (f"Correct one of the tables, or drop the column from {self.name}.", WHERE),
                )
                pair = [nw.col(_own(name)), nw.col(f"{known} {name}")]
                alike = types[name] == there[_own(name)]
                right_copy = f"{tick(_own(name))} = {tick(f'{known} {name}')}" if alike else None
                pair = pair if alike else [column.cast(nw.String) for column in pair]
                checks.append(each_row(fault, pair[0] != pair[1], right_copy, joined=True))
        yield Pass("source", table, checks, table, alone=self.table)


@of_kinds
@one_moment(keep=True)
@in_turn
def read_jobs(
    source: Any,
    *,
    workplaces: Any = None,
    workers: Any = None,
    schema: Schema | Mapping[str, Any] | str | Path | None = None,
    allow_multiple: bool | int = False,
    validate: bool = True,
    engine: Engine | None = None,
) -> Jobs:
    """Open the confidential table of jobs: a path, an address, or a frame of pandas, Polars, Arrow, DuckDB or Spark.

    A directory may hold `jobs.parquet`, or `job.parquet` and `worker.parquet`, with `workplace.parquet` beside it.

    Parameters
    ----------
    source : one row per job; rows of one worker at one establishment are one job.
    workplaces : the public list of establishments with their attributes; without it they are columns of `source`.
    workers : the workers' attributes; without it they are columns of `source`.
    schema : the role of each column; by default `schema.toml` or `schema.json` beside the data.
    allow_multiple : whether a worker may have jobs at several establishments: False, True, or at how many at most.
    validate : whether every row is checked.
    engine : the engine that computes; by default that of the data, and DuckDB for files.

    Returns
    -------
    The jobs, checked. Nothing of them is shown.

    Examples
    --------
    >>> rows = {"workplace": ["a", "a"], "worker": [1, 2], "place": ["01", "01"], "sex": ["F", "M"]}
    >>> jobs = read_jobs(rows, schema=Schema(["place"], {"sex": ["F", "M"]}))
    """
    allow_multiple = several_jobs(allow_multiple)
    with concerning("source"):
        name, folder = called(source, "jobs"), folder_of(source)
    if folder is not None and folder == Path(source):
        source, workplaces, workers = tables_in(folder, workplaces, workers)
    with concerning("schema"):
        schema = Schema.given(schema, data=folder, name=name)
    refuse(one_row_per_job(schema, allow_multiple))
    files = Stamps.of({"source": source, "workplaces": workplaces, "workers": workers}, engine=engine)
    read = open_frame if engine is None else engine.read
    readings = schema.readings((source, workplaces, workers))
    needed = [*schema.keys, *schema.listed, *schema.worker_attributes, *schema.magnitudes]
    lists: dict[str, Frame] = {}
    listed: list[str] = []
    for kind, data, key, attributes, confidential in (
        ("workplaces", workplaces, schema.establishment, schema.listed, False),
        ("workers", workers, schema.worker, list(schema.worker_attributes), True),
    ):
        if data is not None and key is not None:
            with concerning(kind):
                part = SomeColumns.of(data, [key, *attributes])
                rows = read(part, name=kind, readings=readings)
                lists[kind] = _select(rows, [key, *attributes], schema, name=kind)
            if confidential:
                refuse(unnamed(schema, columns_of(part, rows), name=kind))
            needed = [column for column in needed if column not in attributes]
            listed += attributes
    with concerning("source"):
        # All columns tell counted rows apart.
        part = source if schema.size else SomeColumns.of(source, [*needed, *listed])
        rows = read(part, name=name, readings=readings)
        table = _select(rows, needed, schema, name=name, also=listed)
    refuse(unnamed(schema, columns_of(part, rows), name=name))
    send = None if engine is None else engine.read
    if "workplaces" in lists:
        lists["workplaces"] = derive(lists["workplaces"], schema, send)
    else:
        table = derive(table, schema, send)
    jobs = Jobs(
        table=table,
        schema=schema,
        workplaces=lists.get("workplaces"),
        workers=lists.get("workers"),
        allow_multiple=allow_multiple,
        name=name,
        counted=None if schema.size is None else rows,
        origin=origin_of(source),
        files=files,
    )
    refuse(fault for kind, key, listed in _links(jobs) for fault in _mismatch(jobs, kind, key, listed))
    jobs = jobs.validate() if validate else replace(jobs, table=jobs.distinct(compared=False))
    return replace(jobs, lineage=trace(jobs.listed, schema, name=name)) if schema.hierarchy else jobs


def _own(column: str) -> str:
    """The name in jobs of their own copy of a column that a list decides."""
    return f"{OWN}{column}"


def _select(frame: Frame, columns: Sequence[str], schema: Schema, *, name: str, also: Sequence[str] = ()) -> Frame:
    """The columns that are needed, after their types were found to suit; `also`, if there, under other names."""
    import narwhals.stable.v2 as nw

    kinds: dict[str, Kind] = dict.fromkeys(schema.magnitudes, "number")
    kinds |= {} if schema.size is None else {schema.size: "integer"}
    require(frame, {column: kinds.get(column, "label") for column in columns}, name=name)
    types, codes = frame.collect_schema(), {*schema.listed, *schema.worker_attributes}
    domains = {column: schema.domain(column) for column in columns if column in schema.worker_attributes}
    refuse(words for column in domains for words in unspelled(column, types[column], domains[column], name=name))
    frame = as_text(frame, [column for column in types if column in codes])
    types = frame.collect_schema()
    numbered = [ROW] if ROW in types else []
    added = {column: schema.magnitudes[column] for column in columns if column in schema.magnitudes}
    frame = frame.with_columns(whole_units(added, types, jobs=schema.size))
    copied = [nw.col(column).alias(_own(column)) for column in also if column in types]
    return frame.select(*columns, *numbered, *copied)


def _links(jobs: Jobs) -> Iterator[tuple[str, str, Frame]]:
    """The lists that jobs refer to: what of, by which column, and the list."""
    if jobs.workplaces is not None:
        yield "workplace", jobs.schema.establishment, jobs.workplaces
    if jobs.workers is not None and jobs.schema.worker is not None:
        yield "worker", jobs.schema.worker, jobs.workers


def _mismatch(jobs: Jobs, kind: str, key: str, listed: Frame) -> Iterator[Fault]:
    """Why two tables cannot be joined: they live in two engines, or their keys are of two types."""
    ours, theirs = jobs.table.implementation, listed.implementation
    if ours is not theirs:
        yield Fault(
            f"{kind}s",
            f"{jobs.name} is in {ours.name.lower()} and {kind}s in {theirs.name.lower()}; one engine joins tables.",
            remedy="Pass engine=engines.open(...), or both as the same kind of frame.",
        )
    left, right = jobs.table.collect_schema()[key], listed.collect_schema()[key]
    if left.is_integer() != right.is_integer():
        words = f"Column {key!r} holds {left} in {jobs.name} and {right} in {kind}s."
        yield Fault("source", words, remedy="Cast one of them at the source.")
