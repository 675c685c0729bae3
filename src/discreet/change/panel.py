"""The border: tidy frames of a panel and of forecasts become aligned arrays, or a reason why not.

A panel has columns `series`, `t`, `value`; forecasts have `series`, `method`, `t`, `forecast`, where `t` is the period
forecast, and may have `horizon`. Any table or file that `frames` opens will do. Periods are the panel's own, in order:
a month that no row mentions does not exist, and a series that lacks one which others have is refused, since a missing
row may mean zero. The forecast origin of a case is `horizon` rows before its period, and the history ends there; later
rows are never read. Forecasts of periods after the panel's end are told apart by their labels (`calendar`); a series
that ended earlier has no coming period.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet import frames
from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.change.calendar import calendar
from discreet.errors import DataError, concerning
from discreet.faults import Argument

Missing: TypeAlias = Literal["refuse", "drop"]


@dataclass(frozen=True, slots=True)
class Cases:
    """Periods of series that were forecast by every method.

    Attributes
    ----------
    series, t : what was forecast, one entry per case.
    actual : the outcome; NaN where the panel ends before it.
    histories : the values up to the forecast origin of each case.
    methods, forecasts : names, and values of shape (methods, cases).
    silent : how many of the panel's series no method forecasts.
    ended : the series that end before the panel does, and their last periods.
    """

    series: np.ndarray
    t: np.ndarray
    actual: Vector
    histories: Sequence[Vector]
    methods: tuple[str, ...]
    forecasts: Matrix
    silent: int = 0
    ended: Sequence[tuple[str, str]] = ()

    def __len__(self) -> int:
        return len(self.series)

    def select(self, keep: Mask) -> Cases:
        return Cases(
            series=self.series[keep],
            t=self.t[keep],
            actual=self.actual[keep],
            histories=[history for history, kept in zip(self.histories, keep, strict=True) if kept],
            methods=self.methods,
            forecasts=self.forecasts[:, keep],
            silent=self.silent,
            ended=self.ended,
        )


def cases(panel: Any, forecasts: Any, *, horizon: int = 1, missing: Missing = "refuse") -> Cases:
    """Align forecasts `horizon` periods ahead with the panel. `missing="drop"` leaves out uncovered cases."""
    if not isinstance(horizon, int | np.integer) or horizon < 1:
        raise DataError(
            f"Horizon {horizon!r} is not a number of periods ahead; give 1 or more whole ones.", about="horizon"
        )
    if missing not in ("refuse", "drop"):
        raise DataError(
            (Argument("missing", missing), " is not known; cases without a forecast are 'refuse' or 'drop'."),
            about="missing",
        )
    known, names = histories(panel)
    asked = columns(
        forecasts,
        ("series", "method", "t", "forecast"),
        what="forecasts",
        numbers=("forecast",),
        optional=("horizon",),
    )
    declared = "horizon" in asked
    if declared:
        ahead = asked.pop("horizon")
        if not (ahead == horizon).any():
            found = ", ".join(str(h) for h in np.unique(ahead)[:12])
            raise DataError(
                f"No forecast has horizon {horizon}; the frame has {found}. Choose one of these.", about="horizon"
            )
        asked = {name: values[ahead == horizon] for name, values in asked.items()}
    asked["series"] = asked["series"].astype(str)
    wanted = np.minimum(np.searchsorted(names, asked["series"]), len(names) - 1)
    strangers = names[wanted] != asked["series"]
    if strangers.any():
        count = len(np.unique(asked["series"][strangers]))
        raise DataError(
            f"{count} series of the forecasts are not in the panel; add their history or drop them. A name is the same "
            "only if it is number or text in both tables.",
            about="forecasts",
        )
    keys, targets, periods = _keys(known["series"], known["t"], wanted, asked["t"])
    value = known["value"]
    case, position = np.unique(targets, return_inverse=True)
    methods = tuple(dict.fromkeys(map(str, asked["method"])))
    row = np.argsort(methods)[np.searchsorted(np.sort(methods), asked["method"].astype(str))]
    if len(np.unique(row * len(case) + position)) < len(row):
        raise DataError(
            "A method forecasts one series and period twice; keep one, or add a `horizon` column.", about="forecasts"
        )
    matrix = np.full((len(methods), len(case)), np.nan)
    matrix[row, position] = asked["forecast"].astype(float)
    aligned = _aligned(case, keys, value, names, periods, horizon)
    held = np.unique(keys % len(periods))
    last = keys[np.searchsorted(keys, (np.arange(len(names)) + 1) * len(periods)) - 1] % len(periods)
    ended = np.flatnonzero(last < held[-1])
    result = Cases(
        *aligned,
        methods=methods,
        forecasts=matrix,
        silent=len(names) - len(np.unique(wanted)),
        ended=[(str(names[k]), str(periods[last[k]])) for k in ended],
    )
    coming = np.isnan(result.actual)
    keep = ~(coming & np.isin(case // len(periods), ended))
    keep[coming & keep] = _at_horizon(periods[held], result.t[coming & keep], horizon, declared=declared)
    result, matrix = result.select(keep), matrix[:, keep]
    covered = np.isfinite(matrix).all(axis=0)
    if covered.all():
        return result
    if missing == "refuse":
        worst = int(np.argmin(np.isfinite(matrix).sum(axis=1)))
        raise DataError(
            f"Method {methods[worst]!r} forecasts {int(np.isfinite(matrix[worst]).sum())} of {len(result)} cases, and "
            "methods are compared on the same cases; forecast the rest, or leave them out with missing='drop'.",
            about="forecasts",
        )
    return result.select(covered)


def histories(panel: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The panel in order of series and time, with numbers for series, and their names; or why it is none."""
    known = columns(panel, ("series", "t", "value"), what="panel", numbers=("value",))
    names, series = np.unique(known["series"].astype(str), return_inverse=True)
    periods, period = np.unique(known["t"], return_inverse=True)
    order = np.lexsort((period, series))
    series, period = series[order], period[order]
    same = np.diff(series) == 0
    if (same & (np.diff(period) == 0)).any():
        raise DataError("The panel has two rows for one series and period; aggregate them first.", about="panel")
    lacking = same & (np.diff(period) > 1)
    if lacking.any():
        raise DataError(
            f"{len(np.unique(series[1:][lacking]))} of {len(names)} series lack periods between their first and last "
            "that other series have, and changes over a gap are not changes of one period; fill them, with zeros if "
            "that is what they mean.",
            about="panel",
        )
    value = known["value"][order].astype(float)
    bad = int((~np.isfinite(value)).sum())
    if bad:
        raise DataError(
            f"{bad} values of the panel are missing or infinite; fill them or drop their series.", about="panel"
        )
    if len(names) < 2:
        raise DataError(
            f"The panel has {len(names)} series, and a comparison across series needs at least 2.", about="panel"
        )
    return {"series": series, "t": periods[period], "value": value}, names


def renamed(data: Any, names: Mapping[str, str], *, what: str) -> Any:
    """A table in which columns have our names; `names` says what ours are called in it, such as {"value": "sales"}."""
    import narwhals.stable.v2 as nw

    if not names:
        return data
    with concerning(what):
        frame = frames.open_frame(data, name=what)
        present = frame.collect_schema().names()
        frames.refuse(frames.missing(theirs, present, name=what) for theirs in names.values() if theirs not in present)
        kept = [name for name in present if name not in names and name not in names.values()]
        return frame.select(*kept, *(nw.col(theirs).alias(ours) for ours, theirs in names.items()))


def in_our_names(panel: Any, forecasts: Any, names: Mapping[str, str]) -> tuple[Any, Any]:
    """Both tables with columns as they are called here; `names` has theirs, and forecasts may be None."""

    def of(*ours: str) -> dict[str, str]:
        return {name: names[name] for name in ours if names.get(name, name) != name}

    rows = renamed(panel, of("series", "t", "value"), what="panel")
    if forecasts is None:
        return rows, None
    return rows, renamed(forecasts, of("series", "t", "method", "forecast"), what="forecasts")


def columns(
    data: Any, names: Sequence[str], *, what: str, numbers: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Named columns of any table or file as arrays; `numbers` are those that must be numeric."""
    with concerning(what):
        frame = frames.open_frame(data, name=what)
        present = frame.collect_schema().names()
        frames.refuse(frames.missing(name, present, name=what) for name in names if name not in present)
        frames.require(frame, dict.fromkeys(numbers, "number"), name=what)
        wanted = [*names, *(name for name in optional if name in present)]
        table = frames.collect(frame.select(*wanted), step=f"read {what}")
        if not len(table):
            raise DataError(f"No rows in the {what}; check the file or the filter that made it.", about=what)
    return {name: _dated(table[name].to_numpy()) for name in wanted}


def _dated(values: np.ndarray) -> np.ndarray:
    """Python's dates as NumPy's."""
    if values.dtype == object and all(isinstance(value, datetime.date) for value in values):
        if any(getattr(value, "tzinfo", None) for value in values):
            raise DataError(
                "A column has times with a time zone, which have no calendar here; give them without.", about="time"
            )
        return values.astype("datetime64[us]")
    return values


def _at_horizon(held: np.ndarray, t: np.ndarray, horizon: int, *, declared: bool) -> Mask | bool:
    """Which forecasts of coming periods are `horizon` ahead of the panel's end, or why that is not known.

    Without a column `horizon` the labels tell; with one they must agree.
    """
    labels, place = np.unique(t, return_inverse=True)
    if not len(labels):
        return True
    try:
        ahead, why = calendar(held).ahead(labels), "whose labels do not tell how far ahead they are"
    except DataError:
        ahead, why = None, "and the panel's dates follow no calendar"
    if ahead is None:
        if len(labels) > 1:
            raise DataError(
                f"The forecasts are for {len(labels)} coming periods, {why}. One coming period is ranked. Keep that "
                f"one, or {'correct' if declared else 'add'} the column `horizon`.",
                about="forecasts",
            )
        return True
    right = ahead == horizon
    if not right.any() or (declared and not right.all()):
        found = ", ".join(str(each) for each in np.unique(ahead[~right])[:12])
        raise DataError(
            f"Horizon {horizon} was asked for, and by their labels the forecasts of coming periods are {found} ahead. "
            "The panel's last period is the origin. Choose another horizon, or correct the labels.",
            about="horizon",
        )
    return np.asarray(right[place])


def _keys(
    series: Integers, t: np.ndarray, wanted: Integers, target: np.ndarray
) -> tuple[Integers, Integers, np.ndarray]:
    """One sortable integer per (series, period) of the panel and of the forecasts, and the periods."""
    kinds = {t.dtype.kind, target.dtype.kind}
    if len(kinds) > 1 and not kinds <= set("iuf"):
        raise DataError(
            "Column `t` has different types in panel and forecasts; give both as numbers, dates or text.",
            about="forecasts",
        )
    periods, code = np.unique(np.concatenate([t, target]), return_inverse=True)
    return series * len(periods) + code[: len(t)], wanted * len(periods) + code[len(t) :], periods


def _aligned(
    case: Integers, keys: Integers, value: Vector, names: np.ndarray, periods: np.ndarray, horizon: int
) -> tuple[np.ndarray, np.ndarray, Vector, list[Vector]]:
    owner = case // len(periods)
    first, stop = (np.searchsorted(keys, (owner + step) * len(periods)) for step in (0, 1))
    place = np.searchsorted(keys, case)
    known = (place < len(keys)) & (keys[np.minimum(place, len(keys) - 1)] == case)
    gaps = int((~known & (place < stop)).sum())
    if gaps:
        raise DataError(
            f"{gaps} forecasts are for periods inside a series where the panel has no row; fill the gaps.",
            about="forecasts",
        )
    origin = np.where(known, place - horizon, stop - 1)
    early = int((origin < first).sum())
    if early:
        raise DataError(
            f"{early} forecasts are for periods within {horizon} of the start of their series, so nothing was known "
            "then; drop them or give a longer history.",
            about="forecasts",
        )
    actual = np.where(known, value[np.minimum(place, len(value) - 1)], np.nan)
    histories = [value[a : b + 1] for a, b in zip(first, origin, strict=True)]
    return names[owner], periods[case % len(periods)], actual, histories
