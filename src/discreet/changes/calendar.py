"""The calendar of a panel: how its periods follow each other, what a later one is called, how far ahead a label lies.

Only labels. They are numbers at equal steps, or dates: days, weeks on any day, working days, and months, quarters or
years by a day, by their end, or by their last or first working day; half months and quarters of thirteen weeks
(`accounting`). Dates may be spelled as text (2024-01-31, 2024-01, 2024Q1, 2024-W05) or as whole numbers (20240131,
202401). Other text has an order and nothing more; dates that follow no rule have
no successor.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from discreet.arrays import Integers, Mask, Vector
from discreet.changes.accounting import HalfMonths, half_months, thirteen_weeks
from discreet.words.errors import DataError

FORMS = ("%Y-%m-%d", "%Y-%m", "%YQ", "%Y-Q", "%G-W%V", "%GW%V", "%Y%m%d", "%Y%m")
NUMBERS = FORMS[-2:]
"""Spellings of dates; those that may also be whole numbers."""

HOLIDAYS = 0.1
"""Largest share of steps over closed days in a calendar of working days."""

MONTHS = 12
HOLES = 0.2
"""Largest share of periods that may be missing in all series, for the rest to follow a rule."""

ROUNDED = 0.02
"""Largest deviation from equal steps, in steps: 1990.083, 1990.167, 1990.25 are months."""


class PeriodRule(Protocol):
    """Periods as whole numbers, 0 for the panel's last."""

    @property
    def exact(self) -> bool:
        """Whether later periods are certain; a calendar of working days does not know future holidays."""
        ...

    def place(self, value: Any) -> int | None:
        """The number of a period, None for a value that is no period of this rule."""
        ...

    def at(self, place: int) -> Any: ...


@dataclass(frozen=True, slots=True)
class Even:
    """Numbers, days or times at equal steps."""

    last: Any
    step: Any
    exact: bool = True

    def place(self, value: Any) -> int | None:
        count = float((value - self.last) / self.step)
        return round(count) if abs(count - round(count)) <= 5 * ROUNDED else None

    def at(self, place: int) -> Any:
        return self.last + place * self.step


@dataclass(frozen=True, slots=True)
class MonthRule:
    """One day of every `step`-th month, which `anchor` finds."""

    last: np.datetime64
    step: int
    anchor: Callable[[Any], Any]
    exact: bool = True

    def place(self, value: Any) -> int | None:
        count, rest = divmod(int((value.astype("datetime64[M]") - self.last).astype(int)), self.step)
        return None if rest else count

    def at(self, place: int) -> Any:
        return self.anchor(self.last + place * self.step)


@dataclass(frozen=True, slots=True)
class Weekdays:
    """The same days of every week."""

    last: np.datetime64
    days: Mask
    exact: bool

    def place(self, value: Any) -> int | None:
        worked = np.is_busday(value, weekmask=self.days)
        return int(np.busday_count(self.last, value, weekmask=self.days)) if worked else None

    def at(self, place: int) -> Any:
        return np.busday_offset(self.last, place, weekmask=self.days)


@dataclass(frozen=True, slots=True)
class Calendar:
    """The periods of a panel under their labels; without a `rule` they are only in order."""

    last: Any
    rule: PeriodRule | None
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]

    def later(self, steps: int) -> Any:
        """The label `steps` periods after the last."""
        return f"{self.last} +{steps}" if self.rule is None else self.write(self.rule.at(steps))

    def ahead(self, labels: np.ndarray) -> Integers | None:
        """The number of periods from the last to each label, or None if that cannot be known."""
        if self.rule is None or not self.rule.exact:
            return None
        values = [self.read(label) for label in labels]
        places = [None if value is None else self.rule.place(value) for value in values]
        return None if None in places else np.array(places, np.int64)


def calendar(labels: np.ndarray) -> Calendar:
    """The calendar of a panel's periods, given in order, each once; a refusal if they follow no rule."""
    kind = labels.dtype
    if kind.kind == "M":
        return Calendar(labels[-1], _of_times(labels), lambda label: label, lambda time: time.astype(kind))
    spelled = [str(label) for label in labels]
    for form in FORMS if kind.kind not in "iuf" else NUMBERS if kind.kind != "f" else ():
        dates = [_date(text, form) for text in spelled]
        if None not in dates:
            days = np.array(dates, "datetime64[D]")
            spell = partial(_spell, form=form, kind=kind)
            return Calendar(labels[-1], _of_days(days), partial(_day, form=form), spell)
    if kind.kind not in "iuf":
        return Calendar(labels[-1], None, str, str)
    rule = _even(labels.astype(float), "")
    whole = kind.kind in "iu"
    return Calendar(labels[-1], rule, float, lambda value: kind.type(round(value) if whole else value))


def spelled_days(labels: np.ndarray) -> np.ndarray | None:
    """The days of labels that spell dates in one way, NaT for labels that do not; None if hardly any does."""
    kind = labels.dtype.kind
    texts = [str(label) for label in labels]
    best: list[datetime.date | None] = []
    for form in FORMS if kind not in "iuf" else NUMBERS if kind != "f" else ():
        found = [_date(text, form) for text in texts]
        best = found if len(found) - found.count(None) > len(best) - best.count(None) else best
    return np.array(best, "datetime64[D]") if 2 * best.count(None) < len(best) else None


def usual_season(labels: np.ndarray) -> int:
    """Periods in a season by the calendar: a day of hours, a week of days, a year of weeks, months or quarters.

    Whole numbers from 1900 to 2199 are years. Other numbers, and dates that follow no rule, are taken for months.
    """
    if labels.dtype.kind in "iu" and labels.min() >= 1900 and labels.max() < 2200:
        return 1
    try:
        rule = calendar(labels).rule
    except DataError:
        return MONTHS
    days = rule.days if isinstance(rule, _Clocked) else rule
    if isinstance(days, MonthRule):
        return MONTHS // days.step if MONTHS % days.step == 0 else 1
    if isinstance(days, Weekdays):
        return int(days.days.sum())
    if isinstance(days, HalfMonths):
        return 2 * MONTHS
    if isinstance(days, Even) and isinstance(days.step, np.timedelta64):
        step = days.step / np.timedelta64(1, "h")
        return max(1, round(24 / step) if step < 24 else 7 if step == 24 else round(365.25 * 24 / step))
    return MONTHS


def completed(labels: np.ndarray) -> np.ndarray:
    """The labels with those between them that no row mentions; as they are where they follow no rule."""
    try:
        calendar(labels)
        return labels
    except DataError:
        pass
    for candidate in _denser(labels):
        try:
            found = calendar(candidate)
        except DataError:
            continue
        if found.rule is None:
            continue
        values = [found.read(label) for label in labels]
        places = [None if value is None else found.rule.place(value) for value in values]
        known = {place: label for place, label in zip(places, labels, strict=True) if place is not None}
        if len(known) < len(labels):
            continue
        whole = range(min(known), max(known) + 1)
        if len(whole) * (1 - HOLES) <= len(labels):
            return np.array([known[k] if k in known else found.write(found.rule.at(k)) for k in whole], labels.dtype)
    return labels


def _denser(labels: np.ndarray) -> list[np.ndarray]:
    """The longest stretches of labels that might follow a rule: those with the commonest distance between them."""
    if labels.dtype.kind == "M":
        values = labels.astype("datetime64[us]").astype(np.int64)
    elif labels.dtype.kind in "iuf":
        values = labels.astype(float)
    else:
        days = spelled_days(labels)
        values = np.arange(len(labels)) if days is None or np.isnat(days).any() else days.astype(np.int64)
    gaps = np.diff(values)
    stretches: list[np.ndarray] = []
    for cut in (1.5 * np.median(gaps), 1.05 * gaps.min(), 3.5 * gaps.min()):
        breaks = np.flatnonzero(gaps > cut) + 1
        stretches += sorted(np.split(labels, breaks), key=len)[-1:]
    if labels.dtype.kind in "OUT":
        for size in (12, 6, 3):
            stretches += [labels[-size:], labels[:size]]
    return [each for each in stretches if len(each) > 1]


def _of_times(labels: np.ndarray) -> PeriodRule:
    """Dates at one time of day follow days; other times must be at equal steps."""
    days = labels.astype("datetime64[D]")
    clock = labels - days
    if (clock != clock[0]).any():
        even = _even((labels - labels[-1]) / np.timedelta64(1, "s"), "seconds ")
        step = np.timedelta64(round(even.step * 1e6), "us")
        return Even(labels[-1].astype("datetime64[us]"), step)
    return _Clocked(_of_days(days), clock[0])


@dataclass(frozen=True, slots=True)
class _Clocked:
    """Days at a time of day."""

    days: PeriodRule
    clock: np.timedelta64

    @property
    def exact(self) -> bool:
        return self.days.exact

    def place(self, value: Any) -> int | None:
        return self.days.place(value.astype("datetime64[D]"))

    def at(self, place: int) -> Any:
        return self.days.at(place) + self.clock


def _of_days(days: np.ndarray) -> PeriodRule:
    for rule in (_monthly(days), _daily(days), _weekly(days), half_months(days), thirteen_weeks(days)):
        if rule is not None:
            return rule
    raise _irregular(np.diff(days).astype(float), "days ")


def _even(values: Vector, unit: str) -> Even:
    gaps = np.diff(values)
    step = float(gaps.mean()) if len(gaps) else 1.0
    if (np.abs(gaps - step) > ROUNDED * step).any():
        raise _irregular(gaps, unit)
    return Even(float(values[-1]), step)


def _monthly(days: np.ndarray) -> PeriodRule | None:
    months = days.astype("datetime64[M]")
    gaps, day = np.diff(months).astype(int), (days - months).astype(int).max()
    if not len(gaps) or gaps[0] < 1 or (gaps != gaps[0]).any():
        return None
    anchors: Sequence[Callable[[Any], Any]] = (
        _end,
        lambda month: np.minimum(month.astype("datetime64[D]") + day, _end(month)),
        lambda month: np.busday_offset(_end(month), 0, roll="backward"),
        lambda month: np.busday_offset(month.astype("datetime64[D]"), 0, roll="forward"),
    )
    fitting = [anchor for anchor in anchors if (anchor(months) == days).all()]
    return MonthRule(months[-1], int(gaps[0]), fitting[0]) if fitting else None


def _end(month: Any) -> Any:
    return (month + 1).astype("datetime64[D]") - 1


def _daily(days: np.ndarray) -> PeriodRule | None:
    gaps = np.diff(days)
    return Even(days[-1], gaps[0]) if len(gaps) and (gaps == gaps[0]).all() else None


def _weekly(days: np.ndarray) -> PeriodRule | None:
    """Two weeks or more with the same weekdays; five worked days or more may have holidays between them.

    All days from Monday to Friday and no weekend are enough in less than two weeks, without a holiday.
    """
    worked = np.isin(np.arange(7), (days.astype(int) + 3) % 7)  # the first day of 1970 was a Thursday
    closed = np.busday_count(days[:-1], days[1:], weekmask=worked) > 1 if worked.any() else np.zeros(0, bool)
    if (days[-1] - days[0]).astype(int) < 13 and (closed.any() or worked.tolist() != 5 * [True] + 2 * [False]):
        return None
    if closed.any() and (closed.mean() > HOLIDAYS or not 5 <= worked.sum() <= 6):
        return None
    return Weekdays(days[-1], worked, exact=not closed.any())


def _irregular(gaps: Vector, unit: str) -> DataError:
    if not len(gaps):
        return DataError(
            "The panel has one period, so the next has no name.", remedy="Give at least two.", about="periods"
        )
    return DataError(
        f"The panel's periods lie {gaps.min():g} to {gaps.max():g} {unit}apart and follow no rule, so "
        "a later one has no name.",
        "Equal steps, working days, weeks, half months, months, quarters of months or of thirteen weeks and years are "
        "known.",
        "Add the periods that are missing, or number them 1, 2, 3.",
        about="periods",
    )


def _date(text: str, form: str) -> datetime.date | None:
    """A date by its spelling; a quarter is its first day."""
    if form.endswith("Q"):
        found = re.fullmatch(form.replace("%Y", r"(\d{4})") + "([1-4])", text)
        return datetime.date(int(found[1]), 3 * int(found[2]) - 2, 1) if found else None
    try:
        if form.startswith("%G"):  # a week is its Monday
            date = datetime.datetime.strptime(f"{text} 1", f"{form} %u").date()
        else:
            date = datetime.datetime.strptime(text, form).date()
    except ValueError:
        return None
    return date if date.strftime(form) == text and 1900 <= date.year <= 2199 else None


def _day(label: Any, form: str) -> np.datetime64 | None:
    date = _date(str(label), form)
    return None if date is None else np.datetime64(date, "D")


def _spell(day: Any, form: str, kind: np.dtype[Any]) -> Any:
    date = day.item()
    text = date.strftime(form) + (str((date.month + 2) // 3) if form.endswith("Q") else "")
    return text if kind.kind in "OUT" else kind.type(text)
