"""Limits: programmes beside closed forms, published figures and each other."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.optimal.limits import far_floor, floor, in_proportion, one_count, radial

TENTH = Fraction(1, 10)


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_one_worker_is_the_geometric_law(epsilon: float) -> None:
    """Up to ten workers only one can come: E|k| = 2 m / (1 - m^2), m = e^-epsilon, is the optimum and the floor."""
    m = math.exp(-epsilon)
    assert floor(10, TENTH, epsilon) == pytest.approx(2 * m / (1 - m**2))
    found = one_count(TENTH, epsilon, most=14, reach=round(14 / epsilon) + 4, unbiased=True)
    assert found[:10] == pytest.approx(2 * m / (1 - m**2), rel=2e-3)


def test_the_programme_has_the_figures_of_the_design() -> None:
    """MATH.md, section 6, alpha 0.1, epsilon 2: .276 at 15, .316 at 19, .706 at 25; a mean of zero costs more."""
    free = one_count(TENTH, 2.0, most=30, reach=16, unbiased=False)
    held = one_count(TENTH, 2.0, most=30, reach=16, unbiased=True)
    assert free[[14, 18, 24]] == pytest.approx([0.276, 0.316, 0.706], abs=2e-3)
    assert held[18] == pytest.approx(0.350, abs=2e-3)
    assert (free * 1.001 >= [floor(x, TENTH, 2.0) for x in range(1, 31)]).all()


def test_large_establishments_are_between_the_floor_and_the_product() -> None:
    for epsilon in (2.0, 4.0):
        limit = in_proportion(0.1, epsilon, parts=8, unbiased=True)
        ladder = calibrate("ladder", unit=Establishments("0.1"), epsilon=epsilon)
        size = np.array([10_000.0])
        assert far_floor(0.1, epsilon) < limit < ladder.integer_error(size, size)[0] / 1_000 < 1.05 * limit


def test_radial_limits_are_those_of_the_design() -> None:
    """MATH.md: .209 alpha x at (.1, 4, 2) on a grid of 1/30 and scales alpha x; ours follow alpha x / (1 + alpha)."""
    limit = radial(2, 4.0, 0.1, strong=True)
    found = calibrate("joint-rings", unit=Establishments("0.1"), epsilon=4, cells=2)
    assert limit <= found.law.mean_abs <= 1.03 * limit
    assert limit == pytest.approx(0.209, rel=0.1)
