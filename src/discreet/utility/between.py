"""Alarms from two private releases: which counts changed by more than their noise can explain.

Both releases hold each true count within its interval with probability `level` at least. So the true change lies
between the difference of the near ends and that of the far ends with probability at least 1 - 2 (1 - level), for any
noise and any dependence. A cell that did not change raises an alarm with probability at most 2 (1 - level). Two
releases with independent draws have narrower ends for the same chance (`paired`). Only published numbers are read, so
an alarm costs no privacy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Mask, Vector
from discreet.data import frames
from discreet.models.linear.private.result import PrivateFit
from discreet.release.files import MANIFEST
from discreet.results import Result, tidy_table
from discreet.tables.movement.published import MovementRelease
from discreet.tables.release import CountRelease
from discreet.tables.reopened import reopened
from discreet.utility.discoveries import discovered
from discreet.utility.flags import Direction
from discreet.utility.paired import Ends, change_ends
from discreet.utility.stated import missed, numbers_of
from discreet.words.arguments import of_kinds
from discreet.words.caveats import TWO, at_least
from discreet.words.errors import DataError, concerning
from discreet.words.faults import Argument


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SureChanges(Result):
    """Cells of two releases, the surest and largest changes first.

    Attributes
    ----------
    by : the attributes that make a cell.
    cells : their values, one tuple per cell.
    before, after : published counts.
    low, high : between which the true change lies, with probability 1 - `rate` at least.
    alarm : the change is beyond the noise, in the direction and by the amount asked for.
    rate : the largest chance that a cell without such a change raises an alarm.
    fdr : the largest expected share of false alarms among all, if it was asked for.
    alone : cells that only one of the releases has; they are not compared.
    """

    by: tuple[str, ...]
    cells: list[tuple[str, ...]]
    before: Vector
    after: Vector
    low: Vector
    high: Vector
    alarm: Mask
    rate: float
    fdr: float | None = None
    alone: int = 0

    @property
    def expected_false(self) -> float:
        """The most false alarms to expect: if no cell had changed, or that share of those that there are."""
        if self.fdr is not None:
            return self.fdr * int(self.alarm.sum())
        return self.rate * int((np.isfinite(self.low) | np.isfinite(self.high)).sum())

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per cell."""
        return [
            dict(zip(self.by, cell, strict=True))
            | {
                "before": float(self.before[i]),
                "after": float(self.after[i]),
                "change": float(self.after[i] - self.before[i]),
                "low": float(self.low[i]) if np.isfinite(self.low[i]) else None,
                "high": float(self.high[i]) if np.isfinite(self.high[i]) else None,
                "alarm": bool(self.alarm[i]),
            }
            for i, cell in enumerate(self.cells)
        ]

    def to_arrow(self) -> Any:
        """`rows` as a PyArrow table."""
        import pyarrow as pa

        columns: dict[str, Any] = {
            name: pa.array([cell[i] for cell in self.cells], pa.string()) for i, name in enumerate(self.by)
        }
        numbers = {"before": self.before, "after": self.after, "change": self.after - self.before}
        columns |= {name: pa.array(each) for name, each in numbers.items()}
        for name, ends in (("low", self.low), ("high", self.high)):
            columns[name] = pa.array(ends, mask=~np.isfinite(ends))
        return pa.table({**columns, "alarm": pa.array(self.alarm)})

    def tidy(self) -> Any:
        """The change of each cell, in the columns of `discreet.results.COLUMNS`."""
        return tidy_table(
            effect="change",
            group=", ".join(self.by),
            level=[", ".join(cell) for cell in self.cells],
            estimate=self.after - self.before,
            lower=self.low,
            upper=self.high,
            flag=["alarm" if each else None for each in self.alarm],
        )

    def __repr__(self) -> str:
        return f"<SureChanges: {int(self.alarm.sum()):,} of {len(self.cells):,} cells>"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """The number of changes that are larger than the noise, and how many of them may be false."""
        many = f"{int(self.alarm.sum()):,} of {len(self.cells):,} cells changed by more than their noise can explain."
        many += f" {self.alone:,} cells of only one release are not compared." if self.alone else ""
        if self.fdr is not None:
            return (
                f"{many} Of all alarms, a share of {100 * self.fdr:.1f} % at most is expected to be false: fewer than "
                f"{self.expected_false:.1f} of these. {at_least(TWO)}"
            )
        return (
            f"{many} A cell that did not would be among them with a chance of {100 * self.rate:.1f} % at most: fewer "
            f"than {self.expected_false:.1f} false alarms are to be expected. {at_least(TWO)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """What goes to JSON."""
        return {
            "rate": self.rate,
            **({} if self.fdr is None else {"fdr": self.fdr}),
            "alarms": int(self.alarm.sum()),
            "cells": len(self.cells),
            "cells_of_one_release": self.alone,
            "expected_false_at_most": self.expected_false,
            "rows": self.rows(),
        }


@of_kinds
def changes_between(
    early: Any,
    late: Any,
    *,
    by: Sequence[str] | None = None,
    level: float | None = None,
    rate: float | None = None,
    fdr: float | None = None,
    least: float = 0.0,
    direction: Direction = "either",
    value: str = "count",
) -> SureChanges:
    """Which counts of two private releases changed by more than their noise can explain, or which effects of models.

    Parameters
    ----------
    early, late : two releases of counts or flows by the same attributes, folders of releases of counts, or published
        tables: the attributes, `count`, `lower` and `upper`. Cells that only one of them has a number for are left out.
        Or two private models of one formula, whose errors have noise and sampling in them (see `model_changes`), or
        their published tables with `value="estimate"`: the attributes, `estimate` and `std_error`.
    by : the attributes that make a cell; known of a release, needed for tables. Of models a random term, or "term" for
        the fixed effects; left out, the first random term.
    level : the probability with which the intervals hold; a release states it, and so does `release.json` of a file of
        one. Other tables need it. Of models it sets the rate, and is 0.95 if it is left out.
    rate : the largest chance of a false alarm of a cell, for two releases of counts, whose ends at any level are
        known. Left out, 2 (1 - level). Of published tables it follows from the level.
    fdr : the largest expected share of false alarms among all of them, instead of a rate for each cell, for any
        dependence between cells (see `discoveries`).
    least : by how much a count must have changed at least.
    direction : "either", "decline" or "increase".
    value : which published number; of flows for example "destruction" or "jdr", whose ends are `jdr_lower` and
        `jdr_upper`.

    Returns
    -------
    The cells, alarms first, with the chance of a false one.

    Examples
    --------
    >>> print(changes_between("q1.csv", "q2.csv", by=["place"], level=0.95).summary())          # doctest: +SKIP
    """
    if direction not in ("either", "decline", "increase"):
        raise DataError(
            (Argument("direction", direction), " is not known."),
            "It is 'either', 'decline' or 'increase'.",
            "Use 'either'.",
            about="direction",
        )
    if not least >= 0:
        raise DataError(
            (Argument("least", least), " is no size of a change."), "It is 0 or more.", "Use 0.", about="least"
        )
    early, late = (_opened(each) for each in (early, late))
    releases = [each for each in (early, late) if isinstance(each, CountRelease | MovementRelease)]
    by = tuple(_attributes(releases[0]) if by is None and releases else by or ())
    models = isinstance(early, PrivateFit) or isinstance(late, PrivateFit)
    if not by and not models:
        raise DataError(
            "The attributes that make a cell were not named.",
            "They are columns of both tables.",
            "Name them, such as by=['place'].",
            about="by",
        )
    if rate is not None and fdr is not None:
        raise DataError(
            (Argument("rate", rate), " and ", Argument("fdr", fdr), " were given."),
            "A rate is of each cell, a false discovery rate of the whole list.",
            "Leave one out.",
            about="fdr",
        )
    for name, given in (("rate", rate), ("fdr", fdr)):
        if given is None:
            continue
        refuse_rate(given, name)
        if not models and not (_at_any_level(early, late, value) and early.by == late.by == by):
            raise DataError(
                (Argument(name, given), " is given for published tables."),
                "Their ends are those of one level; other ends follow from releases of counts.",
                "Leave it out and give the level, or give two releases.",
                about=name,
            )
    free = models or value == "estimate" or (_at_any_level(early, late, value) and early.by == late.by == by)
    miss = missed(early, late, level, free=free)
    chance = miss if rate is None else float(rate)
    if models:
        from discreet.utility.model_changes import model_changes

        return _some(model_changes(early, late, by=by, rate=chance, fdr=fdr, least=least, direction=direction))
    if _at_any_level(early, late, value) and early.by == late.by == by:
        found = _some(_of_releases(early, late, rate=chance, fdr=fdr, least=least, direction=direction))
        return replace(found, alone=early.counts.size + late.counts.size - 2 * len(found.cells))
    first, second = (_read(table, by, name, value, miss / 2) for table, name in ((early, "early"), (late, "late")))
    cells = [cell for cell in first if cell in second and np.isfinite(first[cell][0] + second[cell][0])]
    one, other = (np.array([table[cell] for cell in cells], float).reshape(-1, 3) for table in (first, second))
    ends = other[:, 1] - one[:, 2], other[:, 2] - one[:, 1]
    found = sure_changes(by, cells, one[:, 0], other[:, 0], ends, rate=chance, least=least, direction=direction)
    return replace(_some(found), alone=len(first.keys() ^ second.keys()))


def _some(found: SureChanges) -> SureChanges:
    """Refuse tables without a cell in common; in a plan, whose releases are paid for by then, nothing is listed."""
    if not found.cells:
        raise DataError(
            "The two tables have no cell in common.",
            "Changes are between the same cells.",
            "Give releases by the same attributes.",
            about="late",
        )
    return found


def refuse_rate(rate: float, name: str = "rate") -> None:
    """Refuse what is no chance of a false alarm, or no share of them."""
    if not 0 < rate < 1:
        raise DataError(
            (Argument(name, rate), f" is no {'chance' if name == 'rate' else 'share'} of a false alarm."),
            "It lies between 0 and 1.",
            "Use 0.1.",
            about=name,
        )


def sure_changes(
    by: Sequence[str],
    cells: list[tuple[str, ...]],
    before: Vector,
    after: Vector,
    ends: tuple[Vector, Vector],
    *,
    rate: float,
    least: float = 0.0,
    direction: Direction = "either",
    fdr: float | None = None,
    raised: Mask | None = None,
) -> SureChanges:
    """The changes of these cells that are beyond the ends of their noise, alarms first."""
    low, high = np.where(np.isnan(ends[0]), -np.inf, ends[0]), np.where(np.isnan(ends[1]), np.inf, ends[1])
    alarm = beyond(low, high, least=least, direction=direction) if raised is None else raised
    order = np.lexsort((-np.abs(after - before), ~alarm))
    return SureChanges(
        by=tuple(by),
        cells=[cells[i] for i in order],
        before=before[order],
        after=after[order],
        low=low[order],
        high=high[order],
        alarm=alarm[order],
        rate=rate,
        fdr=fdr,
    )


def changes_at(
    by: Sequence[str],
    cells: list[tuple[str, ...]],
    before: Vector,
    after: Vector,
    ends: Ends,
    *,
    rate: float,
    fdr: float | None,
    least: float,
    direction: Direction,
) -> SureChanges:
    """The changes of these cells, whose ends are known at any rate: at this one, or at that of a list with this fdr."""
    raised: Mask | None = None
    if fdr is not None:
        raised, rate = discovered(
            lambda rate: beyond(*ends(rate), least=least, direction=direction), cells=len(cells), fdr=fdr
        )
    about: dict[str, Any] = {"rate": rate, "fdr": fdr, "least": least, "direction": direction, "raised": raised}
    return sure_changes(by, cells, before, after, ends(rate), **about)


def beyond(low: Vector, high: Vector, *, least: float, direction: Direction) -> Mask:
    """Which changes are beyond the ends of their noise; one without an end is not."""
    up, down = low > least, high < -least
    return np.asarray({"either": up | down, "increase": up, "decline": down}[direction])


def _opened(table: Any) -> Any:
    """The release in a folder; anything else as it is."""
    if isinstance(table, str | Path) and os.path.isfile(Path(table) / MANIFEST):  # noqa: PTH113
        return reopened(table)
    return table


def _at_any_level(early: Any, late: Any, value: str) -> bool:
    """Whether both are releases of counts whose ends at any level follow from the published numbers."""
    both = isinstance(early, CountRelease) and isinstance(late, CountRelease)
    return both and early.value == value == late.value and early.ends is not None and late.ends is not None


def _of_releases(
    early: CountRelease, late: CountRelease, *, rate: float, fdr: float | None, least: float, direction: Direction
) -> SureChanges:
    """Those of two releases of counts, by the ends of pairs of levels where their draws are independent."""
    drawn = [each.parameters.get("ledger") if each.entry is None else each.entry.hash for each in (early, late)]
    apart = drawn[0] != drawn[1] or drawn[0] is None
    assert early.ends is not None and late.ends is not None
    (mine, one), (theirs, other) = (_cells(each) for each in (early, late))
    row = {cell: i for i, cell in enumerate(mine)}
    pairs = [(row[cell], i) for i, cell in enumerate(theirs) if cell in row]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    ends = partial(
        change_ends, matched(early.ends, first), matched(late.ends, second), independent=apart and early is not late
    )
    cells = [theirs[i] for i in second]
    about: dict[str, Any] = {"rate": rate, "fdr": fdr, "least": least, "direction": direction}
    return changes_at(late.by, cells, one[first], other[second], lambda rate: ends(rate=rate), **about)


def _cells(release: CountRelease) -> tuple[list[tuple[str, ...]], Vector]:
    table = release.to_arrow()
    names = [[str(each) for each in table[name].to_pylist()] for name in release.by]
    return list(zip(*names, strict=True)), release.counts.ravel().astype(np.float64)


def matched(ends: Ends, rows: Any) -> Ends:
    """The ends of some numbers, in this order."""

    def chosen(level: float) -> tuple[Vector, Vector]:
        lower, upper = ends(level)
        return lower.ravel()[rows], upper.ravel()[rows]

    return chosen


def _attributes(release: CountRelease | MovementRelease) -> Sequence[str]:
    return release.by if isinstance(release, CountRelease) else release.keys.column_names


def _read(
    table: Any, by: Sequence[str], name: str, value: str, miss: float
) -> dict[tuple[str, ...], tuple[float, float, float]]:
    """Count, lower and upper end of each cell; NaN for an end that there is not."""
    data = table.to_arrow() if isinstance(table, CountRelease | MovementRelease) else table
    with concerning(name):
        frame = frames.open_frame(data, name=f"the {name} table")
    numbers = (value, "lower", "upper") if value in ("count", "sum") else (value, f"{value}_lower", f"{value}_upper")
    if value == "estimate":
        numbers = (value, "std_error", "std_error")
    wanted = tuple(dict.fromkeys((*by, *numbers)))
    present = frame.collect_schema().names()
    frames.refuse(
        (frames.missing(each, present, name=f"the {name} table") for each in wanted if each not in present), about=name
    )
    read = frames.collect(frame.select(*wanted), step=f"read the {name} table").to_pydict()
    keys = list(zip(*(["" if value is None else str(value) for value in read[each]] for each in by), strict=True))
    if len(set(keys)) < len(keys):
        raise DataError(
            f"The {name} table has several rows for one cell of {', '.join(by)}.",
            "A cell has one count.",
            "Name all of its attributes.",
            about="by",
        )
    ends = [numbers_of(read[each], each, name) for each in numbers]
    if value == "estimate":
        from discreet.utility.model_changes import quantile

        far = quantile(miss) * ends[1]
        ends[1:] = [ends[0] - far, ends[0] + far]
    if (upside := int((ends[1] > ends[2]).sum())) > 0:
        raise DataError(
            f"{numbers[1]!r} is above {numbers[2]!r} in {upside:,} of {len(keys):,} rows of the {name} table.",
            "An interval goes from its lower end to its upper one.",
            "Name the columns rightly, or give the published table.",
            about=name,
        )
    return dict(zip(keys, zip(*(each.tolist() for each in ends), strict=True), strict=True))
