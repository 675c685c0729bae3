"""The staircase law against sums over its rings."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.noise.balls import Balls
from discreet.noise.staircase import Staircase
from discreet.words.errors import PrivacyError
from faults_of import about

LAWS = [
    Staircase(3.9047, 0.1, 0.124),
    Staircase(0.4, 0.1, 0.4),
    Staircase(2.5, 1.0, 0.0),
    Staircase(9.0, 3.0, 0.02),
    Staircase(0.9, 1e-6, 0.3),
]


def rings(law: Staircase, most: int = 4000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inner and outer edges by their recursion, and probabilities of the half line's rings."""
    edges = [law.plateau]
    while len(edges) < most and edges[-1] < 1e60:
        edges.append((1 + law.growth) * edges[-1] + 1)
    outer = np.array(edges)
    inner = np.concatenate([[0.0], outer[:-1]])
    weight = np.exp(-law.drop * np.arange(len(outer)))
    return inner, outer, weight / (2 * weight @ (outer - inner))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_tails_moments_and_masses_are_sums_over_rings(law: Staircase) -> None:
    inner, outer, density = rings(law)
    x = np.array([0.0, 0.01, law.plateau * 0.99, 0.3, 0.77, 1.9, 6.0, 40.0])

    def beyond(x: np.ndarray, power: int) -> np.ndarray:
        low = np.maximum(inner, x[:, None])
        high = np.maximum(outer, x[:, None])
        return ((high - x[:, None]) ** (power + 1) - (low - x[:, None]) ** (power + 1)) @ density / (power + 1)

    np.testing.assert_allclose(law.survival(x), beyond(x, 0), rtol=1e-9)
    np.testing.assert_allclose(law.excess(x), 2 * beyond(x, 1), rtol=1e-8)
    assert law.mean_abs == pytest.approx(2 * beyond(np.zeros(1), 1)[0], rel=1e-9)
    if law.drop > 3 * math.log1p(law.growth):
        assert law.variance == pytest.approx(2 * beyond(np.zeros(1), 2)[0], rel=1e-8)
    np.testing.assert_allclose(
        law.survival(law.quantile(1 - np.array([0.4, 1e-3, 1e-9]))), [0.4, 1e-3, 1e-9], rtol=1e-6
    )
    for scale in (0.3, 1.0, 7.25, 300.0):
        j = np.arange(0.0, 40.0)
        ends = np.stack([np.maximum(j - 0.5, 0), j + 0.5]) / scale
        mass = np.diff(-beyond(ends.T.ravel(), 0).reshape(-1, 2), axis=1)[:, 0] * np.where(j == 0, 2, 1)
        np.testing.assert_allclose(law.probability(j, scale), mass, rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_masses_far_out_keep_their_digits(law: Staircase) -> None:
    """Between neighbouring integers of one ring the probabilities are equal, however small."""
    inner, outer, density = rings(law)
    ring = int(np.searchsorted(outer, 30.0)) + 20
    if ring < len(outer) and outer[ring] < 1e15:
        scale = 10 / (outer[ring] - inner[ring])
        j = math.ceil(inner[ring] * scale + 1)
        assert law.probability(j, scale) == pytest.approx(density[ring] / scale, rel=1e-9)


def test_edges_follow_their_recursion_and_the_law_exists() -> None:
    law = Staircase(2.0, float(Fraction(1, 8)), 0.25)
    np.testing.assert_allclose(law.jumps[1:], 1.125 * law.jumps[:-1] + 1, rtol=1e-12)
    assert np.array_equal(law.log_density(law.jumps[:5] * 0.999) - law.log_density(0.0), -2.0 * np.arange(5))
    for wrong in ((0.05, 0.1, 0.2), (1.0, 0.0, 0.2), (1.0, 0.1, -0.1), (math.inf, 0.1, 0.1)):
        with pytest.raises(PrivacyError, check=about("law")):
            Staircase(*wrong)
    assert (Staircase(0.15, 0.1, 0.2).mean_abs, Staircase(0.25, 0.1, 0.2).variance) == (math.inf, math.inf)


def test_an_edge_that_doubles_cannot_tell_is_left_to_arb() -> None:
    found = Balls(np.array([2.0, 2.0, 2.4, -0.3]), np.array([1e-12, 0.0, 1e-12, 0.1])).ceil()
    assert found.rad.tolist() == [np.inf, np.inf, 0.0, 0.0] and found.mid[2:].tolist() == [3.0, 0.0]
