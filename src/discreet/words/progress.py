"""How long work tells how far it is: one shape for every function that takes `progress`, and the bar that shows it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress as RichBar

Progress: TypeAlias = Callable[[str, float], None]
"""Called as `progress("fitting 12 of 40", 0.3)`: what is being done, and the share of the whole that is done."""
PATIENCE = 2.0  # seconds without a bar


def silent(step: str, share: float) -> None:
    """Progress for callers that show none."""


def part(progress: Progress, start: float, end: float) -> Progress:
    """The progress of a part of the work, which takes it from one share of the whole to another."""
    if progress is silent:
        return silent
    return lambda step, share: progress(step, start + (end - start) * share)


def time_left(seconds: float) -> str:
    """A time in words, no more exact than a guess is."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1.0):.0f} s"


@contextmanager
def watched(progress: Progress, step: str) -> Iterator[Progress]:
    """The caller's progress. If there is none and errors go to a terminal, a bar that appears after two seconds."""
    if progress is not silent or not _on_terminal():
        yield progress
        return
    bar = _LateBar(step)
    try:
        yield bar
    finally:
        bar.stop()


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def progress_bar() -> RichBar:
    """A bar on the standard error for tasks that know their share; gone when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


class _LateBar:
    """Progress that is shown if the work is not done within two seconds, and if rich is installed."""

    def __init__(self, step: str) -> None:
        from threading import Lock, Timer

        self._told: tuple[str, float | None] = (step, None)
        self._bar: RichBar | None = None
        self._lock, self._done = Lock(), False
        self._timer = Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, step: str, share: float) -> None:
        self._told = step, share
        if self._bar is not None:
            self._bar.update(self._task, description=step, completed=share, total=1.0)

    def _show(self) -> None:
        try:
            bar = progress_bar()
        except ImportError:
            return
        with self._lock:
            if self._done:
                return
            step, share = self._told
            self._task = bar.add_task(step, total=None)
            bar.start()
            self._bar = bar
            if share is not None:
                self(step, share)

    def stop(self) -> None:
        """Take the bar away, or never show it."""
        self._timer.cancel()
        with self._lock:
            self._done = True
            if self._bar is not None:
                self._bar.stop()
