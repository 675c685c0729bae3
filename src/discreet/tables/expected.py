"""The expected error of published integers: of the rounded noise, and of what truncation leaves out.

E|J| of J = round(s Z) is the sum of P(|J| >= k) = T((k - 1/2) / s) over k >= 1, T(x) = P(|Z| > x): the midpoint rule
for the integral s E|Z|. The first terms are summed; the rest is its integral s E(|Z| - x)+ and one correction of Euler
and Maclaurin. Noise is confidential in its scale only through the size of the largest establishment, which is an
argument here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.arrays import Mask, Vector
from discreet.errors import Infeasible
from discreet.noise.laws import DiscreteLaplace, GeneralisedCauchy, Laplace, Polynomial, RadialPolynomial
from discreet.privacy.losses import shown
from discreet.privacy.units import EstablishmentNodes, Establishments, Unit
from discreet.tables.mechanisms import Baseline, LogLaplace, NoiseLaw, SmoothNoise

TERMS = 16
WIDE = 30.0
"""Rounding changes the mean of noise as wide as this by less than one part in 10,000."""

MOST_WORKERS = 1e9
MOST_NOISE = 2**50
"""A mechanism's expected noise for an establishment of `MOST_WORKERS`, at most: sums of counts fit in 64 bits."""

LEAST_ALPHA = Fraction(1, 10**9)


def integer_error(mechanism: SmoothNoise | LogLaplace | Baseline, count: Vector, largest: Vector) -> Vector:
    """E|published - count|, of whole numbers."""
    if isinstance(mechanism, LogLaplace):
        return _mean_multiplied(mechanism, count)
    scale, place = np.unique(mechanism.scale(largest), return_inverse=True)
    return mean_rounded(mechanism.law, scale)[place].reshape(np.shape(largest))


def mean_rounded(law: NoiseLaw | DiscreteLaplace, scale: Vector) -> Vector:
    """E|J| of one coordinate of the noise."""
    if isinstance(law, DiscreteLaplace):
        return law.mean(scale)
    mean = scale * law.mean_abs
    near = mean < WIDE
    s = scale[near, None]
    chance, excess = _beyond(law, (np.arange(TERMS + 1) + 0.5) / s), _excess(law, TERMS / s)[:, 0]
    mean[near] = chance[:, :-1].sum(axis=1) + s[:, 0] * excess + (chance[:, -1] - chance[:, -2]) / 24
    return mean


def _mean_multiplied(mechanism: LogLaplace, count: Vector) -> Vector:
    """E|J - n| of log-laplace, which multiplies: the same sum as `mean_rounded`, on either side of the count n."""
    n, steps = np.asarray(count, dtype=np.float64)[..., None], np.arange(TERMS + 1) + 0.5
    above = mechanism.beyond(n, n + steps)[2]
    below = 1 - mechanism.beyond(n, n - steps)[2]
    rest = mechanism.beyond(n, n + TERMS)[0] + mechanism.beyond(n, n - TERMS)[1]
    chance = above + below
    return np.asarray(chance[..., :-1].sum(axis=-1) + rest[..., 0] + (chance[..., -1] - chance[..., -2]) / 24)


def dropped(theta: int, jobs: Vector, largest: Vector) -> tuple[Vector, Mask]:
    """Jobs of a cell in establishments above theta: at most how many, and where it is exactly so many.

    Only the largest establishment's size is known. Where the others together have at most theta jobs it is the only
    one that can be above.
    """
    alone = jobs - largest <= theta
    return np.where(largest <= theta, 0.0, np.where(alone, largest, jobs)), (largest <= theta) | alone


def with_dropped(mechanism: Baseline, missing: Vector, levels: int) -> Vector:
    """The mean error of a cell's counts of which `missing` jobs are left out; at most this for several levels.

    A count that lacks b jobs has E|J - b| = b + e^(-b/s) E|J| under either Laplace law, which is convex in b: the
    mean is largest if all of them are of one kind.
    """
    noise = mean_rounded(mechanism.law, np.array([mechanism.width]))
    one = missing + np.exp(-missing / mechanism.width) * noise
    return np.asarray((one + (levels - 1) * noise) / levels)


def refuse_extremes(unit: Unit, epsilon: Fraction) -> None:
    """Refuse amounts that double precision could not calibrate with."""
    sensitivity = unit.theta if isinstance(unit, EstablishmentNodes) else 1
    if sensitivity > MOST_NOISE * epsilon:
        raise _too_wide(f"epsilon={shown(epsilon)} for counts that one change moves by {shown(Fraction(sensitivity))}")
    if isinstance(unit, Establishments) and not LEAST_ALPHA <= unit.alpha <= 1 / LEAST_ALPHA:
        raise Infeasible(
            f"alpha={shown(unit.alpha)} is out of reach. Noise is computed for {float(LEAST_ALPHA):g} to "
            f"{float(1 / LEAST_ALPHA):g}. Use for example alpha=0.1, or unit=Workers() to protect single jobs only."
        )


def refuse_overflow(mechanism: SmoothNoise | LogLaplace | Baseline) -> None:
    """Refuse noise that 64-bit integers could not hold, before anything is spent."""
    size = np.array([MOST_WORKERS])
    if not mechanism.expected_error(size, size)[0] <= MOST_NOISE:
        raise _too_wide(f"{mechanism.name} with {mechanism.loss}")


def _too_wide(asked: str) -> Infeasible:
    return Infeasible(
        f"{asked} needs noise that 64-bit counts do not hold with room to spare. At most {float(MOST_NOISE):.2g} jobs "
        f"are added to the count of an establishment of {MOST_WORKERS:,.0f} workers. Raise epsilon, or hide less."
    )


def _beyond(law: NoiseLaw, x: Vector) -> Vector:
    """P(|Z_1| > x)."""
    if not isinstance(law, RadialPolynomial):
        return 2 * law.survival(x)
    r, weight = radius(law)
    return np.array([np.maximum(1 - row[:, None] / r, 0.0) ** (law.d - 1) @ weight for row in x]).reshape(x.shape)


def _excess(law: NoiseLaw, x: Vector) -> Vector:
    """E(|Z_1| - x)+, the integral of P(|Z_1| > x) from x on."""
    from scipy.special import betainc, expit

    if isinstance(law, Laplace):
        return np.exp(-x)
    if isinstance(law, GeneralisedCauchy):
        y, share = expit(-law.g * np.log(x)), 2 / law.g
        return np.asarray(law.mean_abs * betainc(1 - share, share, y) - x * _beyond(law, x))
    if isinstance(law, Polynomial):
        edge, inside = np.maximum(x, law.core), np.maximum(law.core - x, 0.0)
        rate, at_core = law.p / (1 + law.core), math.exp(law._log_outside)
        # Inside the core the chance is an exponential and a constant; its slope at the edge is that of the power law.
        grown = (np.exp(law._log_outside + rate * inside) - at_core) / rate - at_core * inside
        within = (law.p - 1) / law.p * grown + at_core * inside
        return np.asarray(_beyond(law, edge) * (1 + edge) / (law.p - 2) + within)
    r, weight = radius(law)
    part = [np.maximum(1 - row[:, None] / r, 0.0) ** law.d @ (weight * r) / law.d for row in x]
    return np.array(part).reshape(x.shape)


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
