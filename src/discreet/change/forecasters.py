"""Forecasts for those who have only a panel: nine classical methods through statsforecast (extra `forecast`).

Each forecast is made as it would have been at its time: on the history up to its origin. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.change.panel import columns, refuse_gaps
from discreet.errors import DataError, MissingExtra

METHODS: dict[str, Callable[[Any, int], Any]] = {
    "naive": lambda m, season: m.Naive(),
    "seasonal_naive": lambda m, season: m.SeasonalNaive(season_length=season),
    "ses": lambda m, season: m.SimpleExponentialSmoothingOptimized(),
    "holt": lambda m, season: m.Holt(),
    "damped": lambda m, season: m.AutoETS(model="AAN", damped=True),
    "holt_winters": lambda m, season: m.HoltWinters(season_length=season),
    "theta": lambda m, season: m.Theta(season_length=season),
    "ets": lambda m, season: m.AutoETS(season_length=season),
    "arima": lambda m, season: m.AutoARIMA(season_length=season),
}
"""From the simplest to the most complex; the order can serve as complexity ranks."""


def forecast_panel(
    panel: Any,
    *,
    methods: Sequence[str] = tuple(METHODS),
    horizon: int = 1,
    season: int = 12,
    past: int = 12,
    progress: Callable[[str, float], None] = lambda step, share: None,
) -> Any:
    """Forecast the last `past` periods of every series and the one `horizon` after its end.

    Returns a table of `series`, `method`, `t`, `horizon`, `forecast`, as `compare_large_changes` and
    `exception_report` take it. Every forecast refits its model, so time grows with series x past x methods.
    """
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise DataError(f"Method {unknown[0] if unknown else ''!r} is not known; choose from {', '.join(METHODS)}.")
    if horizon < 1 or past < 0 or season < 1:
        raise DataError(
            f"Horizon {horizon}, season {season} and past {past} do not make forecasts; give 1, 12 and 12, for example."
        )
    known = columns(panel, ("series", "t", "value"), what="panel", numbers=("value",))
    names, series = np.unique(known["series"].astype(str), return_inverse=True)
    refuse_gaps(series, known["t"])
    library = _statsforecast()
    import pyarrow as pa

    order = np.lexsort((np.unique(known["t"], return_inverse=True)[1], series))
    bounds = np.searchsorted(series[order], np.arange(len(names) + 1))
    if np.diff(bounds).min() < past + horizon:
        raise DataError(
            f"Forecasts of {past} past periods, {horizon} ahead, need {past + horizon} periods of each series, and one "
            "has fewer. Forecast fewer past periods, or drop short series."
        )
    made: dict[str, list[Any]] = {name: [] for name in ("series", "method", "t", "forecast")}
    for k, name in enumerate(names):
        progress(f"series {k + 1} of {len(names)}", k / len(names))
        mine = order[bounds[k] : bounds[k + 1]]
        times, values = known["t"][mine], known["value"][mine].astype(float)
        for target in range(len(values) - past, len(values) + 1):
            origin = target - horizon if target < len(values) else len(values) - 1
            t = times[target] if target < len(values) else _later(times, horizon)
            history = values[: max(origin + 1, 0)]
            for method in methods:
                forecast = _one(library, method, history, horizon, season)
                for column, value in zip(made.values(), (name, method, t, forecast), strict=True):
                    column.append(value)
    periods = np.array(made["t"])  # Arrow does not take a list of NumPy's dates
    return pa.table({**made, "t": periods, "horizon": np.full(len(periods), horizon)})


def _one(library: Any, method: str, history: Vector, horizon: int, season: int) -> float:
    try:
        return float(METHODS[method](library, season).forecast(y=history, h=horizon)["mean"][-1])
    except Exception as error:
        raise DataError(
            f"Method {method!r} cannot forecast from a history of {len(history)} periods ({type(error).__name__}); "
            "forecast fewer past periods, leave the method out, or drop short series."
        ) from error


def _later(times: np.ndarray, horizon: int) -> Any:
    """The label of the period `horizon` after the last: whole numbers and months are counted on, text is marked."""
    last = times[-1]
    if times.dtype.kind == "M":
        month = times.astype("datetime64[M]")
        if (np.diff(month) == np.timedelta64(1, "M")).all():
            return (month[-1] + horizon).astype(times.dtype) + (last - month[-1].astype(times.dtype))
        return last + horizon * (last - times[-2])
    if times.dtype.kind in "iuf":
        return last + horizon * (last - times[-2] if len(times) > 1 else 1)
    return f"{last} +{horizon}"


def _statsforecast() -> Any:
    try:
        from statsforecast import models
    except ImportError:
        raise MissingExtra(
            "Forecasting from a panel needs statsforecast, which is not installed. "
            "Install it with: pip install 'discreet[forecast]', or bring forecasts of your own."
        ) from None
    return models
