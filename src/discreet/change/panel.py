"""The border: tidy frames of a panel and of forecasts become aligned arrays, or a reason why not.

A panel has columns `series`, `t`, `value`; forecasts have `series`, `method`, `t`, `forecast`, where `t` is the period
forecast, and may have `horizon`. Any table or file that `frames` opens will do. Periods are the panel's own, in order:
a month that no row mentions does not exist, and a series that lacks one which others have is refused, since a missing
row may mean zero. The forecast origin of a case is `horizon` rows before its period, and the history ends there; later
rows are never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet import frames
from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.errors import DataError

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
    """

    series: np.ndarray
    t: np.ndarray
    actual: Vector
    histories: Sequence[Vector]
    methods: tuple[str, ...]
    forecasts: Matrix
    silent: int = 0

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
        )


def cases(panel: Any, forecasts: Any, *, horizon: int = 1, missing: Missing = "refuse") -> Cases:
    """Align forecasts `horizon` periods ahead with the panel. `missing="drop"` leaves out uncovered cases."""
    if not isinstance(horizon, int | np.integer) or horizon < 1:
        raise DataError(f"Horizon {horizon!r} is not a number of periods ahead; give 1 or more whole ones.")
    if missing not in ("refuse", "drop"):
        raise DataError(f"missing={missing!r} is not known; cases without a forecast are 'refuse' or 'drop'.")
    known = columns(panel, ("series", "t", "value"), what="panel", numbers=("value",))
    asked = columns(
        forecasts,
        ("series", "method", "t", "forecast"),
        what="forecasts",
        numbers=("forecast",),
        optional=("horizon",),
    )
    if "horizon" in asked:
        ahead = asked.pop("horizon")
        if not (ahead == horizon).any():
            found = ", ".join(str(h) for h in np.unique(ahead)[:12])
            raise DataError(f"No forecast has horizon {horizon}; the frame has {found}. Choose one of these.")
        asked = {name: values[ahead == horizon] for name, values in asked.items()}
    known_as, asked_as = (table["series"].dtype.kind in "iuf" for table in (known, asked))
    names, series = np.unique(known["series"].astype(str), return_inverse=True)
    refuse_gaps(series, known["t"])
    if len(names) < 2:
        raise DataError(f"The panel has {len(names)} series, and a comparison across series needs at least 2.")
    asked["series"] = asked["series"].astype(str)
    wanted = np.minimum(np.searchsorted(names, asked["series"]), len(names) - 1)
    strangers = names[wanted] != asked["series"]
    if strangers.any():
        count = len(np.unique(asked["series"][strangers]))
        hint = " Names are numbers in one table and text in the other." if known_as != asked_as else ""
        raise DataError(f"{count} series of the forecasts are not in the panel; add their history or drop them.{hint}")
    keys, targets, periods = _keys(series, known["t"], wanted, asked["t"])
    order = np.argsort(keys, kind="stable")
    keys, value = keys[order], _finite(known["value"][order], "values of the panel")
    if (keys[1:] == keys[:-1]).any():
        raise DataError("The panel has two rows for one series and period; aggregate them first.")
    case, position = np.unique(targets, return_inverse=True)
    methods = tuple(dict.fromkeys(map(str, asked["method"])))
    row = np.argsort(methods)[np.searchsorted(np.sort(methods), asked["method"].astype(str))]
    if len(np.unique(row * len(case) + position)) < len(row):
        raise DataError("A method forecasts one series and period twice; keep one, or add a `horizon` column.")
    matrix = np.full((len(methods), len(case)), np.nan)
    matrix[row, position] = asked["forecast"].astype(float)
    aligned = _aligned(case, keys, value, names, periods, horizon)
    silent = len(names) - len(np.unique(wanted))
    result = Cases(*aligned, methods=methods, forecasts=matrix, silent=silent)
    covered = np.isfinite(matrix).all(axis=0)
    if covered.all():
        return result
    if missing == "refuse":
        worst = int(np.argmin(np.isfinite(matrix).sum(axis=1)))
        raise DataError(
            f"Method {methods[worst]!r} forecasts {int(np.isfinite(matrix[worst]).sum())} of {len(case)} cases, and "
            "methods are compared on the same cases; forecast the rest, or leave them out with missing='drop'."
        )
    return result.select(covered)


def refuse_gaps(series: Integers, t: np.ndarray) -> None:
    """Every series must have all the panel's periods between its first and its last."""
    period = np.unique(t, return_inverse=True)[1]
    order = np.lexsort((period, series))
    lacking = (np.diff(period[order]) > 1) & (np.diff(series[order]) == 0)
    if lacking.any():
        count = len(np.unique(series[order][1:][lacking]))
        raise DataError(
            f"{count} of {int(series.max()) + 1} series lack periods between their first and last that other series "
            "have, and changes over a gap are not changes of one period; fill them, with zeros if that is what they "
            "mean."
        )


def columns(
    data: Any, names: Sequence[str], *, what: str, numbers: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Named columns of any table or file as arrays; `numbers` are those that must be numeric."""
    frame = frames.as_lazy(data, name=what)
    present = frame.collect_schema().names()
    frames.refuse(frames.missing(name, present, name=what) for name in names if name not in present)
    frames.require(frame, dict.fromkeys(numbers, "number"), name=what)
    wanted = [*names, *(name for name in optional if name in present)]
    table = frames.collect(frame.select(*wanted), step=f"read {what}")
    if not len(table):
        raise DataError(f"No rows in the {what}; check the file or the filter that made it.")
    return {name: table[name].to_numpy() for name in wanted}


def _keys(
    series: Integers, t: np.ndarray, wanted: Integers, target: np.ndarray
) -> tuple[Integers, Integers, np.ndarray]:
    """One sortable integer per (series, period) of the panel and of the forecasts, and the periods."""
    kinds = {t.dtype.kind, target.dtype.kind}
    if len(kinds) > 1 and not kinds <= set("iuf"):
        raise DataError("Column `t` has different types in panel and forecasts; give both as numbers, dates or text.")
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
        raise DataError(f"{gaps} forecasts are for periods inside a series where the panel has no row; fill the gaps.")
    origin = np.where(known, place - horizon, stop - 1)
    early = int((origin < first).sum())
    if early:
        raise DataError(
            f"{early} forecasts are for periods within {horizon} of the start of their series, so nothing was known "
            "then; drop them or give a longer history."
        )
    actual = np.where(known, value[np.minimum(place, len(value) - 1)], np.nan)
    histories = [value[a : b + 1] for a, b in zip(first, origin, strict=True)]
    return names[owner], periods[case % len(periods)], actual, histories


def _finite(values: np.ndarray, what: str) -> Vector:
    numbers = values.astype(float)
    bad = int((~np.isfinite(numbers)).sum())
    if bad:
        raise DataError(f"{bad} {what} are missing or infinite; fill them or drop their series.")
    return numbers
