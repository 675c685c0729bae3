"""What somebody can believe about an establishment's size before and after a release: the Tables paper's Figure 1.

Before, every size from a fifth to five times the true one is as likely as any other. A definition lets the odds of two
sizes at distance d move by e^(epsilon d). The most peaked belief that it permits therefore falls by e^(-epsilon d) away
from the truth. In logarithms that is a slope of epsilon / ln(1 + alpha) on both sides. Under the weak definition this
attacker knows all workers but those of one kind, and no other worker is of that kind. All numbers are public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.privacy.distance import rung, rungs
from discreet.privacy.units import EstablishmentNodes, Establishments, Workers, is_weak

SPREAD = 5
"""Before, the size is known to this factor."""

NEAR = 0.1
"""Beliefs are compared by how sure somebody is of the size to this share."""

POINTS = 120
"""Sizes of a belief, each for those around it. The true one stands for itself alone: it can be believed far more."""

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
        return min(float(belief[close].sum()), 1.0)

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
    """The prior around a true size, and the most peaked belief that a loss of epsilon permits: sums over all sizes."""
    low, high = max(truth // SPREAD, 1), truth * SPREAD
    ladder = np.geomspace(low, high, points).astype(np.int64)
    least, most = math.ceil((1 - NEAR) * truth), math.floor((1 + NEAR) * truth)
    apart = [truth - 1, truth, truth + 1, least - 1, least, most, most + 1]
    sizes = np.unique(np.clip(np.concatenate([[low, high], apart, ladder]), low, high))
    first = np.concatenate([[low], (sizes[1:] + sizes[:-1]) // 2 + 1])  # of those that a size stands for
    every = np.arange(low, high + 1)
    prior = np.add.reduceat(np.ones(len(every)), first - low) / len(every)
    belief = believed(-epsilon * _all_steps(unit, truth, low, high), np.ones(len(every)))
    return SizeBelief(truth, sizes, prior, np.add.reduceat(belief, first - low))


def _all_steps(unit: Establishments | Workers | EstablishmentNodes, truth: int, low: int, high: int) -> Vector:
    """The distance of every size from the true one."""
    away = np.abs(np.arange(low, high + 1) - truth)
    match unit:
        case Workers():
            return away.astype(np.float64)
        case EstablishmentNodes():
            kept = np.arange(low, high + 1) <= unit.theta
            return np.where(away, kept + float(truth <= unit.theta), 0.0)
        case Establishments():
            if is_weak(unit.strength):
                return _climbed(unit, 0, int(away.max()))[away]
            return np.concatenate([_climbed(unit, truth, low)[:0:-1], _climbed(unit, truth, high)])
        case _:
            assert_never(unit)


def _climbed(unit: Establishments, start: int, end: int) -> Vector:
    """The distances from one size to every size on the way to another."""
    reached = [abs(size - start) for size in rungs(unit, start, end)]
    steps = np.searchsorted(np.array([0, *reached]), np.arange(abs(end - start) + 1)).astype(np.float64)
    return np.asarray(steps * float(rung(unit)), dtype=np.float64)


def believed(log_likelihood: Vector, prior: Vector) -> Vector:
    """Bayes' rule along the last axis."""
    weight = prior * np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))
