"""Draws in the norm of all unions follow their law, and would be found out if it were another one."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from discreet.noise import unions
from discreet.noise.rings import Rings, table
from discreet.noise.source import SeededSource
from discreet.noise.unions import SHORT, Located, Points, Radii, Slots, draw_unions, members, reach
from discreet.words.errors import PrivacyError
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


def test_every_vector_has_the_noise_of_its_own_bounds() -> None:
    """Narrow and wide vectors together: radii have one law, each in the norm of its own row."""
    law, n = Rings(3, 4.0, 0.1, False, 64, 0.25, 0.5), 4001
    rows = [BOUNDS["cut"] * 8, BOUNDS["cut"] * 12]  # short numbers decide most of them
    place, scale = tabled(np.array([rows[i < n // 3] for i in range(n)]))
    z = draw_unions(law, sizes=place, scale=scale, source=SeededSource(6))
    wide = np.arange(n) < n // 3
    narrow, other = radius_of(z[~wide], rows[0]), radius_of(z[wide], rows[1])
    assert stats.ks_2samp(narrow, other).pvalue > LEVEL > stats.ks_2samp(narrow, other * 2).pvalue


class Ordered(NamedTuple):
    """Draws in the order in which they came, and for each the one that had its slot before, if any."""

    z: np.ndarray
    before: np.ndarray


def in_slots(many: int, scale: float, monkeypatch: pytest.MonkeyPatch) -> Ordered:
    """So many draws at a scale, with what stood in the same slot; slots are freed in no order."""
    law, put = Rings(3, 4.0, 0.1, False, 64, 0.25, 0.5), Slots.put
    before, last = np.full(many, -1), {}

    def noted(self: Slots, at: np.ndarray, names: np.ndarray, *more: np.ndarray) -> None:
        for slot, name in zip(self.own[at].tolist(), names.tolist(), strict=True):
            before[name], last[slot] = last.get(slot, -1), name
        put(self, at, names, *more)

    monkeypatch.setattr(Slots, "put", noted)
    place, table = tabled(BOUNDS["cut"])
    z = draw_unions(law, sizes=np.tile(place, (many, 1)), scale=table * scale, source=SeededSource(11)) / scale
    return Ordered(z, before)


def dependent(one: np.ndarray, other: np.ndarray) -> float:
    """The largest rank correlation of two lists of vectors, of their lengths, of directions and of what lies between.

    In standard deviations of independent ones.
    """
    own = BOUNDS["cut"][[1, 2, 4]]
    length = [np.log(radius_of(z, BOUNDS["cut"]) + 1e-9) for z in (one, other)]
    towards = [z / own / np.abs(z / own).sum(axis=1, keepdims=True).clip(1e-9) for z in (one, other)]
    pairs = [tuple(length), *zip(*(part.T for part in towards), strict=True)]
    pairs += [(np.abs(a), np.abs(b)) for a, b in zip(*(part.T for part in towards), strict=True)]
    return max(abs(stats.spearmanr(a, b).statistic) for a, b in pairs) * math.sqrt(len(one))


@pytest.mark.parametrize("scale", [2.0**6, 2.0**20], ids=["short numbers", "long numbers"])
def test_vectors_are_independent_of_those_that_had_their_slot_before(scale: float, monkeypatch) -> None:
    """Of neighbours too, and of those as many places apart as there are slots; a tenth of copies would be seen."""
    many = 3 * unions.PLACES
    z, before = in_slots(many, scale, monkeypatch)
    later = np.flatnonzero(before >= 0)
    assert len(later) == 2 * unions.PLACES and len(np.unique(before[later])) == len(later)
    far = np.arange(unions.PLACES, many)
    for earlier, now in ((before[later], later), (far - unions.PLACES, far), (far - 1, far)):
        assert dependent(z[earlier], z[now]) < 6
        some = now[::10]
        copied = z.copy()
        copied[some] = z[earlier[::10]]
        assert dependent(z[earlier], copied[now]) > 6
        lengths = radius_of(z[earlier[::10]], BOUNDS["cut"]) / radius_of(z[some], BOUNDS["cut"]).clip(1e-9)
        copied[some] = z[some] * lengths[:, None]  # the length alone
        assert dependent(z[earlier], copied[now]) > 6


def placed(sizes: np.ndarray, scale: np.ndarray) -> Slots:
    places, rows = Slots.empty(sizes.shape[1].bit_length() - 1, len(sizes)), np.arange(len(sizes))
    places.put(rows, rows, sizes, rows, scale)
    return places


@pytest.mark.parametrize("times", [1.0, 2.0**30])
def test_short_and_long_numbers_and_arb_agree(times: float) -> None:
    law, sizes = Rings(4, 4.0, 0.1, False, 64, 0.25, 0.5), some_establishments(4, 60, 30, 1)
    scale = np.maximum(np.arange(sizes.max() + 1) / 11, 1.0) * times
    places, sure, answered = placed(sizes, scale), 0, 0
    for seed in range(4):
        chosen, points, short = places.propose(SeededSource(seed))
        radii = Radii.draw(law, len(sizes), SeededSource(seed)).of(chosen)
        with np.errstate(all="ignore"):
            first, decided, inside = short.decide(reach(short.z, places.inverse, chosen), radii, SHORT)
        (long, kept), (slow, also) = (
            points.decide(scale[sizes[chosen]], radii, source=SeededSource(7), exact=exact) for exact in (False, True)
        )
        assert np.array_equal(kept, also) and np.array_equal(long[:, kept], slow[:, kept])
        assert np.array_equal(inside[decided], kept[decided])
        assert np.array_equal(first[:, decided & kept], long[:, decided & kept])
        sure, answered = sure + decided.sum(), answered + kept.sum()
    assert answered > 60 and (sure > 60) == (times == 1)
    assert draw_unions(law, sizes=sizes, scale=scale, source=SeededSource(8), exact=True).shape == (60, 4)


def test_every_digit_of_a_point_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 32 of a variable, which decide whether it may be inside, and the next 32, which follow them."""
    sizes = some_establishments(5, 400, 30, 3)
    scale = np.maximum(np.arange(sizes.max() + 1) / 11, 1.0)
    halves: list[np.ndarray] = []
    used: list[np.ndarray] = []

    class Kept(SeededSource):
        def words(self, n: int) -> np.ndarray:
            found = super().words(n)
            halves.append(found.view(np.uint32))
            return found

    settled = unions.settle
    monkeypatch.setattr(
        unions, "settle", lambda kind, words, *a, **k: used.append(words) or settled(kind, words, *a, **k)
    )
    source = Kept(4)
    chosen, points, _ = placed(sizes, scale).propose(source)
    radii = Radii.draw(Rings(5, 4.0, 0.1, False, 64, 0.25, 0.5), 400, SeededSource(1)).of(chosen)
    points.decide(scale[sizes[chosen]], radii, source=source, exact=False)
    drawn, seen = Counter(np.concatenate(halves).tolist()), Counter(used[0][:-1].view(np.uint32).ravel().tolist())
    assert used[0].shape[0] == 8 and used[0].shape[1] > 300
    assert np.array_equal(used[0][:-1] >> np.uint64(32), points.words) and np.array_equal(used[0][-1], radii.word)
    assert all(seen[half] <= drawn[half] for half in seen) and max(seen.values()) <= 2


def test_what_doubles_cannot_tell_is_left_to_arb(monkeypatch: pytest.MonkeyPatch) -> None:
    """A uniform variable with few known digits; a point on the edge."""
    d, half = 3, 2**31
    bounds, left = BOUNDS["cut"][None] * 1000, []
    monkeypatch.setattr(
        unions, "settle", lambda kind, words, parameters, found, source: left.append(found) or found[::2]
    )
    radii = Radii(np.array([[1.0], [2.0], [3.0], [1.0]]), *(np.array([x]) for x in (np.uint64(2**63), 1.5, 1e-13)))

    class Same(SeededSource):
        digits = 0

        def words(self, n: int) -> np.ndarray:
            return np.full(n, self.digits | self.digits << 32, dtype=np.uint64)

    def decided(words: list[int], block: int, digits: int = 0) -> bool:
        shared = np.full((d, 1), block > 0)
        up = np.array([[True], [True], [False]])
        points = Points(np.array(words, dtype=np.uint32)[:, None], up, shared, np.array([block]))
        source = Same(1)
        source.digits = digits
        points.decide(bounds, radii, source=source, exact=False)
        return bool(left[-1][1][0])

    inside = [half // 8 * 7 + i for i in range(d)] + [half // 4, half // 64]
    assert decided(inside, 7)
    for place in range(d + 2):
        known_little = inside.copy()
        known_little[place] = 0
        assert not decided(known_little, 7), place
    # t is a half: 0.875 of the first kind's share of it and 0.425 of the second kind's make 1.3.
    edge = [round(0.9375 * 2**32), round(0.765625 * 2**32), half // 2, half, half]
    assert not decided(edge, 0) and not decided(edge, 0, 2**24)
    assert decided([edge[0] - 2**16, *edge[1:]], 0)


def test_a_point_of_which_nothing_is_known_is_not_decided() -> None:
    """Beyond 2^-4 there is no bound; what would be decided otherwise is left open."""
    radii = Radii(np.zeros((4, 1)), np.zeros(1, dtype=np.uint64), np.full(1, 0.01), np.zeros(1))
    bounds, each = BOUNDS["nearly a box"][None].astype(np.float32), np.zeros(1, dtype=np.int64)
    for off, known in ((2.0**-5, True), (2.0**-4, False)):
        z, half = np.full((3, 1), 1e-3, dtype=np.float32), np.full(1, 0.5, dtype=np.float32)
        side, small = np.full((3, 1), 0.01, dtype=np.float32), np.full(1, off, dtype=np.float32)
        point = Located(z, half, half, small, side, np.full(1, 1e-3, dtype=np.float32))
        assert point.decide(reach(z, 1 / bounds, each), radii, SHORT)[1].tolist() == [known]


def test_a_cover_holds_its_ball() -> None:
    """Sides of the block are S of all its kinds, which are those of the fewest workers; others have their own."""
    sizes = np.concatenate([some_establishments(5, 100, most, most) for most in (4, 7, 12, 30)])
    scale = np.maximum(np.arange(sizes.max() + 1) / 8, 1.0)
    places = placed(sizes, scale)
    assert {int(x).bit_count() for x in places.block} == {1, 2, 3, 4, 5}
    for row in range(400):
        alone, block = sizes[row, 1 << np.arange(5)], int(places.block[row])
        shared = members(5)[block] == 1
        assert np.array_equal(places.shared[:, row], shared)
        assert alone[shared].max() <= alone[~shared].min(initial=2**30)
        side = np.where(shared, scale[sizes[row, block]], scale[alone])
        assert np.array_equal(places.side[:, row], side.astype(np.float32))
        assert places.total[0, row] == pytest.approx(side.sum() / scale[alone].min(), rel=1e-6)
        assert np.array_equal(places.inverse[row], (1 / scale[sizes[row]]).astype(np.float32))


def test_places_are_given_to_other_vectors_and_taken_away() -> None:
    sizes = some_establishments(4, 30, 30, 3)
    scale = np.maximum(np.arange(sizes.max() + 1) / 11, 1.0)
    whole, places = placed(sizes, scale), placed(sizes[:20], scale)
    places.put(np.array([3, 7]), np.array([21, 25]), sizes, np.array([21, 25]), scale)
    left = places.without(np.array([0, 7]))
    rows = [1, 2, 21, *range(4, 7), *range(8, 20)]
    assert left.row.tolist() == rows
    for name in ("block", "shared", "side", "total", "most"):
        assert np.array_equal(getattr(left, name), getattr(whole, name)[..., rows]), name
    assert np.array_equal(left.inverse[left.own], whole.inverse[rows])


def test_short_numbers_are_as_close_as_they_say_and_refuse_no_point_that_may_be_inside() -> None:
    d, n = 6, 8000
    sizes = some_establishments(d, n, 30, 3)
    scale = np.maximum(np.arange(sizes.max() + 1) / 11, 1.0)
    places, rng = placed(sizes, scale), np.random.default_rng(5)
    signs = rng.integers(0, 2**d, (1, n)).astype(np.uint8)
    words = rng.integers(0, 2**32, (d + 2, 1, n), dtype=np.uint32)
    words[rng.uniform(size=words.shape) < 0.02] >>= np.uint32(14)
    words[rng.uniform(size=words.shape) < 0.02] |= np.uint32(2**32 - 2**14)
    found = np.empty((d + 3, 1, n), dtype=np.float32)
    with np.errstate(all="ignore"):
        maybe = places._maybe(slice(None), words, signs, found)[0]
    up, shared = signs[0] >> np.arange(d)[:, None] & 1 == 1, places.shared == 1
    side = np.where(shared, scale[sizes[np.arange(n), places.block]], scale[sizes[:, 1 << np.arange(d)].T])
    known, outside = found[d + 2, 0] < unions.KNOWN, np.ones(n, dtype=np.bool_)
    for _ in range(6):
        u = (words[:, 0] + rng.choice([0.0, 1.0, rng.uniform()], (d + 2, n))).clip(1e-9) * 2.0**-32
        part = -np.log(u) * np.concatenate([shared, np.ones((2, n), dtype=bool)])
        t = (part[d] + (part[:d] * up).sum(axis=0)) / part.sum(axis=0)
        y = np.where(shared, part[:d] * np.where(up, 1, -1) / part.sum(axis=0), u[:d] - (1 - t)) * side
        z = np.where(y > 0, y / t, y / (1 - t))
        assert np.all((np.abs(z - found[:d, 0]) <= found[d + 2, 0] * side)[:, known])
        assert np.all((np.abs(t - found[d, 0]) <= found[d + 2, 0])[known])
        sums = np.einsum("ac,cn->an", members(d)[1:].astype(float), z)
        outside &= (np.abs(sums) > scale[sizes[:, 1:]].T).any(axis=0)
    assert known.mean() > 0.9
    assert np.all(outside[~maybe]) and (~maybe).sum() > 0.7 * outside.sum()


def test_short_logarithms_are_as_close_as_the_proof_needs() -> None:
    rng = np.random.default_rng(1)
    u = np.concatenate(
        [rng.uniform(size=1_000_000), np.exp(-rng.uniform(0, 23, 10**6)), 1 - np.arange(1, 2000) / 2**24]
    )
    u = u[u > 0].astype(np.float32)
    exact = np.log(u.astype(np.float64))
    assert np.all(np.abs(np.log(u).astype(np.float64) - exact) <= 2.0**-21 * np.abs(exact) + 2.0**-26)


SUMS = """
import time
import numpy as np
from discreet.noise.unions import reach
z, inverse, rows = np.ones((4096, 8)).T, np.ones((4096, 256)), np.arange(4096)
shares = []
for _ in range(40):
    all_of_them, own = time.process_time(), time.thread_time()
    for _ in range(20):
        reach(z, inverse, rows)
    shares.append((time.process_time() - all_of_them) / (time.thread_time() - own))
print(min(shares))
"""


def test_sums_over_sets_start_no_threads() -> None:
    """Threads that wait for each other took three to ten times the processor time of the work, time after time.

    Those that OpenBLAS starts when it is loaded look for work for a moment, so that one look at it can be wrong.
    """
    done = subprocess.run(
        [sys.executable, "-c", SUMS],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "4"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 1.2


@pytest.mark.parametrize("far", [2.0**-101, 2.0**101, math.nan, 0.0])
def test_scales_beyond_short_numbers_are_refused(far: float) -> None:
    law = Rings(2, 4.0, 0.1, False, 64, 0.25, 0.5)
    with pytest.raises(PrivacyError, check=about("scale")):
        draw_unions(law, sizes=np.array([[0, 0, 1, 2]]), scale=[1.0, 1.5, far], source=SeededSource(1))
