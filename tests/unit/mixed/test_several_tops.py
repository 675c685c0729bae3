"""Zero-inflated models: effects are at the highest top of their density, and fits where slopes vanish."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.models.linear import likelihood
from discreet.models.linear.families.registry import family
from discreet.models.linear.generalised import FLAT_TOP
from discreet.models.linear.laplace import Problem, Term, laplace, mode

GROUPS, EACH = 12, 8
BETA, THETA, OWN = np.array([1.0]), np.array([1.6]), np.array([-2.0])
BEFORE = (-40.0, 3.0)  # logits of shares at which zeros are counted, and extra
FINE = np.linspace(-5, 5, 2_001)
ALIKE = 1e-9  # of values that differ by rounding alone; tops differ by 0.1 and more
CLOSE = 1e-3  # of a height on the grid: half its step, squared, times a curvature of some hundreds


def problem(*, crossed: bool = False, size: bool = False) -> Problem:
    """Groups of a few counts and many zeros: some have two tops."""
    rng = np.random.default_rng(8)
    g = np.repeat(np.arange(GROUPS), EACH)
    y = np.where(rng.random(len(g)) < 0.7, 0, rng.poisson(np.exp(1.0 + 1.5 * rng.normal(size=GROUPS)[g])))
    ones = np.ones((len(g), 1))
    terms = [Term(ones, g, GROUPS), *([Term(ones, rng.integers(0, 4, len(g)), 4)] if crossed else [])]
    name = "zero-inflated-negative-binomial" if size else "zero-inflated-poisson"
    return Problem(y.astype(np.float64), ones, tuple(terms), np.zeros(len(g)), family(name), None)


@pytest.mark.parametrize("size", [False, True])
@pytest.mark.parametrize("crossed", [False, True])
def test_the_value_depends_on_the_parameters_alone(crossed: bool, size: bool) -> None:
    beta, theta = np.array([4.0]), np.array([1.2, 0.5] if crossed else [1.2])
    found = []
    for before in (None, *BEFORE):
        rows = problem(crossed=crossed, size=size)
        if before is not None:
            laplace(rows, beta, theta, np.array([3.0, before] if size else [before]))
        found.append(laplace(rows, beta, theta, np.array([3.0, -3.0] if size else [-3.0]))[0])
    assert np.ptp(found) < ALIKE


def test_every_group_is_at_its_highest_top() -> None:
    rows = problem()
    (term,), several = rows.terms, 0
    for intercept in (0.0, 1.0, 2.0, 3.0):
        at = mode(rows, np.array([intercept]), THETA, OWN)
        eta = intercept + THETA[0] * FINE
        density = rows.family.near(np.repeat(rows.y, len(FINE)), np.tile(eta, len(rows.y)), OWN).density
        heights = np.add.reduceat(density.reshape(-1, len(FINE)), np.arange(0, len(rows.y), EACH)) - FINE**2 / 2
        inside = heights[:, 1:-1]
        several += int((((inside > heights[:, :-2]) & (inside > heights[:, 2:])).sum(axis=1) > 1).sum())
        held = np.bincount(term.level, rows.near(at.eta, OWN).density) - at.u[0][:, 0] ** 2 / 2
        assert np.abs(held - heights.max(axis=1)).max() < CLOSE
    assert several > 2


def hard(seed: int) -> dict[str, np.ndarray]:
    """Counts of 150 to 700 rows in 5 to 40 groups that differ much, up to 70 % of them extra zeros."""
    rng = np.random.default_rng([77, seed])
    rows, groups = int(rng.integers(150, 700)), int(rng.integers(5, 40))
    g, x = rng.integers(0, groups, rows), rng.normal(size=rows)
    size, share, level = np.exp(rng.uniform(-1.5, 2)), rng.uniform(0.02, 0.7), rng.uniform(0, 3)
    mean = np.exp(level + rng.normal() * 0.5 * x + rng.uniform(0, 1.5) * rng.normal(size=groups)[g])
    spread = rng.gamma(size, 1 / size, rows) if rng.random() < 0.7 else None
    counts = rng.poisson(mean if spread is None else mean * spread)
    return {"y": np.where(rng.random(rows) < share, 0, counts), "x": x, "g": g.astype(str)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [pytest.param(23, marks=pytest.mark.full_size), 44])
def test_no_fit_ends_at_a_flat_top(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches from other shares end there, at any value; of all others the highest is the fit."""

    def loglik() -> float:
        return float(dc.mixed("y ~ x + (1 | g)", hard(seed), family="zero-inflated-poisson").loglik)

    found = loglik()
    monkeypatch.setattr(likelihood, "SMALL", -1.0)
    monkeypatch.setattr(likelihood, "EVEN", 1.5)
    assert loglik() == pytest.approx(found, abs=1e-6)


@pytest.mark.full_size
@pytest.mark.filterwarnings("ignore::discreet.models.linear.fit.MixedWarning")
def test_a_fit_that_has_no_other_end_says_so() -> None:
    fit = dc.mixed("y ~ x + (1 | g)", hard(95), family="zero-inflated-poisson")
    assert FLAT_TOP in fit.notes


@pytest.mark.parametrize("name", ["poisson", "zero-inflated-poisson"])
def test_a_search_that_begins_beyond_doubles_ends_where_others_do(name: str) -> None:
    """Red before: of extra zeros it stayed where it began, and both gave warnings of NumPy's."""
    rows = replace(problem(), family=family(name), weights=np.full(GROUPS * EACH, 1e5))
    own = OWN if rows.family.inflated else np.empty(0)
    here = laplace(rows, BETA, THETA, own)[0]
    far = replace(rows, modes=[np.full((GROUPS, 1), 1e3) for _ in range(2 if rows.family.inflated else 1)])
    assert laplace(far, BETA, THETA, own)[0] == pytest.approx(here, rel=ALIKE)
