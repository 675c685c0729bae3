"""Typical beliefs about an establishment's size, against simulated attackers."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.noise.source import SeededSource
from discreet.privacy.belief import permitted
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.likelihood import _outputs, typical

UNIT = Establishments("0.1")


@pytest.mark.parametrize("name", ["polynomial", "ladder", "log-laplace", "smooth-gamma", "joint-rings"])
def test_a_belief_is_calibrated(name: str) -> None:
    """Of sizes drawn from the prior and published, the mean belief in the truth is as simulated by rejection.

    Draw a size, publish it; among those that published about the same output the sizes follow the posterior.
    """
    mechanism = calibrate(name, unit=UNIT, epsilon=2)
    belief = permitted(UNIT, 2.0, 100)
    found = typical(mechanism, 1, belief, hides_all=True)
    assert found is not None and found.sum() == pytest.approx(1)
    rng = np.random.default_rng(3)
    sizes = rng.integers(belief.sizes[0], belief.sizes[-1] + 1, size=400_000)
    seen = mechanism.draw(sizes, sizes, SeededSource(8))
    outputs = _outputs(mechanism, 1, 100, True).ravel()
    near = []
    for output in outputs:
        same = np.abs(seen - output) <= 1
        if same.any():
            near.append(np.mean(np.abs(sizes[same] - 100) <= 10))
    assert belief.near(found, 0.1) == pytest.approx(np.mean(near), abs=0.03)


@pytest.mark.parametrize("name", ["polynomial", "log-laplace", "joint-polynomial", "edge-laplace"])
def test_kinds_divide_into_whole_workers(name: str) -> None:
    """100 workers of 8 kinds are four times 13 and four times 12: with little noise nobody takes them for 96 or 104."""
    little = Establishments("0.02")
    mechanism = calibrate(name, unit=little, epsilon=8, cells=8 if name.startswith("joint") else 1)
    belief = permitted(little, 8.0, 100)
    found = typical(mechanism, 8, belief, hides_all=False)
    assert found is not None
    assert belief.sizes[found.argmax()] == 100 and found.max() > 0.7


def test_more_epsilon_tells_more_and_never_more_than_is_permitted() -> None:
    told = []
    for epsilon in (0.5, 2, 8):
        belief = permitted(UNIT, epsilon, 1_000)
        mechanism = calibrate("joint-polynomial", unit=UNIT, epsilon=epsilon, cells=2)
        found = typical(mechanism, 2, belief, hides_all=True)
        assert found is not None
        told.append(belief.near(found, 0.1))
        assert told[-1] < belief.near(belief.permitted, 0.1)
    assert told == sorted(told)


def test_what_is_left_out_is_not_seen() -> None:
    mechanism = calibrate("node-truncation", unit=Establishments(1), epsilon=1, theta=50)
    belief = permitted(UNIT, 1.0, 100)
    found = typical(mechanism, 1, belief, hides_all=False)
    assert found is not None
    large = belief.sizes > 50
    ratio = found[large] / belief.prior[large]
    assert np.ptp(ratio) < 1e-9


def test_a_norm_of_kinds_has_no_simple_form() -> None:
    mechanism = calibrate("weak-joint", unit=Establishments("0.1", "weak"), epsilon=4, cells=2)
    assert typical(mechanism, 2, permitted(UNIT, 4.0, 100), hides_all=False) is None
