"""The simulated economies of the bench."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import data

from discreet.simulate import lodes, stream


def test_the_economy_grows_in_proportion_up_to_fifty_states() -> None:
    assert data.shape(10.9e6) == lodes.SHAPE
    assert [data.shape(count).states for count in (1e5, 4e7, 1.5e8, 1e9)] == [4, 15, 50, 50]
    nation = data.shape(1.5e8)
    assert nation.jobs == 150_000_000
    assert nation.jobs / nation.places == pytest.approx(lodes.SHAPE.jobs / lodes.SHAPE.places, rel=1e-3)


def test_every_state_has_a_name_of_its_own_and_its_counties_and_places_begin_with_it() -> None:
    small = replace(lodes.SHAPE, establishments=3_000, jobs=30_000, places=600, counties=120, states=50)
    kept = ((name, batch) for name, batch in lodes.batches(shape=small) if name == "workplace")
    found = stream.collect(kept)["workplace"].to_pylist()
    assert {row["state"] for row in found} == {
        *"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        *("A" + letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWX"),
    }
    assert all(row[part].rstrip("0123456789") == row["state"] for row in found for part in ("county", "place"))
