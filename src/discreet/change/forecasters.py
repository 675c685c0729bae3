"""Forecasts for those who have only a panel: nine classical methods through statsforecast (extra `forecast`).

Each forecast is made as it would have been at its time: on the history up to its origin. Nothing is judged here, but
what could not be judged afterwards is refused before the work begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.change import standards
from discreet.change.calendar import calendar
from discreet.change.panel import histories
from discreet.errors import DataError
from discreet.extras import needs

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
    policy: standards.Policy = "relative",
    progress: Callable[[str, float], None] = lambda step, share: None,
) -> Any:
    """Forecast the last `past` periods of every series and the one `horizon` after the panel's end.

    A series that ended before the panel has no coming period. Every forecast refits its model, so time grows with
    series x past x methods.

    Parameters
    ----------
    panel : frame of `series`, `t`, `value`.
    methods : names of forecasting methods.
    horizon : how many periods ahead to look.
    season : the length of a season in periods.
    past : how many past periods to forecast, each from the periods before it.
    policy : the gold standard that will judge.
    progress : called with what is being done and the share of it that is done.

    Returns
    -------
    A table of `series`, `method`, `t`, `horizon`, `forecast`, as `compare_large_changes` and `exception_report` take
    it.

    Examples
    --------
    >>> forecasts = forecast_panel("panel.csv", methods=["naive"], past=6)          # doctest: +SKIP
    """
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise DataError(
            f"Method {unknown[0] if unknown else ''!r} is not known; choose from {', '.join(METHODS)}.", about="methods"
        )
    if horizon < 1 or past < 0 or season < 1:
        raise DataError(
            f"Horizon {horizon}, season {season} and past {past} do not make forecasts; give for example 1, 12 and 12.",
            about="horizon",
        )
    known, names = histories(panel)
    values, periods = known["value"], np.unique(known["t"])
    bounds = np.searchsorted(known["series"], np.arange(len(names) + 1))
    if np.diff(bounds).min() < past + horizon:
        raise DataError(
            f"Forecasts of {past} past periods, {horizon} ahead, need {past + horizon} periods of each series, and one "
            "has fewer. Forecast fewer past periods, or drop short series.",
            about="past",
        )
    first = past + horizon - 1 if past else 0
    standards.varying(standards.baseline([values[a : b - first] for a, b in pairwise(bounds)]), policy=policy)
    coming = calendar(periods).later(horizon)
    library = _statsforecast()
    import pyarrow as pa

    made: dict[str, list[Any]] = {name: [] for name in ("series", "method", "t", "forecast")}
    for k, name in enumerate(names):
        progress(f"series {k + 1} of {len(names)}", k / len(names))
        mine = slice(bounds[k], bounds[k + 1])
        times, own = known["t"][mine], values[mine]
        ahead = [*times, coming] if times[-1] == periods[-1] else times
        for target in range(len(own) - past, len(ahead)):
            t = ahead[target]
            history = own[: target - horizon + 1] if target < len(own) else own
            for method in methods:
                forecast = _one(library, method, history, horizon, season)
                for column, value in zip(made.values(), (name, method, t, forecast), strict=True):
                    column.append(value)
    labels = np.array(made["t"])  # Arrow does not take a list of NumPy's dates
    return pa.table({**made, "t": labels, "horizon": np.full(len(labels), horizon)})


def _one(library: Any, method: str, history: Vector, horizon: int, season: int) -> float:
    try:
        return float(METHODS[method](library, season).forecast(y=history, h=horizon)["mean"][-1])
    except Exception as error:
        raise DataError(
            f"Method {method!r} cannot forecast from a history of {len(history)} periods ({type(error).__name__}); "
            "forecast fewer past periods, leave the method out, or drop short series.",
            about="methods",
        ) from error


def _statsforecast() -> Any:
    with needs("forecast", "Forecasting from a panel, without forecasts of your own,"):
        from statsforecast import models
    return models
