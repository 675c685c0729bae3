from __future__ import annotations

import importlib.util

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet.changes import forecasters
from discreet.changes.exceptions import exception_report
from discreet.changes.forecasters import BUILT_IN, METHODS, forecast_panel
from discreet.changes.smoothing import by_chunks
from discreet.words.errors import DataError
from faults_of import about

INSTALLED = importlib.util.find_spec("statsforecast") is not None
needs_extra = pytest.mark.skipif(not INSTALLED, reason="the forecast extra is not installed")


def panel(n=2, months=40):
    rng = np.random.default_rng(0)
    y = 100 + 10 * np.sin(np.arange(months) * np.pi / 6) + rng.normal(0, 1, (n, months)).cumsum(axis=1)
    names = np.repeat([f"s{i}" for i in range(n)], months)
    return pa.table({"series": names, "t": np.tile(np.arange(months), n), "value": y.ravel()}), y


def test_refusals_need_no_extra():
    with pytest.raises(DataError, check=about("methods")):
        forecast_panel(panel()[0], methods=("prophet",))
    with pytest.raises(DataError, check=about("horizon")):
        forecast_panel(panel()[0], horizon=0)


@pytest.mark.parametrize("horizon", [1, 2])
def test_each_forecast_knows_only_its_history(horizon):
    data, y = panel()
    rows = forecast_panel(data, methods=("naive",), horizon=horizon, past=3).to_pylist()
    assert [row["t"] for row in rows if row["series"] == "s1"] == [37, 38, 39, 39 + horizon]
    for row in rows:
        assert row["forecast"] == y[int(row["series"][1]), row["t"] - horizon]


@pytest.mark.parametrize("unit", ["D", "us"])
def test_dates_go_in_and_come_out(unit):
    data, _ = panel(n=20)
    months = (np.datetime64("1990-01") + np.arange(40)).astype(f"datetime64[{unit}]")
    data = data.set_column(1, "t", pa.array(np.tile(months, len(data) // 40)))
    made = forecast_panel(data, methods=("naive",), past=2)
    found = [t for t, name in zip(made["t"].to_numpy(), made["series"].to_pylist(), strict=True) if name == "s1"]
    assert [str(t)[:10] for t in found] == ["1993-03-01", "1993-04-01", "1993-05-01"]
    report = exception_report(data, forecast_panel(data, methods=("naive",), past=8), cutoff=0.6)
    assert {row["t"][:10] for row in (*report.rows, *report.set_aside)} == {"1993-05-01"}


@pytest.mark.parametrize("frequency", ["ME", "QE", "YE", "B", "W-THU", "MS"])
def test_the_coming_period_has_its_own_label(frequency):
    data, _ = panel(n=20)
    days = pd.date_range("1975-01-31", periods=42, freq=frequency).to_numpy()
    data = data.set_column(1, "t", pa.array(np.tile(days[:40], 20)))
    for horizon in (1, 2):
        made = forecast_panel(data, methods=("naive",), past=8, horizon=horizon)
        assert made["t"].to_numpy().max() == days[39 + horizon]
        report = exception_report(data, made, cutoff=0.6, horizon=horizon)
        assert {row["t"][:10] for row in (*report.rows, *report.set_aside)} == {str(days[39 + horizon])[:10]}


def test_a_series_that_has_ended_gets_no_coming_period():
    data, _ = panel(n=3)
    data = data.slice(0, 115)
    rows = forecast_panel(data, methods=("naive",), past=8).to_pylist()
    last = {row["series"]: row["t"] for row in rows}
    assert last == {"s0": 40, "s1": 40, "s2": 34}


def test_short_histories_are_forecast_from_where_they_begin():
    data, _ = panel(n=3)
    data = data.filter(pc.or_(pc.not_equal(data["series"], "s1"), pc.greater_equal(data["t"], 37)))
    rows = forecast_panel(data, methods=("ses",), past=5).to_pylist()
    assert [row["t"] for row in rows if row["series"] == "s1"] == [38, 39, 40]
    assert [row["t"] for row in rows if row["series"] == "s0"] == [35, 36, 37, 38, 39, 40]


def test_dates_that_follow_no_rule_have_no_coming_period():
    data = panel()[0].to_pandas()
    data["t"] = pd.Timestamp("1990-01-01") + pd.to_timedelta(data.t**2, unit="D")
    with pytest.raises(DataError, check=about("periods")):
        forecast_panel(data, methods=("naive",))


def test_several_chunks_are_one_forecast():
    y = panel(n=7)[1]
    whole = BUILT_IN["damped"](y, np.array([20, 39]), 1, 12)
    np.testing.assert_array_equal(
        by_chunks(lambda part: BUILT_IN["damped"](part, np.array([20, 39]), 1, 12), y, chunk=3), whole
    )


class Library:
    """Stands in for statsforecast.models: forecasts the last value plus the horizon, from five values on."""

    @staticmethod
    def AutoETS(season_length):  # noqa: N802
        class Model:
            def forecast(self, y, h):
                if len(y) < 5:
                    raise IndexError
                return {"mean": y[-1] + np.arange(1, h + 1)}

        return Model()


def test_a_method_of_the_extra_refits_and_leaves_out_what_it_cannot(monkeypatch):
    monkeypatch.setattr(forecasters, "_statsforecast", lambda: Library)
    data, y = panel()
    rows = forecast_panel(data, methods=("naive", "ets"), past=38).to_pylist()
    assert {row["t"] for row in rows} == set(range(5, 41))
    for row in rows:
        expected = y[int(row["series"][1]), row["t"] - 1] + (row["method"] == "ets")
        assert row["forecast"] == expected


@needs_extra
@pytest.mark.full_size  # importing statsforecast compiles for a quarter of a minute
def test_every_method_forecasts():
    data, y = panel()
    table = forecast_panel(data, methods=METHODS, past=1)
    assert set(table["method"].to_pylist()) == set(METHODS)
    rows = [row for row in table.to_pylist() if row["t"] == 40]
    assert all(abs(row["forecast"] - y[int(row["series"][1]), -1]) < 40 for row in rows)
    naive = [row["forecast"] for row in rows if row["method"] == "naive"]
    assert naive == pytest.approx(y[:, -1], rel=1e-6)
    seasonal = [row["forecast"] for row in rows if row["method"] == "seasonal_naive"]
    assert seasonal == pytest.approx(y[:, -12], rel=1e-6)
