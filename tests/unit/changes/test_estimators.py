from __future__ import annotations

import numpy as np
import pytest

from discreet.changes import pauc
from discreet.changes.estimators import (
    OLS,
    BayesianRegression,
    PairwiseRanking,
    PAUCMaximiser,
    PowerLoss,
    QuantileRegression,
)
from discreet.changes.pairwise import rank_regression
from discreet.words.errors import FitError
from faults_of import about

EVERY = [OLS, PowerLoss, QuantileRegression, BayesianRegression, PAUCMaximiser, PairwiseRanking]


def rows(T=4, n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T * n, 2))
    y = X @ [1.0, -0.5] + rng.normal(0, 0.3, T * n)
    return X, y, np.repeat(np.arange(T), n), y > np.quantile(y, 0.9)


@pytest.mark.parametrize("kind", EVERY, ids=lambda k: k.__name__)
def test_every_estimator_learns_and_keeps_its_parameters(kind):
    X, y, groups, positive = rows()
    model = kind(**kind().get_params())
    ranks = kind in (PAUCMaximiser, PairwiseRanking)
    fitted = model.fit(X, positive, groups) if ranks else model.fit(X, y)
    assert fitted is model and model.coef_.shape == (2,) and model.n_features_in_ == 2
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.8
    for name, value in model.get_params().items():
        assert model.set_params(**{name: value}).get_params()[name] == value
    with pytest.raises(FitError, check=about("depth")):
        model.set_params(depth=3)
    with pytest.raises(FitError, check=about("X")):
        model.predict(X[:, :1])
    with pytest.raises(FitError, check=about("fit")):
        kind().predict(X)
    with pytest.raises(FitError, check=about("X")):
        kind().fit(np.vstack([X[:-1], [[np.nan, 0]]]), positive if ranks else y)


def test_they_are_the_array_functions():
    X, _, groups, positive = rows()
    design = np.column_stack([np.ones(len(X)), X]).reshape(4, 50, 3)
    optima = pauc.monthly_optima(design, positive.reshape(4, 50))
    expected = pauc.smoothed(optima, 0.2)[0, -1]
    found = PAUCMaximiser(learning_rate=0.2).fit(X, positive, groups)
    np.testing.assert_array_equal(np.append(found.intercept_, found.coef_), expected)
    ranked = PairwiseRanking(penalty=0.1).fit(X, positive, groups)
    assert ranked.coef_ == pytest.approx(rank_regression(design, positive.reshape(4, 50), penalty=0.1)[1:])


def test_months_come_in_order_whatever_the_order_of_rows():
    X, _, groups, positive = rows()
    shuffle = np.random.default_rng(1).permutation(len(X))
    shuffle = shuffle[np.argsort(-groups[shuffle], kind="stable")]
    first = PairwiseRanking().fit(X, positive, groups).coef_
    assert PairwiseRanking().fit(X[shuffle], positive[shuffle], groups[shuffle]).coef_ == pytest.approx(first)


def test_refusals():
    X, y, groups, positive = rows()
    with pytest.raises(FitError, check=about("y")):
        PairwiseRanking().fit(X, y, groups)
    with pytest.raises(FitError, check=about("groups")):
        PairwiseRanking().fit(X[:-1], positive[:-1], groups[:-1])
    with pytest.raises(FitError, check=about("X")):
        OLS().fit(X, y[:-1])


def test_absolute_loss_is_the_median_regression():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 2))
    y = X @ [1.0, -1.0] + rng.standard_t(2, 80)
    one, median = PowerLoss(power=1.0).fit(X, y), QuantileRegression(tau=0.5).fit(X, y)
    assert np.allclose(one.predict(X), median.predict(X))


@pytest.mark.parametrize("kind", [OLS, PowerLoss, QuantileRegression, BayesianRegression])
@pytest.mark.parametrize("n", [0, 2])
def test_too_few_rows_are_refused(kind, n):
    with pytest.raises(FitError, check=about("X")):
        kind().fit(np.ones((n, 2)), np.ones(n))
