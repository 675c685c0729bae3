"""Labels of coming periods, beside pandas, which knows calendars by name."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from discreet.changes.calendar import calendar, completed, usual_season
from discreet.words.errors import DataError
from faults_of import about

WEEKS = [f"W-{day}" for day in ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")]
NAMED = ["D", "B", *WEEKS, "2W-WED", "MS", "ME", "BME", "BMS", "QS", "QE", "QE-JAN", "BQE", "YS", "YE", "YE-FEB", "h"]
NAMED += ["SME", "SMS", "SME-10"]


@pytest.mark.parametrize("start", ["2019-02-27", "2022-11-10", "2023-12-31"])
@pytest.mark.parametrize("frequency", NAMED)
@pytest.mark.parametrize("unit", ["D", "us"])
def test_later_periods_are_pandas(frequency, start, unit):
    unit = "us" if frequency == "h" else unit
    made = pd.date_range(start, periods=40, freq=frequency).to_numpy().astype(f"datetime64[{unit}]")
    for length in (16, 25, 30):
        found = calendar(made[:length])
        assert [found.later(k) for k in range(1, 11)] == list(made[length : length + 10])
        assert found.later(1).dtype == made.dtype
        assert found.ahead(made[length : length + 10]).tolist() == list(range(1, 11))


def dates(*texts):
    return np.array(texts, "datetime64[D]")


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (dates("2023-11-30", "2023-12-31", "2024-01-31"), "2024-02-29"),
        (dates("2024-01-31", "2024-02-29"), "2024-03-31"),
        (dates("2024-01-29", "2024-02-29"), "2024-03-29"),
        (dates("2023-12-30", "2024-01-30", "2024-02-29"), "2024-03-30"),
        (dates("2023-06-30", "2023-09-30"), "2023-12-31"),
        (dates("2022-12-31", "2023-12-31"), "2024-12-31"),
        (dates("2016-02-29", "2020-02-29"), "2024-02-29"),
        (dates("2022-02-28", "2023-02-28"), "2024-02-29"),
        (dates("2024-01-15", "2024-02-15"), "2024-03-15"),
        (dates("2024-01-29", "2024-02-26", "2024-03-25"), "2024-04-22"),
        (np.array(["2023-11", "2023-12"]), "2024-01"),
        (np.array(["2023-11-30", "2023-12-31"], object), "2024-01-31"),
        (np.array(["2023Q3", "2023Q4"]), "2024Q1"),
        (np.array(["2023-Q1", "2023-Q3"]), "2024-Q1"),
        (np.array(["2026-W51", "2026-W52"]), "2026-W53"),
        (np.array(["2025W51", "2025W52"]), "2026W01"),
        (np.array([202311, 202312]), "202401"),
        (np.array([20240130, 20240131]), "20240201"),
        (np.array([1, 2, 3]), "4"),
        (np.array([2000, 2004]), "2008"),
        (np.array([1999.0, 2000.0]), "2001.0"),
        (np.array([1990.083, 1990.167, 1990.25]), "1990.3335"),
        (np.array(["week 8", "week 9"]), "week 9 +1"),
    ],
)
def test_labels_by_hand(known, expected):
    found = calendar(known).later(1)
    assert str(found) == expected
    if known.dtype.kind != "O":
        assert np.array([found]).dtype.kind == known.dtype.kind


def of_weeks(*weeks, start="2021-01-30"):
    return np.datetime64(start) + 7 * np.cumsum([0, *weeks]).astype("timedelta64[D]")


@pytest.mark.parametrize("cycle", [(4, 4, 5), (4, 5, 4), (5, 4, 4)])
@pytest.mark.parametrize("longer", [None, 11, 12])
def test_quarters_of_thirteen_weeks(cycle, longer):
    """The calendar of shops: a year of 53 weeks is followed, and foreseen only where it is in the panel."""
    weeks = np.resize(cycle, 60)
    if longer is not None:
        weeks[longer] += 1
    made = of_weeks(*weeks)
    for length in (20, 21, 22, 37):
        found = calendar(made[:length])
        assert [found.later(k) for k in range(1, 20)] == list(made[length : length + 19])
        assert found.ahead(made[length : length + 19]).tolist() == list(range(1, 20))
        assert found.ahead(made[length : length + 1] + 2) is None and usual_season(made[:length]) == 12
        assert [found.rule.at(found.rule.place(day)) for day in made[:length]] == list(made[:length])
    assert calendar(made[:10]).ahead(made[10:]).tolist() == list(range(1, 52))  # over a week that was put in
    assert completed(np.delete(made, 30)).tolist() == made.tolist()
    whole = completed(np.delete(made, 5))  # its own name may be a week late
    assert np.delete(whole, 5).tolist() == np.delete(made, 5).tolist() and whole[4] < whole[5] < whole[6]


def test_weeks_without_a_cycle_are_none():
    for weeks in ((4, 5, 5, 4, 5, 5, 4), (4, 4, 6, 4, 4, 6, 4), (5, 5, 4, 5, 5, 5, 4, 4), (4, 4, 5)):
        with pytest.raises(DataError, check=about("periods")):
            calendar(of_weeks(*weeks))


def test_a_label_beside_the_rule_keeps_its_place():
    """Where a period is missing and another has an odd day: red before, the odd one fell into the next period."""
    known = dates(*(f"2023-{m:02d}-28" for m in range(1, 13)), "2024-02-28", "2024-03-29", "2024-04-28")
    whole = completed(known)
    assert len(whole) == 16 and set(known) < set(whole) and np.datetime64("2024-01-28") in whole


def test_working_days_with_holidays_have_a_next_day_and_no_count():
    days = pd.bdate_range("2024-01-01", "2024-03-28").drop(["2024-01-01", "2024-02-19"]).to_numpy().astype("<M8[D]")
    found = calendar(days)
    assert found.later(1) == np.datetime64("2024-03-29") and found.later(2) == np.datetime64("2024-04-01")
    assert found.ahead(dates("2024-04-02")) is None


def test_labels_that_cannot_be_counted():
    assert calendar(np.array(["a", "b"])).ahead(np.array(["c"])) is None
    assert calendar(np.array([1, 3, 5])).ahead(np.array([8])) is None
    assert calendar(np.array([1, 3, 5])).ahead(np.array([9])).tolist() == [2]
    assert calendar(dates("2024-01-03", "2024-01-10")).ahead(dates("2024-01-18")) is None
    assert calendar(dates("2024-01-31", "2024-02-29")).ahead(dates("2024-03-01", "2024-05-31")).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("known", "fact"),
    [
        (dates("2024-01-03", "2024-01-09", "2024-01-20", "2024-03-04"), "6 to 44 days"),
        (dates("2024-01-31", "2024-02-29", "2024-04-30"), "29 to 61 days"),
        (dates("2024-01-31"), "one period"),
        (np.array([1, 2, 4]), "1 to 2 "),
        (np.array([datetime.date(2024, 1, 3)], "datetime64[us]"), "one period"),
    ],
)
def test_periods_without_a_rule_are_refused(known, fact):
    with pytest.raises(DataError, check=about("periods", naming=(fact,))):
        calendar(known)


@pytest.mark.parametrize(
    ("frequency", "season"),
    [
        ("ME", 12),
        ("MS", 12),
        ("QE", 4),
        ("YE", 1),
        ("W-THU", 52),
        ("D", 7),
        ("B", 5),
        ("h", 24),
        ("30min", 48),
        ("SME", 24),
    ],
)
def test_the_usual_season(frequency, season):
    made = pd.date_range("2019-02-27", periods=40, freq=frequency).to_numpy().astype("datetime64[us]")
    assert usual_season(made) == season
    assert usual_season(np.arange(40)) == usual_season(np.arange(40) ** 2) == usual_season(np.array(["a", "b"])) == 12
