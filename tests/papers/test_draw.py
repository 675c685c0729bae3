"""The study of one posterior draw: what it measures, on a fiftieth of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from discreet_papers.draw import EPSILONS, approximate, run


def test_the_epsilon_of_zcdp_at_delta() -> None:
    assert approximate(0.5, 1e-6) == pytest.approx(0.5 + 2 * np.sqrt(0.5 * 6 * np.log(10)))


@pytest.mark.full_size
def test_draws_and_sums_keep_more_of_the_correlation_for_a_larger_loss() -> None:
    results = run(quick=True).results
    assert 0.97 < results["paper"]["kept"] < 1
    assert results["paper"]["audited epsilon"] > 0.5
    whole = [row for row in results["curve"] if row["clip"] is None]
    assert len(whole) == len(EPSILONS)
    assert whole[0]["draw"] < whole[-1]["draw"] < 1 and whole[0]["moments"] < whole[-1]["moments"] < 1.001
    assert whole[0]["power"] < whole[2]["power"] <= whole[-1]["power"] <= 1
