"""`days(...)` of a formula: moments with a time zone are their instants in every engine, whatever zone it shows."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet as dc

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
