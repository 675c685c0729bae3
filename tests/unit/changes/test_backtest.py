"""Past lists are made as they would have been at their time, and a report's words follow its numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discreet.changes.backtest import backtest_changes
from discreet.changes.exceptions import exception_report
from discreet.changes.page import backtest_page, exception_page
from discreet.words.errors import DataError
from faults_of import about

PANELS = Path(__file__).parents[4] / "shared" / "data" / "panels"
needs_data = pytest.mark.skipif(not PANELS.is_dir(), reason="the real panels are not there")


def panel(seed=0, n=120, months=60, seasons=0.5, noise=0.1):
    rng = np.random.default_rng(seed)
    figures = rng.normal(0, seasons, (n, 12))[:, np.arange(months) % 12]
    y = np.exp(3 + figures + rng.normal(0, noise, (n, months)))
    dates = pd.date_range("2015-01-31", periods=months, freq="ME")
    return pd.DataFrame(
        {"series": np.repeat([f"s{i:03d}" for i in range(n)], months), "t": np.tile(dates, n), "value": y.ravel()}
    )


def test_a_past_list_does_not_change_when_the_future_does():
    rows = panel()
    end = pd.Timestamp("2019-01-31")
    before = backtest_changes(rows[rows.t <= end], periods=10)
    poisoned = rows.assign(value=np.where(rows.t > end, rows.value * 1e3, rows.value))
    after = backtest_changes(poisoned, periods=21)
    known = {row["t"]: row for row in after.rows}
    assert before.rows == [known[row["t"]] for row in before.rows]


def uneven(months=66):
    """Series of unequal lengths: some end, some begin late, some lack months."""
    rows = panel(n=60, months=months)
    place, number = rows.groupby("series").cumcount(), rows.series.str[1:].astype(int)
    gone = (number % 7 == 1) & (place >= months - 1 - number % 5) | (number % 7 == 2) & (place < number)
    gone |= (number % 7 == 3) & (place % 31 == number % 31) | (number % 7 == 4) & (place == months - 3 - number % 9)
    rows["value"] = rows.value.where(~gone)
    return rows.assign(promoted=((place * 7 + number * 3) % 5 == 0).astype(float))


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"horizon": 3, "capacity": None, "cost_ratio": 5.0},
        {"by_value": True, "direction": "both", "past": 15},
        {"past": 40, "method": "ses@0.1", "lag": 12, "prevalence": 0.1},
        {"known": ["promoted"], "past": 12},
    ],
    ids=["usual", "horizon", "value", "long", "known"],
)
def test_the_row_of_a_month_is_the_report_of_that_month(asked):
    """With all that was known then, and nothing else: also where series end, begin and lack months later."""
    rows, asked = uneven(), {"capacity": 8, "methods": ("seasonal_naive", "ses"), **asked}
    found = backtest_changes(rows, periods=6, **asked)
    ends, known = np.sort(rows.t.unique()), bool(asked.get("known"))
    for row in found.rows[1::3]:
        place = int(np.searchsorted(ends, np.datetime64(row["t"])))
        end = ends[place - asked.get("horizon", 1)]
        until = rows[rows.t <= (ends[place] if known else end)]
        cut = until.assign(value=until.value.where(until.t <= end))
        report = exception_report(cut, **asked)
        assert report.rows[0]["t"] == row["t"] and row["flagged"] == len(report.flagged)
        assert row["series"] == [each["series"] for each in report.flagged]
        assert row["expected"] == pytest.approx(report.expected_true) and row["method"] == report.method
        assert (row["low"], row["high"]) == report.right
        assert row["learnt"] == report.past_periods
    assert backtest_page(found).html() and found.tidy().num_rows == 6 and "6 periods" in found.summary()


def test_the_row_of_a_month_with_given_forecasts_is_the_report_of_that_month():
    rows = uneven()
    made = panel(n=60, months=66).rename(columns={"value": "forecast"}).assign(method="m")
    made["forecast"] *= np.random.default_rng(3).normal(1, 0.2, len(made))
    ends = np.sort(rows.t.unique())
    began = rows.dropna().groupby("series").t.min().to_dict()
    made = made[(made.t > ends[20]) & (made.t > made.series.map(began))]
    found = backtest_changes(rows, made, periods=4, capacity=8)
    for row in found.rows:
        end = ends[int(np.searchsorted(ends, np.datetime64(row["t"]))) - 1]
        report = exception_report(rows[rows.t <= end], made[made.t <= row["t"]], capacity=8)  # all that was forecast
        assert (
            row["series"] == [each["series"] for each in report.flagged] and (row["low"], row["high"]) == report.right
        )
        assert row["expected"] == pytest.approx(report.expected_true) and row["learnt"] == report.past_periods


def test_seasons_are_foreseen_and_lots_are_not():
    found = backtest_changes(panel(), periods=12, capacity=4)
    assert found.precision() > 0.5 > 3 * found.precision("by_lot") and "BARELY" not in found.summary()
    with pytest.raises(DataError, check=about("ranking")):
        found.precision("expert")
    rng = np.random.default_rng(1)
    walk = panel(1).assign(value=rng.normal(size=120 * 60).reshape(120, 60).cumsum(axis=1).ravel())
    report = exception_report(walk, capacity=10)
    assert "CHANCE" in report.warning and report.summary().startswith(report.warning)
    assert report.warning.split(".")[0] in exception_page(report).html()


def test_the_page_and_the_notebook_show_each_series():
    report = exception_report(panel(), capacity=4, direction="both")
    page, notebook = exception_page(report).html(), report._repr_html_()
    for row, detail in zip(report.flagged, report.details, strict=True):
        assert row["series"] in page and row["series"] in notebook and detail["reason"] in page
        assert len(detail["recent"]) == 36
    assert page.count('class="spark"') == notebook.count('class="spark"') == 4
    assert len(report.history) == 24 and {"low", "high", "right", "expected"} <= set(report.history[0])
    assert exception_page(report).tables["flagged"].rows[0][1] == report.flagged[0]["series"]


def test_both_directions_find_what_each_finds():
    rows = panel()
    down, up, both = (
        exception_report(rows, capacity=10, direction=direction) for direction in ("decline", "increase", "both")
    )
    assert both.past_positives == pytest.approx(down.past_positives + up.past_positives, rel=0.15)
    likely = {row["series"] for row in down.flagged[:3]} | {row["series"] for row in up.flagged[:3]}
    assert len(likely & {row["series"] for row in both.flagged}) >= 4


def test_by_value_large_series_come_first():
    rows = panel()
    big = rows.assign(value=rows.value * np.where(rows.series.str[-1] == "7", 1000.0, 1.0))
    plain, valued = (exception_report(big, capacity=10, by_value=value) for value in (False, True))
    assert [row["series"] for row in plain.rows] == [row["series"] for row in exception_report(rows, capacity=10).rows]
    size = big.groupby("series").value.mean()
    worth = [row["chance"] * size[row["series"]] for row in valued.rows]
    assert worth == sorted(worth, reverse=True) and worth[0] > 50 * plain.rows[0]["chance"]


def test_seasonal_differences_measure_from_a_year_before():
    rows = panel(seasons=1.0)
    y = rows.value.to_numpy().reshape(120, 60)
    for row in exception_report(rows, capacity=10, lag=12, method="ses").rows:
        own = y[int(row["series"][1:])]
        change = own[12:] - own[:-12]
        expected = -(row["forecast"] - own[-12] - change.mean()) / change.std(ddof=1)
        assert row["score"] == pytest.approx(expected) and row["last"] == own[-1]
    with pytest.raises(DataError, check=about("lag")):
        exception_report(rows, lag=2, horizon=3)


def test_too_few_periods():
    with pytest.raises(DataError, check=about("periods")):
        backtest_changes(panel(months=14))
    with pytest.raises(DataError, check=about("periods")):
        backtest_changes(panel(), periods=0)


def distributions(rows, sd, kind):
    """Forecasts of the last 25 months by the value a year before, as quantiles or samples of a normal law."""
    from scipy.special import ndtri

    wide = rows.pivot_table(index="series", columns="t", values="value")
    rng, levels, parts = np.random.default_rng(0), np.array([0.05, 0.25, 0.5, 0.75, 0.95]), []
    for t in wide.columns[-24:].append(wide.columns[-1:] + pd.offsets.MonthEnd(1)):
        middle = wide[t - pd.offsets.MonthEnd(12)]
        layers = ndtri(levels) if kind == "quantile" else rng.normal(size=200)
        for k, z in enumerate(layers):
            made = {"series": wide.index, "method": "year", "t": t, "forecast": middle.to_numpy() + z * sd}
            parts.append(pd.DataFrame(made | {kind: levels[k] if kind == "quantile" else k}))
    return pd.concat(parts)


@pytest.mark.parametrize("kind", ["quantile", "sample"])
def test_distributions_rank_by_the_chance_that_they_state(kind):
    from scipy.special import ndtr

    from discreet.changes import standards

    rows = panel(n=40, noise=0.3)
    found = exception_report(rows, distributions(rows, 4.0, kind), capacity=5)
    wide = rows.pivot_table(index="series", columns="t", values="value").to_numpy()
    base = standards.baseline(list(wide))
    cut = base.last + base.change_mean - standards.normal_cutoff(0.95) * base.change_sd
    stated = ndtr((cut - wide[:, -12]) / 4.0)
    for row in found.rows:
        truth = stated[int(row["series"][1:])]
        assert ndtr(row["score"]) == pytest.approx(truth, abs=1e-6 if kind == "quantile" else 0.1)


def test_where_nothing_can_be_ranked_series_and_reasons_are_named():
    rows = panel(n=12)
    late = rows.t > rows.t.max() - pd.DateOffset(months=14)
    stopped = rows.assign(value=np.where(late, 0.0, rows.value))
    with pytest.raises(DataError, check=about("panel", naming=("s000", "discontinued"))):
        exception_report(stopped, capacity=3)


def test_quantiles_in_reversed_order_are_refused_by_name():
    rows = panel(n=40)
    made = distributions(rows, 4.0, "quantile")
    turned = made.assign(quantile=1 - made["quantile"])
    with pytest.raises(DataError, check=about("forecasts", naming=("s000",))):
        exception_report(rows, turned, capacity=5)


@needs_data
@pytest.mark.full_size
@pytest.mark.parametrize("name", ["hospital", "carparts"])
@pytest.mark.parametrize("direction", ["decline", "increase"])
def test_real_panels_are_calibrated_over_24_months(name, direction):
    found = backtest_changes(PANELS / f"{name}_monthly.csv.gz", direction=direction, capacity=20, periods=24)
    assert len(found.rows) == 24 and found.within >= 0.8
    assert found.precision() > 3 * found.precision("by_lot")
    if (name, direction) != ("carparts", "decline"):
        assert found.precision() > 2 * found.precision("naive")
