from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.changes.power import gram, pairwise_products, power_loss, power_regression
from discreet.changes.quantile import quantile_regression
from discreet.words.errors import FitError
from faults_of import about


def data(seed=0, n=200):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.exponential(size=(n, 2))])
    return X, X @ [1.0, 0.5, -0.2] + rng.standard_t(3, n)


@pytest.mark.parametrize("power", [1.2, 1.7, 2.0, 3.0, 4.0, 8.0])
def test_convex_powers_reach_the_minimum(power):
    X, y = data()
    ours = power_regression(X, y, power)[0]

    def gradient(b):
        e = y - X @ b
        return -power * X.T @ (np.sign(e) * np.abs(e) ** (power - 1))

    best = minimize(lambda b: power_loss(y - X @ b, power), ours * 0, jac=gradient, options={"gtol": 1e-8})
    assert power_loss(y - X @ ours, power) == pytest.approx(best.fun, rel=1e-7)


def test_a_start_leads_to_the_same_convex_minimum_and_to_no_worse_a_local_one():
    X, y = data(n=600)
    powers = np.array([0.4, 0.8, 1.2, 1.7, 3.0])
    alone, before = power_regression(X, y, powers), power_regression(X[:550], y[:550], powers)
    started = power_regression(X, y, powers, start=before)
    excess = power_loss(y - started @ X.T, powers) / power_loss(y - alone @ X.T, powers) - 1
    assert excess[2:] == pytest.approx(np.zeros(3), abs=1e-5)
    assert (excess[:2] < 0.005).all()


def test_landmarks():
    X, y = data()
    absolute, squared = power_regression(X, y, [1.0, 2.0])
    assert absolute == pytest.approx(quantile_regression(X, y, 0.5)[0], abs=1e-3)
    assert squared == pytest.approx(np.linalg.lstsq(X, y, rcond=None)[0], abs=1e-9)


@pytest.mark.parametrize("power", [0.2, 0.5, 0.8])
def test_small_powers_of_a_location_are_near_the_best_data_point(power):
    # The minimum over a single coefficient lies at an observation, so all of them can be tried.
    y = np.concatenate([np.random.default_rng(2).normal(0, 1, 60), np.random.default_rng(3).normal(6, 1, 20)])
    ours = power_regression(np.ones((80, 1)), y, power)[0, 0]
    losses = power_loss(y[:, None] - y[None, :], power)
    assert power_loss((y - ours)[None], power)[0] < 1.02 * losses.min()


def test_gram_matrices():
    X, _ = data()
    weights = np.random.default_rng(0).random((3, len(X)))
    expected = [X.T @ (w[:, None] * X) for w in weights]
    assert gram(weights, pairwise_products(X), X.shape[1]) == pytest.approx(np.array(expected))


def test_refusals():
    X, y = data()
    with pytest.raises(FitError, check=about("power")):
        power_regression(X, y, -1)
    with pytest.raises(FitError, check=about("X")):
        power_regression(np.column_stack([X, X[:, 1]]), y, 1)
