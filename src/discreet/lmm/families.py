"""Laws of a response given its linear predictor: log-density of each row with its derivatives.

Only arrays enter and only arrays leave. At the linear predictor eta a family gives the log-density l, and l', -l'' and
-l''' in eta. For each parameter of its own (the log of the negative binomial's size, the logit of the share of extra
zeros) it gives the derivatives of l, l' and -l'' in that parameter. Links are the canonical ones of R: logit and log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.arrays import Matrix, Vector

FamilyName = Literal[
    "binomial", "poisson", "negative-binomial", "zero-inflated-poisson", "zero-inflated-negative-binomial"
]
FAMILIES: tuple[FamilyName, ...] = (
    "binomial",
    "poisson",
    "negative-binomial",
    "zero-inflated-poisson",
    "zero-inflated-negative-binomial",
)
STIRLING = 1000.0  # size of the negative binomial from which series are exact to rounding
HIGHEST = 700.0  # exp of more overflows
FLATTEST = 300.0  # logs of a size beyond which no density changes, and squares of sizes overflow


@dataclass(frozen=True, slots=True)
class Densities:
    """Log-density and derivatives at every row.

    Attributes
    ----------
    density, slope, curve, change : l, l', -l'' and -l''' in eta.
    own : per parameter of the family, the derivatives of l, l' and -l'' in it.
    """

    density: Vector
    slope: Vector
    curve: Vector
    change: Vector
    own: tuple[tuple[Vector, Vector, Vector], ...] = ()


@dataclass(frozen=True)
class Family:
    """A law of the response: `law(y, eta, own parameters)`, `mean(eta, own parameters)` and its parameters' names."""

    name: FamilyName
    law: Callable[[Vector, Vector, Vector], Densities]
    mean: Callable[[Vector, Vector], Vector]
    own: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        return self.name != "binomial"

    @property
    def inflated(self) -> bool:
        """Whether there are extra zeros; the logit of their share is then the last parameter."""
        return self.name.startswith("zero-inflated")


def family(name: str) -> Family:
    """The family of this name; `KeyError` for others."""
    return _FAMILIES[name]


def mean_count(eta: Vector) -> Vector:
    return np.asarray(np.exp(np.minimum(eta, HIGHEST)))


def probability(eta: Vector) -> Vector:
    from scipy.special import expit

    return np.asarray(expit(eta))


def _binomial(y: Vector, eta: Vector, own: Vector) -> Densities:
    mu = probability(eta)
    curve = mu * (1 - mu)
    return Densities(y * eta - np.logaddexp(0, eta), y - mu, curve, curve * (1 - 2 * mu))


def _poisson(y: Vector, eta: Vector, own: Vector) -> Densities:
    from scipy.special import gammaln

    mu = mean_count(eta)
    return Densities(y * eta - mu - gammaln(y + 1), y - mu, mu, mu)


def _negative_binomial(y: Vector, eta: Vector, own: Vector) -> Densities:
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


def _inflated(base: Callable[[Vector, Vector, Vector], Densities]) -> Callable[[Vector, Vector, Vector], Densities]:
    """The law with extra zeros; the logit of their share comes after the parameters of the base."""

    def law(y: Vector, eta: Vector, own: Vector) -> Densities:
        at, logit = base(y, eta, own[:-1]), float(own[-1])
        zero, extra = y == 0, float(probability(np.array(logit)))
        log_rest = -float(np.logaddexp(0, logit))
        q = np.where(zero, probability(at.density - logit), 1.0)  # a row comes from the base, given that it is zero
        mixed = q * (1 - q)
        density = log_rest + np.where(zero, np.logaddexp(logit, at.density), at.density)
        s, c = at.slope, at.curve
        curve = q * c - mixed * s**2
        change = mixed * s * c + q * at.change - mixed * (1 - 2 * q) * s**3 + 2 * mixed * s * c
        own_base = tuple(
            (
                q * d,
                mixed * d * s + q * ds,
                mixed * d * c + q * dc - mixed * (1 - 2 * q) * d * s**2 - 2 * mixed * s * ds,
            )
            for d, ds, dc in at.own
        )
        by_logit = (
            np.where(zero, 1 - q, 0.0) - extra,
            -mixed * s,
            -mixed * c + mixed * (1 - 2 * q) * s**2,
        )
        return Densities(density, q * s, curve, change, (*own_base, by_logit))

    return law


def _inflated_mean(eta: Vector, own: Vector) -> Vector:
    return mean_count(eta) * float(1 - probability(own[-1:])[0])


def by_rows(law: Densities, weights: Vector | None) -> Densities:
    """A law whose rows count as often as their weights say."""
    if weights is None:
        return law
    own = tuple((a * weights, b * weights, c * weights) for a, b, c in law.own)
    return Densities(law.density * weights, law.slope * weights, law.curve * weights, law.change * weights, own)


_FAMILIES: dict[str, Family] = {
    "binomial": Family("binomial", _binomial, lambda eta, own: probability(eta)),
    "poisson": Family("poisson", _poisson, lambda eta, own: mean_count(eta)),
    "negative-binomial": Family(
        "negative-binomial", _negative_binomial, lambda eta, own: mean_count(eta), ("log size",)
    ),
    "zero-inflated-poisson": Family(
        "zero-inflated-poisson", _inflated(_poisson), _inflated_mean, ("logit of extra zeros",)
    ),
    "zero-inflated-negative-binomial": Family(
        "zero-inflated-negative-binomial",
        _inflated(_negative_binomial),
        _inflated_mean,
        ("log size", "logit of extra zeros"),
    ),
}


def simulate(name: FamilyName, mean: Vector, own: Vector, trials: Vector, rng: np.random.Generator) -> Matrix:
    """One response for each row; `mean` is of the law without extra zeros."""
    if name == "binomial":
        return np.asarray(rng.binomial(np.rint(trials).astype(np.int64), mean) / trials)
    if "negative-binomial" in name:
        size = float(np.exp(own[0]))
        mean = rng.gamma(size, mean / size)
    found = rng.poisson(mean).astype(np.float64)
    if name.startswith("zero-inflated"):
        found[rng.random(len(found)) < probability(own[-1:])[0]] = 0.0
    return np.asarray(found)
