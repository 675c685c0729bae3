"""Probabilities of parts by way of their halves: what cancels, what it costs, and that nothing else moves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.models.bayes.combination import OWN_OF_HALVES, Normality
from discreet.models.bayes.conjugate import GPrior, Parts
from discreet.models.bayes.halves import Shifted, drift, extrapolated
from discreet.models.bayes.partition import blocks, partition
from discreet.models.bayes.skewness import Straightened, skewness
from discreet.models.bayes.within import in_parts

ROWS, PARTS, SETS = 20_000, 150, 12
BOTH = np.arange(2)


def test_what_is_off_by_the_root_of_a_part_cancels_and_the_rest_stays() -> None:
    t, a, m = 0.01, 0.3, 100.0
    p = 0.5 + t + a / np.sqrt(m)
    h = 0.5 + t / np.sqrt(2) + a / np.sqrt(m / 2)
    assert extrapolated(np.array([p]), np.array([h]))[0] == pytest.approx(0.5 + t, abs=1e-12)


def test_the_variance_of_parts_is_that_of_draws() -> None:
    u, v = np.random.default_rng(1).normal(size=(2, 400_000))
    whole, half = stats.norm.cdf((u + v) / np.sqrt(2)), (stats.norm.cdf(u) + stats.norm.cdf(v)) / 2
    found = extrapolated(whole, half)
    assert 4 * np.pi * found.var() - 1 == pytest.approx(OWN_OF_HALVES, abs=0.02)
    assert 4 * np.pi * whole.var() - 1 == pytest.approx(np.pi / 3 - 1, abs=0.02)  # without halves


@pytest.mark.parametrize("z", [-6.0, -0.5, 0.0, 1.5, 6.0])
def test_a_normal_posterior_comes_back(z: float) -> None:
    """The mean over parts whose estimates scatter as the model says, by numerical integration."""
    M = 60
    node, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()
    t, scatter = z / np.sqrt(M), np.sqrt(1 - 1 / M)
    whole = (stats.norm.cdf(t - scatter * node) * weight).sum()
    # A half's estimate scatters by 2 v - v / M, its posterior by 2 v.
    half = (stats.norm.cdf((t - np.sqrt(2 - 1 / M) * node) / np.sqrt(2)) * weight).sum()
    total = M * extrapolated(np.array([whole]), np.array([half]))
    answer = stats.norm.ppf(Normality().combine(total, M, halved=True))
    assert answer == pytest.approx(z, rel=0.01, abs=1e-9)
    if abs(z) > 5:  # far from the middle halves bend the mean, so that the scale without halves is another one
        assert abs(stats.norm.ppf(Normality().combine(total, M)) / z - 1) > 0.02


def test_skewed_errors_move_answers_less_than_without_halves() -> None:
    """Posterior deviations that answers without noise are off by, lognormal errors; before: 0.6."""
    off: dict[str, list[float]] = {"before": [], "after": []}
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=ROWS)
        y = 1 + 2 * x + rng.lognormal(size=ROWS) - np.exp(0.5)
        X = np.column_stack([np.ones(ROWS), x])
        middle = GPrior().posterior(partition(X, y, 1, rng), BOTH).quantile(np.full(2, 0.5))[0]
        found = in_parts(GPrior(), X, y, PARTS, rng, BOTH, inflated=False, extrapolate=True).cdf(middle)[:, 0]
        assert found.min() >= 0 and found.max() <= 1  # one part moves the sum by one at most
        off["after"].append(stats.norm.ppf(Normality().combine(found.sum(), PARTS, halved=True)))
        block, rows = blocks(X, y, PARTS, rng)
        alone = _shifted(block, rows).cdf(middle)[:, 0]
        off["before"].append(stats.norm.ppf(Normality().combine(alone.sum(), PARTS)))
    before, after = (np.mean(values) for values in off.values())
    assert before > 0.4
    assert abs(after) < 0.3


def _shifted(block: np.ndarray, rows: np.ndarray) -> Straightened:
    def posterior(some: np.ndarray, of: np.ndarray):  # type: ignore[no-untyped-def]
        return GPrior().posterior(Parts.of(some, of), BOTH, share=1 / len(some))

    whole = posterior(block, rows)
    return Straightened(
        Shifted(whole, drift(posterior, whole, block, rows, 2)), skewness(block, Parts.of(block, rows), BOTH)
    )
