"""The study of losses: its regime is the paper's, nothing is read ahead, and its ranges say what rows say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet.changes import families, rolling
from discreet_papers import pmf
from discreet_papers.crime import simulated
from discreet_papers.crime_trials import LAGS


@pytest.mark.full_size
def test_least_squares_correlates_as_the_paper_prints():
    """Table 2.4 has 2.48 % for least squares and Table 2.3 an area of 0.0266."""
    schedule, found = rolling.Schedule(), []
    for seed in range(4):
        for shape in (pmf.REGIME, pmf.LEADING):
            panel = simulated(seed, shape=shape)
            months = rolling.months(panel.y, panel.indicators, lags=LAGS)
            scores = rolling.roll(families.LeastSquares(), months, schedule).scores
            truth = months.positive[schedule.testing]
            found.append(np.corrcoef(scores.ravel(), truth.ravel())[0, 1])
    correlation, area = np.mean(found), pmf.PRINTED["OLS"]
    assert abs(correlation - area[1]) < 0.01


def test_no_score_reads_its_own_month(monkeypatch):
    """What comes after month t is poisoned; no score up to t changes."""
    panel = simulated(1, shape=pmf.REGIME)
    cut, small = 34, slice(0, 30)
    few = replace(panel, y=panel.y[:40, small], indicators=panel.indicators[:40, small])
    late = replace(few, y=few.y.copy(), indicators=few.indicators.copy())
    late.y[cut:] = late.y[cut:][:, ::-1] * 9
    late.indicators[cut:] = 50
    monkeypatch.setattr(pmf, "QUICK_EVERY", 4)
    months = [rolling.months(each.y, each.indicators, lags=LAGS) for each in (few, late)]
    one, other = (pmf.all_scores(each, quick=True) for each in months)
    known = cut - max(LAGS) + 1  # its indicators end a month before
    for name in one:
        assert np.array_equal(one[name][:, :known], other[name][:, :known]), name
        assert not np.array_equal(one[name], other[name]), name


def test_ranges_are_those_of_the_rows():
    rows = [
        {
            "city": f"x {k}",
            "window": "late",
            "smoothing": 0.05,
            "start": 12,
            "columns": "c",
            "model": model,
            "pauc": area,
        }
        for k, areas in enumerate([(0.02, 0.03), (0.04, 0.01), (0.03, 0.05)])
        for model, area in zip((pmf.OLS, pmf.PMF), areas, strict=True)
    ]
    found = {row["model"]: row for row in pmf.ranges(rows)}
    assert (found[pmf.PMF]["least"], found[pmf.PMF]["median"], found[pmf.PMF]["most"]) == (0.01, 0.03, 0.05)
    assert found[pmf.PMF]["ahead of least squares"] == "2 of 3" and found[pmf.OLS]["city"] == "x"
