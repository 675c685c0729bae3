"""The parts of a data set, each with its own posterior, without the bias of small parts, and its doubts.

Every number here is a function of one part's rows and of public numbers (docs/proofs/posterior.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.bayes.agreement import differences, pieces
from discreet.models.bayes.conjugate import HUGE, Marginals, Parts, Prior
from discreet.models.bayes.halves import Extrapolated, Shifted, corrects, drift, halves
from discreet.models.bayes.partition import blocks
from discreet.models.bayes.skewness import Straightened, skewness

ONE_DEVIATION = 0.841345  # of a normal law, below one standard deviation
# Deviations of parts that clipping them at 2.4 deviations around a median takes from the mean, by units of skewness and
# of its cube: a part sees less of its own skewness the more there is.
CLIPPED, CUBED = 0.02, 0.12
SILENT = HUGE**2  # what a part that cannot be used answers, up or down by its place: no bounds hold it


@dataclass(frozen=True, slots=True)
class Within:
    """The posterior in each part, and how its pieces differ from it if `count` is above 0."""

    posterior: Marginals
    differences: Matrix
    count: int

    def cdf(self, b: Vector) -> Matrix:
        return self.posterior.cdf(b)

    def quantile(self, q: Vector) -> Matrix:
        """Quantiles; parts that cannot be used are as often above all others as below."""
        low, high = (self.posterior.quantile(np.full(len(q), level)) for level in (0.25, 0.75))
        silent = np.where(np.arange(len(low)) % 2, SILENT, -SILENT)[:, None]
        return np.where(low < high, self.posterior.quantile(q), silent)


def in_parts(
    prior: Prior,
    X: Matrix,
    y: Vector,
    parts: int,
    rng: np.random.Generator,
    columns: Integers,
    *,
    inflated: bool,
    corrected: bool = True,
    extrapolate: bool = False,
) -> Within:
    """The posterior of each part: its likelihood counts `parts` times if `inflated`, else the prior 1 / parts.

    If `corrected`, the bias of small parts, of skewed ratios and of the clipping to come are taken out; with
    `extrapolate` probabilities come from parts and halves.
    """
    block, rows = blocks(X, y, parts, rng)
    n, p = X.shape

    def posterior(block: Matrix, rows: Integers) -> Marginals:
        M = len(block)
        return prior.posterior(Parts.of(block, rows), columns, **({"power": M} if inflated else {"share": 1 / M}))

    whole = posterior(block, rows)
    if not (corrected and corrects(n, parts, p)):
        return Within(whole, np.zeros((parts, len(columns))), 0)
    found = skewness(block, Parts.of(block, rows), columns)
    count = pieces(n, parts, p)
    if extrapolate:
        pair = Parts.of(*halves(block, rows))
        half = prior.posterior(pair, columns, share=1 / parts)
        low, high = (half.quantile(np.full(len(columns), q)) for q in (0.25, 0.75))
        straight = Straightened(half, skewness(halves(block, rows)[0], pair, columns))
        usable = np.asarray((low < high).reshape(2, parts, -1).all(axis=0))
        both = Extrapolated(Straightened(whole, found), straight, usable)
        return Within(both, differences(block, count, columns), count)
    by = drift(posterior, whole, block, rows, len(columns))
    if not inflated:
        shifted: Marginals = Straightened(Shifted(whole, by), found)
    else:
        middle, upper = (whole.quantile(np.full(len(columns), q)) for q in (0.5, ONE_DEVIATION))
        deviation = math.sqrt(parts) * (upper - middle)
        cut = CLIPPED * found.estimate + CUBED * found.estimate**3
        shifted = Shifted(whole, by - (1 - 1 / parts) * cut * deviation)
    return Within(shifted, differences(block, count, columns), count)
