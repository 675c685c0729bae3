"""Constants, feasibility and expected errors against closed forms, the paper's figures and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.noise.source import SeededSource
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.mechanisms.registry import BASELINES, PRIVATE
from discreet.tables.mechanisms.search import least
from discreet.tables.mechanisms.smooth_gamma import gamma_loss
from discreet.tables.mechanisms.smooth_laplace import least_epsilon
from discreet.words.errors import Infeasible, PrivacyError
from faults_of import about

ALPHA = Establishments(0.1)


@pytest.mark.parametrize(
    ("delta", "alpha", "printed"),
    [
        ("0.005", "0.01", 0.105),
        ("0.005", "0.1", 1.01),
        ("0.005", "0.2", 1.932),
        ("0.0005", "0.01", 0.15),
        ("0.0005", "0.1", 1.45),
    ],
)
def test_table_2_of_the_paper(delta: str, alpha: str, printed: float) -> None:
    assert least_epsilon(alpha=alpha, delta=delta) == pytest.approx(printed, abs=0.006)


@pytest.mark.parametrize(
    ("name", "options", "epsilon", "error"),
    [  # expected L1 error in units of S at alpha = 0.1, recomputed in the design notes
        ("smooth-gamma", {"calibration": "paper"}, 1, 11.3),
        ("smooth-gamma", {"calibration": "paper"}, 2, 5.66),
        ("smooth-laplace", {"calibration": "paper", "delta": "0.05"}, 2, 1.0),
    ],
)
def test_expected_error_in_units_of_the_sensitivity(
    name: str, options: dict[str, str], epsilon: int, error: float
) -> None:
    mechanism = calibrate(name, unit=ALPHA, epsilon=epsilon, **options)  # type: ignore[arg-type]
    one = mechanism.expected_error(np.array([50.0]), np.array([10.0]))[0]
    assert one == pytest.approx(error, rel=5e-3)


def test_tight_smooth_gamma_beats_the_sum_of_its_worst_cases() -> None:
    b = math.log(1.1)
    mechanism = calibrate("smooth-gamma", unit=ALPHA, epsilon=2)
    assert mechanism.factor < 3**0.75 / (2 - 3 * b)
    assert gamma_loss(1 / mechanism.factor, b) == pytest.approx(2, abs=1e-6)


@pytest.mark.parametrize(
    ("alpha", "epsilon", "cells", "with_core"),
    [
        (0.1, 2, 1, 0.514),
        (0.1, 1, 1, 1.085),
        (0.2, 1, 1, 1.184),
        (0.1, 4, 8, 0.281),
        (0.1, 2, 8, 0.736),
        (0.1, 1, 8, 3.84),
    ],
)
def test_the_table_of_the_polynomial_proof(alpha: float, epsilon: int, cells: int, with_core: float) -> None:
    """Expected errors in units of S, integrated here from the density; and less than the plain polynomial needs."""
    mechanism = calibrate("joint-polynomial", unit=Establishments(alpha), epsilon=epsilon, cells=cells)
    law, d, b = mechanism.law, cells, math.log1p(alpha)
    t = np.exp(np.linspace(-20, 20, 400_001))
    slope = law.p / (1 + law.core)
    psi = slope * np.minimum(t, law.core) + law.p * np.log1p(np.maximum(t - law.core, 0) / (1 + law.core))
    mass = d * np.log(t) - psi
    mass = np.exp(mass - mass.max())
    error = mechanism.factor * (mass * t).sum() / mass.sum() / d
    assert error == pytest.approx(with_core, rel=2e-3)
    assert mechanism.expected_error(np.array([1.0]), np.array([1.0]))[0] == pytest.approx(error, rel=1e-6)
    p = d + epsilon / b
    k = max(1 / math.expm1(epsilon / p), math.exp(-b) / math.expm1((epsilon - d * b) / p))
    assert 1 / epsilon < error < k / (p - d - 1)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.002, 0.5), st.floats(1.02, 60.0), st.integers(1, 9))
def test_no_random_pair_of_moves_beats_the_polynomial(alpha: float, times: float, d: int) -> None:
    """Random shifts and ratios, and random outputs, never lose more than epsilon: the proof, by brute force."""
    b = math.log1p(alpha)
    epsilon = d * b * times
    mechanism = calibrate("joint-polynomial", unit=Establishments(alpha), epsilon=epsilon, cells=d)
    p, core = mechanism.law.p, mechanism.law.core
    rng = np.random.default_rng(1)
    n = 6000
    w = np.exp(rng.uniform(-b, b, n))
    w[: n // 2] = rng.choice([math.exp(-b), 1.0, math.exp(b)], n // 2)
    u = np.minimum(1, w) * np.where(rng.random(n) < 0.6, 1.0, rng.random(n)) / mechanism.factor
    r = np.where(rng.random(n) < 0.2, 0.0, core * np.exp(rng.uniform(-6, 25, n)))

    def psi(t: np.ndarray) -> np.ndarray:
        return p * np.minimum(t, core) / (1 + core) + p * np.log1p(np.maximum(t - core, 0) / (1 + core))

    for sign in (1.0, -1.0):
        away = np.abs(r + sign * u) / w
        assert np.abs(psi(away) - psi(r) + d * np.log(w)).max() <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("name", PRIVATE)
def test_infeasible_requests_state_the_inequality(name: str) -> None:
    options = {"cells": 8} if name == "joint-polynomial" else {}
    options |= {"delta": "1e-12"} if name == "smooth-laplace" else {}
    with pytest.raises(Infeasible, check=about("epsilon")) as caught:
        calibrate(name, unit=Establishments("0.2"), epsilon="0.15", **options)  # type: ignore[arg-type]
    assert "alpha=0.2" in str(caught.value) and "Raise" in str(caught.value)


@pytest.mark.parametrize("name", ["polynomial", "log-laplace", "smooth-gamma"])
def test_the_remedies_in_the_message_work(name: str) -> None:
    unit = Establishments("0.2")
    needed = {"polynomial": 1, "log-laplace": 1, "smooth-gamma": 3}[name] * math.log(1.2)
    with pytest.raises(Infeasible):
        calibrate(name, unit=unit, epsilon=needed * 0.999)  # type: ignore[arg-type]
    calibrate(name, unit=unit, epsilon=needed * 1.01)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 1, "calibration": "loose"}, "calibration"),
        ({"epsilon": 1, "delta": 0.1}, "delta"),
        ({"epsilon": 1, "calibration": "paper"}, "calibration"),
    ],
)
def test_nonsense_is_refused(arguments: dict[str, object], about: str) -> None:
    with pytest.raises(PrivacyError) as refused:
        calibrate("polynomial", unit=ALPHA, **arguments)  # type: ignore[arg-type]
    assert refused.value.about == about


@pytest.mark.parametrize(("name", "delta"), [("smooth-laplace", "1e-3"), ("smooth-gamma", None)])
def test_amounts_beyond_doubles_are_refused(name: str, delta: str | None) -> None:
    with pytest.raises(PrivacyError, check=about("epsilon")):
        calibrate(name, unit=ALPHA, epsilon=1000, delta=delta)  # type: ignore[arg-type]


def test_unknown_mechanisms_are_listed() -> None:
    with pytest.raises(PrivacyError, check=about("mechanism")):
        calibrate("gauss", unit=ALPHA, epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, check=about("delta")):
        calibrate("smooth-laplace", unit=ALPHA, epsilon=1)


def test_noise_for_one_count_covers_no_others() -> None:
    with pytest.raises(PrivacyError, check=about("cells")):
        calibrate("polynomial", unit=ALPHA, epsilon=1, cells=8)


def test_a_scale_that_follows_the_data_is_not_called_proved() -> None:
    proved = {name: calibrate(name, unit=ALPHA, epsilon=1).basis == "proved" for name in BASELINES}
    assert proved == {"edge-laplace": True, "node-truncation": True, "down-sensitivity": False}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("polynomial", {}),
        ("joint-polynomial", {"cells": 4}),
        ("log-laplace", {}),
        ("log-laplace", {"calibration": "paper"}),
        ("smooth-gamma", {}),
        ("smooth-laplace", {"delta": "0.05"}),
        ("edge-laplace", {}),
        ("node-truncation", {"theta": 50}),
        ("down-sensitivity", {}),
    ],
)
def test_drawn_errors_have_their_expected_size(name: str, options: dict[str, object]) -> None:
    epsilon = "0.02" if name == "edge-laplace" else 4  # noise far wider than the rounding
    mechanism = calibrate(name, unit=ALPHA, epsilon=epsilon, **options)  # type: ignore[arg-type]
    cells = 100_000
    count, largest = np.full(cells, 5000), np.full(cells, 2000)
    shape = (cells, 4) if name == "joint-polynomial" else (cells,)
    drawn = mechanism.draw(np.full(shape, 5000), largest, SeededSource(3))
    error = np.abs(drawn - 5000).mean()
    expected = mechanism.expected_error(count[:1].astype(float), largest[:1].astype(float))[0]
    assert error == pytest.approx(expected, rel=0.02)
    if name == "log-laplace":
        bias = drawn.mean() - 5000
        published = (5000 + 10) / (1 - mechanism.exponent**2) - 10 - 5000
        assert bias == pytest.approx(published if options else 0.0, abs=4 * drawn.std() / math.sqrt(cells))


@pytest.mark.parametrize(("low", "high"), [(1e-6, 1e6), (0.3, 30.0), (1e-300, 1e300), (5e-324, 25.0)])
def test_the_least_number_is_found_from_above(low: float, high: float) -> None:
    """Steep, flat, and with a jump; a jump has no root, only a first number beyond it."""
    for excess, root in (
        (lambda x: 2 - x, 2.0),
        (lambda x: math.exp(-x) - 1e-9, math.log(1e9)),
        (lambda x: -math.log(x), 1.0),
        (lambda x: 1e-12 * (0.7 - x), 0.7),
        (lambda x: 5.0 if x < 0.4 else -1e-6, 0.4),
    ):
        calls: list[float] = []
        found = least(lambda x, f=excess, c=calls: (c.append(x), f(x))[1], low, high)
        assert excess(found) <= 0
        assert root * (1 - 1e-12) <= found <= root * (1 + 2e-10)
        assert len(calls) < 200


def test_where_nothing_less_is_enough_the_proved_end_is_taken() -> None:
    assert least(lambda x: 1.0, 0.5, 8.0) == 8.0
    assert least(lambda x: -1.0, 0.5, 8.0) == 0.5
    assert least(lambda x: 1.0, 9.0, 8.0) == 8.0
