"""`BETA`: shares strictly between 0 and 1, of no trials, by the logit: glmmTMB's beta_family().

Their variance is mean (1 - mean) / (1 + precision) (Ferrari and Cribari-Neto 2004, doi:10.1080/0266476042000214501).
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.families import continuous
from discreet.models.linear.families.binomial import BINOMIAL
from discreet.models.linear.families.family import Densities, Family, FamilyParameter, Slopes
from discreet.models.linear.families.links import LOG, LOGIT, probability

FIRST = 1.0  # log of the precision where searches begin
FLATTEST, FARTHEST = 30.0, 200.0  # logs of a precision, and predictors, beyond which derivatives are no doubles
LEAST, MOST = 1e-300, float(np.nextafter(1, 0))  # shares that a draw can have


def _parts(y: Vector, eta: Vector, own: Vector) -> tuple[float, Vector, Vector, Vector, Vector]:
    """The precision, both parameters of the beta law, their slope in eta, and how far the logit is from its mean."""
    from scipy.special import digamma

    eta = np.clip(eta, -FARTHEST, FARTHEST)
    precision = float(np.exp(np.clip(own[0], -FLATTEST, FLATTEST)))
    share, rest = probability(eta), probability(-eta)
    a, b = precision * share, precision * rest
    return precision, a, b, a * rest, np.log(y) - np.log1p(-y) - digamma(a) + digamma(b)


def _near(y: Vector, eta: Vector, own: Vector) -> Slopes:
    from scipy.special import betaln, polygamma

    precision, a, b, slope, away = _parts(y, eta, own)
    density = (a - 1) * np.log(y) + (b - 1) * np.log1p(-y) - betaln(a, b)
    bend = slope * (polygamma(1, a) + polygamma(1, b))
    return Slopes(density, slope * away, slope * (bend - (b - a) / precision * away))


def _law(y: Vector, eta: Vector, own: Vector) -> Densities:
    from scipy.special import digamma, polygamma

    near, (precision, a, b, slope, away) = _near(y, eta, own), _parts(y, eta, own)
    skew, bend = (b - a) / precision, slope * (polygamma(1, a) + polygamma(1, b))
    third = slope**2 * (polygamma(2, a) - polygamma(2, b))
    change = slope * (3 * skew * bend - skew**2 * away + third + 2 * slope / precision * away)
    moved = a * polygamma(1, a) - b * polygamma(1, b)
    by_precision = precision * digamma(precision) + a * (np.log(y) - digamma(a)) + b * (np.log1p(-y) - digamma(b))
    second = slope**2 * (a * polygamma(2, a) + b * polygamma(2, b))
    own_slopes = by_precision, slope * (away - moved), 2 * slope * bend + second - slope * skew * (away - moved)
    return Densities(near.density, near.slope, near.curve, change, (own_slopes,))


def _refuse(y: Vector) -> None:
    continuous.refuse_outside(
        y,
        ~((y > 0) & (y < 1)),
        family="beta",
        possible="Shares are strictly between 0 and 1.",
        remedy="If they are of trials, use family 'binomial' with their numbers in weights; else leave these rows out, "
        "or pull shares inside by a rule that you report.",
    )


def _precision(own: Vector) -> float:
    return PRECISION.shown(own[0])


def _at_most(y: Vector, eta: Vector, own: Vector, trials: Vector) -> Vector:
    from scipy.special import betainc

    precision = _precision(own)
    return np.asarray(betainc(precision * probability(eta), precision * probability(-eta), y))


def _draw(eta: Vector, own: Vector, trials: Vector, rng: np.random.Generator) -> Vector:
    precision = _precision(own)
    drawn = rng.beta(precision * probability(eta), precision * probability(-eta))
    return np.asarray(np.clip(drawn, LEAST, MOST))


PRECISION = FamilyParameter("precision", LOG, FIRST, most=1e9)
BETA = Family(
    name="beta",
    of="shares without trials",
    link=LOGIT,
    law=_law,
    near=_near,
    concave=False,
    refuse=_refuse,
    start=BINOMIAL.law,
    says=lambda curve: np.full_like(curve, 1 + np.exp(FIRST)),
    variance=lambda eta, own: LOGIT.slope(eta) / (1 + _precision(own)),
    no_deviance="The highest density of a share is at no expectation of a simple form, and R has no such residuals.",
    at_most=_at_most,
    ends=continuous.ends(LOGIT),
    draw=_draw,
    own=(PRECISION,),
    sigma=_precision,
    heaviest=1e4,
    instead="Use 'binomial': its mean is the same, and its spread is larger.",
)
