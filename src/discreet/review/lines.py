"""The ledger's lines of a bundle: seals, links and sums found right, read once for all checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

from discreet.archive.findings import RefutedError
from discreet.archive.packing import LEDGER
from discreet.ledger import Budget, Entry, Head
from discreet.ledger.entries import EntryError
from discreet.ledger.periods import Policy
from discreet.words.errors import PrivacyError


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines that a bundle holds, the budgets that they leave, and the head of the ledger they are from.

    `ledger` is the hash of its first line; bundles of earlier versions do not have it.
    """

    entries: tuple[Entry, ...]
    budgets: Mapping[tuple[str, str], Budget]
    head: Head
    charges: Mapping[str, Entry]
    publications: Mapping[str, list[Entry]]
    ledger: str | None = None

    @classmethod
    def read(cls, folder: Path) -> Lines:
        """The lines, after seals, links and sums were found right."""
        book = json.loads((folder / LEDGER).read_bytes())
        entries: list[Entry] = []
        budgets: dict[tuple[str, str], Budget] = {}
        for row in book["lines"]:
            try:
                entry = Entry.from_row(row)
                before = entries[-1] if entries else None
                if before is not None and entry.seq <= before.seq:
                    raise RefutedError(f"entry {entry.seq} follows entry {before.seq}")
                if before is not None and entry.seq == before.seq + 1 and entry.previous != before.hash:
                    raise RefutedError(f"entry {entry.seq} does not continue entry {before.seq}")
                account = (entry.dataset, entry.unit)
                budgets[account] = _posted(entry, budgets.get(account))
            except EntryError as fault:
                raise RefutedError(f"entry {row.get('seq')}: {fault}") from None
            except PrivacyError:
                raise RefutedError(f"entry {row.get('seq')} overspends its budget") from None
            entries.append(entry)
        head = Head(**book["head"])
        if entries and (entries[-1].seq > head.seq or (entries[-1].seq == head.seq and entries[-1].hash != head.hash)):
            raise RefutedError("the head is before the last line, or another")
        ledger = book.get("ledger")
        if ledger is not None and any(entry.seq == 1 and entry.hash != ledger for entry in entries):
            raise RefutedError("it names a ledger with another first line")
        publications: dict[str, list[Entry]] = {}
        for entry in (entry for entry in entries if entry.kind == "publish"):
            publications.setdefault(str(entry.release), []).append(entry)
        charges = {entry.hash: entry for entry in entries if entry.kind == "charge"}
        return cls(tuple(entries), budgets, head, charges, publications, ledger)

    def __str__(self) -> str:
        sums = ", ".join(f"{budget.spent} of {budget.total} spent" for budget in self.budgets.values())
        return f"{len(self.entries)} lines as sealed; {sums}; head {self.head.hash}"

    def charge(self, about: Mapping[str, Any]) -> Entry:
        """The line that paid for the release which `about` describes."""
        found = self.charges.get(about["ledger"]["hash"])
        if found is None or found.release != about["name"] or found.dataset != about["dataset"]:
            raise RefutedError(f"no line of the ledger paid for it ({about['ledger']['hash'][:12]}...)")
        return found


def _posted(entry: Entry, budget: Budget | None) -> Budget:
    """The account after one line."""
    kind = entry.kind
    if budget is None and kind != "budget":
        raise RefutedError(f"entry {entry.seq} spends from a budget that was never opened")
    after = budget
    match kind:
        case "budget":
            if entry.loss is not None:
                policy = Policy.of(entry.payload.get("policy"))
                opened = Budget(entry.dataset, entry.unit, entry.loss, entry.loss.zero(), policy)
                after = opened if budget is None else budget.resized(entry.loss, policy)
        case "charge":
            if budget is not None and entry.loss is not None:
                after = budget.spend(entry.loss, release=str(entry.release), dates=entry.dates)
        case "draw" | "publish":
            pass
        case _:
            assert_never(kind)
    if after is None:
        raise RefutedError(f"entry {entry.seq} spends from a budget that was never opened")
    if after.spent.to_dict() != entry.spent_after.to_dict():
        raise RefutedError(f"entry {entry.seq} says {entry.spent_after} is spent, the lines add up to {after.spent}")
    return after
