"""A process ends with the desk that started it, however the desk ends: a pipe that only the desk holds open.

The workers of runs do not use it: they continue by themselves.
"""

from __future__ import annotations

import os
import signal
import threading
from functools import cache


@cache
def line() -> int:
    """The end to pass on to a process, as a file descriptor; the other end closes with this process."""
    theirs, _ours = os.pipe()  # ours is never closed: the system does that
    return theirs


def hold(handle: int) -> None:
    """End this process when the process that passed the line on has ended."""

    def wait() -> None:
        os.read(handle, 1)  # nothing is ever written
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="tether", daemon=True).start()
