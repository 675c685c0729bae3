"""Every search ends: extreme parameters are answered or refused within a few seconds of processor time."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest

from discreet.noise.laws import RadialPolynomial
from discreet.noise.source import SeededSource
from discreet.privacy.losses import Approximate, Concentrated, Pure
from discreet.privacy.units import Establishments
from discreet.privacy.verify import neighbouring_cells, verify
from discreet.tables.calibration import calibrate
from discreet.tables.intervals.counts import intervals
from discreet.tables.mechanisms.registry import PRIVATE
from discreet.words.errors import DiscreetError
from faults_of import about

ALPHAS = ("1e-12", "1e-9", "1e-7", "0.001", "0.1", "1", "100", "1e9", "1e15")
EPSILONS = ("1e-300", "1e-9", "0.0001", "0.15", "2", "80", "499", "500001")
DELTAS = ("1e-999", "1e-305", "1e-81", "1e-80", "1e-12", "0.05", "0.999999", "0.99999999999999999999")
LEVELS = (1e-300, 0.95, 1 - 2.0**-53)
LIMIT = 20.0  # seconds of processor time for a part of the grid that takes less than one; a clock would see the load


@contextmanager
def ending(what: object) -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError(f"{what} takes more than {LIMIT:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def just_above(x: float) -> list[float]:
    """The edge, the next double and relative distances around the margins of the calibration."""
    return [x, math.nextafter(x, math.inf), *(x * (1 + 2.0**-k) for k in (52, 45, 31, 30, 29, 20))]


def asked() -> Iterator[tuple[str, object, object, object, int]]:
    for alpha in ALPHAS:
        b = math.log1p(float(alpha))
        for epsilon in (*EPSILONS, *just_above(b), *just_above(3 * b), *just_above(8 * b), *just_above(4 * b)):
            yield "polynomial", alpha, epsilon, None, 1
            yield "joint-polynomial", alpha, epsilon, None, 8
            yield "log-laplace", alpha, epsilon, None, 1
            yield "smooth-gamma", alpha, epsilon, None, 1
            yield "staircase", alpha, epsilon, None, 1
        for epsilon in EPSILONS:
            share, amount = float(alpha), float(epsilon)
            edge = math.exp(math.log(share / (1 + share)) - min((amount + b) / share, 740))
            for delta in (*DELTAS, *just_above(edge)):
                if 0 < float(delta) < 1:
                    yield "smooth-laplace", alpha, epsilon, delta, 1


ASKED = list(asked())


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("name", PRIVATE)
def test_calibrations_end_and_what_they_give_can_be_used(name: str, calibration: str) -> None:
    """Constants, expected errors and intervals, over a grid of extremes and of amounts just above what is feasible."""
    built = {}
    for ask in ASKED:
        if ask[0] != name:
            continue
        with ending(ask):
            try:
                mechanism = calibrate(  # type: ignore[call-overload]
                    name,
                    unit=Establishments(ask[1]),
                    epsilon=ask[2],
                    delta=ask[3],
                    cells=ask[4],
                    calibration=calibration,
                )
            except DiscreetError as error:
                assert str(error).count(". ") >= 1, error
                continue
            built[ask] = mechanism
    if name in ("ladder", "two-sizes", "joint-rings", "weak-joint", "weak-unions"):
        return  # it has a range of its own, and tests of its own
    if calibration == "paper" and ("polynomial" in name or name == "staircase"):
        assert not built  # those are not in the paper
        return
    assert len(built) > 10
    sizes = np.array([0.0, 1.0, 1e6])
    for ask, mechanism in list(built.items())[:: max(1, len(built) // 25)]:
        with ending(ask):
            assert np.all(mechanism.integer_error(sizes, sizes) >= 0)
            columns = mechanism.law.dimension if isinstance(mechanism.law, RadialPolynomial) else 1
            for level in LEVELS:
                lower, upper = intervals(np.full((2, columns), 50), mechanism, level=level, bounded=True)
                assert np.all(lower <= upper)


@pytest.mark.parametrize(
    ("name", "alpha", "epsilon", "delta"),
    [
        ("smooth-laplace", "0.1", "80", "1e-80"),
        ("smooth-laplace", "0.01", "10", "1e-80"),
        ("smooth-laplace", "0.1", "499", "1e-80"),
        ("smooth-laplace", "1", "0.5", "0.9"),
        ("smooth-gamma", "0.1", "499", None),
        ("log-laplace", "1e9", "5000", None),
        ("polynomial", "1e9", "25", None),
        ("staircase", "0.1", "499", None),
        ("staircase", "1e9", "63", None),
        ("staircase", "1e-6", "0.5", None),
    ],
)
def test_verifications_end(name: str, alpha: str, epsilon: str, delta: str | None) -> None:
    unit = Establishments(alpha)
    mechanism = calibrate(name, unit=unit, epsilon=epsilon, delta=delta)  # type: ignore[call-overload]
    with ending((name, alpha, epsilon, delta)):
        assert verify(mechanism, neighbours=neighbouring_cells(unit, largest=40)).holds
        verify(mechanism.scaled(1e-12), neighbours=neighbouring_cells(unit, largest=10))


@pytest.mark.parametrize(
    ("alpha", "epsilon", "delta"),
    [("0.1", "80", "1e-305"), ("0.01", "10", "1e-301"), ("0.1", "499", "1e-300"), ("0.1", "1", "1e-999")],
)
def test_a_delta_that_cannot_be_computed_is_refused(alpha: str, epsilon: str, delta: str) -> None:
    with (
        ending(delta),
        pytest.raises(DiscreetError, check=about("delta")),
    ):
        calibrate("smooth-laplace", unit=Establishments(alpha), epsilon=epsilon, delta=delta)


def test_losses_of_any_size_are_computed_at_once() -> None:
    with ending("losses"):
        for steps in (0, 1, 10**6, 10**15):
            for epsilon in (0, "1e-300", 1, 10**6):
                far = Approximate(epsilon, "1e-300").at_distance(steps)
                assert isinstance(far, Approximate) and far.epsilon == Fraction(epsilon) * steps
        assert Pure("0.1") * 10**15 == Pure(10**14)
        assert Concentrated(1).to_approximate("1e-900").delta == Fraction(1, 10**900)


def test_the_sampler_ends_at_every_scale() -> None:
    for ask in (("polynomial", "1e-5", "1e-4"), ("smooth-gamma", "1e-5", "0.001"), ("polynomial", "1e9", "25")):
        mechanism = calibrate(ask[0], unit=Establishments(ask[1]), epsilon=ask[2])  # type: ignore[call-overload]
        with ending(ask):
            mechanism.draw(np.zeros(50, dtype=np.int64), np.full(50, 10**9), SeededSource(1))
