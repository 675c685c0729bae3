"""Noise that follows every union of kinds: real neighbours with volumes from Qhull, what is read, what it saves."""

from __future__ import annotations

import math
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from scipy.spatial import ConvexHull, HalfspaceIntersection

import discreet as dc
from discreet.noise.rings import table
from discreet.noise.source import SeededSource
from discreet.noise.unions import members
from discreet.privacy.kinds import Pair, is_weak_pair, kinds_supremum, pair_loss
from discreet.privacy.neighbours import neighbouring_cells
from discreet.privacy.verify import verify
from discreet.tables.baseline.establishments import histograms
from discreet.tables.calibration import calibrate
from discreet.tables.cells import cell_statistics
from discreet.tables.intervals.counts import intervals
from discreet.words.errors import Infeasible
from faults_of import about

NAME = "weak-unions"


def built(alpha: str, epsilon: str, cells: int, name: str = NAME):
    return calibrate(name, unit=dc.Establishments(alpha, "weak"), epsilon=epsilon, cells=cells)


def unions_of(rows: np.ndarray) -> np.ndarray:
    """The most workers that one row has in every set of kinds."""
    return (rows @ members(rows.shape[1]).T).max(axis=0)


def body_volume(bounds: np.ndarray, kinds: tuple[int, ...]) -> float:
    """Of {y >= 0 : y(A) <= S_A for every A of these kinds}, by Qhull."""
    d = len(kinds)
    if d < 2:
        return float(bounds[1 << kinds[0]]) if kinds else 1.0
    rows = [[*-np.eye(d)[i], 0.0] for i in range(d)]
    for size in range(1, d + 1):
        for some in combinations(range(d), size):
            bound = bounds[sum(1 << kinds[i] for i in some)]
            rows.append([*(1.0 if i in some else 0.0 for i in range(d)), -bound])
    inside = np.full(d, 1e-3 * bounds[[1 << k for k in kinds]].min())
    return float(ConvexHull(HalfspaceIntersection(np.array(rows), inside).intersections).volume)


def ball_volume(bounds: np.ndarray) -> float:
    """Of {g(z+) + g(z-) <= 1}: over the sets of positive kinds."""
    d = len(bounds).bit_length() - 1
    kinds = range(d)
    sides = [(some, tuple(c for c in kinds if c not in some)) for k in range(d + 1) for some in combinations(kinds, k)]
    return sum(body_volume(bounds, p) * body_volume(bounds, n) / math.comb(d, len(p)) for p, n in sides)


def radius_of(z: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    sets = members(z.shape[1])[1:]
    return sum((np.maximum(sign * z, 0) @ sets.T / bounds[1:]).max(axis=1) for sign in (1, -1))


def brute_loss(mechanism, pair: Pair, z: np.ndarray) -> float:
    """The largest loss over outputs z around both counts, from densities and exact volumes alone."""
    logs = []
    for counts in (pair.before, pair.before + pair.gain):
        bounds = mechanism.bounds(unions_of(np.vstack([counts, pair.others])))
        radius = radius_of(z - (counts - pair.before), bounds)
        logs.append(table(mechanism.law).log_height(radius) - math.log(ball_volume(bounds)))
    return float(np.abs(logs[0] - logs[1]).max())


def random_pairs(unit, rng: np.random.Generator, many: int):
    """Weak neighbours of three kinds, beside others: of all sizes, and gains as large as every union allows."""
    found = 0
    while found < many:
        before = rng.integers(0, rng.choice([4, 14, 60]), 3)
        gain = np.array([rng.integers(0, max(math.floor(unit.alpha * int(x)), 1) + 1) for x in before])
        pair = Pair(before, gain, rng.integers(0, rng.choice([1, 14, 60]), (2, 3)))
        if gain.any() and is_weak_pair(unit, pair):
            found += 1
            yield pair


def test_random_weak_neighbours_keep_the_promise_with_exact_volumes() -> None:
    mechanism, rng = built("1/3", "2", 3), np.random.default_rng(7)
    wide = np.concatenate([rng.uniform(-40, 40, (2000, 3)), rng.uniform(-5, 5, (2000, 3)), np.zeros((1, 3))])
    losses = [
        brute_loss(mechanism, pair, np.concatenate([wide, pair.gain + np.outer(np.linspace(-3, 3, 601), pair.gain)]))
        for pair in random_pairs(mechanism.unit, rng, 150)
    ]
    assert 1.6 < max(losses) <= 2
    grows = Pair(np.array([900, 900, 900]), np.array([300, 300, 300]), np.zeros((1, 3), dtype=np.int64))
    axis = np.outer(np.linspace(-3, 3, 601), grows.gain)
    assert 1.99 < brute_loss(mechanism, grows, axis) <= 2
    assert brute_loss(mechanism.scaled(0.95), grows, axis) > 2.02


@pytest.mark.parametrize(("alpha", "epsilon", "cells"), [("0.1", "4", 8), ("0.2", "2", 3)])
def test_the_verifier_has_a_bound_and_a_real_pair_and_finds_five_percent_less_noise(
    alpha: str, epsilon: str, cells: int
) -> None:
    mechanism = built(alpha, epsilon, cells)
    near = neighbouring_cells(mechanism.unit, largest=120)
    found = kinds_supremum(mechanism, near)
    assert found.loss <= found.bound <= float(epsilon) and found.loss > 0.999 * float(epsilon)
    assert is_weak_pair(mechanism.unit, found.pair)
    assert not verify(mechanism.scaled(0.95), neighbours=near).holds
    assert kinds_supremum(mechanism.scaled(0.95), near).loss > 1.01 * float(epsilon) if cells < 8 else True


@pytest.mark.full_size
@pytest.mark.parametrize("cells", [3, 4, 8])
@pytest.mark.parametrize("epsilon", ["1", "2", "4"])
@pytest.mark.parametrize("alpha", ["0.05", "0.1", "0.2"])
def test_the_grid_holds_and_five_percent_less_noise_does_not(alpha: str, epsilon: str, cells: int) -> None:
    if float(epsilon) <= (cells + 1) * math.log1p(float(alpha)):
        with pytest.raises(Infeasible, check=about("epsilon")):
            built(alpha, epsilon, cells)
        return
    mechanism = built(alpha, epsilon, cells)
    near = neighbouring_cells(mechanism.unit, largest=2000)
    assert verify(mechanism, neighbours=near).holds
    assert kinds_supremum(mechanism, near).loss > 0.99 * float(epsilon)
    assert not verify(mechanism.scaled(0.95), neighbours=near).holds


def test_the_verifiers_loss_of_a_pair_is_never_above_the_true_one() -> None:
    """Where volumes are bounded only, a witness may be missed and none is invented."""
    mechanism, rng = built("1/3", "2", 3), np.random.default_rng(3)
    for pair in random_pairs(mechanism.unit, rng, 12):
        far = np.geomspace(1e-3, 1e6, 6000)
        along = np.concatenate([np.outer([*-far, 0, *far], way) for way in (pair.gain, *np.eye(3))])
        along = np.concatenate([along, along + pair.gain])
        assert pair_loss(mechanism, pair)[0] <= brute_loss(mechanism, pair, along) + 0.02


def test_a_set_that_is_forgotten_is_found() -> None:
    """The norm must know what it divides by: with S of one pair too small, the shift is more than one."""
    mechanism = built("1/3", "2", 3)
    pair = Pair(np.array([900, 900, 900]), np.array([300, 300, 300]), np.zeros((1, 3), dtype=np.int64))
    bounds = mechanism.bounds(unions_of((pair.before + pair.gain)[None]))
    assert radius_of(pair.gain[None].astype(float), bounds)[0] <= 1
    bounds[3] *= 0.9
    assert radius_of(pair.gain[None].astype(float), bounds)[0] > 1.05


def test_unions_are_the_most_that_one_establishment_has(jobs) -> None:
    by = {"workplace_by": ["place"], "worker_by": ["sex", "education"]}
    found, firms = cell_statistics(jobs, **by, unions=True), histograms(jobs, **by)
    d = len(found.levels)
    assert found.unions is not None and found.unions.shape == (len(found.counts), 2**d)
    ends = [*firms.start[1:], len(firms.counts)]
    for cell, (start, end) in enumerate(zip(firms.start, ends, strict=True)):
        assert np.array_equal(found.unions[cell], unions_of(firms.counts[start:end]))
    assert np.array_equal(found.unions[:, 1 << np.arange(d)], found.largest)
    assert np.array_equal(firms.cells(unions=True).unions, found.unions)
    assert cell_statistics(jobs, **by).unions is None
    alone = cell_statistics(jobs, workplace_by=["place"], unions=True)
    assert np.array_equal(alone.unions, np.column_stack([0 * alone.largest_total, alone.largest_total]))


def test_it_errs_less_than_the_norm_of_kinds_and_all_and_intervals_hold() -> None:
    truth = np.tile([6, 9, 4, 12, 8, 5, 7, 3], (4000, 1))
    unions, weak = built("0.1", "4", 8), built("0.1", "4", 8, "weak-joint")
    noisy = unions.draw(truth, np.tile(unions_of(truth[:1]), (4000, 1)), SeededSource(1))
    other = weak.draw(truth, np.column_stack([truth, truth.sum(axis=1)]), SeededSource(1))
    error, before = (np.abs(x - truth).mean() for x in (noisy, other))
    assert error < 0.75 * before
    expected = unions.integer_error(truth[:1, 0].astype(float), truth[:1].sum(axis=1).astype(float))[0]
    assert error <= expected
    lower, upper = intervals(noisy, unions, level=0.9, bounded=True)
    assert ((lower <= truth) & (truth <= upper)).mean(axis=0).min() >= 0.895
    assert abs((noisy - truth).mean()) < 5 * (noisy - truth).std() / math.sqrt(truth.size)


def test_it_is_the_default_for_three_to_eight_kinds_and_refuses_more(jobs) -> None:
    session = dc.Session(jobs, unit=dc.Establishments("0.1", "weak"), budget=9)
    table_of_kinds = session.count(by=["place", "sex", "education"])
    told = table_of_kinds.check(epsilon=4)
    assert table_of_kinds.offer(epsilon=4).details["mechanism"] == NAME and "at most" in str(told.expected.error)
    found = table_of_kinds.release(epsilon=4, scale_share="1/10")
    assert found.guarantee.loss == dc.Pure(4) and found.parameters["mechanism"] == NAME
    assert np.all(found.lower <= found.upper) and np.isfinite(found.upper).all()
    with pytest.raises(Infeasible, check=about("epsilon")):
        built("0.01", "4", 9)
    strong = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=5).count(by=["place", "sex", "education"])
    with pytest.raises(dc.errors.PrivacyError, check=about("mechanism")):
        strong.check(epsilon=4, mechanism=NAME)


def test_all_kinds_of_one_size_are_the_strong_ball() -> None:
    """Where one worker can come, and no more, every set has the bound 1."""
    bounds = built("0.1", "4", 4).bounds(unions_of(np.array([[2, 3, 1, 4], [5, 0, 0, 0]])))
    assert np.ptp(bounds[1:]) == 0
    assert ball_volume(bounds) == pytest.approx(2**4 / math.factorial(4) * bounds[1] ** 4)
    assert reduce(np.maximum, bounds) == pytest.approx(1, abs=1e-8)
