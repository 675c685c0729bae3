from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

from discreet.changes.kendall import kendall
from discreet.words.errors import DataError
from faults_of import about


def test_tau_is_scipys_with_ties():
    rng = np.random.default_rng(3)
    for _ in range(20):
        x, y = rng.integers(0, 8, (2, 25))
        assert kendall(x, y).tau == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)


def test_level_of_the_test():
    rng = np.random.default_rng(4)
    p = np.array([kendall(*rng.normal(size=(2, 20))).p for _ in range(1000)])
    assert 0.02 < (p < 0.05).mean() < 0.08  # the correction makes it a little conservative


def test_refusals():
    with pytest.raises(DataError, check=about("x")):
        kendall([1, 2], [1, 2])
    with pytest.raises(DataError, check=about("x")):
        kendall([1, 1, 1], [1, 2, 3])
