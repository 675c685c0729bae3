from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.changes.cases import cases
from discreet.words.errors import DataError
from faults_of import about


def tidy():
    rng = np.random.default_rng(0)
    panel = pd.DataFrame(
        {
            "series": np.repeat(["b", "a", "c"], 10),
            "t": np.tile(np.arange(10), 3),
            "value": rng.normal(size=30),
        }
    )
    forecasts = pd.DataFrame(
        [(s, m, t, rng.normal()) for m in ("x", "w") for s in "abc" for t in (8, 9)],
        columns=["series", "method", "t", "forecast"],
    )
    return panel.sample(frac=1, random_state=1), forecasts.sample(frac=1, random_state=2)


def value(panel, series, t):
    return panel[(panel.series == series) & (panel.t == t)].value.item()


def history(found, i):
    return found.panel.values[found.row[i], found.panel.first[found.row[i]] : found.origin[i] + 1]


def test_cases_are_aligned_and_histories_end_at_the_origin():
    panel, forecasts = tidy()
    for horizon in (1, 2):
        found = cases(panel, forecasts, horizon=horizon)
        assert len(found) == 6
        for i, (series, t) in enumerate(zip(found.series, found.t, strict=True)):
            assert found.actual[i] == value(panel, series, t)
            own = panel[panel.series == series].sort_values("t")
            np.testing.assert_array_equal(history(found, i), own[own.t <= t - horizon].value)
            for m, method in enumerate(found.methods):
                rows = forecasts[(forecasts.series == series) & (forecasts.t == t) & (forecasts.method == method)]
                assert found.forecasts[m, i] == rows.forecast.item()


def test_any_frame_will_do():
    panel, forecasts = tidy()
    expected = cases(panel, forecasts)
    frames = {
        "polars": (pl.from_pandas(panel), pl.from_pandas(forecasts)),
        "lazy": (pl.from_pandas(panel).lazy(), pl.from_pandas(forecasts).lazy()),
        "arrow": (pa.Table.from_pandas(panel), pa.Table.from_pandas(forecasts)),
        "duckdb": (duckdb.sql("from panel"), duckdb.sql("from forecasts")),
    }
    for p, f in frames.values():
        found = cases(p, f)
        np.testing.assert_array_equal(found.series, expected.series)
        np.testing.assert_array_equal(
            found.forecasts[np.argsort(found.methods)], expected.forecasts[np.argsort(expected.methods)]
        )


@pytest.mark.parametrize("make", [lambda t: pd.Timestamp("2020-01-01") + pd.DateOffset(months=t), "m{:02d}".format])
def test_periods_may_be_dates_or_text(make):
    panel, forecasts = tidy()
    expected = cases(panel, forecasts)
    panel["t"], forecasts["t"] = [make(t) for t in panel.t], [make(t) for t in forecasts.t]
    np.testing.assert_array_equal(cases(panel, forecasts).actual, expected.actual)


def test_a_period_after_the_panel_has_no_outcome_but_a_history():
    panel, forecasts = tidy()
    found = cases(panel[panel.t < 9], forecasts)
    future = found.t == 9
    assert np.isnan(found.actual[future]).all() and np.isfinite(found.actual[~future]).all()
    assert all(len(history(found, i)) == 9 for i in np.flatnonzero(future)) and found.coming.sum() == future.sum()


def test_a_period_that_is_missing_is_neither_an_outcome_nor_an_origin():
    panel, forecasts = tidy()
    assert len(cases(panel.assign(value=panel.value.where(panel.t != 3)), forecasts)) == 6
    found = cases(panel[panel.t != 8], forecasts)
    assert found.t.tolist() == [8] * 3 and np.isnan(found.actual).all() and not found.coming.any()
    ended = cases(panel[(panel.t < 8) | (panel.series != "b")], forecasts)
    assert [(s, int(t)) for s, t in zip(ended.series, ended.t, strict=True) if s == "b"] == [
        ("b", 8)
    ]  # its outcome never came


def test_missing_forecasts_are_refused_or_dropped():
    panel, forecasts = tidy()
    gone = forecasts[~((forecasts.method == "w") & (forecasts.series == "b"))]
    with pytest.raises(DataError, check=about("forecasts")):
        cases(panel, gone)
    assert set(cases(panel, gone, missing="drop").series) == {"a", "c"}


def changed(frame, **columns):
    return frame.assign(**columns)


@pytest.mark.parametrize(
    ("change", "about"),
    [
        (lambda p, f: (p.drop(columns="value"), f), "panel"),
        (lambda p, f: (p, f.rename(columns={"forecast": "guess"})), "forecasts"),
        (lambda p, f: (p[p.t < 0], f), "panel"),
        (lambda p, f: ("nowhere.csv", f), "panel"),
        (lambda p, f: (changed(p, value="about " + p.value.astype(str)), f), "panel"),
        (lambda p, f: (p[p.series == "a"], f[f.series == "a"]), "panel"),
        (lambda p, f: (p[p.series != "a"], f), "forecasts"),
        (lambda p, f: (pd.concat([p, p[:1]]), f), "panel"),
        (lambda p, f: (p, pd.concat([f, f[:1]])), "forecasts"),
        (lambda p, f: (p[p.t > 8], f[f.t == 9]), "panel"),
        (lambda p, f: (p, changed(f, forecast=np.nan)), "forecasts"),
        (lambda p, f: (p, f[f.t < 0]), "forecasts"),
        (lambda p, f: (changed(p, t="month " + p.t.astype(str)), f), "forecasts"),
        (lambda p, f: (p, changed(f, horizon=3)), "horizon"),
    ],
)
def test_refusals(change, about):
    with pytest.raises(DataError) as refused:
        cases(*change(*tidy()))
    assert refused.value.about == about


def test_bad_arguments():
    for horizon in (0, 1.5, "1"):
        with pytest.raises(DataError) as refused:
            cases(*tidy(), horizon=horizon)
        assert refused.value.about == "horizon"
    with pytest.raises(DataError) as refused:
        cases(*tidy(), missing="fill")
    assert refused.value.about == "missing"


def test_limits_beside_a_method_are_its_quantiles_and_no_methods():
    """Red before: statsforecast's AutoETS-lo-90 was a method of its own, and often the best."""
    panel, forecasts = tidy()
    wide = forecasts.pivot(index=["series", "t"], columns="method", values="forecast").reset_index()
    limits = wide.assign(**{f"{m}-{end}-90": wide[m] + by for m in "xw" for end, by in (("lo", -1.0), ("hi", 2.0))})
    long = pd.concat(
        wide.melt(["series", "t"], list("xw"), "method", "forecast").assign(
            quantile=q, forecast=lambda f, b=b: f.forecast + b
        )
        for q, b in ((0.05, -1.0), (0.5, 0.0), (0.95, 2.0))
    )
    found, expected = cases(panel, limits, horizon=1), cases(panel, long, horizon=1)
    assert set(found.methods) == {"x", "w"}
    np.testing.assert_allclose(found.levels, expected.levels)
    for method in "xw":
        here, there = found.methods.index(method), expected.methods.index(method)
        np.testing.assert_allclose(found.spread[here], expected.spread[there])
        np.testing.assert_allclose(found.forecasts[here], expected.forecasts[there])
    partly = cases(
        panel, limits.drop(columns=["w-lo-90", "w-hi-90"]), horizon=1
    )  # then points are compared with points
    assert set(partly.methods) == {"x", "w"} and partly.spread is None
