"""Which places changed most between two releases, and does a private pair of releases still say so?

Not in Haney et al. (2017), who publish one cross-section. Both releases have the same cells in the same order; noise
is drawn anew for each, so a change has the noise of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Integers, Vector
from discreet.tables.ranking import descending, spearman
from discreet.words.errors import DataError


@dataclass(frozen=True, slots=True)
class ChangesFound:
    """How well published changes find the true ones.

    Attributes
    ----------
    most : how many of the largest changes were looked for.
    found : how many of them are among as many of the largest published changes.
    by_chance : how many a random choice would find.
    correlation : Spearman's, of all published and true changes.
    """

    most: int
    found: int
    by_chance: float
    correlation: float

    @property
    def share(self) -> float:
        return self.found / self.most


def change(before: NDArray[np.generic], after: NDArray[np.generic], *, relative: bool = False) -> Vector:
    """after - before, or that over the mean of both (the symmetric rate of job flows, in [-2, 2])."""
    if before.shape != after.shape:
        raise DataError(
            f"The releases have {before.shape} and {after.shape} cells.",
            "Changes need the same cells in the same order.",
            "Release both by the same attributes.",
            about="after",
        )
    early, late = before.astype(np.float64), after.astype(np.float64)
    if not relative:
        return late - early
    middle = (np.abs(early) + np.abs(late)) / 2
    return np.divide(late - early, middle, out=np.zeros_like(middle), where=middle > 0)


def largest_changes(changes: Vector, *, most: int) -> Integers:
    """The cells with the largest changes, up or down, the largest first."""
    return descending(np.abs(changes))[:most]


def found_changes(published: Vector, true: Vector, *, most: int) -> ChangesFound:
    """Compare published changes with the true ones."""
    if not 0 < most <= len(true):
        raise DataError(
            f"The {most} largest of {len(true)} changes were asked for.",
            remedy=f"Ask for 1 to {len(true)}.",
            about="most",
        )
    both = np.intersect1d(largest_changes(published, most=most), largest_changes(true, most=most))
    return ChangesFound(
        most=most, found=len(both), by_chance=most * most / len(true), correlation=spearman(published, true)
    )
