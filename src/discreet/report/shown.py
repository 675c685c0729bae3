"""A published table as its readers see it: the form for readers where one was released, with what rules leave out.

`counts` has the errors of its numbers, from the drawn numbers. Nothing is computed from data here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.data.columns import column_of, doubles_of, every_so_many, words_of
from discreet.pages.numbers import percent, text, unbroken
from discreet.pages.page import Block
from discreet.pages.ranked import MOST, Mark, Ranked
from discreet.tables.quality import NOISE, SUPPRESSED

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.arrays import Mask, Vector
    from discreet.data.schema import Label
    from discreet.tables.quality import Words
    from discreet.tables.release import CountRelease

NAMED = 8
"""Kinds of workers whose bars are named in the caption."""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """One table of counts or sums.

    Attributes
    ----------
    keys : the workplace cells, one column per attribute.
    worker_by, levels : the worker attributes and their combinations.
    values, lower, upper : shape (workplace cells, levels); NaN where nothing is shown.
    flags : the quality of each, or that a rule leaves it out.
    level : the probability of the intervals.
    of : what was added up, where these are no counts of jobs.
    drawn : whether it has noise of its own; else it is a sum of tables that have.
    """

    keys: pa.Table
    worker_by: tuple[str, ...]
    levels: tuple[tuple[Label, ...], ...]
    values: Vector
    lower: Vector
    upper: Vector
    flags: Words
    level: float
    of: str | None = None
    drawn: bool = True

    @classmethod
    def as_drawn(cls, table: CountRelease) -> ShownTable:
        """A table that is shown with every number as it was drawn."""
        values, ends = table.counts.astype(np.float64), (table.lower, table.upper)
        by = (table.worker_by, table.levels)
        return cls(table.keys, *by, values, *ends, table.quality, table.level, table.magnitude)

    @classmethod
    def read(
        cls,
        table: pa.Table,
        by: Sequence[str],
        worker_by: tuple[str, ...],
        levels: tuple[tuple[Label, ...], ...],
        *,
        level: float,
        of: str | None,
        drawn: bool,
    ) -> ShownTable:
        """Read a published file by these workplace attributes; its rows are those of the levels, cell by cell."""
        kinds = len(levels)
        columns = ("count" if of is None else "sum", "lower", "upper")
        values, lower, upper = (doubles_of(table[name]).reshape(-1, kinds) for name in columns)
        flags = words_of(table["quality"]).reshape(-1, kinds)
        keys = every_so_many(table.select(list(by)), kinds)
        return cls(keys, worker_by, levels, values, lower, upper, flags, level, of, drawn)

    @property
    def what(self) -> str:
        """What the numbers are: jobs, or a magnitude."""
        return "jobs" if self.of is None else self.of

    @property
    def left_out(self) -> Mask:
        """Which numbers a rule of the agency leaves out."""
        return np.asarray(self.flags == SUPPRESSED)

    def by(self) -> str:
        """The table in words: jobs by place."""
        names = (*self.keys.column_names, *self.worker_by)
        return f"{self.what} by {', '.join(names)}" if names else f"all {self.what}"

    def largest(self) -> str:
        """The finding of the table in one line: its largest number."""
        if not self.values.size or self.left_out.all():
            return f"{self.by().capitalize()}: every number is left out." if self.values.size else ""
        if not self.keys.column_names:
            return f"All {self.what} together: {text(round(float(np.nansum(self.values))))}."
        row, kind = np.unravel_index(int(np.nanargmax(self.values)), self.values.shape)
        cell = [*self.keys.slice(int(row), 1).to_pylist()[0].values(), *self.levels[kind]]
        low, high = self.lower[row, kind], self.upper[row, kind]
        ends = f" ({text(int(low))} to {text(int(high))})" if np.isfinite(low + high) else ""
        return f"Most {self.by()}: {', '.join(map(str, cell))}, {text(int(self.values[row, kind]))}{ends}."

    def cells(self, label: str) -> Iterator[Block]:
        """The numbers, the largest first; where a cell has several kinds of workers, its total with a bar for each."""
        names, kinds = self.keys.column_names, self.values.shape[1]
        gone = self.left_out
        total = np.where(gone.all(axis=1), np.nan, np.nansum(self.values, axis=1))
        order = np.argsort(-total, kind="stable")[:MOST]
        rows = self.keys.take(column_of(order)).to_pylist() if names else [{}] * len(order)
        labels = [", ".join(str(row[name]) for name in names) or f"all {self.what}" for row in rows]
        places, some_gone = zip(order.tolist(), labels, strict=True), bool(gone.any())
        marks = [self._mark(row, name, float(total[row]), some_gone=some_gone) for row, name in places]
        some = f"the {len(marks)} largest of {text(len(total))}" if len(marks) < len(total) else "all"
        what = ", ".join(name.replace("_", " ") for name in names).capitalize() or "Cell"
        by = f"by {', '.join(names)}" if names else "in all"
        named = "; ".join(", ".join(map(str, level)) for level in self.levels) if kinds <= NAMED else ""
        bars = f"; bars, from the left: {named}" if named else f"; bars: {', '.join(self.worker_by)}"
        known = np.isfinite(self.upper).any()
        over = bars if kinds > 1 else f", with intervals of {percent(self.level)}" if known else ", without intervals"
        heading = self.what.replace("_", " ").capitalize()
        yield Ranked(
            (what, heading, "Mostly noise" if kinds > 1 and not some_gone else "Quality"),
            marks,
            unbroken(f"{heading} {by}, {some}{over}. Grey: mostly noise"),
            f"{label} cells",
            ", ".join(self.worker_by).replace("_", " ").capitalize() if kinds > 1 else "Chart",
        )

    def _mark(self, row: int, name: str, total: float, *, some_gone: bool) -> Mark:
        flags, kinds = self.flags[row], self.values.shape[1]
        if kinds == 1:
            flag = str(flags[0])
            return Mark(name, total, float(self.lower[row, 0]), float(self.upper[row, 0]), flag, flag == NOISE)
        noisy, gone = (int((flags == flag).sum()) for flag in (NOISE, SUPPRESSED))
        told = [f"{noisy} of {kinds}" if not some_gone else f"{noisy} mostly noise"] * bool(noisy)
        told += [f"{gone} of {kinds} {SUPPRESSED}"] * bool(gone)
        bars = tuple(np.nan_to_num(self.values[row]).tolist())
        return Mark(name, total, flag=", ".join(told), faint=noisy == kinds, kinds=bars)
