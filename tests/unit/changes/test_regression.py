from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from discreet.changes import regression
from discreet.words.errors import FitError
from faults_of import about


def months(T=6, n=40, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([np.ones((T, n, 1)), rng.normal(size=(T, n, p - 1))], axis=2)
    return X, X @ np.array([1.0, 0.5, -0.3]) + rng.normal(0, 2, (T, n))


def test_least_squares_after_every_month():
    X, y = months()
    beta = regression.least_squares(regression.moments(X, y))
    for t in range(len(y)):
        direct = np.linalg.lstsq(X[: t + 1].reshape(-1, 3), y[: t + 1].ravel(), rcond=None)[0]
        assert beta[t] == pytest.approx(direct)


def test_posterior_is_the_conjugate_one():
    # With a flat prior on the coefficients and 1/v^(3/2) on the variance, the posterior is known: the variance is
    # inverse gamma with n - p + 1 degrees of freedom, the coefficients are Student around least squares.
    X, y = months(T=2)
    m = regression.moments(X, y).after(slice(1, 2))
    beta, variance = regression.posterior_draws(m, draws=20_000, burn_in=200, rng=3)
    rows, outcome = X.reshape(-1, 3), y.ravel()
    n, p = rows.shape
    center, rss = np.linalg.lstsq(rows, outcome, rcond=None)[:2]
    df = n - p + 1
    assert (1 / variance).mean() == pytest.approx(df / rss[0], rel=0.01)  # 20,000 draws: 0.1 %
    spread = np.sqrt(rss[0] / df * np.diag(np.linalg.inv(rows.T @ rows)))
    for k in range(p):
        z = (beta[:, 0, k] - center[k]) / spread[k]
        assert np.quantile(z, [0.05, 0.5, 0.95]) == pytest.approx(student(df).ppf([0.05, 0.5, 0.95]), abs=0.06)


def test_predictive_quantiles():
    X, y = months(T=2)
    beta, variance = regression.posterior_draws(
        regression.moments(X, y).after(slice(1, 2)), draws=8000, burn_in=100, rng=1
    )
    row = np.array([[1.0, 2.0, -1.0]])
    rows = X.reshape(-1, 3)
    center, rss = np.linalg.lstsq(rows, y.ravel(), rcond=None)[:2]
    df = len(rows) - 3 + 1
    scale = np.sqrt(rss[0] / df * (1 + row @ np.linalg.inv(rows.T @ rows) @ row.T))[0, 0]
    q = np.array([0.1, 0.5, 0.9])
    ours = regression.predictive_quantiles(row, beta[:, 0], variance[:, 0], q, rng=0)[:, 0]
    assert ours == pytest.approx(row[0] @ center + scale * student(df).ppf(q), abs=0.15)


def test_refusals():
    with pytest.raises(FitError, check=about("draws")):
        regression.posterior_draws(regression.moments(*months()), draws=0)
