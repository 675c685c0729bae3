"""Forecasts for those who have only a panel: eight methods on NumPy, three more through statsforecast.

There are also two tracking signals as baselines (`tracking`), and two families that are fitted to the purpose
(Dissertation, section 2.6): `ses_pauc` and `damped_pauc` smooth all series with common constants, one member for each
on a grid, and the evaluation takes the member with the largest partial area on the past.

Each forecast is made as it would have been at its time: on the history up to its origin, constants estimated again. The
built-in methods run over all series and origins at once (`smoothing`, `intermittent`), on series without their seasons
(`seasons`). Those of the extra `forecast` refit each series at each origin, on all cores. Nothing is judged here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.changes import intermittent, smoothing, tracking
from discreet.changes.calendar import usual_season
from discreet.changes.cases import Cases, check_horizon, of_forecasts, past_and_coming
from discreet.changes.panel import Gaps, TidyPanel, read_panel
from discreet.changes.seasons import Seasons, adjusted, restored
from discreet.words.arguments import of_kinds
from discreet.words.errors import DataError
from discreet.words.extras import needs
from discreet.words.progress import Progress, silent

Method: TypeAlias = Callable[[Matrix, Integers, int, int], Matrix]

QUICK = ("seasonal_naive", "ses", "damped", "theta", "tsb", "ses_pauc")
"""The methods of a report by default. Without `ses_pauc` fewer alarms are right on real panels."""


def _naive(values: Matrix, origins: Integers, horizon: int, season: int) -> Matrix:
    return values[:, origins]


def _seasonal_naive(values: Matrix, origins: Integers, horizon: int, season: int) -> Matrix:
    """The value one season before the period forecast; the last one where there is none."""
    before = origins - (season - 1 - (horizon - 1) % season)
    found = np.where(before >= 0, values[:, np.maximum(before, 0)], np.nan)
    return np.where(np.isfinite(found), found, values[:, origins])


def _without_seasons(forecast: Callable[[Matrix, Integers, int], Matrix]) -> Method:
    """A method for series without seasons, on what is left when they are taken out."""

    def made(values: Matrix, origins: Integers, horizon: int, season: int) -> Matrix:
        plain = forecast(values, origins, horizon)
        if season < 2:
            return plain
        seasons = Seasons(values, season)
        for k, origin in enumerate(origins.tolist()):
            found = seasons.at(origin)
            rows = np.flatnonzero(found[0])
            if len(rows):
                part = (found[0][rows], found[1][rows], found[2][rows])
                rest = forecast(adjusted(values[rows], origin, part), np.array([origin]), horizon)
                plain[rows, k] = restored(rest[:, 0], horizon, part)
        return plain

    return made


BUILT_IN: dict[str, Method] = {
    "naive": _naive,
    "seasonal_naive": _seasonal_naive,
    "ses": _without_seasons(lambda y, o, h: smoothing.ahead(smoothing.simple(y, o), h)),
    "holt": _without_seasons(lambda y, o, h: smoothing.ahead(smoothing.with_trend(y, o), h)),
    "damped": _without_seasons(
        lambda y, o, h: smoothing.ahead(smoothing.with_trend(y, o, damping=smoothing.DAMPING), h)
    ),
    "theta": _without_seasons(smoothing.theta),
    "croston": lambda y, o, h, season: intermittent.croston(y, o),
    "tsb": lambda y, o, h, season: intermittent.tsb(y, o),
}

SIGNALS: dict[str, Method] = {
    "trigg": lambda y, o, h, season: tracking.as_forecasts(tracking.trigg(y, o), y, o),
    "brown": lambda y, o, h, season: tracking.as_forecasts(tracking.brown(y, o), y, o),
}


def _simple_at(level: float) -> Method:
    levels = np.array([level])
    return _without_seasons(lambda y, o, h: smoothing.ahead(smoothing.simple(y, o, levels=levels), h))


def _damped_at(level: float, trend: float) -> Method:
    grid = {"levels": np.array([level]), "trends": np.array([trend]), "damping": np.array([0.9])}
    return _without_seasons(lambda y, o, h: smoothing.ahead(smoothing.with_trend(y, o, **grid), h))


FAMILIES: dict[str, dict[str, Method]] = {
    "ses_pauc": {f"ses@{a:g}": _simple_at(a) for a in (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)},
    "damped_pauc": {f"damped@{a:g},{b:g}": _damped_at(a, b) for a in (0.05, 0.2, 0.5, 0.8) for b in (0.05, 0.2, 0.5)},
}
"""Members by their smoothing constants: of the level, and of the trend."""

EXTRA: dict[str, Callable[[Any, int], Any]] = {
    "holt_winters": lambda m, season: m.HoltWinters(season_length=season),
    "ets": lambda m, season: m.AutoETS(season_length=season),
    "arima": lambda m, season: m.AutoARIMA(season_length=season),
}

METHODS = (*BUILT_IN, *EXTRA)
"""From the simplest to the most complex; the order can serve as complexity ranks."""

ON_NUMPY: dict[str, Method] = {**BUILT_IN, **SIGNALS, **{k: v for each in FAMILIES.values() for k, v in each.items()}}
KNOWN = (*METHODS, *SIGNALS, *FAMILIES)
"""What can be asked for by name."""


@of_kinds
def forecast_panel(
    panel: Any,
    *,
    methods: Sequence[str] = QUICK,
    horizon: int = 1,
    season: int | None = None,
    past: int = 12,
    gaps: Gaps = "skip",
    progress: Progress = silent,
) -> Any:
    """Forecast the last `past` periods of every series and the one `horizon` after the panel's end.

    A series that ended before the panel has no coming period. Methods `naive` to `tsb` need nothing but NumPy, and
    so do the tracking signals `trigg` and `brown` and the families `ses_pauc` and `damped_pauc`; `holt_winters`, `ets`
    and `arima` need the extra `forecast` and refit every series at every origin.

    Parameters
    ----------
    panel : frame of `series`, `t`, `value`, under these or other usual names.
    methods : names of forecasting methods.
    horizon : how many periods ahead to look.
    season : the length of a season in periods, 1 for none; by default what the calendar says (12 for months).
    past : how many past periods to forecast, each from the periods before it.
    gaps : what periods mean that a series lacks: "skip" passes them over, "zero", or "carry" the value before.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    A table of `series`, `method`, `t`, `horizon`, `forecast`, as `compare_large_changes` and `exception_report` take
    it.

    Examples
    --------
    >>> forecasts = forecast_panel("panel.csv", methods=["naive"], past=6)          # doctest: +SKIP
    """
    made = forecast_cases(
        read_panel(panel, gaps=gaps), methods=methods, horizon=horizon, season=season, past=past, progress=progress
    )
    made = made.select(np.isfinite(made.actual) | made.coming)
    import pyarrow as pa

    many = len(made.methods)
    series = pa.DictionaryArray.from_arrays(np.tile(made.row, many).astype(np.int32), made.panel.names.astype(str))
    method = pa.DictionaryArray.from_arrays(np.repeat(np.arange(many, dtype=np.int32), len(made)), list(made.methods))
    labels, place = np.unique(made.t, return_inverse=True)
    return pa.table(
        {
            "series": series.cast(pa.string()),
            "method": method.cast(pa.string()),
            "t": pa.array(labels).take(pa.array(np.tile(place, many))),
            "forecast": made.forecasts.ravel(),
            "horizon": np.full(many * len(made), horizon),
        }
    )


def forecast_cases(
    panel: TidyPanel,
    *,
    methods: Sequence[str] = QUICK,
    horizon: int = 1,
    season: int | None = None,
    past: int = 12,
    progress: Progress = silent,
) -> Cases:
    """The same as cases, ready to be judged."""
    methods = members(methods)
    check_horizon(horizon)
    season = usual_season(panel.periods) if season is None else season
    if past < 0 or season < 1:
        raise DataError(
            f"Season {season} and past {past} do not make forecasts.",
            remedy="Give for example 12 and 12.",
            about="season" if season < 1 else "past",
        )
    row, origin, t, actual = past_and_coming(panel, past=past, horizon=horizon, label=panel.later(horizon))
    origins, place = np.unique(origin, return_inverse=True)
    library = _statsforecast() if any(name in EXTRA for name in methods) else None
    found = np.empty((len(methods), len(row)))
    for k, name in enumerate(methods):
        progress(f"forecasting by {name}", k / len(methods))
        if name in ON_NUMPY:
            made = _built_in(name, panel, origins, horizon, season, partial(_share, progress, name, k, len(methods)))
            found[k] = made[row, place]
        else:
            histories = [_unbroken(panel.values[i, panel.first[i] : o + 1]) for i, o in zip(row, origin, strict=True)]
            found[k] = _extra(library, name, histories, horizon, season)
    return of_forecasts(panel, row, origin, t, actual, methods, found)


def members(methods: Sequence[str]) -> tuple[str, ...]:
    """Names of methods, those of a family in its place."""
    unknown = [name for name in methods if name not in KNOWN and name not in ON_NUMPY]
    if unknown or not methods:
        raise DataError(
            f"Method {(unknown[0] if unknown else '')!r} is not known.",
            remedy=f"Choose from {', '.join(KNOWN)}.",
            about="methods",
        )
    return tuple(dict.fromkeys(each for name in methods for each in FAMILIES.get(name, (name,))))


def _share(progress: Progress, name: str, done: int, of: int, share: float) -> None:
    progress(f"forecasting by {name}", (done + share) / of)


def _built_in(
    name: str, panel: TidyPanel, origins: Integers, horizon: int, season: int, tell: Callable[[float], None]
) -> Matrix:
    done = 0

    def work(values: Matrix) -> Matrix:
        nonlocal done
        tell(done / len(panel))
        done += len(values)
        return ON_NUMPY[name](values, origins, horizon, season)

    return smoothing.by_chunks(work, panel.values)


def _extra(library: Any, name: str, histories: Sequence[Vector], horizon: int, season: int) -> Vector:
    """Forecasts by a method of the extra, on all cores where there is work for them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < 2 or len(histories) < 64 or not hasattr(library, "__file__"):
        return _refitted(library, name, histories, horizon, season)
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    size = -(-len(histories) // (8 * cores))
    parts = [histories[start : start + size] for start in range(0, len(histories), size)]
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        return np.concatenate(list(pool.map(_in_process, [(name, part, horizon, season) for part in parts])))


def _unbroken(history: Vector) -> Vector:
    """A history since its last gap: methods of the extra take no other."""
    gone = np.flatnonzero(~np.isfinite(history))
    return history[gone[-1] + 1 :] if len(gone) else history


def _in_process(task: tuple[str, Sequence[Vector], int, int]) -> Vector:
    return _refitted(_statsforecast(), *task)


def _refitted(library: Any, name: str, histories: Sequence[Vector], horizon: int, season: int) -> Vector:
    """Each history's forecast; NaN where the method cannot be fitted to one so short."""
    found = np.full(len(histories), np.nan)
    for k, history in enumerate(histories):
        try:
            found[k] = float(EXTRA[name](library, season).forecast(y=history, h=horizon)["mean"][-1])
        except Exception:
            continue
    return found


def _statsforecast() -> Any:
    with needs("forecast", "Forecasting by holt_winters, ets or arima"):
        from statsforecast import models
    return models
