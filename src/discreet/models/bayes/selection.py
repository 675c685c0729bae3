"""Private choices among public candidates: the sparse vector, the noisy maximum, and their results on a list.

`values` holds one number for each part of a data set; replacing a row changes one of them in any way. Ranks and counts
then change by one at most, which is all that these choices look at, so the numbers themselves need no bounds. Proofs
are in docs/proofs/posterior.md; noise is on integers and exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.noise.laws import Laplace
from discreet.noise.sampler import draw_integers
from discreet.privacy.guarantee import Calibration, is_tight
from discreet.privacy.losses import upward

if TYPE_CHECKING:
    from discreet.noise.source import Source

FINEST, COARSEST, PER_OCTAVE = -10, 20, 4  # the ladder of centres, in powers of two of the unit
WIDEST = 60  # octaves that a width may grow from a quarter of its cell
ZOOM = 64  # equal cells of a second look
# M epsilon from which a noisy maximum among the ladder's cells rarely fails, cells / 2 e^(-M epsilon / 4) of the time:
SURER = 54  # twice in ten thousand
SURE = 67  # at which a centre is sold: with less, the default share for the width around it would buy noise
SECOND = 41  # M epsilon of a second look at least: among fewer cells it fails once in a thousand, and stays within them
AROUND = (-6, 3)  # octaves around a size that is roughly known, within which a magnitude is sought


@dataclass(frozen=True, slots=True)
class Cell:
    """An interval in which the median of a list was found; `missed` if a second look did not find it again."""

    low: float
    high: float
    missed: bool = False

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    def outermost(self, unit: float) -> bool:
        """Whether it lies at an end of the ladder of centres; the median may then lie beyond."""
        return max(-self.low, self.high) >= unit * 2.0**COARSEST * (1 - 1e-9)


def first_above(
    counts: Integers, threshold: int, *, epsilon: Fraction, source: Source, calibration: Calibration = "tight"
) -> int:
    """The sparse vector: the first of `counts` that noisily reaches a noisy threshold, else the last.

    A replaced row must move all counts in the same direction, as it does for nested intervals. Then Laplace(2 /
    epsilon) on both sides is enough; "paper" puts Laplace(4 / epsilon) on the counts, which needs no such condition.
    """
    scale = np.full(len(counts) + 1, upward((2 if is_tight(calibration) else 4) / epsilon))
    scale[-1] = upward(2 / epsilon)
    noise = draw_integers(Laplace(), scale=scale, source=source)
    reached = counts + noise[:-1] >= threshold + noise[-1]
    return int(np.argmax(reached)) if reached.any() else len(counts) - 1


def noisy_maximum(scores: Integers, *, epsilon: Fraction, source: Source) -> int:
    """The first place where score plus one-sided noise is largest; a replaced row moves each score by one."""
    noise = draw_integers(Laplace(), scale=np.full(len(scores), upward(2 / epsilon)), source=source)
    return int(np.argmax(scores + np.abs(noise)))


def median_cell(values: Vector, edges: Vector, *, epsilon: Fraction, source: Source) -> int:
    """Which of the cells between `edges` holds the median; 0 lies below the first edge, len(edges) above the last."""
    middle = len(values) // 2
    rank = np.searchsorted(np.sort(values), edges, side="right")
    below, above = np.append(0, rank), np.append(rank, len(values))
    return noisy_maximum(-np.maximum(0, np.maximum(below - middle, middle + 1 - above)), epsilon=epsilon, source=source)


def looks_twice(parts: int, epsilon: Fraction) -> bool:
    """Whether enough is left to spend on another search for a centre, within the cell that was found."""
    return parts * epsilon >= SURER + SECOND


def find_centre(values: Vector, *, unit: float, epsilon: Fraction, source: Source) -> Cell:
    """A cell around the median: first on a ladder of magnitudes, then, where there is enough to spend, within it."""
    ladder = unit * 2.0 ** np.arange(FINEST, COARSEST + 1 / PER_OCTAVE, 1 / PER_OCTAVE)
    edges = np.concatenate([-ladder[::-1], ladder])
    M, missed, first = len(values), False, epsilon
    twice = looks_twice(M, epsilon)
    if twice:
        first = max(epsilon / 2, Fraction(SURER, M))
    at = median_cell(values, edges, epsilon=first, source=source)
    if twice:  # one cell more on either side: the median may be near an edge
        edges = np.linspace(edges[max(at - 2, 0)], edges[min(at + 1, len(edges) - 1)], ZOOM + 1)
        at = median_cell(values, edges, epsilon=epsilon - first, source=source)
        missed = at in (0, len(edges))
    at = min(max(at, 1), len(edges) - 1)
    return Cell(float(edges[at - 1]), float(edges[at]), missed)


def find_width(values: Vector, cell: Cell, *, share: float, epsilon: Fraction, source: Source) -> float:
    """A width around the cell's middle with about `share` of the values within, by steps of an eighth of an octave."""
    widths = (cell.high - cell.low) / 8 * 2.0 ** np.arange(0, WIDEST, 0.125)
    counts = np.searchsorted(np.sort(np.abs(values - cell.middle)), widths, side="right")
    at = first_above(counts, math.ceil(share * len(values)), epsilon=epsilon, source=source)
    return float(widths[at])


def find_magnitude(values: Vector, *, around: float, epsilon: Fraction, source: Source) -> float:
    """The median of positive values, to within 5 %, if it is at most 8 times and at least a 64th of `around`."""
    edges = around * 2.0 ** np.arange(AROUND[0], AROUND[1], 1 / 8)
    at = median_cell(values, edges, epsilon=epsilon, source=source)
    return float(math.sqrt(edges[max(at - 1, 0)] * edges[min(at, len(edges) - 1)]))


def doubling_bound(
    values: Vector, *, unit: float, share: float, epsilon: Fraction, source: Source, calibration: Calibration = "tight"
) -> float:
    """The thesis's bound: the first unit * 2^t such that noisily enough values lie in [-bound, bound]."""
    bounds = unit * 2.0 ** np.arange(0, WIDEST)
    counts = np.searchsorted(np.sort(np.abs(values)), bounds, side="right")
    at = first_above(counts, math.ceil(share * len(values)), epsilon=epsilon, source=source, calibration=calibration)
    return float(bounds[at])
