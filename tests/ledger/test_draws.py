"""Twelve processes draw one release at once, each in a folder of its own, as on machines that share a ledger."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers

CROWD = 12


def told(nursery, where: str, folder: Path, *, alike: bool) -> tuple[Counter[str], list[str], list[str]]:
    """What the processes said, the lines that they left, and the files."""
    folder.mkdir()
    workers = nursery("together", where, str(folder), str(int(alike)))
    for _ in range(CROWD):
        workers.start()
    assert [workers.wait() for _ in range(CROWD)] == [0] * CROWD
    with Ledger.open(where, read_only=True) as ledger:
        assert ledger.verify()
        assert ledger.spent("jobs", Workers()) == Pure("0.2")
        lines = [entry.kind for entry in ledger.entries()]
    shown = [path for path in folder.rglob("*") if path.suffix not in (".txt", ".drawn")]
    said = Counter(path.read_text() for path in folder.glob("*.txt"))
    return said, lines, sorted(path.name for path in shown if not path.name.isdigit())


@pytest.mark.parametrize("alike", [True, False], ids=["draws that coincide", "draws that differ"])
def test_one_is_published_and_the_others_learn_nothing(where: str, tmp_path: Path, nursery, alike: bool) -> None:
    said, lines, shown = told(nursery, where, tmp_path / "out", alike=alike)
    assert said.pop("published") == 1
    [(words, times)] = said.items()
    assert times == CROWD - 1 and words.startswith("Superseded: Another process draws, or drew, release 'r'")
    assert lines == ["budget", "charge", *["draw"] * (CROWD - 1), "publish"]
    assert shown == ["r", "table.csv"]
