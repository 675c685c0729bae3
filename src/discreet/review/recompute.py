"""The tables of a bundle, checked against each other: the same rows in all files, all kinds of workers, the intervals.

Everything is computed from the research form and public constants. Which workplace cells exist is public, but is not
in a bundle: a cell that was left out is seen only where another table has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.archive.findings import RefutedError, UncheckedError
from discreet.plan.agency_comparison import compared, kept
from discreet.plan.kinds.alarms import AlarmStep
from discreet.plan.kinds.alarms import about as about_alarms
from discreet.plan.kinds.columns import alike, close, distinct, equal, relabelled, same_rows
from discreet.plan.kinds.kind import PlannedRelease
from discreet.plan.kinds.recomputed import Recomputed, has_labels, published
from discreet.plan.sheets import EXCEL, for_programs, told
from discreet.privacy.units import Establishments
from discreet.release.alarms import kept_table
from discreet.release.folder import AGENCY
from discreet.release.tables import read_table
from discreet.review.books import check_book

if TYPE_CHECKING:
    import pyarrow as pa


def check_rows(request: PlannedRelease, folder: Path, about: dict[str, Any]) -> str:
    """All formats of a form hold the same rows; every workplace cell is there once, with all kinds of workers."""
    rows = 0
    for place, attributes in request.places:
        forms = {form: _same(request, folder / place, form, attributes) for form in request.details["forms"]}
        for form in forms if EXCEL in request.details["formats"] else ():
            sentence, named = about["guarantee"]["sentence"], {"name": about["name"], "dataset": about["dataset"]}
            sheet = told(**named, form=form, sentence=sentence, columns=about["columns"])
            written = published(request.details, folder / place, form, attributes)
            check_book(folder / place / f"{form}.{EXCEL}", written, sheet)
        lengths = {len(table) for table in forms.values()}
        if len(lengths) > 1:
            raise RefutedError("its forms have different numbers of rows")
        rows += lengths.pop()
    return f"{rows:,} rows, the same in every format{request.recomputed(folder).check_cells(about)}"


def check_cells(requests: Mapping[str, PlannedRelease], folder: Path) -> str:
    """Tables of all establishments of a source have the same workplace cells, as far as attributes tell them apart."""
    tables = [
        (name, query.workplace_by, _keys(request, number, folder / name), request.source.name)
        for name, request in requests.items()
        if isinstance(request.guarantee.unit, Establishments)
        if "research" in request.details["forms"]
        for number, query in enumerate(request.queries)
        if not query.where and query.workplace_by
    ]
    pairs = [
        (fine[:3], coarse[:3])
        for fine, coarse in permutations(tables, 2)
        if {*coarse[1]} <= {*fine[1]} and fine[3] == coarse[3]
    ]
    if not pairs:
        raise UncheckedError("no two tables have workplace cells to compare")
    for (fine, _, cells), (coarse, by, others) in pairs:
        mine, theirs = (distinct([keys[name] for name in by]) for keys in (cells, others))
        if not same_rows(mine, theirs):
            raise RefutedError(f"{fine!r} and {coarse!r} have different cells by {', '.join(by)}")
    return f"{len(tables)} tables, the same workplace cells wherever they can be compared"


def _keys(request: PlannedRelease, number: int, folder: Path) -> pa.Table:
    """The workplace cells of a table of counts."""
    query, (place, _) = request.queries[number], request.places[number]
    by = list(query.workplace_by)
    table = published(request.details, folder / place, "research", by, columns=by)
    return table.take(np.arange(0, len(table), query.levels))


def check_intervals(
    request: PlannedRelease, folder: Path, about: dict[str, Any], *, read: Recomputed | None = None
) -> str:
    """The ends of the research form are those that its numbers and the mechanism's public constants give."""
    return (read or request.recomputed(folder)).check_intervals(about)


def check_basic(
    request: PlannedRelease, folder: Path, about: dict[str, Any], *, same_code: bool, read: Recomputed | None = None
) -> str:
    """The basic form is the research form after what the plan says was done to it, and nothing else."""
    if {*request.details["forms"]} != {"basic", "research"}:
        raise UncheckedError("there are no two forms to compare")
    places, read = request.places, read or request.recomputed(folder)
    stated = [published(request.details, folder / place, "basic", attributes) for place, attributes in places]
    for number, (table, found) in enumerate(zip(stated, read.basic(), strict=True)):
        attributes = places[number][1] if has_labels(about, number) else []
        # Other code may flag the counts before they are rounded; their numbers are compared, whatever the code.
        apart = attributes if same_code else [*attributes, "quality"]
        columns = [name for name in found.column_names if name not in apart]
        if any(not equal(table[name], found[name]) for name in columns) or not relabelled(table, found, attributes):
            if read.by_rule and not same_code:
                raise UncheckedError("other code than this moved its counts, and moves them otherwise")
            raise RefutedError("the basic form does not follow from the research form")
    return "follows from the research form"


def check_agency(request: PlannedRelease, folder: Path) -> str:
    """The comparison with the agency's table follows from the numbers of both in the release."""
    about, asked = kept(folder), request.details.get("compare")
    if about is None or asked is None:
        raise RefutedError("it was asked for, and is not there" if asked else "it is there, and nobody asked for it")
    tables = {place: {*by} for place, by in request.places}
    if not {*about["by"]} <= tables.get(about["table"], set()):
        raise RefutedError("it is about a table that the release does not have")
    if asked["title"] not in ("", about["title"]):
        raise RefutedError("it has another title than was asked for")
    read = [
        read_table(folder / f"{AGENCY}.{kind}", kind=kind, attributes=about["by"])
        for kind in for_programs(request.details["formats"])
    ]
    for other in read[1:]:
        if read[0].column_names != other.column_names or not all(
            equal(read[0][name], other[name]) for name in read[0].column_names
        ):
            raise RefutedError("its formats hold different numbers of the agency")
    if not alike(json.loads(json.dumps(compared(folder, about))), about["found"]):
        raise RefutedError("it does not follow from the numbers of the release and of the agency")
    file = f"the agency's file, whose SHA-256 is {about['sha256']},"
    return f"computed again; {file} shows whether the numbers are the agency's"


def check_alarms(step: AlarmStep, folder: Path, stated: Mapping[str, Any], kinds: Sequence[str]) -> None:
    """One table of alarms follows from published numbers, in every format, and so does what is said of it."""
    found, name = step.found(folder), step.asked.name
    again = found.to_arrow()
    for kind in kinds:
        table = kept_table(folder, f"alarms-{name}", step.by, kind)
        if table.column_names != again.column_names or len(table) != len(again):
            raise RefutedError(f"{name!r} has other cells than the releases")
        if not all(_same_column(table[each], again[each]) for each in again.column_names):
            raise RefutedError(f"{name!r} does not follow from the numbers of the releases")
    told = json.loads(json.dumps(about_alarms(step, found)))
    if not alike(told, {key: value for key, value in stated.items() if key != "files"}):
        raise RefutedError(f"what is said of {name!r} is not what its numbers give")


def _same_column(stated: Any, found: Any) -> bool:
    import pyarrow as pa

    numbers = pa.types.is_floating(found.type)
    return close(stated, found) if numbers else stated.to_pylist() == found.to_pylist()


def _same(request: PlannedRelease, folder: Path, form: str, attributes: list[str]) -> pa.Table:
    first, *others = (
        published(request.details, folder, form, attributes, kind) for kind in for_programs(request.details["formats"])
    )
    for other in others:
        if first.column_names != other.column_names or not all(
            equal(first[name], other[name]) for name in first.column_names
        ):
            raise RefutedError(f"the formats of its {form} form hold different rows")
    return first
