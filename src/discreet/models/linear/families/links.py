"""Links: the scale of linear predictors, and the way back to the scale of responses. Arrays alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Vector

HIGHEST = 700.0  # exp of more overflows
SURE = 1e-6  # how near to 1 a probability counts where its logit is asked
NODES = 20  # of the quadrature over a normal law
ROUNDS = 40
CLOSE = 1e-10  # of a linear predictor
CERTAIN = 200.0  # a linear predictor beyond which a probability is 0 or 1 in any count
LOGISTIC = 0.346  # a normal law of this variance over pi^2 / 3 is about logistic (Zeger, Liang and Albert 1988)


@dataclass(frozen=True)
class Link:
    """A link: `mean` of a linear predictor with its slope, and `of` a mean.

    Attributes
    ----------
    before_errors : where predictors lie so that, with normal errors of this variance, rows have the means of `link`.
    rates : whether means are proportional to an exposure whose logarithm is added to the predictor.
    range : of means.
    """

    name: str
    mean: Callable[[Vector], Vector]
    slope: Callable[[Vector], Vector]
    of: Callable[[Vector], Vector]
    before_errors: Callable[[Vector, Vector], Vector]
    range: tuple[float, float]
    rates: bool = False


def probability(eta: Vector) -> Vector:
    from scipy.special import expit

    return np.asarray(expit(eta))


def _exp(eta: Vector) -> Vector:
    return np.asarray(np.exp(np.minimum(eta, HIGHEST)))


def _logistic_slope(eta: Vector) -> Vector:
    mean = probability(eta)
    return mean * (1 - mean)


def _logit(mean: Vector) -> Vector:
    return np.asarray(np.log(mean / (1 - np.minimum(mean, 1 - SURE))))


def _before_logistic(link: Vector, variance: Vector) -> Vector:
    link = np.clip(link, -CERTAIN, CERTAIN)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    spread, steeper = np.sqrt(variance), np.sqrt(1 + LOGISTIC * variance)
    found = link * steeper
    for _ in range(ROUNDS):
        yes, no = np.zeros_like(link), np.zeros_like(link)
        for node, weight in zip(nodes, weights, strict=True):
            yes += weight * probability(found + spread * node)
            no += weight * probability(-found - spread * node)
        moved = (link - np.log(yes) + np.log(no)) * steeper
        found = found + moved
        if np.abs(moved).max(initial=0.0) < CLOSE:
            break
    return np.asarray(found)


IDENTITY = Link("identity", np.asarray, np.ones_like, np.asarray, lambda link, variance: link, range=(-np.inf, np.inf))
LOG = Link("log", _exp, _exp, np.log, lambda link, variance: link - variance / 2, range=(0.0, np.inf), rates=True)
LOGIT = Link("logit", probability, _logistic_slope, _logit, _before_logistic, range=(0.0, 1.0))
