"""Proper priors of one variance: inverse gamma, half-t of its root, and the penalised-complexity prior of its root.

Each is a density of the log variance, which is what posteriors are computed in. Limits that are no laws (a flat root,
an inverse gamma without degrees of freedom) are refused: with them a posterior may not exist, and nothing would say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, lgamma, log, pi

import numpy as np

from discreet.arrays import Vector
from discreet.words.errors import FitError

SMALLEST, LARGEST = 1e-100, 1e100  # squares of what lies far beyond are no doubles
MOST = 1e15  # degrees of freedom: with more, a double has no digits left for the data


@dataclass(frozen=True, slots=True)
class InverseGamma:
    """A variance ~ IG(shape, scale), of mean scale / (shape - 1)."""

    shape: float
    scale: float

    def __post_init__(self) -> None:
        _refuse(self.shape, "shape", "no degrees of freedom: the prior is improper, and so may be the posterior")
        _refuse(self.scale, "scale", "a density that is infinite at zero: the posterior may collapse there")

    def log_density(self, log_variance: Vector) -> Vector:
        """Of the log variance."""
        known = self.shape * log(self.scale) - lgamma(self.shape)
        return np.asarray(known - self.shape * log_variance - self.scale * np.exp(-log_variance))

    @property
    def freedom(self) -> float:
        """What it weighs in observations."""
        return 2 * self.shape

    @property
    def squares(self) -> float:
        """The sum of squares that so many observations would have."""
        return 2 * self.scale

    def __str__(self) -> str:
        return f"inverse-gamma({self.shape:g}, {self.scale:g})"


@dataclass(frozen=True, slots=True)
class HalfT:
    """The root of a variance ~ |t| with `df` degrees of freedom, times `scale` (Gelman 2006): weak, finite at zero."""

    df: float
    scale: float

    def __post_init__(self) -> None:
        _refuse(self.df, "df", "no law of a root")
        _refuse(self.scale, "scale", "a flat root: the prior is improper, and with few groups so is the posterior")

    def log_density(self, log_variance: Vector) -> Vector:
        """Of the log variance; the root s has d s / d log variance = s / 2."""
        known = lgamma((self.df + 1) / 2) - lgamma(self.df / 2) - 0.5 * log(self.df * pi) - log(self.scale)
        square = np.exp(log_variance - 2 * log(self.scale)) / self.df
        return np.asarray(known + 0.5 * log_variance - (self.df + 1) / 2 * np.log1p(square))

    @property
    def freedom(self) -> float:
        return (self.df + 1) / 4

    @property
    def squares(self) -> float:
        return self.scale**2

    def __str__(self) -> str:
        return f"half-t({self.df:g}, {self.scale:g})"


@dataclass(frozen=True, slots=True)
class PC:
    """The root of a variance is exponential, with P(root > upper) = alpha (Simpson et al. 2017): simple first."""

    upper: float
    alpha: float = 0.05

    def __post_init__(self) -> None:
        _refuse(self.upper, "upper", "no bound that a root exceeds rarely")
        _refuse(self.alpha, "alpha", "no chance")
        if self.alpha >= 1:
            raise FitError(
                f"Prior alpha={self.alpha:g} is no chance of exceeding {self.upper:g}.",
                "It lies between 0 and 1.",
                "Use 0.05.",
                about="prior",
            )

    @property
    def rate(self) -> float:
        return -log(self.alpha) / self.upper

    def log_density(self, log_variance: Vector) -> Vector:
        """Of the log variance."""
        return np.asarray(log(self.rate / 2) + 0.5 * log_variance - self.rate * np.exp(0.5 * log_variance))

    @property
    def freedom(self) -> float:
        return 1.0

    @property
    def squares(self) -> float:
        return 1 / self.rate**2

    def __str__(self) -> str:
        return f"pc({self.upper:g}, {self.alpha:g})"


VariancePrior = InverseGamma | HalfT | PC
KINDS: dict[str, Callable[..., VariancePrior]] = {
    "inverse-gamma": InverseGamma,
    "half-t": HalfT,
    "half-cauchy": lambda scale: HalfT(1.0, scale),
    "pc": PC,
}
EXAMPLES = "inverse-gamma(6, 0.6), half-t(3, 0.5), half-cauchy(0.5) and pc(1, 0.05)"


def read_variance_prior(text: object) -> VariancePrior:
    """A prior of one variance, or its text, such as "half-t(3, 0.5)"."""
    if isinstance(text, VariancePrior):
        return text
    found = re.fullmatch(r"\s*([a-z-]+)\s*\(([^()]*)\)\s*", text.lower()) if isinstance(text, str) else None
    try:
        assert found is not None
        return KINDS[found[1]](*(float(number) for number in found[2].split(",")))
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, FitError):
            raise
        raise FitError(
            f"Prior {text!r} of a variance cannot be read.",
            f"There are {EXAMPLES}.",
            "Use one of them, with its numbers.",
            about="prior",
        ) from None


def _refuse(value: object, name: str, why: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FitError(
            f"Prior {name}={value!r} is not a number.", f"There are {EXAMPLES}.", "Use a number.", about="prior"
        )
    most = MOST if name in ("shape", "df") else LARGEST
    if not SMALLEST <= value <= most:
        wrong = "is beyond what doubles can compute with" if isfinite(value) and value > 0 else f"gives {why}"
        raise FitError(
            f"Prior {name}={str(value)[:20]} {wrong}.",
            f"Any number from {SMALLEST:g} to {most:g} is possible.",
            "Use half-t(3, s) with s the size that a root may well have, to say little.",
            about="prior",
        )
