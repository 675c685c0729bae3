from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pyarrow as pa
import pytest

from discreet.change import forecasters
from discreet.change.exceptions import exception_report
from discreet.change.forecasters import METHODS, forecast_panel
from discreet.errors import DataError, MissingExtra

INSTALLED = importlib.util.find_spec("statsforecast") is not None
needs_extra = pytest.mark.skipif(not INSTALLED, reason="the forecast extra is not installed")


def panel(n=2, months=40):
    rng = np.random.default_rng(0)
    y = 100 + 10 * np.sin(np.arange(months) * np.pi / 6) + rng.normal(0, 1, (n, months)).cumsum(axis=1)
    names = np.repeat([f"s{i}" for i in range(n)], months)
    return pa.table({"series": names, "t": np.tile(np.arange(months), n), "value": y.ravel()}), y


def test_without_the_extra_the_message_is_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsforecast", None)
    with pytest.raises(MissingExtra, match=r"pip install 'discreet\[forecast\]'"):
        forecast_panel(panel()[0])


def test_refusals_need_no_extra():
    with pytest.raises(DataError, match="'prophet' is not known; choose from naive, seasonal_naive"):
        forecast_panel(panel()[0], methods=("prophet",))
    with pytest.raises(DataError, match="Horizon 0"):
        forecast_panel(panel()[0], horizon=0)


def test_labels_of_later_periods():
    later = forecasters._later
    assert later(np.array([3, 4, 5]), 2) == 7
    assert later(np.array([2000, 2004]), 1) == 2008
    months = np.array(["2001-11-01", "2001-12-01"], "datetime64[D]")
    assert later(months, 2) == np.datetime64("2002-02-01")
    ends = np.array(["2001-11-15", "2001-12-15"], "datetime64[D]")
    assert later(ends, 1) == np.datetime64("2002-01-15")
    weeks = np.array(["2001-11-01", "2001-11-08"], "datetime64[D]")
    assert later(weeks, 1) == np.datetime64("2001-11-15")
    assert "2001-12" < later(np.array(["2001-11", "2001-12"], object), 1) < "2002-01"


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
    with pytest.raises(DataError, match=r"history of 4 periods \(IndexError\)"):
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
    assert {row["t"][:10] for row in report.rows} == {"1993-05-01"}


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
