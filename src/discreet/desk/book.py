"""The ledger as pages read it: when it changed and not at every request. All it takes is its place and traces.

A ledger that is missing, shorter or another one than releases were paid from is trouble, and so is one that cannot be
read: what was spent is then unknown, which is never kept and never 0.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from discreet.ledger import Budget, Entry, Head, Ledger
from discreet.ledger.anchors import AnchorFile, Place, missing, note_of, refuse_elsewhere, seen
from discreet.ledger.anchors import lost as lost_ledger
from discreet.ledger.claims import in_several
from discreet.ledger.entries import GENESIS
from discreet.ledger.store import place_of
from discreet.privacy.losses import Loss
from discreet.words.errors import LedgerError

ONE_READER = threading.Lock()
"""One page at a time reads the ledger. Otherwise, while it changes, every page would read all of it at once."""


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The ledger as it was last read; with `trouble` nothing of it is known."""

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


@dataclass(frozen=True, slots=True)
class _Chain:
    """The lines of a view, looked at like those of a ledger."""

    lines: tuple[Entry, ...]

    def at(self, seq: int) -> Entry | None:
        return self.lines[seq - 1] if seq <= len(self.lines) else None

    def head(self) -> Head:
        return self.lines[-1].head if self.lines else Head(0, GENESIS)

    def entries(self, *, kind: str, dataset: str) -> list[Entry]:
        return [line for line in self.lines if line.kind == kind and line.dataset == dataset]


def book_at(where: str, traces: Sequence[Place] = (), datasets: Collection[str] | None = None) -> LedgerView:
    """The ledger now; what was seen of these `datasets`, or of all, in `traces` and by this user must be in it."""
    try:
        with ONE_READER:  # the others find what it read
            if "://" in where:
                return _read(where, traces, datasets)
            # First: lines that are written meanwhile are no loss.
            known = [
                each for each in seen((*_notes(where), *traces)) if datasets is None or each[1].dataset in datasets
            ]
            if not _is_there(where):
                refuse_elsewhere(where, (*_notes(where), *traces), datasets)
                return LedgerView()
            found = _cached(where, *stamps(Path(where)))
            if lacking := missing(_Chain(found.entries), known):
                raise lost_ledger(repr(where), lacking)
            return found
    except LedgerError as error:
        return LedgerView(trouble=str(error))


def _is_there(where: str) -> bool:
    """Whether there is a file; where that cannot be told, the ledger is not known."""
    try:
        Path(where).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        unread = f"The ledger {where!r} cannot be looked at: {error.strerror}."
        raise LedgerError(
            unread, "What was spent is not known.", "Give this user the right, or mend the disk."
        ) from None
    return True


def trouble_at(where: str, traces: Sequence[Place] = (), datasets: Collection[str] | None = None) -> str:
    """Why the ledger cannot be believed now; empty if it can. Of one on a server few lines are read."""
    if "://" not in where:
        return book_at(where, traces, datasets).trouble
    try:
        book = Ledger.found(where, places=traces, datasets=datasets)
    except LedgerError as error:
        return str(error)
    if book is not None:
        book.close()
    return ""


def anchor(where: str, traces: Sequence[Place], datasets: Collection[str]) -> None:
    """Leave anchors of a ledger from before there were any. One with trouble gets none, and pages tell of it."""
    with suppress(LedgerError):
        book = Ledger.found(where, places=traces, datasets=datasets)
        if book is not None:
            with book:
                book.leave_anchors(datasets)


@lru_cache(maxsize=8)
def _notes(where: str) -> tuple[AnchorFile, ...]:
    """This user's note, of which the next look reads what was added."""
    return note_of(place_of(where))


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
    """What raises is not kept."""
    with Ledger.open(where, read_only=True) as ledger:
        return LedgerView(tuple(ledger.budgets()), tuple(ledger.entries()), ledger.head)


def _read(where: str, traces: Sequence[Place], datasets: Collection[str] | None) -> LedgerView:
    book = Ledger.found(where, places=traces, datasets=datasets)
    if book is None:
        return LedgerView()  # an empty database, in which a run makes it
    with book:
        return LedgerView(tuple(book.budgets()), tuple(book.entries()), book.head)
