"""Advice on a budget from what is public of the tables' sizes, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from discreet.data.hierarchy import Hierarchy, covers
from discreet.privacy.losses import Number, exact
from discreet.tables.budget.division import BudgetAdvice, Measure, advised
from discreet.tables.budget.errors import Calibrations, ErrorCurve, PublicCells, cells_of
from discreet.tables.consistency import finest_of
from discreet.tables.public_sizes import read_sizes
from discreet.tables.query import CountQuery
from discreet.words.cases import case_of
from discreet.words.errors import DataError
from discreet.words.faults import Argument, Spelled


def advice_for(
    queries: Sequence[CountQuery],
    *,
    epsilon: Number,
    sizes: object,
    typical: Sequence[tuple[int, float, float]] | None,
    measure: Measure,
    add_up: bool,
    asked: Mapping[str, Any],
) -> BudgetAdvice:
    """Advice for queries of one workload, from a public table of sizes or from typical ones."""
    if typical is not None:
        if sizes is not None:
            raise DataError(
                (Argument("typical", typical), " is given beside sizes."),
                "One of them says how large cells are.",
                "Leave one out.",
                about="typical",
            )
        cells: list[PublicCells | None] = [*_typical(typical, len(queries))]
    elif sizes is None:
        cells = [None] * len(queries)
    else:
        table, is_bound = read_sizes(sizes, queries[0].jobs.schema)
        cells = [cells_of(table, query, is_bound=is_bound) for query in queries]
    return advice_on(queries, cells, epsilon=epsilon, measure=measure, add_up=add_up, asked=asked)


def advice_on(
    queries: Sequence[CountQuery],
    cells: Sequence[PublicCells | None],
    *,
    epsilon: Number,
    measure: Measure,
    add_up: bool,
    asked: Mapping[str, Any],
) -> BudgetAdvice:
    """Advice for queries whose cells are known, or a refusal where some are not."""
    if measure not in get_args(Measure):
        raise DataError(
            (Argument("error", measure), " is no kind of error."),
            "It is 'absolute' or 'relative'.",
            "Leave it out for absolute.",
            about="error",
        )
    tables = [query.by for query in queries]
    known: dict[int, PublicCells] = {}
    for i, found in enumerate(cells):
        if found is None:
            raise DataError(
                f"No sizes are public for the cells of the table by {', '.join(tables[i]) or 'no attribute'}.",
                Spelled(
                    "Advice rests on them: on a public table with these attributes and `jobs`, or on typical sizes.",
                    plan="Advice rests on them: on a public table with these attributes and `jobs`.",
                ),
                Spelled(
                    "Give such a table as sizes, or declare typical=[(cells, jobs, largest), ...].",
                    plan="Name such a table under [public].",
                    form="Ask for such a table among the public sizes of the source, or leave this table out.",
                ),
                about="sizes",
            )
        known[i] = found
    whole = exact(epsilon, name="epsilon")
    nested = all(found.many == 1 for found in known.values()) and len({*map(_key, queries)}) == 1
    finest = _finest(tables, queries, nested=nested) if add_up else None
    calibrated = Calibrations(asked)
    first = {query.by: i for i, query in reversed([*enumerate(queries)])} if nested else {}
    curves: dict[int, ErrorCurve] = {}
    for i, query in enumerate(queries):
        same = first.get(query.by, i)
        known_before = curves.get(same) if same < i else None
        curves[i] = known_before or ErrorCurve.of(
            query,
            known[i],
            epsilon=whole,
            relative=case_of(measure, {"relative": True, "absolute": False}),
            calibrated=calibrated,
        )
    above = _above(tables, queries[0].jobs.schema.hierarchies) if nested else [[] for _ in tables]
    return advised(curves, tables=tables, epsilon=whole, measure=measure, add_up=add_up, finest=finest, above=above)


def _key(query: CountQuery) -> str:
    return repr(sorted((name, tuple(values)) for name, values in query.where.items()))


def _finest(tables: Sequence[tuple[str, ...]], queries: Sequence[CountQuery], *, nested: bool) -> int:
    """The table of which all others are sums; refused where there is none, or where that is not known."""
    finest = finest_of(tables, queries[0].jobs.schema.hierarchies)
    if not nested:
        raise DataError(
            "add_up with typical sizes: it is not known which cells are parts of which.",
            "Advice on tables that agree needs a public table of sizes.",
            "Give sizes, or leave add_up out.",
            about="typical",
        )
    return finest


def _above(tables: Sequence[tuple[str, ...]], chains: Sequence[Hierarchy]) -> list[list[int]]:
    """For each table those of which it is a sum; of two that are the same, the second is one of the first."""

    def is_sum(i: int, of: int) -> bool:
        return covers(tables[of], tables[i], chains) and (of < i or not covers(tables[i], tables[of], chains))

    return [[j for j in range(len(tables)) if j != i and is_sum(i, j)] for i in range(len(tables))]


def _typical(typical: Sequence[tuple[int, float, float]], tables: int) -> list[PublicCells]:
    """Cells that are all alike, one declaration for each table."""
    import pyarrow as pa

    try:
        rows = [(int(number), float(jobs), float(largest)) for number, jobs, largest in typical]
    except (TypeError, ValueError):
        rows = []
    if len(rows) != tables or not all(
        number >= 1 and np.isfinite(jobs) and 0 < largest <= jobs for number, jobs, largest in rows
    ):
        raise DataError(
            (Argument("typical", typical), f" does not say how large the cells of {tables} tables are."),
            "It has (cells, jobs of a cell, workers of its largest establishment) for each table, the last not above "
            "the second.",
            ("Use for example ", Argument("typical", [(1000, 20.0, 12.0)] * min(tables, 2)), "."),
            about="typical",
        )
    nothing = pa.table({})
    return [PublicCells(nothing, np.array([jobs]), np.array([largest]), many=number) for number, jobs, largest in rows]
