"""One process at a time, by a lock of the kernel on a file or folder that is there anyway.

Nothing is written, so no file remains, and a killed process releases the lock. The lock is a courtesy between processes
of one machine; where there is none (some network folders, Windows) and between machines the ledger decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.words.errors import LedgerError

try:
    import fcntl
except ImportError:  # not POSIX
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone(place: Path, *, waiting: Callable[[], object] = lambda: None) -> Iterator[bool]:
    """Wait until no other block of this `place` runs; False where that cannot be known.

    `waiting` is called once if there is something to wait for. The same thread must not ask twice: it would wait for
    itself.
    """
    try:
        handle = os.open(place, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        yield _locked(handle, waiting)
    finally:
        os.close(handle)


def _locked(handle: int, waiting: Callable[[], object]) -> bool:
    if fcntl is None:
        return False
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:
        return False
    return True


def copied_memory() -> LedgerError:
    """The error for a ledger in memory in a copy of its process: no lock keeps the two from spending one budget."""
    return LedgerError(
        "The ledger in memory is that of another process, of which this one is a copy.",
        "Each would spend its budget, and nothing was spent here.",
        "Release in that process, or keep the ledger in a file.",
    )
