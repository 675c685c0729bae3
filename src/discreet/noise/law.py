"""The parts of a noise law: probabilities of integers, and for rounded laws the density, tails and moments behind them.

The laws themselves are in `laws`; nothing here draws anything. E|J| of J = round(s Z) is the sum of
P(|J| >= k) = T((k - 1/2) / s) over k >= 1, T(x) = P(|Z| > x): the midpoint rule for the integral s E|Z|. The first
terms are summed; the rest is its integral s E(|Z| - x)+ and one correction of Euler and Maclaurin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from discreet.arrays import Vector

TERMS = 16
WIDE = 30.0
"""Rounding changes the mean of noise as wide as this by less than one part in 10,000."""


class Law(ABC):
    """The distribution of integer noise, for every scale."""

    __slots__ = ()

    @property
    def dimension(self) -> int:
        """How many integers are drawn together."""
        return 1

    @abstractmethod
    def probability(self, j: ArrayLike, scale: ArrayLike) -> Vector:
        """The probability of integers j; the last axis of j holds the coordinates if there are several."""


class Rounded(Law):
    """The law of round(scale * Z), from that of Z.

    Attributes
    ----------
    mean_abs : E|Z|, of one coordinate; infinite where it does not exist.
    variance : Var Z, of one coordinate; infinite where it does not exist.
    """

    __slots__ = ()

    @property
    def jumps(self) -> Vector:
        """The jumps of the density on the positive half line, as far as outputs are examined."""
        return np.empty(0)

    @property
    @abstractmethod
    def mean_abs(self) -> float: ...

    @property
    @abstractmethod
    def variance(self) -> float: ...

    @abstractmethod
    def log_density(self, z: ArrayLike) -> Vector:
        """The logarithm of the density at z; the last axis of z holds the coordinates if there are several."""

    @abstractmethod
    def beyond(self, x: Vector) -> Vector:
        """P(|Z| > x), of one coordinate."""

    @abstractmethod
    def excess(self, x: Vector) -> Vector:
        """E(|Z| - x)+, of one coordinate: the integral of `beyond` from x on."""

    def mean(self, scale: Vector) -> Vector:
        """E|J| of one coordinate."""
        mean = scale * self.mean_abs
        near = mean < WIDE
        s = scale[near, None]
        chance, excess = self.beyond((np.arange(TERMS + 1) + 0.5) / s), self.excess(TERMS / s)[:, 0]
        mean[near] = chance[:, :-1].sum(axis=1) + s[:, 0] * excess + (chance[:, -1] - chance[:, -2]) / 24
        return mean


class Symmetric(Rounded):
    """A law on the line: what follows from its density, its upper tail and the mass of an interval."""

    __slots__ = ()

    @abstractmethod
    def _tail(self, x: Vector) -> Vector:
        """P(Z > x), for x >= 0."""

    @abstractmethod
    def _tail_inverse(self, t: Vector) -> Vector:
        """The x >= 0 with P(Z > x) = t, for 0 <= t <= 1/2."""

    @abstractmethod
    def _centre(self, x: Vector) -> Vector:
        """P(|Z| < x), relatively accurate for small x too."""

    @abstractmethod
    def _cell(self, a: Vector, w: Vector) -> Vector:
        """P(a < Z < a + w), for a >= w / 2 > 0, relatively accurate."""

    def survival(self, z: ArrayLike) -> Vector:
        z = np.asarray(z, dtype=np.float64)
        tail = self._tail(np.abs(z))
        return np.asarray(np.where(z < 0, 1 - tail, tail))

    def beyond(self, x: Vector) -> Vector:
        return 2 * self.survival(x)

    def cdf(self, z: ArrayLike) -> Vector:
        return self.survival(-np.asarray(z, dtype=np.float64))

    def quantile(self, q: ArrayLike) -> Vector:
        q = np.asarray(q, dtype=np.float64)
        if not np.all((q >= 0) & (q <= 1)):
            raise PrivacyError(
                "A quantile was asked for outside [0, 1].",
                "Probabilities lie between 0 and 1.",
                "Divide percentages by 100.",
                about="probability",
            )
        with np.errstate(divide="ignore"):
            x = self._tail_inverse(np.minimum(q, 1 - q))
        return np.asarray(np.where(q < 0.5, -x, x))

    def probability(self, j: ArrayLike, scale: ArrayLike) -> Vector:
        j, scale = np.abs(np.asarray(j, dtype=np.float64)), positive(scale)
        with np.errstate(divide="ignore"):
            outer = self._cell((np.maximum(j, 1) - 0.5) / scale, 1 / scale)
        return np.asarray(np.where(j == 0, self._centre(0.5 / scale), outer))


def positive(scale: ArrayLike) -> Vector:
    """Scales as numbers, found to be above zero."""
    scale = np.asarray(scale, dtype=np.float64)
    require(bool(np.all((scale > 0) & np.isfinite(scale))), "A scale that is not a positive number", "scale > 0")
    return scale


def require(holds: bool, asked: str, possible: str) -> None:
    """Refuse a parameter for which a law does not exist."""
    if not holds:
        raise PrivacyError(
            f"{asked} is not a law of noise.", f"The law exists for {possible}.", "Change that parameter.", about="law"
        )
