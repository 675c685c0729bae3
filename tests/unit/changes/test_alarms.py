"""Lists by value and at another prevalence: what is said of past lists is said of lists like the one that is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.changes.alarms import Alarms, ListLength, alarms

CASES, PERIODS = 100, 20


def past_and_coming() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    score = rng.normal(size=CASES * PERIODS)
    positive = rng.random(len(score)) < 0.1 / (1 + np.exp(-1.5 * score))
    return {
        "past": score[None],
        "positive": positive,
        "period": np.repeat(np.arange(PERIODS), CASES),
        "coming": rng.normal(size=(1, CASES)),
    }


def judged(line: ListLength, **options: Any) -> Alarms:
    return alarms(**past_and_coming(), line=line, **options)


def test_past_lists_are_by_value_where_the_list_is() -> None:
    """A value without bound beside the others decides alone: the list holds those cases, and so do past lists."""
    dear = np.arange(CASES) % 10 == 0
    weight = np.where(dear, 1e6, 1.0)
    found = judged(ListLength(capacity=10), weight=(np.tile(weight, PERIODS), weight))
    assert dear[found.order[: found.size]].all()
    assert all(dear[each.flagged % CASES].all() for each in found.lists)
    by_score = judged(ListLength(capacity=10))
    assert sum(each.right for each in found.lists) < sum(each.right for each in by_score.lists)
    assert found.lift < by_score.lift


def test_with_costs_the_threshold_decides_who_and_value_in_which_order() -> None:
    value = np.random.default_rng(4).lognormal(0, 2, CASES)
    found = judged(ListLength(cost_ratio=10.0), weight=(np.tile(value, PERIODS), value))
    score = past_and_coming()["coming"][0]
    flagged = found.order[: found.size]
    assert 5 < found.size < CASES
    assert set(flagged) == set(np.flatnonzero(score >= found.point.threshold))
    worth = (found.chance * value)[flagged]
    assert (np.diff(worth) <= 0).all()


@pytest.mark.parametrize("prevalence", [0.005, 0.3])
def test_another_prevalence_moves_chances_and_limits_and_not_the_past(prevalence: float) -> None:
    asked, plain = (judged(ListLength(capacity=10), prevalence=share) for share in (prevalence, None))
    assert asked.lift == plain.lift
    assert [each.expected for each in asked.lists] == [each.expected for each in plain.lists]
    odds = [limit / (1 - limit) for limit in (asked.high, plain.high)]
    mean = past_and_coming()["positive"].mean()
    free = (asked.high > asked.chance) & (plain.high > plain.chance)
    assert free.sum() > 50
    np.testing.assert_allclose((odds[0] / odds[1])[free], prevalence / (1 - prevalence) * (1 - mean) / mean)
    assert asked.right.low <= asked.right.expected <= asked.right.high < 10
