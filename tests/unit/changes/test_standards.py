from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from discreet.changes import standards
from discreet.words.errors import DataError
from faults_of import about


def random_histories(seed=0, n=200):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=rng.integers(5, 40)).cumsum() + 50 for _ in range(n)], rng.normal(size=n) * 3 + 50


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_baseline_by_the_book(lag):
    histories, _ = random_histories()
    base = standards.baseline(histories, lag=lag)
    for i in (0, 17, 199):
        y = histories[i]
        change = [y[t] - y[t - lag] for t in range(lag, len(y))]
        expected = y[-1], change[-1], np.mean(change), np.std(change, ddof=1), y.mean(), y.std(ddof=1)
        got = base.last, base.previous, base.change_mean, base.change_sd, base.level_mean, base.level_sd
        assert [column[i] for column in got] == pytest.approx(expected)


def test_declines_mirror_increases():
    histories, actual = random_histories()
    up, down = standards.baseline(histories), standards.baseline([-h for h in histories])
    for policy in ("relative", "absolute"):
        for regression in ("negative", "drop", "keep"):
            a = standards.large_changes(up, actual, policy=policy, direction="increase", regression=regression)
            b = standards.large_changes(down, -actual, policy=policy, direction="decline", regression=regression)
            assert a.positive.any()
            for field in ("positive", "regression", "kept"):
                np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


def test_regression_to_the_mean():
    quiet = np.tile([10.0, 10.2], 15)
    spike = np.append(quiet, 13.0)
    base = standards.baseline([spike, quiet])
    after = np.array([10.0, 8.0])  # the first falls back to its level, the second falls below it
    rules = {rule: standards.large_changes(base, after, regression=rule) for rule in ("negative", "drop", "keep")}
    assert rules["keep"].positive.tolist() == [True, True]
    assert rules["negative"].positive.tolist() == [False, True]
    assert rules["negative"].kept.tolist() == [True, True]
    assert rules["drop"].kept.tolist() == [False, True]
    assert all(rule.regression.tolist() == [True, False] for rule in rules.values())
    assert not standards.large_changes(base, after, policy="absolute").regression.any()


def test_threshold_is_the_exact_normal_quantile():
    histories, actual = random_histories()
    found = standards.large_changes(standards.baseline(histories), actual, cutoff=0.95, regression="keep")
    assert found.threshold == pytest.approx(norm.ppf(0.95), abs=1e-12)
    base = standards.baseline(histories)
    z = (actual - base.last - base.change_mean) / base.change_sd
    np.testing.assert_array_equal(found.positive, z <= -norm.ppf(0.95))


def test_smoothed_mean_by_recursion_and_without_looking_ahead():
    counts = np.random.default_rng(1).poisson(2.0, (40, 6)).astype(float)
    counts[:, 5] = 0
    means = standards.smoothed_mean(counts, smoothing=0.1, start=8)
    m = counts[:8, 0].mean()
    for t in range(8, 40):
        assert means[t, 0] == pytest.approx(m)
        m = 0.1 * counts[t, 0] + 0.9 * m
    poisoned = counts.copy()
    poisoned[25:] = 1e6
    np.testing.assert_array_equal(standards.smoothed_mean(poisoned, smoothing=0.1, start=8)[:26], means[:26])
    assert (means[:, 5] == 0.5 / 8).all()
    assert standards.poisson_standardise(np.array([[5.0]]), np.array([[4.0]])) == pytest.approx(0.5)


def test_top_of_each_month_marks_exactly_the_largest():
    values = np.random.default_rng(2).normal(size=(30, 50))
    positive = standards.top_of_each_month(values, top=4)
    assert (positive.sum(axis=1) == 4).all()
    assert all(values[t][positive[t]].min() > values[t][~positive[t]].max() for t in range(30))
    assert standards.top_of_each_month(np.zeros((1, 5)), top=2).tolist() == [[True, True, False, False, False]]


@pytest.mark.parametrize(
    ("call", "about"),
    [
        (lambda b, a: standards.large_changes(b, a, cutoff=0.2), "cutoff"),
        (lambda b, a: standards.large_changes(b, a, direction="down"), "direction"),
        (lambda b, a: standards.large_changes(b, a, policy="best"), "policy"),
        (lambda b, a: standards.large_changes(b, a, regression="remove"), "regression"),
        (lambda b, a: standards.baseline([a[:2]]), "histories"),
        (lambda b, a: standards.baseline([a], lag=0), "lag"),
        (lambda b, a: standards.standardise(standards.baseline([a * 0]), a[:1]), "base"),
        (lambda b, a: standards.smoothed_mean(np.ones((4, 2)), start=4), "start"),
        (lambda b, a: standards.smoothed_mean(np.ones((4, 2)), smoothing=1), "smoothing"),
        (lambda b, a: standards.top_of_each_month(np.ones((4, 2)), top=2), "top"),
    ],
)
def test_refusals(call, about):
    histories, actual = random_histories()
    with pytest.raises(DataError) as refused:
        call(standards.baseline(histories), actual)
    assert refused.value.about == about


@pytest.mark.parametrize("history", [[0.1] * 10, [1e9 + 0.1] * 10, [0.0] * 10])
@pytest.mark.parametrize("policy", ["relative", "absolute"])
def test_rounding_is_no_variation(history, policy):
    base = standards.baseline([np.array(history), np.arange(10.0) ** 2])
    with pytest.raises(DataError, check=about("base")):
        standards.standardise(base, np.ones(2), policy=policy)
