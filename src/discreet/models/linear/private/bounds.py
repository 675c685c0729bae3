"""Bounds of a response as somebody states them: read as exact numbers that double precision can calculate with."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from discreet.privacy.losses import exact
from discreet.words.errors import PrivacyError, concerning
from discreet.words.faults import Argument, Phrase

FARTHEST = 10**100  # ends of bounds whose squares are doubles
NARROWEST = Fraction(1, 2**36)  # of the larger end: below, the steps of a response are lost in a double's last digits


def _amount(end: Any, name: str) -> Fraction:
    try:
        return exact(end, name=name)
    except PrivacyError:
        raise PrivacyError(
            (Argument(name, end), " is no finite number."),
            "Both ends of a range are finite.",
            "Give the range in which responses lie, whatever the data.",
            about=name,
        ) from None


def interval(values: Any, name: str) -> tuple[Fraction, Fraction]:
    """Two numbers, the smaller first, or an error about `name`."""
    try:
        low, high = values
    except (TypeError, ValueError):
        raise PrivacyError(
            (Argument(name, values), " is not an interval."),
            remedy=("Give two numbers, as in ", Argument(name, (0, 2)), "."),
            about=name,
        ) from None
    low, high = _amount(plain(low), name), _amount(plain(high), name)
    with concerning(name):
        within_reach(low, high, asked=Argument(name, values))
    if not low < high:
        raise PrivacyError(
            (Argument(name, values), " has no width."),
            "The lower end comes first.",
            "Give lower < upper.",
            about=name,
        )
    return low, high


def within_reach(low: Fraction, high: Fraction, *, asked: str | Phrase) -> tuple[Fraction, Fraction]:
    """Bounds with which double precision can calculate: `low` and `high` again, or an error that calls them `asked`."""
    farthest = max(abs(low), abs(high))
    if farthest > FARTHEST or 0 < high - low < max(Fraction(1, FARTHEST), farthest * NARROWEST):
        raise PrivacyError(
            (
                asked,
                " are out of reach: they are too large or too close together, and their squares overflow or underflow "
                "double precision.",
            ),
            f"Ends may go to {float(FARTHEST):g}, and lie apart by {float(NARROWEST):.1g} of the "
            f"larger one and by {1 / FARTHEST:g}.",
            "Give the response in another unit, or from another origin.",
        )
    return low, high


def plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    return value.item() if isinstance(value, np.generic) else value
