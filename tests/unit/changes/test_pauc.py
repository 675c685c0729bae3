from __future__ import annotations

import numpy as np
import pytest

from discreet.changes import pauc
from discreet.roc import curve as roc
from discreet.words.errors import FitError
from faults_of import about


def month(seed=0, n=120, top=5):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    signal = X @ [0.0, 1.0, -0.5] + rng.normal(0, 0.5, n)
    positive = np.zeros(n, bool)
    positive[np.argsort(-signal)[:top]] = True
    return X, signal, positive


def test_nearly_the_best_of_all_directions():
    X, y, positive = month()
    angles = np.linspace(0, 2 * np.pi, 4000)
    every = np.cos(angles)[:, None] * X[:, 1] + np.sin(angles)[:, None] * X[:, 2]
    best = roc.partial_auc(positive, every).max()
    start = np.linalg.lstsq(X, y, rcond=None)[0]
    found = pauc.maximise(X, positive, start=start)
    assert roc.partial_auc(positive, X @ found) >= roc.partial_auc(positive, X @ start)
    assert roc.partial_auc(positive, X @ found) == pytest.approx(best, abs=0.002)


def test_the_simplex_stays_on_its_side():
    X, y, positive = month()
    wrong = -np.linalg.lstsq(X, y, rcond=None)[0]
    assert roc.partial_auc(positive, X @ pauc.maximise(X, positive, start=wrong)) < 0.1


def test_each_months_optimum_is_its_own():
    drawn = [month(seed) for seed in range(3)]
    X, y, positive = (np.stack(part) for part in zip(*drawn, strict=True))
    for explain in (None, y):
        optima = pauc.monthly_optima(X, positive, explain=explain, evaluations=100)
        part = None if explain is None else y[1:2]
        alone = pauc.monthly_optima(X[1:2], positive[1:2], explain=part, evaluations=100)
        np.testing.assert_array_equal(optima[1], alone[0])
        start = np.linalg.lstsq(X[1], positive[1] if explain is None else y[1], rcond=None)[0]
        np.testing.assert_array_equal(optima[1], pauc.maximise(X[1], positive[1], start=start, evaluations=100))


def test_smoothing_by_recursion():
    optima = np.random.default_rng(0).normal(size=(6, 2))
    path = pauc.smoothed(optima, [0.0, 0.3, 1.0])
    np.testing.assert_array_equal(path[0], np.broadcast_to(optima[0], (6, 2)))
    np.testing.assert_array_equal(path[2], optima)
    b = optima[0]
    for t in range(1, 6):
        b = 0.3 * optima[t] + 0.7 * b
        assert path[1, t] == pytest.approx(b)


def test_refusals():
    X, y, positive = month()
    with pytest.raises(FitError, check=about("positive")):
        pauc.maximise(X, positive & False, start=y[:3])
    with pytest.raises(FitError, check=about("rate")):
        pauc.smoothed(np.ones((2, 2)), 1.5)
