"""Counts with extra zeros: any family of counts, with the logit of the share of extra zeros as its last parameter."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Vector
from discreet.models.linear.families import counts
from discreet.models.linear.families.family import Densities, Family, FamilyParameter, Law, Near, Slopes
from discreet.models.linear.families.links import LOGIT, probability
from discreet.models.linear.families.negative_binomial import NEGATIVE_BINOMIAL
from discreet.models.linear.families.poisson import POISSON

EXTRA = FamilyParameter("extra zeros", LOGIT, -1.0, limits=True)


def _law(base: Law) -> Law:
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


def _near(base: Near) -> Near:
    def near(y: Vector, eta: Vector, own: Vector) -> Slopes:
        at, logit, zero = base(y, eta, own[:-1]), float(own[-1]), np.flatnonzero(y == 0)
        d, s, c = at.density[zero], at.slope[zero], at.curve[zero]
        q = probability(d - logit)
        at.density[zero], at.slope[zero] = np.logaddexp(logit, d), q * s
        at.curve[zero] = q * c - q * (1 - q) * s * s
        return at

    return near


def _share(own: Vector) -> float:
    return EXTRA.shown(own[-1])


def zero_inflated(base: Family, *, heaviest: float, wider: str = "") -> Family:
    """A family of counts with extra zeros."""
    name = f"zero-inflated-{base.name}"

    def variance(eta: Vector, own: Vector) -> Vector:
        mean, share = base.link.mean(eta), _share(own)
        return base.variance(eta, own[:-1]) * (1 - share) + mean**2 * share * (1 - share)

    def at_most(k: Vector, eta: Vector, own: Vector, trials: Vector) -> Vector:
        share = _share(own)
        return share + (1 - share) * base.at_most(k, eta, own[:-1], trials)

    def draw(eta: Vector, own: Vector, trials: Vector, rng: np.random.Generator) -> Vector:
        found = base.draw(eta, own[:-1], trials, rng)
        found[rng.random(len(found)) < _share(own)] = 0.0
        return found

    def shift(own: Vector) -> tuple[float, Vector]:
        share = _share(own)
        return float(np.log1p(-share)), np.append(np.zeros(len(own) - 1), -share)

    return Family(
        name=name,
        of=base.of,
        link=base.link,
        law=_law(base.law),
        near=_near(base.near),
        refuse=counts.refuse(name),
        start=base.start,
        says=base.says,
        separated=base.separated,
        variance=variance,
        no_deviance="A zero that may be an extra one has no expectation of its own to be compared with.",
        at_most=at_most,
        ends=base.ends,
        draw=draw,
        own=(*base.own, EXTRA),
        sigma=lambda own: base.sigma(own[:-1]),
        base=base,
        shift=shift,
        counts=True,
        heaviest=heaviest,
        wider=wider,
        instead="Use 'poisson': its errors are widened by the dispersion that the released squares show. "
        "Extra zeros count as dispersion.",
    )


ZERO_INFLATED_POISSON = zero_inflated(
    POISSON, heaviest=1e5, wider=' If rows vary more than the family, fit "zero-inflated-negative-binomial".'
)
ZERO_INFLATED_NEGATIVE_BINOMIAL = zero_inflated(NEGATIVE_BINOMIAL, heaviest=1e4)
