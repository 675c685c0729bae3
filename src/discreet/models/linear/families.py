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
from discreet.words.cases import case_of

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
SHARES: dict[str, bool] = {
    "binomial": True,
    "poisson": False,
    "negative-binomial": False,
    "zero-inflated-poisson": False,
    "zero-inflated-negative-binomial": False,
}
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


@dataclass(frozen=True, slots=True)
class Slopes:
    """What a step in eta needs: l without what is the same for every eta (of a zero, all of it), l' and -l''."""

    density: Vector
    slope: Vector
    curve: Vector


@dataclass(frozen=True)
class Family:
    """A law of the response: `law(y, eta, own parameters)`, `mean(eta, own parameters)` and its parameters' names.

    `near` is the part of the law that is asked at every step. `base` is the family to which zeros are added.
    """

    name: FamilyName
    law: Callable[[Vector, Vector, Vector], Densities]
    near: Callable[[Vector, Vector, Vector], Slopes]
    mean: Callable[[Vector, Vector], Vector]
    own: tuple[str, ...] = ()
    base: FamilyName | None = None

    @property
    def shares(self) -> bool:
        """Whether responses are shares of trials, by a logit; those of the others are counts, by a log."""
        return case_of(self.name, SHARES)

    @property
    def counts(self) -> bool:
        return not self.shares

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


def _near_binomial(y: Vector, eta: Vector, own: Vector) -> Slopes:
    mu = probability(eta)
    return Slopes(y * eta - np.logaddexp(0, eta), y - mu, mu * (1 - mu))


def _near_poisson(y: Vector, eta: Vector, own: Vector) -> Slopes:
    mu = mean_count(eta)
    return Slopes(y * eta - mu, y - mu, mu)


def _near_negative_binomial(y: Vector, eta: Vector, own: Vector) -> Slopes:
    log_size = float(np.clip(own[0], -FLATTEST, FLATTEST))
    size, odds = float(np.exp(log_size)), eta - log_size
    share, rest = probability(odds), probability(-odds)
    density = -y * np.logaddexp(0, -odds) - size * np.logaddexp(0, odds)
    return Slopes(density, y * rest - size * share, (y + size) * share * rest)


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
        zero, extra = np.flatnonzero(y == 0), float(probability(np.array(logit)))
        log_rest = -float(np.logaddexp(0, logit))
        plain, s, c, third = at.density[zero], at.slope[zero], at.curve[zero], at.change[zero]
        q = probability(plain - logit)  # a row comes from the base, given that it is zero
        mixed, skew = q * (1 - q), q * (1 - q) * (1 - 2 * q)

        def rows(of_base: Vector, of_zeros: Vector) -> Vector:
            found = np.array(of_base)
            found[zero] = of_zeros
            return found

        own_base = tuple(
            (
                rows(d, q * d[zero]),
                rows(ds, mixed * d[zero] * s + q * ds[zero]),
                rows(dc, mixed * d[zero] * c + q * dc[zero] - skew * s * s * d[zero] - 2 * mixed * s * ds[zero]),
            )
            for d, ds, dc in at.own
        )
        nothing = np.zeros(len(y))
        by_logit = (
            rows(nothing - extra, 1 - q - extra),
            rows(nothing, -mixed * s),
            rows(nothing, -mixed * c + skew * s * s),
        )
        return Densities(
            rows(log_rest + at.density, log_rest + np.logaddexp(logit, plain)),
            rows(at.slope, q * s),
            rows(at.curve, q * c - mixed * s * s),
            rows(at.change, 3 * mixed * s * c + q * third - skew * s * s * s),
            (*own_base, by_logit),
        )

    return law


def _near_inflated(base: Callable[[Vector, Vector, Vector], Slopes]) -> Callable[[Vector, Vector, Vector], Slopes]:
    def near(y: Vector, eta: Vector, own: Vector) -> Slopes:
        at, logit, zero = base(y, eta, own[:-1]), float(own[-1]), np.flatnonzero(y == 0)
        d, s, c = at.density[zero], at.slope[zero], at.curve[zero]
        q = probability(d - logit)
        at.density[zero], at.slope[zero] = np.logaddexp(logit, d), q * s
        at.curve[zero] = q * c - q * (1 - q) * s * s
        return at

    return near


def _inflated_mean(eta: Vector, own: Vector) -> Vector:
    return mean_count(eta) * float(1 - probability(own[-1:])[0])


def by_rows(law: Densities, weights: Vector | None) -> Densities:
    """A law whose rows count as often as their weights say."""
    if weights is None:
        return law
    own = tuple((a * weights, b * weights, c * weights) for a, b, c in law.own)
    return Densities(law.density * weights, law.slope * weights, law.curve * weights, law.change * weights, own)


def steps_by_rows(near: Slopes, weights: Vector | None) -> Slopes:
    """The same of what a step needs; of a step too far it is infinite, and who takes steps halves that one."""
    if weights is None:
        return near
    with np.errstate(over="ignore"):
        return Slopes(near.density * weights, near.slope * weights, near.curve * weights)


_FAMILIES: dict[str, Family] = {
    "binomial": Family("binomial", _binomial, _near_binomial, lambda eta, own: probability(eta)),
    "poisson": Family("poisson", _poisson, _near_poisson, lambda eta, own: mean_count(eta)),
    "negative-binomial": Family(
        "negative-binomial",
        _negative_binomial,
        _near_negative_binomial,
        lambda eta, own: mean_count(eta),
        ("log size",),
    ),
    "zero-inflated-poisson": Family(
        "zero-inflated-poisson",
        _inflated(_poisson),
        _near_inflated(_near_poisson),
        _inflated_mean,
        ("logit of extra zeros",),
        "poisson",
    ),
    "zero-inflated-negative-binomial": Family(
        "zero-inflated-negative-binomial",
        _inflated(_negative_binomial),
        _near_inflated(_near_negative_binomial),
        _inflated_mean,
        ("log size", "logit of extra zeros"),
        "negative-binomial",
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
