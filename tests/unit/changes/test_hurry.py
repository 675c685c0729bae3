"""Files as planners in a hurry have them: dates of spreadsheets, two-digit years, forecasts that do not fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from discreet.changes.exceptions import exception_report
from discreet.changes.forecasters import forecast_panel
from discreet.changes.listed import chance
from discreet.changes.panel import read_panel
from discreet.words.errors import DataError
from faults_of import about

from .test_backtest import panel


def written(tmp_path, spell) -> str:
    rows = panel(n=8)
    path = tmp_path / "panel.csv"
    rows.assign(t=[spell(t) for t in rows.t]).to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize(
    "spell",
    [
        lambda t: (t - pd.Timestamp("1899-12-30")).days,
        lambda t: t.strftime("%d.%m.%Y 00:00"),
        lambda t: t.strftime("%m/%d/%Y 00:00:00"),
        lambda t: t.strftime("%d/%m/%Y"),
        lambda t: t.strftime("%Y/%m/%d"),
        lambda t: t.strftime("%m/%d/%Y %I:%M:%S %p"),
        lambda t: t.strftime("%d/%m/%Y %I:%M:%S %p"),
        lambda t: t.strftime("%d-%m-%Y %H:%M:%S"),
        lambda t: t.strftime("%d-%b-%y"),
        lambda t: t.strftime("%B %d, %Y"),
    ],
    ids=[
        *("days of a spreadsheet", "German midnight", "American midnight", "slashes", "year first"),
        *("American twelve hours", "Indian twelve hours", "dashes", "days of a spreadsheet in words", "American words"),
    ],
)
def test_days_are_days_however_they_are_spelled(spell, tmp_path):
    found, expected = read_panel(written(tmp_path, spell)), read_panel(panel(n=8))
    np.testing.assert_array_equal(found.periods.astype("M8[D]"), expected.periods.astype("M8[D]"))
    np.testing.assert_allclose(found.values, expected.values)


@pytest.mark.parametrize("form", ["%YM%m", "%Y M%m", "%Y-M%m"])
def test_months_of_statistical_offices_are_months(form, tmp_path):
    found = read_panel(written(tmp_path, lambda t: t.strftime(form)))
    assert str(found.later(1)) == "2020-01-01"


@pytest.mark.parametrize(
    "form", ["%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%y-%m-%d %H:%M:%S", "%m/%d/%y %I:%M %p"]
)
def test_years_of_two_digits_are_refused(form, tmp_path):
    """31/01/20 was read as a day of 2031, and 05/01/20 as one of 2005, without a word."""
    frame = panel(n=8).assign(t=lambda rows: rows.t.dt.strftime(form))
    for file in (written(tmp_path, lambda t: t.strftime(form)), frame):
        with pytest.raises(DataError, check=about("time")):
            read_panel(file)


def test_a_day_and_a_month_that_can_be_exchanged_are_refused_in_files_too(tmp_path):
    for form in ("{0:02d}/{1:02d}/2020", "{0:02d}-{1:02d}-2020 00:00:00", "{0:02d}/{1:02d}/2020 12:00:00 AM"):
        days = [form.format(day, month) for month in range(1, 7) for day in range(1, 13)]
        both = {"series": np.repeat(["a", "b"], len(days)), "t": days * 2, "value": np.arange(2.0 * len(days))}
        pd.DataFrame(both).to_csv(tmp_path / "panel.csv", index=False)
        with pytest.raises(DataError, check=about("time")):
            read_panel(tmp_path / "panel.csv")


def test_until_a_month_is_until_its_end():
    assert str(read_panel(panel(n=4), until="2019-06").periods[-1]) == "2019-06-30"
    assert str(read_panel(panel(n=4), until="2018").periods[-1]) == "2018-12-31"
    assert str(read_panel(panel(n=4), until="2019-06-29").periods[-1]) == "2019-05-31"


@pytest.mark.parametrize(
    ("asked", "subject"),
    [
        ({"cost_ratio": 0.0}, "cost_ratio"),
        ({"cost_ratio": -1.0, "capacity": 5}, "cost_ratio"),
        ({"capacity": 0}, "capacity"),
        ({"prevalence": 0.0}, "prevalence"),
        ({"cutoff": 95.0}, "cutoff"),
        ({"cutoff": {"decline": 0.9}}, "cutoff"),
        ({"fpr": (0.0, 20.0)}, "fpr"),
    ],
)
def test_wrong_settings_are_found_before_the_panel_is_read(asked, subject):
    with pytest.raises(DataError, check=about(subject)):
        exception_report("there is no such file", **asked)


def test_forecasts_that_do_not_fit_are_told():
    rows = panel(n=30)
    made = forecast_panel(rows, methods=("ses",)).to_pandas()
    made["t"] = pd.to_datetime(made.t)
    found = exception_report(rows, made[made.series != "s003"], capacity=5)
    (aside,) = [row for row in found.set_aside if row["kind"] == "unforecast"]
    assert aside["series"] == "s003" and "1 without a forecast" in found.summary()
    late = made[(made.series != "s003") | (made.t < rows.t.max())]
    assert "s003" in {row["series"] for row in exception_report(rows, late, capacity=5).set_aside}
    for wrong, naming in (
        (made.assign(forecast=made.forecast.where(made.index != 5, np.inf)), ("infinite", made.series[5])),
        (made.assign(t=made.t + pd.Timedelta(days=1)), ("2019-02-01", "2019-12-31")),
        (made[made.t <= rows.t.max()], ()),
    ):
        with pytest.raises(DataError, check=about("forecasts", naming=naming)):
            exception_report(rows, wrong, capacity=5)


def test_small_chances_are_not_called_none():
    assert chance({"chance": 0.001, "low": 0.0, "high": 0.004}) == "< 1 %"
    assert chance({"chance": 0.001, "low": 0.0, "high": 0.05}) == "< 1 % (0 % to 5 %)"
    assert chance({"chance": 0.42, "low": 0.3, "high": 0.5}) == "42 % (30 % to 50 %)"


def test_periods_spelled_in_two_ways_and_months_to_come_are_named():
    rows = panel(n=6)
    months = rows.assign(t=rows.t.dt.strftime("%Y-%m"))
    quarters = np.where((rows.series == "s004") & (rows.t.dt.month == 1), rows.t.dt.strftime("%YQ1"), months.t)
    with pytest.raises(DataError, check=about("panel", naming=("s004", "2015Q1", "2015-01"))):
        read_panel(months.assign(t=quarters))
    for spell in ("2095-01", 209501):
        late = months if isinstance(spell, str) else months.assign(t=months.t.str.replace("-", "").astype(int))
        more = pd.DataFrame({"series": ["s002"], "t": [spell], "value": [1.0]})
        with pytest.raises(DataError, check=about("panel", naming=("s002", str(spell)))):
            read_panel(pd.concat([late, more]))
        assert len(read_panel(pd.concat([late, more]), until=late.t.max())) == 6
