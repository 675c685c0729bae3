"""The expected error of published integers: of the rounded noise, and of what truncation leaves out; or the most of it.

E|J| of J = round(s Z) is the sum of P(|J| >= k) = T((k - 1/2) / s) over k >= 1, T(x) = P(|Z| > x): the midpoint rule
for the integral s E|Z|. The first terms are summed; the rest is its integral s E(|Z| - x)+ and one correction of Euler
and Maclaurin. Noise is confidential in its scale only through the size of the largest establishment, which is an
argument here. How a cell's jobs divide into kinds of workers is not: where the error depends on it, the most that it
can be is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal

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

SAME = 0.99
"""Errors whose least is at least this share of their most are told as known, not as bounds."""

SIZES = (1, 10, 100, 1_000, 10_000)
"""Sizes of a cell's largest establishment for which the expected error is told."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """How a table divides workers.

    Attributes
    ----------
    levels : counts in each workplace cell.
    some : whether a count is of workers of some kind, by an attribute or a filter.
    filtered : whether workers of some kinds are in no count.
    """

    levels: int
    some: bool
    filtered: bool


@dataclass(frozen=True, slots=True)
class ByLargest(Mapping[int, float]):
    """The expected error of one count, the mean over a cell's counts, by the size of the cell's largest establishment.

    Attributes
    ----------
    at_most : the sizes whose error is an upper bound, because it depends on how workers divide into kinds.
    follows : what the error depends on. The size, in any cell; or the count itself, or the jobs left out, and then the
        errors are those of a cell with no other establishment; or nothing.
    """

    errors: Mapping[int, float]
    at_most: frozenset[int] = frozenset()
    follows: Literal["largest", "count", "left out", "nothing"] = "largest"

    @classmethod
    def of(cls, mechanism: SmoothNoise | LogLaplace | Baseline, kinds: Kinds) -> ByLargest:
        sizes = np.array(SIZES, dtype=np.float64)
        others = kinds.levels if isinstance(mechanism, SmoothNoise) else 1  # every kind's largest may be another one
        error, at_most = mean_error(mechanism, kinds, jobs=sizes * others, largest=sizes)
        found = dict(zip(SIZES, error.tolist(), strict=True))
        bounds = frozenset(size for size, bound in zip(SIZES, at_most, strict=True) if bound)
        if isinstance(mechanism, Baseline):
            return cls(found, bounds, "nothing" if mechanism.theta is None else "left out")
        return cls(found, bounds, "count" if isinstance(mechanism, LogLaplace) else "largest")

    def __getitem__(self, size: int) -> float:
        return self.errors[size]

    def __iter__(self) -> Iterator[int]:
        return iter(self.errors)

    def __len__(self) -> int:
        return len(self.errors)

    def __str__(self) -> str:
        return "; ".join(f"{label} {self.told(size)}" for label, size in spans([self]).items())

    def told(self, size: int) -> str:
        """The error at a size in words."""
        return told(self[size], size in self.at_most)


def spans(tables: Sequence[ByLargest]) -> dict[str, int]:
    """Sizes at which some error changes, by what to call them: errors never fall from one size to a larger one."""
    if tables and all(table.follows == "nothing" for table in tables):
        return {"any": next(iter(tables[0]))}
    found: list[list[int]] = []
    for size in dict.fromkeys(size for table in tables for size in table):
        same = found and all(_at(table, size) == _at(table, found[-1][-1]) for table in tables)
        found[-1].append(size) if same else found.append([size])
    return {f"{span[0]:,}" + f" to {span[-1]:,}" * (len(span) > 1): span[0] for span in found}


def _at(table: ByLargest, size: int) -> tuple[float | None, bool]:
    return table.get(size), size in table.at_most


def told(error: float, at_most: bool = False) -> str:
    """An error in three digits, and that it is a bound."""
    return f"{'at most ' * at_most}{three_digits(error, up=at_most):,.15g}"


def three_digits(error: float, *, up: bool = False) -> float:
    """A mean to three digits; rounded `up`, a bound stays a bound."""
    return float(Context(prec=3, rounding=ROUND_CEILING if up else ROUND_HALF_EVEN).plus(Decimal(error)))


def mean_error(
    mechanism: SmoothNoise | LogLaplace | Baseline,
    kinds: Kinds,
    *,
    jobs: Vector,
    largest: Vector,
    known: bool = True,
    parts: tuple[Vector, Mask] | None = None,
) -> tuple[Vector, Mask]:
    """The mean expected error of the counts of cells of these sizes, and where it is no more than an upper bound.

    `known` says whether `largest` is not itself a bound; `parts` are the jobs that truncation drops, and where that is
    their exact number, if more is known than sizes.
    """
    if isinstance(mechanism, LogLaplace):
        error, sure = multiplied_by_kinds(mechanism, jobs, kinds.levels)
        return error, ~sure | kinds.filtered
    if isinstance(mechanism, SmoothNoise):
        follows = float(mechanism.unit.alpha) * largest > mechanism.floor
        if mechanism.unit.strength == "weak" and kinds.some and not mechanism.joint:
            return by_kinds(mechanism, jobs, largest, kinds.levels), follows
        return integer_error(mechanism, jobs, largest), follows & (not known)
    if mechanism.theta is None:
        return integer_error(mechanism, jobs, largest), np.zeros(len(jobs), dtype=np.bool_)
    missing, certain = parts or dropped(mechanism.theta, jobs, largest)
    exact = (missing == 0) | (certain & (known and not kinds.some))
    return with_dropped(mechanism, missing, kinds.levels), ~exact


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
    chance, excess = chance_beyond(law, (np.arange(TERMS + 1) + 0.5) / s), _excess(law, TERMS / s)[:, 0]
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


def by_kinds(mechanism: SmoothNoise, jobs: Vector, largest: Vector, levels: int) -> Vector:
    """The most that the mean error of a cell's counts can be where noise follows the workers of one kind.

    One establishment has x_v of kind v: at most `largest`, and all x_v together at most `jobs`. Rounding lowers the
    error, and before it is convex in x_v: most where as many kinds as there are jobs for have `largest`, others none.
    """
    share = np.minimum(jobs / np.maximum(largest, 1.0) / levels, 1.0)
    none = mechanism.expected_error(jobs, np.zeros_like(largest))
    rounded = none + share * (mechanism.expected_error(jobs, largest) - none)
    return np.minimum(integer_error(mechanism, jobs, largest), rounded)


def multiplied_by_kinds(mechanism: LogLaplace, jobs: Vector, levels: int) -> tuple[Vector, Mask]:
    """The most that the mean error of a cell's counts can be under log-laplace, and where no division has less.

    Before rounding the error is linear in the count, so that the mean is that of an even division. Rounding takes most
    away where counts are small.
    """
    whole, even = integer_error(mechanism, jobs, jobs), integer_error(mechanism, jobs / levels, jobs)
    one_kind = (whole + (levels - 1) * integer_error(mechanism, np.zeros(1), np.zeros(1))) / levels
    before = mechanism.expected_error(jobs / levels, jobs)
    most = np.minimum(whole, np.maximum(before, np.maximum(even, one_kind)))
    return most, even >= SAME * most


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


def chance_beyond(law: NoiseLaw, x: Vector) -> Vector:
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
        return np.asarray(law.mean_abs * betainc(1 - share, share, y) - x * chance_beyond(law, x))
    if isinstance(law, Polynomial):
        edge, inside = np.maximum(x, law.core), np.maximum(law.core - x, 0.0)
        rate, at_core = law.p / (1 + law.core), math.exp(law._log_outside)
        # Inside the core the chance is an exponential and a constant; its slope at the edge is that of the power law.
        grown = (np.exp(law._log_outside + rate * inside) - at_core) / rate - at_core * inside
        within = (law.p - 1) / law.p * grown + at_core * inside
        return np.asarray(chance_beyond(law, edge) * (1 + edge) / (law.p - 2) + within)
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
