"""The widths of intervals before anything is paid: from public constants and assumed or public sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet.arrays import Vector
from discreet.data.jobs import Jobs
from discreet.tables.expected import SIZES, three_digits
from discreet.tables.intervals.counts import by_sizes
from discreet.tables.mechanisms.defaults import paid_before
from discreet.words.errors import DiscreetError
from discreet.words.later import Later

if TYPE_CHECKING:
    from discreet.privacy.units import Unit
    from discreet.release.account import Account
    from discreet.tables.prepared import Prepared, TableAsk
    from discreet.tables.query import CountQuery

MANY = 50
"""Jobs of a cell over those of its largest establishment, where it has many."""

SHARES = ("0", "1/20", "1/10", "3/20", "1/5")
AT = 100
"""Shares that are compared, at cells whose largest establishment has this many workers."""

MOST_TIMES = 8
"""Intervals are called usable if their mean half-width is at most so many times what the error seldom exceeds."""


@dataclass(frozen=True, slots=True)
class Trade:
    """The cost and the gain of a share of epsilon for sizes, in cells whose largest establishment has `AT` workers.

    Attributes
    ----------
    error : expected absolute error of a count.
    alone, among : typical half-width of an interval, where the cell has no other establishment and where it has many.
    mean : mean half-width in cells of ever more establishments, which the long tail of noise on sizes sets.
    times : the same over what the error exceeds with a probability of 1 - level only, if nothing is spent on sizes.
    """

    share: str
    error: float
    alone: float
    among: float
    mean: float
    times: float

    @property
    def usable(self) -> bool:
        return self.times <= MOST_TIMES


def half_widths(
    query: CountQuery,
    ready: Prepared,
    *,
    jobs: Vector,
    largest: Vector,
    level: float,
    at_most: Vector | None = None,
) -> Vector:
    """Typical half-widths in cells of so many jobs, divided evenly into kinds: noise and sizes are at their medians."""
    from discreet.tables.prepared import Drawn

    counts = np.rint(np.repeat(jobs[:, None] / query.levels, query.levels, axis=1)).astype(np.int64)
    sizes = None if ready.sizes is None else np.rint(np.maximum(largest, ready.sizes.offset)).astype(np.int64)
    lower, upper = query.ends(ready, Drawn(counts, sizes, at_most))(level)
    return np.asarray(np.maximum(upper - counts, counts - lower)[:, 0])


def widths(query: CountQuery, ready: Prepared, *, level: float) -> dict[int, tuple[float, float]]:
    """Half-widths by the size of the cell's largest establishment: alone in the cell, and among many."""
    told = tuple(size * query.step for size in SIZES)
    size = np.array(told, dtype=np.float64)
    found = [half_widths(query, ready, jobs=size * times, largest=size, level=level).tolist() for times in (1, MANY)]
    return dict(zip(told, zip(*found, strict=True), strict=True))


def tradeoff(query: CountQuery, asked: TableAsk, *, level: float) -> Sequence[Trade]:
    """The same table with other shares for sizes, as far as they are possible; of counts alone.

    Each share has noise of its own to be solved for, so they are compared when somebody looks. Neither rows nor the
    account are kept for that.
    """
    if query.magnitude is not None:
        return ()
    known = asked.get("mechanism") or paid_before(query.account, asked.get("name"))
    account = cast("Account", _Terms(query.account.unit, query.account.private))
    bare = replace(query, jobs=_declared(query.jobs), account=account)
    return Later(partial(_trades, bare, {**asked, "mechanism": known, "name": None}, level))


@dataclass(frozen=True, slots=True)
class _Terms:
    """What prices depend on of an account; nothing can be paid or drawn with it."""

    unit: Unit
    private: bool


def _declared(jobs: Jobs) -> Jobs:
    """The declarations about jobs without the jobs: enough to price a query, and nothing to run it on."""
    nothing: Any = object()
    listed = None if jobs.workplaces is None else nothing
    multiple = jobs.allow_multiple
    return Jobs(nothing, jobs.schema, workplaces=listed, allow_multiple=multiple, validated=jobs.validated)


def _trades(query: CountQuery, asked: TableAsk, level: float) -> tuple[Trade, ...]:
    found, point = [], np.inf
    for share in SHARES:
        other: TableAsk = {**asked, "scale_share": share}
        try:
            ready = query.prepare(**other)
        except DiscreetError:
            continue
        if ready.sizes is None:
            point = float(ready.mechanism.reach(np.array([float(AT)]), level=level)[0])
        alone, among = widths(query, ready, level=level)[AT]
        mean = mean_width(query, ready, level=level)
        times = mean / point if 0 < point < np.inf else np.inf
        found.append(Trade(share, query.expected_by_largest(ready)[AT], alone, among, mean, times))
    return tuple(found)


def mean_width(query: CountQuery, ready: Prepared, *, level: float) -> float:
    """The mean half-width by noisy sizes alone: that of the mean of the published size, in which it is linear."""
    if ready.sizes is None or ready.sizes.exponent >= 1:
        return np.inf
    published = max(AT, ready.sizes.offset) / (1 - ready.sizes.exponent**2)
    bounded = query.bounds_size(ready.mechanism)
    return float(by_sizes(np.array([published]), ready.mechanism, ready.sizes, level=level, bounded=bounded)[0])


def advised(trades: Sequence[Trade]) -> str | None:
    """The least of the compared shares with which intervals are usable where many establishments share a cell."""
    return next((trade.share for trade in trades if trade.usable), None)


def told_width(width: float) -> str:
    """A half-width in three digits, or that there is no interval."""
    return f"{three_digits(width):,.15g}" if np.isfinite(width) else "no interval"


def told_widths(
    by_largest: Mapping[int, tuple[float, float]], trades: Sequence[Trade], magnitude: str | None = None
) -> str:
    """Widths, and the effect of a share of epsilon for sizes, in words."""
    more = "as many jobs" if magnitude is None else f"as much {magnitude}"
    told = "; ".join(
        f"{size:,}: {told_width(alone)} and {told_width(among)}" for size, (alone, among) in by_largest.items()
    )
    others = "; ".join(
        f"{trade.share}: error {told_width(trade.error)}, half-widths {told_width(trade.alone)} and "
        f"{told_width(trade.among)}"
        for trade in trades
    )
    traded = f"\nWith scale_share, where that establishment has {AT} workers: {others}." if len(trades) > 1 else ""
    advice = "".join(f"\n{line}" for line in told_advice(trades))
    return (
        f"Typical half-width of an interval, by the same size, where it is alone in the cell, and where the cell has "
        f"{MANY} times {more}: {told}.{traded}{advice}"
    )


def told_advice(trades: Sequence[Trade]) -> tuple[str, ...]:
    """Which share makes intervals usable in cells of many establishments, in words."""
    if len(trades) < 2:
        return ()
    share = advised(trades)
    if share is None:
        return (
            f"With any scale_share up to {trades[-1].share}, intervals in cells of many establishments are on average "
            f"more than {MOST_TIMES} times as wide as if the scale of the noise were public.",
        )
    return (
        f"With scale_share = {share} or more, intervals in cells of many establishments are on average at most "
        f"{MOST_TIMES} times as wide as if the scale of the noise were public.",
    )
