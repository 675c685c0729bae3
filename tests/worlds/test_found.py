"""Every fault that odd worlds ever found stays mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlds.found import FOUND
from worlds.frames import STRANGE
from worlds.plan import prepared
from worlds.session import REFUSED, given
from worlds.way import Walk, faults
from worlds.world import World


@pytest.mark.parametrize("fault", FOUND)
def test_it_stays_mended(fault: str, tmp_path: Path) -> None:
    world = FOUND[fault]
    found = faults(world, keep=tmp_path / "kept")
    assert not found, "\n\n".join([*found, world.script])


@pytest.mark.parametrize("kind", [kind for kind in STRANGE if "periods" not in kind])
@pytest.mark.parametrize("column", ["place", "workplace", "worker"])
def test_keys_and_codes_of_strange_types_are_refused(kind: str, column: str, tmp_path: Path) -> None:
    """Quarters of pandas were published as 216, 217, 218; large whole numbers and half floats ended in a traceback."""
    walk = Walk(World(), tmp_path / "w", prepared(World(), tmp_path / "w"))
    assert given(walk, kind, lambda table: STRANGE[kind](table, column)).startswith(REFUSED)
