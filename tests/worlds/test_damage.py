"""Damage by chance is of many kinds, a seed repeats it, and most of it is one."""

from __future__ import annotations

import zipfile
from pathlib import Path
from random import Random

from forging import resealed, unpacked, verdict
from worlds import damage
from worlds.plan import prepared
from worlds.way import call
from worlds.world import Attribute, Release, World


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


def test_a_table_with_gaps_is_no_drawn_table(tmp_path: Path) -> None:
    """The basic form, which a rule has emptied, in the place of the research form: `verify` warned and went on."""
    world = World(
        sizes=(40, 1, 2),
        attributes=(Attribute("place", ("a", "b", "c")),),
        releases=(Release("jobs", tables=(("place",),), options=(("suppress", {"below": 20}),)),),
    )
    prepared(world, tmp_path / "w")
    assert call(tmp_path / "w", "run", "plan.toml").code == 0
    bundle = tmp_path / "w" / "out" / "bundle.zip"
    files = unpacked(bundle)
    for kind in ("csv", "parquet"):
        files[f"jobs/research.{kind}"] = files[f"jobs/basic.{kind}"]
    resealed(files)
    found = verdict(bundle, files)
    assert found["jobs: intervals"].state == "WRONG", found
