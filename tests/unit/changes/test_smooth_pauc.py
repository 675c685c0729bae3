"""The smoothed partial area: its gradient by differences, and what climbing it gains."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad

from discreet.changes.smooth_pauc import loss, smooth_pauc_regression
from discreet.roc import curve as roc
from discreet.words.errors import FitError
from faults_of import about


def months(seed: int = 0, count: int = 30, series: int = 40):
    rng = np.random.default_rng(seed)
    X = np.concatenate([np.ones((count, series, 1)), rng.normal(size=(count, series, 3)) * [1, 5, 1]], axis=2)
    score = X @ [0.0, 1.0, 0.1, 0.0] + rng.gumbel(size=(count, series))
    return X, np.argsort(np.argsort(-score, axis=1), axis=1) < 4


def test_gradient_and_area():
    X, positive = months(count=4)
    Z, rng = X[:, :, 1:], np.random.default_rng(1)
    up = np.stack([z[p] for z, p in zip(Z, positive, strict=True)])
    share, down = np.full(up.shape[:2], 1 / up.shape[0] / up.shape[1]), ~positive / (~positive).sum(1, keepdims=True)
    about_month = (Z, up, share, down, 0.01, 0.2)
    for b in rng.normal(size=(3, 3)):
        assert check_grad(lambda x: loss(x, *about_month)[0], lambda x: loss(x, *about_month)[1], b) < 1e-6
    # with large scores it is the area itself, but for the rounded end of the range
    steep = np.array([300.0, 30.0, 0.0])
    plain = np.mean([roc.partial_auc(p, z @ steep) for z, p in zip(Z, positive, strict=True)])
    assert -loss(steep, Z, up, share, down, 1e-12, 0.2)[0] == pytest.approx(plain, abs=0.03)


def test_it_ranks_and_scales_do_not_matter():
    X, positive = months()
    found = smooth_pauc_regression(X, positive, penalty=1e-3)
    assert found[0] == 0 and found[1] > 0 and found[2] > 0
    fresh, large = months(seed=7)
    areas = [
        np.mean([roc.partial_auc(p, x @ b) for x, p in zip(fresh, large, strict=True)]) for b in (found, [0, 0, 0, 1])
    ]
    assert areas[0] > 0.08 > areas[1]
    again = smooth_pauc_regression(X * [1, 10, 1, 1], positive, penalty=1e-3)
    assert again * [1, 10, 1, 1] == pytest.approx(found, rel=0.02, abs=0.02)
    with pytest.raises(FitError, check=about("penalty")):
        smooth_pauc_regression(X, positive, penalty=0)
    with pytest.raises(FitError, check=about("positive")):
        smooth_pauc_regression(X, np.zeros_like(positive), penalty=1)
