from __future__ import annotations

import numpy as np
import pytest

from discreet.roc import bootstrap
from discreet.roc import curve as roc
from discreet.words.errors import DataError
from faults_of import about


def cases(decimals):
    rng = np.random.default_rng(1)
    positive = rng.random(150) < 0.2
    return positive, (rng.normal(size=(3, 150)) + positive).round(decimals)


@pytest.mark.parametrize("decimals", [8, 1, 0])
@pytest.mark.parametrize("fpr", [(0, 0.2), (0.1, 0.4), (0, 1), (0, 0.01)])
def test_each_draw_is_the_area_of_the_resampled_cases(decimals, fpr):
    positive, scores = cases(decimals)
    weights = next(bootstrap._multiplicities(positive, 20, np.random.default_rng(3)))
    assert (weights[positive].sum(0) == positive.sum()).all()
    assert (weights.sum(0) == len(positive)).all()
    expected = [
        [roc.partial_auc(np.repeat(positive, w), np.repeat(row, w), fpr=fpr) for w in weights.T] for row in scores
    ]
    draws = bootstrap.replicate(positive, scores, fpr=fpr, resamples=20, rng=3).draws
    assert draws == pytest.approx(np.array(expected), abs=1e-14)


def test_batches_do_not_change_the_law(monkeypatch):
    positive, scores = cases(8)
    whole = bootstrap.replicate(positive, scores, resamples=4000, rng=1)
    monkeypatch.setattr(bootstrap, "CELLS", 150 * 300)
    parts = bootstrap.replicate(positive, scores, resamples=4000, rng=1)
    assert parts.draws.shape == whole.draws.shape
    assert parts.draws.std(axis=1) == pytest.approx(whole.draws.std(axis=1), rel=0.08)  # five deviations


def test_tests_agree_in_direction_and_tell_a_better_method():
    rng = np.random.default_rng(0)
    positive = np.arange(400) < 60
    noise = rng.normal(size=(2, 400))
    result = bootstrap.replicate(positive, noise + np.array([[1.5], [0.3]]) * positive, rng=0)
    for kind in ("normal", "percentile"):
        assert result.test(0, 1, kind=kind)[1] < 0.01 < 0.9 < result.test(1, 0, kind=kind)[1]
    assert result.test(0, 0) == (0.0, 0.5)
    low, high = result.interval()[0]
    assert low < result.area[0] < high


def test_false_alarms_of_the_paired_test():
    rng = np.random.default_rng(2)
    positive = np.arange(200) < 40
    p = [
        bootstrap.replicate(positive, rng.normal(size=(2, 200)) + positive, resamples=200, rng=i).test(0, 1)[1]
        for i in range(400)
    ]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.045)  # four deviations of 400 trials


def test_band_holds_the_curve():
    positive, scores = cases(8)
    at = np.linspace(0, 1, 21)
    limits = bootstrap.band(positive, scores[0], at=at, resamples=300)
    truth = roc.curve(positive, scores[0]).at(at)
    assert ((limits[:, 0] <= truth) & (truth <= limits[:, 1])).all()


def test_refusals():
    positive, scores = cases(8)
    with pytest.raises(DataError, check=about("resamples")):
        bootstrap.replicate(positive, scores, resamples=1)
    with pytest.raises(DataError, check=about("kind")):
        bootstrap.replicate(positive, scores, resamples=10).test(0, 1, kind="exact")
