"""Effects that go with the means of a column in their groups: noise moves the slope, and `check` says so."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from discreet.models.linear.private import release_mixed
from discreet.models.mixed import mixed
from discreet.words.caveats import NO_MEANS, ONE_VARIANCE, stated

FORMULA, WITH_MEANS = "y ~ x + (1 | g)", "y ~ x + mean + (1 | g)"
ASKED: Any = {"epsilon": 4, "bounds": (0, 1)}


def panel(seed: int, together: float) -> dict[str, Any]:
    """80 groups of about 40 rows; the mean of x in a group goes with its effect."""
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(80), rng.poisson(40, 80) + 1)
    u = rng.normal(size=80)
    x = rng.normal(size=len(g)) + together * u[g]
    mean = (np.bincount(g, x) / np.bincount(g))[g]
    return {"y": 0.5 + 0.04 * u[g] + 0.03 * x + 0.06 * rng.normal(size=len(g)), "x": x, "mean": mean, "g": g}


def off(formula: str, seed: int, together: float) -> float:
    """The slope beside that of the fit without noise, in standard errors."""
    data = panel(seed, together)
    public = [name for name in ("x", "mean", "g") if name in formula]
    fit = release_mixed(formula, data, public=public, seed=seed, **ASKED)
    [(found, error)] = [(row["estimate"], row["std_error"]) for row in fit.tidy().to_pylist() if row["term"] == "x"]
    plain = {
        row["term"]: row["estimate"] for row in mixed(formula, data).tidy().to_pylist() if row["effect"] == "fixed"
    }
    return float((found - plain["x"]) / error)


def test_noise_moves_a_slope_whose_means_go_with_effects_by_what_is_told_before_paying() -> None:
    """Nothing was said before, and intervals of the slope held the fit without noise in 57 % of releases."""
    check = release_mixed.check(FORMULA, panel(0, 0.3), public=["x", "g"], **ASKED)
    [note] = [note for note in check.expected.notes if NO_MEANS in stated([note])]
    told = float(re.findall(r"x \(([0-9.]+)\)", note)[0])
    assert told == pytest.approx(0.16, abs=0.04)
    moved = np.mean([off(FORMULA, seed, 0.3) for seed in range(12)])
    explained = 0.3 / np.hypot(0.3, 40**-0.5)  # the correlation of effects with the means of x
    assert moved == pytest.approx(0.36 * explained / told, abs=0.8)
    fit = release_mixed(FORMULA, panel(0, 0.3), public=["x", "g"], seed=1, **ASKED)
    assert NO_MEANS in stated(fit.notes)


def test_the_means_as_a_column_mend_it() -> None:
    check = release_mixed.check(WITH_MEANS, panel(0, 0.3), public=["x", "mean", "g"], **ASKED)
    assert NO_MEANS not in stated(check.expected.notes)
    assert abs(np.mean([off(WITH_MEANS, seed, 0.3) for seed in range(12)])) < 0.6


def test_nothing_is_said_of_columns_that_are_constant_in_groups() -> None:
    data = panel(0, 0.3)
    check = release_mixed.check("y ~ mean + (1 | g)", data, public=["mean", "g"], **ASKED)
    assert NO_MEANS not in stated(check.expected.notes)


def test_a_slope_with_little_sampling_in_its_error_says_what_variance_it_supposes() -> None:
    """With residuals that grow with a far column, an interval without a word held in 80 % of 300 releases."""
    rng = np.random.default_rng(1)
    g = np.repeat(np.arange(80), 40)
    x = rng.normal(size=len(g)) * rng.lognormal(0, 0.7, 80)[g]
    data = {"y": np.full(len(g), 0.5), "x": x, "g": g}
    check = release_mixed.check(FORMULA, data, public=["x", "g"], **ASKED)
    [note] = [note for note in check.expected.notes if ONE_VARIANCE in stated([note])]
    assert "standard errors of (Intercept), x one variance is assumed" in note
    assert float(re.findall(r"x ([0-9.]+)\.", note)[0]) > 2
