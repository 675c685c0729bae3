from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.changes.pairwise import rank_regression
from discreet.words.errors import FitError
from faults_of import about


def panel(seed=0, T=8, n=30, p=3):
    rng = np.random.default_rng(seed)
    X = np.concatenate([np.ones((T, n, 1)), rng.normal(size=(T, n, p)) * [1.0, 5.0, 0.2]], axis=2)
    score = X @ [9.0, 1.0, 0.1, 0.0] + rng.normal(0, 2, (T, n))
    positive = score > 1.5 + 9
    positive[0], positive[1] = False, True  # months that cannot be ranked
    positive[2] = np.arange(n) < 1
    return X, positive


def by_the_definition(X, positive, penalty):
    use = [t for t in range(len(X)) if 0 < positive[t].sum() < X.shape[1]]
    spread = X[use].std(axis=(0, 1))[1:]

    def loss(b):
        total = 0.0
        for t in use:
            s = X[t][:, 1:] / spread @ b
            pairs = s[positive[t]][:, None] - s[~positive[t]]
            total += np.logaddexp(0, -pairs).mean() / len(use)
        return total + penalty * b @ b

    return minimize(loss, np.zeros(3), options={"gtol": 1e-9}).x / spread


@pytest.mark.parametrize("penalty", [1e-3, 0.05, 1.0])
def test_minimum_of_the_pairwise_loss(penalty):
    X, positive = panel()
    ours = rank_regression(X, positive, penalty=penalty)
    assert ours[0] == 0
    assert ours[1:] == pytest.approx(by_the_definition(X, positive, penalty), abs=1e-5)


def test_the_start_does_not_matter():
    X, positive = panel()
    cold = rank_regression(X, positive, penalty=0.01)
    assert rank_regression(X, positive, penalty=0.01, start=np.array([0, -9.0, 3.0, 20.0])) == pytest.approx(cold)


def test_separable_data_stay_finite():
    X, _ = panel()
    positive = X[:, :, 1] > 0.7
    beta = rank_regression(X, positive, penalty=1e-4)
    assert np.isfinite(beta).all() and beta[1] > 0


def test_refusals():
    X, positive = panel()
    with pytest.raises(FitError, check=about("penalty")):
        rank_regression(X, positive, penalty=0)
    with pytest.raises(FitError, check=about("positive")):
        rank_regression(X, positive & False, penalty=0.1)
