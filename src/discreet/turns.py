"""One thread at a time at the engine: a DuckDB connection refuses a call while it is busy with that of another thread.

All sources of a process share one connection, because only relations of one connection can be joined. So whatever
reads data takes its turn, and threads that share a source, or have one each, wait for each other. Noise is drawn and
written outside of a turn.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.errors import EngineError

_TURN = threading.RLock()
BUSY = "ResourceInUseException"
"""DuckDB's name of the refusal, which a thread of the user's own can still cause."""


@contextmanager
def in_turn() -> Iterator[None]:
    """Wait until no other thread reads; also a decorator."""
    with _TURN:
        yield


def busy(step: str) -> EngineError:
    """The error for a connection that another thread uses without a turn."""
    return EngineError(
        f"Step {step!r} found its DuckDB connection busy: another thread of this program uses it.",
        "Nothing was read, and nothing was spent for it.",
        "Wait for that thread, or give each thread a connection or a file of its own.",
        about="data",
    )
