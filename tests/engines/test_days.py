"""`days(...)` of a formula: moments with a time zone are their instants in every engine, whatever zone it shows."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from faults_of import about

FORMULA = "y ~ days(d) + (1 | g)"


def moments(zone: str | None) -> pa.Table:
    """Every 7 hours over the two nights on which clocks are changed, so that some hours come twice or never."""
    rng = np.random.default_rng(1)
    spring = np.datetime64("2024-03-25T01:30", "us") + np.arange(120) * np.timedelta64(7, "h")
    autumn = np.datetime64("2024-10-20T00:30", "us") + np.arange(120) * np.timedelta64(7, "h")
    d = pa.array(np.concatenate([spring, autumn]), pa.timestamp("us", zone))
    g = rng.integers(0, 12, 240)
    y = 0.01 * np.arange(240) + rng.normal(size=12)[g] + rng.normal(size=240)
    return pa.table({"y": y, "g": pa.array([f"g{i}" for i in g]), "d": d})


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_days_of_moments_with_a_time_zone_are_those_of_their_instants(into: Any, zone: str | None) -> None:
    """Red before: narwhals' NotImplementedError came through from DuckDB and Spark."""
    plain = dc.mixed(FORMULA, moments(None))
    fit = dc.mixed(FORMULA, into(moments(zone), "moments"))
    assert fit.beta == pytest.approx(plain.beta, rel=1e-7)
    assert fit.predict(moments(zone)) == pytest.approx(plain.predict(moments(None)), rel=1e-7)


@pytest.mark.parametrize("shown", ["UTC", "Asia/Tokyo", "Europe/Berlin"])
def test_the_zone_of_a_connection_changes_nothing(shown: str) -> None:
    connection = duckdb.connect()
    connection.execute(f"set timezone = '{shown}'")
    plain = dc.mixed(FORMULA, moments(None))
    fit = dc.mixed(FORMULA, connection.from_arrow(moments("Europe/Berlin")))
    assert fit.beta == pytest.approx(plain.beta, rel=1e-7)
    assert fit.predict(connection.from_arrow(moments("Europe/Berlin"))) == pytest.approx(
        plain.predict(moments(None)), rel=1e-7
    )


ZONES = [
    "America/New_York",
    "America/Los_Angeles",
    "Asia/Ho_Chi_Minh",
    "Etc/GMT+5",
    "EST5EDT",
    "dateutil/America/New_York",
]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_zones_of_pandas_whose_names_have_marks_or_digits(zone: str, unit: str) -> None:
    """Red before: narwhals reads no such name, so that the column was Unknown."""
    table = moments("UTC")
    frame = table.to_pandas()
    frame["d"] = frame["d"].dt.tz_convert(zone).dt.as_unit(unit)
    frame.index = range(7, 7 + len(frame))
    plain, fit = dc.mixed(FORMULA, table), dc.mixed(FORMULA, frame)
    assert fit.beta == pytest.approx(plain.beta, rel=1e-9)
    assert fit.predict(frame) == pytest.approx(plain.predict(table), rel=1e-9)
    assert plain.predict(frame[::-1]) == pytest.approx(plain.predict(table)[::-1], rel=1e-9)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "America/New_York"])
@pytest.mark.filterwarnings("ignore:1 of 240 rows")
def test_a_missing_moment_of_pandas_is_refused_or_left_out_as_elsewhere(zone: str | None) -> None:
    """Red before: an IntCastingNaNError of pandas came through."""
    frame = moments(zone).to_pandas()
    frame.loc[3, "d"] = None
    table = pa.Table.from_pandas(frame)
    said = []
    for data in (table, frame):
        with pytest.raises(dc.errors.DataError) as refused:
            dc.mixed(FORMULA, data)
        said.append(str(refused.value))
    assert said[0] == said[1]
    fits = [dc.mixed(FORMULA, data, missing="drop") for data in (table, frame)]
    assert fits[1].beta == pytest.approx(fits[0].beta, rel=1e-9)


def test_a_bare_moment_is_refused_in_the_same_words_in_every_zone() -> None:
    """Red before: of New York it was said that its values cannot be levels."""
    said = []
    for data in (moments("America/New_York"), moments("America/New_York").to_pandas()):
        with pytest.raises(dc.errors.DataError, check=about("formula", naming=("C(d)", "America/New_York"))) as refused:
            dc.mixed("y ~ d + (1 | g)", data)
        said.append(str(refused.value))
    assert said[0] == said[1]
