"""Staircase noise: its promise, exactly; how near it is to the limit; what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.noise.source import SeededSource
from discreet.noise.staircase import Staircase
from discreet.privacy.units import Establishments
from discreet.privacy.verify import neighbouring_cells, supremum, verify
from discreet.tables.calibration import calibrate
from discreet.tables.intervals.counts import intervals
from discreet.words.errors import Infeasible, PrivacyError
from faults_of import about

LIMITS = {2: 0.45, 4: 0.145}
"""E|noise| / (alpha x) of the best law for large establishments at alpha 0.1, by linear programming (grid 1/16)."""


@pytest.mark.parametrize("substitution", [False, True])
@pytest.mark.parametrize(
    ("alpha", "epsilon"), [("0.1", "2"), ("0.1", "4"), ("0.01", "1"), ("7/9", "4"), ("3", "8.31"), ("10", "19.16")]
)
def test_the_loss_is_epsilon_and_five_percent_less_noise_is_found(alpha: str, epsilon: str, substitution: bool) -> None:
    unit = Establishments(alpha, substitution=substitution)
    if substitution and alpha == "3":
        with pytest.raises(Infeasible, check=about("epsilon")):
            calibrate("staircase", unit=unit, epsilon=epsilon)
        return
    mechanism = calibrate("staircase", unit=unit, epsilon=epsilon)
    near = neighbouring_cells(unit, largest=120)
    verdict = verify(mechanism, neighbours=near)
    assert verdict.holds
    if substitution and float(unit.alpha) > 0.5:
        return  # neither one worker nor the growth of an establishment takes all of it
    assert verdict.worst_loss > 0.999 * float(epsilon)
    assert not verify(mechanism.scaled(0.95), neighbours=near).holds


@pytest.mark.parametrize(("shift", "ratio"), [(1.0205, 1.0), (1.0, 1.1002), (1.0003, 1.1)])
def test_two_edges_in_a_narrow_window_are_found(shift: float, ratio: float) -> None:
    """The window in which both are passed has less than a thousandth of a ring's width."""
    law = Staircase(3.0, 0.1, 0.2)
    (loss,), (output,) = supremum(law, shift=np.array([shift]), ratio=np.array([ratio]))
    rings = law.log_density(output) - law.log_density((output - shift) / ratio)
    assert abs(rings) == pytest.approx(6.0) and loss == pytest.approx(6.0, abs=math.log(ratio) + 1e-9)
    (within,), _ = supremum(law, shift=np.array([0.9999]), ratio=np.array([1.0999]))
    assert within == pytest.approx(3.0 + math.log(1.0999))


@pytest.mark.parametrize("epsilon", [2, 4])
def test_large_establishments_are_within_a_tenth_of_the_limit(epsilon: int) -> None:
    size = np.array([1e3, 1e5])
    ratio = calibrate("staircase", unit=Establishments("0.1"), epsilon=epsilon).integer_error(size, size) / (0.1 * size)
    assert np.all(ratio <= 1.10 * LIMITS[epsilon]) and np.all(ratio >= LIMITS[epsilon])


@pytest.mark.parametrize("alpha", ["0.01", "0.1", "0.2"])
def test_it_errs_less_than_polynomial_from_two_on(alpha: str) -> None:
    size = np.array([0.0, 5, 19, 50, 1000, 1e6])
    for epsilon in (2.5, 4, 8):
        one, other = (
            calibrate(name, unit=Establishments(alpha), epsilon=epsilon).integer_error(size, size)
            for name in ("staircase", "polynomial")
        )
        assert np.all(one < other)


def test_draws_have_the_expected_error_and_intervals_hold() -> None:
    mechanism = calibrate("staircase", unit=Establishments("0.1"), epsilon=4)
    for size in (3, 40, 700):
        truth = np.full((40_000, 1), size)
        drawn = mechanism.draw(truth, truth, SeededSource(size))
        expected = float(mechanism.integer_error(truth[:1].astype(float), truth[:1].astype(float))[0, 0])
        error = np.abs(drawn - truth)
        assert error.mean() == pytest.approx(expected, abs=5 * error.std() / 200)
        lower, upper = intervals(drawn, mechanism, level=0.95, bounded=True)
        assert ((lower <= truth) & (truth <= upper)).mean() >= 0.95


def test_a_query_takes_it_by_name_and_divides_epsilon_among_kinds() -> None:
    import discreet as dc

    schema = dc.Schema(workplace_attributes=["place"], worker_attributes={"sex": ["f", "m"]})
    rows = {"workplace": [1, 1, 2], "worker": [1, 2, 3], "place": ["P", "P", "Q"], "sex": ["f", "m", "f"]}
    jobs = dc.read_jobs(rows, workplaces={"workplace": [1, 2], "place": ["P", "Q"]}, schema=schema)
    session = dc.Session(jobs, unit=Establishments("0.1"), budget=10, seed=1)
    ready = session.count(by=["place", "sex"]).prepare(epsilon=8, mechanism="staircase", scale_share="0.1")
    assert ready.mechanism.loss.amounts["epsilon"] * 2 == 8 * (1 - ready.sizes.loss.amounts["epsilon"] / 8)
    assert session.count(by=["place"]).prepare(epsilon=4).mechanism.name == "two-sizes"
    released = session.count(by=["place"]).release(epsilon=4, mechanism="staircase")
    assert released.guarantee.proof == "docs/proofs/staircase.md"


def test_what_cannot_be_given_is_refused_with_the_inequality() -> None:
    with pytest.raises(Infeasible, check=about("epsilon")):
        calibrate("staircase", unit=Establishments("0.1"), epsilon="0.28")
    calibrate("staircase", unit=Establishments("0.1"), epsilon="0.29")
    with pytest.raises(Infeasible, check=about("epsilon")):
        calibrate("staircase", unit=Establishments("1e-7"), epsilon=1)
    with pytest.raises(PrivacyError, check=about("calibration")):
        calibrate("staircase", unit=Establishments("0.1"), epsilon=1, calibration="paper")
