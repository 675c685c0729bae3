"""The tool that damages plans, tables and bundles: it finds what it looks for, and some cases of it end well."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest

from fuzz import run as fuzz


def test_every_broken_promise_is_a_fault() -> None:
    def of(command: str, code: int, said: str = "", *, spent: bool = False, whole: bool = True) -> list[str]:
        return list(fuzz.faults(command, fuzz.Ended(code, said, spent), whole=whole))

    assert of("check", 0) == of("run", 2) == of("verify", 1, whole=False) == []
    assert of("check", 3, "Traceback (most recent call last)") == ["ended with 3", "a traceback"]
    assert of("check", -11) == ["ended with -11"]
    assert of("run", 2, spent=True) == ["refused, and spent"]
    assert of("run", 0, spent=True) == []
    assert of("check", 0, spent=True) == ["checked, and spent"]
    assert of("verify", 0, whole=False) == ["another content is verified"]
    assert of("run", 1, f"worker {fuzz.MARK}7") == ["a confidential value is told"]


def test_damage_is_of_many_kinds_and_a_seed_repeats_it(tmp_path: Path) -> None:
    def plans(seed: int) -> list[bytes]:
        chance = random.Random(seed)
        return [fuzz.damaged_text(fuzz.PLAN, chance) for _ in range(200)]

    assert plans(1) == plans(1) != plans(2)
    assert len(set(plans(1))) > 150
    path, whole = tmp_path / "bundle.zip", []
    for seed in range(60):
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("a.json", '{"epsilon": "1/3", "rows": [1, 2]}')
            packed.writestr("b/table.csv", "place,count\n1,2\n")
        whole.append(fuzz.damaged_bundle(path, random.Random(seed)))
    assert 0 < sum(whole) < 20


@pytest.mark.full_size
def test_some_cases_end_as_commands_promise(tmp_path: Path) -> None:
    assert fuzz.main(["--minutes", "3", "--out", str(tmp_path / "kept")]) == 0
