"""The closed form of the peers' errors, beside brute force."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import accuracy
from bench.accuracy import EPSILON, Way, best, geometric, stated


@pytest.mark.parametrize("sensitivity", [1, 7, 61])
@pytest.mark.parametrize("moved", [0, 3, 200])
def test_the_mean_error_is_the_sum_over_the_law(sensitivity: int, moved: int) -> None:
    k = np.arange(-20_000, 20_001)
    law = np.exp(-EPSILON / sensitivity * np.abs(k))
    by_sum = (np.abs(k - moved) * law / law.sum()).sum()
    assert geometric(np.array([moved]), sensitivity) == pytest.approx(by_sum, rel=1e-12)


def test_sensitivity_is_the_farthest_that_a_truncated_size_can_move() -> None:
    for theta in (1, 10, 11, 22, 63):
        moves = [
            min(after, theta) - min(size, theta)
            for size in range(1, 200)
            for after in range(size, size + max(1, size // 10) + 1)
        ]
        assert stated(theta, 0.1 / 1.1) == max(1, *moves)
        assert stated(theta, 1.0) == theta


def test_theta_is_the_best_there_is_and_counts_are_truncated_at_it() -> None:
    rng = np.random.default_rng(0)
    size = np.exp(rng.normal(2.0, 1.5, 4_000)).astype(np.int64) + 1
    cell = np.append(np.arange(100), rng.integers(100, size=3_900))
    theta = best(cell, size, 1.0)

    def error(theta: int) -> float:
        return geometric(np.bincount(cell, size - np.minimum(size, theta)).astype(np.int64), theta)

    assert error(theta) <= min(error(1), error(int(size.max())), error(theta // 2), error(2 * theta))
    counts = Way("", "", theta, theta).counts(cell, size)
    assert counts.tolist() == [int(np.minimum(size[cell == c], theta).sum()) for c in range(100)]
    assert Way("", "", 1).counts(cell, size).sum() == size.sum()


def test_ways_state_what_they_need() -> None:
    size = np.array([1, 5, 40, 900, 1_200])
    row, bound, growth, whole = accuracy.ways(np.array([0, 1, 1, 0, 2]), size)
    assert (row.sensitivity, bound.sensitivity) == (1, 1_818)
    assert (row.theta, bound.theta) == (None, None)
    assert growth.theta is not None
    assert growth.sensitivity == stated(growth.theta, 0.1 / 1.1)
    assert whole.sensitivity == whole.theta
