"""Plans of models and posterior summaries go the whole way; `make fuzz` takes one in ten worlds."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlds.planned import faults

FOUND = {147: "the owner's check of a response of 1e308 warned of an overflow"}


@pytest.mark.parametrize("seed", [*FOUND, 11, 12, 13])
def test_everything_holds_of_a_plan_of_a_model(seed: int, tmp_path: Path) -> None:
    found = faults(seed, tmp_path / "w")
    assert not found, "\n\n".join(found)
