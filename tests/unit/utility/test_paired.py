"""Ends of a change from two independent draws: the chance to fail is the one asked for, by exact sums."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.intervals.counts import intervals
from discreet.utility.paired import change_ends, paired_misses


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 0.4])
def test_pairs_hold_as_often_as_they_say(rate):
    """By brute force over a fine grid of two independent uniform numbers that say how far off each draw is."""
    pairs = paired_misses(rate)
    u, v = np.array(pairs).T
    assert (np.diff(u) > 0).all() and (np.diff(v) < 0).all() and u.max() < 1 and v.max() < 1
    p = (np.arange(1500) + 0.5) / 1500
    held = np.zeros((len(p), len(p)), dtype=bool)
    for miss, other in pairs:
        held |= (p[:, None] > miss) & (p[None, :] > other)
    assert 1 - held.mean() == pytest.approx(rate, abs=0.002)


def false_alarms(mechanism, count, *, rate, independent):
    """The exact chance of an alarm in a cell of one establishment that did not change, over all pairs of draws."""
    reach = 8 * int(mechanism.integer_error(np.array([float(count)]), np.array([float(count)]))[0] + 2)
    k = np.arange(-reach, reach + 1)
    mass = mechanism.probability(k, np.array([count]))[0]
    published = np.maximum(count + k, -(2**31))[:, None]
    ends = partial(lambda drawn, level: intervals(drawn, mechanism, level=level, bounded=True), published)
    both = [partial(_turned, ends, axis) for axis in (1, 0)]
    low, high = change_ends(*both, rate=rate, independent=independent)
    alarm = (low > 0) | (high < 0)
    return float((mass[:, None] * mass[None, :] * alarm).sum()), 1 - mass.sum() ** 2


def _turned(ends, axis, level):
    return tuple(np.expand_dims(each[:, 0], axis) for each in ends(level))


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_false_alarms_are_as_rare_as_promised_and_no_rarer_than_needed(epsilon):
    mechanism = calibrate("ladder", unit=Establishments("0.1"), epsilon=epsilon)
    for count in (30, 400):
        paired, beyond = false_alarms(mechanism, count, rate=0.1, independent=True)
        union, _ = false_alarms(mechanism, count, rate=0.1, independent=False)
        assert paired + beyond <= 0.1 and union + beyond <= 0.1
        assert paired > 1.9 * union and paired > 0.025  # two intervals of 95 % each find far less


def test_intervals_that_are_not_nested_are_made_so():
    """A law whose interval shifts with the level: the outermost ends count."""

    def ends(level):
        return np.array([10 * level]), np.array([10 * level + 1])

    low, high = change_ends(ends, ends, rate=0.1, independent=True)
    u, v = np.array(paired_misses(0.1)).T
    # intervals of higher levels are made to hold those of lower ones
    assert low[0] <= (10 * (1 - v) - (10 * (1 - u) + 1)).min() and high[0] >= (10 * (1 - v) + 1 - 10 * (1 - u)).max()


def test_an_end_that_there_is_not_raises_no_alarm():
    nothing = np.array([np.nan]), np.array([np.nan])
    low, high = change_ends(lambda level: nothing, lambda level: nothing, rate=0.1, independent=True)
    assert low[0] == -np.inf and high[0] == np.inf
