"""A part of the odd worlds of panels; `many` in `panels` runs thousands, and every fault it found is kept below."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

from discreet.changes.calendar import calendar
from discreet.changes.panel import read_panel
from worlds import small
from worlds.panels import calendars, drawn, many, read, report, script

PARTS, WORLDS = 3, 20
RATE = 0.6
"""Share of worlds at least of which there is a report: refusals alone would show little."""


@pytest.mark.parametrize("part", range(PARTS))
def test_odd_worlds_of_panels(part: int) -> None:
    found = many(10_000 + part * WORLDS, WORLDS)
    assert not found, "\n".join(map(str, found))


@pytest.mark.full_size
def test_many_odd_worlds_of_panels() -> None:
    found = many(20_000, 1_000)
    assert not found, "\n".join(map(str, found))


def test_most_worlds_are_read_and_have_a_report() -> None:
    worlds = [drawn(seed) for seed in range(60)]
    assert np.mean([not small.refused(small.answer(lambda each=each: read(each))) for each in worlds]) > RATE  # type: ignore[misc]
    assert np.mean([not small.refused(report(each)) for each in worlds[:20]]) > RATE
    assert {each.asked["kind"] for each in map(drawn, range(400))} == {*calendars(datetime.date(2000, 1, 1))}


def test_a_world_is_made_again_by_its_script() -> None:
    told: dict[str, Any] = {}
    exec(script(drawn(4)).replace("look(", "made = ("), told)
    assert repr(told["made"]) == repr(drawn(4)) != repr(drawn(5))


# What the first runs found


def panel(periods: list[Any]) -> dict[str, list[Any]]:
    rng = np.random.default_rng(1)
    return {
        "series": [name for name in "ab" for _ in periods],
        "t": periods * 2,
        "value": rng.normal(size=2 * len(periods)).tolist(),
    }


@pytest.mark.parametrize("start", [0, 2, 4])
def test_two_working_weeks_have_no_weekends_that_are_missing(start: int) -> None:
    """Red before: ten days from Monday to Friday were days of which two are missing, and gaps="zero" filled them."""
    monday = datetime.date(2024, 1, 1)
    days = [monday + datetime.timedelta(days=7 * (k // 5) + k % 5) for k in range(start, start + 10)]
    held = read_panel(panel(days), gaps="zero")
    assert [str(each) for each in held.periods] == [str(each) for each in days]
    assert held.later(1) == np.datetime64(monday + datetime.timedelta(days=7 * ((start + 10) // 5) + (start + 10) % 5))


def test_four_days_are_no_working_week() -> None:
    days = np.arange("2024-01-01", "2024-01-05", dtype="datetime64[D]")
    assert calendar(days).later(1) == np.datetime64("2024-01-05")


def test_periods_as_text_are_completed_wherever_the_longest_stretch_is() -> None:
    """A tenth of the weeks is in no row. Red before: with gaps at both ends no rule was found."""
    monday = datetime.date(2012, 1, 2)
    weeks = ["{}-W{:02d}".format(*(monday + datetime.timedelta(weeks=k)).isocalendar()[:2]) for k in range(45)]
    lacked = [week for k, week in enumerate(weeks) if k not in (1, 4, 41, 43)]
    assert read_panel(panel(lacked)).periods.tolist() == weeks
