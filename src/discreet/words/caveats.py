"""Notes that checks and results print about intervals: what they assume, and why some cover more often than stated.

Each is part of a printed sentence, a `CaveatNote`, which has them as values. The study of intervals gives the same
words as its reasons, and a test looks for them in what is printed.
"""

from __future__ import annotations

from collections.abc import Iterable


class CaveatNote(str):
    """A sentence, and the caveats that it states as values: a program asks for these and does not read the sentence."""

    caveats: tuple[str, ...]

    def __new__(cls, sentence: str, *caveats: str) -> CaveatNote:
        note = super().__new__(cls, sentence)
        note.caveats = caveats
        return note


def stated(notes: Iterable[str]) -> set[str]:
    """The caveats that some of the notes state."""
    return {caveat for note in notes if isinstance(note, CaveatNote) for caveat in note.caveats}


CONFIDENTIAL = "the scale of the noise is confidential"
CHEBYSHEV = "sums are bounded by Chebyshev's inequality"
TWO = "the ends of two intervals are put together"
SKEWED = "skewed errors are allowed for"
DOUBT = "doubt about noisy sums is allowed for"
WHOLE = "numbers are whole"
PRIOR = "the prior keeps the variance of groups above 0"

A_LINE = "a straight line is assumed"
APART = "rows are assumed to be independent"
NO_FAR = "no error is assumed to be far beyond all others"
FLATTER = "coefficients are those of a loss that is flatter than squares"
A_TENTH = "a tenth of the rows is assumed"
ONE_VARIANCE = "one variance is assumed"
ONE_SLOPE = "one slope is assumed"
NO_MEANS = "effects are assumed not to go with means of columns in their groups"
NOT_SEEN = "cannot be distinguished from 0 under this noise"
NOT_MEASURED = "not measured"
FEW_SHAPES = "only a few ways in which effects may go with sizes of groups are assumed"
ONE_MEAN = "one mean of all periods is assumed"
ONE_LAG = "one coefficient of a lag is assumed for all series"
AS_CLIPPED = "lags are those of clipped responses"
NORMAL = "normal errors and effects are assumed"
LEANS = "the interval of their variance leans on the prior"
ABOVE_ZERO = "no interval of a variance holds 0"


def at_least(*why: str) -> str:
    """The sentence that says that an interval covers more often than stated."""
    return f"Intervals hold with the stated probability or more: {', and '.join(why)}."
