"""`GAMMA`: amounts above zero whose variance is mean^2 / shape, by the logarithm: glmmTMB's Gamma(link = "log")."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.families import continuous
from discreet.models.linear.families.family import Densities, Family, FamilyParameter, Slopes
from discreet.models.linear.families.links import LOG

STIRLING = 1e3  # shape from which series are exact to rounding
FLATTEST = 300.0  # logs of a shape, and of an amount over its mean, beyond which products are no doubles
NEAR = 0.1  # distances of a log from its mean below which a series has more digits than exp
SIZES = 1e-100, 1e100  # of amounts: squares of smaller and larger ones are no doubles


def _beyond(away: Vector) -> Vector:
    """exp(d) - 1 - d, with all its digits."""
    from scipy.special import hyp1f1

    near = np.clip(away, -NEAR, NEAR)
    far = np.expm1(np.minimum(away, FLATTEST)) - away
    return np.where(np.abs(away) < NEAR, near**2 / 2 * hyp1f1(1, 3, near), far)


def _shape(own: Vector) -> float:
    return SHAPE.shown(float(np.clip(own[0], -FLATTEST, FLATTEST)))


def _constants(shape: float) -> tuple[float, float]:
    """shape log(shape) - shape - log Gamma(shape), and its slope log(shape) - digamma(shape)."""
    from scipy.special import digamma, gammaln

    if shape < STIRLING:
        return float(shape * np.log(shape) - shape - gammaln(shape)), float(np.log(shape) - digamma(shape))
    return (
        float(np.log(shape / (2 * np.pi)) / 2 - 1 / (12 * shape) + 1 / (360 * shape**3)),
        float(1 / (2 * shape) + 1 / (12 * shape**2) - 1 / (120 * shape**4)),
    )


def _near(y: Vector, eta: Vector, own: Vector) -> Slopes:
    shape, away = _shape(own), np.log(y) - eta
    more = np.expm1(np.minimum(away, FLATTEST))
    return Slopes(-shape * _beyond(away), shape * more, shape * (1 + more))


def _law(y: Vector, eta: Vector, own: Vector) -> Densities:
    shape, near, beyond = _shape(own), _near(y, eta, own), _beyond(np.log(y) - eta)
    constant, slope = _constants(shape)
    by_shape = shape * (slope - beyond)
    return Densities(
        near.density + constant - np.log(y), near.slope, near.curve, -near.curve, ((by_shape, near.slope, near.curve),)
    )


def _refuse(y: Vector) -> None:
    continuous.refuse_outside(
        y,
        ~((y > 0) & (y < np.inf)),
        family="gamma",
        possible="Amounts are above zero.",
        remedy="Leave rows without an amount out, and model by a family of their own whether there is one.",
    )
    continuous.refuse_outside(
        y,
        (y < SIZES[0]) | (y > SIZES[1]),
        family="gamma",
        possible=f"Amounts are from {SIZES[0]:.0e} to {SIZES[1]:.0e}.",
        remedy="Give them in another unit.",
    )


def _deviance(y: Vector, mean: Vector, own: Vector) -> Vector:
    return 2 * _beyond(np.log(y) - np.log(mean))


def _at_most(y: Vector, eta: Vector, own: Vector, trials: Vector) -> Vector:
    from scipy.special import gammainc

    shape = _shape(own)
    return np.asarray(gammainc(shape, shape * y / LOG.mean(eta)))


def _draw(eta: Vector, own: Vector, trials: Vector, rng: np.random.Generator) -> Vector:
    shape = _shape(own)
    return np.asarray(np.maximum(rng.gamma(shape, LOG.mean(eta) / shape), SIZES[0]))


SHAPE = FamilyParameter("shape", LOG, 0.0, most=1e12)
GAMMA = Family(
    name="gamma",
    of="amounts",
    link=LOG,
    law=_law,
    near=_near,
    refuse=_refuse,
    start=_law,
    variance=lambda eta, own: LOG.mean(eta) ** 2 / _shape(own),
    deviance=_deviance,
    at_most=_at_most,
    ends=continuous.ends(LOG),
    draw=_draw,
    own=(SHAPE,),
    sigma=lambda own: float(1 / np.sqrt(_shape(own))),
    heaviest=1e4,
    instead="Use 'gaussian' with bounds: it releases means of amounts.",
)
