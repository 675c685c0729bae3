"""Counts and outcomes drawn from a family at published linear predictors.

Only arrays enter and only arrays leave. Errors of effects are drawn on the scale of the link, where a mean of rates is
more than the rate of the mean, so predictors are moved beforehand: a row's mean over replicates is its fitted value.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Vector
from discreet.words.cases import case_of

NODES = 20  # of the quadrature over a normal law
ROUNDS = 40
ON_A_LINK = {"gaussian": False, "binomial": True, "poisson": True}
"""Families whose predictors are on the scale of a link."""

OF_EVENTS = {"gaussian": False, "binomial": False, "poisson": True}
"""Families of counts that have no largest value."""

CLOSE = 1e-10  # of a linear predictor
CERTAIN = 200.0  # a linear predictor beyond which a probability is 0 or 1 in any count
LOGISTIC = 0.346  # a normal law of this variance over pi^2 / 3 is about logistic (Zeger, Liang and Albert 1988)


def before_errors(family: str, link: Vector, variance: Vector) -> Vector:
    """Where predictors lie so that, with normal errors of this variance, rows have the means of `link`."""
    if case_of(family, {"binomial": False, "poisson": True}):
        return np.asarray(link - variance / 2)
    from scipy.special import expit

    link = np.clip(link, -CERTAIN, CERTAIN)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    spread, steeper = np.sqrt(variance), np.sqrt(1 + LOGISTIC * variance)
    found = link * steeper
    for _ in range(ROUNDS):
        yes, no = np.zeros_like(link), np.zeros_like(link)
        for node, weight in zip(nodes, weights, strict=True):
            yes += weight * expit(found + spread * node)
            no += weight * expit(-found - spread * node)
        moved = (link - np.log(yes) + np.log(no)) * steeper
        found = found + moved
        if np.abs(moved).max(initial=0.0) < CLOSE:
            break
    return np.asarray(found)


def counts(mean: Vector, dispersion: float, rng: np.random.Generator) -> Vector:
    """Whole numbers with these means, and variances that are `dispersion` times as large, or the means if it is 1."""
    if dispersion > 1:
        mean = rng.gamma(np.maximum(mean, 1e-300) / (dispersion - 1), dispersion - 1)
    return np.asarray(rng.poisson(mean))


def successes(link: Vector, trials: Vector, rng: np.random.Generator) -> Vector:
    from scipy.special import expit

    return np.asarray(rng.binomial(trials.astype(np.int64), expit(link)))
