"""Calendars of accountants: quarters of thirteen weeks (4-4-5, 4-5-4, 5-4-4), and half months. Only dates.

A quarter of 4, 4 and 5 weeks keeps the day of the week. Every five or six years one period has a week more, so that the
year does not wander; the next such week is not known ahead, and later periods follow the usual lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Vector

LENGTHS = (4, 4, 5)
"""Weeks of the periods of a quarter, which may begin anywhere in this cycle."""

QUARTER = sum(LENGTHS)
FEWEST = 6
"""Periods that show the cycle: two quarters."""

YEARS_APART = 4
"""Years at least between two weeks that are put in."""


@dataclass(frozen=True, slots=True)
class ThirteenWeeks:
    """Periods of 4, 4 and 5 weeks; `days` are the panel's, and `turn` is the place in the cycle of the one after."""

    days: Vector
    turn: int
    exact: bool = True

    def place(self, value: Any) -> int | None:
        known = np.flatnonzero(self.days == value)
        if len(known):
            return int(known[0]) - len(self.days) + 1
        weeks, rest = divmod(int((value - self.days[-1]).astype(int)), 7)
        ends = [sum(_cycle(self.turn)[:k]) for k in range(len(LENGTHS))]
        for put_in in (0, 1 if weeks > 0 else -1):
            quarters, left = divmod(weeks - put_in, QUARTER)
            if not rest and left in ends:
                return len(LENGTHS) * quarters + ends.index(left)
        return None

    def at(self, place: int) -> Any:
        if -len(self.days) < place <= 0:
            return self.days[place - 1]
        quarters, rest = divmod(place, len(LENGTHS))
        return self.days[-1] + np.timedelta64(7 * (QUARTER * quarters + sum(_cycle(self.turn)[:rest])), "D")


@dataclass(frozen=True, slots=True)
class HalfMonths:
    """Two days of every month; a `second` of None is its end. `last` is the panel's last, in halves since 1970."""

    first: int
    second: int | None
    last: int
    exact: bool = True

    def place(self, value: Any) -> int | None:
        half = _halves(np.array([value]), self.first, self.second)
        return None if half is None else int(half[0]) - self.last

    def at(self, place: int) -> Any:
        months, late = divmod(self.last + place, 2)
        month = np.datetime64(months, "M")
        day = self.second if late else self.first
        return _end(month) if day is None else month.astype("datetime64[D]") + (day - 1)


def thirteen_weeks(days: Vector) -> ThirteenWeeks | None:
    """The rule of dates in quarters of thirteen weeks, or None."""
    steps = np.diff(days).astype(int)
    if len(days) < FEWEST or (steps % 7).any():
        return None
    for turn in range(len(LENGTHS)):
        more = steps // 7 - np.resize(_cycle(turn), len(steps))
        put_in = np.flatnonzero(more)
        far = (np.diff(put_in) >= YEARS_APART * 12).all()
        if (more >= 0).all() and (more <= 1).all() and far and len(put_in) < len(steps) / 3:
            return ThirteenWeeks(days, (turn + len(steps)) % len(LENGTHS))
    return None


def half_months(days: Vector) -> HalfMonths | None:
    """The rule of dates that come twice a month, or None."""
    numbers = _in_month(days)
    ends = days == _end(days.astype("datetime64[M]"))
    first = int(numbers.min())
    others = np.unique(numbers[(numbers != first) & ~ends])
    late = None if ends.any() and not len(others) else int(others[0]) if len(others) else None
    if len(days) < 4 or first > 16 or len(others) > 1 or (late is None and not ends.any()):
        return None
    halves = _halves(days, first, late)
    if halves is None or (np.diff(halves) != 1).any():
        return None
    return HalfMonths(first, late, int(halves[-1]))


def _halves(days: Vector, first: int, second: int | None) -> Vector | None:
    """Dates in halves of months since 1970; None if some is no such day."""
    months, numbers = days.astype("datetime64[M]"), _in_month(days)
    late = days == _end(months) if second is None else numbers == second
    return None if (~late & (numbers != first)).any() else 2 * months.astype(int) + late


def _in_month(days: Vector) -> Vector:
    return np.asarray((days - days.astype("datetime64[M]")).astype(int) + 1)


def _cycle(turn: int) -> tuple[int, ...]:
    return (*LENGTHS[turn:], *LENGTHS[:turn])


def _end(month: Any) -> Any:
    return (month + 1).astype("datetime64[D]") - 1
