"""Every fault that odd worlds ever found stays mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlds.found import FOUND
from worlds.way import faults


@pytest.mark.parametrize("fault", FOUND)
def test_it_stays_mended(fault: str, tmp_path: Path) -> None:
    world = FOUND[fault]
    found = faults(world, keep=tmp_path / "kept")
    assert not found, "\n\n".join([*found, world.script])
