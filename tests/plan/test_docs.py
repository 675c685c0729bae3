"""The how-to says what is true: its plans have the right shape and its messages are real. tests/docs runs the rest."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from discreet.plan.shape import Plan

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "plans.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)


def test_the_whole_plan_is_one() -> None:
    plan = Plan.model_validate(tomllib.loads(BLOCKS[0]))
    assert plan.release[0].name == "places"


@pytest.mark.parametrize("part", [block for block in BLOCKS[1:] if "[source." not in block])
def test_parts_fit_into_a_plan(part: str) -> None:
    whole = tomllib.loads(BLOCKS[0])
    Plan.model_validate(whole | tomllib.loads(part))


def test_the_faults_shown_are_real(plan: Path, command) -> None:
    text = plan.read_text().replace("alpha = 0.1", "alpha = 'a tenth'")
    plan.write_text(text)
    shown = re.search(r"```text\n(.*?)```", TEXT, re.DOTALL)
    assert shown is not None
    lines = shown[1].splitlines()
    assert lines[1] in command("check", plan)[2]
    plan.write_text(text.replace("'a tenth'", "0.1").replace('by = ["place", "sector"]', 'by = ["place", "sektor"]'))
    assert lines[2] in command("check", plan)[2]
