"""The progress bar of every command: on the standard error, and gone when the work is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


def progress_bar(*, counted: bool = False) -> Progress:
    """A bar for tasks that know their share; `counted` shows how many of how many steps are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    counts = (MofNCompleteColumn(),) if counted else ()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), *counts, TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
