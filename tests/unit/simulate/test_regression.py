"""The thesis's line: least squares finds it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.simulate import regression, stream
from discreet.words.errors import DataError
from faults_of import about


@pytest.mark.parametrize("variance", [1.0, 100.0])
def test_least_squares_finds_the_line(variance):
    table = stream.collect(regression.batches(seed=1, error_variance=variance))["regression"]
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    fit = stats.linregress(x, y)
    assert len(x) == 100_000
    assert abs(fit.slope - 2) < 5 * fit.stderr
    assert abs(fit.intercept - 1) < 5 * fit.intercept_stderr
    assert fit.stderr == pytest.approx(np.sqrt(variance / 100_000), rel=0.02)
    standard = (y - 1 - 2 * x) / np.sqrt(variance)
    assert stats.kstest(standard, "norm").pvalue > 1e-6
    assert stats.kstest(1.3 * standard, "norm").pvalue < 1e-6


def test_sizes_and_refusals():
    assert stream.collect(regression.batches(share=0.01))["regression"].num_rows == 1000
    assert stream.collect(regression.batches(share=4))["regression"].num_rows == 400_000
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(DataError, check=about("error_variance")):
            regression.batches(error_variance=wrong)
