"""How much of a published count is noise: a flag for every count, from published numbers and fixed thresholds alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Integers, Vector
from discreet.data.columns import column_of, column_of_words

if TYPE_CHECKING:
    import pyarrow as pa

Words: TypeAlias = NDArray[Any]

QUALITY = {
    "good": 0.1,
    "fair": 1 / 3,
    "poor": 1.0,
}
"""The flags with the most that the half-width of an interval may be, as a share of the count."""

NOISE, NONE = "mostly noise", "no interval"
"""The flags of a count whose half-width is larger than the count, and of one without an interval."""

SUPPRESSED = "suppressed"
"""The flag of a number that a rule of the agency leaves out of the form for readers."""

_FLAGS = (NONE, *QUALITY, NOISE)

MEANING = (
    "how far the interval reaches from the count: good, at most 10 % of it; fair, at most a third; poor, at most all "
    "of it; mostly noise, further; no interval, where an end is missing"
)


def quality(counts: Integers | Vector, lower: Vector, upper: Vector) -> Words:
    """The flag of every count."""
    return np.array(_FLAGS)[_codes(counts, lower, upper)]


def counted(counts: Integers | Vector, lower: Vector, upper: Vector) -> dict[str, int]:
    """How many counts have each flag that some have."""
    number = np.bincount(_codes(counts, lower, upper).ravel(), minlength=len(_FLAGS)).tolist()
    return {flag: n for flag, n in zip(_FLAGS, number, strict=True) if n}


def quality_column(counts: Integers | Vector, lower: Vector, upper: Vector) -> pa.Array:
    """The same as a column of a table."""
    return column_of_words(_FLAGS).take(column_of(_codes(counts, lower, upper)))


def _codes(counts: Integers | Vector, lower: Vector, upper: Vector) -> NDArray[np.int8]:
    """The place of every count's flag among `_FLAGS`."""
    count = np.asarray(counts, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        reach = np.maximum(upper - count, count - lower)
        # A count that came out below zero, or is not in its own interval, says nothing.
        some = (count >= 0) & (lower <= count) & (count <= upper)
        chosen = [~np.isfinite(lower + upper), *(some & (reach <= share * count) for share in QUALITY.values())]
    codes = [np.int8(code) for code in range(len(_FLAGS))]
    return np.select(chosen, codes[:-1], default=codes[-1])
