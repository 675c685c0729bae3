"""Cases: forecasts beside the panel, each with its origin and what was known there.

Forecasts have `series`, `method`, `t`, `forecast`, where `t` is the period forecast, and may have `horizon` or
`origin`; or `series`, `t` and one column per method. With a column `quantile` (0.1, 0.5, ...) or `sample` they are
distributions, which give the chance of a large change directly. The origin of a case is `horizon` periods before its
own, and later values are never read. Forecasts of periods after the panel's end are recognised by their labels
(`calendar`); a series that ended earlier has no coming period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.changes import standards, tidy
from discreet.changes.calendar import calendar
from discreet.changes.panel import Gaps, TidyPanel, named, read_panel, spelled, told
from discreet.words.errors import DataError
from discreet.words.faults import Argument, Spelled

Missing: TypeAlias = Literal["refuse", "drop"]
DROPPED = Spelled(
    "leave them out with missing='drop'", command="leave them out with --missing drop", form="leave these methods out"
)
OPTIONAL = ("horizon", "origin", "quantile", "sample")


@dataclass(frozen=True, slots=True)
class Cases:
    """Periods of series that were forecast by every method.

    Attributes
    ----------
    panel : whose series these are.
    row, origin : the series and the last known column of each case.
    t, actual : what was forecast, and the outcome; NaN where the panel ends before it, or has none there.
    methods, forecasts : names, and values of shape (methods, cases).
    silent : how many of the panel's series no method forecasts.
    levels, spread : quantile levels, and quantiles or samples of shape (methods, levels or samples, cases); samples
        have no levels. None for forecasts that are single numbers.
    """

    panel: TidyPanel
    row: Integers
    origin: Integers
    t: np.ndarray
    actual: Vector
    methods: tuple[str, ...]
    forecasts: Matrix
    silent: int = 0
    levels: Vector | None = None
    spread: Matrix | None = None

    def __len__(self) -> int:
        return len(self.row)

    @property
    def series(self) -> np.ndarray:
        return np.asarray(self.panel.names[self.row])

    @property
    def coming(self) -> Mask:
        """The cases whose origin is the panel's last period; outcomes of others are known, or never came."""
        return np.asarray(np.isnan(self.actual) & (self.origin == len(self.panel.periods) - 1))

    @property
    def ended(self) -> list[tuple[str, str]]:
        """The series that end before the panel does, and their last periods."""
        return [(str(self.panel.names[k]), spelled(self.panel.periods[self.panel.last[k]])) for k in self.panel.ended]

    def base(self, *, lag: int = 1, horizon: int = 1) -> standards.AtOrigin:
        return standards.at_origins(self.panel.values, self.row, self.origin, lag=lag, horizon=horizon)

    def select(self, keep: Mask) -> Cases:
        return replace(
            self,
            row=self.row[keep],
            origin=self.origin[keep],
            t=self.t[keep],
            actual=self.actual[keep],
            forecasts=self.forecasts[:, keep],
            spread=None if self.spread is None else self.spread[:, :, keep],
        )


def cases(
    panel: Any, forecasts: Any, *, horizon: int = 1, missing: Missing = "refuse", gaps: Gaps = "skip", until: Any = None
) -> Cases:
    """Align forecasts `horizon` periods ahead with the panel. `missing="drop"` leaves out uncovered cases."""
    check_horizon(horizon)
    if missing not in ("refuse", "drop"):
        raise DataError(
            (Argument("missing", missing), " is not known."),
            "Cases without a forecast are 'refuse' or 'drop'.",
            about="missing",
        )
    held = read_panel(panel, gaps=gaps, until=until)
    asked, methods, matrix = _read(forecasts)
    endless = np.flatnonzero(np.isinf(matrix).any(axis=0))
    if len(endless):
        whose = asked["series"].known[np.unique(asked["series"].code[endless])]
        raise DataError(
            f"Forecasts are infinite in {len(endless):,} rows: {told(whose)}.",
            "A forecast is a finite number.",
            "Correct them, or leave these rows out.",
            about="forecasts",
        )
    asked, matrix, declared = _at(asked, matrix, held, horizon)
    asked, matrix = _of_series(asked, matrix, held)
    row = np.searchsorted(held.names, asked["series"].known)[asked["series"].code]
    periods, target = _targets(held, asked["t"])
    case, position = np.unique(row * len(periods) + target, return_inverse=True)
    found = _aligned(held, case // len(periods), case % len(periods), periods, horizon)
    arranged = _arranged(asked, methods, matrix, position, found)
    place = case % len(periods)
    inside = np.isin(periods, held.periods)[place]
    keep = np.isfinite(held.values[arranged.row, arranged.origin])
    keep &= np.where(inside, np.searchsorted(held.periods, periods)[place] - horizon <= held.last[arranged.row], True)
    keep &= inside | (held.last[arranged.row] == len(held.periods) - 1)
    keep[~inside & keep] = _at_horizon(held, arranged.t[~inside & keep], horizon, declared=declared)
    result = arranged.select(keep)
    covered = np.asarray(np.isfinite(result.forecasts).all(axis=0))
    if covered.all():
        return result
    if missing == "refuse":
        counts = np.isfinite(result.forecasts).sum(axis=1)
        worst = int(np.argmin(counts))
        names = np.unique(result.series[~np.isfinite(result.forecasts[worst])])
        raise DataError(
            f"Method {result.methods[worst]!r} forecasts {counts[worst]} of {len(result)} cases, and not "
            f"those of {told(names)}.",
            "Methods are compared on the same cases.",
            ("Forecast the rest, or ", DROPPED, "."),
            about="forecasts",
        )
    return result.select(covered)


def check_horizon(horizon: int) -> None:
    if not isinstance(horizon, int | np.integer) or horizon < 1:
        raise DataError(
            f"Horizon {horizon!r} is not a number of periods ahead.",
            remedy="Give 1 or more whole ones.",
            about="horizon",
        )


def _read(forecasts: Any) -> tuple[dict[str, Any], tuple[str, ...], Matrix]:
    """The columns of forecasts, the methods, and forecasts by method: NaN where a row is about another method."""
    wide = tidy.methods_beside(forecasts, ("series", "t", "value", *OPTIONAL))
    if wide:
        asked = tidy.read(
            forecasts, ("series", "t", *wide), what="forecasts", numbers=(*wide, "horizon", "quantile", "sample"),
            optional=OPTIONAL,
        )  # fmt: skip
        return tidy.with_limits(asked, {name: np.asarray(asked.pop(name), float) for name in wide})
    asked = tidy.read(
        forecasts,
        ("series", "method", "t", "forecast"),
        what="forecasts",
        numbers=("forecast", "horizon", "quantile", "sample"),
        optional=OPTIONAL,
    )
    method = asked.pop("method")
    first = np.full(len(method.known), len(method.code))
    np.minimum.at(first, method.code, np.arange(len(method.code)))
    order = np.argsort(first)
    matrix = np.full((len(order), len(method.code)), np.nan)
    matrix[np.argsort(order)[method.code], np.arange(len(method.code))] = asked.pop("forecast")
    return asked, tuple(str(name) for name in method.known[order]), matrix


def _at(asked: dict[str, Any], matrix: Matrix, held: TidyPanel, horizon: int) -> tuple[dict[str, Any], Matrix, bool]:
    """The rows that look `horizon` ahead, by the column `horizon` or `origin`; and whether one was there."""
    ahead = asked.pop("horizon", None)
    origin = asked.pop("origin", None)
    if ahead is None and origin is not None:
        rule = calendar(held.periods).rule
        read = calendar(held.periods).read
        places = [
            [None if rule is None or (value := read(label)) is None else rule.place(value) for label in column.known]
            for column in (asked["t"], origin)
        ]
        if any(place is None for column in places for place in column):
            raise DataError(
                "An origin of the forecasts is not a period of the panel's calendar.",
                "Origins are the last periods that were known.",
                "Correct them, or give the column `horizon`.",
                about="forecasts",
            )
        target, start = (np.array(column, np.int64) for column in places)
        ahead = target[asked["t"].code] - start[origin.code]
        late = ahead < 1
        if late.any():
            names = asked["series"].known[np.unique(asked["series"].code[late])]
            raise DataError(
                f"{int(late.sum()):,} forecasts are of periods before or at their own origin: {told(names)}.",
                "A forecast is made before its period.",
                "Correct the column.",
                about="forecasts",
            )
    if ahead is None:
        return asked, matrix, False
    if not (ahead == horizon).any():
        found = ", ".join(str(h) for h in np.unique(ahead)[:12])
        raise DataError(
            f"No forecast has horizon {horizon}; the frame has {found}.", remedy="Choose one of these.", about="horizon"
        )
    return *tidy.chosen(asked, matrix, np.asarray(ahead == horizon)), True


def _of_series(asked: dict[str, Any], matrix: Matrix, held: TidyPanel) -> tuple[dict[str, Any], Matrix]:
    """The rows of the panel's series; names that are neither in it nor set aside are refused."""
    known = asked["series"].known
    there = np.isin(known, held.names)
    strangers = known[~there & ~np.isin(known, [name for name, _ in held.set_aside])]
    strangers = strangers[np.isin(strangers, known[np.unique(asked["series"].code)])]
    if len(strangers):
        raise DataError(
            f"{len(strangers)} series of the forecasts are not in the panel: {told(strangers)}.",
            "Add their history or drop them.",
            "A name is the same only if it is number or text in both tables.",
            about="forecasts",
        )
    return (asked, matrix) if there.all() else tidy.chosen(asked, matrix, there[asked["series"].code])


def _targets(held: TidyPanel, t: tidy.Labels) -> tuple[np.ndarray, Integers]:
    """The panel's periods with those of the forecasts, and the place of each forecast among them."""
    kinds = {held.periods.dtype.kind, t.known.dtype.kind}
    if len(kinds) > 1 and not kinds <= set("iuf") and not kinds <= set("OUT"):
        raise DataError(
            "Column `t` has different types in panel and forecasts.",
            remedy="Give both as numbers, dates or text.",
            about="forecasts",
        )
    used = t.known[np.unique(t.code)]
    periods = np.union1d(held.periods, used)
    return periods, np.searchsorted(periods, t.known)[t.code]


def _aligned(held: TidyPanel, row: Integers, target: Integers, periods: np.ndarray, horizon: int) -> Cases:
    """Cases without forecasts: which outcome, which origin."""
    column = np.searchsorted(held.periods, periods)
    inside = np.isin(periods, held.periods)
    between = ~inside & (column < len(held.periods))
    if between[target].any():
        raise DataError(
            f"{int(between[target].sum())} forecasts are for periods between those of the panel, such as "
            f"{spelled(periods[target[between[target]][0]])}: {told(np.unique(held.names[row[between[target]]]))}.",
            f"The panel has periods such as {' and '.join(spelled(each) for each in held.periods[-2:])}.",
            "Label forecasts as the panel does, or fill its gaps.",
            about="forecasts",
        )
    place = column[target]
    known = inside[target] & (place <= held.last[row])
    early = place < held.first[row]
    origin = np.where(inside[target], np.minimum(place - horizon, held.last[row]), held.last[row])
    early |= origin < held.first[row]
    if early.any():
        raise DataError(
            f"{int(early.sum())} forecasts are for periods within {horizon} of the start of their series, "
            f"so nothing was known then: {told(np.unique(held.names[row[early]]))}.",
            remedy="Drop them, or give a longer history.",
            about="forecasts",
        )
    actual = np.where(known, held.values[row, np.minimum(place, len(held.periods) - 1)], np.nan)
    return Cases(
        held, row, origin, periods[target], actual, (), np.empty((0, len(row))), len(held) - len(np.unique(row))
    )


def _arranged(
    asked: dict[str, Any], methods: tuple[str, ...], matrix: Matrix, position: Integers, found: Cases
) -> Cases:
    """Forecasts in the columns of their cases; those of distributions in layers."""
    layer = asked.get("quantile", asked.get("sample"))
    levels, depth = (
        (np.zeros(1), np.zeros(len(position), np.int64))
        if layer is None
        else np.unique(np.asarray(layer, float), return_inverse=True)
    )
    arranged = np.full((len(methods), len(levels), len(found)), np.nan)
    for k in range(len(methods)):
        rows = np.flatnonzero(np.isfinite(matrix[k]))
        key = depth[rows] * len(found) + position[rows]
        unique, count = np.unique(key, return_counts=True)
        if len(unique) < len(key):
            twice = unique[count > 1] % len(found)
            raise DataError(
                f"{methods[k]!r} forecasts {len(twice):,} cases more than once: "
                f"{told(named(twice, lambda i: f'{found.series[i]} ({spelled(found.t[i])})'))}.",
                "Forecasts of one period from several origins are distinguished by a column `origin` or `horizon`.",
                "Add one of these, or keep one forecast.",
                about="forecasts",
            )
        arranged[k, depth[rows], position[rows]] = matrix[k, rows]
    if layer is None:
        return replace(found, methods=methods, forecasts=arranged[:, 0])
    if "quantile" in asked and not ((levels > 0) & (levels < 1)).all():
        raise DataError(
            f"Quantile {levels[(levels <= 0) | (levels >= 1)][0]:g} of the forecasts is outside (0, 1).",
            "A median has 0.5.",
            "Give shares, not percentages.",
            about="forecasts",
        )
    if "quantile" in asked:
        _refuse_reversed(arranged, methods, levels, found)
    middle = np.where(np.isfinite(arranged).all(axis=1), np.median(arranged, axis=1), np.nan)
    return replace(
        found, methods=methods, forecasts=middle, levels=levels if "quantile" in asked else None, spread=arranged
    )


def _refuse_reversed(layers: Matrix, methods: tuple[str, ...], levels: Vector, found: Cases) -> None:
    """Refuse distributions whose lowest quantile is above their highest; others that cross are put in order later."""
    for name, values in zip(methods, layers, strict=True):
        turned = np.flatnonzero(values[0] > values[-1])
        if len(turned):
            raise DataError(
                f"Quantile {levels[0]:g} of {name!r} is above quantile {levels[-1]:g} in {len(turned):,} cases: "
                f"{told(named(turned, lambda i: f'{found.series[i]} ({spelled(found.t[i])})'))}.",
                "Quantiles rise with their level.",
                "Check the column `quantile`: levels may be those of the other tail.",
                about="forecasts",
            )


def _at_horizon(held: TidyPanel, t: np.ndarray, horizon: int, *, declared: bool) -> Mask | bool:
    """Which forecasts of coming periods are `horizon` ahead of the panel's end, or why that is not known.

    Without a column `horizon` the labels give it; with one they must agree.
    """
    labels, place = np.unique(t, return_inverse=True)
    if not len(labels):
        return True
    try:
        ahead, why = calendar(held.periods).ahead(labels), "whose labels do not say how far ahead they are"
    except DataError:
        ahead, why = None, "and the panel's dates follow no calendar"
    if ahead is None:
        if len(labels) > 1:
            raise DataError(
                f"The forecasts are for {len(labels)} coming periods, {why}.",
                "One coming period is ranked.",
                f"Keep that one, or {'correct' if declared else 'add'} the column `horizon`.",
                about="forecasts",
            )
        return True
    right = ahead == horizon
    if not right.any() or (declared and not right.all()):
        found = ", ".join(str(each) for each in np.unique(ahead[~right])[:12])
        raise DataError(
            f"Horizon {horizon} was asked for, and by their labels the forecasts of coming periods are {found} ahead.",
            "The panel's last period is the origin.",
            "Choose another horizon, or correct the labels.",
            about="horizon",
        )
    return np.asarray(right[place])


def past_and_coming(
    held: TidyPanel, *, past: int, horizon: int, label: Any
) -> tuple[Integers, Integers, np.ndarray, Vector]:
    """Row, origin, label and outcome of the last `past` periods of the panel and the coming one, for every series.

    The outcome is NaN in the coming period, and where a series has ended or lacks the period.
    """
    last = len(held.periods) - 1
    origins = np.arange(last - horizon - past + 1, last - horizon + 1)
    origins = np.append(origins[origins >= 0], last)
    row, origin = np.repeat(np.arange(len(held)), len(origins)), np.tile(origins, len(held))
    coming = origin == last
    target = np.where(coming, last, origin + horizon)
    inside = np.isfinite(held.values[row, origin])
    row, origin, coming, target = row[inside], origin[inside], coming[inside], target[inside]
    labels = held.periods[target].astype(object) if held.periods.dtype.kind == "O" else held.periods[target].copy()
    if labels.dtype.kind in "UT":
        labels = labels.astype(object)
    labels[coming] = label
    actual = np.where(coming, np.nan, held.values[row, target])
    return row, origin, labels, actual


def of_forecasts(
    held: TidyPanel,
    row: Integers,
    origin: Integers,
    t: np.ndarray,
    actual: Vector,
    methods: Sequence[str],
    forecasts: Matrix,
) -> Cases:
    """Cases of forecasts that were made here; those without a number from every method are left out."""
    made = Cases(held, row, origin, t, actual, tuple(methods), forecasts)
    return made.select(np.asarray(np.isfinite(forecasts).all(axis=0)))
