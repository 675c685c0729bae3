from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet.roc import curve as roc
from discreet.words.errors import DataError
from faults_of import about


def outcomes_and_scores():
    size = st.shared(st.integers(4, 40), key="n")
    scores = size.flatmap(lambda n: arrays(float, (3, n), elements=st.integers(-4, 4).map(float)))
    flags = size.flatmap(lambda n: arrays(bool, n)).filter(lambda g: g.any() and not g.all())
    return st.tuples(flags, scores)


def by_counting_pairs(positive, score):
    up, down = score[positive][:, None], score[~positive][None, :]
    return ((up > down) + (up == down) / 2).mean()


@settings(deadline=None, max_examples=40)
@given(outcomes_and_scores())
def test_area_counts_pairs(case):
    positive, scores = case
    expected = [by_counting_pairs(positive, row) for row in scores]
    assert roc.auc(positive, scores) == pytest.approx(expected)
    assert roc.partial_auc(positive, scores, fpr=(0, 1)) == pytest.approx(expected)


@settings(deadline=None, max_examples=40)
@given(outcomes_and_scores(), st.floats(0.05, 0.95))
def test_partial_areas_add_up_and_ignore_monotone_maps(case, cut):
    positive, scores = case
    left, right = (roc.partial_auc(positive, scores, fpr=r) for r in ((0, cut), (cut, 1)))
    assert left + right == pytest.approx(roc.auc(positive, scores))
    assert roc.partial_auc(positive, np.exp(scores), fpr=(0, cut)) == pytest.approx(left)


@settings(deadline=None, max_examples=40)
@given(outcomes_and_scores())
def test_curve_integrates_to_the_partial_area(case):
    positive, scores = case
    c = roc.curve(positive, scores[0])
    assert (c.fpr[0], c.tpr[0], c.fpr[-1], c.tpr[-1]) == (0, 0, 1, 1)
    assert roc.area(c.fpr[None], c.tpr[None], 0, 0.3) == pytest.approx(
        roc.partial_auc(positive, scores[:1], fpr=(0, 0.3))
    )
    for fpr, tpr, threshold in zip(c.fpr, c.tpr, c.threshold, strict=True):
        flagged = scores[0] >= threshold
        assert (flagged[~positive].mean(), flagged[positive].mean()) == pytest.approx((fpr, tpr))


def test_known_values():
    positive = np.array([1, 1, 0, 0, 0, 0, 0], bool)
    perfect, constant = np.arange(7)[::-1].astype(float), np.zeros(7)
    assert roc.partial_auc(positive, perfect) == pytest.approx(0.2)
    assert roc.partial_auc(positive, constant) == pytest.approx(0.02)
    assert roc.partial_auc(positive, [perfect, constant], scale="mcclish") == pytest.approx([1, 0.5])
    assert roc.partial_auc(positive, -perfect) == 0


def test_delong_variance_is_the_sampling_variance():
    rng = np.random.default_rng(4)
    positive = np.arange(300) < 60
    areas, variances = [], []
    for _ in range(400):
        d = roc.delong(positive, rng.normal(size=(2, 300)) + 0.8 * positive)
        areas.append(d.auc), variances.append(np.diag(d.covariance))
    ratio = np.mean(variances, axis=0) / np.var(areas, axis=0)
    assert ratio == pytest.approx([1, 1], abs=0.35)  # the variance of 400 areas is known to 7 %


def test_identical_methods_do_not_differ():
    positive = np.arange(20) < 5
    score = np.random.default_rng(0).normal(size=20)
    assert roc.delong(positive, [score, score]).test(0, 1) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("positive", "scores", "fpr", "subject", "fact"),
    [
        ([0, 0, 0], [1, 2, 3], (0, 0.2), "positive", "0 of 3"),
        ([1, 1, 1], [1, 2, 3], (0, 0.2), "positive", "3 of 3"),
        ([0, 1, 0], [1, np.nan, 3], (0, 0.2), "scores", "1 of 3"),
        ([0, 1, 0], [1, np.inf, 3], (0, 0.2), "scores", "1 of 3"),
        ([1], [1], (0, 0.2), "positive", "there is 1."),
        ([0, 1], [1, 2, 3], (0, 0.2), "positive", "(3,)"),
        ([0, 2], [1, 2], (0, 0.2), "positive", "0 and 1"),
        ([0, 1], [1, 2], (0.2, 0), "fpr", "(0.2, 0)"),
        ([0, 1], [1, 2], (0, 1.2), "fpr", "(0, 1.2)"),
    ],
)
def test_what_has_no_curve_is_refused(positive, scores, fpr, subject, fact):
    with pytest.raises(DataError, check=about(subject, naming=(fact,))):
        roc.partial_auc(positive, scores, fpr=fpr)


def test_refusals_of_the_rest():
    with pytest.raises(DataError, check=about("scale")):
        roc.partial_auc([0, 1], [1, 2], scale="percent")
    with pytest.raises(DataError, check=about("cutoff")):
        roc.delong([0, 0, 1], [1, 2, 3])
    with pytest.raises(DataError, check=about("cutoff")):
        roc.binormal(roc.curve([0, 0, 1, 1], [1, 2, 3, 4]))
    with pytest.raises(DataError, check=about("alternative")):
        roc.z_test(1.0, 1.0, alternative="bigger")


def test_binormal_curve_rises_within_the_square():
    rng = np.random.default_rng(1)
    positive = np.arange(400) < 80
    smooth = roc.binormal(roc.curve(positive, rng.normal(size=400) + positive))
    assert (np.diff(smooth.tpr) >= 0).all()
    assert smooth.tpr[0] == 0 and smooth.tpr[-1] == 1
