"""One thread at a time at the engine: a DuckDB connection refuses a call while it is busy with that of another thread.

All sources of a process share one connection, because only relations of one connection can be joined. So whatever
reads data takes its turn, and threads that share a source, or have one each, wait for each other. Noise is drawn and
written outside of a turn.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from discreet.words.errors import EngineError

BUSY = "ResourceInUseException"
"""DuckDB's name of the refusal, which a thread of the user's own can still cause."""


@dataclass(frozen=True)
class Turn(ContextDecorator):
    """Waits until no other thread reads: around a block or a function."""

    lock: Any = field(default_factory=RLock)

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, *ended: object) -> None:
        self.lock.release()
        if kind is not None and kind.__name__ == BUSY:
            raise EngineError(
                "A DuckDB connection was busy: another thread of this program uses it.",
                "Nothing was read, and nothing was spent for it.",
                "Wait for that thread, or give each thread a connection or a file of its own.",
                about="data",
            ) from None


in_turn = Turn()
