"""`NEGATIVE_BINOMIAL`: counts whose variance is mean + mean^2 / size, by the logarithm."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.families import counts
from discreet.models.linear.families.family import Densities, Family, FamilyParameter, Slopes
from discreet.models.linear.families.links import LOG, probability
from discreet.models.linear.families.poisson import POISSON

STIRLING = 1000.0  # size from which series are exact to rounding
FLATTEST = 300.0  # logs of a size beyond which no density changes, and squares of sizes overflow
FIRST = 1.0  # log of the size where searches begin
NEARLY = 1e9  # a size from which Poisson's probabilities are its own


def _near(y: Vector, eta: Vector, own: Vector) -> Slopes:
    log_size = float(np.clip(own[0], -FLATTEST, FLATTEST))
    size, odds = float(np.exp(log_size)), eta - log_size
    share, rest = probability(odds), probability(-odds)
    density = -y * np.logaddexp(0, -odds) - size * np.logaddexp(0, odds)
    return Slopes(density, y * rest - size * share, (y + size) * share * rest)


def _law(y: Vector, eta: Vector, own: Vector) -> Densities:
    log_size = float(np.clip(own[0], -FLATTEST, FLATTEST))
    size = float(np.exp(log_size))
    share, rest = probability(eta - log_size), probability(log_size - eta)  # 1 - share has no digits of a small rest
    total, spread = y + size, share * rest
    density, slope = _ways(y, size, eta - log_size)
    by_size = size * (slope - np.logaddexp(0, eta - log_size)) + size * share - y * rest
    curve = total * spread
    change = curve * (rest - share)
    return Densities(
        density, y * rest - size * share, curve, change, ((by_size, curve - size * share, size * spread - change),)
    )


def _ways(y: Vector, size: float, odds: Vector) -> tuple[Vector, Vector]:
    """The log-density at the log of mean over size, and digamma(size + y) - digamma(size).

    Terms that nearly cancel are never formed: of large counts, log-gammas and products with the linear predictor; of
    large sizes, differences of log-gammas, whose Stirling series are subtracted term by term.
    """
    from scipy.special import betaln, digamma, gammaln

    total, more = y + size, np.logaddexp(0, odds)  # log of 1 + mean / size
    if size < STIRLING:
        density = -betaln(size, y + 1) - np.log(total) - y * np.logaddexp(0, -odds) - size * more
        return np.asarray(density), digamma(total) - digamma(size)
    longer, less = np.log1p(y / size), -y / (size * total)  # log of total / size, and 1 / total - 1 / size
    cubes = less * (1 / total**2 + 1 / (total * size) + 1 / size**2)
    rising = (total - 0.5) * longer - y + less / 12 - cubes / 360  # log Gamma(total) / Gamma(size) - y log(size)
    density = rising - gammaln(y + 1) + y * (odds + np.log(size)) - total * more
    return np.asarray(density), np.asarray(longer - less / 2 - less * (1 / total + 1 / size) / 12)


def _size(own: Vector) -> float:
    return SIZE.shown(own[0])


def _variance(eta: Vector, own: Vector) -> Vector:
    mean = LOG.mean(eta)
    return mean + mean**2 / _size(own)


def _deviance(y: Vector, mean: Vector, own: Vector) -> Vector:
    from scipy.special import xlogy

    size = _size(own)
    return np.asarray(2 * (xlogy(y, y / mean) - (y + size) * np.log((y + size) / (mean + size))))


def _at_most(k: Vector, eta: Vector, own: Vector, trials: Vector) -> Vector:
    from scipy.special import betaincc

    if own[0] >= np.log(NEARLY):
        return POISSON.at_most(k, eta, own, trials)
    return np.asarray(betaincc(k + 1, _size(own), probability(eta - own[0])))


def _draw(eta: Vector, own: Vector, trials: Vector, rng: np.random.Generator) -> Vector:
    size = float(np.exp(own[0]))
    return np.asarray(rng.poisson(rng.gamma(size, LOG.mean(eta) / size)).astype(np.float64))


SIZE = FamilyParameter("size", LOG, FIRST, limits=True)
NEGATIVE_BINOMIAL = Family(
    name="negative-binomial",
    of="counts",
    link=LOG,
    law=_law,
    near=_near,
    refuse=counts.refuse("negative-binomial"),
    start=POISSON.law,
    says=lambda curve: 1 / (1 + curve / np.exp(FIRST)),
    separated=counts.separated,
    variance=_variance,
    deviance=_deviance,
    at_most=_at_most,
    ends=counts.ends,
    draw=_draw,
    own=(SIZE,),
    sigma=_size,
    counts=True,
    heaviest=1e4,
    instead="Use 'poisson': its errors are widened by the dispersion that the released squares show.",
)
