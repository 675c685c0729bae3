"""The study of every interval: its rule, its parts, and truths by another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet.change import roc
from discreet.studies import chance_kinds, coverage, perturbation_kinds


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
        ({"held": 1.0}, False),
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
        coverage.row("one", "curved", 1.0, 0.30, 0.01, before="a line is supposed"),
        coverage.row("two", "normal", None, None, 0.0, bias=0.1),
    ]
    study = coverage.of_parts({"a": rows[:3], "b": rows[3:]})
    assert study.results["faults"] == ["one, skewed, epsilon 1: holds 80.0% (1.0%)"]
    first, second = study.results["short"]
    assert (first["least where nothing is said"], first["least where it is said"], first["faults"]) == (0.80, 0.30, 1)
    assert second["least where nothing is said"] is None and "80.0%" in study.page.html()


def test_few_trials_make_a_mean_large_by_chance() -> None:
    """The chance of Student's law, as deviations of a normal one; with many trials both are the same."""
    assert coverage.in_errors(3.0, 1.0, 10**6) == pytest.approx(3.0, abs=1e-3)
    few = coverage.in_errors(-5.1, 1.0, 6)
    assert stats.norm.cdf(few) == pytest.approx(stats.t(5).cdf(-5.1)) and -3 < few < 0
    assert coverage.in_errors(1.0, 0.0, 9) == 0.0


def test_every_part_is_about_another_door() -> None:
    assert len(set(coverage.PARTS.values())) == len(coverage.PARTS) == 6


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
