"""Disjoint random parts of a data set: how many, and the rows of each.

One row is in one part, so replacing a row by any other changes one part's answer and no other: that is the whole
source of privacy here (docs/proofs/posterior.md). The split uses no value of any row, so it may be seeded and known.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.bayes.conjugate import Parts
from discreet.models.bayes.spending import whole
from discreet.words.errors import FitError
from discreet.words.faults import Argument

LEAST_ROWS = 10  # rows of a part for each of its p + 1 numbers, by default: below, t tails and leverage take over


def partition(X: Matrix, y: Vector, parts: int, rng: np.random.Generator) -> Parts:
    """Cut the rows into `parts` random disjoint parts of equal size, give or take one row."""
    return Parts.of(*blocks(X, y, parts, rng))


def blocks(X: Matrix, y: Vector, parts: int, rng: np.random.Generator) -> tuple[Matrix, Integers]:
    """The rows [X y] of each part, padded with a row of zeros where it has one less, and how many it has."""
    rows, more = divmod(len(y), parts)
    block = np.zeros((parts, rows + (more > 0), X.shape[1] + 1))
    shuffled = np.column_stack([X, y])[rng.permutation(len(y))]
    block[:, :rows] = shuffled[: parts * rows].reshape(parts, rows, -1)
    if more:
        block[:more, rows] = shuffled[parts * rows :]
    return block, rows + (np.arange(parts) < more)


def number_of_parts(asked: int | None, *, rows: int, coefficients: int, best: float) -> int:
    """The requested number M of parts, if it is possible; by default the `best` one whose parts are not too small."""
    largest = rows // (coefficients + 1)
    if largest < 1:
        raise FitError(
            f"{rows} rows cannot estimate {coefficients} coefficients.",
            f"A part needs {coefficients + 1} rows at least.",
            "Use more rows, or fewer terms.",
            about="formula",
        )
    if asked is None:
        return max(1, int(min(best, largest / LEAST_ROWS)))
    if not (whole(asked, least=1) and asked <= largest):
        raise FitError(
            (
                Argument("partitions", asked),
                f" of {rows} rows: a part needs more rows than the {coefficients} coefficients, so there "
                f"are at most n / (p + 1) = {largest}.",
            ),
            remedy=f"Ask for a whole number from 1 to {largest}, or leave it out for the best number.",
            about="partitions",
        )
    return int(asked)


def balanced(noise: float, *, bias: float, rows: int, coefficients: int, epsilon: Fraction) -> float:
    """The M at which noise and the price of working in parts together cost least.

    In units of the posterior variance the noise costs noise / (M epsilon^2). Least squares within parts of n / M rows
    is less efficient and costs (p + 1) M / n. The bias that skewed or curved data leave also grows with (p + 1) M / n,
    which is M (p + 1) / sqrt(n) posterior deviations, times `bias`. Only public numbers enter.
    """
    numbers, spent = coefficients + 1, float(epsilon)
    efficient = math.sqrt(noise * rows / numbers) / spent
    return min(efficient, float(np.cbrt(noise * rows / 2 / (bias * numbers * spent) ** 2)))
