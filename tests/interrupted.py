"""Runs of plans that end in the middle."""

from __future__ import annotations

from typing import Any

from discreet.plan import run as run_module


def failing_after(number: int) -> Any:
    """In place of `_publish`: publishes so many releases, and then the process is interrupted."""
    publish, done = run_module._publish, []

    def instead(*given: Any, **named: Any) -> Any:
        if len(done) == number:
            raise KeyboardInterrupt
        done.append(publish(*given, **named))
        return done[-1]

    return instead
