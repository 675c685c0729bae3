from __future__ import annotations

import importlib.util

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discreet.change import forecasters
from discreet.change.exceptions import exception_report
from discreet.change.forecasters import METHODS, forecast_panel
from discreet.errors import DataError
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


class Fake:
    """Stands in for statsforecast.models: forecasts the last value plus the horizon."""

    @staticmethod
    def Naive():  # noqa: N802
        class Model:
            def forecast(self, y, h):
                if len(y) < 5:
                    raise IndexError
                return {"mean": y[-1] + np.arange(1, h + 1)}

        return Model()


@pytest.mark.parametrize("horizon", [1, 2])
def test_each_forecast_knows_only_its_history(monkeypatch, horizon):
    monkeypatch.setattr(forecasters, "_statsforecast", lambda: Fake)
    data, y = panel()
    rows = forecast_panel(data, methods=("naive",), horizon=horizon, past=3).to_pylist()
    assert [row["t"] for row in rows if row["series"] == "s1"] == [37, 38, 39, 39 + horizon]
    for row in rows:
        assert row["forecast"] == y[int(row["series"][1]), row["t"] - horizon] + horizon
    with pytest.raises(DataError, check=about("methods")):
        forecast_panel(data, methods=("naive",), past=36)


@pytest.mark.parametrize("unit", ["D", "us"])
def test_dates_go_in_and_come_out(monkeypatch, unit):
    monkeypatch.setattr(forecasters, "_statsforecast", lambda: Fake)
    data, _ = panel()
    months = (np.datetime64("1990-01") + np.arange(40)).astype(f"datetime64[{unit}]")
    data = data.set_column(1, "t", pa.array(np.tile(months, len(data) // 40)))
    made = forecast_panel(data, methods=("naive",), past=2)
    found = [t for t, name in zip(made["t"].to_numpy(), made["series"].to_pylist(), strict=True) if name == "s1"]
    assert [str(t)[:10] for t in found] == ["1993-03-01", "1993-04-01", "1993-05-01"]
    report = exception_report(data, forecast_panel(data, methods=("naive",), past=8), cutoff=0.6)
    assert {row["t"][:10] for row in (*report.rows, *report.set_aside)} == {"1993-05-01"}


@pytest.mark.parametrize("frequency", ["ME", "QE", "YE", "B", "W-THU", "MS"])
def test_the_coming_period_has_its_own_label(monkeypatch, frequency):
    monkeypatch.setattr(forecasters, "_statsforecast", lambda: Fake)
    data, _ = panel()
    days = pd.date_range("2019-01-31", periods=42, freq=frequency).to_numpy()
    data = data.set_column(1, "t", pa.array(np.tile(days[:40], 2)))
    for horizon in (1, 2):
        made = forecast_panel(data, methods=("naive",), past=8, horizon=horizon)
        assert made["t"].to_numpy().max() == days[39 + horizon]
        report = exception_report(data, made, cutoff=0.6, horizon=horizon)
        assert {row["t"][:10] for row in (*report.rows, *report.set_aside)} == {str(days[39 + horizon])[:10]}


def test_a_series_that_has_ended_gets_no_coming_period(monkeypatch):
    monkeypatch.setattr(forecasters, "_statsforecast", lambda: Fake)
    data, _ = panel(n=3)
    data = data.slice(0, 115)
    rows = forecast_panel(data, methods=("naive",), past=2).to_pylist()
    last = {row["series"]: row["t"] for row in rows}
    assert last == {"s0": 40, "s1": 40, "s2": 34}


def broken(change):
    data, _ = panel()
    rows = data.to_pandas()
    return change(rows)


@pytest.mark.parametrize(
    ("change", "subject", "fact"),
    [
        (lambda p: pd.concat([p, p[:1]]), "panel", "two rows"),
        (lambda p: p.assign(value=np.where(p.series == "s1", 7.1, p.value)), "base", "1 of 2"),
        (lambda p: p.assign(value=np.where((p.series == "s1") & (p.t < 30), 0, p.value)), "base", "1 of 2"),
        (lambda p: p.assign(value=np.where(p.series == "s1", 0.1 * p.t, p.value)), "base", "1 of 2"),
        (lambda p: p.assign(value=np.where(p.t == 3, np.nan, p.value)), "panel", "2 values"),
        (lambda p: p[p.series == "s1"], "panel", "1 series"),
        (lambda p: p[p.t > 26], "histories", "fewer than 3"),
        (lambda p: p.assign(t=pd.Timestamp("2024-01-01") + pd.to_timedelta(p.t**2, unit="D")), "periods", "days apart"),
    ],
)
def test_what_cannot_be_judged_is_refused_before_the_work(monkeypatch, change, subject, fact):
    def begun():
        raise AssertionError("work was begun")

    monkeypatch.setattr(forecasters, "_statsforecast", begun)
    with pytest.raises(DataError, check=about(subject, naming=(fact,))):
        forecast_panel(broken(change), methods=("naive",))


def test_a_straight_line_can_be_judged_by_its_level(monkeypatch):
    monkeypatch.setattr(forecasters, "_statsforecast", lambda: Fake)
    data = broken(lambda p: p.assign(value=np.where(p.series == "s1", 0.1 * p.t, p.value)))
    assert len(forecast_panel(data, methods=("naive",), past=8, policy="absolute")) == 18


@needs_extra
@pytest.mark.full_size  # importing statsforecast compiles for a quarter of a minute
def test_every_method_forecasts():
    data, y = panel()
    table = forecast_panel(data, past=1)
    assert set(table["method"].to_pylist()) == set(METHODS)
    rows = [row for row in table.to_pylist() if row["t"] == 40]
    assert all(abs(row["forecast"] - y[int(row["series"][1]), -1]) < 40 for row in rows)
    naive = [row["forecast"] for row in rows if row["method"] == "naive"]
    assert naive == pytest.approx(y[:, -1], rel=1e-6)
    seasonal = [row["forecast"] for row in rows if row["method"] == "seasonal_naive"]
    assert seasonal == pytest.approx(y[:, -12], rel=1e-6)
