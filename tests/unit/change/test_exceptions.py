from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from discreet.change import standards
from discreet.change.exceptions import exception_report
from discreet.errors import DataError


def frames(seed=0, n=100, months=40, ahead=True):
    """Forecasts of the last ten months and the coming one; `knows` sees part of each change, `blind` nothing."""
    rng = np.random.default_rng(seed)
    y = rng.standard_t(3, (n, months + 1)).cumsum(axis=1) + 100
    names = np.array([f"s{i:03d}" for i in range(n)])
    panel = pa.table(
        {
            "series": np.repeat(names, months),
            "t": np.tile(np.arange(months), n),
            "value": y[:, :months].ravel(),
        }
    )
    rows = [
        {"series": names[i], "method": method, "t": t, "forecast": float(y[i, t - 1] + seen + rng.normal(0, 0.5))}
        for t in range(months - 10, months + ahead)
        for i in range(n)
        for method, seen in (("blind", 0.0), ("knows", 0.7 * (y[i, t] - y[i, t - 1])))
    ]
    return panel, pa.Table.from_pylist(rows), y


def test_report_by_hand():
    panel, forecasts, y = frames()
    found = exception_report(panel, forecasts, direction="increase", cost_ratio=5)
    assert found.method == "knows" and len(found.rows) == 100
    base = standards.baseline([y[i, :40] for i in range(100)])
    coming = {
        row["series"]: row["forecast"] for row in forecasts.to_pylist() if row["t"] == 40 and row["method"] == "knows"
    }
    scores = standards.standardise(base, np.array([coming[f"s{i:03d}"] for i in range(100)]), direction="increase")
    assert [row["series"] for row in found.rows] == [f"s{i:03d}" for i in np.argsort(-scores, kind="stable")]
    assert [row["score"] for row in found.rows] == pytest.approx(np.sort(scores)[::-1])
    assert [row["flag"] for row in found.rows] == [row["score"] >= found.point.threshold for row in found.rows]
    assert found.past == 1000
    k = len(found.flagged)
    assert k and found.expected_true + found.expected_false == pytest.approx(k)
    assert found.expected_true == pytest.approx(found.flagged[-1]["true_so_far"])
    assert (np.diff([row["chance"] for row in found.rows]) <= 0).all()


def test_expected_hits_are_about_what_happens():
    expected = got = flags = 0.0
    for seed in range(25):
        panel, forecasts, y = frames(seed)
        found = exception_report(panel, forecasts)
        base = standards.baseline([y[i, :40] for i in range(100)])
        truth = standards.large_changes(base, y[:, 40]).positive
        hits = sum(truth[int(row["series"][1:])] for row in found.flagged)
        expected, got, flags = expected + found.expected_true, got + hits, flags + len(found.flagged)
    assert flags > 100
    assert got == pytest.approx(expected, abs=4 * np.sqrt(expected))


def test_stopping_earlier_expects_fewer_of_both():
    found = exception_report(*frames()[:2])
    right, wrong = (np.array([row[key] for row in found.rows]) for key in ("true_so_far", "false_so_far"))
    assert (np.diff(right) >= 0).all()
    assert right + wrong == pytest.approx(np.arange(1, 101))


def test_settings_matter():
    panel, forecasts, _ = frames()
    cautious = exception_report(panel, forecasts, cost_ratio=1)
    anxious = exception_report(panel, forecasts, cost_ratio=50)
    assert len(cautious.flagged) < len(anxious.flagged)
    assert exception_report(panel, forecasts, method="blind").method == "blind"
    assert exception_report(panel, forecasts, prevalence=0.5).point.prevalence == 0.5
    assert anxious.point.fpr <= 0.2
    json.dumps(anxious.to_dict(), allow_nan=False)
    assert anxious.tidy().num_rows == 100 and "flagged" in anxious.summary()
    rare = exception_report(panel, forecasts, method="blind", cost_ratio=1e-9)
    assert not rare.flagged and rare.expected_true == 0 and rare.to_dict()["threshold"] is None
    assert [row["cost_ratio"] for row in anxious.choices] == [1, 2, 5, 10, 20, 50]
    assert [row["flagged"] for row in anxious.choices][::5] == [len(cautious.flagged), len(anxious.flagged)]


def test_past_area_is_the_comparisons():
    panel, forecasts, _ = frames()
    from discreet.change.compare import compare_large_changes

    found = exception_report(panel, forecasts)
    rows = compare_large_changes(panel, forecasts, resamples=10).rows()
    assert found.pauc == pytest.approx(rows[0]["pauc"])


def test_refusals():
    panel, forecasts, _ = frames()
    past, _, _ = frames(ahead=False)
    with pytest.raises(DataError, match="coming period"):
        exception_report(past, frames(ahead=False)[1])
    future = forecasts.filter(pc.equal(forecasts["t"], 40))
    with pytest.raises(DataError, match="no threshold can be set"):
        exception_report(panel, future)
    with pytest.raises(DataError, match="methods are: blind, knows"):
        exception_report(panel, forecasts, method="oracle")


@pytest.mark.parametrize("prevalence", [0.0, 1.0, 2.0, -0.5, float("nan")])
def test_a_prevalence_that_is_no_share_is_refused(prevalence):
    with pytest.raises(DataError, match="not between 0 and 1"):
        exception_report(*frames()[:2], prevalence=prevalence)
