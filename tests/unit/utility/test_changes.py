"""Changes between two releases: by hand, and against random choice."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.utility.changes import change, found_changes, largest_changes
from discreet.words.errors import DataError
from faults_of import about

BEFORE, AFTER = np.array([100, 10, 0, 50, 0]), np.array([90, 30, 4, 50, 0])


def test_change_is_absolute_or_symmetric() -> None:
    assert change(BEFORE, AFTER).tolist() == [-10, 20, 4, 0, 0]
    rates = change(BEFORE, AFTER, relative=True)
    np.testing.assert_allclose(rates, [-10 / 95, 1.0, 2.0, 0.0, 0.0])
    assert largest_changes(change(BEFORE, AFTER), most=3).tolist() == [1, 0, 2]
    assert largest_changes(rates, most=2).tolist() == [2, 1]


def test_what_is_found() -> None:
    true, published = change(BEFORE, AFTER), np.array([-11.0, 1.0, 9.0, 2.0, 0.5])
    found = found_changes(published, true, most=2)
    assert (found.found, found.share, found.by_chance) == (1, 0.5, 0.8)
    perfect = found_changes(true * 2, true, most=3)
    assert (perfect.found, perfect.correlation) == (3, pytest.approx(1))


def test_chance_is_what_a_random_choice_finds() -> None:
    rng = np.random.default_rng(4)
    true = rng.standard_normal(500)
    each = [found_changes(rng.standard_normal(500), true, most=50) for _ in range(400)]
    assert np.mean([f.found for f in each]) == pytest.approx(each[0].by_chance, abs=0.5)  # standard error 0.1
    assert abs(np.mean([f.correlation for f in each])) < 0.02


def test_releases_must_match() -> None:
    with pytest.raises(DataError, check=about("after")):
        change(BEFORE, AFTER[:4])
    with pytest.raises(DataError, check=about("most")):
        found_changes(BEFORE.astype(float), AFTER.astype(float), most=6)
