"""Intervals for published counts that do not reveal the confidential scale of the noise.

Each mechanism gives ends computed from published counts alone. They contain the true count with at least the stated
probability, and cost nothing. If many establishments share the cell, they are wider than needed; that is the price of a
confidential scale. If a share of epsilon paid for a noisy size of every cell's largest establishment (`sizes`), both
bounds are used and the probability to fail is divided between them. Quantiles and ends are rounded outward:
docs/proofs/intervals.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.tables.intervals.quantiles import not_below_zero
from discreet.words.errors import PrivacyError
from discreet.words.faults import Argument

if TYPE_CHECKING:
    from discreet.tables.mechanisms.mechanism import Mechanism
    from discreet.tables.sizes import NoisySizes

BY_COUNTS = 0.2
"""The share of the probability to fail that goes to the bound by counts, where noisy sizes are another."""

COUNTS = 8192  # whose temporaries stay in a processor's second-level cache


@dataclass(frozen=True, slots=True, eq=False)
class EndsOfLevel:
    """The ends of intervals of any level, from published numbers and constants; the arguments are of `intervals`."""

    published: Integers
    mechanism: Mechanism
    bounded: bool
    largest: Integers | None = None
    sizes: NoisySizes | None = None
    at_most: Vector | None = None

    def __call__(self, level: float) -> tuple[Vector, Vector]:
        about = {"largest": self.largest, "sizes": self.sizes, "at_most": self.at_most}
        return intervals(self.published, self.mechanism, level=level, bounded=self.bounded, **about)  # type: ignore[arg-type]


def intervals(
    published: Integers,
    mechanism: Mechanism,
    *,
    level: float,
    bounded: bool,
    largest: Integers | None = None,
    sizes: NoisySizes | None = None,
    at_most: Vector | None = None,
) -> tuple[Vector, Vector]:
    """Lower and upper ends for every count, each holding its true count with probability at least `level`.

    `published` has one row per workplace cell. `bounded` tells that the row's sum (or the count itself, when noise is
    per cell) is at least the size that sets the scale. `largest` is what `sizes` published for each workplace cell,
    `at_most` a public bound of its largest establishment, NaN where there is none. Without any of these there is no
    interval, and both ends are NaN; an unbounded upper end is infinite.
    """
    refuse_level(level)
    sized = largest is not None and sizes is not None and mechanism.sized
    lower, upper = _ends(published, mechanism, level=level, bounded=bounded, largest=largest, sizes=sizes)
    if at_most is None or not mechanism.sized or (sized and not bounded):
        return lower, upper
    # In the event on which the ends of the counts rest already, so that it costs nothing.
    reach = mechanism.reach(at_most, level=1 - BY_COUNTS * (1 - level) if sized else level)[:, None]
    low, high = not_below_zero(published - reach, published + reach)
    upper = np.fmin(upper, high)
    return np.fmin(np.fmax(lower, low), upper), upper


def refuse_level(level: float) -> None:
    """Refuse what is not a probability."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise PrivacyError(
            (Argument("level", level), " is not a probability."),
            "It lies between 0 and 1.",
            "Use for example 0.95.",
            about="level",
        )


def _ends(
    published: Integers,
    mechanism: Mechanism,
    *,
    level: float,
    bounded: bool,
    largest: Integers | None,
    sizes: NoisySizes | None,
) -> tuple[Vector, Vector]:
    """The ends from counts and noisy sizes."""
    if largest is None or sizes is None or not mechanism.sized:
        return _from_counts(published, mechanism, level=level, bounded=bounded)
    reach = by_sizes(largest, mechanism, sizes, level=level, bounded=bounded)[:, None]
    lower, upper = not_below_zero(published - reach, published + reach)
    if bounded:
        low, high = _from_counts(published, mechanism, level=1 - BY_COUNTS * (1 - level), bounded=True)
        upper = np.minimum(upper, high)
        lower = np.minimum(np.maximum(lower, low), upper)
    return lower, upper


def by_sizes(
    largest: Integers | Vector, mechanism: Mechanism, sizes: NoisySizes, *, level: float, bounded: bool
) -> Vector:
    """The half-widths of counts by the noisy sizes of their cells, and ends from the counts if these are `bounded`."""
    miss = 1 - level
    if not bounded:
        return mechanism.half_width(largest, sizes, level=level)
    return mechanism.half_width(largest, sizes, level=1 - (1 - BY_COUNTS) * miss, beside=1 - BY_COUNTS * miss)


def _from_counts(published: Integers, mechanism: Mechanism, *, level: float, bounded: bool) -> tuple[Vector, Vector]:
    """The ends that follow from the published counts alone."""
    lower, upper = np.empty(published.shape), np.empty(published.shape)
    size = max(1, COUNTS // published.shape[1])
    for start in range(0, len(published), size):
        rows = slice(start, start + size)
        lower[rows], upper[rows] = mechanism.ends(published[rows].astype(np.float64), level=level, bounded=bounded)
    return lower, upper
