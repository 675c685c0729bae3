"""PMF beside least squares on real counts: how much better it is depends on the window and on the city."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet_papers import cities
from discreet_papers.crime_trials import advantage, trials

DATA = Path(__file__).parents[3] / "shared" / "data" / "crime"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the crime counts are not beside the repository")


@pytest.mark.full_size
def test_the_advantage_is_a_range_with_both_signs():
    places = {"Pittsburgh, violence": cities.read(DATA), **cities.further(DATA)}
    assert {name: panel.y.shape for name, panel in places.items()} == {
        "Pittsburgh, violence": (126, 140),
        "Pittsburgh, burglary": (144, 36),
        "Chicago, battery": (144, 165),
    }
    tried = [row for city, panel in places.items() for row in trials(city, panel)[2].run()]  # the study's own constants
    over = {(row["city"], row["window"]): row["PMF over OLS"] for row in tried}
    assert over["Pittsburgh, violence", "early"] < -0.2 < 0.3 < over["Pittsburgh, violence", "late"]
    assert all(over[city, "late"] < 0 for city in cities.FURTHER)
    first = advantage(tried)[0]
    assert first["least"] < 0 < first["most"] and (first["ahead"], first["of"]) == (1, 2)
