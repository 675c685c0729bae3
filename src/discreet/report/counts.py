"""The report's part on the drawn numbers of one table: intervals, quality flags, ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from discreet.data.columns import column_of
from discreet.pages.numbers import percent, text, unbroken
from discreet.pages.page import Block, Prose, Table
from discreet.privacy.units import EstablishmentNodes, Unit
from discreet.tables.quality import MEANING, NOISE, NONE, QUALITY, counted
from discreet.words.caveats import CONFIDENTIAL, at_least

if TYPE_CHECKING:
    from discreet.arrays import Integers, Mask, Vector
    from discreet.tables.release import CountRelease

TOP = 10
"""Cells of a ranking that are shown."""


def intervals(label: str, table: CountRelease) -> Iterator[Block]:
    count, lower, upper = table.counts.ravel(), table.lower.ravel(), table.upper.ravel()
    known = np.isfinite(lower) & np.isfinite(upper)
    if not known.any():
        yield Prose(
            f"**No intervals.** Nothing public bounds the size of the establishments behind the {table.value}s of "
            f"{label}. A small part of epsilon (scale_share) would."
        )
        return
    rows = []
    for low, high in ((-np.inf, 0), (0, 10), (10, 100), (100, 1_000), (1_000, 10_000), (10_000, np.inf)):
        chosen = known & (count >= low) & (count < high)
        if chosen.any():
            width = upper[chosen] - lower[chosen]
            between = f"{text(low)} to {text(high - 1)}"
            name = "below 0" if np.isinf(low) else f"{text(low)} and more" if np.isinf(high) else between
            rows.append((name, int(chosen.sum()), float(np.median(width))))
    yield Table(
        (f"{table.value.capitalize()} as drawn", "Cells", "Median width of the interval"),
        rows,
        f"Intervals that hold {held(table.guarantee.unit, table.value)} with a probability of {percent(table.level)} "
        f"or more, {label}",
        f"{label} intervals",
    )
    yield Prose(unbroken(f"{at_least(CONFIDENTIAL)} **Quality** says {MEANING}."))
    found = counted(table.counts, table.lower, table.upper)
    yield Table(
        ("Quality", f"{table.value.capitalize()}s"),
        [(flag, found[flag]) for flag in (*QUALITY, NOISE, NONE) if flag in found],
        f"Quality flags, {label}",
        f"{label} quality",
    )


def held(unit: Unit, what: str = "count") -> str:
    """What an interval is about."""
    if isinstance(unit, EstablishmentNodes):
        return f"the true {what} without establishments of more than {unit.theta:,} workers"
    return f"the true {what}"


def ranking(label: str, table: CountRelease, left_out: Mask) -> Iterator[Block]:
    """The ranks that the intervals of the largest cells allow; only where a cell has one number with an interval."""
    names = table.keys.column_names
    lower, upper = table.lower[:, 0], table.upper[:, 0]
    if not names or len(table.counts) < 2 or table.counts.shape[1] > 1 or not np.isfinite(lower).any():
        return
    lower, upper = np.nan_to_num(lower, nan=-np.inf), np.where(np.isnan(upper), np.inf, upper)
    order = np.argsort(-table.counts[:, 0], kind="stable")
    order = order[~left_out[order, 0]][:TOP]
    if not len(order):
        return
    best, worst = _rank_ranges(lower, upper)
    keys = table.keys.take(column_of(order)).to_pylist()
    rows = [
        (rank, ", ".join(str(key[name]) for name in names), _range(best[row], worst[row]))
        for rank, (row, key) in enumerate(zip(order, keys, strict=True), start=1)
    ]
    what = ", ".join(name.replace("_", " ") for name in names).capitalize()
    caption = f"Ranks that the intervals of the {len(rows)} largest cells allow, {label}"
    yield Table(("Rank", what, "Possible ranks"), rows, caption, f"{label} ranking")


def _range(low: object, high: object) -> str:
    """Both ends on one line."""
    return f"{low}\u00a0to\u00a0{high}"


def _rank_ranges(lower: Vector, upper: Vector) -> tuple[Integers, Integers]:
    """The best and the worst rank of each cell, 1 for the largest, if every true count is in its interval."""
    low, high = np.sort(lower), np.sort(upper)
    best = 1 + len(low) - np.searchsorted(low, upper, side="right")
    worst = len(high) - np.searchsorted(high, lower, side="left")
    return best, worst
