from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from discreet.models.bayes.blmm.conditional import PosteriorModel
from discreet.models.bayes.blmm.exact import Posterior
from discreet.models.bayes.blmm.prior import Prior
from discreet.models.linear.moments import Moments


class Data(NamedTuple):
    group: np.ndarray
    x: np.ndarray
    y: np.ndarray
    moments: Moments
    posterior: Posterior


@pytest.fixture(scope="session")
def data() -> Data:
    """60 rows in 8 uneven groups, one of a single row, heavy tails."""
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(8), [1, 2, 3, 6, 8, 10, 14, 16])
    x = np.column_stack([np.ones(60), rng.normal(size=60)])
    y = x @ [0.5, -0.3] + 0.4 * rng.normal(size=8)[group] + 0.4 * rng.standard_t(3, size=60)
    zero = Moments(np.zeros(8), np.zeros((8, 2)), np.zeros(8), np.zeros((2, 2)), np.zeros(2), 0.0)
    moments = zero.add(group=group, x=x, y=y)
    return Data(group, x, y, moments, Posterior.of(PosteriorModel.of(moments, Prior()), tolerance=1e-6))
