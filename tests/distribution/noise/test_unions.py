"""Draws in the norm of all unions follow their law, and would be found out if it were another one."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.errors import PrivacyError
from discreet.noise import unions
from discreet.noise.rings import Rings, table
from discreet.noise.sampler import ring_radii
from discreet.noise.source import SeededSource
from discreet.noise.unions import Bounds, Cover, Points, below, draw_unions, members, signs
from faults_of import about

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


def tabled(bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bounds as places in a table that never falls."""
    scale, place = np.unique(bounds, return_inverse=True)
    return place.reshape(bounds.shape), scale


def some_establishments(d: int, rows: int, most: int, seed: int) -> np.ndarray:
    """The most workers in every set of kinds that one of three establishments has."""
    rng = np.random.default_rng(seed)
    return np.array([(rng.integers(0, most, (3, d)) @ members(d).T).max(axis=0) for _ in range(rows)])


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
    place, scale = tabled(bounds)
    z = draw_unions(law, sizes=np.tile(place, (n, 1)), scale=scale * WIDE, source=SeededSource(3)) / WIDE
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


@pytest.mark.parametrize("times", [1.0, 2.0**30])
def test_the_fast_path_and_arb_agree(times: float) -> None:
    law, sizes = Rings(4, 4.0, 0.1, False, 64, 0.25, 0.5), some_establishments(4, 30, 30, 1)
    scale = np.maximum(np.arange(sizes.max() + 1) / 11, 1.0) * times
    rows = np.arange(30)
    radii = np.stack(ring_radii(law, 30, SeededSource(6)))
    for seed in range(5):
        chosen, points = Cover.of(sizes, rows, scale).propose(rows, 4, SeededSource(seed))
        bounds = Bounds(sizes, rows[chosen], scale)
        (fast, kept), (slow, also) = (
            points.decide(radii[:, chosen], bounds, source=SeededSource(7), exact=exact) for exact in (False, True)
        )
        assert np.array_equal(kept, also) and np.array_equal(fast[:, kept], slow[:, kept]) and kept.sum() > 10
    assert draw_unions(law, sizes=sizes, scale=scale, source=SeededSource(8), exact=True).shape == (30, 4)


def test_every_digit_of_a_point_is_drawn_once() -> None:
    """The first 32 of a variable, which decide whether it may be inside, and the next 32, which follow them."""
    sizes, seed = some_establishments(5, 400, 30, 3), 4
    scale = np.maximum(np.arange(sizes.max() + 1) / 11, 1.0)

    halves: list[np.ndarray] = []

    class Kept(SeededSource):
        def words(self, n: int) -> np.ndarray:
            found = super().words(n)
            halves.append(found.view(np.uint32))
            return found

    _, points = Cover.of(sizes, np.arange(400), scale).propose(np.arange(400), 4, Kept(seed))
    drawn = Counter(np.concatenate(halves).tolist())
    used = Counter(points.words.view(np.uint32).ravel().tolist())
    assert points.words.shape[0] == 7 and points.words.shape[1] > 300
    assert all(used[half] <= drawn[half] for half in used) and max(used.values()) <= 2


def test_what_doubles_cannot_tell_is_left_to_arb() -> None:
    """A uniform variable with few known digits, in the point or in how the radius is divided; a point on the edge."""
    d, half = 3, 2**63
    sizes, scale = tabled(BOUNDS["cut"])
    bounds = Bounds(sizes[None], np.zeros(1, dtype=np.int64), scale * 1000)
    up, radii = np.array([[True], [True], [False]]), np.array([[1.0], [2.0], [3.0], [1.0]])

    def decided(words: list[int], side: list[float], shared: bool) -> bool:
        known = np.array(words, dtype=np.uint64)[:, None]
        whole = np.array(side)[:, None] * 1000
        points = Points(known[: d + 2], up, np.full((d, 1), shared), whole, np.array([300.0]))
        with np.errstate(all="ignore"):
            return bool(points._in_doubles(known, radii, bounds)[1][0])

    inside = [half // 8 * 7 + i for i in range(d)] + [half // 4, half // 64] + [half + 977 * i for i in range(d + 1)]
    assert decided(inside, [1.35] * d, True)
    for place in range(2 * d + 1):
        known_little = inside.copy()
        known_little[place] = 3
        assert not decided(known_little, [1.35] * d, True), place
    edge = [round(0.9 * 2**64), half, half // 2, *inside[3:]]  # 0.9 of the first kind and 0.4 of the second make 1.3
    assert not decided(edge, [1.0, 0.8, 0.3], False)
    assert decided([edge[0] - 2**44, *edge[1:]], [1.0, 0.8, 0.3], False)


@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_every_set_is_proposed_exactly_as_often_as_its_volume_says(d: int) -> None:
    found = signs(d)
    for many in range(1, d + 1):
        own = found.sets[found.start[many] : found.start[many] + found.total[many]]
        counts = np.bincount(own, minlength=2**d).tolist()
        for some in range(2**d):
            first, size = (some & (1 << many) - 1).bit_count(), some.bit_count()
            volume = Fraction(1, math.factorial(first) * math.factorial(many - first) * math.comb(d, size))
            assert Fraction(counts[some], counts[0]) == volume * math.factorial(many)
    drawn = found.draw(np.full(200_000, 2), SeededSource(4))
    own = found.sets[found.start[2] : found.start[2] + found.total[2]]
    counts, even = np.bincount(drawn, minlength=2**d), np.bincount(own, minlength=2**d) * (200_000 / len(own))
    assert stats.chisquare(counts, even).pvalue > LEVEL


def test_a_cover_holds_its_ball() -> None:
    """Sides of the block are S of all its kinds, which are those of the fewest workers; others have their own."""
    sizes = np.concatenate([some_establishments(5, 100, most, most) for most in (4, 7, 12, 30)])
    scale = np.maximum(np.arange(sizes.max() + 1) / 11, 1.0)
    cover = Cover.of(sizes, np.arange(400), scale)
    assert len(set(cover.many.tolist())) == 5
    for row in range(400):
        order, many = cover.order[:, row], int(cover.many[row])
        assert sorted(order.tolist()) == list(range(5)) and np.all(np.diff(sizes[row, 1 << order]) >= 0)
        block = scale[sizes[row, sum(1 << int(c) for c in order[:many])]]
        assert np.array_equal(cover.side[:many, row], np.full(many, block))
        assert np.array_equal(cover.side[many:, row], scale[sizes[row, 1 << order[many:]]])
        assert cover.least[row] == scale[sizes[row, 1 << np.arange(5)]].min()


def test_short_numbers_refuse_no_point_that_may_be_inside_and_most_of_the_others() -> None:
    d, n, times = 6, 3000, 8
    sizes = some_establishments(d, n, 30, 3)
    scale = np.maximum(np.arange(sizes.max() + 1) / 11, 1.0)
    cover, rng = Cover.of(sizes, np.arange(n), scale), np.random.default_rng(5)
    positive = rng.integers(0, 2**d, (times, n)).astype(np.uint8)
    words = rng.integers(0, 2**32, (d + 2, times, n), dtype=np.uint32)
    words[rng.uniform(size=words.shape) < 0.02] >>= np.uint32(14)
    with np.errstate(all="ignore"):
        maybe = unions._maybe(cover.many, cover.side.astype(np.float32), cover.most, positive, words)
    up, shared = positive >> np.arange(d)[:, None, None] & 1 == 1, (np.arange(d)[:, None] < cover.many)[:, None]
    outside = np.ones(maybe.shape, dtype=np.bool_)
    for _ in range(6):
        u = (words + rng.choice([0.0, 1.0, rng.uniform()], words.shape)).clip(1e-9) * 2.0**-32
        part = -np.log(u[:d]) * shared
        above, under = (-np.log(u[d + i]) + (part * (up == (i == 0))).sum(axis=0) for i in (0, 1))
        z = np.where(shared, part / np.where(up, above, under), u[:d]) * cover.side[:, None] * np.where(up, 1, -1)
        kinds = np.empty_like(z)
        np.put_along_axis(kinds, np.broadcast_to(cover.order[:, None], z.shape), z, axis=0)
        sums = np.einsum("ac,ctn->atn", members(d)[1:].astype(float), kinds)
        outside &= (np.abs(sums) > scale[sizes[:, 1:]].T[:, None]).any(axis=0)
    assert np.all(outside[~maybe]) and (~maybe).sum() > 0.7 * outside.sum()


def test_short_logarithms_are_as_close_as_the_proof_needs() -> None:
    u = (np.random.default_rng(1).integers(2**22, 2**32, 1_000_000) + 0.5).astype(np.float32) * np.float32(2.0**-32)
    assert np.abs(np.log(u).astype(np.float64) - np.log(u.astype(np.float64))).max() < 2.0**-19


@pytest.mark.parametrize("far", [2.0**-101, 2.0**101, math.nan, 0.0])
def test_scales_beyond_short_numbers_are_refused(far: float) -> None:
    law = Rings(2, 4.0, 0.1, False, 64, 0.25, 0.5)
    with pytest.raises(PrivacyError, check=about("scale")):
        draw_unions(law, sizes=np.array([[0, 0, 1, 2]]), scale=[1.0, 1.5, far], source=SeededSource(1))


def test_numbers_below_a_limit_are_even_and_a_short_round_is_drawn_again() -> None:
    class Ends:
        private = False

        def __init__(self) -> None:
            self.next = iter([2**32 - 1, 2**32 - 2, 5])

        def words(self, n: int) -> np.ndarray:
            return np.array([next(self.next) for _ in range(n)], dtype=np.uint64)

    assert below(np.array([3]), Ends()).tolist() == [2]  # 2^32 - 1 begins a round of three that is cut off
    counts = Counter(below(np.full(60_000, 7), SeededSource(1)).tolist())
    assert stats.chisquare([counts[i] for i in range(7)]).pvalue > LEVEL
