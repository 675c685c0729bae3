from __future__ import annotations

import json

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from discreet.changes.combine import Rule
from discreet.changes.compare import compare_large_changes
from discreet.roc import curve as roc
from discreet.words.errors import DataError
from faults_of import about


def frames(seed=0, n=400, months=30):
    """A panel whose last month is foreseen well by `sees`, a little by `blurs`, not at all by `guesses`."""
    rng = np.random.default_rng(seed)
    y = rng.standard_t(3, (n, months)).cumsum(axis=1) + 100
    names = [f"s{i:03d}" for i in range(n)]
    panel = pa.table(
        {"series": np.repeat(names, months), "t": np.tile(np.arange(months), n), "value": y.ravel()},
    )
    noise = {"sees": 0.7, "blurs": 3.0, "guesses": 40.0}
    forecasts = pa.table(
        {
            "series": names * 3,
            "method": np.repeat(list(noise), n),
            "t": np.full(3 * n, months - 1),
            "forecast": np.concatenate([y[:, -1] + rng.normal(0, s, n) for s in noise.values()]),
        }
    )
    return panel, forecasts


def test_ranking_and_tests():
    found = compare_large_changes(*frames(), cutoff=0.9)
    assert found.methods == ("sees", "blurs", "guesses") and found.best == "sees"
    rows = found.rows()
    assert [row["p"] is None for row in rows] == [True, False, False]
    assert rows[2]["p"] < 0.001
    for row, score in zip(rows, found.scores, strict=True):
        assert row["pauc"] == pytest.approx(roc.partial_auc(found.positive, score))
        assert row["mcclish"] == pytest.approx(roc.partial_auc(found.positive, score, scale="mcclish"))
        assert row["low"] <= row["pauc"] <= row["high"]
    assert found.to_arrow().column_names == list(rows[0])
    json.dumps(found.to_dict(), allow_nan=False)
    assert "best" in found.summary()


def test_rules_and_complexity():
    found = compare_large_changes(
        *frames(),
        cutoff=0.9,
        combine={"either": Rule(("sees", "blurs"), "any")},
        complexity={"sees": 3, "blurs": 2, "guesses": 1, "absent": 9},
    )
    scores = dict(zip(found.methods, found.scores, strict=True))
    np.testing.assert_array_equal(scores["either"], np.maximum(scores["sees"], scores["blurs"]))
    assert found.concordance.tau == pytest.approx(1) and found.concordance.n == 3
    assert "Kendall" in found.summary()


def test_the_same_seed_gives_the_same_figures():
    first, second = (compare_large_changes(*frames(), cutoff=0.9, seed=4).to_dict() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("kind", [pa.Table.to_pandas, pl.from_arrow])
def test_any_frame_gives_the_same_figures(kind):
    panel, forecasts = frames()
    expected = compare_large_changes(panel, forecasts, cutoff=0.9, resamples=50).to_dict()
    assert compare_large_changes(kind(panel), kind(forecasts), cutoff=0.9, resamples=50).to_dict() == expected


def test_future_periods_are_left_out():
    panel, forecasts = frames()
    ahead = forecasts.set_column(2, "t", pa.array(np.full(len(forecasts), 30)))
    both = pa.concat_tables([forecasts, ahead])
    assert compare_large_changes(panel, both, cutoff=0.9).to_dict() == (
        compare_large_changes(panel, forecasts, cutoff=0.9).to_dict()
    )
    with pytest.raises(DataError, check=about("forecasts")):
        compare_large_changes(panel, ahead)


def test_chart_holds_curves_and_chance():
    found = compare_large_changes(*frames(), cutoff=0.9)
    chart = found.plot_roc().to_dict()
    values = chart["data"]["values"]
    assert {point["method"] for point in values} == {"sees", "blurs", "guesses", "chance"}
    assert max(point["fpr"] for point in values) == pytest.approx(0.2)
    with pytest.raises(DataError, check=about("method")):
        found.plot_roc(["nobody"])


def test_refusals():
    panel, forecasts = frames()
    with pytest.raises(DataError, check=about("positive")):
        compare_large_changes(panel, forecasts, cutoff=1 - 2e-16)
    with pytest.raises(DataError, check=about("combinations")):
        compare_large_changes(panel, forecasts, combine={"sees": Rule(("blurs",))})
    with pytest.raises(DataError, check=about("fpr")):
        compare_large_changes(panel, forecasts, cutoff=0.9, fpr=(0.2, 0.0))


def test_series_that_nobody_forecasts_are_counted():
    panel, forecasts = frames()
    found = compare_large_changes(panel, pl.from_arrow(forecasts).filter(pl.col("series") != "s000"))
    assert found.silent == found.to_dict()["series_without_forecast"] == 1
    assert "1 series of the panel have no forecast" in found.summary()
