"""The ledger as pages read it: when it changed and not at every request. Its place is all that is needed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from discreet.errors import LedgerError, NoLedger
from discreet.ledger import Budget, Entry, Head, Ledger
from discreet.ledger.claims import in_several
from discreet.privacy.losses import Loss

ONE_READER = threading.Lock()
"""One page at a time reads the ledger. Otherwise, while it changes, every page would read all of it at once."""


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The ledger as it was last read."""

    budgets: tuple[Budget, ...] = ()
    entries: tuple[Entry, ...] = ()
    head: Head | None = None
    trouble: str = ""

    @property
    def in_several(self) -> str:
        """About somebody who is in several data sets; empty where one alone has releases."""
        said = in_several(self.budgets, self.entries)
        return "" if said is None else said.covered

    def budget(self, dataset: str) -> Budget | None:
        return next((budget for budget in self.budgets if budget.dataset == dataset), None)

    def total(self, dataset: str, declared: Loss) -> Loss:
        """The total that a data set may cost: as declared, or as changed later on purpose."""
        had = [entry.loss for entry in self.entries if entry.kind == "budget" and entry.dataset == dataset]
        return had[-1] if had and had[-1] is not None and declared in had else declared


def book_at(where: str) -> LedgerView:
    """The ledger now."""
    if "://" in where:
        return _read(where)
    with ONE_READER:  # the others find what it read
        return _cached(where, *stamps(Path(where)))


def stamps(ledger: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """When the files of a ledger last changed."""
    return stamp(ledger), stamp(Path(f"{ledger}-wal"))


def stamp(path: Path) -> tuple[int, int]:
    """When a file last changed, and its size; zeros where there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=8)
def _cached(where: str, _main: tuple[int, int], _wal: tuple[int, int]) -> LedgerView:
    return _read(where) if Path(where).exists() else LedgerView()


def _read(where: str) -> LedgerView:
    try:
        with Ledger.open(where, read_only=True) as ledger:
            return LedgerView(tuple(ledger.budgets()), tuple(ledger.entries()), ledger.head)
    except LedgerError as error:
        is_new = "://" in where and isinstance(error, NoLedger)  # an empty database, in which a run makes it
        return LedgerView() if is_new else LedgerView(trouble=str(error))
