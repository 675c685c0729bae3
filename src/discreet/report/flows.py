"""The report's part on published flows: the flows of the largest cells, rates with intervals, flags, errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.pages.numbers import percent, text, three
from discreet.pages.page import Block, Heading, Prose, Table
from discreet.pages.ranked import MOST, Mark, Ranked
from discreet.tables.movement.flow_release import RATES as FLOW_OF
from discreet.tables.movement.published import HOLD
from discreet.tables.quality import MEANING, NOISE, NONE, QUALITY, SUPPRESSED

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.movement.published import MovementErrors

FLOWS = ("beginning", "accessions", "separations", "end", "creation", "destruction")
RATES = {"jcr": "Job creation rate", "jdr": "Job destruction rate", "ar": "Accession rate", "sr": "Separation rate"}
LARGEST = {"jcr": 2.0, "jdr": 2.0}
"""The most that a rate can be: an interval from 0 to there says nothing, whatever the rate."""
LISTED = 50
"""Cells of the table of flows."""


def shown(
    table: pa.Table, name: str, *, by: Sequence[str], drawn: pa.Table, expected: MovementErrors
) -> Iterator[Block]:
    """A published table of flows as readers see it; its errors are computed from the drawn numbers."""
    columns = {each: table[each].to_pylist() for each in table.column_names}
    cells = _cells(columns, by, len(table))
    order = np.argsort([-(value or 0) for value in columns["employment"]], kind="stable").tolist()
    some = order[:LISTED]
    told = f"the {len(some)} largest of {text(len(order))} cells" if len(some) < len(order) else "all cells"
    yield Table(
        (_what(by), *(flow.capitalize() for flow in FLOWS)),
        [(cells[row], *(columns[flow][row] for flow in FLOWS)) for row in some],
        f"Flows, {told}, {name}",
        f"{name} flows",
    )
    for rate, words in RATES.items():
        yield Ranked(
            (_what(by), words, "Flag"),
            [_mark(columns, rate, cells[row], row) for row in order[:MOST]],
            f"{words}, the largest cells first, with intervals, {name}",
            f"{name} {rate}",
            whole=False,
        )
    yield from trusted({each: drawn[each].to_pylist() for each in drawn.column_names}, name, expected)


def trusted(columns: Mapping[str, Sequence[Any]], name: str, expected: MovementErrors) -> Iterator[Block]:
    """Flags of quality by statistic, and expected errors."""
    yield Heading(f"{name}: how far off", 3)
    counted = [column.removesuffix("_quality") for column in columns if column.endswith("_quality")]
    flags = [flag for flag in (*QUALITY, NOISE, NONE) if any(flag in columns[f"{each}_quality"] for each in counted)]
    yield Table(
        ("Number", *(flag.capitalize() for flag in flags)),
        [(each.capitalize(), *(columns[f"{each}_quality"].count(flag) for flag in flags)) for each in counted],
        f"Quality flags, {name}",
        f"{name} quality",
    )
    yield Prose(f"{HOLD} **Quality** says {MEANING}.")
    sizes = list(next(iter(expected.errors.values())))
    yield Table(
        ("Number", *(f"{size:,}" for size in sizes)),
        [(each.capitalize(), *(three(found[size]) for size in sizes)) for each, found in expected.errors.items()],
        f"Expected absolute error, by the size of the cell's largest establishment, {name}",
        f"{name} expected error",
    )


def in_short(table: pa.Table, name: str, *, by: Sequence[str], drawn: pa.Table) -> list[str]:
    """The flows in one line: their totals, and the cell with the highest rate that is not noise."""
    total = {flow: sum(value or 0 for value in drawn[flow].to_pylist()) for flow in FLOWS}
    lines = [
        f"{name}: {text(total['beginning'])} jobs at the beginning, {text(total['accessions'])} accessions, "
        f"{text(total['separations'])} separations; {text(total['creation'])} jobs created, "
        f"{text(total['destruction'])} destroyed."
    ]
    columns = {each: table[each].to_pylist() for each in table.column_names}
    sure = [row for row, flag in enumerate(columns["creation_quality"]) if flag in ("good", "fair")]
    if by and sure:
        row = max(sure, key=lambda row: columns["jcr"][row] or 0)
        cell = _cells(columns, by, len(table))[row]
        lines.append(
            f"Highest job creation rate among cells with good or fair flows: {cell}, {percent(columns['jcr'][row])}."
        )
    return lines


def _cells(columns: Mapping[str, Sequence[Any]], by: Sequence[str], rows: int) -> list[str]:
    return [", ".join(str(columns[name][row]) for name in by) or "all jobs" for row in range(rows)]


def _what(by: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in by).capitalize() or "Cell"


def _mark(columns: Mapping[str, Sequence[Any]], rate: str, cell: str, row: int) -> Mark:
    value, low, high = (
        math.nan if columns[name][row] is None else float(columns[name][row])
        for name in (rate, f"{rate}_lower", f"{rate}_upper")
    )
    if columns[f"{FLOW_OF[rate]}_quality"][row] == SUPPRESSED:
        return Mark(cell, value, flag=SUPPRESSED)
    noisy = not (math.isfinite(high) and value > 0 and max(high - value, value - low) <= value)
    noisy |= rate in LARGEST and low <= 0 and high >= LARGEST[rate]
    return Mark(cell, value, low, high, NOISE if noisy else "", noisy)
