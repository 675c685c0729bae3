"""What the owner of the data is told: a note in words with the rows that it is about, and columns without numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Mask, Vector

MOST = 0.5  # share of rows without a number from which a release is not about a column

MIDDLE = "the middle of the bounds. Binomial models read true and false too"
NOTHING = "nothing, with their responses"
"""What a row counts as whose response, or whose protected column, is no number."""


@dataclass(frozen=True, slots=True)
class OwnersNote:
    """What the owner should know.

    Attributes
    ----------
    words : without a number of rows, as people may read it who answer for the data and do not own them.
    rows : the rows it is about, from 1 on; empty where it is about all of them.
    of : how many rows there are.
    fault : a release would not be about these data: most rows would count as nothing.
    """

    words: str
    rows: tuple[int, ...] = ()
    of: int = 0
    fault: bool = False

    @classmethod
    def of_rows(cls, words: str, at: Mask) -> OwnersNote:
        """A note on the rows that are marked."""
        return cls(words, tuple((np.flatnonzero(at) + 1).tolist()), len(at))

    def __str__(self) -> str:
        return f"{self.words} ({len(self.rows):,} of {self.of:,} rows)" if self.rows else self.words


def without_numbers(name: str, values: Vector | None, then: str) -> Iterator[OwnersNote]:
    """Rows of a protected column that hold no finite number; in most of them it is a fault."""
    odd = None if values is None else ~np.isfinite(values)
    if odd is None or odd.mean() > MOST:
        words = (
            f"Column {name!r} holds no numbers in most rows: they would count as {then}. Write numbers with a decimal "
            "point, as 45.5, and nothing else in a field."
        )
        yield replace(OwnersNote(words) if odd is None else OwnersNote.of_rows(words, odd), fault=True)
    elif odd.any():
        yield OwnersNote.of_rows(
            f"Some values of {name!r} are missing or no finite numbers: they count as {then}.", odd
        )
