"""The study of time effects: expectations given the period before, and what it finds on a fiftieth of the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from discreet.models.linear.estimate import mixed
from discreet.models.linear.residuals import Autoregression
from discreet_papers.time_effects import ahead, earlier, in_time, run


def panel() -> pa.Table:
    rng, n = np.random.default_rng(0), 24
    county, industry, quarter = np.divmod(np.arange(n), 8)[0], np.arange(n) % 2, np.arange(n) % 8 // 2
    return pa.table(
        {
            "county": [f"c{k}" for k in county],
            "industry": [f"i{k}" for k in industry],
            "quarter": [f"2020Q{k + 1}" for k in quarter],
            "jcr": 1 + 0.3 * rng.normal(size=3)[county] + 0.2 * rng.normal(size=n),
        }
    )


def test_expectations_add_what_is_left_of_the_period_before() -> None:
    table = in_time(panel())
    assert table["time"].to_pylist()[:8] == [1, 1, 2, 2, 3, 3, 4, 4]
    y, before = earlier(table)
    assert np.isnan(before[:2]).all() and before[2] == y[0] and before[3] == y[1]
    fit = mixed("jcr ~ 1 + (1 | county)", table, series=["county", "industry"], time="time")
    assert fit.residual is not None and isinstance(fit.residual.law, Autoregression)
    found = ahead(fit, fit.residual.law, fit.fitted)
    assert found[2] == pytest.approx(fit.fitted[2] + fit.autocorrelation * (y[0] - fit.fitted[0]))
    np.testing.assert_array_equal(found[:2], fit.fitted[:2])


@pytest.mark.full_size
def test_autoregression_lowers_aic_and_lags_are_worth_their_price() -> None:
    results = run(quick=True).results
    _, county, trend, series, both = results["models"]
    assert series["aic"] < county["aic"] and both["aic"] < trend["aic"]
    assert series["one step ahead"] > county["correlation"]
    assert results["private"][-1]["one step ahead"] > results["private"][0]["one step ahead"]
