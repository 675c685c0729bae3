"""Ctrl-C, a real signal to a real `discreet run`, wherever it is: 130, what was spent; the same command goes on."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from discreet.ledger import Ledger

RELEASES = ("places", "sexes", "margins")
POINTS = (
    "query:1",  # of the check of every row
    "draw:1",
    "step:write_the_report",
    *(pytest.param(point, marks=pytest.mark.walk) for point in ("query:3", "draw:3", "step:release_sexes")),
)
"""Where the signal comes."""


def lines(folder: Path, kind: str) -> Counter[str]:
    if not (folder / "ledger.db").exists():
        return Counter()
    with Ledger.open(folder / "ledger.db", read_only=True) as book:
        return Counter(str(entry.release) for entry in book.entries() if entry.kind == kind)


@pytest.mark.parametrize("point", POINTS)
def test_an_interrupted_run_says_what_was_spent_and_goes_on(point: str, tmp_path: Path, toys, runner) -> None:
    plan = toys(tmp_path)
    worker = runner.start_command(plan, point)
    came, said = runner.until("")  # a line of one word
    while not (came and said[-1] == "here"):
        assert came, said
        came, said = runner.until("")
    os.kill(worker, signal.SIGINT)
    code, said = runner.wait()
    words = "\n".join(said)
    assert code == 130, words
    assert "SELECT" not in words
    assert "Traceback" not in words
    charged, before = lines(tmp_path, "charge"), lines(tmp_path, "publish")
    assert bool(charged) == (not point.startswith("query"))
    stated = [str(number) for number in (3, len(before), len(charged) - len(before))]
    found = [word for word in words.replace(".", " ").split() if word.isdigit()]
    assert found == (stated if charged else []), words
    runner.start_command(plan)
    code, said = runner.wait()
    assert code == 0, said
    assert lines(tmp_path, "charge") == lines(tmp_path, "publish") == Counter(RELEASES)
