"""What every family answers. Only arrays enter and only arrays leave.

At the linear predictor eta a family gives the log-density l, and l', -l'' and -l''' in eta. For each parameter of its
own (the log of a size, the logit of a share of extra zeros) it gives the derivatives of l, l' and -l'' in it. Links are
those of R's glm, but for gamma, whose is the logarithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from discreet.arrays import Mask, Vector
from discreet.models.linear.families.links import Link

FARTHEST = 12.0  # logs of a size, or logits of a share, within which the end of a profile is looked for


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


Law: TypeAlias = Callable[[Vector, Vector, Vector], Densities]
Near: TypeAlias = Callable[[Vector, Vector, Vector], Slopes]
Below: TypeAlias = Callable[[Vector], Vector]
"""The probability of at most these responses, one for each row."""


@dataclass(frozen=True)
class FamilyParameter:
    """A parameter of a family: the likelihood has it on the scale of `link`, a fit shows it as it is.

    Attributes
    ----------
    first : where searches begin, on the scale of the link.
    limits : whether the likelihood has limits where the parameter has no end, so that ends of profiles are looked for
        about zero; else about the estimate.
    most : from where on rows are predicted exactly, and the parameter has no finite estimate.
    """

    name: str
    link: Link
    first: float
    limits: bool = False
    most: float = np.inf

    def bounds(self, estimate: float) -> tuple[float, float]:
        """Where ends of a profile are looked for."""
        middle = 0.0 if self.limits else estimate
        return middle - FARTHEST, middle + FARTHEST

    def shown(self, value: float) -> float:
        return float(self.link.mean(np.float64(value)))  # type: ignore[arg-type]

    def shown_end(self, value: float, bounds: tuple[float, float]) -> float:
        """The end of a profile: at a bound the parameter has no end on that side."""
        for bound, end in zip(bounds, self.link.range, strict=True):
            if value == bound:
                return end
        return self.shown(value)


@dataclass(frozen=True)
class Spread:
    """What a private release says of the spread of responses: their dispersion, residual variance and bounds."""

    dispersion: float
    residual: float
    bounds: tuple[float, float]


@dataclass(frozen=True)
class PrivateFamily:
    """How a family is released privately, and how responses are drawn from what was released.

    Attributes
    ----------
    bounds : where responses lie, if that is known of all of them; `example` of bounds.
    draw : responses at linear predictors, and counts if they are of a size; `drawn` says it in words.
    largest : the largest response for one unit of size, given the bounds; None if there is none.
    squares : the share of the loss for sums of squares; `usual`, the mean that expected errors suppose, as a share of
        the range; both of families that are no linear models.
    dispersed : whether responses may vary more than the family, as the squares show.
    trials : whether a size is a number of trials.
    choice : what the form says.
    """

    drawn: str
    draw: Callable[[Vector, Vector | None, Spread, np.random.Generator], tuple[Vector, Vector | None]]
    largest: Callable[[tuple[float, float]], float | None]
    choice: str
    example: tuple[int, int] = (0, 1)
    bounds: tuple[int, int] | None = None
    squares: Fraction = Fraction(0)
    usual: float = 0.5
    dispersed: bool = False
    trials: bool = False


@dataclass(frozen=True, kw_only=True)
class Response:
    """What every family has, also the gaussian one, whose models are fitted from sums and not by a density.

    Attributes
    ----------
    of : what responses are, in words.
    linear : whether models are linear: fitted from sums, with a residual variance.
    outcomes : whether true and false are responses.
    private : how it is released privately; None if it is not, and `instead` says what to use.
    """

    name: str
    of: str
    link: Link
    linear: bool = False
    outcomes: bool = False
    private: PrivateFamily | None = None
    instead: str = ""


def _one(own: Vector) -> float:
    """What R calls sigma, of laws that have no such parameter."""
    return 1.0


def _unmoved(own: Vector) -> tuple[float, Vector]:
    """Expectations are where eta says."""
    return 0.0, np.zeros(len(own))


def _nothing(y: Vector, weights: Vector | None) -> float:
    """No part of the likelihood is left out."""
    return 0.0


def _silent(y: Vector, weights: Vector | None) -> list[str]:
    """Nothing is noted."""
    return []


@dataclass(frozen=True, kw_only=True)
class Family(Response):
    """A family that fits have: its law, and everything that is asked of it.

    Attributes
    ----------
    law : density with derivatives, of (y, eta, parameters of the family); `near`, the part that is asked at every step.
    concave : whether the density has one top in eta, so that a search for it may begin anywhere.
    refuse : raises for responses that the family has not, and for those that no parameter is best for.
    start : the law, without parameters of its own, with which searches begin, and `says`, how much a row says beside
        it, given its curvature there; `separated`, rows that are predicted with certainty there.
    variance, deviance : of (eta, parameters) and of (y, expectation, parameters); None where there is no deviance, and
        `no_deviance` says why.
    at_most : the probability of at most so many events, or so much, of (y, eta, parameters, trials); `ends`, where it
        reaches what is wanted.
    draw : responses, of (eta, parameters, trials, rng).
    own : parameters of the family; `sigma`, what R calls so.
    base : the family to which zeros are added; the logit of their share is the last parameter.
    shift : of the parameters, how far the logs of expectations are above eta, and the slopes of that.
    counts : whether responses are counts; `trials`, whether they are shares of trials, whose number is the weight.
    constant : the part of -2 log-likelihood that is the same for all parameters; `notes` on responses and weights.
    heaviest : weight beyond which the likelihood has too few digits.
    wider : what to do where the family is too narrow.
    """

    law: Law
    near: Near
    refuse: Callable[[Vector], None]
    start: Law
    variance: Callable[[Vector, Vector], Vector]
    at_most: Callable[[Vector, Vector, Vector, Vector], Vector]
    ends: Callable[[Below, Vector, float], Vector]
    draw: Callable[[Vector, Vector, Vector, np.random.Generator], Vector]
    heaviest: float
    concave: bool = True
    says: Callable[[Vector], Vector] | None = None
    separated: Callable[[Vector, Vector], Mask] | None = None
    deviance: Callable[[Vector, Vector, Vector], Vector] | None = None
    no_deviance: str = ""
    own: tuple[FamilyParameter, ...] = ()
    sigma: Callable[[Vector], float] = _one
    base: Family | None = None
    shift: Callable[[Vector], tuple[float, Vector]] = _unmoved
    counts: bool = False
    trials: bool = False
    constant: Callable[[Vector, Vector | None], float] = _nothing
    notes: Callable[[Vector, Vector | None], list[str]] = _silent
    wider: str = ""

    @property
    def inflated(self) -> bool:
        """Whether there are extra zeros."""
        return self.base is not None

    def mean(self, eta: Vector, own: Vector) -> Vector:
        """Expected responses."""
        return self.link.mean(eta + self.shift(own)[0])


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
