"""Rank correlation against SciPy's, with ties and within strata."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.tables.ranking import RANKING_2, average_ranks, descending, levels_with, spearman, spearman_by
from discreet.words.errors import DataError
from faults_of import about

SMALL = st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 3)), min_size=2, max_size=40)


@given(SMALL)
def test_spearman_is_scipys(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs).T
    np.testing.assert_array_equal(average_ranks(a), stats.rankdata(a))
    ours = spearman(a, b)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert np.isnan(ours)
    else:
        assert ours == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


def test_strata_are_ranked_by_themselves() -> None:
    rng = np.random.default_rng(0)
    stratum = rng.integers(0, 3, 300)
    tables, reference = rng.integers(0, 50, (4, 300)), rng.random(300)
    found = spearman_by(tables, reference, stratum=stratum, strata=4)
    assert found.shape == (4, 5)
    for i, table in enumerate(tables):
        expected = [stats.spearmanr(table, reference).statistic]
        expected += [stats.spearmanr(table[stratum == s], reference[stratum == s]).statistic for s in range(3)]
        np.testing.assert_allclose(found[i, :4], expected, atol=1e-12)
    assert np.isnan(found[:, 4]).all()


def test_descending_keeps_the_order_of_ties() -> None:
    assert descending(np.array([3, 5, 3, 9])).tolist() == [3, 1, 0, 2]


def test_ranking_2_counts_women_with_a_degree() -> None:
    levels = [(sex, education) for sex in ("male", "female") for education in ("high school", "bachelor or more")]
    chosen = levels_with(RANKING_2, worker_by=["sex", "education"], levels=levels)
    assert chosen.tolist() == [False, False, False, True]
    assert (
        levels_with({"sex": "male"}, worker_by=["sex", "education"], levels=levels).tolist() == [True] * 2 + [False] * 2
    )
    with pytest.raises(DataError, check=about("wanted")):
        levels_with(RANKING_2, worker_by=["sex"], levels=[("male",), ("female",)])
