"""The mixed-model study: correlations from sums against correlations of rows, and a small run from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from discreet.models.linear.private import release_mixed
from discreet.noise.source import SeededSource
from discreet.pages.page import Note
from discreet.simulate import qwi, stream
from discreet.utility.model_curves import Case, Trials, by_moments
from discreet.words.errors import DataError
from discreet_papers import lmm
from discreet_papers.lmm_curves import estimable_blocks
from faults_of import about


@pytest.fixture(scope="module")
def flows():  # type: ignore[no-untyped-def]
    return stream.collect(qwi.batches(seed=1, share=0.004))["qwi"]


def test_correlations_from_sums_are_those_of_the_rows(flows) -> None:  # type: ignore[no-untyped-def]
    from discreet.models.linear import mixed

    y = flows["jcr"].to_numpy()
    for formula in (lmm.MODELS["LMM"], lmm.MODELS["LMM + season"]):
        case = Case.of("model", formula.format(rate="jcr"), flows)
        fit = mixed(case.public.model.text, flows)
        assert case.best == pytest.approx(np.corrcoef(fit.fitted, y)[0, 1], abs=1e-9)
        private = release_mixed(case.public.model.text, flows, epsilon=1, public=case.public.model.columns[1:], seed=1)
        by_position = [private.random[i].values for i in case.public.terms]
        found = case.correlation(private.centred, case.runs(by_position))
        assert found == pytest.approx(np.corrcoef(private.fitted(flows), y)[0, 1], abs=1e-9)
    linear = Case.of("LM", lmm.MODELS["LM"].format(rate="jcr"), flows)
    industry = np.array(flows["industry"].to_pylist())
    means = {name: y[industry == name].mean() for name in np.unique(industry)}
    assert linear.best == pytest.approx(np.corrcoef([means[name] for name in industry], y)[0, 1], abs=1e-9)


def test_trials_are_releases(flows) -> None:  # type: ignore[no-untyped-def]
    """The same seed through the study and through the door gives the same correlation."""
    case = Case.of("LMM", lmm.MODELS["LMM"].format(rate="jcr"), flows)
    (row,) = by_moments(case, [2.0], Trials(1, SeededSource(5), 0))
    fit = release_mixed(case.public.model.text, flows, epsilon=2, public=case.public.model.columns[1:], seed=5)
    assert row["correlation"] == pytest.approx(np.corrcoef(fit.fitted(flows), flows["jcr"].to_numpy())[0, 1], abs=1e-9)
    assert row["relative_to_mle"] == row["correlation"] / case.best


def test_blocks_without_a_repeated_group_are_not_estimable(flows) -> None:  # type: ignore[no-untyped-def]
    case = Case.of("LMM", lmm.MODELS["LMM"].format(rate="jcr"), flows)
    few, many = estimable_blocks(case, 100, 0), estimable_blocks(case, 3000, 0)
    assert few["estimable_blocks"] == 1 and many["rows_per_block"] == 3
    counties = np.bincount(case.rows.codes["county"]) / case.rows.count
    alone = 1 - 3 * (counties**2).sum() + 2 * (counties**3).sum()
    assert many["estimable_blocks"] == pytest.approx(1 - alone, abs=0.05)


def test_block_numbers_are_the_documents() -> None:
    by_epsilon = {row["epsilon"]: row for row in lmm.k_star(2_428_452)}
    assert by_epsilon[1.0]["documents"] == by_epsilon[1.0]["ours"] == 8945
    assert (by_epsilon[0.1]["documents"], by_epsilon[4.6]["documents"]) == (22470, 4858)


@pytest.mark.walk
def test_the_study_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmm, "QUICK_SHARE", 0.004)
    monkeypatch.setattr(lmm, "LAGGED", (1.0,))
    monkeypatch.setattr(lmm, "JOINT", (0.1, 4.6))
    monkeypatch.setattr(lmm, "LIMITS", (1.0, 4.6))
    monkeypatch.setattr(lmm, "SHARES", {model: splits[:2] for model, splits in lmm.SHARES.items()})
    monkeypatch.setattr(lmm, "Trials", lambda _, source, seed: Trials(1, source, seed))  # one draw has every property
    steps: list[float] = []
    outcome = lmm.run(quick=True, seed=1, progress=lambda step, share: steps.append(share))
    assert isinstance(outcome.page.blocks[0], Note) and outcome.page.blocks[0].kind == "result", (
        "the finding comes first"
    )
    outcome.write(tmp_path / "out")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {"global", "k_star", "risk_utility", "leave_county_out", "estimable"} <= set(results)
    wanted = {"model", "method", "epsilon", "split", "correlation", "relative_to_mle", "guarantee"}
    assert all(wanted <= set(row) for row in results["risk_utility"])
    assert {row["method"] for row in results["risk_utility"]} == {"moments", "paper", "strict"}
    assert {row["model"] for row in results["global"]} >= {"LM", "LMM", "LMM + season", "LMM with lags"}
    drawn = {(row["model"], row["method"]) for row in results["risk_utility"]}
    assert {("LMM with states", method) for method in ("moments", "paper", "strict")} <= drawn
    assert ("LMM + season with states", "moments") in drawn
    assert {row["rate"] for row in results["published_rates"]} == {"JDR", "AR"}
    inside = [row for row in results["improved"] if row["guarantee"] == "proved, joint, lags inside"]
    assert {(row["epsilon"], row["split"]) for row in inside} == {
        (1.0, split) for split in ("default", "clipped to [0, 0.5]")
    }
    assert results["leave_county_out"]["counties"] == results["data"]["counties"]
    assert steps == sorted(steps)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Figures 2 and 3.3" in page and "0.01045409" in page
    assert "states and counties" in page and "The published method for JDR and AR" in page


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "qwi.parquet").write_text("nothing")
    with pytest.raises(DataError, check=about("data")):
        lmm.run(quick=True, data=tmp_path)
