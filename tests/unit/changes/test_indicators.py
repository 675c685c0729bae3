"""Indicators and holidays: found where they lead, of no harm where they do not, never read ahead of their time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

from discreet.changes.backtest import backtest_changes
from discreet.changes.exceptions import exception_report
from discreet.changes.indicators import NAMES
from discreet.changes.levels import branches
from discreet.changes.listwise import list_regression
from discreet.changes.panel import read_panel
from discreet.words.errors import DataError, FitError
from faults_of import about

SERIES, MONTHS = 40, 48
LABELS = np.array([np.datetime64("2020-01") + k for k in range(MONTHS + 1)])
QUICK = ("naive", "ses")


def sales(*, effect: float = 5.0, seed: int = 0) -> dict[str, np.ndarray]:
    """Sales that fall the month after a price rises and in months of holidays; `weather` means nothing."""
    rng = np.random.default_rng(seed)
    price = np.where(rng.random((SERIES, MONTHS + 1)) < 0.04, 4.0, 0.0)
    price = price + rng.normal(10, 0.2, price.shape)
    holiday = (rng.random(MONTHS + 1) < 0.08).astype(float)
    holiday[-1] = 1.0
    value = rng.normal(100, 2, price.shape)
    value[:, 1:] -= effect * (price[:, :-1] - 10)
    value -= effect * holiday * (rng.random(SERIES) < 0.5)[:, None]
    value[:, -1] = np.nan  # the coming month
    return {
        "series": np.repeat([f"s{i:02d}" for i in range(SERIES)], MONTHS + 1),
        "t": np.tile(LABELS.astype(str), SERIES),
        "value": value.ravel(),
        "price": price.ravel(),
        "weather": rng.normal(size=price.size),
        "holiday": np.tile(holiday, SERIES),
    }


def table(found: dict[str, np.ndarray]) -> pa.Table:
    return pa.table({name: pa.array(each, from_pandas=True) for name, each in found.items()})


def test_what_leads_is_found():
    data = table(sales())
    plain = backtest_changes(data, periods=8, capacity=2, methods=QUICK)
    driven = backtest_changes(
        data, periods=8, capacity=2, methods=QUICK, indicators=["price", "weather"], known=["holiday"]
    )
    assert driven.precision() > 2 * plain.precision() and driven.precision() > 0.5
    assert {row["method"] for row in driven.rows} <= {"indicators", "indicators_rank"}
    report = exception_report(data, capacity=5, methods=QUICK, indicators=["price"], known=["holiday"])
    dear = sales()["price"].reshape(SERIES, -1)[:, MONTHS - 1] > 12
    listed = {row["series"] for row in report.flagged}
    assert listed & {f"s{i:02d}" for i in np.flatnonzero(dear)} or not dear.any()


def test_nothing_is_read_ahead_of_its_time():
    """Lagged columns of later periods, and outcomes, are poisoned: no earlier list changes."""
    data = sales()
    asked = {"capacity": 5, "indicators": ["price"], "known": ["holiday"], "until": "2023-06", "methods": QUICK}
    before = exception_report(table(data), **asked)
    late = np.array(data["t"]) > "2023-06"
    poisoned = data | {
        "price": np.where(late, 1e6, data["price"]),
        "value": np.where(late & np.isfinite(data["value"]), -1e6, data["value"]),
    }
    after = exception_report(table(poisoned), **asked)
    assert before.rows == after.rows and before.method == after.method
    where = {"region": np.repeat([f"R{k % 8}" for k in range(SERIES)], MONTHS + 1)}
    both = [exception_report(table(each | where), hierarchy=["region"], **asked) for each in (data, poisoned)]
    assert both[0].rows == both[1].rows and both[0].method == both[1].method
    asked = {"capacity": 5, "periods": 10, "methods": ["naive"], "indicators": ["price"], "known": ["holiday"]}
    past = {name: np.array(each)[np.isfinite(data["value"])] for name, each in poisoned.items()}  # no coming month
    one, other = (backtest_changes(table(each), **asked).rows for each in (data, past))
    early = [row for row in one if row["t"] <= "2023-06"]
    assert len(early) >= 4 and early == other[: len(early)]


def regions(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Prices that rise for whole regions; in the last month before the coming one they rise in R1."""
    rng = np.random.default_rng(9)
    region = np.arange(SERIES) % 8
    dear = rng.random((8, MONTHS + 1)) < 0.05
    dear[:, MONTHS - 1] = np.arange(8) == 1
    price = np.where(dear, 14.0, 10.0)[region] + rng.normal(0, 0.2, (SERIES, MONTHS + 1))
    value = rng.normal(100, 2, price.shape)
    value[:, 1:] -= 5 * (price[:, :-1] - 10)
    value[:, -1] = np.nan
    where = np.repeat([f"R{k}" for k in region], MONTHS + 1)
    return data | {"price": price.ravel(), "value": value.ravel(), "region": where}


def test_sums_have_the_means_of_their_series():
    data = table(regions(sales()))
    report = exception_report(
        data, capacity=1, methods=QUICK, indicators=["price"], known=["holiday"], hierarchy=["region"]
    )
    dear = {"R1", *(f"s{i:02d}" for i in range(1, SERIES, 8))}
    assert {row["series"] for row in report.flagged} <= dear and report.method in NAMES
    assert next(row["series"] for row in report.rows if row["series"].startswith("R")) == "R1"
    plain = exception_report(data, capacity=1, methods=QUICK, hierarchy=["region"])
    assert report.pauc > 1.5 * plain.pauc
    asked = {"periods": 8, "capacity": 2, "methods": QUICK, "hierarchy": ["region"]}
    assert {row["method"] for row in backtest_changes(data, indicators=["price"], **asked).rows} <= {*NAMES}


def test_means_of_sums_by_hand():
    """By hand, with a series that has no number in one period."""
    data = regions(sales())
    panel = read_panel(table(data))
    tree = branches(table(data), panel, ["region"])
    column = np.random.default_rng(1).normal(size=(len(panel), 5))
    column[3, 2] = np.nan
    found = tree.means(column)
    for row in range(len(tree.panel)):
        inside = np.ma.masked_invalid(column[tree.within(row)]).mean(axis=0)
        assert found[row] == pytest.approx(inside.filled(np.nan), nan_ok=True)


def test_a_gap_means_the_same_for_indicators():
    data = sales()
    there = ~((data["series"] == "s07") & (data["t"] == "2020-05"))
    gone = table({name: each[there] for name, each in data.items()})
    zeros = {name: np.where(there, each, 0.0) if name in ("value", "price") else each for name, each in data.items()}
    asked = {"capacity": 5, "indicators": ["price"], "methods": QUICK}
    assert exception_report(gone, gaps="zero", **asked).rows == exception_report(table(zeros), **asked).rows
    assert "gaps" not in {row["kind"] for row in exception_report(gone, gaps="carry", **asked).set_aside}
    left = exception_report(gone, **asked)
    assert [row["series"] for row in left.gaps] == ["s07"] and "s07" in {row["series"] for row in left.rows}


def test_a_column_that_means_nothing_does_no_harm():
    data = table(sales(effect=0.0))
    plain = exception_report(data, capacity=5, methods=QUICK)
    beside = exception_report(data, capacity=5, methods=QUICK, indicators=["weather"])
    assert beside.pauc >= plain.pauc - 1e-12  # the past decides, and had the plain methods to choose from
    assert (
        exception_report(data, capacity=5, method="indicators", methods=QUICK, indicators=["weather"]).method
        == NAMES[0]
    )


def test_holidays_from_a_calendar_are_those_of_the_panel():
    data = sales()
    holidays = pa.table({"t": LABELS.astype(str), "holiday": data["holiday"][: MONTHS + 1]})
    known = {"capacity": 5, "known": ["holiday"], "methods": QUICK}
    one = exception_report(table(data), **known)
    rest = table({name: each for name, each in data.items() if name != "holiday"})
    other = exception_report(rest, calendar=holidays, **known)
    assert one.rows == other.rows
    # the coming month needs no row in the panel where a calendar knows it
    short = {name: each[np.isfinite(data["value"])] for name, each in data.items() if name != "holiday"}
    assert exception_report(table(short), calendar=holidays, **known).rows == one.rows


@pytest.mark.parametrize(
    ("change", "asked", "subject"),
    [
        ({}, {"indicators": ["cost"]}, "panel"),
        ({"price": None}, {"indicators": ["price"]}, "panel"),
        ({"price": "text"}, {"indicators": ["price"]}, "panel"),
        ({"price": 1.0}, {"indicators": ["price"]}, "indicators"),
        ({"price": "gap"}, {"indicators": ["price"]}, "indicators"),
        ({"holiday": "no coming"}, {"known": ["holiday"]}, "known"),
        ({"holiday": "value"}, {"known": ["holiday"]}, "known"),
        ({}, {"known": ["value"]}, "known"),
        ({}, {"indicators": ["price", "price"]}, "indicators"),
        ({}, {"indicators": ["price"], "known": ["price"]}, "known"),
        ({}, {"calendar": {"t": ["2020-01"], "holiday": [1.0]}}, "known"),
        ({}, {"known": ["holiday"], "calendar": {"t": ["2020-01"] * 2, "holiday": [1.0, 0.0]}}, "calendar"),
        ({}, {"indicators": ["price"], "policy": "absolute"}, "indicators"),
    ],
)
def test_bad_input_is_found_first(change, asked, subject, monkeypatch):
    """Before anything is forecast, and with names of series."""
    from discreet.changes import lists

    data = sales()
    for name, how in change.items():
        if how is None:
            del data[name]
        elif how == "text":
            data[name] = np.array(["much"] * len(data["t"]))
        elif how == "gap":
            data[name] = np.where((data["series"] == "s07") & (data["t"] == "2020-05"), np.nan, data[name])
        elif how == "no coming":
            data[name] = np.where(data["t"] == str(LABELS[-1]), np.nan, data[name])
        elif how == "value":
            data[name] = np.where(np.isfinite(data["value"]), data["value"], 1.0)
        else:
            data[name] = np.full(len(data["t"]), how)
    if "policy" not in asked:
        monkeypatch.setattr(lists, "forecast_cases", None)
    with pytest.raises(DataError, check=about(subject)) as error:
        exception_report(table(data), capacity=5, **asked)
    if change.get("price") == "gap":
        assert "s07" in str(error.value) and "2020-05" in str(error.value)


def test_list_regression_is_the_minimum():
    """Beside a general minimiser, and refused where nothing can be ranked."""
    rng = np.random.default_rng(1)
    X, period = rng.normal(size=(90, 3)) * [1, 2, 0], np.repeat(np.arange(6), 15)
    positive = rng.random(90) < 0.15 + 0.2 * (X[:, 0] > 1)
    positive[:2] = [True, False]
    found = list_regression(X, positive, period, penalty=0.01)
    spread = X[:, :2].std(axis=0)
    inside = np.array([positive[period == k].any() and not positive[period == k].all() for k in range(6)])[period]
    spread = X[inside, :2].std(axis=0)

    def loss(b):
        total, periods = 0.0, np.unique(period[inside])
        for k in periods:
            score = X[period == k, :2] / spread @ b
            total -= (score - np.log(np.exp(score).sum()))[positive[period == k]].mean()
        return total / len(periods) + 0.01 * b @ b

    best = minimize(loss, np.zeros(2), tol=1e-12).x / spread
    assert found == pytest.approx([*best, 0.0], abs=1e-5)
    assert list_regression(X, positive, period, penalty=0.01, start=found) == pytest.approx(found, abs=1e-7)
    with pytest.raises(FitError, check=about("penalty")):
        list_regression(X, positive, period, penalty=0)
    with pytest.raises(FitError, check=about("positive")):
        list_regression(X, np.zeros(90, bool), period, penalty=1)
