"""Do parts agree with pieces of themselves? A private look at whether the model is in doubt.

If a line is fitted to a curve, estimates from few rows are off to one side. Each part compares the mean of its pieces'
least squares with its own. The difference is in units of that of normal rows, and is cut at one unit: a number in [-1,
1]. Their mean is the `tilt`. It is 0 on average if the model is right, whatever the errors' law, and goes to one side
with a curve. One row changes one part's number, by 2 at most: the price of a look is a small share of epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Matrix
from discreet.models.bayes.conjugate import Parts
from discreet.models.bayes.doubts import Doubt
from discreet.models.bayes.halves import corrects
from discreet.models.bayes.reach import reach_of
from discreet.models.bayes.summation import noisy_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.arrays import Vector
    from discreet.noise.source import Source

LEAST_PIECE = 8  # rows of a piece for each of its p + 1 numbers; halves may have fewer
MOST_PIECES = 8  # more would find curves that do no harm
SCATTER = 0.7  # deviation of one part's number, at most about this if the model is right
SURE = 0.98  # of the looks at a right model that say nothing
NOTHING = 0.05  # a tilt that skewed errors make
SAME = 1e-6  # of a deviation: differences below are those of rounding


def pieces(rows: int, parts: int, coefficients: int) -> int:
    """The number of pieces that a part is compared with; 0 if it has too few rows. Public."""
    if not corrects(rows, parts, coefficients):
        return 0
    return min(MOST_PIECES, max(2, rows // parts // (LEAST_PIECE * (coefficients + 1))))


def differences(block: Matrix, count: int, columns: Integers) -> Matrix:
    """The difference of each part's pieces from the part, in [-1, 1]; 0 if one of them has no estimate."""
    M, rows, p = len(block), block.shape[1] // count, block.shape[2] - 1
    whole = Parts.of(block[:, : rows * count], np.full(M, rows * count))
    piece = Parts.of(
        np.concatenate([block[:, i : rows * count : count] for i in range(count)]), np.full(count * M, rows)
    )
    with np.errstate(all="ignore"):
        own = whole.least_squares()[:, columns]
        more = piece.least_squares()[:, columns].reshape(count, M, -1).mean(axis=0) - own
        variance = whole.factor[:, p, p] ** 2 / (rows * count)
        deviation = np.sqrt((whole.inverse[:, columns] ** 2).sum(axis=-1) * variance[:, None])
        seen = np.abs(more) > SAME * (deviation + SAME * np.abs(own))
        found = np.clip(more / (deviation * unit(rows, p)), -1.0, 1.0)
        return np.where(seen & np.isfinite(found), found, 0.0)


def unit(rows: int, coefficients: int) -> float:
    """Deviations of a part's estimate by which the mean of pieces of this many rows may differ from it."""
    return math.sqrt((coefficients + 1) / max(rows - coefficients - 1, 1))


@dataclass(frozen=True, slots=True)
class Tilt:
    """The noisy mean of the parts' differences.

    Attributes
    ----------
    value : the mean, between -1 and 1 but for the noise.
    scale : of its Laplace noise.
    limit : a right model stays below it in 98 of 100 looks; from 1 on nothing can be found.
    times : posterior deviations that parts are off by, at least, for each unit of the tilt.
    """

    value: float
    scale: float
    limit: float
    times: float

    @property
    def doubted(self) -> bool:
        return abs(self.value) > self.limit

    @property
    def bias(self) -> float:
        """The possible error of an answer in posterior deviations, as far as the tilt is more than its noise."""
        return self.times * min(max(abs(self.value) - self.scale, 0.0), 1.0)


def look(values: Vector, *, count: int, rows: int, coefficients: int, epsilon: Fraction, source: Source) -> Tilt:
    """The tilt of one coefficient; `values` are the parts' differences from `count` pieces."""
    M = len(values)
    total = noisy_sums(values[:, None] + 1, span=2.0, epsilons=[epsilon], source=source)
    scale = float(total.scale[0]) / M
    limit = limit_of(M, epsilon)
    times = unit(rows // M // count, coefficients) * math.sqrt(M) / (count - 1) / 0.75
    return Tilt(float(total.value[0]) / M - 1, scale, limit, times)


def limit_of(M: int, epsilon: Fraction) -> float:
    """A limit that the tilt of a right model stays below, for M parts and the epsilon of the look. Public."""
    return max(NOTHING, reach_of(SCATTER / math.sqrt(M), 2 / (M * float(epsilon)), SURE))


def unchecked(names: Sequence[str], count: int, *, parts: int, epsilons: Sequence[Fraction]) -> list[list[Doubt]]:
    """Which answers' models cannot be looked at, known before anything is paid.

    `count` are the pieces of a part, 0 if nothing is looked at, `epsilons` those of the looks.
    """
    if not count:
        return [[Doubt(NOT_CHECKED, UNCHECKED)] for _ in names]
    blind = [limit_of(parts, epsilon) >= 1 for epsilon in epsilons]
    return [[Doubt(NOT_CHECKED, BLIND.format(name=name))] * b for name, b in zip(names, blind, strict=True)]


def doubt(name: str, tilt: Tilt) -> Doubt | None:
    """What is said of a coefficient, if anything."""
    if tilt.limit < 1 and tilt.doubted:
        return Doubt(
            "model in doubt",
            f"model in doubt: do not trust the answer for {name}. Small pieces of the rows say otherwise than larger "
            f"ones, by {tilt.value:.2f} where chance makes up to {tilt.limit:.2f}, as with a line fitted to a curve. "
            "Add a term for the curve, take logarithms, or ask with fewer `partitions`",
        )
    return None


NOT_CHECKED = "not checked"
BLIND = (
    "{name} is not checked: so few parts at this epsilon cannot show whether the model is right; use more rows or "
    "epsilon, or compare with a plot of public data"
)


UNCHECKED = "the model is not checked: parts of so few rows have no pieces to compare with; ask with fewer `partitions`"
