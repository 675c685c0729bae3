"""The law of least mean error: its table against brute force over neighbours, its draws against its probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.noise import least
from discreet.noise.kept import BITS, rounded
from discreet.noise.law import Rounded
from discreet.noise.sampler import draw_integers
from discreet.noise.source import Choice, SeededSource
from discreet.noise.steps import Steps
from discreet.words.errors import PrivacyError
from faults_of import about

LAW = Steps(0.1, 1 / 1.1, 2.0)


def neighbours(n: int, growth: float, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Moves (u, w) at random, often at the ends of what is possible."""
    rng = np.random.default_rng(1)
    end = rng.random(n)
    w = 1 + growth * np.where(end < 0.2, 0, np.where(end < 0.4, 1, rng.random(n)))
    low, high = (w - 1) / growth, shift * w
    end = rng.random(n)
    return np.where(end < 0.3, high, np.where(end < 0.5, low, low + (high - low) * rng.random(n))), w


def worst(law: Rounded, growth: float, shift: float) -> float:
    """The largest loss over random outputs and moves, in both directions."""
    u, w = neighbours(200_000, growth, shift)
    rng = np.random.default_rng(2)
    z = rng.laplace(size=len(u)) * rng.choice([0.3, 2.0, 40.0], size=len(u))
    other = (z - u) / w
    return float(np.abs(law.log_density(z) - law.log_density(other) + np.log(w)).max())


@pytest.mark.parametrize(
    "law", [LAW, Steps(0.1, 1 / 1.1, 0.6), pytest.param(Steps(0.25, 0.8, 4.0), marks=pytest.mark.full_size)], ids=str
)
def test_no_neighbours_lose_more_than_epsilon_and_some_lose_nearly_that(law: Steps) -> None:
    found = worst(law, law.growth, law.shift)
    assert 0.995 * law.epsilon < found <= law.epsilon * (1 + 1e-12), found  # calibrations keep a margin of 2^-30
    assert worst(law, law.growth * 1.05, law.shift * 1.05) > law.epsilon  # 5 % more growth is too much


def test_costs_between_cells_are_those_of_all_moves() -> None:
    """Brute force: the least w of each pair of cells that random moves join."""
    cells = least.StepCells(0.2, 1 / 1.2, 4, 14)
    costs, edges = cells.costs(), cells.edges
    u, w = neighbours(200_000, 0.2, 1 / 1.2)
    z = np.random.default_rng(3).uniform(edges[0], edges[-1], len(u))
    other = (z - u) / w
    inside = (other > edges[0]) & (other < edges[-1])
    i, k = np.searchsorted(edges, z[inside]) - 1, np.searchsorted(edges, other[inside]) - 1
    apart = i != k
    i, k, log_w = i[apart], k[apart], np.log(w[inside][apart])
    assert (costs[i, k] <= log_w + 1e-9).all() and (costs[k, i] <= 1e-9 - log_w).all()


def test_the_table_is_refused_where_it_is_changed() -> None:
    cells, weights = LAW.cells, LAW.weights.copy()
    least.check(cells, weights, LAW.epsilon)
    with pytest.raises(PrivacyError, check=about("mechanism")):
        least.check(cells, weights, LAW.epsilon * 0.99)
    middle = weights.shape[1] // 2
    weights[0, middle] += weights[0, middle + 60] // 100
    weights[0, middle + 60] -= weights[0, middle + 60] // 100
    with pytest.raises(PrivacyError, check=about("mechanism")):
        least.check(cells, weights, LAW.epsilon)
    with pytest.raises(PrivacyError, check=about("mechanism")):
        least.check(cells, weights[:, 1:], LAW.epsilon)


@pytest.mark.parametrize("scale", [1.1, 7.3, 120.0])
def test_draws_have_the_stated_probabilities(scale: float) -> None:
    n = 100_000
    draws = draw_integers(LAW, scale=np.full(n, scale), source=SeededSource(5))
    j = np.arange(-30 * math.ceil(scale), 30 * math.ceil(scale) + 1)
    probability = LAW.probability(j, scale)
    assert probability.sum() == pytest.approx(1, abs=1e-6)
    expected = n * probability
    often = expected > 10
    seen = np.bincount(np.clip(draws - j[0], 0, len(j) - 1), minlength=len(j))
    assert chi2.sf((((seen - expected) ** 2 / expected)[often]).sum(), often.sum()) > 1e-6
    assert abs(draws.mean()) < 5 * draws.std() / math.sqrt(n)
    slow = draw_integers(LAW, scale=np.full(300, scale), source=SeededSource(5), exact=True)
    assert np.array_equal(slow, draw_integers(LAW, scale=np.full(300, scale), source=SeededSource(5)))


def test_rings_are_drawn_as_their_tail_says() -> None:
    far = Steps(0.1, 1 / 1.1, 0.6)
    draws = np.abs(draw_integers(far, scale=np.full(400_000, 1000.0), source=SeededSource(6))) / 1000
    for x in (far.cells.last, 1.2 * far.cells.last):
        expected = float(far.beyond(np.array([x]))[0])
        assert abs((draws > x).mean() - expected) < 5 * math.sqrt(expected / 400_000)


@pytest.mark.parametrize("scale", [1.1, 7.3, 99_999.0])
def test_probabilities_are_masses_between_half_integers(scale: float) -> None:
    """Of one cell or ring: the density there. Everywhere: all of them add up. Far out: beyond every edge in a table."""
    j = np.concatenate([np.arange(-300, 301), np.geomspace(301, 1e12, 60).round() * np.array([[-1], [1]])], axis=None)
    lower, upper = (LAW.log_density((j + end * (1 - 1e-9)) / scale) for end in (-0.5, 0.5))
    inside = (lower == upper) & (j != 0)
    assert inside[np.abs(j) > 1e10].all()
    found, most = LAW.probability(j, scale), np.finfo(float).eps * np.abs(j)
    assert np.all(np.abs(found / (np.exp(lower) / scale) - 1)[inside] < 8 * most[inside] + 1e-9)
    many = np.arange(-20_000, 20_001)
    beyond = LAW.beyond(np.array([20_000.5 / scale]))[0]
    assert LAW.probability(many, scale).sum() + beyond == pytest.approx(1, abs=1e-12)


def test_moments_are_integrals_of_the_density() -> None:
    law = Steps(0.1, 1 / 1.1, 3.0)
    z = np.linspace(-30, 30, 300_001)[:-1] + 1e-4
    density = np.exp(law.log_density(z)) * 2e-4
    assert density.sum() == pytest.approx(1, abs=5e-4)
    assert density @ np.abs(z) == pytest.approx(law.mean_abs, rel=1e-3)
    assert density @ z**2 == pytest.approx(law.variance, rel=1e-2)
    assert abs(density @ z) < 1e-3 * law.mean_abs
    for x in (0.05, 0.7, 2.0):
        assert density @ np.maximum(np.abs(z) - x, 0) == pytest.approx(float(law.excess(np.array([x]))[0]), rel=2e-3)


def test_a_choice_has_exactly_its_weights() -> None:
    weights = rounded(np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]))
    assert [sum(row) for row in weights.tolist()] == [2**BITS] * 2
    found = Choice(weights, bits=BITS).draw(np.repeat([0, 1], 40_000), SeededSource(7))
    assert (found[40_000:] == 0).all()
    assert np.abs(np.bincount(found[:40_000]) / 40_000 - [0.5, 0.25, 0.25]).max() < 0.02


def test_one_row_alone_is_drawn_as_among_others() -> None:
    choice = Choice(rounded(np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])), bits=BITS)
    for row in (0, 1):
        alone = choice.draw(np.full(999, row), SeededSource(7))
        assert np.array_equal(alone, choice.draw(np.append(np.full(999, row), 1 - row), SeededSource(7))[:999])


@pytest.mark.parametrize("bits", [126, 256])
def test_a_choice_takes_more_bits_where_the_first_decide_nothing(bits: int) -> None:
    """A weight of one in 2^bits is drawn where all bits are zero, and nowhere else."""

    class Words:
        def __init__(self, *words: int) -> None:
            self.left = list(words)

        def words(self, n: int) -> np.ndarray:
            taken, self.left = self.left[:n], self.left[n:]
            return np.array(taken, dtype=np.uint64)

    choice = Choice(np.array([[1, 2**bits - 1]], dtype=object), bits=bits)
    more, unused = -(-(bits - 62) // 64), 64 * -(-(bits - 62) // 64) - (bits - 62)
    row = np.zeros(1, dtype=np.int64)
    for last, column in ((0, 0), (2**unused - 1, 0), (2**unused, 1)):  # what is left over of the last word counts not
        source = Words(0, *[0] * (more - 1), last)
        assert choice.draw(row, source).tolist() == [column]  # type: ignore[arg-type]
        assert not source.left
    assert choice.draw(row, Words(4)).tolist() == [1]  # type: ignore[arg-type]
