"""What families of counts share: the check of responses, separation, and quantiles, which are whole numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.arrays import Mask, Vector
from discreet.models.linear.families.family import Below
from discreet.words.errors import DataError, Unidentified

MOST = 2.0**53  # the largest count: doubles have every whole number up to it
APART = 15.0  # a linear predictor so far below the others that a count above zero is one in a million


def refuse(name: str) -> Callable[[Vector], None]:
    """The check of the responses of this family."""

    def check(y: Vector) -> None:
        if (y < 0).any() or (y != np.rint(y)).any():
            raise DataError(
                f"The response of family {name!r} has values that are not counts.",
                "Counts are whole numbers from zero on.",
                "Round them, or fit the plain mixed model.",
                about="formula",
            )
        if (y > MOST).any():
            raise DataError(
                f"The response of family {name!r} has values above {MOST:.0e}.",
                "Whole numbers so large are not told apart by doubles.",
                "Count in thousands or millions, or fit the plain mixed model.",
                about="formula",
            )
        if not y.any():
            raise Unidentified(
                "The response is zero in every row, so no rate above zero is the best one.",
                "Counts need at least one row that is not zero.",
                "Check the response column.",
                about="formula",
            )

    return check


def separated(eta: Vector, y: Vector) -> Mask:
    """Zeros that are predicted with certainty."""
    return np.asarray((eta < np.median(eta) - APART) & (y == 0))


def ends(below: Below, eta: Vector, wanted: float) -> Vector:
    """The smallest whole numbers that are not exceeded with the probability wanted."""
    low, high = np.full(len(eta), -1.0), np.zeros(len(eta))
    while (short := (below(high) < wanted) & (high < MOST)).any():
        low, high = np.where(short, high, low), np.where(short, 2 * high + 1, high)
    while ((gap := high - low) > 1).any():
        middle = np.where(gap > 1, np.floor((low + high) / 2), high)
        enough = below(middle) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)
