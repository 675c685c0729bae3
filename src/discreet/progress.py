"""How long work tells how far it is: one shape for every function that takes `progress`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float], None]
"""Called as `progress("fitting 12 of 40", 0.3)`: what is being done, and the share of the whole that is done."""


def silent(step: str, share: float) -> None:
    """Progress for callers that show none."""
