"""Seeded draws: what they promise about totals, margins and independence of order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.simulate import draws
from discreet.words.errors import DataError


def test_hash_is_splitmix64():
    """Published first outputs of the reference generator at seed 1234567."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    got = draws.hashed(np.uint64(1234567), np.arange(1, 5, dtype=np.uint64))
    assert got == pytest.approx([value / 2**64 for value in expected], abs=2.0**-52)


def test_hashed_draws_are_uniform_and_a_wrong_law_is_seen():
    u = draws.hashed(draws.keys(3, 1)[0], np.arange(200_000, dtype=np.uint64))
    assert stats.kstest(u, "uniform").pvalue > 1e-6
    assert stats.kstest(u**1.03, "uniform").pvalue < 1e-6
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 5 / np.sqrt(len(u))


def test_a_part_does_not_depend_on_the_parts_before_it():
    first = draws.generator(1, 2, 3).random(4)
    draws.generator(1, 2, 2).random(1000)
    assert np.array_equal(first, draws.generator(1, 2, 3).random(4))
    assert not np.array_equal(first, draws.generator(1, 3, 2).random(4))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 1000))
def test_midpoints_within_groups(groups, seed):
    group = np.array(groups)
    u = draws.midpoints_within(np.random.default_rng(seed), group)
    for code in np.unique(group):
        n = (group == code).sum()
        assert np.sort(u[group == code]) == pytest.approx((np.arange(n) + 0.5) / n)


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=50), st.integers(0, 100_000), st.integers(0, 1000))
def test_rounding_keeps_the_total(values, total, seed):
    values = np.array(values) + 1e-3
    values *= total / values.sum()
    rounded = draws.to_integers(values, np.random.default_rng(seed))
    assert rounded.sum() == total
    assert np.all(np.abs(rounded - values) <= 1 + 1e-6)


@pytest.mark.parametrize(("seed", "share"), [(-1, 1.0), (0, 0.0), (0, -1.0), (0, 11.0), (0, float("nan"))])
def test_impossible_requests_are_refused(seed, share):
    with pytest.raises(DataError) as refused:
        draws.check(seed, share)
    assert refused.value.about == ("seed" if seed < 0 else "share")
