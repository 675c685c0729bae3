"""Indicators and holidays: models of large changes that know more than the series themselves.

Columns of the panel, or of a calendar, become columns of a regression over all series at once. Leading columns are read
at the origin and before (`lagged`). Columns known ahead, such as holidays and promotions, are also read at the period
that is forecast (`known`). Two forecasts of the series itself are added, in units of its usual changes. Two models are
fitted again at every origin, to the cases whose outcomes were known there: least squares of the change (`indicators`),
and ranking by lists of the large changes (`indicators_rank`), which is fitted to the purpose. They are compared with
other methods, and the past decides which method ranks. A forecast of a period never sees a lagged column of that
period. Sums of series (`levels`) have the means of their series' columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np

from discreet.arrays import Mask, Matrix, Vector
from discreet.changes import smoothing, tidy
from discreet.changes.calendar import usual_season
from discreet.changes.cases import Cases, check_horizon
from discreet.changes.forecasters import BUILT_IN
from discreet.changes.judged import Rules
from discreet.changes.levels import Branches
from discreet.changes.listwise import list_regression
from discreet.changes.panel import Gaps, TidyPanel, named, spelled, told
from discreet.changes.scored import Gold, score
from discreet.words.errors import DataError, FitError

LAGS = (1, 2, 3)
"""Lagged columns are read this many periods before the one after the origin."""

LEAST = 8
"""Periods with known outcomes before models are fitted; until then forecasts are those of simple smoothing."""

RIDGE, PENALTY = 1e-3, 1e-3
SMOOTHED = 0.1
"""The constant of the series' own forecast among the columns."""

NAMES = ("indicators", "indicators_rank")


@dataclass(frozen=True, slots=True)
class Indicators:
    """Columns beside the values of a panel.

    Attributes
    ----------
    lagged : names of columns that are read up to the origin.
    known : names of columns that are known ahead, for the coming period too.
    calendar : a table of `t` and known columns that are the same for all series, if they are not in the panel.
    """

    lagged: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    calendar: Any = None

    def __bool__(self) -> bool:
        return bool(self.lagged or self.known)


@dataclass(frozen=True, slots=True)
class Beside:
    """Indicators of a panel, read and found to be in order."""

    asked: Indicators
    columns: dict[str, Matrix]
    horizon: int

    @classmethod
    def of(
        cls,
        data: Any,
        panel: TidyPanel,
        names: Mapping[str, str] | None,
        lagged: Sequence[str],
        known: Sequence[str],
        calendar: Any,
        *,
        horizon: int,
        coming: bool = True,
        gaps: Gaps = "skip",
    ) -> Beside | None:
        """Those that were asked for, from the panel's own table; None where none were."""
        wanted = asked(lagged, known, calendar)
        if not wanted:
            return None
        if isinstance(data, TidyPanel):
            raise DataError(
                "Indicators were given without a table.",
                "They are columns of the panel's table, one number for each series and period.",
                "Give the table or its file.",
                about="indicators" if wanted.lagged else "known",
            )
        check_horizon(horizon)
        table = tidy.renamed(data, names or {}, what="panel")
        read = read_indicators(table, panel, wanted, horizon=horizon, coming=coming, gaps=gaps)
        return cls(wanted, read, horizon)

    def at_levels(self, tree: Branches) -> Beside:
        """The same for series and sums: an indicator of a sum is the mean of those of its series."""
        return replace(self, columns={name: tree.means(column) for name, column in self.columns.items()})

    def modelled(self, made: Cases, gold: Gold, *, season: int | None, rules: Rules, window: int | None) -> Cases:
        """Cases with forecasts of both models beside those that they have; see `with_indicators`."""
        length = usual_season(made.panel.periods) if season is None else season
        about: dict[str, Any] = {"horizon": self.horizon, "season": length, "rules": rules, "window": window}
        return with_indicators(made, self.columns, self.asked, gold, **about)


def asked(lagged: Sequence[str], known: Sequence[str], calendar: Any) -> Indicators:
    """Indicators as they were asked for, or why they are none."""
    found = Indicators(_names(lagged, "indicators"), _names(known, "known"), calendar)
    both = [name for name in found.lagged if name in found.known]
    if both:
        raise DataError(
            f"{both[0]!r} is both an indicator and known ahead.",
            "Columns known ahead are also read at earlier periods.",
            "Name it once.",
            about="known",
        )
    if calendar is not None and not found.known:
        raise DataError(
            "A calendar was given, and no column is known ahead.",
            "Its columns are holidays and other days that are known before they come.",
            "Name them, such as known=['holiday'].",
            about="known",
        )
    return found


def _names(names: Sequence[str], about: str) -> tuple[str, ...]:
    listed = (names,) if isinstance(names, str) else tuple(names)
    odd = [name for name in listed if name in ("series", "t", "value", "")]
    twice = [name for i, name in enumerate(listed) if name in listed[:i]]
    if odd or twice:
        raise DataError(
            f"{(odd or twice)[0]!r} is no indicator here." if odd else f"{twice[0]!r} is named twice.",
            "Indicators are columns apart from series, period and value, each named once.",
            "Name others, or leave it out.",
            about=about,
        )
    return listed


def read_indicators(
    data: Any, panel: TidyPanel, asked: Indicators, *, horizon: int, coming: bool = True, gaps: Gaps = "skip"
) -> dict[str, Matrix]:
    """Every column by series and period, the coming period last: shape (series, periods + horizon).

    A period without a row means for what leads what it means for the value. Faults are found before anything is
    forecast: columns that do not exist, are not numbers, do not vary, lack values where they are needed, or are the
    value itself.
    """
    width = len(panel.periods) + horizon * coming
    beside = () if asked.calendar is None else _columns_of(asked.calendar)
    from_panel = [*asked.lagged, *(name for name in asked.known if name not in beside)]
    found = _of_panel(data, panel, from_panel, horizon) if from_panel else {}
    if asked.calendar is not None:
        found |= _of_calendar(panel, [name for name in asked.known if name in beside], asked.calendar, horizon)
    for name in asked.lagged:
        found[name] = _filled(found[name], gaps)
    for name in (*asked.lagged, *asked.known):
        values, ahead = found[name], name in asked.known
        _refuse_gaps(values, panel, name, width if ahead else len(panel.periods), ahead=ahead)
        past = values[:, : len(panel.periods)]
        if not (np.nanmax(past) > np.nanmin(past)):
            raise DataError(
                f"Column {name!r} has the same value everywhere.",
                "An indicator varies over periods or series.",
                "Leave it out.",
                about="known" if ahead else "indicators",
            )
        if ahead and np.array_equal(past, panel.values, equal_nan=True):
            raise DataError(
                f"Column {name!r} is the value itself, and was named as known ahead.",
                "A forecast that reads its own outcome is none.",
                "Leave it out.",
                about="known",
            )
    return found


def _filled(values: Matrix, gaps: Gaps) -> Matrix:
    """Lagged columns where there is no row: left as they are, nothing happened, or as before."""
    match gaps:
        case "skip":
            return values
        case "zero":
            return np.where(np.isnan(values), 0.0, values)
        case "carry":
            place = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(values.shape[1]), 0), axis=1)
            return np.take_along_axis(values, place, axis=1)
        case _:
            assert_never(gaps)


def _columns_of(calendar: Any) -> tuple[str, ...]:
    from discreet.data import frames

    return tuple(frames.open_frame(calendar, name="calendar").collect_schema().names())


def _of_panel(data: Any, panel: TidyPanel, names: Sequence[str], horizon: int) -> dict[str, Matrix]:
    """Columns of the panel's own table, whose rows of coming periods have no value yet."""
    read = tidy.read(data, ("series", "t", *names), what="panel", numbers=tuple(names))
    place = _places(panel, read["t"].known, horizon)[read["t"].code]
    series = np.searchsorted(panel.names, read["series"].known)
    there = np.isin(read["series"].known, panel.names)
    row = np.where(there, np.minimum(series, len(panel) - 1), -1)[read["series"].code]
    kept = (row >= 0) & (place >= 0)
    found = {}
    for name in names:
        found[name] = np.full((len(panel), len(panel.periods) + horizon), np.nan)
        found[name][row[kept], place[kept]] = np.asarray(read[name], float)[kept]
    return found


def _of_calendar(panel: TidyPanel, names: Sequence[str], calendar: Any, horizon: int) -> dict[str, Matrix]:
    read = tidy.read(calendar, ("t", *names), what="calendar", numbers=tuple(names))
    t = read["t"]
    if len(np.unique(t.code)) < len(t.code):
        twice = t.known[np.bincount(t.code) > 1]
        raise DataError(
            f"The calendar has several rows for {told([spelled(each) for each in twice])}.",
            "A calendar has one row for each period.",
            "Keep one of them.",
            about="calendar",
        )
    place = _places(panel, t.known, horizon)[t.code]
    found = {}
    for name in names:
        line = np.full(len(panel.periods) + horizon, np.nan)
        line[place[place >= 0]] = np.asarray(read[name], float)[place >= 0]
        found[name] = np.broadcast_to(line, (len(panel), len(line))).copy()
    return found


def _places(panel: TidyPanel, labels: np.ndarray, horizon: int) -> np.ndarray:
    """Positions of periods on the panel's calendar, including the coming ones; -1 elsewhere."""
    known = [*panel.periods, *(panel.later(step) for step in range(1, horizon + 1))]
    table = {_spelling(label): place for place, label in enumerate(known)}
    return np.array([table.get(_spelling(label), -1) for label in labels], dtype=np.int64)


def _spelling(label: Any) -> str:
    return str(label.astype("datetime64[us]")) if isinstance(label, np.datetime64) else str(label)


def _refuse_gaps(values: Matrix, panel: TidyPanel, name: str, width: int, *, ahead: bool) -> None:
    column = np.arange(width)
    last = np.where(panel.last == len(panel.periods) - 1, width - 1, panel.last)
    needed = (column >= panel.first[:, None]) & (column <= last[:, None])
    needed[:, : len(panel.periods)] &= ~panel.holes  # a row that is not there has no columns
    lacking = needed & ~np.isfinite(values[:, :width])
    if not lacking.any():
        return
    owners = np.flatnonzero(lacking.any(axis=1))
    where = int(lacking[owners[0]].argmax())
    period = (
        spelled(panel.periods[where])
        if where < len(panel.periods)
        else spelled(panel.later(where - len(panel.periods) + 1))
    )
    raise DataError(
        f"Column {name!r} has no number for {len(owners):,} series in periods that are needed, {period} the first: "
        f"{told(named(owners, lambda k: str(panel.names[k])))}.",
        "It is known for every period of a series"
        + (", and for the coming one: a row with an empty value has it." if ahead else "."),
        "Fill it in, or leave the column out." if not ahead else "Add these rows, give a calendar, or leave it out.",
        about="known" if ahead else "indicators",
    )


def with_indicators(
    made: Cases,
    columns: dict[str, Matrix],
    asked: Indicators,
    gold: Gold,
    *,
    horizon: int,
    season: int,
    rules: Rules,
    window: int | None = None,
) -> Cases:
    """The cases with forecasts of both models beside those that they have.

    Models of an origin learn from the last `window` periods whose outcomes were known there, or from all.
    """
    if gold.policy != "relative" or gold.lag != 1:
        raise DataError(
            "Indicators were given with another standard than changes from one period to the next.",
            "Models of indicators are of such changes, in usual changes of the series.",
            "Use the relative standard without a lag, or leave indicators out.",
            about="indicators" if asked.lagged else "known",
        )
    base = made.base(horizon=horizon)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = (made.actual - base.last - base.change_mean) / base.change_sd
    X = _design(made, columns, asked, base, horizon=horizon, season=season)
    usable = np.asarray(np.isfinite(X).all(axis=1))
    positive = _positive(made, gold, horizon, rules)
    fitted = _rolled(X, change, positive, made.origin, usable, horizon=horizon, window=window)
    sign = {"decline": -1.0, "increase": 1.0, "both": 1.0}[gold.direction]
    moved = np.stack([fitted[0], sign * fitted[1]])
    forecasts = base.last + base.change_mean + moved * base.change_sd
    plain = np.where(np.isfinite(forecasts), forecasts, base.last)
    return replace(made, methods=(*made.methods, *NAMES), forecasts=np.concatenate([made.forecasts, plain]))


def _positive(made: Cases, gold: Gold, horizon: int, rules: Rules) -> Mask:
    """Which cases are large changes; what cannot be judged is none."""
    numbered = replace(made, methods=("place",), forecasts=np.arange(len(made), dtype=np.float64)[None], spread=None)
    plain = score(replace(numbered, levels=None), replace(gold, scale="changes"), horizon=horizon, rules=rules)
    found = np.zeros(len(made), dtype=np.bool_)
    found[plain.cases.forecasts[0].astype(np.int64)] = plain.positive & ~plain.impossible
    return found


def _design(
    made: Cases, columns: dict[str, Matrix], asked: Indicators, base: Any, *, horizon: int, season: int
) -> Matrix:
    """A column of ones, two forecasts of the series and its last change in usual changes, then the indicators."""
    panel, row, origin = made.panel, made.row, made.origin
    origins, place = np.unique(origin, return_inverse=True)
    levels = np.array([SMOOTHED])
    smooth = smoothing.ahead(smoothing.simple(panel.values, origins, levels=levels), horizon)[row, place]
    before = BUILT_IN["seasonal_naive"](panel.values, origins, horizon, season)[row, place]
    with np.errstate(divide="ignore", invalid="ignore"):
        own = [(each - base.last - base.change_mean) / base.change_sd for each in (smooth, before)]
        own.append((base.previous - base.change_mean) / base.change_sd)
    parts = [np.ones(len(row)), *own]
    for name in asked.lagged:
        level, spread = _so_far(columns[name], len(panel.periods))
        for lag in LAGS:
            at = np.maximum(origin + 1 - lag, 0)
            value = (columns[name][row, at] - level[row, origin]) / spread[row, origin]
            # Before a series begins nothing is known of it: as usual.
            parts.append(np.where((origin + 1 - lag >= panel.first[row]) & np.isfinite(value), value, 0.0))
    for name in asked.known:
        parts += [columns[name][row, origin + horizon], columns[name][row, origin]]
    return np.stack(parts, axis=1)


def _so_far(values: Matrix, width: int) -> tuple[Matrix, Matrix]:
    """Mean and deviation of a column up to each period, by series; a deviation of 1 where there is none yet."""
    known = np.isfinite(values[:, :width])
    number = np.maximum(known.cumsum(axis=1), 1)
    held = np.where(known, values[:, :width], 0.0)
    mean = held.cumsum(axis=1) / number
    variance = np.maximum((held**2).cumsum(axis=1) / number - mean**2, 0.0)
    return mean, np.where(variance > 1e-12, np.sqrt(variance), 1.0)


def _rolled(
    X: Matrix, change: Vector, positive: Mask, origin: np.ndarray, usable: Mask, *, horizon: int, window: int | None
) -> Matrix:
    """Forecast changes by both models, each fitted at its origin to outcomes that were known there."""
    found = np.stack([X[:, 1], X[:, 1]])
    beta: Vector | None = None
    taught = usable & np.isfinite(change)
    with np.errstate(invalid="ignore"):
        extreme = np.clip(change, -6, 6)  # one outlier must not make the fit
    for at in np.unique(origin):
        known, now = taught & (origin + horizon <= at), usable & (origin == at)
        if window is not None:
            known &= origin + horizon > at - window
        if len(np.unique(origin[known])) < LEAST or not now.any():
            continue
        A, b = X[known], extreme[known]
        moments = A.T @ A / len(A)
        ridge = RIDGE * np.diag(np.append(0.0, np.maximum(np.diag(moments)[1:], 1e-12)))
        found[0, now] = X[now] @ np.linalg.lstsq(moments + ridge, A.T @ b / len(A), rcond=None)[0]
        try:
            beta = list_regression(A, positive[known], origin[known], penalty=PENALTY, start=beta)
        except FitError:
            found[1, now] = found[0, now]  # nothing large so far
            continue
        found[1, now] = X[now] @ beta
    return found
