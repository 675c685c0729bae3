from __future__ import annotations

import numpy as np
import pytest

from discreet.changes.combine import Rule, at_least
from discreet.words.errors import DataError
from faults_of import about


@pytest.mark.parametrize(("needed", "count"), [("any", 1), (1, 1), (2, 2), ("all", 3)])
def test_a_rule_fires_when_enough_methods_do(needed, count):
    scores = np.random.default_rng(0).normal(size=(3, 60))
    combined = at_least(scores, needed)
    for threshold in np.linspace(-2, 2, 15):
        np.testing.assert_array_equal(combined >= threshold, (scores >= threshold).sum(axis=0) >= count)


def test_two_of_three_is_the_median():
    scores = np.random.default_rng(0).normal(size=(3, 60))
    named = dict(zip("abc", scores, strict=True))
    np.testing.assert_array_equal(Rule("abc", 2).score(named), np.median(scores, axis=0))


@pytest.mark.parametrize("needed", [0, 4, "some"])
def test_impossible_counts_are_refused(needed):
    with pytest.raises(DataError, check=about("combinations")):
        at_least(np.zeros((3, 2)), needed)


def test_unknown_methods_are_refused():
    with pytest.raises(DataError, check=about("combinations")):
        Rule("az").score({"a": np.zeros(3)})
