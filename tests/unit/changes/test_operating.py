from __future__ import annotations

import numpy as np
import pytest

from discreet.changes.operating import chances, operating_point, rates_left_out
from discreet.roc import curve as roc
from discreet.words.errors import DataError


def curve(seed=0, n=300):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.15
    score = rng.normal(size=n) + 1.2 * positive
    return positive, score, roc.curve(positive, score)


@pytest.mark.parametrize("ratio", [0.5, 3.0, 10.0, 100.0])
def test_no_threshold_costs_less(ratio):
    positive, score, c = curve()
    prevalence = float(positive.mean())
    point = operating_point(c, prevalence=prevalence, cost_ratio=ratio)

    def cost(threshold):
        flagged = score >= threshold
        return ratio * (positive & ~flagged).sum() + (~positive & flagged).sum()

    assert cost(point.threshold) == min(cost(t) for t in [*score, np.inf])
    assert point.slope == pytest.approx((1 - prevalence) / prevalence / ratio)
    flagged = score >= point.threshold
    if flagged.any():
        assert point.precision == pytest.approx(positive[flagged].mean())


def test_the_line_touches_the_curve_from_above():
    positive, _, c = curve(1)
    point = operating_point(c, prevalence=float(positive.mean()), cost_ratio=8)
    assert (c.tpr <= point.tpr + point.slope * (c.fpr - point.fpr) + 1e-12).all()


def test_costlier_misses_flag_more_within_the_limit():
    positive, score, c = curve()
    points = [operating_point(c, prevalence=0.1, cost_ratio=r) for r in (1, 5, 20, 100)]
    assert all(np.diff([p.fpr for p in points]) >= 0)
    assert operating_point(c, prevalence=0.1, cost_ratio=1e6, fpr_limit=0.1).fpr <= 0.1
    nothing = operating_point(roc.curve(positive, -score), prevalence=0.001, cost_ratio=1e-6)
    assert nothing.threshold == np.inf and nothing.fpr == nothing.tpr == 0 and np.isnan(nothing.precision)


@pytest.mark.parametrize(
    "settings", [{"prevalence": 0}, {"prevalence": 0.1, "cost_ratio": 0}, {"prevalence": 0.1, "fpr_limit": 2}]
)
def test_refusals(settings):
    with pytest.raises(DataError) as refused:
        operating_point(curve()[2], **settings)
    assert refused.value.about == [*settings][-1]


def test_chances_by_hand():
    # From the top: 1 | 0 1 | 0 0, with one case of average chance (0.4) at each end, pooled until they rise.
    past, positive = np.array([5.0, 4, 3, 2, 1]), np.array([True, False, True, False, False])
    found = chances(np.array([9.0, 5, 4, 3, 2, 0]), past=past, positive=positive, prevalence=0.4)
    assert found == pytest.approx([0.7, 0.7, 0.5, 0.5, 0.4 / 3, 0.4 / 3])


def test_chances_are_shares_of_what_happens():
    rng = np.random.default_rng(0)
    score = rng.normal(size=40_000)
    positive = rng.random(40_000) < 1 / (1 + np.exp(3 - 2 * score))
    found = chances(
        score[20_000:], past=score[:20_000], positive=positive[:20_000], prevalence=positive[:20_000].mean()
    )
    for low, high in ((0.0, 0.02), (0.02, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.0)):
        inside = (found >= low) & (found < high)
        expected, got = found[inside].sum(), positive[20_000:][inside].sum()
        assert got == pytest.approx(expected, abs=5 * np.sqrt(2 * expected))


def test_chances_follow_the_prevalence_given():
    rng = np.random.default_rng(1)
    positive = rng.random(5000) < 0.2
    score = rng.normal(size=5000) + positive
    rare = chances(score, past=score, positive=positive, prevalence=0.01)
    assert rare.mean() < 0.03 and chances(score, past=score, positive=positive, prevalence=0.2).mean() == pytest.approx(
        0.2, abs=0.01
    )


def test_chances_of_scores_that_say_nothing_are_the_prevalence():
    """Pooling alone expects 40 % too much of the highest scores; what the periods left out say is believed."""
    rng = np.random.default_rng(2)
    naive, drawn = [], []
    for _ in range(40):
        score, positive = rng.normal(size=600), rng.random(600) < 0.05
        top = np.sort(score)[-30:]
        naive.append(chances(top, past=score, positive=positive, prevalence=0.05).mean())
        folds = np.arange(600) % 12
        drawn.append(chances(top, past=score, positive=positive, prevalence=0.05, folds=folds).mean())
    assert np.mean(naive) > 0.065
    assert np.mean(drawn) == pytest.approx(0.05, abs=0.006)
    score, positive = np.arange(600.0), np.arange(600) >= 540
    sure = chances(score, past=score, positive=positive, prevalence=0.1, folds=np.arange(600) % 12)
    assert sure[-1] > 0.95 and sure[0] < 0.01


def test_rates_left_out_are_those_of_new_cases_and_the_chosen_ones_flatter():
    """A threshold of few large changes: its own rates promise more than new cases keep, those left out do not."""
    rng, chosen, left_out, kept = np.random.default_rng(3), [], [], []
    ask = {"prevalence": 0.05, "cost_ratio": 10.0, "fpr_limit": 0.2}
    for _ in range(150):
        positive = rng.random(400) < 0.05
        positive[:8] = True
        score = rng.normal(0.8 * positive, 1)
        point = operating_point(roc.curve(positive, score), **ask)
        chosen.append(point.tpr)
        left_out.append(rates_left_out(score, positive, np.arange(400) % 10, **ask)[1])
        kept.append((rng.normal(0.8, 1, 400) >= point.threshold).mean())
    error = np.std(np.subtract(left_out, kept)) / np.sqrt(150)
    assert abs(np.mean(left_out) - np.mean(kept)) < 3 * error
    assert np.mean(chosen) > np.mean(kept) + 4 * error


def test_rates_of_a_single_period_of_positives_cannot_be_left_out():
    positive = np.array([True, True, False, False])
    found = rates_left_out(np.arange(4.0), positive, np.array([0, 0, 1, 1]), prevalence=0.5, cost_ratio=1.0)
    assert np.isnan(found).all()
