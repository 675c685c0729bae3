"""Kills fall into every step of a run."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import accidents, kills

STEPS = ("check the plan", "read for levels", "release levels", "release slope", "write the report")


class Runs:
    """In place of processes: a run goes from step to step, and is killed where it is."""

    def __init__(self, *_: object) -> None:
        self.left = [f"{i} {step}" for i, step in enumerate(STEPS)]
        self.at: list[str] = []

    def start(self, plan: Path) -> int:
        self.left = [f"{i} {step}" for i, step in enumerate(STEPS)]
        return 0

    def until(self, step: str | None = None) -> tuple[bool, list[str]]:
        said = []
        while self.left:
            said.append(self.left.pop(0))
            if step is None or said[-1].partition(" ")[2] == step:
                return True, said
        return False, said

    def wait(self) -> tuple[int, list[str]]:
        return (-9 if self.left or self.at else 0), []


def test_an_undisturbed_run_has_every_step_with_its_seconds() -> None:
    runs: Any = Runs()
    found = kills.undisturbed(runs, Path())
    assert list(found) == [kills.START, *STEPS]
    assert min(found.values()) >= 0


def test_every_step_is_as_likely_as_any_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kills, "Runner", Runs)
    monkeypatch.setattr(kills.programme, "write", lambda *_: tmp_path)
    monkeypatch.setattr(kills.os, "pidfd_open", lambda _: kills.os.dup(0))
    monkeypatch.setattr(kills.signal, "pidfd_send_signal", lambda *_: None)
    monkeypatch.setattr(kills.time, "sleep", lambda _: None)
    for name, value in (("faults", []), ("published", {}), ("charged", 0), ("unfinished", [])):
        monkeypatch.setattr(accidents, name, lambda *_, value=value: value)
    found = kills.Killing(tmp_path, "", random.Random(1), 0.0, {})
    found.runner.at = ["somewhere"]
    for _ in range(600):
        found.kill()
    assert set(found.steps) == {kills.START, *STEPS}
    assert min(found.steps.values()) > 60
    assert not found.faults
