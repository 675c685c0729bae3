"""Draws of rings follow their law, and would be found out if it were another one: a million numbers of each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from discreet.noise.rings import Rings, table
from discreet.noise.sampler import draw_integers, draw_within
from discreet.noise.source import SeededSource

LEVEL = 1e-12
NUMBERS = 1_000_000
WIDE = 2.0**20
"""A scale at which rounding moves no radius from one group of rings to the next, but for a few."""


def p_value(counts: np.ndarray, chance: np.ndarray) -> float:
    expected = chance / chance.sum() * counts.sum()
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1))


def of_radii(law: Rings, radius: np.ndarray) -> float:
    """The p-value of radii against the whole numbers of the table, in a hundred groups of rings."""
    found = table(law)
    below = np.cumsum(np.array([float(w / 2**256) for w in found.weights]))
    places = np.unique(np.searchsorted(below, np.linspace(0.01, 0.99, 99)))
    edges, chance = found.edges[places + 1], np.diff(np.concatenate([[0.0], below[places], [1.0]]))
    return p_value(np.bincount(np.searchsorted(edges, radius), minlength=len(edges) + 1), chance)


@pytest.mark.parametrize(
    "law",
    [
        Rings(1, 2.0, 0.1, True, 64, 0.25, 0.0),
        Rings(2, 4.0, 0.1, True, 64, 0.375, 0.0),
        Rings(8, 4.0, 0.1, True, 128, 0.0, 1.0),
        Rings(8, 2.0, 0.1, False, 64, 0.0, 1.0),
    ],
    ids=str,
)
def test_radii_have_the_tables_probabilities(law: Rings) -> None:
    draws = draw_integers(law, scale=np.full(NUMBERS // law.d, WIDE), source=SeededSource(1)).reshape(-1, law.d)
    radius = np.abs(draws).sum(axis=1) / WIDE
    assert of_radii(law, radius) > LEVEL > of_radii(law, radius * 1.1)


def test_integers_have_the_laws_probabilities() -> None:
    law, scale, side = Rings(2, 2.0, 0.1, True, 16, 0.25, 0.5), 1.3, np.arange(-9, 10)
    draws = draw_integers(law, scale=np.full(NUMBERS, scale), source=SeededSource(2))
    inside = np.abs(draws).max(axis=1) <= 9
    counts = np.bincount((draws[inside] + 9) @ [19, 1], minlength=361)

    def found(at: float) -> float:
        chance = law.probability(np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1), at).ravel()
        many = chance * NUMBERS > 25
        rest = 1 - chance[many].sum()
        return p_value(np.append(counts[many], NUMBERS - counts[many].sum()), np.append(chance[many], rest))

    assert found(scale) > LEVEL > found(scale * 1.1)


@pytest.mark.parametrize("total", [1.0, 1.7, 2.6, 9.0], ids=lambda total: f"sum at most {total}")
def test_vectors_are_uniform_on_the_balls_of_the_norm(total: float) -> None:
    """Radii as the table says; and a point of a ball is as often in a part of it as that part is large."""
    law, own = Rings(3, 4.0, 0.1, False, 64, 0.25, 0.5), np.array([1.0, 0.8, 0.3])
    own = np.minimum(own, total)
    n = NUMBERS // 3
    draws = draw_within(law, scale=np.tile(own * WIDE, (n, 1)), total=np.full(n, total * WIDE), source=SeededSource(3))
    z = draws / WIDE
    parts = [np.maximum(sign * z, 0) for sign in (1, -1)]
    radius = sum(np.maximum((part / own).max(axis=1), part.sum(axis=1) / total) for part in parts)
    assert of_radii(law, radius) > LEVEL > of_radii(law, radius * 1.1)
    # A fresh radius makes directions into points uniform in the unit ball; a grid in it has equal parts.
    rng = np.random.default_rng(5)
    point = z / radius[:, None] * rng.uniform(size=(n, 1)) ** (1 / 3)
    grid = rng.uniform(-1, 1, (4 * n, 3)) * own
    sides = [np.maximum(sign * grid, 0) for sign in (1, -1)]
    inside = grid[sum(np.maximum((side / own).max(axis=1), side.sum(axis=1) / total) for side in sides) <= 1]

    def groups(points: np.ndarray) -> np.ndarray:
        place = np.clip(((points / own + 1) * 3).astype(int), 0, 5) @ [36, 6, 1]
        return np.bincount(place, minlength=216)

    drawn, even = groups(point), groups(inside)
    seen = even > 200
    scale = math.sqrt(even[seen].sum() / drawn[seen].sum())
    chi = ((drawn[seen] * scale - even[seen] / scale) ** 2 / (drawn[seen] + even[seen])).sum()
    assert stats.chi2.sf(chi, seen.sum() - 1) > LEVEL
    moved = groups(point * np.array([1.0, 1.0, 0.9]))
    assert stats.chi2.sf(((moved[seen] * scale - even[seen] / scale) ** 2 / (moved[seen] + even[seen])).sum(), seen.sum() - 1) < LEVEL  # fmt: skip  # noqa: E501


def test_the_fast_path_and_arb_agree() -> None:
    law = Rings(4, 4.0, 0.1, False, 64, 0.25, 0.5)
    for total in (1.0, 2.5, 9.0):
        given = {"scale": np.full((40, 4), 0.9), "total": np.full(40, total)}
        fast, slow = (draw_within(law, **given, source=SeededSource(7), exact=exact) for exact in (False, True))
        assert np.array_equal(fast, slow)
