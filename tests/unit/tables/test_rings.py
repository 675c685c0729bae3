"""Laws of rings: their promise by brute force over real neighbours, how near the limit they are, what they refuse."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import discreet as dc
from discreet.noise.rings import Rings, descent, table
from discreet.noise.source import SeededSource
from discreet.privacy.kinds import Pair, is_weak_pair, kinds_supremum, log_volume, pair_loss, real_pairs
from discreet.privacy.neighbours import neighbouring_cells
from discreet.privacy.verify import verify
from discreet.tables.calibration import calibrate
from discreet.tables.intervals.counts import intervals
from discreet.tables.mechanisms.growth import paced
from discreet.words.errors import Infeasible, PrivacyError
from faults_of import about

STRONG, WEAK = "joint-rings", "weak-joint"
POINTS = [("0.1", "4", 8), ("0.2", "2", 2), ("0.05", "1", 1)]


def built(name: str, alpha: str, epsilon: str, cells: int):
    unit = dc.Establishments(alpha, "weak" if name == WEAK else "strong")
    return calibrate(name, unit=unit, epsilon=epsilon, cells=cells)


@pytest.mark.parametrize("alpha", ["1/10", "1/3", "7/9", "2", "3/1000"])
def test_the_scale_keeps_pace_with_growth_and_is_the_least_that_does(alpha: str) -> None:
    share = Fraction(alpha)
    x = np.arange(0, math.ceil(60 / share) if share > Fraction(1, 100) else 20_000)
    gain = np.array([max(math.floor(share * int(y)), 1) for y in x])
    scale = paced(share, x.astype(float))
    assert np.all(np.diff(scale) >= 0) and scale[0] == 1
    assert np.all(gain <= paced(share, (x + gain).astype(float)) * (1 + 1e-12))
    assert np.all(paced(share, (x + gain).astype(float)) <= (1 + float(share)) * scale * (1 + 1e-12))
    assert np.all(scale <= np.maximum(float(share / (1 + share)) * x, 1) * (1 + 1e-12))
    if share == Fraction(1, 10):
        assert scale[13] == 1 and scale[19] == pytest.approx(2 / 1.1**2) and scale[22] == 2


@pytest.mark.parametrize("alpha", ["1/10", "1/3", "7/9", "1", "11/10", "3/2", "19/10", "2", "5/2", "17/3", "20"])
def test_the_scale_is_no_less_than_any_gain_that_ends_there(alpha: str) -> None:
    """(1) of the proof: also gains that are no establishment's largest, which alpha above 1 passes over."""
    share = Fraction(alpha)
    for y in range(300):
        gains = np.arange(1, max(math.floor(share * y), 1) + 1)
        assert np.all(gains <= paced(share, (y + gains).astype(float)) * (1 + 1e-12))
        assert np.all(
            paced(share, (y + gains).astype(float)) <= (1 + float(share)) * paced(share, np.array([y])) + 1e-9
        )
    passed_over = {*range(1, 200)} - {max(math.floor(share * y), 1) for y in range(math.ceil(200 / share))}
    assert bool(passed_over) == (share > 1)


@pytest.mark.parametrize(("alpha", "epsilon", "cells"), POINTS)
def test_the_strong_loss_is_epsilon_and_five_percent_less_noise_is_found(alpha: str, epsilon: str, cells: int) -> None:
    mechanism = built(STRONG, alpha, epsilon, cells)
    near = neighbouring_cells(mechanism.unit, largest=120)
    verdict = verify(mechanism, neighbours=near)
    assert verdict.holds and verdict.worst_loss > 0.999 * float(epsilon)
    assert verdict.worst_rounded_loss is not None
    assert not verify(mechanism.scaled(0.95), neighbours=near).holds


@pytest.mark.parametrize(("alpha", "epsilon", "cells"), [("0.1", "4", 8), ("0.2", "2", 2)])
def test_the_weak_loss_is_epsilon_at_a_real_pair_and_less_noise_has_a_witness(
    alpha: str, epsilon: str, cells: int
) -> None:
    mechanism = built(WEAK, alpha, epsilon, cells)
    near = neighbouring_cells(mechanism.unit, largest=120)
    found = kinds_supremum(mechanism, near)
    assert found.loss <= found.bound <= float(epsilon) and found.loss > 0.999 * float(epsilon)
    assert is_weak_pair(mechanism.unit, found.pair)
    assert kinds_supremum(mechanism.scaled(0.95), near).loss > float(epsilon) * 1.01
    assert verify(mechanism, neighbours=near).holds and not verify(mechanism.scaled(0.95), neighbours=near).holds


def test_the_pairs_of_the_verifier_are_weak_neighbours() -> None:
    for alpha, d in (("0.1", 4), ("1/3", 3), ("2", 2)):
        unit = dc.Establishments(alpha, "weak")
        assert all(is_weak_pair(unit, pair) for pair in real_pairs(unit, d))
    strong_only = Pair(np.array([20, 0]), np.array([0, 2]), np.zeros((1, 2), dtype=np.int64))
    assert not is_weak_pair(dc.Establishments("0.1", "weak"), strong_only)


def test_all_weak_neighbours_of_small_integers_keep_the_promise() -> None:
    """Every pair of small workforces of two kinds, beside some others: outputs on a grid, densities with volumes."""
    mechanism = built(WEAK, "1/3", "2", 2)
    unit, rng, worst = mechanism.unit, np.random.default_rng(4), 0.0
    for before in product((0, 1, 2, 3, 5, 8, 9), repeat=2):
        for gain in product(range(5), repeat=2):
            pair = Pair(np.array(before), np.array(gain), np.array([[0, 0], rng.integers(0, 14, 2)]))
            if any(gain) and is_weak_pair(unit, pair):
                worst = max(worst, _brute_loss(mechanism, pair, rng), pair_loss(mechanism, pair)[0])
    assert 1.9 < worst <= 2
    pair = Pair(np.array([9, 9]), np.array([3, 3]), np.array([[0, 0]]))
    assert _brute_loss(mechanism.scaled(0.9), pair, rng) > 2  # the search has the power to see too little noise


def _brute_loss(mechanism, pair: Pair, rng: np.random.Generator) -> float:
    """The largest loss over outputs near both counts, from densities alone."""
    z = np.concatenate([rng.uniform(-12, 12, (400, 2)), rng.uniform(-2, 2, (400, 2)), np.zeros((1, 2))])
    logs = []
    for counts in (pair.before, pair.before + pair.gain):
        rows = np.vstack([counts, pair.others])
        own, whole = mechanism.scales(np.array([[*rows.max(axis=0), rows.sum(axis=1).max()]]))
        y = z - (counts - pair.before)
        sizes = [np.maximum(sign * y, 0) for sign in (1, -1)]
        radius = sum(np.maximum((part / own).max(axis=1), part.sum(axis=1) / whole) for part in sizes)
        logs.append(table(mechanism.law).log_height(radius) - log_volume(own[0], float(whole[0])))
    return float(np.abs(logs[0] - logs[1]).max())


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize(("epsilon", "growth", "d"), [(4.0, 0.1, 8), (1.0, 0.05, 2), (3.0, 0.5, 3), (20.0, 0.1, 30)])
def test_every_ring_of_the_table_keeps_the_conditions(epsilon: float, growth: float, d: int, coupled: bool) -> None:
    """From the whole numbers that are drawn with, over every pair of rings and the ratios at which they meet."""
    law = Rings(d, epsilon, growth, coupled, 8, 0.25, 0.5)
    found = table(law)
    assert sum(found.weights) == 2**256 and min(found.weights) > 0
    psi, lower, upper = -found.heights, found.edges[:-1], found.edges[1:]
    assert np.all(np.diff(psi) > -1e-9)
    grown, rise = 1 + growth, psi[None, :] - psi[:, None]
    for w in np.linspace(1, grown, 41):
        volume = d * math.log(w) if coupled else 0.0
        outward = lower[None, :] < (w * (upper + 1))[:, None]
        assert (rise - volume)[outward].max() <= epsilon + 1e-9
        inward = lower[None, :] < (upper / w + 1 if coupled else upper + 1)[:, None]
        assert (rise + (volume if coupled else d * math.log(grown)))[inward].max() <= epsilon + 1e-9
    far = found.edges[-1] * np.array([0.999, 1.0, 1.3, 40.0])
    for w in (1.0, grown):
        volume = d * math.log(w) if coupled else 0.0
        step = found.log_height(far) - found.log_height(w * (far + 1))
        assert step.max() - volume <= epsilon + 1e-9


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize(("alpha", "epsilon"), [(0.1, 4.0), (0.1, 2.0)])
@pytest.mark.parametrize("d", [1, 2, 8])
def test_the_mean_radius_is_within_three_percent_of_the_linear_programme(
    alpha: float, epsilon: float, d: int, coupled: bool
) -> None:
    from discreet.tables.mechanisms.joint_rings import SHAPES

    best = min((Rings(d, epsilon, alpha, coupled, 16, *shape) for shape in SHAPES), key=lambda law: law.mean_abs)
    optimum = _programme(best)
    assert optimum * 0.999 <= best.mean_radius <= 1.03 * optimum


def _programme(law: Rings) -> float:
    """The least mean radius of a density that never rises and keeps the conditions on the same rings."""
    found, d = table(law), law.d
    n = int(np.searchsorted(-law.radius_survival(found.edges), -1e-10))  # what lies beyond adds nothing to the mean
    edges, w1 = found.edges[: n + 1], 1 + law.growth
    lower, upper = edges[:-1], edges[1:]
    start = descent(law, edges)
    rows: list[tuple[int, int, float]] = []
    for i in range(n):
        cap: dict[int, float] = {}
        for w in np.linspace(1, w1, 9):
            volume = d * math.log(w)
            out = int(np.searchsorted(lower, w * (upper[i] + 1), side="left")) - 1
            near = int(np.searchsorted(lower, upper[i] / w + 1 if law.coupled else upper[i] + 1, side="left")) - 1
            for j, gain in ((out, law.epsilon + volume * law.coupled), (near, law.epsilon - (volume if law.coupled else d * math.log(w1)))):  # fmt: skip  # noqa: E501
                j = min(j, n - 1)
                cap[j] = min(cap.get(j, math.inf), gain)
        rows += [(i, j, gain) for j, gain in cap.items() if j > i]
    rows += [(j + 1, j, 0.0) for j in range(n - 1)]
    # Variables are densities over those of the law at hand: f_i <= e^gain f_j.
    data = [(1.0, -math.exp(gain + start[i] - start[j])) for i, j, gain in rows]
    row = np.repeat(np.arange(len(rows)), 2)
    column = np.array([(i, j) for i, j, _ in rows]).ravel()
    A = sparse.csr_matrix((np.array(data).ravel(), (row, column)), shape=(len(rows), n))
    mass = np.exp(-start) * np.diff(edges**d)
    first = np.exp(-start) * np.diff(edges ** (d + 1)) * d / (d + 1)
    size = mass.sum()
    done = linprog(first / size, A_ub=A, b_ub=np.zeros(len(rows)), A_eq=(mass / size)[None], b_eq=[1.0], method="highs")
    assert done.status == 0
    return float(done.fun)


@pytest.mark.parametrize("name", [STRONG, WEAK])
def test_draws_have_the_expected_error_and_intervals_hold(name: str) -> None:
    mechanism, source = built(name, "0.1", "4", 4), SeededSource(3)
    for kinds in ((3, 0, 1, 2), (40, 300, 9, 60)):
        truth = np.tile(kinds, (20_000, 1))
        largest = np.column_stack([truth, truth.sum(axis=1)])
        drawn = mechanism.draw(truth, largest if name == WEAK else largest[:, -1], source)
        error = np.abs(drawn - truth).mean()
        expected = mechanism.integer_error(truth[:1, 0].astype(float), largest[:1, -1].astype(float))[0]
        if name == STRONG or truth[0].sum() < 13:
            assert error == pytest.approx(expected, rel=0.02)
        else:
            assert error <= expected
        lower, upper = intervals(drawn, mechanism, level=0.9, bounded=True)
        assert ((lower <= truth) & (truth <= upper)).mean(axis=0).min() >= 0.895


def test_a_release_by_name_costs_one_epsilon_and_says_what_weak_does_not_hide(jobs) -> None:
    ask = {"epsilon": 4, "mechanism": WEAK}
    session = dc.Session(jobs, unit=dc.Establishments("0.1", "weak"), budget=5)
    table_of_kinds = session.count(by=["place", "sex", "education"])
    assert "at most" in str(table_of_kinds.check(**ask).expected.error)
    found = table_of_kinds.release(**ask, scale_share="1/10")
    assert found.guarantee.loss == dc.Pure(4) and found.guarantee.proof == "docs/proofs/rings.md"
    assert "does not hide" in str(found.guarantee) and "weak (alpha=0.1, epsilon=4)" in str(found.guarantee)
    assert np.all(found.lower <= found.upper) and np.isfinite(found.upper).all()
    strong = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=5).count(by=["place", "sex", "education"])
    assert "not hide" not in str(strong.check(epsilon=4, mechanism=STRONG).guarantee)
    with pytest.raises(PrivacyError, check=about("mechanism")):
        strong.check(**ask)


def test_the_weak_one_errs_less_where_kinds_are_many_and_establishments_large() -> None:
    weak, strong = built(WEAK, "0.1", "4", 8), built(STRONG, "0.1", "4", 8)
    truth = np.full((3000, 8), 100)
    errors = [
        np.abs(strong.draw(truth, truth.sum(axis=1), SeededSource(1)) - truth).mean(),
        np.abs(weak.draw(truth, np.full((3000, 9), [100] * 8 + [800]), SeededSource(1)) - truth).mean(),
    ]
    assert errors[1] < 0.55 * errors[0]


def test_what_cannot_be_is_refused_with_the_inequality_and_what_can() -> None:
    with pytest.raises(Infeasible, check=about("epsilon")):
        built(STRONG, "0.1", "0.5", 8)
    with pytest.raises(Infeasible, check=about("epsilon")):
        built(WEAK, "0.1", "0.8", 8)
    with pytest.raises(Infeasible, check=about("epsilon")):
        built(STRONG, "0.001", "4", 65)
    with pytest.raises(PrivacyError, check=about("calibration")):
        calibrate(WEAK, unit=dc.Establishments("0.1", "weak"), epsilon=4, cells=2, calibration="paper")
    for name, alpha, epsilon, cells in ((STRONG, "0.0001", "0.01", 8), (WEAK, "0.0001", "0.02", 8), (WEAK, "0.001", "0.0091", 8), (STRONG, "20", "30", 8)):  # fmt: skip  # noqa: E501
        with pytest.raises(Infeasible, check=about("epsilon")):
            built(name, alpha, epsilon, cells)
    for name, alpha, epsilon, cells in ((STRONG, "0.1", "0.7626", 8), (STRONG, "10", "400", 2), (WEAK, "0.1", "1.91", 19)):  # fmt: skip  # noqa: E501
        mechanism = built(name, alpha, epsilon, cells)
        assert min(table(mechanism.law).weights) > 0 and 0 < mechanism.law.mean_abs < math.inf
    assert built(WEAK, "0.1", "0.8", 7).law.mean_abs < math.inf
    assert built(STRONG, "0.1", "0.5", 5).law.mean_abs < math.inf
