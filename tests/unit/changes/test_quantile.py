from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from discreet.changes import quantile
from discreet.changes.quantile import check_loss, quantile_regression
from discreet.words.errors import FitError
from faults_of import about


def counts(n=300, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.poisson(1.5, (n, p - 1))]).astype(float)
    return X, rng.poisson(0.3 + 0.2 * X[:, 1]).astype(float)


@pytest.mark.parametrize("tau", [0.001, 0.08, 0.5, 0.77, 0.999])
def test_loss_is_the_linear_programmes(tau):
    X, y = counts()
    n, p = X.shape
    cost = np.concatenate([np.zeros(p), np.full(n, tau), np.full(n, 1 - tau)])
    best = linprog(
        cost, A_eq=np.hstack([X, np.eye(n), -np.eye(n)]), b_eq=y, bounds=[(None, None)] * p + [(0, None)] * 2 * n
    )
    assert check_loss(y - X @ quantile_regression(X, y, tau)[0], tau) == pytest.approx(best.fun, abs=1e-7)


def test_median_of_a_constant_design_is_the_median():
    y = np.random.default_rng(1).normal(size=51)
    assert quantile_regression(np.ones((51, 1)), y, 0.5) == pytest.approx(np.array([[np.median(y)]]))


def test_batches_do_not_matter(monkeypatch):
    X, y = counts(seed=3)
    y = y + np.random.default_rng(0).normal(size=len(y))
    taus = np.linspace(0.05, 0.95, 7)
    together = quantile_regression(X, y, taus)
    monkeypatch.setattr(quantile, "CELLS", 1)
    assert quantile_regression(X, y, taus) == pytest.approx(together, abs=1e-10)


def test_scaling_of_the_outcome():
    X, y = counts(seed=5)
    y = y + np.random.default_rng(0).normal(size=len(y))
    assert quantile_regression(X, 1e6 * y, 0.3) == pytest.approx(1e6 * quantile_regression(X, y, 0.3), rel=1e-9)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_start_changes_the_work_and_not_the_answer(noise):
    # Whole numbers tie thousands of rows at zero; the wrong start must widen its band until no row changes sides.
    X, y = counts(n=6000, p=3, seed=7)
    y = y + noise * np.random.default_rng(0).normal(size=len(y))
    taus = np.array([0.001, 0.1, 0.5, 0.8, 0.999])
    alone = quantile_regression(X, y, taus)
    for start in (quantile_regression(X[:5500], y[:5500], taus), np.full((5, 3), 9.0)):
        started = quantile_regression(X, y, taus, start=start)
        assert check_loss(y - started @ X.T, taus) == pytest.approx(check_loss(y - alone @ X.T, taus), abs=1e-6)
        if noise:
            assert started == pytest.approx(alone, abs=1e-8)


def test_zero_is_recognised_as_the_low_quantile_of_rare_counts():
    X, y = counts(n=6000, p=3, seed=7)
    zero = np.zeros(3)
    assert quantile._optimal(X, y - X @ zero, 0.1)
    assert quantile_regression(X, y, 0.1, start=zero[None]).tolist() == [[0, 0, 0]]
    assert not quantile._optimal(X, y - X @ zero, 0.9)
    assert check_loss(y - X @ quantile_regression(X, y, 0.1)[0], 0.1) == pytest.approx(check_loss(y, 0.1), abs=1e-6)


def test_refusals():
    X, y = counts()
    for tau in (0, 1, [0.5, 1.2]):
        with pytest.raises(FitError, check=about("quantile")):
            quantile_regression(X, y, tau)
    with pytest.raises(FitError, check=about("X")):
        quantile_regression(np.column_stack([X, X[:, 1]]), y, 0.5)


@pytest.mark.parametrize(("seed", "taus"), [(20, (0.5,)), (44, (0.05, 0.9)), (52, (0.5,))])
def test_a_start_never_ends_in_an_error_of_linear_algebra(seed, taus):
    """Rare dummies: the rows of a band can leave Newton's matrix singular where all rows do not."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1000, 3000)), int(rng.integers(2, 6))
    X = np.column_stack([np.ones(n), rng.random((n, p - 1)) < 0.02]).astype(float)
    y = rng.normal(size=n) * 1e6
    cold = quantile_regression(X, y, taus)
    for start in (0 * cold, np.full_like(cold, 9.0), *(size * rng.normal(size=cold.shape) for size in (1e9, 1e3, 1e9))):
        warm = quantile_regression(X, y, taus, start=start)
        assert check_loss(y - warm @ X.T, taus) == pytest.approx(check_loss(y - cold @ X.T, taus), rel=1e-9)
