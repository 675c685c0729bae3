"""The tables of a release, read from its folder: as they were drawn, and as their readers see them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.data.codes import Codes
from discreet.data.columns import doubles_of, every_so_many, integers_of
from discreet.plan import rules
from discreet.plan.outputs import read_parents
from discreet.release.tables import column_names, read_table
from discreet.report.shown import ShownTable
from discreet.tables.prepared import Drawn
from discreet.tables.release import CountRelease

if TYPE_CHECKING:
    from discreet.plan.kinds.counts import PlannedCounts


def shown_tables(request: PlannedCounts, folder: Path) -> list[ShownTable]:
    """Every table, drawn ones first and then those that are sums of them."""
    form = "basic" if "basic" in request.source.output.forms else "research"
    kind = "parquet" if "parquet" in request.details["formats"] else "csv"
    found, level = [], float(request.release.level)
    for (place, _), query in zip(request.places, (*request.queries, *request.derived), strict=True):
        by, numbers = query.workplace_by, ("count" if query.magnitude is None else "sum", "lower", "upper")
        columns, coded = [*by, *numbers, "quality"], [*by, "quality"]
        path = folder / place / f"{form}.{kind}"
        table = read_table(path, kind=kind, attributes=by, columns=columns, coded=coded)
        schema = query.jobs.schema
        levels = tuple(product(*(schema.domain(name).among(query.where.get(name)) for name in query.worker_by)))
        drawn, of = query in request.queries, query.magnitude
        spanned = (query.workplace_by, query.worker_by, levels)
        found.append(ShownTable.read(table, *spanned, level=level, of=of, drawn=drawn))
    return found


def ruled(request: PlannedCounts, tables: list[ShownTable]) -> list[str]:
    """How the numbers for readers differ from the drawn ones, by the release's name."""
    gone, whole = sum(int(table.left_out.sum()) for table in tables), sum(table.values.size for table in tables)
    forms = request.source.output.forms
    return rules.told(
        request.release.name,
        request.release.suppress,
        gone=(gone, whole),
        round_to=request.rounding if "basic" in forms else 1,
        research="research" in forms,
    )


def cut(request: PlannedCounts, drawn: Sequence[CountRelease]) -> list[str]:
    """What the basic form does to numbers near zero, where the research form shows that it does."""
    if not request.release.non_negative or not {"basic", "research"} <= {*request.source.output.forms}:
        return []
    name = request.release.name
    return [
        line
        for table in drawn
        for line in rules.cut_at_zero(name, table.by, table.value, (float((table.counts < 0).mean()),), drawn=True)
    ]


def drawn_table(request: PlannedCounts, folder: Path, number: int) -> CountRelease:
    """A published table: the research form, or the basic one where only that was released."""
    forms = ("research.parquet", "research.csv", "basic.parquet", "basic.csv")
    places = [folder / request.folders[number] / name for name in forms]
    path = next((place for place in places if place.exists()), places[0])
    query, domains = request.queries[number], request.details["tables"][number]["domains"]
    levels = tuple(product(*(Codes.of(domains[name]) for name in query.worker_by)))
    numbers = ["count" if query.magnitude is None else "sum", "lower", "upper"]
    sized = ["largest"] if request.ready[number].sizes is not None and path.stem == "research" else []
    sized += ["at_most"] if path.stem == "research" and "at_most" in column_names(path) else []
    beside = ["establishments"] if query.establishments else []
    columns = [*query.workplace_by, *numbers, *sized, *beside]
    by = query.workplace_by
    table = read_table(path, kind=path.suffix[1:], attributes=by, columns=columns, coded=by)
    value, *ends = (table[name] for name in numbers)
    if value.null_count:
        raise ValueError(f"{path.name} lacks numbers, and a table that was drawn has all of them")
    count = integers_of(value)
    lower, upper = (doubles_of(end).reshape(-1, query.levels) for end in ends)
    sizes = {name: doubles_of(table[name])[:: query.levels] for name in sized}
    largest = sizes["largest"].astype(np.int64) if "largest" in sizes else None
    drawn = Drawn(count.reshape(-1, query.levels), largest, sizes.get("at_most"))
    return CountRelease(
        keys=every_so_many(table.select(list(by)), query.levels),
        worker_by=query.worker_by,
        levels=levels,
        counts=drawn.counts,
        lower=lower,
        upper=upper,
        level=float(request.release.level),
        guarantee=request.guarantee,
        largest=largest,
        at_most=drawn.at_most,
        lineage=read_parents(folder, query.jobs.schema.hierarchy),
        magnitude=query.magnitude,
        establishments=integers_of(table["establishments"])[:: query.levels] if beside else None,
        ends=query.ends(request.ready[number], drawn) if path.stem == "research" else None,
    )
