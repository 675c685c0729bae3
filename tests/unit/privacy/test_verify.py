"""The verifier agrees with brute force, and cannot be talked into accepting too little noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate

from discreet.arrays import Vector
from discreet.noise.laws import GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.privacy.integers import OUTPUTS
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments
from discreet.privacy.verify import exact_delta, neighbouring_cells, supremum, verify
from discreet.tables.calibration import calibrate

SOME = [("0.01", "0.5"), ("0.15", "4")]  # the others are on the grid of `test-full`
FULL_ALPHAS, FULL_EPSILONS = ("0.01", "0.05", "0.1", "0.15", "0.2"), ("0.25", "0.5", "0.67", "1", "2", "4")
TIGHT = [
    ("polynomial", {}),
    ("joint-polynomial", {"cells": 2}),
    ("joint-polynomial", {"cells": 8}),
    ("log-laplace", {}),
    ("smooth-gamma", {}),
    ("smooth-laplace", {"delta": "0.05"}),
    ("smooth-laplace", {"delta": "0.000001"}),
]
PUBLISHED = [("log-laplace", {}), ("smooth-gamma", {}), ("smooth-laplace", {"delta": "0.05"})]


def _feasible(name: str, alpha: str, epsilon: str, **options: object):
    from discreet.words.errors import Infeasible

    try:
        return calibrate(name, unit=Establishments(alpha), epsilon=epsilon, **options)  # type: ignore[arg-type]
    except Infeasible:
        return None


def _check_tight(name: str, options: dict[str, object], alpha: str, epsilon: str) -> None:
    mechanism = _feasible(name, alpha, epsilon, **options)
    if mechanism is None:
        return
    verdict = verify(mechanism)
    assert verdict.holds, verdict
    assert 0.995 * float(epsilon) <= verdict.worst_loss <= float(epsilon) * (1 + 5e-8), verdict
    assert not verify(mechanism.scaled(0.95), neighbours=neighbouring_cells(mechanism.unit, largest=150)).holds


@pytest.mark.parametrize(("alpha", "epsilon"), SOME)
@pytest.mark.parametrize(("name", "options"), TIGHT)
def test_tight_mechanisms_hold_and_five_percent_less_noise_does_not(
    name: str, options: dict[str, object], alpha: str, epsilon: str
) -> None:
    _check_tight(name, options, alpha, epsilon)


def test_a_thousandth_less_noise_is_found_too() -> None:
    mechanism = calibrate("polynomial", unit=Establishments("0.1"), epsilon="1")
    few = neighbouring_cells(mechanism.unit, largest=150)
    assert verify(mechanism, neighbours=few).holds and not verify(mechanism.scaled(0.999), neighbours=few).holds


@pytest.mark.full_size
@pytest.mark.parametrize("epsilon", FULL_EPSILONS)
@pytest.mark.parametrize("alpha", FULL_ALPHAS)
@pytest.mark.parametrize(("name", "options"), TIGHT)
def test_tight_mechanisms_on_the_papers_grid(name: str, options: dict[str, object], alpha: str, epsilon: str) -> None:
    _check_tight(name, options, alpha, epsilon)


@pytest.mark.parametrize("epsilon", ("1", "2"))
@pytest.mark.parametrize(("name", "options"), PUBLISHED)
def test_published_constants_hold_too(name: str, options: dict[str, object], epsilon: str) -> None:
    mechanism = _feasible(name, "0.1", epsilon, calibration="paper", **options)
    assert mechanism is not None
    assert verify(mechanism).holds


@pytest.mark.parametrize("law", [Laplace(), GeneralisedCauchy(4.0), Polynomial(5.5)])
def test_supremum_is_what_a_dense_scan_finds(law: Laplace | GeneralisedCauchy | Polynomial) -> None:
    ratio = np.ones(4) if isinstance(law, Laplace) else np.array([0.9, 1.0, 1.05, 1.2])
    shift = np.array([0.3, 1.0, 0.7, 2.0])
    far = 1e5 if isinstance(law, Laplace) else 1e12  # beyond, the scan's own differences lose their digits
    found, _ = supremum(law, shift=shift, ratio=ratio)
    tail = np.geomspace(60, far, 1000)
    z = np.concatenate([np.linspace(-60, 60, 2_000_001), shift, tail, -tail])  # the loss has kinks at 0 and shift
    for u, w, value in zip(shift, ratio, found, strict=True):
        scan = np.abs(law.log_density(z) - law.log_density((z - u) / w) + np.log(w)).max()
        assert scan <= value + 1e-9
        assert value == pytest.approx(scan, abs=1e-7)


@pytest.mark.parametrize("p", [3.0, 20.0])
def test_the_limit_in_the_tails_is_reached(p: float) -> None:
    """Scales that differ by w alone: the loss tends to (p - 1) ln w from below, and is there at no finite output."""
    worst, where = supremum(Polynomial(p), shift=np.zeros(1), ratio=np.array([1.1]))
    assert worst[0] == pytest.approx((p - 1) * math.log(1.1), rel=1e-9) and where[0] == np.inf


def test_laplace_with_a_moving_scale_is_never_pure() -> None:
    assert supremum(Laplace(), shift=np.array([0.1]), ratio=np.array([1.1]))[0][0] == math.inf


@pytest.mark.parametrize(("u", "w", "epsilon"), [(0.5, 1.0, 0.3), (0.4, 1.1, 0.5), (1.0, 0.9, 0.2), (0.0, 1.2, 0.1)])
@pytest.mark.parametrize("law", [Laplace(), GeneralisedCauchy(4.0)])
def test_delta_is_the_integral(law: Laplace | GeneralisedCauchy, u: float, w: float, epsilon: float) -> None:
    def over(z: float, u: float, w: float) -> float:
        f = math.exp(law.log_density(np.array(z)))
        g = math.exp(law.log_density(np.array((z - u) / w))) / w
        return max(f - math.exp(epsilon) * g, 0.0)

    def integral(u: float, w: float) -> float:
        pieces = [-4000, -200, -30, -5, -1, 0, u, u + 1, 5, 30, 200, 4000]
        return sum(
            integrate.quad(over, a, b, args=(u, w), limit=400, epsabs=1e-12)[0]
            for a, b in zip(sorted(set(pieces))[:-1], sorted(set(pieces))[1:], strict=True)
        )

    expected = max(integral(u, w), integral(-u / w, 1 / w))
    found = exact_delta(law, shift=np.array([u]), ratio=np.array([w]), epsilon=epsilon)[0]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_several_cells_lose_what_a_two_dimensional_scan_finds() -> None:
    law, u, w = RadialPolynomial(9.0, 2), 0.4, 1.1
    found, _ = supremum(law, shift=np.array([u]), ratio=np.array([w]))
    x, y = np.meshgrid(np.linspace(-20, 20, 1601), np.linspace(-20, 20, 1601))
    points = np.stack([x, y], axis=-1)
    for share in (1.0, 0.6, 0.3):  # the shift may be spread over both cells
        moved = (points - u * np.array([share, 1 - share])) / w
        scan = np.abs(law.log_density(points) - law.log_density(moved) + 2 * np.log(w)).max()
        assert scan <= found[0] + 1e-9


def test_neighbours_obey_the_definition_and_cover_the_corners() -> None:
    unit = Establishments("0.15")
    pairs = neighbouring_cells(unit)
    for before, after in zip(pairs.before[::97].tolist(), pairs.after[::97].tolist(), strict=True):
        assert before < after <= unit.largest_neighbour(before)
    seen = set(zip(pairs.before.tolist(), pairs.after.tolist(), pairs.other.tolist(), strict=True))
    assert (0, 1, 0) in seen and (20, 23, 0) in seen
    assert pairs.before.max() == 10**6


@pytest.mark.parametrize("points", [400, pytest.param(4000, marks=pytest.mark.full_size)])
def test_brute_force_over_small_cells_finds_nothing_worse(points: int) -> None:
    unit = Establishments("0.2")
    mechanism = calibrate("polynomial", unit=unit, epsilon=1)
    worst = verify(mechanism).worst_loss
    z = np.concatenate([[0.0], np.geomspace(1e-3, 1e9, points)])
    z = np.concatenate([-z[::-1], z])
    for before in range(40):
        for after in range(before + 1, unit.largest_neighbour(before) + 1):
            s, t = (mechanism.scale(np.maximum(size, np.arange(60.0)))[:, None] for size in (before, after))
            loss = mechanism.law.log_density(z) - mechanism.law.log_density((z - (after - before) / s) / (t / s))
            assert np.abs(loss + np.log(t / s)).max() <= worst + 1e-9


def test_a_wrong_exponent_is_caught_in_the_tail() -> None:
    mechanism = calibrate("polynomial", unit=Establishments(0.1), epsilon=2)
    heavy = replace(mechanism, law=Polynomial(mechanism.law.p * 1.05, mechanism.law.core * 1.5))
    verdict = verify(heavy)
    assert not verdict.holds and verdict.worst_loss > 2.09
    assert verdict.witness.output > 1000


def test_a_baseline_does_not_hide_an_establishment() -> None:
    edge = calibrate("edge-laplace", unit=Establishments(0.1), epsilon=2, calibration="paper")
    claimed = replace(edge, unit=Establishments(0.1))
    verdict = verify(claimed)
    assert not verdict.holds and verdict.worst_loss > 10_000


class _Altered:
    """Noise that falls by a third a worker, whatever the size, with its probabilities altered."""

    unit, loss, law, step, additive = Establishments("0.1"), Pure(1), Laplace(), 1, True

    def __init__(self, altered: Callable[[Vector, Vector, float], Vector]) -> None:
        self.altered = altered

    def integer_probability(self, j: Vector, largest: float) -> Vector:
        geometric = np.tanh(1 / 6) * np.exp(-np.abs(j) / 3)
        return self.altered(j, geometric, largest)

    def centre(self, count: Vector) -> Vector:
        return count

    def scale(self, largest: Vector) -> Vector:
        return largest


@pytest.mark.parametrize(("loss", "rounded"), [(1.1, 0.9), (0.9, 1.1), (np.nan, 0.9), (0.9, np.nan), (1.1, None)])
def test_the_worse_of_two_losses_decides(loss: float, rounded: float | None) -> None:
    good = verify(calibrate("log-laplace", unit=Establishments("0.1"), epsilon=1))
    assert good.outcome != "VIOLATED"
    assert replace(good, worst_loss=loss, worst_rounded_loss=rounded).outcome == "VIOLATED"


FAR_OUT = OUTPUTS[OUTPUTS > -1780][0]


@pytest.mark.parametrize(
    "altered",
    [
        lambda j, p, largest: np.where(np.abs(j) > 30, 0, p),
        lambda j, p, largest: np.where((j == 3) & (largest == 5), 0, p),
        lambda j, p, largest: np.where((j == 3) & (largest == 5), np.nan, p),
        lambda j, p, largest: np.where((j == 3) & (largest == 5), -p, p),
        lambda j, p, largest: np.nan * p,
        lambda j, p, largest: np.where((j == FAR_OUT) & (largest == 5), 0, p),
    ],
    ids=["bounded", "gap", "no-number", "negative", "no-numbers", "a-gap-at-1e-257"],
)
def test_noise_that_cannot_reach_an_output_is_no_noise_of_integers(altered: Callable[..., Vector]) -> None:
    few = neighbouring_cells(Establishments("0.1"), largest=20)
    assert verify(_Altered(lambda j, p, largest: p), neighbours=few).outcome == "unknown"  # it draws nothing
    assert verify(_Altered(altered), neighbours=few).outcome == "VIOLATED"
