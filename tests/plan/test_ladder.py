"""The ladder and the mechanism of two sizes in a plan: priced, released, reported and reviewed like any other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str, str]]


NAMES = pytest.mark.parametrize("name", ["ladder", pytest.param("two-sizes", marks=pytest.mark.full_size)])


@NAMES
def test_a_plan_by_the_ladder(plan: Path, command: Command, name: str) -> None:
    parts = re.split(r"(?=^\[\[release|^\[output)", plan.read_text(encoding="utf-8"), flags=re.MULTILINE)
    first = parts[1].replace("epsilon = 2", f'epsilon = 1\nscale_share = "0.08"\nmechanism = "{name}"')
    plan.write_text(parts[0] + first + parts[-1], encoding="utf-8")
    code, out, err = command("check", plan)
    assert (code, f"{name} (tight)" in out) == (0, True), out + err
    code, out, err = command("run", plan)
    assert code == 0, err
    folder = plan.parent / "out"
    about = json.loads((folder / "places" / "release.json").read_text(encoding="utf-8"))
    assert about["guarantee"]["proof"] == f"docs/proofs/{name}.md" and about["guarantee"]["basis"] == "proved"
    assert {"tabled", "epsilon", "factor", "sizes"} <= set(about["parameters"]["tables"][0]["noise"])
    assert f"{name} (tight)" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.full_size
@NAMES
def test_a_reviewer_computes_the_worst_loss_of_the_ladder(plan: Path, command: Command, name: str) -> None:
    test_a_plan_by_the_ladder(plan, command, name)
    folder = plan.parent / "out"
    code, out, err = command("verify", folder / "bundle.zip")
    assert (code, f"{name}: worst loss" in out) == (0, True), out + err


def test_counts_by_kind_are_refused_before_anything_is_spent(plan: Path, command: Command) -> None:
    head, places, sexes, margins = plan.read_text(encoding="utf-8").split("[[release]]")
    sexes = sexes.replace("epsilon = 2", 'epsilon = 2\nmechanism = "ladder"')
    plan.write_text("[[release]]".join([head, places, sexes, margins]), encoding="utf-8")
    code, out, err = command("check", plan)
    assert code == 2 and "ladder" in out + err, out + err
