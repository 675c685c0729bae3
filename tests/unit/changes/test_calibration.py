"""Limits of chances and of right alarms: exact where there is a closed form, and right in repeated draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from discreet.changes.alarms import ListLength, alarms
from discreet.changes.calibration import Periods, right_alarms, spread_of_periods
from discreet.words.errors import DataError
from faults_of import about


def test_independent_alarms_are_binomial():
    found = right_alarms(np.full(20, 0.3), known=1e12)
    assert found.expected == pytest.approx(6) and (found.low, found.high) == tuple(binom.ppf([0.05, 0.95], 20, 0.3))
    assert right_alarms(np.zeros(0)).expected == 0 and right_alarms(np.ones(5)).high == 5


def test_a_shared_factor_widens_the_limits_to_what_happens():
    """Periods with a common factor: 90 % of the counts lie within; without the factor in the limits, far fewer."""
    rng = np.random.default_rng(0)
    chance, spread, draws = np.full(40, 0.2), 0.2, 4000
    factor = rng.gamma(1 / spread, spread, draws)
    got = rng.binomial(40, np.minimum(0.2 * factor, 1))
    wide, narrow = right_alarms(chance, spread=spread, periods=10**9, known=1e12), right_alarms(chance, known=1e12)
    within = [np.mean((each.low <= got) & (got <= each.high)) for each in (wide, narrow)]
    assert 0.88 < within[0] < 0.96 and within[1] < 0.8


def test_the_shared_factor_is_found():
    rng = np.random.default_rng(1)
    expected = rng.uniform(5, 15, 3000)
    got = rng.poisson(expected * rng.gamma(1 / 0.1, 0.1, 3000))
    assert spread_of_periods(expected, expected, got) == pytest.approx(0.1, rel=0.15)
    assert spread_of_periods(expected, expected, rng.poisson(expected)) < 0.01
    assert spread_of_periods(np.zeros(3), np.zeros(3), np.zeros(3)) == 0


def simulated(rng, periods=24, series=300, shared=0.3):
    period = np.repeat(np.arange(periods), series)
    score = rng.normal(size=periods * series)
    logit = -3.5 + 1.2 * score + shared * rng.normal(size=periods)[period]
    return score, rng.random(len(score)) < 1 / (1 + np.exp(-logit)), period


def test_limits_of_chances_hold_the_truth():
    """Truth: the mean chance at a score over periods. Resampling cases instead of periods would be too narrow."""
    rng = np.random.default_rng(2)
    at, shocks = np.array([0.5, 1.5]), np.random.default_rng(9).normal(size=20000)
    truth = np.array([np.mean(1 / (1 + np.exp(3.5 - 1.2 * x - 0.5 * shocks))) for x in at])
    inside = []
    for _ in range(60):
        low, high = Periods.of(*simulated(rng, shared=0.5)).chances(at)
        inside.append((low <= truth) & (truth <= high))
    assert (np.mean(inside, axis=0) > 0.75).all()


def test_areas_of_scores_that_say_nothing_include_chance():
    rng = np.random.default_rng(3)
    _, positive, period = simulated(rng)
    blind = np.random.default_rng(4).normal(size=len(period))
    low, high = Periods.of(blind, positive, period).areas((0.0, 0.2))
    assert low <= 0.02 <= high
    told = simulated(rng)
    assert Periods.of(*told).areas((0.0, 0.2))[0] > 0.03


@pytest.mark.parametrize("shared", [pytest.param(0.0, marks=pytest.mark.full_size), 0.6])
def test_right_alarms_lie_within_their_limits_in_nine_of_ten_periods(shared):
    rng = np.random.default_rng(5)
    within = []
    for _ in range(40):
        score, positive, period = simulated(rng, periods=25, series=120, shared=shared)
        past = period < 24
        found = alarms(
            score[None, past], positive[past], period[past], score[None, ~past], line=ListLength(capacity=15)
        )
        right = positive[~past][found.order[:15]].sum()
        within.append(found.right.low <= right <= found.right.high)
    assert np.mean(within) >= 0.8


def test_a_capacity_is_a_number():
    with pytest.raises(DataError, check=about("capacity")):
        ListLength(capacity=0)
