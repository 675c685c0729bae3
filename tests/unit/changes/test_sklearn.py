"""The estimators inside scikit-learn: what its own do, ours do."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone, is_regressor  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import LinearRegression, QuantileRegressor  # noqa: E402
from sklearn.metrics import average_precision_score, roc_auc_score  # noqa: E402
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils import estimator_checks  # noqa: E402

from discreet.changes.estimators import (  # noqa: E402
    OLS,
    BayesianRegression,
    PairwiseRanking,
    PAUCMaximiser,
    PowerLoss,
    QuantileRegression,
)
from discreet.roc import curve as roc  # noqa: E402
from discreet.words.errors import FitError  # noqa: E402
from faults_of import about  # noqa: E402

from .test_estimators import EVERY, rows  # noqa: E402

RANKS = (PAUCMaximiser, PairwiseRanking)
GRIDS = {
    PowerLoss: {"power": [1.5, 2.0]},
    QuantileRegression: {"tau": [0.1, 0.5]},
    BayesianRegression: {"quantile": [0.2, 0.5]},
    PAUCMaximiser: {"learning_rate": [0.1, 0.9]},
    PairwiseRanking: {"penalty": [0.01, 1.0]},
}


def target(kind):
    X, y, groups, positive = rows()
    return X, (positive.astype(int) if kind in RANKS else y), groups


@pytest.mark.parametrize("kind", EVERY, ids=lambda k: k.__name__)
def test_clone_pipeline_cross_validation_and_pickles(kind):
    X, y, _ = target(kind)
    assert clone(kind()).get_params() == kind().get_params()
    assert is_regressor(kind()) == (kind not in RANKS)
    piped = make_pipeline(StandardScaler(), kind()).fit(X, y)
    assert np.corrcoef(piped.predict(X), kind().fit(X, y).predict(X))[0, 1] > 0.99
    scores = cross_val_score(kind(), X, y, cv=2)
    assert np.isfinite(scores).all() and (scores > (0.05 if kind in RANKS else 0.5)).all()
    fitted = kind().fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


@pytest.mark.parametrize("kind", list(GRIDS), ids=lambda k: k.__name__)
def test_grid_search(kind):
    X, y, groups = target(kind)
    search = GridSearchCV(kind(), GRIDS[kind], cv=GroupKFold(2), error_score="raise").fit(X, y, groups=groups)
    assert search.best_params_ == {name: values[search.best_index_] for name, values in GRIDS[kind].items()}
    assert search.predict(X).shape == (len(X),)
    piped = GridSearchCV(
        make_pipeline(StandardScaler(), kind()),
        {f"{kind.__name__.lower()}__{name}": values for name, values in GRIDS[kind].items()},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert np.isfinite(piped.best_score_)


def test_figures_are_scikit_learns():
    X, y, groups = target(OLS)
    expected = cross_val_score(LinearRegression(), X, y, cv=4)
    assert cross_val_score(OLS(), X, y, cv=4) == pytest.approx(expected)
    theirs = QuantileRegressor(quantile=0.3, alpha=0).fit(X, y)
    assert QuantileRegression(tau=0.3).fit(X, y).coef_ == pytest.approx(theirs.coef_, abs=1e-6)
    positive = y > np.quantile(y, 0.9)
    ranked = PairwiseRanking().fit(X, positive, groups)
    assert ranked.score(X, positive) == pytest.approx(roc.partial_auc(positive, ranked.predict(X)))


@pytest.mark.parametrize("kind", RANKS, ids=lambda k: k.__name__)
def test_months_reach_the_models_of_ranking(kind):
    X, y, groups = target(kind)
    with sklearn.config_context(enable_metadata_routing=True):
        found = GridSearchCV(kind(), GRIDS[kind], cv=GroupKFold(2), error_score="raise").fit(X, y, groups=groups)
    alone = kind(**found.best_params_).fit(X, y, groups)
    np.testing.assert_array_equal(found.best_estimator_.coef_, alone.coef_)
    piped = make_pipeline(StandardScaler(), kind()).fit(X, y, **{f"{kind.__name__.lower()}__groups": groups})
    assert np.corrcoef(piped.predict(X), alone.predict(X))[0, 1] > 0.99


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
@pytest.mark.parametrize("kind", RANKS, ids=lambda k: k.__name__)
def test_scikit_learns_measures_of_rankings_score_ours(kind, scoring):
    """Before, each of these was nan, because its scorers found no `decision_function`."""
    X, y, groups = target(kind)
    folds = GroupKFold(2)
    measure = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}[scoring]
    expected = [
        measure(y[test], kind().fit(X[train], y[train]).predict(X[test])) for train, test in folds.split(X, y, groups)
    ]
    found = cross_val_score(kind(), X, y, groups=groups, cv=folds, scoring=scoring, error_score="raise")
    assert found == pytest.approx(expected) and (found > 0.3).all()
    piped = make_pipeline(StandardScaler(), kind())
    assert np.isfinite(cross_val_score(piped, X, y, cv=2, scoring=scoring, error_score="raise")).all()
    for model, grid in (
        (kind(), GRIDS[kind]),
        (piped, {f"{kind.__name__.lower()}__{name}": values for name, values in GRIDS[kind].items()}),
    ):
        search = GridSearchCV(model, grid, cv=2, scoring=scoring, error_score="raise").fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()


SENSIBLE = [
    "check_no_attributes_set_in_init",
    "check_fit_score_takes_y",
    "check_estimators_overwrite_params",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_dict_unchanged",
    "check_estimators_pickle",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_regressors_int",
    "check_regressors_train",
    "check_estimators_dtypes",
    "check_regressors_no_decision_function",
    "check_supervised_y_no_nan",
    "check_estimators_nan_inf",
    "check_n_features_in",
]


@pytest.mark.parametrize("check", SENSIBLE)
@pytest.mark.parametrize("kind", [OLS, PowerLoss, QuantileRegression], ids=lambda k: k.__name__)
def test_scikit_learns_own_checks(kind, check):
    getattr(estimator_checks, check)(kind.__name__, kind())


CHECKED = [OLS(), PowerLoss(), QuantileRegression(), BayesianRegression(draws=50), PAUCMaximiser(), PairwiseRanking()]


@pytest.mark.parametrize("estimator", CHECKED, ids=lambda each: type(each).__name__)
def test_scikit_learns_own_checks_pass(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that do not apply
        found = estimator_checks.check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(found) > 40
    assert not [(each["check_name"], each["exception"]) for each in found if each["status"] == "failed"]


def test_a_model_that_has_not_been_fitted_says_so_in_both_languages():
    with pytest.raises(FitError, check=about("fit")) as refused:
        OLS().predict([[1.0]])
    assert isinstance(refused.value, NotFittedError)
