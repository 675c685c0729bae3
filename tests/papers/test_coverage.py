"""The study of every interval: its rule, its parts, and truths by another way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet.roc import curve as roc
from discreet_papers import amount_kinds, chance_kinds, coverage, coverage_page, perturbation_kinds
from discreet_papers.coverage_rule import summary


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, False),
        ({"held": 0.91}, True),
        ({"held": 0.91, "error": 0.02}, False),
        ({"held": 0.5, "before": "small parts"}, False),
        ({"held": 0.5, "told": 0.95}, False),
        ({"held": 0.5, "told": 0.5}, True),
        ({"bias": 3.5}, True),
        ({"bias": -3.5, "before": "small parts"}, False),
        ({"held": None, "bias": 2.0}, False),
        ({"held": 1.0}, True),
        ({"held": 1.0, "at_least": "the scale of the noise is confidential"}, False),
        ({"held": 1.0, "error": 0.02}, False),
        ({"held": 0.91, "at_least": "the scale of the noise is confidential"}, True),
    ],
    ids=str,
)
def test_a_fault_is_short_or_off_and_not_said(changed: dict[str, Any], fault: bool) -> None:
    asked: dict[str, Any] = {"held": 0.95, "error": 0.005} | changed
    held, error = asked.pop("held"), asked.pop("error")
    assert coverage.row("an interval", "normal", 1.0, held, error, **asked)["fault"] is fault


def test_the_page_names_what_is_wrong_and_the_least_that_holds() -> None:
    rows = [
        coverage.row("one", "normal", 1.0, 0.96, 0.01),
        coverage.row("one", "skewed", 1.0, 0.80, 0.01),
        coverage.row("one", "curved", 1.0, 0.30, 0.01, before="a straight line is assumed"),
        coverage.row("two", "normal", None, None, 0.0, bias=0.1),
    ]
    study = coverage.of_parts({"a": rows[:3], "b": rows[3:]})
    assert study.results["faults"] == ["one, skewed, epsilon 1: holds 80.0 % (1.0 %)"]
    first, second = study.results["short"]
    assert (first["least where nothing is said"], first["least where it is said"], first["faults"]) == (0.80, 0.30, 1)
    assert second["least where nothing is said"] is None and "80.0 %" in study.page.html()


def test_few_trials_make_a_mean_large_by_chance() -> None:
    """The chance of Student's law, as deviations of a normal one; with many trials both are the same."""
    assert coverage.in_errors(3.0, 1.0, 10**6) == pytest.approx(3.0, abs=1e-3)
    few = coverage.in_errors(-5.1, 1.0, 6)
    assert stats.norm.cdf(few) == pytest.approx(stats.t(5).cdf(-5.1)) and -3 < few < 0
    assert coverage.in_errors(1.0, 0.0, 9) == 0.0


def test_every_door_is_tried() -> None:
    asked = coverage.tasks(quick=False, data=None)
    assert {task.part for task in asked} == {
        "tables",
        "sums, means and flows",
        "posterior summaries",
        "models",
        "models without noise",
        "Bayesian models",
        "models with lags",
        "objective perturbation",
        "large changes",
    }


def test_where_first_trials_leave_a_doubt_other_ones_decide() -> None:
    seen: list[tuple[int, int]] = []

    def tried(sets: int, seed: int) -> list[dict[str, Any]]:
        seen.append((sets, seed))
        return [coverage.row("an interval", "normal", 1.0, 0.85 if sets == 10 else 0.95, 0.03)]

    assert not coverage.Task("a", "b", tried, 10).rows(seed=7)[0]["short"] and seen == [(10, 7), (40, 8)]
    seen.clear()
    assert coverage.Task("a", "b", tried).rows(seed=7) and len(seen) == 1


def test_flows_of_a_cell_are_those_of_its_establishments() -> None:
    vector, largest = amount_kinds.flow_vector(np.array([7, 3]))
    assert vector[:4].sum() == 10 and largest == 7 and 0 <= vector[4] <= vector[2]


def test_flows_of_the_study_are_drawn_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red before: flows of several quarters changed the shape of what is read, and the study did not follow."""
    monkeypatch.setattr(amount_kinds, "EPSILONS", ("4",))
    monkeypatch.setattr(amount_kinds, "KINDS", dict([next(iter(amount_kinds.KINDS.items()))]))
    rows = list(amount_kinds.flows(60, 1))
    assert {row["interval"].split(":")[0] for row in rows} == {"flow", "rate"}
    assert min(row["held"] for row in rows) > 0.8


def test_new_doors_hold_and_tell_of_noise_that_is_not_theirs() -> None:
    """Sums of pay in a few kinds of cells; an interval around another truth is short."""
    rows = list(amount_kinds.sums_and_means(200, 1))
    assert not [each for each in rows if each["short"]]
    far = amount_kinds._judged("sum", "x", "1", *(np.full(200, v) for v in (9.0, 1.0, 0.0, 2.0)))
    assert far["fault"] and far["held"] == 0.0


@pytest.mark.parametrize("kind", perturbation_kinds.KINDS)
def test_the_truth_of_objective_perturbation_is_the_coefficients_of_least_squares_nearly(kind: str) -> None:
    """Pulls are nearly straight within the bounds: residuals of a sixteenth of the range move a coefficient little."""
    x, y = perturbation_kinds.drawn(kind, np.random.default_rng(4), 200_000)
    slope, intercept = np.polyfit(x, np.clip(y, -8, 8), 1)
    found = perturbation_kinds.truth(kind)
    np.testing.assert_allclose(found, [intercept, slope], atol=0.06)


def test_chances_are_compared_with_what_happened() -> None:
    found = chance_kinds.chances("random walk", 4, np.random.default_rng(1))
    assert abs(found["ranked"]) < 6 and not chance_kinds.off(found, "ranked")
    assert chance_kinds.off({"flags": 3.0, "flags_error": 0.5}, "flags")


def test_areas_of_few_large_changes_hold_more_rarely() -> None:
    rng = np.random.default_rng(2)
    few, many = (chance_kinds.areas("skewed scores", n, 60, rng)["held"] for n in (5, 60))
    assert few < many
    up, down = chance_kinds.AREAS["normal scores"](np.random.default_rng(3), 4000, 4000)
    truth = np.repeat([True, False], 4000)
    ours = roc.partial_auc(truth, np.concatenate([up, down])[None, :])[0]
    assert ours == pytest.approx(roc.partial_area_of(up, down, 0.0, 0.2))


def test_tables_of_the_docs_come_from_the_results() -> None:
    rows = [coverage.row("one", "skewed", 1.0, 0.80, 0.01), coverage.row("two", "normal", None, None, 0.0, bias=4.0)]
    study = coverage.of_parts({"a": rows})
    page = coverage_page.filled(
        "<!-- short: from results.json -->before<!-- end of short: from results.json -->", study.results
    )
    assert "80.0 ± 1.0" in page and "-->before" not in page
    cells = coverage_page.tables(study.results)["cells of a"].splitlines()
    assert cells[3] == "| one | skewed | 1 | 80.0 ± 1.0 | – | – | – | yes |" and "4.0" in cells[4]


def test_rows_of_the_page_come_out_again() -> None:
    """Sums of a finest table, as the full study draws them. They follow the default of a count, which has changed."""
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "coverage.md").read_text(encoding="utf-8")
    for each in summary(list(amount_kinds.finest(25, 0))):
        [line] = [line for line in page.splitlines() if line.startswith(f"| {each['interval']} | {each['cells']} |")]
        assert f"| {each['half-width over the error']:.3g} |" in line
