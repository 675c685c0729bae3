"""One worker of another kind, or with another employer: two steps of the definition, or one where that is asked for."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Approximate, Pure, half
from discreet.privacy.verify import neighbouring_cells, verify
from discreet.tables.calibration import calibrate
from discreet.tables.mechanisms.smooth import SmoothNoise
from discreet.words.errors import Infeasible, PrivacyError
from faults_of import about

EVERY = [
    ("polynomial", {}),
    ("joint-polynomial", {"cells": 2}),
    ("log-laplace", {}),
    ("smooth-gamma", {}),
    ("smooth-laplace", {"delta": "0.001"}),
]


def posterior(log_odds: float) -> float:
    """How sure somebody becomes who was undecided between two values."""
    return 1 / (1 + math.exp(-log_odds))


def worst_of_another_kind(mechanism: SmoothNoise, most: int = 12) -> float:
    """The largest log ratio of exact probabilities of the published integers between (1, 0) and (0, 1) workers."""
    scale = mechanism.scale(np.array([1.0]))
    grid = np.stack(np.meshgrid(np.arange(-most, most + 1), np.arange(-most, most + 1)), axis=-1).reshape(-1, 2)
    first, second = (mechanism.law.probability(grid - np.array(kind), scale) for kind in ((1, 0), (0, 1)))
    return float(np.abs(np.log(first) - np.log(second)).max())


@pytest.mark.parametrize(
    ("epsilon", "presence", "kind", "employer"), [("1", 73.2, 85.6, 88.1), ("2", 88.1, 97.4, 98.3)]
)
def test_what_an_undecided_attacker_learns_about_one_worker(
    epsilon: str, presence: float, kind: float, employer: float
) -> None:
    """The figures of docs/how-to/choose.md: presence is one step, kind and employer are two."""
    mechanism = calibrate("joint-polynomial", unit=dc.Establishments("0.1"), epsilon=epsilon, cells=2)
    one = verify(mechanism, neighbours=neighbouring_cells(mechanism.unit, largest=21)).worst_loss
    assert 100 * posterior(one) == pytest.approx(presence, abs=0.1)
    assert 100 * posterior(worst_of_another_kind(mechanism)) == pytest.approx(kind, abs=0.05)
    assert 100 * posterior(2 * one) == pytest.approx(employer, abs=0.1)  # two cells, whose noise is independent


def test_an_exchange_is_inside_one_epsilon_where_that_was_asked_for() -> None:
    for epsilon in ("1", "2"):
        unit = dc.Establishments("0.1", substitution=True)
        mechanism = calibrate("joint-polynomial", unit=unit, epsilon=epsilon, cells=2)
        assert worst_of_another_kind(mechanism, 25) <= float(epsilon)


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_one_worker_costs_half_and_less_noise_is_found_out(name: str, options: dict[str, object]) -> None:
    unit = dc.Establishments("0.1", substitution=True)
    near = neighbouring_cells(unit, largest=60 if "polynomial" in name else 21)
    mechanism = calibrate(name, unit=unit, epsilon=2, **options)  # type: ignore[call-overload]
    verdict = verify(mechanism, neighbours=near)
    assert verdict.holds and verdict.worst_loss > 1.99
    assert not verify(mechanism.scaled(0.95), neighbours=near).holds
    plain = calibrate(name, unit=dc.Establishments("0.1"), epsilon=2, **options)  # type: ignore[call-overload]
    claimed = replace(plain, unit=unit)
    assert not verify(claimed, neighbours=near).holds  # the usual noise does not cover an exchange


@pytest.mark.parametrize(
    ("alpha", "epsilon", "d"),
    [("0.1", "2", 1), ("0.1", "1", 8), ("0.5", "4", 3), ("0.01", "4", 2), ("7/9", "1", 1), ("7/9", "1.5", 2)],
)
def test_no_step_of_one_worker_loses_more_than_half(alpha: str, epsilon: str, d: int) -> None:
    """Brute force over sizes and outputs for the polynomial laws, whose noise is not simply that of half of epsilon."""
    unit = dc.Establishments(alpha, substitution=True)
    mechanism = calibrate("joint-polynomial", unit=unit, epsilon=epsilon, cells=d)
    p, core = mechanism.law.p, mechanism.law.core
    sizes = np.unique(np.concatenate([np.arange(400), np.geomspace(400, 1e8, 300).astype(np.int64)])).astype(float)
    s, t = mechanism.scale(sizes), mechanism.scale(sizes + 1)
    z = np.concatenate([[0.0], np.geomspace(1e-6, 1e12, 3000)])
    z = np.concatenate([-z[::-1], z])[:, None]

    def psi(r: np.ndarray) -> np.ndarray:
        return p * np.minimum(r, core) / (1 + core) + p * np.log1p(np.maximum(r - core, 0) / (1 + core))

    loss = psi(np.abs(z - 1 / s) * s / t) - psi(np.abs(z)) + d * np.log(t / s)
    assert np.abs(loss).max() <= float(epsilon) / 2
    assert np.abs(loss).max() > float(epsilon) / 2 * 0.9
    plain = calibrate("joint-polynomial", unit=dc.Establishments(alpha), epsilon=epsilon, cells=d)
    large = np.array([1e6])
    ratio = mechanism.expected_error(large, large) / plain.expected_error(large, large)
    assert 0.999 <= ratio[0] < 1.3  # far from twice: large establishments hardly pay


def test_halves_are_exact_and_never_flatter() -> None:
    assert half(Pure(1)) == Pure("1/2")
    whole = Approximate(2, "1e-6")
    one = half(whole)
    assert isinstance(one, Approximate)
    twice = one.at_distance(2)
    assert isinstance(twice, Approximate)
    assert twice.epsilon == 2 and twice.delta <= Fraction(1, 10**6) * (1 + Fraction(1, 10**30))
    assert one.delta * (1 + Fraction(271828182845, 10**11)) <= Fraction(1, 10**6)


def test_words_key_and_refusals() -> None:
    plain, unit = dc.Establishments("0.1"), dc.Establishments("0.1", substitution=True)
    assert plain.key == "establishments(alpha=1/10,strong)"  # as every ledger has it
    assert unit.key == "establishments(alpha=1/10,strong,substitution)"
    said = str(Guarantee(unit, Pure(1)))
    assert "employer-employee privacy with substitution" in said and "exchanged for another or changes employer" in said
    assert "substitution" not in str(Guarantee(plain, Pure(1)))
    with pytest.raises(PrivacyError, check=about("substitution")):
        dc.Establishments("0.1", substitution="yes")  # type: ignore[arg-type]
    with pytest.raises(Infeasible, check=about("epsilon")):
        calibrate("smooth-gamma", unit=dc.Establishments("0.2", substitution=True), epsilon=1)


@pytest.mark.parametrize(("epsilon", "told"), [("5", "149"), ("0.1", "1.11"), ("1", "2.72"), ("0.001", "1.01")])
def test_the_factor_in_words_is_rounded_up(epsilon: str, told: str) -> None:
    assert f"more than {told} times" in str(Guarantee(dc.Workers(), Pure(epsilon), basis="proved"))


def test_shrinking_by_alpha_is_more_than_one_step() -> None:
    """From 100 workers to 90 the loss is ln(100 / 90) / ln 1.1 = 1.105 epsilon: the definition is growth by alpha."""
    mechanism = calibrate("log-laplace", unit=dc.Establishments("0.1"), epsilon=1)
    far = abs(np.diff(np.log(np.array([1e9, 0.9e9]))))[0] / mechanism.exponent
    assert far == pytest.approx(1.105, abs=1e-3)
    assert dc.Establishments("0.1").largest_neighbour(90) == 99
    assert dc.Establishments("0.1").largest_neighbour(91) == 100
