"""Series that lack periods: judged without them where few are missing, listed with what was done, never filled in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from discreet.changes import intermittent, smoothing, standards, tracking
from discreet.changes.backtest import backtest_changes
from discreet.changes.exceptions import exception_report
from discreet.changes.forecasters import BUILT_IN
from discreet.changes.panel import read_panel
from discreet.words.errors import DataError
from faults_of import about

from .test_backtest import panel

MONTHS = 60


def lacking(*holes: tuple[str, int]) -> pd.DataFrame:
    """The panel without some months of some series, counted from the end: 0 is the last."""
    rows = panel(n=40, months=MONTHS)
    gone = np.zeros(len(rows), bool)
    for name, before_end in holes:
        gone |= ((rows.series == name) & (rows.groupby("series").cumcount() == MONTHS - 1 - before_end)).to_numpy()
    return rows[~gone]


def test_one_missing_month_does_not_set_a_series_aside():
    found = exception_report(lacking(("s003", 20)), capacity=5)
    assert "s003" in {row["series"] for row in found.rows}
    assert {row["kind"] for row in found.set_aside} == {"return"}
    (told,) = found.gaps
    assert told["series"] == "s003" and told["missing"] == 1 and told["first"] == told["last"] == "2018-04-30"
    assert "1 series with gaps" in found.summary() and found.to_dict()["gaps"] == found.gaps


def test_few_gaps_and_a_recent_stretch_decide():
    many = [("s001", k) for k in range(8, 40, 4)]  # 8 of 60
    found = exception_report(lacking(("s002", 5), ("s003", 6), *many), capacity=5)
    aside = {row["series"]: row for row in found.set_aside if row["kind"] == "gaps"}
    assert set(aside) == {"s001", "s002"}
    assert "8 of 60 periods" in aside["s001"]["why"] and "2019-07-31" in aside["s002"]["why"]
    assert [row["series"] for row in found.gaps] == ["s003"]


def test_a_series_that_is_missing_at_an_origin_has_no_case_there():
    rows = lacking(("s003", 10))
    found = backtest_changes(rows, periods=12, capacity=5)
    held = read_panel(rows)
    hole = MONTHS - 11
    assert np.isnan(held.values[3, hole]) and held.first[3] == 0 and held.last[3] == MONTHS - 1
    assert len(found.rows) == 12


def test_missing_periods_have_no_part_in_moments_by_hand():
    rows = lacking(("s003", 20))
    y = read_panel(rows).values[3]
    base = standards.at_origins(y[None], np.array([0]), np.array([MONTHS - 1]))
    change = np.diff(y)
    change = change[np.isfinite(change)]
    assert len(change) == MONTHS - 3
    assert base.change_sd[0] == pytest.approx(change.std(ddof=1)) and base.change_mean[0] == pytest.approx(
        change.mean()
    )


def test_smoothing_passes_over_a_missing_period_by_hand():
    y = np.array([[5.0, 7.0, np.nan, 6.0, 8.0, np.nan]])
    level = smoothing.simple(y, np.array([5]), levels=np.array([0.5])).level[0, 0]
    assert level == pytest.approx(((5 + 7) / 2 + 6) / 4 + 4)
    long = np.arange(30.0)[None] * 2 + 1
    torn = long.copy()
    torn[0, [4, 15, 16]] = np.nan
    states = smoothing.with_trend(torn, np.array([29]))
    assert smoothing.ahead(states, 1)[0, 0] == pytest.approx(61.0)  # a line is a line, whatever is missing


@pytest.mark.parametrize("name", list(BUILT_IN))
def test_a_forecast_with_gaps_is_near_that_without(name):
    rng = np.random.default_rng(0)
    whole = 100 + 10 * np.sin(np.arange(72) * np.pi / 6) + rng.normal(0, 1, (20, 72))
    torn = whole.copy()
    torn[np.arange(20), rng.integers(20, 60, 20)] = np.nan
    both = [BUILT_IN[name](each, np.array([71]), 1, 12)[:, 0] for each in (whole, torn)]
    assert np.isfinite(both[1]).all() and np.abs(both[0] - both[1]).max() < 3


def test_signals_and_intermittent_methods_take_gaps():
    torn = np.array([[3.0, 0, 2, np.nan, 0, 4, 1, 2]])
    for made in (tracking.trigg, tracking.brown, intermittent.croston, intermittent.tsb):
        assert np.isfinite(made(torn, np.array([7]))).all()


def test_an_infinite_value_is_called_one():
    rows = panel(n=6)
    rows.loc[rows.index[100], "value"] = np.inf
    found = exception_report(rows, capacity=2)
    (aside,) = found.set_aside
    assert aside["series"] == "s001" and "infinite" in aside["why"] and "2018-05-31" in aside["why"]
    rows["value"] = np.where(rows.series < "s005", np.inf, rows.value)
    with pytest.raises(DataError, check=about("panel", naming=("s000", "infinite"))):
        exception_report(rows, capacity=2)


def test_forecasts_of_a_missing_period_are_no_coming_ones():
    rows = lacking(("s003", 4), ("s004", 20))
    whole = panel(n=40, months=MONTHS)
    made = whole.rename(columns={"value": "forecast"}).assign(method="m")
    made["forecast"] *= np.random.default_rng(0).normal(1, 0.2, len(made))
    coming = made[made.t == made.t.max()].assign(t=made.t.max() + pd.offsets.MonthEnd(1))
    late = pd.concat([made[made.t > "2016-12-31"], coming])
    found = exception_report(rows, late, capacity=5)
    assert {row["t"] for row in found.rows} == {"2020-01-31"}
    assert {row["series"] for row in found.set_aside if row["kind"] == "gaps"} == {"s003"}


def test_sums_carry_a_missing_tract():
    rows = lacking(("s003", 20)).assign(region=lambda each: np.where(each.series < "s020", "A", "B"))
    found = exception_report(rows, hierarchy=["region"], capacity=5)
    from discreet.changes.levels import branches

    tree = branches(rows, read_panel(rows), ["region"])
    values = read_panel(rows).values
    filled = np.where(np.isnan(values[:20, -21]), values[:20, -22], values[:20, -21])
    assert tree.panel.values[tree.panel.names.tolist().index("A"), -21] == pytest.approx(filled.sum())
    assert [row["series"] for row in found.gaps] == ["s003"]
