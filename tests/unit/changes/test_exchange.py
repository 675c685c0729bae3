"""Equal methods are called different as seldom as promised, with one positive and with many; better ones are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from discreet.changes import exchange
from discreet.changes.compare import compare_large_changes
from discreet.changes.cutoffs import compare_cutoffs
from discreet.roc import curve as roc

from .test_compare import frames

LEVEL, TRIALS = 0.1, 300
ALLOWED = LEVEL + 3.5 * np.sqrt(LEVEL * (1 - LEVEL) / TRIALS)
"""Three and a half deviations of the share of trials."""


def smallest(rng, methods, positives, negatives=150, shape=lambda x: x):
    positive = np.arange(positives + negatives) < positives
    common, own = rng.normal(size=len(positive)), rng.normal(size=(methods, len(positive)))
    scores = shape(common + own + 1.5 * positive)
    return exchange.leads(positive, scores, exchanges=99, rng=rng).min()


@pytest.mark.parametrize("methods", [2, 4])
@pytest.mark.parametrize("positives", [1, 2, 8, 60, *(pytest.param(n, marks=pytest.mark.full_size) for n in (5, 20))])
def test_equal_methods_are_seldom_told_apart(methods, positives):
    rng = np.random.default_rng(positives)
    found = [smallest(rng, methods, positives) for _ in range(TRIALS)]
    assert np.mean(np.array(found) <= LEVEL) <= ALLOWED
    if positives >= 8:  # and the test is no mere refusal
        assert np.mean(np.array(found) <= LEVEL) >= LEVEL / 2


@pytest.mark.parametrize("methods", [2, 4])
@pytest.mark.parametrize("positives", [1, 2, 5])
def test_randomised_p_values_have_their_level(methods, positives):
    """By the law of a uniform number: a share of trials at every level, not only below it."""
    rng, found = np.random.default_rng(positives), []
    positive = np.arange(positives + 150) < positives
    for _ in range(TRIALS):
        common, own = rng.normal(size=len(positive)), rng.normal(size=(methods, len(positive)))
        found.append(
            exchange.leads(positive, common + own + 1.5 * positive, exchanges=99, rng=rng, randomised=True).min()
        )
    for level in (0.1, 0.5):
        assert abs(np.mean(np.array(found) <= level) - level) < 3.5 * np.sqrt(level * (1 - level) / TRIALS), level


def test_only_scarce_positives_are_randomised():
    rng = np.random.default_rng(0)
    for positives, cluster in ((7, None), (3, np.arange(53)), (8, np.arange(58) // 4)):
        positive = np.arange(positives + 50) < positives
        scores = rng.normal(size=(2, len(positive))) + positive
        p = [exchange.leads(positive, scores, exchanges=50, rng=9, cluster=cluster, randomised=each) for each in (0, 1)]
        assert np.array_equal(*p) == (positives == 7)


@pytest.mark.parametrize("shape", [np.round, lambda x: np.exp(np.stack([x[0], 4 * x[1]]))], ids=["ties", "scales"])
def test_ties_and_scales_do_not_matter(shape):
    for positives in (3, 12):
        rng = np.random.default_rng(positives)
        found = [smallest(rng, 2, positives, shape=shape) for _ in range(TRIALS)]
        assert np.mean(np.array(found) <= LEVEL) <= ALLOWED


@pytest.mark.parametrize("positives", [1, 2])
def test_tied_scores_of_equal_methods_are_not_told_apart(positives):
    """Ties stay ties as names are exchanged, also if two methods tie unlike numbers of cases."""
    rng, positive = np.random.default_rng(7), np.arange(200 + positives) < positives
    found = [
        exchange.leads(positive, np.round(rng.normal(size=(2, len(positive))) + positive), exchanges=99, rng=rng).min()
        for _ in range(100)
    ]
    assert np.mean(np.array(found) <= 0.05) <= 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / 100)


def test_randomised_p_values_of_alarms_that_are_yes_or_no_have_their_level():
    rng, positive = np.random.default_rng(5), np.arange(202) < 2
    found = []
    for _ in range(TRIALS):
        scores = 0.9 * rng.normal(size=202) + 0.45 * rng.normal(size=(2, 202)) + positive > 0
        found.append(exchange.leads(positive, scores.astype(float), exchanges=99, rng=rng, randomised=True).min())
    for level in (0.1, 0.5):
        assert abs(np.mean(np.array(found) <= level) - level) < 3.5 * np.sqrt(level * (1 - level) / TRIALS), level


def test_by_enumeration(monkeypatch):
    """Two methods, four positives: the lead is among the sixteen that signs can make."""
    rng = np.random.default_rng(0)
    positive = np.arange(2004) < 4
    scores = rng.normal(size=(2, 2004)) + [[3.0], [1.0]] * positive
    first, second = (roc.contributions(row[:4], row[4:], 0.0, 0.2) for row in scores)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1)
    exact = np.mean(np.abs((first - second) @ signs) >= abs((first - second).sum()) - 1e-12)
    with monkeypatch.context() as many:
        many.setattr(exchange, "FEW", 0)
        found = exchange.leads(positive, scores, exchanges=20_000)
    assert found.min() == pytest.approx(exact, abs=0.02) and found.max() == 1
    assert exact == 2 * exchange.least(2, 4)
    found = exchange.leads(positive, scores, exchanges=2_000)  # negatives decide between the two that are equal
    assert found.min() == pytest.approx(exact / 2, abs=0.03) and found.max() == 1


def test_names_that_keep_their_ranks_have_their_areas():
    rng = np.random.default_rng(2)
    positive = np.arange(60) < 5
    scores = np.round(rng.normal(size=(3, 60)) + positive, 1)
    kept = [np.broadcast_to(np.arange(3)[None, :, None], (1, 3, cases)) for cases in (55, 5)]
    found = exchange.ExchangedRanks(positive, scores, 0.0, 0.2, np.full(5, 0.2)).areas(*kept)[0]
    assert found == pytest.approx(roc.partial_area(positive, scores, 0.0, 0.2), abs=2 * exchange.WHOLE)


def test_exchanged_names_have_the_areas_of_their_ranks():
    """To the last digits: rounding must not decide between leads that are equal. Ties share their ranks evenly."""
    rng = np.random.default_rng(3)
    positive = np.arange(60) < 5
    scores = np.round(rng.normal(size=(3, 60)) + positive, 1)
    names = np.arange(3)[None, :, None]
    whose = [rng.permuted(np.broadcast_to(names, (20, 3, cases)), axis=1) for cases in (55, 5)]
    found = exchange.ExchangedRanks(positive, scores, 0.0, 0.2, np.full(5, 0.2)).areas(*whose)
    ends = rankdata(scores, "min", axis=1) - 1.0, rankdata(scores, "max", axis=1).astype(float)
    for one, negatives, positives in zip(found, *whose, strict=True):
        order = np.concatenate([positives, negatives], axis=1)
        first, last = (np.take_along_axis(each, order, axis=0) for each in ends)
        for name in range(3):
            low, high = first[name, 5:], last[name, 5:]
            beside, above = (
                np.array([np.clip((high - edge) / (high - low), 0, 1).mean() for edge in each[name, :5]])
                for each in (first, last)
            )
            expected = roc.added(above, beside, 0.0, 0.2) + exchange.WHOLE * (1 - (above + beside) / 2)
            assert one[name] == pytest.approx(expected.mean(), abs=exchange.EQUAL, rel=0)


def test_a_better_method_is_found_whatever_the_number_of_positives(monkeypatch):
    rng = np.random.default_rng(1)
    positive = np.arange(900) < 100
    scores = rng.normal(size=(3, 900)) + [[2.5], [2.4], [0.2]] * positive
    alone = exchange.leads(positive, scores)
    assert alone[2] < 0.01 < 0.2 < alone[1]
    monkeypatch.setattr(exchange, "BLOCKS", 40)
    assert exchange.leads(positive, scores)[2] < 0.01


def test_a_comparison_with_few_positives_warns_and_is_exact():
    panel, forecasts = frames(n=60)
    few = compare_large_changes(panel, forecasts, cutoff=0.995, resamples=200)
    assert 1 <= few.positive.sum() <= 5
    assert f"Only {few.positive.sum()} large change" in few.summary() and few.to_dict()["warning"]
    assert few.positive.sum() <= exchange.SCARCE and few.drawn and "drawn among equal leads" in few.summary()
    other, plain = (
        compare_large_changes(panel, forecasts, cutoff=0.995, resamples=200, **how)
        for how in ({"seed": 1}, {"randomised": False})
    )
    assert few.p[1] != other.p[1] and not plain.drawn
    assert [row["p_plain"] for row in few.rows()] == [row["p"] for row in plain.rows()]
    assert all(row["p_plain"] > 0.05 for row in few.rows()[1:]) and "without drawing" in few.summary()
    many = compare_large_changes(*frames(), cutoff=0.9, resamples=200)
    assert many.to_dict()["warning"] is None and "Only" not in many.summary()


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_many_positives_with_scores_of_yes_or_no_keep_the_level(correlation: float) -> None:
    """Exchanged positives alone, all of which share one of two false positive rates, gave p <= 0.05 in 31 of 100."""
    rng, small = np.random.default_rng(7), 0
    g = np.arange(300) < 100
    for _ in range(100):
        common, own = rng.normal(size=300), rng.normal(size=(2, 300))
        x = (correlation**0.5 * common + (1 - correlation) ** 0.5 * own + g > 0).astype(float)
        small += exchange.leads(g, x, exchanges=99, rng=rng).min() <= 0.05
    assert small <= 15


@pytest.mark.parametrize("ranked", [exchange.RANKED, 0], ids=["exchanges", "normal law"])
@pytest.mark.parametrize("kind", ["value", "clusters"])
def test_tied_scores_by_value_and_in_clusters_keep_the_level(kind, ranked, monkeypatch):
    """With positives exchanged alone, p <= 0.1 in 15 to 22 of 100 of either kind; at 1,000 positives in more."""
    monkeypatch.setattr(exchange, "RANKED", ranked)
    monkeypatch.setattr(exchange, "LEAST", 99)
    positives, negatives, trials = (60, 200, 150) if ranked else (1000, 2000, 150)
    rng, g = np.random.default_rng(11), np.arange(positives + negatives) < positives
    cluster = np.concatenate([np.arange(positives) // 2, np.arange(negatives) % (positives // 2)])
    found = []
    for _ in range(trials):
        own = rng.normal(size=(4, len(g)))
        if kind == "clusters":
            own = np.sqrt(0.5) * (own + rng.normal(size=(4, positives // 2))[:, cluster])
        about = {"cluster": cluster} if kind == "clusters" else {"value": np.exp(rng.normal(size=len(g)))}
        x = (rng.normal(size=len(g)) + own + g > 0.5).astype(float)
        found.append(exchange.leads(g, x, exchanges=99, rng=rng, **about).min())
    share = np.mean(np.array(found) <= LEVEL)
    assert 0.03 <= share <= LEVEL + 3.5 * np.sqrt(LEVEL * (1 - LEVEL) / trials)


def test_what_a_negative_takes_is_the_derivative_of_the_area():
    """Of ties too: one negative weighs a little more, and the area moves by what is said."""
    rng, g = np.random.default_rng(4), np.arange(60) < 20
    for x in (rng.normal(size=60) + g, np.round(rng.normal(size=60) + g), (rng.normal(size=60) + g > 0).astype(float)):
        taken = exchange._taken(g, x[None], np.full(20, 0.05), 0.0, 0.19)[0]  # 0.2 is a corner of the curve
        h = 1e-6
        for k in (0, 7, 39):
            weight = np.ones(40)
            weight[k] += h * 40
            areas = []
            for w in (np.ones(40), weight / weight.mean()):
                above, beside = (
                    np.array([w[far(x[~g], s)].sum() / 40 for s in x[g]]) for far in (np.greater, np.greater_equal)
                )
                areas.append(roc.added(above, beside, 0.0, 0.19).mean())
            assert (areas[1] - areas[0]) / h == pytest.approx(40 * (taken[k] - taken.mean()), abs=1e-3)


def test_verdicts_over_cutoffs_are_not_drawn():
    """With one large change a drawn p is small by luck: a verdict has none of it."""
    found = compare_cutoffs(*frames(n=60), cutoffs=(0.99, 0.995), resamples=50)
    assert all(each.drawn for each in found.comparisons)
    unlucky = replace(found, comparisons=tuple(replace(each, p=np.zeros(len(each.p))) for each in found.comparisons))
    assert set(unlucky.always_near_the_best) == set(found.methods) and "*" in unlucky.summary()
