"""The posterior of one number, in three forms that answer alike: mean, sd, density, distribution, quantiles.

`Normals` is a mixture of normals (effects, exact). `GridMarginal` is a density on a grid (variances, exact).
`DrawnMarginal` is a sample of chains; its answers have Monte Carlo error and state it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.bayes.blmm.diagnostics import effective_size, rhat, standard_error
from discreet.models.bayes.blmm.mixture import SQRT_2PI, Mixtures
from discreet.words.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

Numbers: TypeAlias = Vector | list[float] | float


class Marginal(Protocol):
    """The posterior of one number."""

    @property
    def mean(self) -> float: ...

    @property
    def sd(self) -> float: ...

    def pdf(self, x: Numbers) -> Vector:
        """The density at each x."""

    def cdf(self, x: Numbers) -> Vector:
        """P(number <= x) at each x."""

    def quantile(self, levels: Numbers) -> Vector:
        """The value below which the number lies with each probability."""


class _Printed:
    """A posterior's line in print."""

    __slots__ = ()

    def __repr__(self: Marginal) -> str:
        return f"<{type(self).__name__}: mean {self.mean:.6g}, sd {self.sd:.6g}>"


@dataclass(frozen=True, repr=False)
class Normals(_Printed):
    """A mixture of normals."""

    law: Mixtures

    @property
    def mean(self) -> float:
        return float(self.law.mean[0])

    @property
    def sd(self) -> float:
        return float(self.law.sd[0])

    def pdf(self, x: Numbers) -> Vector:
        found: Vector = self.law.pdf(_vector(x)[None])[0]
        return found

    def cdf(self, x: Numbers) -> Vector:
        found: Vector = self.law.cdf(_vector(x)[None])[0]
        return found

    def quantile(self, levels: Numbers) -> Vector:
        found: Vector = self.law.quantile(inside(levels))[0]
        return found


@dataclass(frozen=True, repr=False)
class GridMarginal(_Printed):
    """A positive number whose logarithm has a density on a fine grid."""

    log_values: Vector
    density_of_log: Vector

    @classmethod
    def of(cls, log_values: Vector, density: Vector) -> GridMarginal:
        return cls(log_values, density / np.trapezoid(density, log_values))

    @cached_property
    def _cumulative(self) -> Callable[[Vector], Vector]:
        from scipy.interpolate import CubicSpline

        found: Callable[[Vector], Vector] = CubicSpline(self.log_values, self.density_of_log).antiderivative()
        return found

    @property
    def mean(self) -> float:
        return float(np.trapezoid(np.exp(self.log_values) * self.density_of_log, self.log_values))

    @property
    def sd(self) -> float:
        values = np.exp(self.log_values)
        return float(np.sqrt(np.trapezoid((values - self.mean) ** 2 * self.density_of_log, self.log_values)))

    def pdf(self, x: Numbers) -> Vector:
        x = _vector(x)
        with np.errstate(all="ignore"):
            at = np.interp(np.log(x), self.log_values, self.density_of_log, left=0.0, right=0.0) / x
        return np.where(x > 0, at, 0.0)

    def cdf(self, x: Numbers) -> Vector:
        x = _vector(x)
        with np.errstate(all="ignore"):
            at = np.clip(np.log(x), self.log_values[0], self.log_values[-1])
        return np.where(x > 0, np.clip(self._cumulative(at), 0.0, 1.0), 0.0)

    def quantile(self, levels: Numbers) -> Vector:
        from scipy.optimize import brentq

        low, high = self.log_values[0], self.log_values[-1]
        total = float(self._cumulative(high))
        found = [brentq(lambda t, q=q: float(self._cumulative(t)) / total - q, low, high) for q in inside(levels)]
        return np.asarray(np.exp(found))


@dataclass(frozen=True, repr=False)
class DrawnMarginal(_Printed):
    """Draws of one number, shape (chains, length); every answer is an estimate."""

    draws: Matrix

    @property
    def mean(self) -> float:
        """The mean of the draws."""
        return float(self.draws.mean())

    @property
    def sd(self) -> float:
        """Their standard deviation."""
        return float(self.draws.std(ddof=1))

    @cached_property
    def rhat(self) -> float:
        """Split R-hat; 1 where all chains tell the same."""
        return float(rhat(self.draws[:, :, None])[0])

    @cached_property
    def effective(self) -> float:
        """Independent draws that would estimate the mean as well."""
        return float(effective_size(self.draws[:, :, None])[0])

    @cached_property
    def error(self) -> float:
        """Monte Carlo standard error of the mean."""
        return float(standard_error(self.draws[:, :, None])[0])

    @cached_property
    def _ordered(self) -> Vector:
        return np.sort(self.draws.ravel())

    def pdf(self, x: Numbers) -> Vector:
        """A normal kernel estimate with Silverman's width."""
        known, x = self._ordered, _vector(x)
        low, high = np.quantile(known, [0.25, 0.75])
        width = 0.9 * min(self.sd, (high - low) / 1.349) * len(known) ** -0.2
        return np.array([np.exp(-0.5 * ((at - known) / width) ** 2).mean() / (width * SQRT_2PI) for at in x])

    def cdf(self, x: Numbers) -> Vector:
        """The share of draws up to each of `x`."""
        return np.asarray(np.searchsorted(self._ordered, _vector(x), side="right") / self._ordered.size)

    def quantile(self, levels: Numbers) -> Vector:
        """Quantiles of the draws."""
        return np.asarray(np.quantile(self._ordered, inside(levels)))


def inside(levels: Numbers) -> Vector:
    """Probabilities as a vector, refused unless strictly between 0 and 1."""
    asked = _vector(levels)
    if not ((asked > 0) & (asked < 1)).all():
        raise DataError(
            f"A quantile at {', '.join(f'{q:g}' for q in asked)}: only probabilities inside (0, 1) have one.",
            remedy="Divide percentages by 100.",
            about="probability",
        )
    return asked


def _vector(x: Numbers) -> Vector:
    return np.atleast_1d(np.asarray(x, dtype=np.float64))
