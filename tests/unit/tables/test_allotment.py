"""Units of epsilon: beside every other allotment."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from discreet.tables.budget.allotment import handed_out, hull_gains, polished


def falling(rng: np.random.Generator, n: int) -> np.ndarray:
    """Errors by units, which fall, and not always by less."""
    return np.cumsum(rng.exponential(size=n) ** 3)[::-1]


@pytest.mark.parametrize("seed", range(6))
def test_units_one_by_one_are_the_best_of_all_allotments_where_errors_are_convex(seed: int) -> None:
    rng, total = np.random.default_rng(seed), 9
    least = rng.integers(1, 3, 3).tolist()
    errors = [np.cumsum(np.sort(rng.exponential(size=total + 1 - low)))[::-1] for low in least]
    gains = [hull_gains(error) for error in errors]
    for error, gain in zip(errors, gains, strict=True):
        assert gain == pytest.approx(-np.diff(error))  # it is its own hull

    def value(units: tuple[float, ...]) -> float:
        return float(sum(error[int(u) - low] for error, u, low in zip(errors, units, least, strict=True)))

    found = handed_out(gains, least, total)
    ways = [units for units in product(*(range(low, total + 1) for low in least)) if sum(units) == total]
    assert sum(found) == total and all(u >= low for u, low in zip(found, least, strict=True))
    assert value(tuple(found)) == pytest.approx(min(map(value, ways)))


@pytest.mark.parametrize("seed", range(6))
def test_a_hull_is_the_highest_convex_line_below_the_errors(seed: int) -> None:
    totals = falling(np.random.default_rng(seed), 12)
    gains = hull_gains(totals)
    line = totals[0] - np.concatenate([[0.0], np.cumsum(gains)])
    assert np.all(np.diff(gains) <= 1e-12) and np.all(line <= totals + 1e-12)
    places = np.arange(12)
    chords = np.array(
        [
            min(
                totals[a] + (totals[b] - totals[a]) * (i - a) / (b - a) if a < b else totals[i]
                for a in places[: i + 1]
                for b in places[i:]
            )
            for i in places
        ]
    )
    assert line == pytest.approx(chords)


@pytest.mark.parametrize("seed", range(4))
def test_moved_units_are_as_good_as_any_where_errors_depend_on_several_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    own, both = rng.uniform(1, 9, 3), rng.uniform(0, 4)
    least = [1, 1, 2]

    def value(units: list[float]) -> float:
        return float((own / np.array(units)).sum() + both / (units[0] + units[2]))

    found = polished([20.0, 5.0, 5.0], least, value)
    ways = [[a, b, 30 - a - b] for a in range(1, 28) for b in range(1, 29 - a)]
    assert sum(found) == 30 and all(u >= low for u, low in zip(found, least, strict=True))
    assert value(found) == pytest.approx(min(map(value, ways)), rel=1e-3)


def test_nothing_is_left_to_hand_out() -> None:
    assert handed_out([np.empty(0), np.empty(0)], [3, 2], 5) == [3.0, 2.0]
    assert polished([3.0, 2.0], [3, 2], sum) == [3.0, 2.0]
