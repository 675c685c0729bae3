"""A release compared with the agency's own table of the same cells: who publishes what, how far apart, in which order.

Only published numbers enter, those of the release and those of a public file, so the results reveal nothing that was
not public. If the agency suppresses a cell, nobody outside knows its number, and none is guessed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discreet.arrays import Mask, Vector
from discreet.tables.ranking import spearman

EDGES = (0, 1, 10, 100, 1_000, 10_000, 100_000, np.inf)
NAMES = ("0", "1 to 9", "10 to 99", "100 to 999", "1,000 to 9,999", "10,000 to 99,999", "100,000 and more")


@dataclass(frozen=True, slots=True)
class Apart:
    """Cells of one class of the agency's numbers that both publish.

    Attributes
    ----------
    theirs, difference : the agency's mean number, and the mean absolute difference of both.
    inside, bounded : how often the agency's number lies in our interval, of how many that have two ends.
    """

    name: str
    cells: int
    theirs: float
    difference: float
    inside: int
    bounded: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """A published number beside the agency's.

    Attributes
    ----------
    cells : cells of the release.
    published, suppressed, absent : how many of these the agency publishes, suppresses, does not list.
    elsewhere : cells that only the agency lists.
    filled, usable : the sum of our numbers where the agency suppresses, and how many of these are not mostly noise.
    ours, theirs : sums over the cells that both publish.
    rank : Spearman's correlation of both over these cells; None where there is nothing to rank.
    """

    cells: int
    published: int
    suppressed: int
    absent: int
    elsewhere: int
    filled: int
    usable: int
    ours: int
    theirs: float
    rank: float | None
    whole: Apart
    by_size: tuple[Apart, ...]


def agreement(
    ours: Vector, lower: Vector, upper: Vector, *, noisy: Mask, theirs: Vector, listed: Mask, elsewhere: int
) -> Agreement:
    """Compare numbers cell by cell.

    Parameters
    ----------
    ours, lower, upper : the release's numbers and the ends of their intervals; NaN where there is none.
    noisy : which of them are mostly noise.
    theirs : the agency's numbers of the same cells; NaN where there is none.
    listed : which cells the agency lists; those without a number are suppressed.
    elsewhere : how many cells only the agency lists.
    """
    both, gone = listed & np.isfinite(theirs), listed & ~np.isfinite(theirs)
    ends = np.isfinite(lower) & np.isfinite(upper)
    inside = ends & (lower <= theirs) & (theirs <= upper)

    def apart(name: str, chosen: Mask) -> Apart:
        off = np.abs(ours[chosen] - theirs[chosen])
        return Apart(
            name=name,
            cells=int(chosen.sum()),
            theirs=float(theirs[chosen].mean()) if chosen.any() else 0.0,
            difference=float(off.mean()) if chosen.any() else 0.0,
            inside=int(inside[chosen].sum()),
            bounded=int(ends[chosen].sum()),
        )

    size = np.where(both, np.abs(theirs), np.nan)
    classes = [
        apart(name, chosen)
        for name, (low, high) in zip(NAMES, pairwise(EDGES), strict=True)
        for chosen in [(size >= low) & (size < high)]
        if chosen.any()
    ]
    rank = spearman(ours[both], theirs[both]) if both.any() else float("nan")
    return Agreement(
        cells=len(ours),
        published=int(both.sum()),
        suppressed=int(gone.sum()),
        absent=int((~listed).sum()),
        elsewhere=elsewhere,
        filled=int(ours[gone].sum()),
        usable=int((gone & ~noisy).sum()),
        ours=int(ours[both].sum()),
        theirs=float(theirs[both].sum()),
        rank=rank if np.isfinite(rank) else None,
        whole=apart("all", both),
        by_size=tuple(classes),
    )
