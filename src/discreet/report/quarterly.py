"""The report's part on published changes between quarters: the largest ones with intervals, flags, errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from discreet.pages.numbers import percent, text
from discreet.pages.page import Block
from discreet.pages.ranked import MOST, Mark, Ranked
from discreet.report.flows import trusted
from discreet.tables.quality import SUPPRESSED

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.movement.published import MovementErrors


def shown(
    table: pa.Table, name: str, *, by: Sequence[str], drawn: pa.Table, expected: MovementErrors
) -> Iterator[Block]:
    """Blocks that show a published table of changes as readers see it, and the errors of what was drawn."""
    columns = {each: table[each].to_pylist() for each in table.column_names}
    marks = [_mark(columns, row, by) for row in range(len(table))]
    rose, fell = [mark for mark in marks if mark.low > 0], [mark for mark in marks if mark.high < 0]
    for what, chosen in (("rose", rose), ("fell", fell)):
        sure = sorted(chosen, key=lambda mark: -abs(mark.value))
        if sure:
            yield Ranked(
                ("Cell", "Change", "Flag"),
                sure[:MOST],
                f"Cells whose jobs {what} by more than noise explains, {text(len(sure))} of {text(len(marks))}, {name}",
                f"{name} {what}",
            )
    largest = sorted(marks, key=lambda mark: -abs(mark.value) if math.isfinite(mark.value) else 1.0)[:MOST]
    caption = f"Changes with intervals, the largest first, {name}. Grey: the interval holds zero"
    yield Ranked(("Cell", "Change", "Flag"), largest, caption, f"{name} changes")
    yield from trusted({each: drawn[each].to_pylist() for each in drawn.column_names}, name, expected)


def in_short(table: pa.Table, name: str, *, by: Sequence[str], drawn: pa.Table) -> list[str]:
    """What the changes say, in a line."""
    columns = {each: table[each].to_pylist() for each in table.column_names}
    marks = [_mark(columns, row, by) for row in range(len(table))]
    rose, fell = sum(mark.low > 0 for mark in marks), sum(mark.high < 0 for mark in marks)
    before, after = (sum(value or 0 for value in drawn[each].to_pylist()) for each in ("earlier", "later"))
    whole = f", {percent((after - before) / before)} of {text(before)}" if before > 0 else ""
    return [
        f"{name}: of {text(len(marks))} changes, {text(rose)} have their interval above zero and {text(fell)} below. "
        f"All together {text(after - before)} jobs{whole}."
    ]


def _mark(columns: dict[str, list[Any]], row: int, by: Sequence[str]) -> Mark:
    cell = ", ".join(str(columns[each][row]) for each in (*by, "to"))
    value, low, high = (
        math.nan if columns[each][row] is None else float(columns[each][row])
        for each in ("change", "change_lower", "change_upper")
    )
    return Mark(
        cell,
        value,
        low,
        high,
        SUPPRESSED if columns["change_quality"][row] == SUPPRESSED else "",
        not (low > 0 or high < 0),
    )
