"""Chapter 1's printed tables on the real M3 data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from discreet_papers import m3

DATA = Path(__file__).parents[3] / "shared" / "data" / "m3"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the M3 files are not beside the repository")

ROUNDING = 0.00055
"""Half a unit of the third decimal that the paper prints, and a little."""


@pytest.fixture(scope="module")
def study():
    return m3.run(data=DATA)


def by(rows, **where):
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def test_counts(study):
    assert [row["positives"] for row in study.results["positives"]] == [24, 74, 110, 27, 57, 89]
    assert [row["excluded"] for row in study.results["excluded"]] == [3, 17, 33, 4, 15, 30]


@pytest.mark.parametrize("cutoff", m3.CUTOFFS)
def test_partial_areas_are_the_printed_ones(study, cutoff):
    rows = by(study.results["pauc"], horizon=1, cutoff=cutoff)
    assert len(rows) == 20
    for row in rows:
        misprint = (cutoff, row["method"]) == (0.99, "ROBUST-Trend")  # 0.025 in print, 0.0297 here
        assert row["pauc"] == pytest.approx(row["paper"], abs=0.005 if misprint else ROUNDING), row["method"]


def test_top_five_and_their_order(study):
    expected = {
        0.99: {"Flors-Pearc2", "ForecastPro", "Auto-ANN", "THETA", "SMARTFCS"},
        0.95: {"THETA", "Auto-ANN", "ForecastPro", "SMARTFCS", "Flors-Pearc2"},
        0.90: {"Auto-ANN", "SMARTFCS", "THETA", "ForecastPro", "Flors-Pearc2"},
    }
    best = {0.99: "Flors-Pearc2", 0.95: "THETA", 0.90: "Auto-ANN"}
    for cutoff, names in expected.items():
        rows = by(study.results["pauc"], horizon=1, cutoff=cutoff)
        assert {row["method"] for row in rows[:5]} == names and rows[0]["method"] == best[cutoff]


def test_p_values_within_monte_carlo_error(study):
    # Two bootstraps of 1,000: the ratio of spreads has a deviation of 3.2 %, so z moves by that share of itself.
    from scipy.stats import norm

    compared = 0
    for row in study.results["pauc"] + study.results["combinations"]:
        if row["p"] is None or np.isnan(row["paper_p"]) or not 0.003 < row["paper_p"] < 0.5:
            continue
        z, paper = norm.isf(row["p"]), norm.isf(row["paper_p"])
        rounding = 0.0005 / norm.pdf(paper)
        assert abs(z - paper) < 0.12 * abs(paper) + rounding + 0.05, row
        compared += 1
    assert compared > 55


def test_kendall(study):
    for row in study.results["kendall"]:
        near = 0.008 if (row["horizon"], row["cutoff"]) == (1, 0.90) else ROUNDING
        assert row["tau"] == pytest.approx(row["paper"], abs=near)
        assert row["p"] == pytest.approx(row["paper_p"], abs=0.0006)


def test_combinations_are_the_printed_ones(study):
    rows = study.results["combinations"]
    assert len(rows) == 36
    for row in rows:
        assert row["pauc"] == pytest.approx(row["paper"], abs=ROUNDING), row


def test_two_step_order(study):
    printed = {
        0.99: ["Auto-ANN", "THETAsm", "Flors-Pearc2", "ForecastPro", "B-J auto", "THETA", "SMARTFCS", "AutoBox2"],
        0.95: ["ForecastPro", "Flors-Pearc2", "THETAsm", "THETA", "SMARTFCS"],
    }
    for cutoff, names in printed.items():
        assert [r["method"] for r in by(study.results["pauc"], horizon=2, cutoff=cutoff)][: len(names)] == names


def test_best_and_worst_by_ordinary_errors(study):
    """Table 1.2: all entries but the fourth by sMAPE, where ForecastPro is printed and ForcX is next."""
    assert sum(row["agree"] for row in study.results["errors"]) == 23
    by_measure = {row["measure"]: row for row in study.results["errors"]}
    assert by_measure["sMAPE"]["best (ours)"] == "SMARTFCS, THETA, Auto-ANN, ForcX"
    for measure in ("Median sAPE", "RMSE"):
        row = by_measure[measure]
        assert row["best (ours)"] == row["best (paper)"]
        assert row["worst (ours)"].startswith(row["worst (paper)"])
    printed = study.page.tables["table-1-2"]
    assert "23 of 24 entries agree" in printed.caption and printed.caption.endswith("together 10.")


def test_the_page_counts_how_many_areas_are_printed_alike(study):
    """Within 0.0006 all but one are; in three decimals 53 of 60 and 34 of 36, as the page of large changes says."""
    told = [block.text for block in study.page.blocks if "three decimals" in getattr(block, "text", "")]
    assert len(told) == 1 and "53 of them have the same three decimals" in told[0]
    assert "34 areas have the same three decimals" in study.page.tables["table-1-5"].caption


def test_study_is_complete(study):
    assert {"table-1-1", "table-1-2", "table-1-3-1-99", "table-1-4", "table-1-5"} <= set(study.page.tables)
    assert "figure-1-1" in study.page.figures and "SINGLE" in study.page.figures["figure-1-1"].alt


def test_rates_that_the_text_reads_off_the_figure(study):
    """Read by eye from curves of 57 positives: within two of them."""
    rows = study.page.tables["figure-1-1-rates"].rows
    assert len(rows) == 4
    for _, _, least, most, paper in rows:
        low, high = map(float, paper.split(" to "))
        assert abs(least - low) < 2 / 57 and abs(most - high) < 2 / 57
