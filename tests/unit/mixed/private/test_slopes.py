"""Models that suppose one slope for all groups say so beside every slope, before and after they are paid for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.models.linear.private import release_mixed
from discreet.words.caveats import ONE_LAG, ONE_SLOPE, stated

WORD = "one slope"
ASKED: dict[str, Any] = {"public": ["x", "w", "kind", "g", "h"], "bounds": (-10, 10), "seed": 3}


def data(slopes: float = 0.0, seed: int = 1, groups: int = 80, rows: int = 50) -> dict[str, np.ndarray]:
    """`w` is constant within groups, `kind` varies in them; groups of unequal sizes in ten `h`."""
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(groups), rng.integers(rows // 2, 3 * rows // 2, groups))
    x, b = rng.normal(size=len(g)), rng.normal(0, slopes, groups) if slopes else np.zeros(groups)
    kind = rng.integers(0, 2, len(g))
    y = 1 + (0.6 + b[g]) * x + rng.normal(0, 0.5, groups)[g] + rng.normal(size=len(g))
    return {"y": y, "x": x, "w": rng.normal(size=groups)[g], "kind": np.array(["a", "b"])[kind], "g": g, "h": g % 10}


def flagged(fit: Any) -> set[str | None]:
    return {flag.term for flag in fit.flags if flag.word == WORD}


def test_the_slope_is_flagged_in_the_fit_its_tables_and_its_text() -> None:
    fit = release_mixed("y ~ x + w + kind + (1 | g)", data(), epsilon=20, **ASKED)
    assert flagged(fit) == {"x", "kindb"}, "not the intercept, and not what is constant within groups"
    for table in (fit.tidy(), fit.published()):
        words = {row["term"]: row["flag"] or "" for row in table.to_pylist() if row["effect"] == "fixed"}
        assert {term for term, flag in words.items() if WORD in flag} == {"x", "kindb"}
    assert ONE_SLOPE in fit.summary().split("Variances:")[0]
    assert ONE_SLOPE in stated(fit.notes) and WORD in {flag["word"] for flag in fit.to_dict()["flags"]}


@pytest.mark.parametrize("more", [{}, {"family": "poisson", "bounds": (0, 20)}])
def test_it_is_said_before_anything_is_paid(more: dict[str, Any]) -> None:
    asked = {**ASKED, **more}
    check = release_mixed.check("y ~ x + (1 | g)", data(), epsilon=20, **asked)
    [note] = [note for note in check.expected.notes if ONE_SLOPE in stated([note])]
    assert "flagged" in note and note in str(check)


@pytest.mark.parametrize(
    ("formula", "slopes"),
    [
        ("y ~ x + kind + (1 + x | g)", {"kindb"}),
        ("y ~ x + (1 | g) + (0 + x | g)", set()),
        ("y ~ x + (1 | g) + (1 | kind)", {"x"}),
        ("y ~ x + (1 | h/g)", {"x"}),
        ("y ~ w + (1 | g)", set()),
        ("y ~ x", set()),
    ],
)
def test_a_slope_of_its_own_by_group_has_no_flag(formula: str, slopes: set[str]) -> None:
    fit = release_mixed(formula, data(), epsilon=20, **ASKED)
    assert flagged(fit) == slopes
    check = release_mixed.check(formula, data(), epsilon=20, **ASKED)
    assert (ONE_SLOPE in stated(check.expected.notes)) == bool(slopes)


def test_where_noise_is_nearly_all_of_an_error_no_slopes_matter() -> None:
    fit = release_mixed("y ~ x + (1 | g)", data(), epsilon=0.05, **ASKED)
    assert not flagged(fit)


@pytest.mark.parametrize("formula", ["y ~ x + (1 | g)", "y ~ x + (1 | h)"])
def test_the_deviation_that_is_told_adds_an_eighth_to_the_squared_error(formula: str) -> None:
    """The noise has a seed, so two releases differ by what their slopes add to the estimate."""
    plain = data()
    fit = release_mixed(formula, plain, epsilon=40, **ASKED)
    [flag] = [flag for flag in fit.flags if flag.word == WORD]
    by = plain[formula[-2]]
    n = np.bincount(by)
    spread = (fit.se["x"] or 0.0) * np.sqrt(n.sum() ** 2 / (8 * n @ n))
    assert f"x ({spread:.2g})" in flag.note
    rng, moved = np.random.default_rng(5), []
    for _ in range(60):
        own = rng.normal(0, spread, by.max() + 1)
        other = release_mixed(formula, plain | {"y": plain["y"] + own[by] * plain["x"]}, epsilon=40, **ASKED)
        moved.append(other.fixed["x"] - fit.fixed["x"])
    share = float(np.mean(np.square(moved))) / (fit.se["x"] or 0.0) ** 2
    assert share == pytest.approx(1 / 8, rel=0.6), "60 squares vary by a fifth, groups differ in squares of x"


def panel(spread: float, seed: int) -> dict[str, np.ndarray]:
    """60 series of 25 periods whose coefficients differ by `spread` about 0.5."""
    rng = np.random.default_rng(seed)
    phi, y = 0.5 + spread * rng.normal(size=60), np.zeros((60, 60))
    for t in range(1, 60):
        y[:, t] = phi * y[:, t - 1] + rng.normal(size=60)
    s, t = np.divmod(np.arange(60 * 25), 25)
    return {"y": y[s, t + 35], "s": np.array([f"s{i:02d}" for i in range(60)])[s], "t": t}


LAGS: dict[str, Any] = {"public": ["s", "t"], "series": ["s"], "time": "t", "bounds": (-8, 8)}


def test_one_lag_for_all_series_is_said_before_and_flagged_afterwards() -> None:
    """At the deviation that is told the estimate is too large by about a third of its error, or varies by as much."""
    fit = release_mixed("y ~ lag(y, 1)", panel(0.0, 1), epsilon=100, seed=1, **LAGS)
    assert flagged(fit) == {"lag(y, 1)"} and ONE_LAG in stated(fit.notes)
    assert ONE_LAG in stated(release_mixed.check("y ~ lag(y, 1)", panel(0.0, 1), epsilon=100, **LAGS).expected.notes)
    [note] = {flag.note for flag in fit.flags if flag.word == WORD}
    spread, error = float(note.split("lag(y, 1) (")[1].split(")")[0]), fit.se["lag(y, 1)"] or 0.0
    off = []
    for seed in range(40):
        two = [release_mixed("y ~ lag(y, 1)", panel(s, seed), epsilon=100, seed=1, **LAGS) for s in (0.0, spread)]
        off.append(two[1].fixed["lag(y, 1)"] - two[0].fixed["lag(y, 1)"])
    assert 0.2 < np.sqrt(np.mean(np.square(off))) / error < 0.8
