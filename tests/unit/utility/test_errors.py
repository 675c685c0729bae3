"""Ratios, strata and shares by hand."""

from __future__ import annotations

import numpy as np

from discreet.utility.errors import l1_ratio, largest_share, within_points
from discreet.utility.strata import NAMES, stratum_of, sums


def test_strata_are_those_of_the_paper() -> None:
    population = np.array([5, 99, 100, 9_999, 10_000, 99_999, 100_000, 4_000_000])
    assert [NAMES[s] for s in stratum_of(population)] == [name for name in NAMES for _ in range(2)]
    assert sums(np.arange(8.0), stratum=stratum_of(population)).tolist() == [28, 1, 5, 9, 13]


def test_ratios_are_of_sums_not_means_of_ratios() -> None:
    error, reference = np.array([[1.0, 3.0], [10.0, 10.0], [0.0, 5.0]]), np.array([[1.0, 1.0], [4.0, 4.0], [0.0, 0.0]])
    ratio = l1_ratio(error, reference, stratum=np.array([0, 1, 3]))
    assert ratio[:3].tolist() == [2.9, 2.0, 2.5]
    assert np.isnan(ratio[3:]).all()  # an empty stratum, and one without an error to divide by
    assert l1_ratio(error[:, 0], reference[:, 0], stratum=np.array([0, 1, 1]))[:3].tolist() == [2.2, 1.0, 2.5]


def test_ten_points_are_of_the_count() -> None:
    true = np.array([100, 100, 100, 10, 0])
    reference = np.array([5.0, 5.0, 5.0, 0.5, 0.0])
    error = np.array([14.9, 15.1, 0.0, 1.4, 9.0])
    assert within_points(error, reference, true=true) == 0.75  # the empty cell has no relative error
    assert within_points(error, reference, true=true, points=0.2) == 1.0


def test_largest_share_leaves_out_empty_cells() -> None:
    assert largest_share(true=np.array([10, 0, 4]), largest=np.array([4, 0, 4])).tolist() == [0.4, 1.0]
