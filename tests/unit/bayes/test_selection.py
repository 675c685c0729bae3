"""The private choices: their exact probabilities bound the loss, and the code draws with those probabilities."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.models.bayes.selection import (
    doubling_bound,
    find_centre,
    find_magnitude,
    find_width,
    first_above,
    median_cell,
    noisy_maximum,
)
from discreet.models.bayes.summation import noisy_sums
from discreet.noise.laws import Laplace
from discreet.noise.source import SeededSource

REACH = np.arange(-400, 401)
FALSE_ALARM = 1e-7  # of each chi-squared test, at fixed seeds


def pmf(scale: float) -> np.ndarray:
    return Laplace().probability(REACH, scale)


def exact_first_above(counts, threshold: int, *, counts_scale: float, threshold_scale: float) -> np.ndarray:
    """P(output) of the sparse vector by summing over the threshold's noise."""
    mass, tail = pmf(threshold_scale), np.cumsum(pmf(counts_scale)[::-1])[::-1]
    at_least = np.append(tail, 0.0)
    result = np.zeros(len(counts))
    for noise, weight in zip(REACH, mass, strict=True):
        gap = np.clip(threshold + noise - np.asarray(counts) - REACH[0], 0, len(REACH))
        reached = at_least[gap]
        before = np.concatenate([[1.0], np.cumprod(1 - reached)])
        result[:-1] += weight * before[:-2] * reached[:-1]
        result[-1] += weight * before[-2]
    return result


def exact_maximum(scores, scale: float) -> np.ndarray:
    """P(winner) of the noisy maximum by summing over the winner's noise."""
    half = Laplace().probability(np.arange(0, 401), scale)
    half[1:] *= 2
    below = np.concatenate([[0.0], np.cumsum(half)])  # P(noise < k)
    result = []
    for i, score in enumerate(scores):
        value = score + np.arange(0, 401)
        others = [below[np.clip(value - s + (k > i), 0, 401)] for k, s in enumerate(scores) if k != i]
        result.append(float((half * np.prod(others, axis=0)).sum()))
    return np.array(result)


def worst_loss(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.abs(np.log(p / q)).max())


SPARSE = {"counts_scale": 4.0, "threshold_scale": 4.0}  # epsilon 1/2


@pytest.mark.parametrize("counts", [[0, 0, 3, 9, 12], [5, 5, 5, 5, 5], [0, 1, 2, 3, 20]])
def test_sparse_vector_loses_at_most_epsilon_when_counts_move_together(counts) -> None:
    p = exact_first_above(counts, 8, **SPARSE)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    for moved in range(1, 2 ** len(counts)):  # every way in which a row can raise some of the counts
        up = [c + (moved >> i & 1) for i, c in enumerate(counts)]
        assert worst_loss(p, exact_first_above(up, 8, **SPARSE)) <= 0.5 + 1e-9


def test_sparse_vector_loses_all_of_epsilon_in_the_worst_case_and_more_when_counts_move_apart() -> None:
    p, together, apart = (
        exact_first_above([8 + up] * 20 + [last, 30], 8, **SPARSE) for up, last in ((0, 0), (1, 0), (1, -1))
    )
    assert worst_loss(p, together) == pytest.approx(0.5, abs=1e-3)
    assert worst_loss(p, apart) == pytest.approx(0.75, abs=1e-3)


@pytest.mark.parametrize("scores", [[0, -1, -4, -4], [0, 0, 0, 0], [-7, -1, 0, -20]])
def test_noisy_maximum_loses_at_most_epsilon(scores) -> None:
    epsilon = 0.6
    p = exact_maximum(scores, 2 / epsilon)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    worst = 0.0
    for code in range(3 ** len(scores)):
        moved = [s + (code // 3**i) % 3 - 1 for i, s in enumerate(scores)]
        worst = max(worst, worst_loss(p, exact_maximum(moved, 2 / epsilon)))
    assert 0.6 * epsilon < worst <= epsilon + 1e-9


def test_both_are_drawn_with_their_exact_probabilities() -> None:
    source, n = SeededSource(5), 4000
    counts, scores = np.array([0, 2, 5, 9, 12]), np.array([-3, 0, -1, -6])
    tight = exact_first_above(counts, 8, counts_scale=4.0, threshold_scale=4.0)
    paper = exact_first_above(counts, 8, counts_scale=8.0, threshold_scale=4.0)
    winner = exact_maximum(scores, 4.0)
    half = Fraction(1, 2)
    seen = {
        "tight": [first_above(counts, 8, epsilon=half, source=source) for _ in range(n)],
        "paper": [first_above(counts, 8, epsilon=half, source=source, calibration="paper") for _ in range(n)],
        "winner": [noisy_maximum(scores, epsilon=half, source=source) for _ in range(n)],
    }
    for name, p in {"tight": tight, "paper": paper, "winner": winner}.items():
        observed = np.bincount(seen[name], minlength=len(p))
        assert stats.chisquare(observed, p / p.sum() * n).pvalue > FALSE_ALARM
    # Power: the other calibration's noise would be noticed.
    assert stats.chisquare(np.bincount(seen["tight"], minlength=5), paper / paper.sum() * n).pvalue < FALSE_ALARM


def test_noisy_sum_clips_and_has_laplace_noise_of_the_span() -> None:
    values = np.array([-3.0, 0.25, 0.5, 9.0])  # counts as 0, 1/4, 1/2, 1
    source = SeededSource(2)
    many = np.tile(values[:, None], 4000)
    draws = noisy_sums(many, span=1.0, epsilons=[Fraction(1, 4)] * 4000, source=source).value
    assert stats.kstest(draws, stats.laplace(1.75, 4.0).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(draws, stats.laplace(1.75, 4.0 * 1.3).cdf).pvalue < FALSE_ALARM


def test_values_of_any_size_are_clipped_without_a_word() -> None:
    total = noisy_sums(
        np.array([[1e308], [-1e308], [0.5]]), span=1.0, epsilons=[Fraction(10**6)], source=SeededSource(0)
    )
    assert total.value[0] == pytest.approx(1.5, abs=1e-4)


def test_noisy_sum_of_a_span_between_powers_of_two_does_not_exceed_it_by_more_than_a_step() -> None:
    total = noisy_sums(np.full((10, 1), 99.0), span=13.8, epsilons=[Fraction(10**6)], source=SeededSource(0))
    assert total.value[0] == pytest.approx(138.0, abs=1e-3)
    assert 13.8 / 1e6 <= total.scale[0] <= 13.8 / 1e6 * (1 + 1e-8)


@pytest.mark.parametrize("location", [-700.0, -2.0, 0.0, 0.01, 3.0, 40_000.0])
def test_centre_and_width_are_found_wherever_the_values_are(location: float) -> None:
    spread, epsilon = 0.5, Fraction(1, 5)
    values = location + spread * np.random.default_rng(4).normal(size=3000)
    for seed in range(5):
        source = SeededSource(seed)
        cell = find_centre(values, unit=1.0, epsilon=epsilon, source=source)
        # Two looks: within a hundredth of the location or half a deviation, whichever is more.
        assert abs(cell.middle - location) < max(0.5 * spread, abs(location) / 100)
        width = find_width(values, cell, share=0.6827, epsilon=epsilon, source=source)
        assert 0.7 * spread < width < 2 * max(spread, abs(location) / 100)


@pytest.mark.parametrize("values", [[5.0], [1.0, 5.0], [1.0, 5.0, 9.0]])
def test_the_median_of_few_values_is_one_of_them(values) -> None:
    at = median_cell(np.array(values), np.arange(10.0) + 0.5, epsilon=Fraction(1000), source=SeededSource(0))
    assert at == 5  # the cell from 4.5 to 5.5


def test_values_beyond_the_ladder_end_at_its_last_cell() -> None:
    cell = find_centre(np.full(3000, 1e30), unit=1.0, epsilon=Fraction(1), source=SeededSource(0))
    assert 5e5 < cell.middle < 2**20


def test_magnitude_is_a_median_to_five_percent() -> None:
    values = np.random.default_rng(0).gamma(100, 0.003, size=3000)
    found = find_magnitude(values, around=1.0, epsilon=Fraction(1, 10), source=SeededSource(1))
    assert found == pytest.approx(np.median(values), rel=0.06)


def test_doubling_bound_is_the_thesis_rule_with_little_noise() -> None:
    values = np.concatenate([np.full(89, 3.0), np.full(11, 50.0)])
    big = Fraction(1000)
    assert doubling_bound(values, unit=1.0, share=0.9, epsilon=big, source=SeededSource(0)) == 64.0
    assert doubling_bound(values, unit=1.0, share=0.89, epsilon=big, source=SeededSource(0)) == 4.0
    assert doubling_bound(values, unit=0.3, share=0.89, epsilon=big, source=SeededSource(0)) == pytest.approx(4.8)
