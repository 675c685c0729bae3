"""Sixteen processes want the same budget at the same time: exactly the budget is spent."""

from __future__ import annotations

from pathlib import Path

from discreet.ledger import Ledger
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers

PROCESSES = 16


def test_sixteen_processes_spend_exactly_the_budget(where: str, tmp_path: Path, nursery) -> None:
    workers = nursery("race", where, str(tmp_path))
    for _ in range(PROCESSES):
        workers.start()
    assert [workers.wait() for _ in range(PROCESSES)] == [0] * PROCESSES
    wins = [int(path.read_text()) for path in tmp_path.glob("*.txt")]
    with Ledger.open(where, read_only=True) as ledger:
        charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
        assert ledger.verify()
        assert ledger.spent("shared", Workers()) == Pure(1)
    assert len(wins) == PROCESSES
    assert sum(wins) == len(charges) == 100
    assert sum(entry.kind == "budget" for entry in ledger_entries(where)) == 1


def ledger_entries(where: str) -> list:
    with Ledger.open(where, read_only=True) as ledger:
        return ledger.entries()
