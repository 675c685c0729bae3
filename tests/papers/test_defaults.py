"""The study of the defaults: what a public bound takes off, beside draws, and floors below every law."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.noise.source import SeededSource
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet_papers.defaults import bound_gain, by_two_sizes, floors


def test_a_public_bound_takes_off_what_draws_say() -> None:
    mechanism, n = calibrate("ladder", unit=Establishments("0.1"), epsilon=1), 200_000
    largest, room = np.array([3, 30, 30, 5_000]), np.array([0, 2, 25, 10**6])
    error = mechanism.integer_error(largest.astype(float), largest.astype(float))
    gain = bound_gain(mechanism.integer_probability, largest, room, error)
    for x, least, found in zip(largest[:2], room[:2], gain[:2], strict=True):
        noise = mechanism.draw(np.zeros(n, dtype=np.int64), np.full(n, x), SeededSource(int(x)))
        drawn = np.maximum(-noise - least, 0)
        assert found == pytest.approx(drawn.mean(), abs=5 * drawn.std() / n**0.5)
    assert 0 < gain[2] < 0.01 and gain[3] == 0


@pytest.mark.parametrize("epsilon", [4.0, pytest.param(1.0, marks=pytest.mark.full_size)])
def test_floors_are_below_the_product(epsilon: float) -> None:
    sizes = np.array([1, 19, 50, 999, 1_000, 20_000])
    mechanism = calibrate("ladder", unit=Establishments("0.1"), epsilon=epsilon)
    ratio = mechanism.integer_error(sizes.astype(float), sizes.astype(float)) / floors(sizes, epsilon)
    assert ((ratio > 1) & (ratio < 1.6)).all()


def test_two_sizes_take_off_where_one_establishment_dominates() -> None:
    x, second = np.array([10, 1_000, 1_000, 1_000, 64]), np.array([0, 0, 300, 1_000, 0])
    mechanism = calibrate("ladder", unit=Establishments("0.1"), epsilon=4)
    error = mechanism.integer_error(x.astype(float), np.maximum(x, mechanism.tabled).astype(float))
    found = by_two_sizes(error, x, second, 4.0, least=60) / error
    assert found[0] == 1 and 0.95 < found[1] == found[2] < 0.98
    # Two of one size have the law of a single size, on coarser cells than its own; and so has a size next to the table.
    assert 1 < found[3] < 1.03
    assert found[4] * error[4] / 64 == pytest.approx(found[3] * error[3] / 1_000)
