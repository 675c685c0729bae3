"""Damage by chance is of many kinds, a seed repeats it, and most of it is one."""

from __future__ import annotations

import zipfile
from pathlib import Path
from random import Random

from worlds import damage
from worlds.plan import prepared
from worlds.world import World


def test_damage_is_of_many_kinds_and_a_seed_repeats_it(tmp_path: Path) -> None:
    prepared(World(), tmp_path / "w")
    text = (tmp_path / "w" / "plan.toml").read_text(encoding="utf-8")

    def plans(seed: int) -> list[bytes]:
        chance = Random(seed)
        return [damage.damaged_text(text, chance) for _ in range(200)]

    assert plans(1) == plans(1) != plans(2)
    assert len(set(plans(1))) > 150
    path, whole = tmp_path / "bundle.zip", []
    for seed in range(60):
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("a.json", '{"epsilon": "1/3", "rows": [1, 2]}')
            packed.writestr("b/table.csv", "place,count\n1,2\n")
        whole.append(damage.damaged_bundle(path, Random(seed)))
    assert 0 < sum(whole) < 20
