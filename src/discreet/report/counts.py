"""What the report says about one published table of counts: its intervals, its quality flags, its largest cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from discreet.privacy.units import EstablishmentNodes, Unit
from discreet.report.numbers import percent, text, unbroken
from discreet.report.page import Block, Prose, Table
from discreet.tables.quality import MEANING, NOISE, NONE, QUALITY

if TYPE_CHECKING:
    from discreet.arrays import Integers, Vector
    from discreet.tables.release import CountRelease

TOP = 10
"""Cells of a ranking that are shown."""


def intervals(label: str, table: CountRelease) -> Iterator[Block]:
    count, lower, upper = table.counts.ravel(), table.lower.ravel(), table.upper.ravel()
    known = np.isfinite(lower) & np.isfinite(upper)
    if not known.any():
        yield Prose(
            f"**No intervals.** Nothing public bounds the size of the establishments behind the counts of {label}. A "
            "small part of epsilon (scale_share) would."
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
        ("Published count", "Counts", "Median width of the interval"),
        rows,
        f"Intervals that hold {held(table.guarantee.unit)} with a probability of {percent(table.level)} or more, "
        f"{label}",
        f"{label} intervals",
    )
    flags, number = np.unique(table.quality, return_counts=True)
    found = dict(zip(flags.tolist(), number.tolist(), strict=True))
    yield Table(
        ("Quality", "Counts"),
        [(flag, found[flag]) for flag in (*QUALITY, NOISE, NONE) if flag in found],
        unbroken(f"Quality flags, {label}: {MEANING}"),
        f"{label} quality",
    )


def held(unit: Unit) -> str:
    """What an interval is about."""
    if isinstance(unit, EstablishmentNodes):
        return f"the true count without establishments of more than {unit.theta:,} workers"
    return "the true count"


def ranking(label: str, table: CountRelease) -> Iterator[Block]:
    """The largest cells; with one count in each, also the ranks that their intervals allow."""
    names = table.keys.column_names
    if not names or len(table.counts) < 2:
        return
    count = table.counts.sum(axis=1)
    order = np.argsort(-count, kind="stable")[:TOP]
    columns = ["Rank", *(name.replace("_", " ").capitalize() for name in names), "Jobs"]
    keys = table.keys.take(order.tolist()).to_pylist()
    rows: list[list[object]] = [
        [rank, *(str(key[name]) for name in names), int(count[row])]
        for rank, (row, key) in enumerate(zip(order, keys, strict=True), start=1)
    ]
    lower, upper = table.lower[:, 0], table.upper[:, 0]
    if table.counts.shape[1] == 1 and not np.isnan(lower).any():
        best, worst = _rank_ranges(lower, upper)
        columns += ["Interval", "Possible ranks"]
        for row, told in zip(order, rows, strict=True):
            told += [_range(text(int(lower[row])), _end(upper[row])), _range(best[row], worst[row])]
    yield Table(columns, rows, f"The {len(rows)} largest cells, {label}", f"{label} ranking")


def _range(low: object, high: object) -> str:
    """Both ends on one line."""
    return f"{low}\u00a0to\u00a0{high}"


def _end(upper: float) -> str:
    return text(int(upper)) if np.isfinite(upper) else NONE


def _rank_ranges(lower: Vector, upper: Vector) -> tuple[Integers, Integers]:
    """The best and the worst rank of each cell, 1 for the largest, if every true count is in its interval."""
    low, high = np.sort(lower), np.sort(upper)
    best = 1 + len(low) - np.searchsorted(low, upper, side="right")
    worst = len(high) - np.searchsorted(high, lower, side="left")
    return best, worst
