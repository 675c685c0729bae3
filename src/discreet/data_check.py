"""A check of a table for its owner, before any plan exists: what a release would refuse and what is odd, by row.

A refusal gives only the kind of fault, because its reader may not be allowed to know more. Here the owner learns the
rows. The result is confidential and is part of no release. No value is in it; nothing else calls it.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.data.delimited import BadLine, lines, quoted
from discreet.data.frames import called, collect, open_frame, refuse, tally
from discreet.data.histories import Histories, history_faults, read_histories
from discreet.data.jobs import Jobs, read_jobs
from discreet.data.oddities import oddities
from discreet.data.row_checks import ROW, WHERE, Pass, RowCheck, at_the_cap
from discreet.data.scans import is_csv
from discreet.data.schema import REST, Label, Schema
from discreet.data.unnamed import index_of, periods, unnamed
from discreet.release.files import MANIFEST
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError, concerning
from discreet.words.faults import Fault
from discreet.words.voices import COMMAND, Voice

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    from discreet.data.frames import Frame
    from discreet.privacy.losses import Number

Places: TypeAlias = "Mapping[str, Callable[[int], tuple[str, int | None]]]"
"""For each table, by its name in messages: a function from the place of a row among all rows to its file and number."""

KEPT = 10_000
"""Rows of one finding that are listed; its number is always whole."""

COLUMNS = ("table", "row", "refused", "finding")
NOTICE = "confidential: it is about single rows; keep it with the data"


@dataclass(frozen=True, slots=True)
class DataFinding:
    """Something that is wrong or odd.

    Attributes
    ----------
    table : the file, or the part that a table came as.
    fault : in the words of a refusal.
    refused : a release is refused because of it, or would not be about these data; otherwise it is worth a look.
    count : how many rows have it; None where it is of the whole table, or of a line that cannot be read.
    rows : the first of their numbers. In a CSV file that is the line where the row begins, as an editor counts.
    """

    table: str
    fault: Fault
    refused: bool
    count: int | None = None
    rows: tuple[int, ...] = ()

    def said(self, voice: Voice = COMMAND) -> str:
        """The fault in words, without where one asks for the rows."""
        remedy = self.fault.remedy
        if isinstance(remedy, tuple):
            remedy = tuple(phrase for phrase in remedy if phrase != WHERE)
        return replace(self.fault, remedy=remedy).said(voice)


@dataclass(frozen=True, slots=True, repr=False)
class DataCheck:
    """The owner's report on a table. Confidential.

    Attributes
    ----------
    name : the table.
    rows : how many there are; None where it cannot be opened.
    columns : the type of each column.
    findings : what is wrong first, then what is worth a look.
    """

    name: str
    rows: int | None
    columns: Mapping[str, str]
    findings: tuple[DataFinding, ...]

    def __repr__(self) -> str:
        return f"<DataCheck of {self.name!r}: for its owner alone>"

    @property
    def refused(self) -> bool:
        """Whether a release would be refused."""
        return any(finding.refused for finding in self.findings)

    def to_dict(self, voice: Voice = COMMAND) -> dict[str, Any]:
        """For programs of the owner."""
        return {
            "table": self.name,
            "rows": self.rows,
            "columns": dict(self.columns),
            "findings": [
                {
                    "table": one.table,
                    "about": one.fault.about,
                    "refused": one.refused,
                    "message": one.said(voice),
                    "count": one.count,
                    "rows": list(one.rows),
                }
                for one in self.findings
            ],
        }

    def write(self, path: str | Path) -> Path:
        """Write the numbers of rows to a CSV file that this user alone can read; never where releases are."""
        path = Path(path)
        beside = [folder for folder in path.resolve().parents if (folder / MANIFEST).exists()]
        released = [*path.resolve().parent.glob(f"*/{MANIFEST}"), *beside]
        if released:
            raise DataError(
                f"{path.name} would lie among releases.",
                "It is about single rows, and it would leave together with the folder.",
                "Name a file beside the data.",
                about="faults",
            )
        if path.exists() and not _is_ours(path):
            raise DataError(
                f"{str(path)!r} exists and is not a list of faults.",
                "Nothing is replaced by one.",
                "Name another file.",
                about="faults",
            )
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file)
            lines.writerow([*COLUMNS, NOTICE])
            for one in self.findings:
                refused = "yes" if one.refused else "no"
                lines.writerows([one.table, row, refused, one.said()] for row in one.rows or ("",))
        return path


@of_kinds
def check_data(
    source: Any,
    *,
    schema: Schema | Mapping[str, Any] | str | Path | None = None,
    workplaces: Any = None,
    workers: Any = None,
    allow_multiple: bool | int = False,
    quarters: Sequence[Label] | None = None,
    time: str = "quarter",
    response: str | None = None,
    public: Sequence[str] = (),
    numbers: Sequence[str] = (),
    bounds: tuple[Number, Number] | None = None,
) -> DataCheck:
    """Look for faults in a table before any plan exists: for its owner, never for the person who asks for a release.

    Without a schema or a response it finds what can be wrong with any table: an encoding, a bad line, names, missing
    values, spellings, codes that lost zeros, repeated rows.

    Parameters
    ----------
    source : a path, or a frame of pandas, Polars, Arrow or DuckDB.
    schema : which column of jobs is what, as in `read_jobs`; it finds all that a release of counts would refuse.
    workplaces, workers, allow_multiple : as in `read_jobs`.
    quarters, time : for job histories, all quarters in their order and the column that has them, as in
        `read_histories`; it finds all that a release of flows or changes would refuse.
    response, public, numbers, bounds : what a model would protect, which columns it would take as public and which as
        protected numbers, and where responses lie; it finds public columns that hold the response again.

    Returns
    -------
    What is wrong and what is odd, with the rows. Confidential.

    Examples
    --------
    >>> found = check_data({"place": ["06001", "6001", "06001"], "sex": ["F", "f", "M"]})
    >>> [(one.fault.about, one.rows) for one in found.findings]
    [('sex', (1, 2)), ('place', (2,))]
    """
    if source is None:
        raise DataError("No table was given.", remedy="Give a path or a frame.", about="source")
    name = called(source)
    tables = {"source": source, "workplaces": workplaces, "workers": workers}
    if quarters is not None and (schema is None or workers is not None):
        raise _no_histories("workers" if workers is not None else "schema")
    try:
        known = None if schema is None else Schema.given(schema, data=None, name=name)
        readings = {} if known is None else _timed(known, quarters, time).readings(list(tables.values()))
        called_so = {"source": name, "workplaces": "workplaces", "workers": "workers"}
        given = {role: data for role, data in tables.items() if data is not None}
        frames = {
            role: _numbered(open_frame(data, name=called_so[role], readings=readings)) for role, data in given.items()
        }
        places = {called_so[role]: _place(data, called_so[role], frames[role]) for role, data in given.items()}
        frame = frames["source"]
        roles = [] if response is None else [response, *public, *numbers]
        found = [*_without_role(frame, known, roles, None if quarters is None else time, name, places)]
        if known is not None:
            beside = {name: index_of(source), "workers": index_of(workers)}
            if "workers" in frames:
                beside["workers"] += [column for column in frames["workers"].collect_schema() if column != ROW]
            for table, columns in beside.items():
                found += [DataFinding(table, fault, True) for fault in unnamed(known, columns, name=table)]
        if known is not None and quarters is not None:
            told: dict[str, Any] = {"schema": known, "quarters": quarters, "time": time, "validate": False}
            told |= {"allow_multiple": allow_multiple}
            told |= {"schema": replace(known, unused=(REST,))}
            read_histories(source, workplaces=workplaces, **told)
            histories = read_histories(frame, workplaces=frames.get("workplaces"), **told)
            found += _refusals_of_histories(histories, name, places)
        elif known is not None:
            named = replace(known, unused=(REST,))
            how: dict[str, Any] = {"schema": named, "allow_multiple": allow_multiple, "validate": False}
            read_jobs(**tables, **how)  # as a release would, so that columns and types are refused by the file's name
            jobs = read_jobs(frame, workplaces=frames.get("workplaces"), workers=frames.get("workers"), **how)
            found += _refusals(replace(jobs, name=name), name, places)
            for check in at_the_cap(known.magnitudes, name, jobs=known.size):
                found += _found(jobs.table, check, name, places, refused=False)
    except DataError as error:
        at = (error.line,) if isinstance(error, BadLine) else ()
        faults = (DataFinding(name, fault, True, None, at) for fault in error.faults)
        return DataCheck(name, None, {}, tuple(faults))
    columns = [] if known is None else [*known.keys, *known.workplace_attributes, *known.worker_attributes]
    columns += [] if quarters is None else [time]
    for part, odd in oddities(frame, required=columns):
        found += _found(part, odd, name, places, refused=False)
    if response is not None:
        from discreet.models.linear.private.owner import look

        with concerning("response"):
            notes = look(source, response=response, public=public, numbers=numbers, bounds=bounds or (0, 1))
        for note in notes:
            fault, refused = Fault("response", note.words), note.fault
            whole = [DataFinding(name, fault, refused)]
            found += _at(fault, note.rows, name, places, refused=refused) if note.rows else whole
    types = {column: plain_type(dtype) for column, dtype in frame.collect_schema().items() if column != ROW}
    rows = tally(frame, {"rows": _length()}, step="count rows")["rows"]
    return DataCheck(name, rows, types, tuple(sorted(found, key=lambda one: not one.refused)))


def _without_role(
    frame: Frame, schema: Schema | None, roles: Sequence[str], time: str | None, name: str, places: Places
) -> Iterator[DataFinding]:
    """Columns that no role names, and of those the ones that may be periods; where these are declared unused, too."""
    there = [column for column in frame.collect_schema() if column not in (ROW, time, *roles)]
    others = there if schema is None else schema.unnamed(there)
    idle = [] if schema is None else schema.idle(there)
    asked: set[str | None] = set()
    for columns, refused in ((others, schema is not None), (idle, False)):
        for fault, rows in periods(frame, schema, columns, time=time):
            asked.add(fault.about)
            if rows is not None:
                yield from _found(frame, RowCheck(fault, rows, rows), name, places, refused=refused)
            elif refused or schema is None:
                yield DataFinding(name, fault, refused)
    if schema is not None:
        left = [column for column in others if column not in asked]
        yield from (DataFinding(name, fault, True) for fault in unnamed(schema, left, name=name))


def _numbered(frame: Frame) -> Frame:
    """The rows with their places among all."""
    if not frame.implementation.is_duckdb():
        frame = open_frame(collect(frame, step="read rows"))
    return open_frame(frame.to_native().project(f"*, row_number() OVER () AS {quoted(ROW)}"))


def _place(data: Any, name: str, frame: Frame) -> Callable[[int], tuple[str, int | None]]:
    """The file and the number of a row. The files of a CSV table are read for it once, and only on request."""
    if not is_csv(data):
        return lambda row: (name, row)
    found: list[list[tuple[str, int]] | None] = []

    def place(row: int) -> tuple[str, int | None]:
        if not found:
            columns = [column for column in frame.collect_schema() if column != ROW]
            rows = tally(frame, {"rows": _length()}, step="count rows")["rows"]
            found.append(lines(str(data), columns, rows=rows))
        if found[0] is None:
            return name, None
        file, line = found[0][row - 1]
        first, last = found[0][0][0], found[0][-1][0]  # files come in order, so that these differ where there are two
        return name if first == last else os.path.relpath(file, os.path.commonpath([first, last])), line

    return place


def _refusals(jobs: Jobs, name: str, places: Places, *, may_be_empty: bool = False) -> Iterator[DataFinding]:
    """The faults for which a release of counts would be refused."""
    lists = [one for each in jobs.passes_of_lists() for one in _rows_of(each, name, places)]
    yield from lists
    for each in jobs.passes(sound_lists=not lists, may_be_empty=may_be_empty):
        yield from _rows_of(each, name, places)


def _refusals_of_histories(histories: Histories, name: str, places: Places) -> list[DataFinding]:
    """The faults for which a release of flows would be refused, and quarters without rows."""
    histories = replace(histories, jobs=replace(histories.jobs, name=name))
    for each in histories.passes():
        if found := [*_rows_of(each, name, places)]:
            return found
    joined: dict[tuple[str, Fault], DataFinding] = {}
    for jobs in histories.each_quarter():
        for one in _refusals(jobs, name, places, may_be_empty=True):
            before = joined.setdefault((one.table, one.fault), one)
            rows = tuple(sorted({*before.rows, *one.rows}))  # a list is looked at in every quarter
            joined[one.table, one.fault] = replace(before, count=len(rows) if rows else before.count, rows=rows[:KEPT])
    empty = [
        Fault("quarters", f"No row is of quarter {quarter!r}.", "It would be released as one without jobs.")
        for quarter in histories.quarters_without_rows()
    ]
    return [*joined.values(), *(DataFinding(name, fault, False) for fault in empty)]


def _timed(schema: Schema, quarters: Sequence[Label] | None, time: str) -> Schema:
    """The schema by which columns are read: the quarter is one of them in histories."""
    if quarters is None:
        return schema
    refuse(history_faults(quarters, schema, time))
    return replace(schema, worker_attributes={**schema.worker_attributes, time: tuple(quarters)})


def _no_histories(role: str) -> DataError:
    possible = {
        "schema": "Job histories are read by a schema, which names the worker and the establishment.",
        "workers": "Attributes of workers are columns of job histories.",
    }
    asked = "quarters without a schema" if role == "schema" else "quarters beside a list of workers"
    return DataError(
        f"A check asks for {asked}.",
        possible[role],
        "Name the columns." if role == "schema" else "Leave the list out.",
        about=role,
    )


def _rows_of(one: Pass, name: str, places: Places) -> Iterator[DataFinding]:
    table = name if one.table == "source" else one.table
    occur = set(one.faults())
    for check in one.checks:
        if check.fault in occur:
            found = list(_found(one.rows, check, table, places, refused=True)) if check.rows is not None else []
            yield from found or [DataFinding(table, check.fault, True)]


def _found(frame: Frame, check: RowCheck, table: str, places: Places, *, refused: bool) -> Iterator[DataFinding]:
    """A finding for each file that has such rows."""
    assert check.rows is not None, check
    at_fault = collect(frame.filter(check.rows).select(ROW).sort(ROW), step="rows at fault")[ROW]
    yield from _at(check.fault, at_fault.to_pylist(), table, places, refused=refused)


def _at(fault: Fault, rows: Sequence[int], table: str, places: Places, *, refused: bool) -> Iterator[DataFinding]:
    for file, found in groupby(map(places[table], rows), key=lambda place: place[0]):
        numbers = [number for _, number in found]
        known = tuple(number for number in numbers[:KEPT] if number is not None)
        yield DataFinding(file, fault, refused, len(numbers), known)


def _length() -> nw.Expr:
    import narwhals.stable.v2 as nw

    return nw.len()


def plain_type(dtype: Any) -> str:
    """A type in a plain word."""
    import narwhals.stable.v2 as nw

    if dtype == nw.String:
        return "text"
    if dtype == nw.Boolean:
        return "true or false"
    return "whole numbers" if dtype.is_integer() else "numbers" if dtype.is_numeric() else str(dtype).lower()


def _is_ours(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return next(csv.reader(file), []) == [*COLUMNS, NOTICE]
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
