"""The progress bar of every command: on the standard error, and gone when the work is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.words.progress import rich_bar

if TYPE_CHECKING:
    from rich.progress import Progress


def progress_bar() -> Progress:
    """A bar for tasks that know their share."""
    return rich_bar()
