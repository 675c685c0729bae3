"""Forty-eight worlds go the whole way, and everything holds in each; `make fuzz` takes thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlds.way import faults
from worlds.world import drawn

SEED = 38
MANY = 48


@pytest.mark.parametrize("number", range(MANY))
def test_everything_holds(number: int, tmp_path: Path) -> None:
    world = drawn(SEED, number)
    found = faults(world, keep=tmp_path / "kept")
    assert not found, "\n\n".join([*found, world.script])
