"""The m3 and crime studies on simulated data, as far as a minute reaches."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from discreet.changes import families, rolling
from discreet.roc import curve as roc
from discreet.simulate import crime as simulate_crime
from discreet.words.errors import DataError
from discreet_papers import cities, crime, crime_trials, m3
from faults_of import about

SHORT = rolling.Schedule(initialise=30, train=4, burn_in=2, test=6)


def test_m3_runs_without_its_files_and_says_where_they_are(tmp_path):
    study = m3.run(quick=True)
    assert study.results["data"] == "simulated"
    assert {"positives", "excluded", "pauc", "kendall", "combinations"} <= set(study.results)
    assert all(row["paper"] is None or np.isnan(row["paper"]) for row in study.results["pauc"])
    written = study.write(tmp_path / "m3")
    assert "Mcomp" in (written / "report.html").read_text()
    json.loads((written / "results.json").read_text())


def test_m3_refuses_a_directory_without_the_files(tmp_path):
    with pytest.raises(DataError, check=about("data")):
        m3.run(data=tmp_path)


def test_simulated_smoothers_by_recursion():
    y = np.random.default_rng(0).normal(50, 5, (1, 30))
    level, trend = y[0, 0], 0.0
    for value in y[0, 1:]:
        before, level = level, 0.4 * value + 0.6 * (level + 0.9 * trend)
        trend = 0.1 * (level - before) + 0.9 * 0.9 * trend
    found = m3._smooth(y, 2)
    assert found["Dampen"][0] == pytest.approx([level + 0.9 * trend, level + (0.9 + 0.81) * trend])
    assert found["Naive"][0] == pytest.approx([y[0, -1]] * 2)


@pytest.fixture(scope="module")
def counts_file(tmp_path_factory):
    """A small file in the layout of the Pittsburgh counts, without rows for empty tract-months."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("crime") / f"{crime.FILE}.gz"
    with gzip.open(path, "wt") as file:
        file.write("tract,year,month,violent,robbery,aggravated_assault\n")
        for t in range(96):
            for tract in range(30):
                robbery, assault = rng.poisson(0.5 + tract / 20, 2)
                if robbery + assault:
                    file.write(
                        f"{9000 + tract},{1990 + t // 12},{1 + t % 12},{robbery + assault},{robbery},{assault}\n"
                    )
    return path


def test_reading_counts_fills_in_zeros(counts_file):
    panel = crime.read(counts_file)
    assert panel.y.shape == (96, 30) and panel.indicators.shape == (96, 30, 2)
    np.testing.assert_array_equal(panel.y, panel.indicators.sum(axis=2))
    assert (panel.y == 0).any()
    np.testing.assert_array_equal(crime.read(counts_file.parent).y, panel.y)


def test_reading_refuses(tmp_path):
    with pytest.raises(DataError, check=about("data")):
        crime.read(tmp_path)
    wrong = tmp_path / "counts.csv"
    wrong.write_text("tract,year\n1,1990\n")
    with pytest.raises(DataError, check=about("data")):
        crime.read(wrong)


def test_simulated_panel_has_the_papers_moments():
    panel = crime.simulated(3)
    assert panel.y.shape == (144, 175)
    for row in crime._summary(panel):
        if row["series"] in ("violent", *crime.INDICATORS):
            assert row["mean"] == pytest.approx(row["paper's mean"], rel=0.05)
            assert row["sd"] == pytest.approx(row["paper's sd"], rel=0.15)
            assert row["median"] == pytest.approx(row["paper's median"], abs=1)


def test_outcomes_on_one_panel(counts_file):
    panel = crime.read(counts_file)
    outcome = crime.Job(panel, SHORT, 3).run()
    assert tuple(outcome.fits) == crime.FIVE
    tested = crime._tested(outcome, resamples=50, seed=0)
    areas = outcome.areas()
    assert [row["pauc"] for row in tested["pauc"]] == pytest.approx([areas[name] for name in crime.FIVE])
    assert tested["pauc"][0]["p_vs_pmf"] is None
    for row in tested["pauc"][1:]:
        assert row["improvement"] == pytest.approx(areas["PMF"] / areas[row["model"]] - 1)
    positive, score = outcome.positive, outcome.fits["OLS"].scores.ravel()
    by_hand = np.corrcoef(positive, score)[0, 1]
    assert tested["correlation"][-1]["correlation"] == pytest.approx(by_hand)
    low, high = crime._two_tracts(panel.y)
    for row in crime.tract_ranks(panel, outcome, SHORT):
        scores = outcome.fits["OLS"].scores[:, low if row["tract"].startswith("low") else high]
        assert row["OLS rank"] == 1 + (scores > scores[row["month"] - 1]).sum()
    ranked = outcome.positive.reshape(-1, panel.y.shape[1])[:, [low, high]].sum()
    assert len(crime.tract_ranks(panel, outcome, SHORT)) == ranked > 0
    spread = crime._over_panels([areas, {name: 2 * area for name, area in areas.items()}])
    assert spread[0]["mean"] == pytest.approx(1.5 * areas["PMF"])


@pytest.mark.full_size
def test_quick_crime_study(tmp_path, counts_file):
    study = crime.run(quick=True, data=counts_file)
    assert {"pauc", "metaparameters", "correlation", "further", "real"} <= set(study.results)
    written = study.write(tmp_path / "crime")
    assert {path.stem for path in (written / "figures").glob("*.svg")} == {"figure-2-1", "figure-2-2"}
    assert {"table-2-1.csv", "table-2-3.csv"} <= {path.name for path in (written / "tables").iterdir()}


def test_trials_are_pmf_beside_least_squares(counts_file):
    panel = crime.read(counts_file)
    (found,) = crime_trials.Trial("here", panel, {"late": SHORT}, 0.05, 12, points=3).run()
    months = rolling.months(panel.y, panel.indicators)
    truth = months.positive[SHORT.testing].ravel()
    models = families.Pmf(grid=np.linspace(0, 1, 3)), families.LeastSquares()
    areas = {m.name: roc.partial_auc(truth, rolling.roll(m, months, SHORT).scores.ravel()) for m in models}
    assert (found["PMF"], found["OLS"]) == pytest.approx((areas["PMF"], areas["OLS"]))
    assert found["PMF over OLS"] == pytest.approx(areas["PMF"] / areas["OLS"] - 1)
    several = crime_trials.trials("here", panel)
    assert len(several) == 6 and {trial.smoothing for trial in several} == {0.02, 0.05, 0.1}
    assert all(window.total <= len(panel.y) - 4 for trial in several for window in trial.windows.values())
    tried = [{"city": "a", "PMF over OLS": x} for x in (0.9, -0.2, 0.1)] + [{"city": "b", "PMF over OLS": -0.5}]
    first, second = crime_trials.advantage(tried)
    assert first == {"city": "a", "least": -0.2, "median": 0.1, "most": 0.9, "ahead": 2, "of": 3}
    assert second["ahead"] == 0 and second["least"] == second["most"] == -0.5


def test_further_cities_are_read_where_their_files_are(tmp_path, counts_file):
    assert cities.further(counts_file) == {}
    (tmp_path / cities.FURTHER["Pittsburgh, burglary"]).write_text("Year,Month,Area_1,Area_2\n1990,1,2,3\n1990,2,4,5\n")
    (tmp_path / cities.FURTHER["Chicago, battery"]).write_text(
        "area,period,assault,battery,criminal_damage,theft\n7,2,1,2,3,4\n8,1,5,6,7,8\n"
    )
    found = cities.further(tmp_path)
    np.testing.assert_array_equal(found["Pittsburgh, burglary"].y, [[2, 3], [4, 5]])
    np.testing.assert_array_equal(found["Chicago, battery"].y, [[0, 6], [2, 0]])
    np.testing.assert_array_equal(found["Chicago, battery"].indicators[1, 0], [1, 3, 4])


def test_the_simulated_city_is_called_as_easy_as_it_is():
    """Least squares' correlation with the gold standard, as docs and docstring state it; the paper's is 2.5 %."""

    def correlation(shape):
        found = []
        for seed in range(5):
            panel = crime.simulated(seed, shape=shape)
            months = rolling.months(panel.y, panel.indicators)
            schedule = rolling.Schedule()
            score = rolling.roll(families.LeastSquares(), months, schedule).scores
            found.append(np.corrcoef(months.positive[schedule.testing].ravel(), score.ravel())[0, 1])
        return np.mean(found)

    assert correlation(simulate_crime.SHAPE) == pytest.approx(0.086, abs=0.015)
    assert correlation(crime.LEADLESS) == pytest.approx(0.055, abs=0.015)
    docs = Path(__file__).parents[2] / "docs" / "explanation"
    for text in (simulate_crime.__doc__, (docs / "simulated-data.md").read_text()):
        assert "8.6 %" in text and "5.5 %" in text and "2.5 %" in text
