"""Mechanisms of square roots: their errors beside integrals, their losses beside the definition."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import square_root


@pytest.mark.parametrize("count", [0, 1, 40, 10_000])
@pytest.mark.parametrize(("c", "mu"), [(0.5, 2.31), (6.9, 0.4)])
def test_the_mean_error_is_the_integral(count: int, c: float, mu: float) -> None:
    s, r = c / mu, math.sqrt(count)
    turns = [-r / s - math.hypot(1, r / s), -r / s + math.hypot(1, r / s)]
    inner = [turn for turn in turns if abs(turn) < 12]
    whole = quad(
        lambda z: abs((r + s * z) ** 2 - s**2 - count) * norm.pdf(z), -12, 12, points=inner or None, limit=400
    )[0]
    assert square_root.error_of_roots(np.array([count]), c, mu) == pytest.approx(whole, rel=1e-7)


def test_roots_are_unbiased_with_the_published_deviation() -> None:
    rng, s = np.random.default_rng(1), 0.5 / 2.31
    drawn = square_root.of_roots(np.full(200_000, 900), 0.5, 2.31, rng)
    deviation = math.sqrt(2 * s**4 + 4 * s**2 * 900)
    assert abs(drawn.mean() - 900) < 4 * deviation / math.sqrt(200_000)
    assert drawn.std() == pytest.approx(deviation, rel=0.01)


@pytest.mark.parametrize(("mu", "epsilon"), [(0.4, 2.0), (1.0, 1.0), (2.31, 4.0)])
def test_delta_is_the_most_that_an_event_gains(mu: float, epsilon: float) -> None:
    x = np.linspace(-12, 14, 400_001)
    gain = np.maximum(norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x), 0)
    assert square_root.delta(mu, epsilon) == pytest.approx(np.trapezoid(gain, x), rel=1e-4)


def test_a_match_covers_growth_and_one_worker() -> None:
    c, mu = square_root.matched(0.1, 20_000, 2.0)
    sizes = np.arange(20_001)
    assert np.all(np.sqrt(1.1 * sizes) - np.sqrt(sizes) <= c + 1e-12)
    assert np.all(np.sqrt(sizes + 1) - np.sqrt(sizes) <= c)
    assert square_root.delta(mu, 2.0) == pytest.approx(square_root.DELTA)


def test_few_sizes_are_clipped_and_noise_is_for_the_largest_that_is_not() -> None:
    rng = np.random.default_rng(2)
    cell, size = np.repeat(np.arange(3_000), 4), np.tile([5, 60, 700, 9_000], 3_000)
    s = 0.5 / (2.31 / math.sqrt(2))
    drawn = square_root.clipped(cell, size, 0.5, 2.31, rng)
    most = norm.ppf(0.99 ** (1 / 4))  # beyond the largest root and its own noise
    bound = (math.sqrt(9_000) + most * s) ** 2
    expected = (2 * 0.5 * math.sqrt(bound) - 0.25) / (2.31 / math.sqrt(2))
    assert drawn.std() == pytest.approx(expected, rel=0.05)
    assert abs(drawn.mean() - size[:4].sum()) < 4 * expected / math.sqrt(3_000) + 1
