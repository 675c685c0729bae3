"""Panels as planners have them: other names, dates of every kind, unequal lengths, gaps; and broken ones."""

from __future__ import annotations

import datetime
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from discreet.changes.calendar import usual_season
from discreet.changes.exceptions import exception_report
from discreet.changes.forecasters import forecast_panel
from discreet.changes.panel import read_panel, spelled
from discreet.words.errors import DataError
from faults_of import about

COMING = pd.Timestamp(datetime.date.today()) + pd.Timedelta(90, "D")
MONTHS = pd.date_range("2020-01-31", periods=24, freq="ME")


MONATE = ("Jän", "Feb", "März", "Apr", "Mai", "Juni", "Juli", "Aug", "Sept", "Okt", "Nov", "Dez")


def table(n=4, dates=MONTHS, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "series": np.repeat([f"s{i}" for i in range(n)], len(dates)),
            "t": np.tile(dates, n),
            "value": rng.poisson(20, n * len(dates)).astype(float),
        }
    )


def same(found, rows):
    wide = rows.pivot_table(index=rows.columns[0], columns=rows.columns[1], values=rows.columns[2])
    np.testing.assert_array_equal(found.values, wide.to_numpy())
    assert found.names.tolist() == wide.index.astype(str).tolist()


@pytest.mark.parametrize(
    "names",
    [("unique_id", "ds", "y"), ("Series", "T", "Value"), ("id", "date", "target"), ("item_id", "timestamp", "target")],
)
def test_other_usual_names_are_understood(names):
    rows = table()
    same(read_panel(rows.set_axis(list(names), axis=1)), rows)


def test_any_names_can_be_given():
    rows = table().set_axis(["sku", "wave", "units"], axis=1)
    found = read_panel(rows, names={"series": "sku", "t": "wave", "value": "units"})
    same(found, rows)
    with pytest.raises(DataError, check=about("panel")):
        read_panel(rows)


@pytest.mark.parametrize(
    "frequency", ["ME", "MS", "QE", "QS", "YE", "B", "D", "W-SUN", "W-THU", "h", "30min", "2W-WED"]
)
@pytest.mark.parametrize("kind", ["dates", "csv", "text"])
def test_dates_with_their_frequency(frequency, kind, tmp_path):
    dates = pd.date_range("1980-01-31", periods=31, freq=frequency)
    rows = table(dates=dates[:30])
    if kind == "csv":
        rows.to_csv(tmp_path / "panel.csv", index=False)
    if kind == "text":
        rows = rows.assign(t=rows.t.astype(str))
    given = {name: list(rows[name]) for name in rows} if kind == "text" else rows
    found = read_panel(tmp_path / "panel.csv" if kind == "csv" else given)
    rows = rows.assign(t=pd.to_datetime(rows.t))
    same(found, rows)
    assert pd.Timestamp(found.later(1)) == dates[30]


@pytest.mark.parametrize(
    "form",
    [
        *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%b %Y", "%Y-%m", "%d %b %Y", "%Y%m%d", "%B %Y", "%b-%y", "%m/%Y"),
        *("%m-%Y", "%d-%b-%y", "%d %B %Y", "%B %d, %Y", "%b %d, %Y", "%Y.%m.%d", "%Y/%m", "%m/%d/%Y %I:%M:%S %p"),
    ],
)
def test_dates_spelled_as_text_are_in_order_of_time(form):
    rows = table()
    spelled = rows.assign(t=[t.strftime(form) for t in rows.t])
    np.testing.assert_array_equal(read_panel(spelled).values, read_panel(rows).values)


@pytest.mark.filterwarnings("error")
def test_values_that_cannot_be_squared_are_set_aside():
    """Red before: NumPy warned of an overflow, and the series was ranked by NaN."""
    rows = table(n=30)
    rows["value"] += np.random.default_rng(1).random(len(rows))
    rows.loc[rows.series == "s3", "value"] *= 1e300
    assert "s3" in str(exception_report(rows, capacity=3).set_aside)


@pytest.mark.parametrize("zone", ["Z", "+02:00", " UTC", " Europe/Berlin"])
def test_zones_in_files_are_not_dropped(zone, tmp_path):
    """Red before: DuckDB left out a zone that is written as UTC, and its times were called local."""
    rows = table()
    rows.assign(t=[f"{t:%Y-%m-%d %H:%M:%S}{zone}" for t in rows.t]).to_csv(tmp_path / "panel.csv", index=False)
    with pytest.raises(DataError, check=about("time")):
        read_panel(tmp_path / "panel.csv")


def test_dates_as_text_are_dates_and_years_are_numbers():
    """Red before: text in a dictionary had an order and no more, so hours had no next one and the future passed."""
    rows = table()
    for zone in ("Z", "+02:00", "-0500", " UTC", " GMT"):
        with pytest.raises(DataError, check=about("time")):
            read_panel(rows.assign(t=[f"{t:%Y-%m-%dT%H:%M}{zone}" for t in rows.t]))
    future = pd.concat([rows, rows[:1].assign(t=pd.Timestamp("2190-01-31"))])
    with pytest.raises(DataError, check=about("panel", naming=("s0",))):
        read_panel({name: list(column.astype(str)) for name, column in future.items()} | {"value": list(future.value)})
    years = rows.assign(t=[str(1990 + MONTHS.get_loc(t)) for t in rows.t])
    found = read_panel(years)
    assert found.later(1) == 1990 + len(MONTHS) and usual_season(found.periods) == 1
    with pytest.raises(DataError, check=about("time")):
        read_panel(rows.assign(t="2024-02-30"))


def test_a_refusal_loads_neither_pandas_nor_scipy(tmp_path):
    """Bad rows are found in the first second of the command, and these two would take most of it."""
    rows = table()
    pd.concat([rows, rows[:1]]).to_csv(tmp_path / "panel.csv", index=False)
    code = (
        "import sys; sys.argv[1:] = ['changes', 'report', 'panel.csv']\n"
        "from discreet.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, *sorted({'pandas', 'scipy', 'jinja2'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["2"] and "s0 (2020-01-31)" in done.stderr, done


@pytest.mark.parametrize("form", ["Q{0} {1}", "{0}Q{1}", "Q{0}-{1}", "q{0}/{1}"])
def test_quarters_before_their_year_are_in_order_of_time(form):
    """As text, the first quarters of all years would come before every second one."""
    dates = pd.date_range("2019-01-01", periods=12, freq="QS")
    rows = table(dates=dates)
    spelled = rows.assign(t=[form.format(t.quarter, t.year) for t in rows.t])
    found = read_panel(spelled)
    np.testing.assert_array_equal(found.values, read_panel(rows).values)
    assert found.later(1) == np.datetime64("2022-01-01")


@pytest.mark.parametrize(
    "spell",
    [
        lambda t: f"{t.year}-{t.month}",
        lambda t: f"week {12 * (t.year - 2020) + t.month}",
        lambda t: f"H{(t.month + 5) // 6} {t.year}/{t.month:02d}",
        lambda t: f"month {t.month:02d} of {t.year}",
        lambda t: f"{t.day:02d} {MONATE[t.month - 1]} {t.year}",
        lambda t: f"{t.day:02d}-{MONATE[t.month - 1]}-{t:%y}",
        lambda t: f"{t:%a} {t:%b} {t.day} {t.year}",
        lambda t: t.tz_localize("Europe/Vienna"),
        lambda t: t.to_period("M"),
    ],
    ids=[
        *("unpadded months", "unpadded numbers", "half-years first", "years last"),
        *("German months", "short German months", "days of the week", "time zones", "pandas' periods"),
    ],
)
def test_labels_whose_order_is_not_that_of_time_are_refused(spell):
    """Before, 2020-10 came before 2020-2 and month 02 of 2020 after month 01 of 2021, in silence."""
    rows = table()
    with pytest.raises(DataError, check=about("time")):
        read_panel(rows.assign(t=[spell(t) for t in rows.t]))
    with pytest.raises(DataError, check=about("time")):
        read_panel(rows.assign(t=[spell(t) for t in rows.t]).rename(columns={"t": "wave"}), names={"t": "wave"})


@pytest.mark.parametrize("form", ["wave {0:02d}", "{1} round {2}", "{1}W{0:02d}"])
def test_labels_in_order_as_they_are_stay(form):
    rows = table()
    place = {t: i for i, t in enumerate(sorted(set(rows.t)))}
    spelled = rows.assign(t=[form.format(place[t], t.year, "abcdefghijkl"[t.month - 1]) for t in rows.t])
    np.testing.assert_array_equal(read_panel(spelled).values, read_panel(rows).values)


def test_dates_that_can_be_read_in_two_ways_are_refused():
    rows = table(dates=pd.date_range("2020-02-02", periods=8, freq="D"))
    with pytest.raises(DataError, check=about("time")):
        read_panel(rows.assign(t=[t.strftime("%d/%m/%Y") for t in rows.t]))


def test_series_may_begin_and_end_at_different_times():
    rows = table()
    late = (rows.series == "s1") & (rows.t < MONTHS[5])
    early = (rows.series == "s2") & (rows.t > MONTHS[20])
    found = read_panel(rows[~late & ~early])
    assert found.first.tolist() == [0, 5, 0, 0] and found.last.tolist() == [23, 23, 20, 23]
    assert not found.set_aside and found.ended.tolist() == [2]


def test_gaps_stay_or_are_filled():
    rows = table()
    rows = rows[~((rows.series == "s1") & rows.t.isin(MONTHS[[7, 8]]))]
    found = read_panel(rows)
    assert found.names.tolist() == ["s0", "s1", "s2", "s3"] and not found.set_aside
    assert np.argwhere(found.holes).tolist() == [[1, 7], [1, 8]] and np.isnan(found.values[found.holes]).all()
    assert found.lacks(1) == {"missing": 2, "of": 24, "first": "2020-08-31", "last": "2020-09-30"}
    zero, carry = (read_panel(rows, gaps=gaps) for gaps in ("zero", "carry"))
    assert zero.values[1, 7:9].tolist() == [0, 0] and not zero.set_aside
    assert carry.values[1, 7:9].tolist() == [carry.values[1, 6]] * 2
    with pytest.raises(DataError, check=about("gaps")):
        read_panel(rows, gaps="guess")


def test_a_value_that_is_missing_is_a_gap():
    rows = table()
    rows.loc[(rows.series == "s3") & (rows.t == MONTHS[4]), "value"] = np.nan
    assert np.argwhere(read_panel(rows).holes).tolist() == [[3, 4]]


@pytest.mark.parametrize("frequency", ["ME", "QE", "W-THU", "h", "D"])
def test_a_period_that_no_row_mentions_is_a_gap_of_all(frequency):
    dates = pd.date_range("1990-01-31", periods=30, freq=frequency)
    rows = table(dates=dates.delete(10))
    assert read_panel(rows).holes.sum(axis=0).tolist() == [0] * 10 + [4] + [0] * 19
    found = read_panel(rows, gaps="carry")
    assert len(found.periods) == 30
    np.testing.assert_array_equal(found.values[:, 10], found.values[:, 9])


def test_zeros_fill_up_to_the_end():
    rows = table()
    rows = rows[~((rows.series == "s2") & (rows.t > MONTHS[20]))]
    found = read_panel(rows, gaps="zero")
    assert found.values[2, 21:].tolist() == [0, 0, 0] and not len(found.ended)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (pd.date_range("2020-03-31", periods=8, freq="QE"), "another frequency"),
        (pd.date_range("2020-01-01", periods=24, freq="MS"), "another frequency"),
        (pd.date_range("2020-01-01", periods=100, freq="W"), "another frequency"),
    ],
)
def test_mixed_frequencies_are_named(odd, words):
    rows = pd.concat([table(n=6), table(n=1, dates=odd).assign(series="odd one")])
    found = read_panel(rows)
    assert found.names.tolist() == [f"s{i}" for i in range(6)]
    assert [name for name, _ in found.set_aside] == ["odd one"] and words in found.set_aside[0][1]
    same(found, table(n=6))


def test_rows_after_the_end_of_all_others_are_named():
    rows = table(n=80)
    extra = rows[(rows.series == "s17") & (rows.t == MONTHS[-1])].assign(t=MONTHS[-1] + pd.offsets.MonthEnd(1))
    found = read_panel(pd.concat([rows, extra]))
    assert [name for name, _ in found.set_aside] == ["s17"] and len(found.periods) == 24 and not len(found.ended)


def big(rows=200_000):
    n = rows // len(MONTHS)
    return table(n=n)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda p: pd.concat([p, p[p.series == "s77"]]),
        lambda p: pd.concat(
            [p, p[:1].assign(series="s77", t=pd.Timestamp(datetime.date.today()) + pd.Timedelta(90, "D"))]
        ),
    ],
    ids=["duplicate rows", "future rows"],
)
def test_bad_rows_are_found_by_name_before_anything_is_forecast(spoil):
    """And at the cost of a few sorts of the rows, the least of three tries of each in this process."""
    import pyarrow as pa

    rows = pa.Table.from_pandas(spoil(big()), preserve_index=False)

    def refusal() -> None:
        with pytest.raises(DataError, check=about("panel")) as refused:
            exception_report(rows, progress=lambda *told: pytest.fail(f"work began: {told}"))
        assert "s77" in str(refused.value)

    def seconds(work: Callable[[], object]) -> float:
        tries = []
        for _ in range(3):
            start = time.process_time()
            work()
            tries.append(time.process_time() - start)
        return min(tries)

    assert seconds(refusal) < 20 * seconds(lambda: rows.sort_by([("series", "ascending"), ("t", "ascending")]))


def test_future_rows_are_read_up_to_a_period():
    rows = table()
    future = rows[:1].assign(t=COMING)
    found = read_panel(pd.concat([rows, future]), until="2021-12-31")
    same(found, rows)
    with pytest.raises(DataError, check=about("until")):
        read_panel(rows, until="soon")


def test_all_constant_is_refused_by_name():
    with pytest.raises(DataError, check=about("panel")) as refused:
        exception_report(table().assign(value=3.0))
    assert "s0" in str(refused.value) and "constant" in str(refused.value)


def test_what_cannot_be_judged_is_listed_and_the_rest_is_ranked():
    dates = pd.date_range("2015-01-31", periods=60, freq="ME")
    rows = table(n=60, dates=dates)
    rows.loc[rows.series == "s1", "value"] = 7.0
    rows.loc[rows.series == "s2", "value"] = np.where(np.arange(60) % 12 == 5, 3.0, 0.0)
    rows.loc[(rows.series == "s3") & (rows.t > dates[40]), "value"] = 0.0
    rows = rows[~((rows.series == "s4") & (rows.t < dates[-5]))]
    rows = rows[~((rows.series == "s5") & (rows.t > dates[50]))]
    rows = rows[~((rows.series == "s6") & (rows.t == dates[-3]))]
    found = exception_report(rows, capacity=5)
    why = {row["series"]: row["why"] for row in found.set_aside}
    for name, word in {
        "s1": "constant", "s2": "intermittent", "s3": "discontinued", "s4": "too short", "s5": "ended", "s6": "lacks",
    }.items():  # fmt: skip
        assert word in why[name]
    assert len(found.flagged) == 5
    assert {row["series"] for row in found.rows} | set(why) == {f"s{i}" for i in range(60)}


def test_forecasts_of_several_origins_are_named_or_told_apart():
    rows = table(n=30, dates=pd.date_range("2015-01-31", periods=60, freq="ME"))
    near, far = (forecast_panel(rows, methods=("ses",), horizon=h, past=20).to_pandas() for h in (1, 2))
    both = pd.concat([near, far])
    assert exception_report(rows, both).rows == exception_report(rows, near).rows
    with pytest.raises(DataError, check=about("forecasts")) as refused:
        exception_report(rows, both.drop(columns="horizon"))
    assert "s0" in str(refused.value)
    both["cutoff"] = [t - pd.offsets.MonthEnd(int(h)) for t, h in zip(both.t, both.horizon, strict=True)]
    wide = both.drop(columns="horizon").rename(columns={"series": "unique_id", "t": "ds", "forecast": "SES"})
    assert (
        exception_report(rows, wide.drop(columns="method")).rows[0]["chance"]
        == (exception_report(rows, near).rows[0]["chance"])
    )
    late = wide.drop(columns="method").assign(cutoff=wide.ds)
    with pytest.raises(DataError, check=about("forecasts")):
        exception_report(rows, late)


@pytest.mark.parametrize(
    ("frequency", "coming"),
    [("h", "2018-01-04T00:00"), ("30min", "2018-01-02T12:00"), ("D", "2018-03-14"), ("ME", "2024-01-31")],
)
def test_midnight_is_an_hour_of_hours_and_no_part_of_a_day(frequency, coming):
    """Before, the period after 23:00 was called by its day alone."""
    times = pd.date_range("2018-01-01", periods=72, freq=frequency)
    values = np.random.default_rng(1).normal(100, 10, (12, 72))
    panel = pd.DataFrame({"series": np.repeat(np.arange(12), 72), "t": np.tile(times, 12), "value": values.ravel()})
    hours = frequency in ("h", "30min")
    assert spelled(read_panel(panel).periods[48]) == (times[48].isoformat()[:16] if hours else str(times[48].date()))
    assert {row["t"] for row in exception_report(panel, capacity=3).to_arrow().to_pylist()} == {coming}


def test_two_frequencies_without_a_majority_are_said_with_names():
    months = [f"2021-{m:02d}-01" for m in range(1, 13)]
    weeks = [str(np.datetime64("2021-01-03") + 7 * k) for k in range(12)]
    rows = [(f"s{i}", day, float(i * k % 7)) for i in range(8) for k, day in enumerate(weeks if i % 2 else months)]
    series, t, value = zip(*rows, strict=True)
    with pytest.raises(DataError, check=about("panel")) as caught:
        read_panel({"series": series, "t": np.array(t, dtype="datetime64[D]"), "value": value})
    assert all(word in str(caught.value) for word in ("several frequencies", "2021-02-01", "2021-01-10", "s0", "s7"))


def test_a_panel_without_any_change_is_refused_before_anything_is_forecast():
    table = {"series": ["a"] * 5 + ["b"] * 5, "t": [*range(5)] * 2, "value": [7.0] * 5 + [1.0] * 5}
    with pytest.raises(DataError, check=about("panel")) as caught:
        read_panel(table)
    assert "all 2 are constant in every period: a, b" in str(caught.value)
    read_panel(table | {"value": [7.0] * 5 + [1.0] * 4 + [2.0]})


def test_longer_series_of_another_frequency_do_not_decide():
    """25 series of 200 days before 40 of 24 months: most series are monthly, whichever are longest or first."""
    days = pd.date_range("2020-01-01", periods=200, freq="D")
    odd = table(n=25, dates=days).assign(series=lambda rows: "a" + rows.series)
    found = read_panel(pd.concat([odd, table(n=40)]))
    assert len(found) == 40 and len(found.set_aside) == 25
