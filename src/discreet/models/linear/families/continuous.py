"""What families of amounts and of shares without trials share: the check of responses, and quantiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.arrays import Mask, Vector
from discreet.models.linear.families.family import Below
from discreet.models.linear.families.links import Link
from discreet.words.errors import DataError, Unidentified

FARTHEST = 600.0  # of a quantile from the predictor, on the scale of the link
STEPS, CLOSE = 100, 1e-10  # of the search for a quantile, on the scale of the link


def refuse_outside(y: Vector, outside: Mask, *, family: str, possible: str, remedy: str) -> None:
    """Refuse responses that the family has not, with the rows where they are, and those that are all the same."""
    if outside.any():
        rows = np.flatnonzero(outside)
        raise DataError(
            f"The response of family {family!r} is not possible in {len(rows):,} of {len(y):,} rows: the first is row "
            f"{rows[0] + 1:,}.",
            possible,
            remedy,
            about="formula",
        )
    if np.ptp(y) == 0:
        raise Unidentified(
            "The response is the same in every row, so no spread above zero is the best one.",
            f"Responses of family {family!r} differ.",
            "Check the response column.",
            about="formula",
        )


def ends(link: Link) -> Callable[[Below, Vector, float], Vector]:
    """Where a law with this link reaches a probability: bisection, with steps by the secant where they are inside."""

    def found(below: Below, eta: Vector, wanted: float) -> Vector:
        def short(at: Vector) -> Vector:
            return below(link.mean(at)) - wanted

        low, high, width = eta - 1.0, eta + 1.0, 1.0
        while width < FARTHEST and ((down := short(low) > 0) | (up := short(high) < 0)).any():
            width *= 2
            low, high = np.where(down, low - width, low), np.where(up, high + width, high)
        under, over = short(low), short(high)
        for step in range(STEPS):
            middle = (low + high) / 2
            if step % 3:
                with np.errstate(divide="ignore", invalid="ignore"):
                    secant = low - under * (high - low) / (over - under)
                gap = CLOSE / 4 if step % 3 == 1 else -CLOSE / 4  # so that both sides come close
                middle = np.where((secant > low) & (secant < high), np.clip(secant + gap, low, high), middle)
            there = short(middle)
            beyond = there > 0
            high, over = np.where(beyond, middle, high), np.where(beyond, there, over)
            low, under = np.where(beyond, low, middle), np.where(beyond, under, there)
            if (high - low).max() < CLOSE:
                break
        ends = np.where(under > 0, link.range[0], np.where(over < 0, link.range[1], link.mean((low + high) / 2)))
        return np.asarray(ends)

    return found
