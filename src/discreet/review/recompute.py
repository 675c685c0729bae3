"""The tables of a bundle, checked against each other: the same rows in all files, all kinds of workers, the intervals.

Everything is computed from the research form and public constants. Which workplace cells exist is public, but is not
in a bundle: a cell that was left out is seen only where another table has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import permutations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.archive.findings import RefutedError, UncheckedError
from discreet.data.columns import every_so_many
from discreet.data.lineage import positions
from discreet.plan.agency_comparison import compared, kept
from discreet.plan.kinds.alarms import AlarmStep
from discreet.plan.kinds.alarms import about as about_alarms
from discreet.plan.kinds.counts import CountRequest
from discreet.plan.kinds.flows import FlowRequest
from discreet.plan.kinds.kind import PlannedRelease
from discreet.plan.kinds.summaries import shortened
from discreet.plan.outputs import noise
from discreet.plan.readers import drawn_table
from discreet.plan.sheets import EXCEL, for_programs, told
from discreet.privacy.units import Establishments
from discreet.release.alarms import kept_table
from discreet.release.folder import AGENCY
from discreet.release.tables import read_table
from discreet.results import complete
from discreet.review.books import check_book
from discreet.review.columns import close, distinct, equal, relabelled, repeats, same_rows
from discreet.tables.prepared import Drawn

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.release import CountRelease


def check_rows(request: PlannedRelease, folder: Path, about: dict[str, Any]) -> str:
    """All formats of a form hold the same rows; every workplace cell is there once, with all kinds of workers."""
    rows = 0
    for place, attributes in _places(request):
        forms = {form: _same(request, folder / place, form, attributes) for form in request.details["forms"]}
        for form in forms if EXCEL in request.details["formats"] else ():
            sentence, named = about["guarantee"]["sentence"], {"name": about["name"], "dataset": about["dataset"]}
            sheet = told(**named, form=form, sentence=sentence, columns=about["columns"])
            check_book(folder / place / f"{form}.{EXCEL}", _read(request, folder / place, form, attributes), sheet)
        lengths = {len(table) for table in forms.values()}
        if len(lengths) > 1:
            raise RefutedError("its forms have different numbers of rows")
        rows += lengths.pop()
    if isinstance(request, CountRequest):
        for number, place in enumerate(request.folders):
            _check_kinds(request, number, folder / place, labelled=_has_labels(about, number))
    if isinstance(request, FlowRequest):
        _check_once(request, folder, labelled=_has_labels(about, 0))
    return f"{rows:,} rows, the same in every format" + (
        ", each workplace cell once and with every kind of worker" if isinstance(request, CountRequest) else ""
    )


def check_cells(requests: Mapping[str, PlannedRelease], folder: Path) -> str:
    """Tables of all establishments of a source have the same workplace cells, as far as attributes tell them apart."""
    tables = [
        (name, query.workplace_by, _keys(request, number, folder / name), request.source.name)
        for name, request in requests.items()
        if isinstance(request, CountRequest) and isinstance(request.guarantee.unit, Establishments)
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


def _keys(request: CountRequest, number: int, folder: Path) -> pa.Table:
    """The workplace cells of a table."""
    query, place = request.queries[number], folder / request.folders[number]
    by = list(query.workplace_by)
    table = _read(request, place, "research", by, columns=by)
    return table.take(np.arange(0, len(table), query.levels))


@dataclass
class Reread:
    """The drawn tables of a release as published and the sums of them: read and added up once for all checks."""

    request: CountRequest
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
        cells = every_so_many(_read(self.request, place, "research", by, columns=by), levels)
        try:
            rows = positions(cells, table.keys)
        except LookupError:
            return table
        return table.take(rows) if np.array_equal(np.sort(rows), np.arange(len(table.keys))) else table


def reread(request: PlannedRelease, folder: Path) -> Reread | None:
    """What checks of a release of counts share."""
    return Reread(request, folder) if isinstance(request, CountRequest) else None


def check_intervals(request: PlannedRelease, folder: Path, about: dict[str, Any], *, read: Reread | None = None) -> str:
    """The ends of the research form are those that its counts and the mechanism's public constants give."""
    if isinstance(request, FlowRequest):
        return _check_flows(request, folder, about)
    if not isinstance(request, CountRequest):
        raise UncheckedError("standard errors and intervals follow from the model's public design, which is not here")
    if "research" not in request.details["forms"]:
        raise UncheckedError("there is no research form to compute them from")
    import pyarrow as pa

    read = read or Reread(request, folder)
    for number, (query, ready) in enumerate(zip(request.queries, request.ready, strict=True)):
        if not _alike(noise(ready), about["parameters"]["tables"][number]["noise"]):
            raise UncheckedError("the stated constants are not those that this code would use")
        table = read.tables[number]
        ends = query.ends(ready, Drawn(table.counts, table.largest, table.at_most))(table.level)
        for stated, found in zip((table.lower, table.upper), complete(*ends), strict=True):
            if not np.allclose(stated, found, rtol=1e-9, atol=1e-9, equal_nan=True):
                raise RefutedError("they are not those that the counts and the constants give")
        flags = _read(request, folder / request.folders[number], "research", [], columns=["quality"])["quality"]
        if not equal(flags, pa.chunked_array([pa.array(table.quality.ravel().astype(str), pa.string())])):
            raise RefutedError("the quality flags are not those that the intervals give")
    for place, table in zip(request.derived_folders, read.sums, strict=True):
        found, again = _read(request, folder / place, "research", list(table.by)), table.to_arrow()
        if found.column_names != again.column_names or not all(equal(found[n], again[n]) for n in again.column_names):
            raise RefutedError(f"{place!r} is not the sum of the tables that were drawn")
    return "computed again from the counts and the constants: the same"


def _check_flows(request: FlowRequest, folder: Path, about: dict[str, Any]) -> str:
    """Every number of the research form is the one that its drawn integers give."""
    if "research" not in request.details["forms"]:
        raise UncheckedError("there is no research form to compute them from")
    if not _alike(request.ready.constants, about["parameters"]["tables"][0]["noise"]):
        raise UncheckedError("the stated constants are not those that this code would use")
    table = request.published(folder, "research")
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


def _check_once(request: FlowRequest, folder: Path, *, labelled: bool) -> None:
    """Every workplace cell is there once."""
    form = "research" if "research" in request.details["forms"] else "basic"
    if form == "basic" and labelled:
        raise UncheckedError("the basic form has labels for codes, and there is no research form")
    table = request.published(folder, form)
    if len(distinct([table[name] for name in request.places[0][1]])) < len(table):
        raise RefutedError("a workplace cell is there twice")


def check_basic(
    request: PlannedRelease, folder: Path, about: dict[str, Any], *, same_code: bool, read: Reread | None = None
) -> str:
    """The basic form is the research form after what the plan says was done to it, and nothing else."""
    if {*request.details["forms"]} != {"basic", "research"}:
        raise UncheckedError("there are no two forms to compare")
    places = _places(request)
    stated = [_read(request, folder / place, "basic", attributes) for place, attributes in places]
    if isinstance(request, CountRequest):
        read = read or Reread(request, folder)
        moved = request._improved([*read.tables, *read.sums])
        expected = [request.basic(table, {}) for table in moved]
    else:
        research = [_read(request, folder / place, "research", attributes) for place, attributes in places]
        form = partial(request.basic, labels={}) if isinstance(request, FlowRequest) else shortened
        expected = [form(table) for table in research]
    by_rule = isinstance(request, CountRequest) and (request.details["shrink"] is not None or request.details["add_up"])
    for number, (table, found) in enumerate(zip(stated, expected, strict=True)):
        attributes = places[number][1] if _has_labels(about, number) else []
        # Other code may flag the counts before they are rounded; their numbers are compared, whatever the code.
        apart = attributes if same_code else [*attributes, "quality"]
        columns = [name for name in found.column_names if name not in apart]
        if any(not equal(table[name], found[name]) for name in columns) or not relabelled(table, found, attributes):
            if by_rule and not same_code:
                raise UncheckedError("other code than this moved its counts, and moves them otherwise")
            raise RefutedError("the basic form does not follow from the research form")
    return "follows from the research form"


def check_agency(request: PlannedRelease, folder: Path) -> str:
    """The comparison with the agency's table follows from the numbers of both in the release."""
    about, asked = kept(folder), request.details.get("compare")
    if about is None or asked is None:
        raise RefutedError("it was asked for, and is not there" if asked else "it is there, and nobody asked for it")
    tables = {place: {*by} for place, by in _places(request)}
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
    if not _alike(json.loads(json.dumps(compared(folder, about))), about["found"]):
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
    if not _alike(told, {key: value for key, value in stated.items() if key != "files"}):
        raise RefutedError(f"what is said of {name!r} is not what its numbers give")


def _same_column(stated: Any, found: Any) -> bool:
    import pyarrow as pa

    numbers = pa.types.is_floating(found.type)
    return close(stated, found) if numbers else stated.to_pylist() == found.to_pylist()


def _places(request: PlannedRelease) -> list[tuple[str, list[str]]]:
    """Where each table is, with its attributes."""
    if isinstance(request, CountRequest | FlowRequest):
        return request.places
    return [("", [])]


def _has_labels(about: dict[str, Any], number: int) -> bool:
    """Whether the basic form of a table has other names for its categories."""
    parameters = about["parameters"]
    tables = [*parameters.get("tables", ()), *parameters.get("derived", ())]
    return bool(tables) and tables[number]["labels"] is not None


def _read(
    request: PlannedRelease,
    folder: Path,
    form: str,
    attributes: list[str],
    kind: str | None = None,
    columns: list[str] | None = None,
) -> pa.Table:
    kind = kind or ("parquet" if "parquet" in request.details["formats"] else "csv")
    return read_table(folder / f"{form}.{kind}", kind=kind, attributes=attributes, columns=columns)


def _same(request: PlannedRelease, folder: Path, form: str, attributes: list[str]) -> pa.Table:
    first, *others = (
        _read(request, folder, form, attributes, kind) for kind in for_programs(request.details["formats"])
    )
    for other in others:
        if first.column_names != other.column_names or not all(
            equal(first[name], other[name]) for name in first.column_names
        ):
            raise RefutedError(f"the formats of its {form} form hold different rows")
    return first


def _check_kinds(request: CountRequest, number: int, folder: Path, *, labelled: bool) -> None:
    query, domains = request.queries[number], request.details["tables"][number]["domains"]
    form = "research" if "research" in request.details["forms"] else "basic"
    if form == "basic" and labelled:
        raise UncheckedError("the basic form has labels for codes, and there is no research form")
    by = [*query.workplace_by, *query.worker_by]
    # of no columns the file would tell no rows
    table = _read(request, folder, form, by, columns=by or None)
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


def _alike(found: Any, stated: Any) -> bool:
    """Whether two sets of constants are equal up to the last digits."""
    if isinstance(found, dict):
        return (
            isinstance(stated, dict)
            and found.keys() == stated.keys()
            and all(_alike(found[name], stated[name]) for name in found)
        )
    if isinstance(found, list):
        return isinstance(stated, list) and len(found) == len(stated) and all(map(_alike, found, stated))
    if isinstance(found, float):
        return isinstance(stated, float | int) and bool(np.isclose(found, stated, rtol=1e-9))
    return bool(found == stated)
