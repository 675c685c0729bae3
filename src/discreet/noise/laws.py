"""The laws of privacy noise: densities, tails, moments, and the probabilities of their rounded versions.

A release adds an integer whose exact distribution is `probability`: that of ``round(scale * Z)`` for a standard
variable Z, or its own for `DiscreteLaplace`. Nothing is drawn here; `discreet.noise.sampler` does that. Every law is
symmetric, so Z is given by its density, its upper tail and the mass of an interval of the positive half line. Masses
keep their *relative* accuracy in the far tail and for large scales: privacy losses are ratios of them.

Smooth Gamma is `GeneralisedCauchy` with g = 4 (Haney et al. 2017); the polynomial laws are ours, related to
PolyPlace (Hladík and Tětek 2025). Notation of docs/proofs/sampler.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.noise.law import Law, Rounded, Symmetric, positive, require
from discreet.noise.mass import cube_mass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from discreet.arrays import Mask, Vector

MOST_COORDINATES = 10_000  # the sampler's error bounds are proved for as many operations as these take

LARGE = 600.0  # e to it is a double


@dataclass(frozen=True, slots=True)
class Laplace(Symmetric):
    """Density exp(-|z|) / 2."""

    mean_abs: ClassVar[float] = 1.0
    variance: ClassVar[float] = 2.0

    def log_density(self, z: ArrayLike) -> Vector:
        return np.asarray(-np.abs(np.asarray(z, dtype=np.float64)) - math.log(2))

    def _tail(self, x: Vector) -> Vector:
        return np.asarray(np.exp(-x) / 2)

    def _tail_inverse(self, t: Vector) -> Vector:
        return np.asarray(-np.log(2 * t))

    def _centre(self, x: Vector) -> Vector:
        return np.asarray(-np.expm1(-x))

    def _cell(self, a: Vector, w: Vector) -> Vector:
        return np.asarray(-np.exp(-a) * np.expm1(-w) / 2)

    def excess(self, x: Vector) -> Vector:
        return np.exp(-x)


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Law):
    """Probability proportional to exp(-|j| / scale) = q^|j|: the Laplace law of integers, geometric on either side.

    If counts move by one, it needs no more noise than epsilon requires; a rounded Laplace variable has cosh(1 / (2
    scale)) times its mean.
    """

    def probability(self, j: ArrayLike, scale: ArrayLike) -> Vector:
        j, scale = np.abs(np.asarray(j, dtype=np.float64)), positive(scale)
        return np.asarray(np.tanh(0.5 / scale) * np.exp(-j / scale))

    def mean(self, scale: ArrayLike) -> Vector:
        """E|J| = 1 / sinh(1 / scale)."""
        scale = positive(scale)
        return np.asarray(2 * np.exp(-1 / scale) / -np.expm1(-2 / scale))

    def reach(self, level: float, scale: float) -> int:
        """The least r with P(|J| <= r) >= level, rounded outward; P(|J| > r) = 2 q^(r+1) / (1 + q)."""
        most = scale * (math.log(2 / (1 - level)) - math.log1p(math.exp(-1 / scale)))
        return max(math.ceil(most * (1 + 2.0**-40)) - 1, 0)


class PolynomialTail(Rounded):
    """Density proportional to exp(-psi(t)), t = |z_1| + ... + |z_d|: a Laplace law in a core t < c, a power beyond.

    psi(t) = p t / (1+c) for t <= c and p c / (1+c) + p ln((1+t) / (1+c)) for t >= c; its slope has no jump. Without
    a core the density is proportional to (1+t)^-p.
    """

    __slots__ = ()
    p: float
    core: float

    def __post_init__(self) -> None:
        p, d, c = self.p, self.dimension, self.core
        exists = 1 <= d <= MOST_COORDINATES and p > d and c >= 0 and math.isfinite(p + c)
        # The sampler needs the density of ln(1+t) to fall beyond the core; it takes doubles as exact, so this does.
        falls = exists and (c == 0 or Fraction(c) * (Fraction(p) - d) > d - 1)
        least = f" = {(d - 1) / (p - d):.6g}" if exists else ""
        require(
            falls, str(self), f"p > d, 1 <= d <= {MOST_COORDINATES}, and core = 0 or core > (d-1)/(p-d){least}, d = {d}"
        )

    @property
    def mean_abs(self) -> float:
        return self._moment(1)

    @property
    def variance(self) -> float:
        return 2 * self._moment(2)

    def log_density(self, z: ArrayLike) -> Vector:
        return self._log_density_at(self._radius(z))

    @abstractmethod
    def _radius(self, z: ArrayLike) -> Vector:
        """t, the sum of the sizes of the coordinates."""

    @property
    def _rate(self) -> float:
        """The slope of psi inside the core."""
        return self.p / (1 + self.core)

    @property
    def _edge(self) -> float:
        """psi(core)."""
        return self._rate * self.core

    def _log_density_at(self, t: Vector) -> Vector:
        constant = self.dimension * math.log(self._rate / 2) - self._log_mass(self.dimension)
        beyond = np.log1p(np.maximum(t - self.core, 0) / (1 + self.core))
        return np.asarray(constant - self._rate * np.minimum(t, self.core) - self.p * beyond)

    def _moment(self, k: int) -> float:
        """E|z_1|^k / k!, which is the integral of t^(d+k-1) exp(-psi(t)) / (d+k-1)! over that for k = 0."""
        d = self.dimension
        if self.p <= d + k:
            return math.inf
        return math.exp(self._log_mass(d + k) - self._log_mass(d)) / self._rate**k

    def _log_mass(self, n: int) -> float:
        """The logarithm of the integral of t^(n-1) exp(-psi(t)), over its value for psi(t) = rate * t.

        By parts from the core's edge: 1 + sum of e^-edge edge^(n-i) / (n-i)! (p^i / ((p-1)...(p-i)) - 1), i = 1..n.
        """
        from scipy.special import gammaln, xlogy

        i = np.arange(1, n + 1)
        growth = -np.cumsum(np.log1p(-i / self.p))
        poisson = xlogy(n - i, self._edge) - gammaln(n - i + 1) - self._edge
        return float(np.logaddexp.reduce(poisson + growth + np.log(-np.expm1(-growth)), initial=0.0))


@dataclass(frozen=True, slots=True)
class Polynomial(PolynomialTail, Symmetric):
    """Density proportional to (1+|z|)^-p, for p > 1, or to exp(-p |z| / (1+core)) where |z| < core."""

    p: float
    core: float = 0.0

    def _radius(self, z: ArrayLike) -> Vector:
        return np.abs(np.asarray(z, dtype=np.float64))

    def excess(self, x: Vector) -> Vector:
        edge, inside = np.maximum(x, self.core), np.maximum(self.core - x, 0.0)
        rate, at_core = self.p / (1 + self.core), math.exp(self._log_outside)
        # Inside the core the chance is an exponential and a constant; its slope at the edge is that of the power law.
        grown = (np.exp(self._log_outside + rate * inside) - at_core) / rate - at_core * inside
        within = (self.p - 1) / self.p * grown + at_core * inside
        return np.asarray(self.beyond(edge) * (1 + edge) / (self.p - 2) + within)

    def _inside(self, a: Vector, w: Vector) -> Vector:
        """P(a < Z < a + w), for a + w <= core."""
        share = 1 / (1 + math.exp(-self._edge) / (self.p - 1))
        return np.asarray(-share / 2 * np.exp(-self._rate * a) * np.expm1(-self._rate * w))

    @property
    def _log_outside(self) -> float:
        """ln P(|Z| > core)."""
        return -self._edge - math.log1p(math.expm1(-self._edge) / self.p)

    def _outside(self, a: Vector) -> Vector:
        """P(Z > a), for a >= core."""
        return np.asarray(np.exp(self._log_outside + (1 - self.p) * np.log1p((a - self.core) / (1 + self.core))) / 2)

    def _tail(self, x: Vector) -> Vector:
        c = self.core
        return np.asarray(self._inside(np.minimum(x, c), np.maximum(c - x, 0)) + self._outside(np.maximum(x, c)))

    def _tail_inverse(self, t: Vector) -> Vector:
        # Of the two parts of the radius, that inside the core and that beyond it, one is at its end.
        inside = np.maximum(2 * t - (1 - 2 * t) * math.exp(-self._edge) / (self.p - 1), math.exp(-self._edge))
        outside = np.minimum(np.log(2 * t) - self._log_outside, 0)
        return np.asarray((1 + self.core) * np.expm1(outside / (1 - self.p)) - np.log(inside) / self._rate)

    def _centre(self, x: Vector) -> Vector:
        return np.asarray(2 * self._cell(np.zeros_like(x), x))

    def _cell(self, a: Vector, w: Vector) -> Vector:
        inner, start = np.clip(self.core - a, 0, w), np.maximum(a, self.core)
        share = -np.expm1((1 - self.p) * np.log1p((w - inner) / (1 + start)))
        return np.asarray(self._inside(np.minimum(a, self.core), inner) + self._outside(start) * share)


@dataclass(frozen=True, slots=True)
class GeneralisedCauchy(Symmetric):
    """Density proportional to 1 / (1 + |z|^g), for g > 1; g = 4 has variance 1."""

    g: float = 4.0

    def __post_init__(self) -> None:
        require(math.isfinite(self.g) and self.g > 1, f"GeneralisedCauchy(g={self.g})", "g > 1")

    @property
    def mean_abs(self) -> float:
        return 1 / (2 * math.cos(math.pi / self.g)) if self.g > 2 else math.inf

    @property
    def variance(self) -> float:
        return math.sin(math.pi / self.g) / math.sin(3 * math.pi / self.g) if self.g > 3 else math.inf

    def excess(self, x: Vector) -> Vector:
        from scipy.special import betainc, expit

        y, share = expit(-self.g * np.log(x)), 2 / self.g
        return np.asarray(self.mean_abs * betainc(1 - share, share, y) - x * self.beyond(x))

    def log_density(self, z: ArrayLike) -> Vector:
        constant = math.log(self.g * math.sin(math.pi / self.g) / (2 * math.pi))
        return np.asarray(constant - np.logaddexp(0, self._log_odds(np.abs(np.asarray(z, dtype=np.float64)))))

    def _tail(self, x: Vector) -> Vector:
        from scipy.special import betainc, betaincc, expit

        # Of the odds z^g : 1, the smaller one is the accurate one.
        y, near = expit(-np.abs(self._log_odds(x))), np.asarray(x) < 1
        tail = np.asarray(betainc(1 - 1 / self.g, 1 / self.g, np.where(near, 0.0, y)))
        return np.asarray(np.where(near, betaincc(1 / self.g, 1 - 1 / self.g, np.where(near, y, 0.0)), tail) / 2)

    def _tail_inverse(self, t: Vector) -> Vector:
        from scipy.special import betaincinv

        y = betaincinv(1 - 1 / self.g, 1 / self.g, 2 * t)
        return np.asarray((betaincinv(1 / self.g, 1 - 1 / self.g, 1 - 2 * t) / y) ** (1 / self.g))

    def _centre(self, x: Vector) -> Vector:
        from scipy.special import betainc, expit

        near = betainc(1 / self.g, 1 - 1 / self.g, expit(self._log_odds(x)))
        return np.asarray(np.where(x < 1, near, 1 - 2 * self._tail(x)))

    def _cell(self, a: Vector, w: Vector) -> Vector:
        # The density is analytic up to the roots of z^g = -1, the nearest at the angle pi / g.
        pole = math.sin(math.pi / max(self.g, 2.0))
        return _narrow_or_wide(self, a, w, narrow=w < np.maximum(pole, (a - 1) / 2))

    def _log_odds(self, x: Vector) -> Vector:
        with np.errstate(divide="ignore"):
            return np.asarray(self.g * np.log(x))


@dataclass(frozen=True, slots=True)
class Gaussian(Symmetric):
    """Density exp(-z^2 / 2) / sqrt(2 pi)."""

    mean_abs: ClassVar[float] = math.sqrt(2 / math.pi)
    variance: ClassVar[float] = 1.0

    def log_density(self, z: ArrayLike) -> Vector:
        return np.asarray(-(np.asarray(z, dtype=np.float64) ** 2 + math.log(2 * math.pi)) / 2)

    def excess(self, x: Vector) -> Vector:
        return np.asarray(self.mean_abs * np.exp(-(x**2) / 2) - x * self.beyond(x))

    def _tail(self, x: Vector) -> Vector:
        from scipy.special import ndtr

        return np.asarray(ndtr(-x))

    def _tail_inverse(self, t: Vector) -> Vector:
        from scipy.special import ndtri

        return np.asarray(-ndtri(t))

    def _centre(self, x: Vector) -> Vector:
        from scipy.special import erf

        return np.asarray(erf(x / math.sqrt(2)))

    def _cell(self, a: Vector, w: Vector) -> Vector:
        return _narrow_or_wide(self, a, w, narrow=w * (a + w) < 2)


@dataclass(frozen=True, slots=True)
class RadialPolynomial(PolynomialTail):
    """Density on R^d proportional to (1+t)^-p, t = |z_1| + ... + |z_d|, or to exp(-p t / (1+core)) where t < core.

    It exists for p > d and core = 0 or core > (d-1)/(p-d).
    """

    p: float
    d: int
    core: float = 0.0

    @property
    def dimension(self) -> int:
        return self.d

    def probability(self, j: ArrayLike, scale: ArrayLike) -> Vector:
        return cube_mass(self._log_density_at, self._vectors(j), positive(scale), kink=self.core, slope=self._rate)

    def beyond(self, x: Vector) -> Vector:
        r, weight = radius(self)
        return np.array([np.maximum(1 - row[:, None] / r, 0.0) ** (self.d - 1) @ weight for row in x]).reshape(x.shape)

    def excess(self, x: Vector) -> Vector:
        r, weight = radius(self)
        part = [np.maximum(1 - row[:, None] / r, 0.0) ** self.d @ (weight * r) / self.d for row in x]
        return np.array(part).reshape(x.shape)

    @property
    def radius_range(self) -> tuple[float, float]:
        """Radii between which nearly all of the law lies."""
        nodes, _ = radius(self)
        return float(nodes[0]), float(nodes[-1])

    def radius_survival(self, r: ArrayLike) -> Vector:
        """P(|z_1| + ... + |z_d| > r): an incomplete gamma function inside the core, a beta function beyond."""
        from scipy.special import betainc, betaln, gammainc, gammaincc, gammaln, hyp2f1

        r, c, d, a = np.asarray(r, dtype=np.float64), self.core, self.d, self.p - self.d
        x, core = 1 / (1 + np.maximum(r, c)), 1 / (1 + c)
        if c == 0:
            return np.asarray(betainc(a, d, x))
        # The weight of the law without a core, relative to that of the exponential law.
        log = self.p * math.log1p(c) - self._edge + betaln(a, d) + d * math.log(self._rate) - gammaln(d)

        def beyond(x: Vector) -> Vector:
            if log < LARGE:
                return np.asarray(math.exp(log) * betainc(a, d, x))
            # The beta function is next to nothing then: by its series, in logarithms.
            rest = log - betaln(a, d) - math.log(a) + a * np.log(x) + d * np.log1p(-x)
            return np.asarray(np.exp(rest) * hyp2f1(a + d, 1, a + 1, x))

        inside = gammaincc(d, self._rate * np.minimum(r, c)) - gammaincc(d, self._edge)
        return np.asarray((inside + beyond(x)) / (gammainc(d, self._edge) + beyond(np.asarray(core))))

    def _radius(self, z: ArrayLike) -> Vector:
        return np.asarray(np.abs(self._vectors(z)).sum(axis=-1))

    def _vectors(self, z: ArrayLike) -> Vector:
        z = np.asarray(z, dtype=np.float64)
        require(
            z.ndim > 0 and z.shape[-1] == self.d,
            f"A point of shape {z.shape} for {self}",
            f"a last axis of length {self.d}",
        )
        return z


def _narrow_or_wide(law: Symmetric, a: Vector, w: Vector, *, narrow: Mask) -> Vector:
    """The mass of (a, a+w): quadrature where the tails at both ends nearly cancel, their difference elsewhere."""
    x, weight = np.polynomial.legendre.leggauss(16)
    a, w, narrow = np.broadcast_arrays(a, w, narrow)
    mass = np.empty(a.shape)
    near, far = w[narrow], a[~narrow]
    nodes = a[narrow][:, None] + near[:, None] * (1 + x) / 2
    mass[narrow] = np.exp(law.log_density(nodes)) @ weight * near / 2
    mass[~narrow] = law._tail(far) - law._tail(far + w[~narrow])
    return mass


@lru_cache(maxsize=64)
def radius(law: RadialPolynomial) -> tuple[Vector, Vector]:
    """Nodes and probabilities of the L1 radius, from its density r^(d-1) h(r), on a logarithmic grid."""

    def log_mass(log_r: Vector) -> Vector:
        axis = np.zeros((len(log_r), law.dimension))
        axis[:, 0] = np.exp(log_r)
        return law.log_density(axis) + law.dimension * log_r

    wide = np.linspace(-40, 40, 2001)
    seen = wide[(mass := log_mass(wide)) > mass.max() - 45]
    log_r = np.linspace(seen[0], seen[-1], 2001)
    weight = np.exp(log_mass(log_r) - mass.max())
    return np.exp(log_r), weight / weight.sum()
