"""Exception reports on many series, and forecasts beside statsforecast's.

A panel of 60 months: seasons, trends, intermittent series, and now and then a large fall. The report forecasts 24 past
months and the coming one by six methods, judges the past and ranks; it has no peer. The same work is a forecast: the
last value and simple smoothing with its constant estimated anew at each of 12 origins, which statsforecast does series
by series in compiled code. Processor seconds, the best of two runs after a first one that compiles. Last values must be
equal, and mean errors of smoothing within two in a hundred: the two minimise over other starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench import data, peers
from bench.comparison import Agreement, Comparison, beside

MONTHS, ORIGINS = 60, 12
CLOSE = 0.02

REPORT = """
import discreet as dc
time_, found = measured(lambda: dc.exception_report(sys.argv[1], capacity=200))
report(**time_, ranked=len(found.rows), flagged=len(found.flagged), method=found.method)
"""

OURS = """
import numpy as np
from discreet.changes.forecasters import forecast_cases
from discreet.changes.panel import read_panel
path, origins = sys.argv[1], int(sys.argv[2])
panel = read_panel(path)
run = lambda: forecast_cases(panel, methods=("naive", "ses"), season=1, past=origins)
run()
time_, cases = measured(run, 2)
known = np.isfinite(cases.actual)
off = np.abs(cases.forecasts[:, known] - cases.actual[known])
report(**time_, naive=float(off[0].mean()), ses=float(off[1].mean()), cases=int(known.sum()))
"""

STATSFORECAST = """
import numpy as np, pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import Naive, SimpleExponentialSmoothingOptimized
path, origins = sys.argv[1], int(sys.argv[2])
table = pd.read_parquet(path).rename(columns={"series": "unique_id", "t": "ds", "value": "y"})
table["ds"] = pd.to_datetime(table["ds"])
made = StatsForecast(models=[Naive(), SimpleExponentialSmoothingOptimized(alias="ses")], freq="MS", n_jobs=1)
def run():
    found = made.cross_validation(df=table, h=1, n_windows=origins, step_size=1, refit=True)
    made.forecast(df=table, h=1)
    return found
run()
time_, found = measured(run, 2)
off = {name: float((found[name] - found["y"]).abs().mean()) for name in ("Naive", "ses")}
report(**time_, naive=off["Naive"], ses=off["ses"], cases=len(found), version=version("statsforecast"))
"""


def compare(*, quick: bool) -> Comparison:
    """One row, and the report at growing sizes."""
    panel = panel_of(200 if quick else 5_000)
    ours = _of_cpu(peers.ours(OURS, panel, ORIGINS))

    def agree(theirs: Mapping[str, Any]) -> Agreement:
        off = {name: theirs[name] / ours[name] - 1 for name in ("naive", "ses")}
        ok = abs(off["naive"]) < 1e-9 and abs(off["ses"]) < CLOSE and theirs["cases"] == ours["cases"]
        words = (
            f"{ours['cases']:,} forecasts of each kind; mean errors {off['naive']:+.0e} and {off['ses']:+.1e} of ours"
        )
        return Agreement(ok, words)

    row = beside(
        f"forecasts of {200 if quick else 5_000:,} series at {ORIGINS} origins",
        "statsforecast",
        ours,
        lambda: _of_cpu(peers.STATSFORECAST.measure(STATSFORECAST, panel, ORIGINS)),
        agree=agree,
    )
    reports = {}
    for series in (200,) if quick else (5_000, 25_000, 100_000):
        found = peers.ours(REPORT, panel_of(series))
        reports[str(series)] = {key: found[key] for key in ("cpu", "seconds", "mib", "ranked", "flagged", "method")}
        print(f"   report on {series:,} series: {reports[str(series)]}", flush=True)
    return Comparison((row,), facts={"reports": reports})


def _of_cpu(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "seconds": found["cpu"]}


def panel_of(series: int) -> Path:
    """Monthly values of so many series, as a Parquet file."""
    return data.kept(data.HOME / f"panel-{series}.parquet", lambda path: _write(path, series))


def _write(path: Path, series: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(22)
    month = np.arange(MONTHS)
    level = np.exp(rng.normal(5, 1, series))[:, None]
    season = 1 + 0.2 * rng.random((series, 1)) * np.sin(2 * np.pi * (month + rng.integers(0, 12, (series, 1))) / 12)
    trend = np.exp(np.cumsum(rng.normal(0, 0.03, (series, MONTHS)), axis=1))
    falls = np.cumprod(np.where(rng.random((series, MONTHS)) < 0.01, 0.6, 1.0), axis=1)
    values = rng.poisson(level * season * trend * falls).astype(float)
    values[rng.random((series, MONTHS)) < (rng.random((series, 1)) < 0.1) * 0.5] = 0.0
    starts = np.datetime64("2020-01", "M") + month
    names = np.array([f"s{number:06d}" for number in range(series)])
    table = pa.table(
        {
            "series": np.repeat(names, MONTHS),
            "t": np.tile(starts.astype("datetime64[D]"), series),
            "value": values.ravel(),
        }
    )
    pq.write_table(table, path)
