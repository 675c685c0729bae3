"""The tables of a bundle, checked against each other: the same rows in all files, all kinds of workers, the intervals.

Everything is computed from the research form and public constants. Which workplace cells exist is public, but is not
in a bundle: a cell that was left out is seen only where another table has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.archive.findings import RefutedError, UncheckedError
from discreet.plan.counts import CountRequest
from discreet.plan.outputs import basic, noise
from discreet.plan.requests import PlannedRelease
from discreet.plan.summaries import shortened
from discreet.privacy.units import Establishments
from discreet.release.files import read_table
from discreet.tables.prepared import Drawn

if TYPE_CHECKING:
    import pyarrow as pa


def check_rows(request: PlannedRelease, folder: Path, about: dict[str, Any]) -> str:
    """All formats of a form hold the same rows; every workplace cell is there once, with all kinds of workers."""
    rows = 0
    for place, attributes in _places(request):
        forms = {form: _same(request, folder / place, form, attributes) for form in request.details["forms"]}
        lengths = {len(table) for table in forms.values()}
        if len(lengths) > 1:
            raise RefutedError("its forms have different numbers of rows")
        rows += lengths.pop()
    if isinstance(request, CountRequest):
        for number, place in enumerate(request.folders):
            _check_kinds(request, number, folder / place, labelled=_has_labels(about, number))
    return f"{rows:,} rows, the same in every format" + (
        ", each workplace cell once and with every kind of worker" if isinstance(request, CountRequest) else ""
    )


def check_cells(requests: Mapping[str, PlannedRelease], folder: Path) -> str:
    """Tables of all establishments have the same workplace cells, as far as their attributes tell them apart."""
    tables = [
        (name, query.workplace_by, request._published(folder / name, number).keys)
        for name, request in requests.items()
        if isinstance(request, CountRequest) and isinstance(request.guarantee.unit, Establishments)
        if "research" in request.details["forms"]
        for number, query in enumerate(request.queries)
        if not query.where and query.workplace_by
    ]
    pairs = [(fine, coarse) for fine, coarse in permutations(tables, 2) if {*coarse[1]} <= {*fine[1]}]
    if not pairs:
        raise UncheckedError("no two tables have workplace cells to compare")
    for (fine, _, cells), (coarse, by, others) in pairs:
        mine, theirs = (set(zip(*(_texts(keys[name]) for name in by), strict=True)) for keys in (cells, others))
        if mine != theirs:
            raise RefutedError(f"{fine!r} and {coarse!r} have different cells by {', '.join(by)}")
    return f"{len(tables)} tables, the same workplace cells wherever they can be compared"


def check_intervals(request: PlannedRelease, folder: Path, about: dict[str, Any]) -> str:
    """The ends of the research form are those that its counts and the mechanism's public constants give."""
    if not isinstance(request, CountRequest):
        raise UncheckedError("standard errors and intervals follow from the model's public design, which is not here")
    if "research" not in request.details["forms"]:
        raise UncheckedError("there is no research form to compute them from")
    drawn = []
    for number, (query, ready) in enumerate(zip(request.queries, request.ready, strict=True)):
        if not _alike(noise(ready), about["parameters"]["tables"][number]["noise"]):
            raise UncheckedError("the stated constants are not those that this code would use")
        table = request._published(folder, number)
        ends = query._ends(ready, Drawn(table.counts, table.largest, table.at_most), level=table.level)
        for stated, found in zip((table.lower, table.upper), ends, strict=True):
            if not np.allclose(stated, found, rtol=1e-9, atol=1e-9, equal_nan=True):
                raise RefutedError("they are not those that the counts and the constants give")
        flags = _read(request, folder / request.folders[number], "research", [])["quality"]
        if flags.to_pylist() != table.quality.ravel().tolist():
            raise RefutedError("the quality flags are not those that the intervals give")
        drawn.append(table)
    for place, table in zip(request.derived_folders, request.sums(drawn), strict=True):
        found, again = _read(request, folder / place, "research", list(table.by)), table.to_arrow()
        if found.column_names != again.column_names or not all(_equal(found[n], again[n]) for n in again.column_names):
            raise RefutedError(f"{place!r} is not the sum of the tables that were drawn")
    return "computed again from the counts and the constants: the same"


def check_basic(request: PlannedRelease, folder: Path, about: dict[str, Any], *, same_code: bool) -> str:
    """The basic form is the research form after what the plan says was done to it, and nothing else."""
    if {*request.details["forms"]} != {"basic", "research"}:
        raise UncheckedError("there are no two forms to compare")
    places = _places(request)
    research, stated = (
        [_read(request, folder / place, form, attributes) for place, attributes in places]
        for form in ("research", "basic")
    )
    if isinstance(request, CountRequest):
        tables = [request._published(folder, number) for number in range(len(request.queries))]
        moved = request._improved([*tables, *request.sums(tables)])
        expected = [basic(table.to_arrow(), {}, round_to=request.rounding) for table in moved]
    else:
        expected = [shortened(table) for table in research]
    by_rule = isinstance(request, CountRequest) and (request.details["shrink"] is not None or request.details["add_up"])
    for number, (table, found) in enumerate(zip(stated, expected, strict=True)):
        attributes = places[number][1] if _has_labels(about, number) else []
        # Other code may flag the counts before they are rounded; their numbers are compared, whatever the code.
        apart = attributes if same_code else [*attributes, "quality"]
        columns = [name for name in found.column_names if name not in apart]
        if any(not _equal(table[name], found[name]) for name in columns) or not _relabelled(table, found, attributes):
            if by_rule and not same_code:
                raise UncheckedError("other code than this moved its counts, and moves them otherwise")
            raise RefutedError("the basic form does not follow from the research form")
    return "follows from the research form"


def _places(request: PlannedRelease) -> list[tuple[str, list[str]]]:
    """Where each table is, with its attributes."""
    if isinstance(request, CountRequest):
        return request.places
    return [("", [])]


def _has_labels(about: dict[str, Any], number: int) -> bool:
    """Whether the basic form of a table calls its categories otherwise."""
    parameters = about["parameters"]
    tables = [*parameters.get("tables", ()), *parameters.get("derived", ())]
    return bool(tables) and tables[number]["labels"] is not None


def _read(request: PlannedRelease, folder: Path, form: str, attributes: list[str], kind: str | None = None) -> pa.Table:
    kind = kind or ("parquet" if "parquet" in request.details["formats"] else "csv")
    return read_table(folder / f"{form}.{kind}", kind=kind, attributes=attributes)


def _same(request: PlannedRelease, folder: Path, form: str, attributes: list[str]) -> pa.Table:
    first, *others = (_read(request, folder, form, attributes, kind) for kind in request.details["formats"])
    for other in others:
        if first.column_names != other.column_names or not all(
            _equal(first[name], other[name]) for name in first.column_names
        ):
            raise RefutedError(f"the formats of its {form} form hold different rows")
    return first


def _check_kinds(request: CountRequest, number: int, folder: Path, *, labelled: bool) -> None:
    query, domains = request.queries[number], request.details["tables"][number]["domains"]
    form = "research" if "research" in request.details["forms"] else "basic"
    if form == "basic" and labelled:
        raise UncheckedError("the basic form has labels for codes, and there is no research form")
    table = _read(request, folder, form, [*query.workplace_by, *query.worker_by])
    kinds = [tuple(map(_text, kind)) for kind in product(*(domains[name] for name in query.worker_by))]
    found = list(zip(*(_texts(table[name]) for name in query.worker_by), strict=True)) or [()] * len(table)
    if len(table) % len(kinds) or found != kinds * (len(table) // len(kinds)):
        raise RefutedError("a workplace cell lacks a kind of worker, or has one twice")
    keys = list(zip(*(_texts(table[name]) for name in query.workplace_by), strict=True)) or [()] * len(table)
    cells = keys[:: len(kinds)]
    if keys != [key for key in cells for _ in kinds] or len(set(cells)) < len(cells):
        raise RefutedError("a workplace cell is there twice, or its kinds of workers are apart")


def _equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """Whether two columns hold the same, whatever their types: a CSV file knows text and numbers alone."""
    import pyarrow.types as kinds

    if kinds.is_floating(one.type) or kinds.is_floating(other.type):
        a, b = (np.array(column.to_pylist(), dtype=np.float64) for column in (one, other))
        return bool(np.array_equal(a, b, equal_nan=True))
    return _texts(one) == _texts(other)


def _relabelled(stated: pa.Table, found: pa.Table, attributes: list[str]) -> bool:
    """Whether each code has one label."""
    return all(
        len(set(zip(_texts(found[name]), _texts(stated[name]), strict=True))) == len(set(_texts(found[name])))
        for name in attributes
    )


def _texts(column: pa.ChunkedArray) -> list[str]:
    return [_text(value) for value in column.to_pylist()]


def _text(value: object) -> str:
    """A category as a CSV file writes it."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _alike(found: Any, stated: Any) -> bool:
    """Whether two sets of constants are the same up to the last digits."""
    if isinstance(found, dict):
        return (
            isinstance(stated, dict)
            and found.keys() == stated.keys()
            and all(_alike(found[name], stated[name]) for name in found)
        )
    if isinstance(found, float):
        return isinstance(stated, float | int) and bool(np.isclose(found, stated, rtol=1e-9))
    return bool(found == stated)
