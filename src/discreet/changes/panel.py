"""A panel: series in rows, periods in columns, and the series that cannot take part, with the reason.

Any tidy table will do (`tidy`). Periods are the panel's own in order, with those in between that no row mentions where
dates or numbers follow a rule (`calendar`). Series may begin and end at different times, and lack periods in between,
which stay missing unless zeros or the value before are asked for. A series with an infinite value, of another frequency
or with rows after the others' end is set aside by its name. Only faults that make the whole panel ambiguous are
refused, with the names of the series.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never, get_args

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.changes import tidy
from discreet.changes.calendar import calendar, completed, spelled_days
from discreet.words.cases import case_of
from discreet.words.errors import DataError
from discreet.words.faults import Argument, Spelled

Gaps: TypeAlias = Literal["skip", "zero", "carry"]

UNTIL = Spelled(
    ", or say until when the values are known (`until`)",
    command=", or say until when the values are known with --until",
    form="",
)

NAMED = 5
"""Series that a message names; the report lists all."""

LARGEST = 1e150
"""Values beyond it have squares that no double holds."""

BEYOND = 0.02
"""Share of series below which rows after the end of most others are no progress of time."""

SAMPLED = 5
"""Series that show whether dates follow each other."""

OFF = 2**60
"""The place of a date that is not on a calendar."""

DENSE = 0.5
"""Share of its periods on a calendar that a series of that frequency has at least."""

TRIED = 20
"""Series whose own periods are tried as the panel's calendar: the longest, and as many throughout the panel."""


@dataclass(frozen=True, slots=True)
class TidyPanel:
    """Series on one calendar.

    Attributes
    ----------
    names : of the series, in order.
    periods : labels in order.
    values : shape (series, periods), NaN before a series begins, after it ends and in periods that it lacks.
    first, last : the columns in which each series begins and ends.
    set_aside : series that are not in `values`, and why.
    """

    names: np.ndarray
    periods: np.ndarray
    values: Matrix
    first: Integers
    last: Integers
    set_aside: Sequence[tuple[str, str]] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def ended(self) -> Integers:
        """The series that end before the panel does."""
        return np.flatnonzero(self.last < len(self.periods) - 1)

    @property
    def holes(self) -> Mask:
        """The periods that series lack between their first and last, of the shape of `values`."""
        column = np.arange(len(self.periods))
        within = (column > self.first[:, None]) & (column < self.last[:, None])
        return np.asarray(~np.isfinite(self.values) & within)

    @property
    def torn(self) -> Mask:
        """The series with such periods."""
        return np.asarray(self.holes.any(axis=1))

    def lacks(self, row: int) -> dict[str, Any]:
        """How many periods a series lacks and has between its first and last, and the first and last that it lacks."""
        span = slice(self.first[row], self.last[row] + 1)
        gone = np.flatnonzero(~np.isfinite(self.values[row, span])) + self.first[row]
        ends = {"first": gone[0], "last": gone[-1]} if len(gone) else {}
        return {
            "missing": len(gone),
            "of": int(self.last[row] - self.first[row]) + 1,
            **{name: spelled(self.periods[at]) for name, at in ends.items()},
        }

    def later(self, steps: int) -> Any:
        """The label of the period `steps` after the last."""
        return calendar(self.periods).later(steps)


def read_panel(
    data: Any, *, gaps: Gaps = "skip", until: Any = None, names: Mapping[str, str] | None = None
) -> TidyPanel:
    """The panel of a tidy table, or why it is none.

    Parameters
    ----------
    data : frame or file of `series`, `t`, `value`, under these or other usual names.
    gaps : what a period means that a series lacks between its first and last: "skip" leaves it missing, "zero" says
        that nothing happened (also after its last row), "carry" repeats the value before.
    until : the last period to read, for a table that goes on into the future.
    names : what our columns are called in the table, such as {"value": "sales"}.
    """
    if isinstance(data, TidyPanel):
        return data
    if gaps not in get_args(Gaps):
        raise DataError(
            (Argument("gaps", gaps), " is not known."), f"It is one of {', '.join(get_args(Gaps))}.", "Use 'skip'.",
            about="gaps",
        )  # fmt: skip
    found = tidy.read(
        tidy.renamed(data, names or {}, what="panel"), ("series", "t", "value"), what="panel", numbers=("value",)
    )
    series, t, value = found["series"], found["t"], np.asarray(found["value"], float)
    kept = _until(t, until) & ~np.isnan(value)
    if not kept.all():
        series, t, value = _rows(series, kept), _rows(t, kept), value[kept]
    if not len(value):
        raise DataError(
            "No row of the panel has a value.",
            "A panel has a number for each series and period.",
            "Check the column, or give a later last period.",
            about="panel",
        )
    _refuse_duplicates(series, t)
    _refuse_future(series, t, until)
    apart = _infinite(series, t, value)
    t = _one_calendar(series, t, apart, gaps)
    matrix = _matrix(series, t, value, apart, gaps)
    keep = np.setdiff1d(np.arange(len(series.known)), list(apart))
    if len(keep) < 2:
        raise DataError(
            f"{len(keep)} series can be judged, and a comparison across series needs at least 2. Set aside: "
            f"{told([f'{series.known[k]} ({why})' for k, why in apart.items()]) or 'none'}.",
            "Series of a panel have finite values and one frequency.",
            "Correct these, or add series.",
            about="panel",
        )
    matrix = matrix[keep]
    _refuse_constant(series.known[keep], matrix)
    held = np.flatnonzero(np.isfinite(matrix).any(axis=0))
    matrix = matrix[:, held[0] : held[-1] + 1]
    present = np.isfinite(matrix)
    return TidyPanel(
        names=series.known[keep],
        periods=t.known[held[0] : held[-1] + 1],
        values=matrix,
        first=present.argmax(axis=1),
        last=present.shape[1] - 1 - present[:, ::-1].argmax(axis=1),
        set_aside=[(str(series.known[k]), why) for k, why in sorted(apart.items())],
    )


def told(names: Sequence[object] | np.ndarray) -> str:
    """The first few of many names, and how many more there are."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(str(name) for name in names[:NAMED]) + more


def named(places: Sequence[int] | Integers, name: Callable[[int], str]) -> list[str]:
    """Names for `told`: only those that it shows are made."""
    return [name(int(k)) for k in places[:NAMED]] + [""] * max(len(places) - NAMED, 0)


def spelled(label: Any) -> str:
    """A period as people write it: a day without a time, an hour without the seconds that it does not have."""
    return re.sub(r"(T\d\d:\d\d)(:00)?(\.0+)?$", r"\1", str(label)) if isinstance(label, np.datetime64) else str(label)


def _rows(column: tidy.Labels, kept: Mask) -> tidy.Labels:
    """Some rows of a column, and the labels that they use."""
    code = column.code[kept]
    used = np.unique(code)
    return tidy.Labels(column.known[used], np.searchsorted(used, code))


def _until(t: tidy.Labels, until: Any) -> Mask:
    if until is None:
        return np.ones(len(t.code), bool)
    kind = t.known.dtype
    try:
        end = np.array([until]).astype(kind)[0] if kind.kind in "iufM" else str(until)
        if kind.kind == "M" and re.fullmatch(r"\d{4}(-\d\d)?", str(until)):  # a month or a year is all of it
            end = (np.datetime64(str(until)) + 1).astype(kind) - np.timedelta64(1, "us" if kind == "M8[us]" else "D")
        within = np.asarray(t.known <= end)
    except (TypeError, ValueError):
        raise DataError(
            (Argument("until", until), " is no period of the panel."), f"Periods look like {spelled(t.known[-1])}.",
            "Give one of these.", about="until",
        ) from None  # fmt: skip
    return np.asarray(within[t.code])


def _refuse_duplicates(series: tidy.Labels, t: tidy.Labels) -> None:
    key = np.sort(series.code * len(t.known) + t.code)
    twice = np.unique(key[1:][key[1:] == key[:-1]])
    if len(twice):
        owners = [
            f"{series.known[k // len(t.known)]} ({spelled(t.known[k % len(t.known)])})" for k in twice[: NAMED + 1]
        ]
        owners += [""] * (len(twice) - len(owners))
        raise DataError(
            f"{len(twice):,} pairs of series and period have more than one row: {told(owners)}.",
            "A panel has one value for each series and period.",
            "Add the rows up, or keep one of them.",
            about="panel",
        )


def _refuse_future(series: tidy.Labels, t: tidy.Labels, until: Any) -> None:
    """Values of dates that have not come yet are plans or forecasts, and would be read as history."""
    days = t.known if t.known.dtype.kind == "M" else spelled_days(t.known)
    if days is None:
        return
    if days is not t.known and t.known.dtype.kind in "OUT" and np.isnat(days).any():
        _refuse_spellings(series, t, np.isnat(days))
    if until is not None:
        return
    today = np.datetime64(datetime.date.today()) + 1  # it may be tomorrow where the data come from
    coming = days.astype("datetime64[M]") > today.astype("datetime64[M]")
    if coming.any():
        owners = series.known[np.unique(series.code[coming[t.code]])]
        raise DataError(
            f"Rows after today, up to {spelled(t.known[-1])}, in {len(owners):,} series: {told(owners)}.",
            "A panel holds what has happened; forecasts are a table of their own.",
            ("Leave these rows out", UNTIL, "."),
            about="panel",
        )


def _refuse_spellings(series: tidy.Labels, t: tidy.Labels, odd: Mask) -> None:
    """Refuse text that is not spelled in one way: it is not in order of time. Weeks from 00 to 52 are."""
    usual, *_ = forms = [re.sub(r"\d", "0", str(label)) for label in (*t.known[~odd][:1], *t.known[odd])]
    if all(form == usual for form in forms):
        return
    owners = series.known[np.unique(series.code[odd[t.code]])]
    raise DataError(
        f"Most periods are spelled as {t.known[~odd][0]}, and others as {t.known[odd][0]}, in {len(owners):,} series: "
        f"{told(owners)}.",
        "Periods of a panel are spelled in one way, so that they have an order.",
        "Write them alike, or give a file for each frequency.",
        about="panel",
    )


def _refuse_constant(names: np.ndarray, matrix: Matrix) -> None:
    if not (np.nanmax(matrix, axis=1) > np.nanmin(matrix, axis=1)).any():
        raise DataError(
            f"No series can be judged: all {len(names):,} are constant in every period: {told(names)}.",
            "A series needs a history that varies.",
            "Check the column of values.",
            about="panel",
        )


def _infinite(series: tidy.Labels, t: tidy.Labels, value: Vector) -> dict[int, str]:
    """The series with a value that is infinite, or as good as: where the first of each is."""
    found: dict[int, str] = {}
    for k in np.flatnonzero(np.abs(value) > LARGEST):
        what = "an infinite value" if np.isinf(value[k]) else f"a value beyond {LARGEST:.0e}"
        found.setdefault(int(series.code[k]), f"has {what}, in {spelled(t.known[t.code[k]])}")
    return found


def _one_calendar(series: tidy.Labels, t: tidy.Labels, apart: dict[int, str], gaps: Gaps) -> tidy.Labels:
    """Periods of one calendar; series that do not fit into that of most are set aside."""
    whole = completed(t.known)
    if t.known.dtype.kind == "M" and len(whole) == len(t.known) and not (_regular(t.known) and _shared(series, t)):
        t = _majority(series, t, apart, gaps)
        whole = completed(t.known)
    place = np.searchsorted(whole, t.known)
    return tidy.Labels(whole, np.where(t.code < 0, -1, place[t.code]))


def _regular(known: np.ndarray) -> bool:
    try:
        calendar(known)
    except DataError:
        return False
    return True


def _shared(series: tidy.Labels, t: tidy.Labels) -> bool:
    """Whether most of a few series have dates that follow each other, so that the calendar is no union of others."""
    few = np.linspace(0, len(series.known) - 1, min(SAMPLED, len(series.known))).astype(int)
    steps = [np.diff(np.unique(t.code[series.code == k])).min(initial=len(t.known)) for k in few]
    return bool((np.array(steps) == 1).mean() >= 0.5)


def _majority(series: tidy.Labels, t: tidy.Labels, apart: dict[int, str], gaps: Gaps) -> tidy.Labels:
    """The periods of the series that share one calendar, if that is most of them."""
    count = np.bincount(series.code)
    order = np.argsort(series.code, kind="stable")
    bounds = np.append(0, np.cumsum(count))

    def own_dates(k: int) -> Integers:
        return np.unique(t.code[order[bounds[k] : bounds[k + 1]]])

    spread = np.linspace(0, len(count) - 1, min(TRIED, len(count))).astype(int)
    several: DataError | None = None
    for k in dict.fromkeys([*np.argsort(-count, kind="stable")[:TRIED].tolist(), *spread.tolist()]):
        own = own_dates(k)
        if len(own) < 3 or not _regular(t.known[own]):
            continue
        rule = calendar(t.known[own]).rule
        place = np.array([_place(rule, label) for label in t.known])
        at, few = place[t.code], np.zeros(len(count), bool)
        if case_of(
            gaps, {"skip": True, "zero": False, "carry": False}
        ):  # a month is a day too, and a series of months none of days
            first, last = np.full(len(count), OFF), np.full(len(count), -OFF)
            np.minimum.at(first, series.code, at)
            np.maximum.at(last, series.code, np.where(at == OFF, -OFF, at))
            few = count < (last - first + 1) * DENSE
        strangers = np.flatnonzero(few | np.isin(np.arange(len(count)), series.code[at == OFF]))
        if len(strangers) < len(series.known) / 2:
            odd = np.isin(series.code, strangers)
            for stranger in strangers:
                apart[int(stranger)] = "has dates of another frequency than most series"
            used = np.unique(t.code[~odd])
            return tidy.Labels(t.known[used], np.where(odd, -1, np.searchsorted(used, t.code)))
        other = own_dates(strangers[0])
        if several is None and len(series.known) - len(strangers) > 1 and len(other) > 2 and _regular(t.known[other]):
            fitting = np.setdiff1d(np.arange(len(series.known)), strangers)
            several = DataError(
                f"The panel has several frequencies: {len(fitting):,} series have dates such as "
                f"{_some(t.known[own])}: {told(series.known[fitting])}; {len(strangers):,} have others, such as "
                f"{_some(t.known[other])}: {told(series.known[strangers])}.",
                "Most series of a panel have one frequency; others are set aside.",
                "Give a file for each frequency.",
                about="panel",
            )
    if several is not None:
        raise several
    return t


def _some(dates: np.ndarray) -> str:
    return " and ".join(spelled(date) for date in dates[:2])


def _place(rule: Any, label: Any) -> int:
    """The place of a date that belongs to the rule, and is not only near one that does; `OFF` for others."""
    place = None if rule is None else rule.place(label)
    return OFF if place is None or rule.at(place) != label else int(place)


def _matrix(series: tidy.Labels, t: tidy.Labels, value: Vector, apart: dict[int, str], gaps: Gaps) -> Matrix:
    """The values in rows and columns; gaps are filled where that was asked for, other frequencies set aside."""
    on = t.code >= 0
    matrix = np.full((len(series.known), len(t.known)), np.nan)
    matrix[series.code[on], t.code[on]] = value[on]
    present = np.isfinite(matrix)
    start, end = present.argmax(axis=1), present.shape[1] - 1 - present[:, ::-1].argmax(axis=1)
    column = np.arange(len(t.known))
    if t.known.dtype.kind == "M":
        _beyond(series, t, end, present, apart)
    holes = ~present & (column > start[:, None]) & (column < end[:, None])
    match gaps:
        case "zero":
            return np.where(~present & (column >= start[:, None]), 0.0, matrix)
        case "carry":
            source = np.maximum.accumulate(np.where(present, column, 0), axis=1)
            return np.where(holes, np.take_along_axis(matrix, source, axis=1), matrix)
        case "skip":
            lacking = holes.sum(axis=1)
            rows = present.sum(axis=1)
            for k in np.flatnonzero(lacking):
                step = (end[k] - start[k]) / (rows[k] - 1)
                if rows[k] > 2 and step == round(step) and present[k, start[k] : end[k] + 1 : round(step)].all():
                    apart.setdefault(int(k), f"comes every {round(step)} periods of the panel: another frequency")
            return matrix
        case _:
            assert_never(gaps)


def _beyond(series: tidy.Labels, t: tidy.Labels, end: Integers, present: Mask, apart: dict[int, str]) -> None:
    """Set series aside that go on where nearly all others end together, and end the panel there."""
    usual = int(np.bincount(end).argmax())
    beyond = np.flatnonzero(end > usual)
    if len(beyond) and len(beyond) < BEYOND * len(end) and (end == usual).mean() > 0.5:
        for k in beyond:
            apart.setdefault(int(k), f"has rows after {spelled(t.known[usual])}, where most series end")
