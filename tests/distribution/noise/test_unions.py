"""Draws in the norm of all unions follow their law, and would be found out if it were another one."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.noise.balls import Balls
from discreet.noise.rings import Rings, table
from discreet.noise.sampler import ring_radii
from discreet.noise.source import SeededSource
from discreet.noise.transforms import subsets
from discreet.noise.unions import Cover, _propose, below, draw_unions, members

LEVEL = 1e-12
SIZES = [pytest.param(90_000, 1.25, id="some"), pytest.param(1_000_000, 1.1, id="million", marks=pytest.mark.full_size)]
"""How many numbers, and by which factor a law that they tell from their own is wider."""

WIDE = 2.0**20
"""A scale at which rounding moves no radius from one group of rings to the next, but for a few."""

BOUNDS = {
    "cut": np.array([1.0, 1, 0.8, 1.3, 0.3, 1.1, 1, 1.35]),
    "one worker": np.array([1.0, 1, 1, 1, 1, 1, 1, 1.4]),
    "nearly a box": np.array([1.0, 1, 0.8, 1.8, 0.3, 1.3, 1.1, 2.05]),
}


def radius_of(z: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    sets = members(z.shape[1])[1:]
    return sum((np.maximum(sign * z, 0) @ sets.T / bounds[1:]).max(axis=1) for sign in (1, -1))


def far_apart(drawn: np.ndarray, even: np.ndarray) -> float:
    """The p-value of two histograms of the same law."""
    seen = even > 200
    scale = math.sqrt(even[seen].sum() / drawn[seen].sum())
    chi = ((drawn[seen] * scale - even[seen] / scale) ** 2 / (drawn[seen] + even[seen])).sum()
    return float(stats.chi2.sf(chi, seen.sum() - 1))


@pytest.mark.parametrize(("numbers", "wider"), SIZES)
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_many_numbers_have_the_tables_radii_and_even_directions(bounds: np.ndarray, numbers: int, wider: float) -> None:
    law, n = Rings(3, 4.0, 0.1, False, 64, 0.25, 0.5), numbers // 3
    z = draw_unions(law, scale=np.tile(bounds * WIDE, (n, 1)), source=SeededSource(3)) / WIDE
    radius = radius_of(z, bounds)
    found = table(law)
    under = np.cumsum([float(w / 2**256) for w in found.weights])
    places = np.unique(np.searchsorted(under, np.linspace(0.01, 0.99, 99)))
    edges, chance = found.edges[places + 1], np.diff(np.concatenate([[0.0], under[places], [1.0]]))

    def of_radii(radius: np.ndarray) -> float:
        counts = np.bincount(np.searchsorted(edges, radius), minlength=len(edges) + 1)
        return float(stats.chi2.sf(((counts - chance * n) ** 2 / (chance * n)).sum(), len(counts) - 1))

    assert of_radii(radius) > LEVEL > of_radii(radius * wider)
    # A fresh radius makes directions into points uniform in the unit ball; a grid in it has equal parts.
    rng, own = np.random.default_rng(5), bounds[[1, 2, 4]]
    point = z / radius[:, None] * rng.uniform(size=(n, 1)) ** (1 / 3)
    grid = rng.uniform(-1, 1, (6 * n, 3)) * own
    inside = grid[radius_of(grid, bounds) <= 1]

    def groups(points: np.ndarray) -> np.ndarray:
        return np.bincount(np.clip(((points / own + 1) * 3).astype(int), 0, 5) @ [36, 6, 1], minlength=216)

    assert far_apart(groups(point), groups(inside)) > LEVEL > far_apart(groups(point / [1, 1, wider]), groups(inside))


def test_the_fast_path_and_arb_agree() -> None:
    law, rng = Rings(4, 4.0, 0.1, False, 64, 0.25, 0.5), np.random.default_rng(1)
    workers = np.array([(rng.integers(0, 30, (2, 4)) @ members(4).T).max(axis=0) for _ in range(30)])
    scale = np.maximum(workers / 11, 1.0)
    radii = ring_radii(law, len(scale), SeededSource(6))
    (fast, kept), (slow, also) = (
        _propose(Cover.of(scale), radii, np.repeat(np.arange(30), 5), SeededSource(7), exact) for exact in (False, True)
    )
    assert np.array_equal(kept, also) and np.array_equal(fast[kept], slow[kept]) and 20 < kept.sum() < 150
    assert draw_unions(law, scale=scale, source=SeededSource(8), exact=True).shape == (30, 4)


def test_sets_are_proposed_as_their_weights_say_and_never_too_rarely() -> None:
    rng = np.random.default_rng(2)
    workers = np.array([(rng.integers(0, 40, (3, 3)) @ members(3).T).max(axis=0) for _ in range(200)])
    scale = np.maximum(workers / 11, 1.0)
    cover = Cover.of(scale)
    rows = np.repeat(np.arange(3), 100_000)
    chosen, weight = cover.choose(rows, SeededSource(4))
    for row in range(3):
        own = np.diff(cover.total[row], prepend=0)
        counts = np.bincount(chosen[rows == row], minlength=8)
        assert stats.chisquare(counts, own / own.sum() * counts.sum()).pvalue > LEVEL
        assert np.array_equal(weight[rows == row], own[chosen[rows == row]])
    for positive in range(8):
        order, block, place = cover.blocks(np.arange(200), np.full(200, positive))
        left = members(3).sum(axis=1)[block] - place
        volume = np.log(np.take_along_axis(scale, block, axis=1) / left).sum(axis=1) - math.log(math.comb(3, positive.bit_count()))  # fmt: skip  # noqa: E501
        weights = np.diff(cover.total, prepend=0, axis=1)[:, positive]
        excess = np.log(weights) + cover.margin - volume
        assert excess.min() > 0 and np.array_equal(np.sort(order, axis=1), np.tile(np.arange(3), (200, 1)))
        assert np.all((place == 0) | (block == np.roll(block, 1, axis=1)))


def test_sums_of_many_kinds_are_within_their_bounds() -> None:
    """In doubles at once, and in Arb one by one: the ball holds the truth, and is narrow."""
    rng = np.random.default_rng(8)
    y, bounds = rng.exponential(size=(5, 40)) * 10.0 ** rng.integers(-9, 9, (5, 40)), rng.uniform(1, 9, (31, 40))
    found = Balls.largest_share([Balls(x, x * 2.0**-40) for x in y], subsets(5), [Balls(x) for x in bounds])
    for i in range(40):
        exact = [[Fraction(x) for x in part[:, i]] for part in (y, bounds)]
        sums = [sum(exact[0][c] for c in range(5) if some >> c & 1) / exact[1][some - 1] for some in range(1, 32)]
        for times in (1 - Fraction(1, 2**40), 1 + Fraction(1, 2**40)):
            assert abs(max(sums) * times - Fraction(found.mid[i])) <= Fraction(found.rad[i])
        assert found.rad[i] < 1e-11 * found.mid[i]
    for middle in (0.0, -1.0, 1e-10):
        with np.errstate(all="ignore"):
            unsure = Balls.largest_share([Balls(np.array([middle]), np.array([1e-9]))], subsets(1), [Balls(np.ones(1))])
        assert unsure.rad[0] == np.inf


def test_numbers_below_a_limit_are_even_and_a_short_round_is_drawn_again() -> None:
    class Ends:
        private = False

        def __init__(self) -> None:
            self.next = iter([2**64 - 1, 2**64 - 2, 5])

        def words(self, n: int) -> np.ndarray:
            return np.array([next(self.next) for _ in range(n)], dtype=np.uint64)

    assert below(np.array([3]), Ends()).tolist() == [2]  # 2^64 - 1 begins a round of three that is cut off
    counts = Counter(below(np.full(60_000, 7), SeededSource(1)).tolist())
    assert stats.chisquare([counts[i] for i in range(7)]).pvalue > LEVEL
