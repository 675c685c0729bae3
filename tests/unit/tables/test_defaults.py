"""The mechanism of a table that names none: chosen from public numbers, and the one that errs least."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.mechanisms.defaults import EVER, chosen_before, default
from discreet.words.errors import Infeasible

WEAK = {"strength": "weak"}


@pytest.mark.parametrize(
    ("unit", "epsilon", "cells", "everyone", "name"),
    [
        (Establishments("0.1"), "1", 1, True, "two-sizes"),
        (Establishments("0.1"), "30", 1, True, "two-sizes"),
        (Establishments("0.05"), "0.5", 1, True, "two-sizes"),
        (Establishments("0.05"), "0.4", 1, True, "two-sizes"),
        (Establishments("0.05"), "0.3", 1, True, "joint-rings"),
        (Establishments("0.1", **WEAK), "2", 1, True, "two-sizes"),
        (Establishments("0.1"), "1", 1, False, "joint-rings"),
        (Establishments("0.1"), "0.2", 1, True, "joint-rings"),
        (Establishments("0.1", substitution=True), "2", 1, True, "polynomial"),
        (Establishments("0.1"), "2", 8, False, "joint-rings"),
        (Establishments("0.1", substitution=True), "4", 8, False, "joint-polynomial"),
        (Establishments("0.1"), "2", 65, False, "joint-polynomial"),
        (Establishments("0.1", **WEAK), "4", 8, True, "weak-unions"),
        (Establishments("0.1", **WEAK), "4", 9, True, "weak-joint"),
        (Establishments("0.1", **WEAK), "4", 2, True, "weak-joint"),
        (Establishments("0.1", **WEAK), "0.3", 2, True, "joint-rings"),
    ],
)
def test_the_default_follows_public_numbers(
    unit: Establishments, epsilon: str, cells: int, everyone: bool, name: str
) -> None:
    assert default(unit, Fraction(epsilon), cells=cells, everyone=everyone).name == name


@pytest.mark.parametrize("epsilon", ["0.2", "0.5", "1", "2", "4", "9"])
@pytest.mark.parametrize("alpha", ["0.05", "0.1", "0.13", "0.2"])
@pytest.mark.parametrize("cells", [1, 4])
def test_no_old_default_errs_less(alpha: str, epsilon: str, cells: int) -> None:
    unit, size = Establishments(alpha), np.array([1.0, 10, 19, 50, 100, 1000])
    kind = default(unit, Fraction(epsilon), cells=cells, everyone=cells == 1)
    plain = "polynomial" if cells == 1 else "joint-polynomial"
    try:
        before = calibrate(plain, unit=unit, epsilon=epsilon, cells=cells).integer_error(size, size)
    except Infeasible:
        pytest.skip("epsilon is too small for this alpha")
    now = calibrate(kind, unit=unit, epsilon=epsilon, cells=cells).integer_error(size, size)
    assert (now[4:] <= before[4:]).all(), (kind.name, now / before)
    assert (
        kind.name not in ("ladder", "two-sizes") or (now <= 1.01 * before).all()
    )  # others may err more where one worker decides


def test_only_what_a_version_chose_by_itself_is_kept() -> None:
    assert "smooth-gamma" not in EVER and {"polynomial", "ladder", "two-sizes"} <= EVER
    assert [chosen_before(given) for given in ({"mechanism": "polynomial"}, {"mechanism": "smooth-gamma"})] == [
        "polynomial",
        None,
    ]
    assert [chosen_before(given) for given in (None, 5, {}, {"mechanism": ["polynomial"]})] == [None] * 4
