"""Factors and draws that would not fit into the free memory: refused before they are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.models.formula.memory import lacking
from discreet.words.errors import FitError

if TYPE_CHECKING:
    from discreet.models.linear.sparse import Gram


def refuse_memory(gram: Gram, *, beside: int = 0) -> None:
    """Refuse a factor, and as many cores `beside` it, that would not fit into the free memory, before it is tried."""
    needed = gram.elimination.bytes + 8.0 * beside * gram.elimination.core**2
    if (free := lacking(needed)) is not None:
        raise FitError(
            f"The {gram.effects:,} random effects leave a dense core of {gram.elimination.core:,}, which needs about "
            f"{needed / 2**30:.1f} GiB of memory.",
            f"{free / 2**30:.1f} GiB are free.",
            "Leave a random term out, group rows more coarsely, or use a machine with more memory.",
            about="formula",
        )


def refuse_responses(rows: int, count: int) -> None:
    """Refuse simulated responses that would not fit into the free memory, before the first of them."""
    needed = 2.0 * 8.0 * rows * count  # the draws, and the matrix of them
    if (free := lacking(needed)) is not None:
        raise FitError(
            f"{count:,} responses of {rows:,} rows need about {needed / 2**30:.1f} GiB of memory.",
            f"{free / 2**30:.1f} GiB are free.",
            f"Ask for count={max(int(free / 2 / (16.0 * rows)), 1)} or fewer at a time, each time with another seed.",
            about="count",
        )


def refuse_draws(effects: int, draws: int, chains: int) -> None:
    """Refuse draws of effects that would not fit into the free memory, before the first of them."""
    needed = 8.0 * effects * draws * chains
    if (free := lacking(needed)) is not None:
        most = int(free / 2 / (8.0 * effects * chains))
        raise FitError(
            f"{chains} chains of {draws:,} draws of {effects:,} effects need about {needed / 2**30:.1f} GiB of memory.",
            f"{free / 2**30:.1f} GiB are free.",
            f"Ask for draws={most} or fewer." if most >= 4 else "Leave a random term out, or group rows more coarsely.",
            about="draws",
        )
