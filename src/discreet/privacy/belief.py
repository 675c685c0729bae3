"""What somebody can believe about an establishment's size before and after a release: the Tables paper's Figure 1.

Before, every size from a fifth to five times the true one is as likely as any other. A definition lets the odds of two
sizes at distance d move by e^(epsilon d). The most peaked belief that it permits therefore falls by e^(-epsilon d) away
from the truth. In logarithms that is a slope of epsilon / ln(1 + alpha) on both sides. Under the weak definition this
attacker knows all workers but those of one kind, and no other worker is of that kind. All numbers are public.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.privacy.distance import distance
from discreet.privacy.units import EstablishmentNodes, Establishments, Workers

SPREAD = 5
"""Before, the size is known to this factor."""

POINTS = 120
"""Sizes of a belief; between them it is interpolated."""

TRUE_SIZES = (10, 100, 1_000, 10_000)


@dataclass(frozen=True, slots=True, eq=False)
class SizeBelief:
    """Probabilities of an establishment's size.

    Attributes
    ----------
    truth : its true size, which is made up.
    sizes : those that are possible beforehand, each for the share `prior` of all of them.
    permitted : the most peaked belief that the definition permits.
    """

    truth: int
    sizes: Integers
    prior: Vector
    permitted: Vector

    def near(self, belief: Vector, share: float) -> float:
        """The probability that the true size is not further off than this share of it."""
        close = np.abs(self.sizes - self.truth) <= share * self.truth
        return float(belief[close].sum())

    def density(self, belief: Vector) -> Vector:
        """The belief in one size, rather than in all those that a point stands for."""
        return np.asarray(belief / (self.prior * self.count))

    @property
    def count(self) -> int:
        """How many sizes are possible."""
        return int(self.sizes[-1] - self.sizes[0] + 1)


def permitted(
    unit: Establishments | Workers | EstablishmentNodes, epsilon: float, truth: int, *, points: int = POINTS
) -> SizeBelief:
    """The prior around a true size, and the most peaked belief that a loss of epsilon permits."""
    low, high = max(truth // SPREAD, 1), truth * SPREAD
    ladder = np.geomspace(low, high, points).astype(np.int64)
    sizes = np.unique(np.concatenate([[low, truth, high], ladder]))
    edges = np.concatenate([[low - 0.5], (sizes[1:] + sizes[:-1]) / 2, [high + 0.5]])
    prior = np.diff(edges) / (high - low + 1)
    steps = np.array([float(_steps(unit, truth, int(size))) for size in sizes])
    return SizeBelief(truth, sizes, prior, believed(-epsilon * steps, prior))


def believed(log_likelihood: Vector, prior: Vector) -> Vector:
    """Bayes' rule along the last axis."""
    weight = prior * np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def _steps(unit: Establishments | Workers | EstablishmentNodes, truth: int, size: int) -> Fraction:
    if isinstance(unit, Establishments) and unit.strength == "weak":
        return distance(unit, 0, abs(size - truth))
    return distance(unit, truth, size)
