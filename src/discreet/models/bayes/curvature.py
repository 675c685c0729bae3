"""Information about the coefficients of a perturbed objective: two noisy sums, which give standard errors.

The first sum is X'X, of rows that were shortened to the norm R, on a grid. If columns are public, it is exact and free,
and comes from the design that was read without responses: the rows of a fit tell which responses are missing. How many
are is then the first sum instead, a number with noise.
The second is that of the squared pulls over tau^2, (r / tau)^2 / (1 + (r / tau)^2), at the released coefficients. Both
give the objective's curvature H and the variance of a pull, and with these the effect of noise and sampling on the
minimum. Doubt about the sums makes errors larger, never smaller. Derivation: section 3 of the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.models.bayes.reach import reach_of
from discreet.models.bayes.summation import noisy_sums
from discreet.noise.laws import Laplace
from discreet.noise.sampler import add_noise
from discreet.privacy.losses import upward

if TYPE_CHECKING:
    from discreet.models.bayes.regression import KnownDesign
    from discreet.noise.source import Source

STEPS = 2**16  # of the grid of X: steps in the norm
BLOCK = 2**20  # rows whose products of steps add up exactly in doubles
MISSING = Fraction(1, 5)  # share of what sums cost for the number of rows without a response, if columns are public
SURE = 0.95  # the probability with which noise in X'X is within its allowance
ALLOWED = 1.0  # scales of the noise in the sum of squared pulls that are added to it
DRAWS, LARGE = 4000, 12  # simulated matrices of noise, and the size from which their law is taken as known


@dataclass(frozen=True, slots=True)
class Paid:
    """The cost of the two sums, and their noise; `gram` is 0 where columns are public, and `missing` elsewhere."""

    gram: Fraction
    pulls: Fraction
    missing: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, *, public: bool) -> Paid:
        if public:
            return cls(Fraction(0), (1 - MISSING) * epsilon, MISSING * epsilon)
        return cls(epsilon / 2, epsilon / 2, Fraction(0))

    def gram_scale(self, norm: float) -> float:
        """The scale of the Laplace noise in an entry of X'X."""
        return 2 * norm**2 / float(self.gram) if self.gram else 0.0


class MinimumLaw(TypedDict):
    """The constants of a perturbed objective that move its minimum: see `Perturbation`."""

    tau: float
    penalty: float
    scale: float
    smoothing: float


class FitRows(NamedTuple):
    """The rows of a fit; confidential. Those that cannot be used are zeros in X, and not `usable`."""

    X: Matrix
    y: Vector
    usable: Mask


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of the rows.

    Attributes
    ----------
    gram, gram_scale : X'X, and the scale of the noise in its entries.
    pulls, pulls_scale : the sum of squared pulls over tau^2, and the scale of its noise.
    missing, missing_scale : the number of rows in X'X that cannot be used, and the scale of its noise.
    """

    gram: Matrix
    gram_scale: float
    pulls: float
    pulls_scale: float
    missing: float = 0.0
    missing_scale: float = 0.0


@dataclass(frozen=True, slots=True)
class Errors:
    """For each coefficient: standard error and half-width of the interval; infinite without information."""

    std_error: Vector
    reach: Vector


def tell(
    rows: FitRows, f: Vector, paid: Paid, *, known: KnownDesign | None, norm: float, tau: float, source: Source
) -> Told:
    """Draw both sums; rows of X are no longer than the norm."""
    with np.errstate(all="ignore"):
        squared = np.where(rows.usable, 1 - 1 / (1 + ((rows.X @ f - rows.y) / tau) ** 2), 0.0)
    if known is None:  # rows that cannot be used are not in X'X
        gram = noisy_gram(rows.X, paid, norm=norm, source=source)
        pulls = noisy_sums(squared[:, None], span=1.0, epsilons=[paid.pulls], source=source)
        return Told(gram, paid.gram_scale(norm), float(pulls.value[0]), float(pulls.scale[0]))
    both, cost = np.stack([squared, ~rows.usable], axis=1), [paid.pulls, paid.missing]
    drawn = noisy_sums(both, span=1.0, epsilons=cost, source=source)
    (pulled, missing), (scale, missing_scale) = drawn.value.tolist(), drawn.scale.tolist()
    return Told(known_gram(known, norm), 0.0, pulled, scale, missing, missing_scale)


def known_gram(design: KnownDesign, norm: float) -> Matrix:
    """X'X without noise: of a design that everybody may know, and of no other rows."""
    return np.asarray(whole_gram(shortened(design.X, norm), norm) * (norm / STEPS) ** 2, dtype=np.float64)


def noisy_gram(X: Matrix, paid: Paid, *, norm: float, source: Source) -> Matrix:
    """X'X with the noise that was paid for; rows of X are no longer than the norm."""
    exact = whole_gram(X, norm)
    upper = np.triu_indices(len(exact))
    scale = np.full(len(upper[0]), upward(2 * STEPS**2 / paid.gram))
    gram = np.zeros_like(exact)
    gram[upper] = add_noise(exact[upper], Laplace(), scale=scale, source=source)
    return np.asarray((gram + np.triu(gram, 1).T) * (norm / STEPS) ** 2, dtype=np.float64)


def whole_gram(X: Matrix, norm: float) -> Integers:
    """X'X in whole steps: entries are cut to steps of norm / STEPS, of which a row has STEPS at most."""
    steps = np.trunc(X * (STEPS / norm))
    total = np.zeros((X.shape[1], X.shape[1]), dtype=np.int64)
    for start in range(0, len(X), BLOCK):
        part = steps[start : start + BLOCK]
        total += (part.T @ part).astype(np.int64)
    return total


def shortened(X: Matrix, norm: float) -> Matrix:
    """Rows longer than the norm, in absolute values, are shortened to it."""
    return np.asarray(X * (norm / np.maximum(np.abs(X).sum(axis=1, keepdims=True), norm)))


def errors(
    f: Vector, told: Told, *, rows: int, tau: float, penalty: float, scale: float, smoothing: float, level: float = 0.95
) -> Errors:
    """Standard errors and reaches of the coefficients `f`, from what is public and what was told.

    A reach is for the coefficients without penalty: it allows for what the penalty takes from them.
    """
    pull = min(max(told.pulls + ALLOWED * told.pulls_scale, 0.0) / rows, 1.0)
    there = 1 - min(max(told.missing + ALLOWED * told.missing_scale, 0.0) / rows, 1.0)
    weight = there * (1 - min(pull / there, 1.0)) ** 1.5 if there else 0.0  # Jensen: the mean of (1 - q)^1.5 is no less
    value, V = np.linalg.eigh(told.gram)
    doubt = told.gram_scale * noise_norm(len(f))
    known = np.maximum(value - doubt, 0.0)
    bend = weight * known
    with np.errstate(divide="ignore"):
        worst = np.clip(penalty / weight if weight else np.inf, known, np.maximum(value + doubt, 0.0))
        sampled = tau**2 * pull * worst / (weight * worst + penalty) ** 2
        by_noise = V**2 @ (2 * scale**2 / (bend + penalty) ** 2) + 2 * smoothing**2
        by_rows = V**2 @ sampled
        seen = bend > 1e-12 * max(float(bend.max()), penalty)
        shrunk = np.abs(V[:, seen] @ (penalty / bend[seen] * (V[:, seen].T @ f)))
    hidden = (V[:, ~seen] ** 2).sum(axis=1) > 1e-12
    reach = [
        reach_of(math.sqrt(n), math.sqrt(b / 2), level, off)
        for n, b, off in zip(by_rows, by_noise, shrunk, strict=True)
    ]
    return Errors(np.sqrt(by_noise + by_rows), np.where(hidden, np.inf, reach))


@cache
def noise_norm(p: int) -> float:
    """A value that the largest eigenvalue of a symmetric Laplace(1) matrix exceeds with probability 1 - SURE.

    Simulated, with numbers that have nothing to do with data; from `LARGE` on it grows with the square root of p.
    """
    size = min(p, LARGE)
    rng = np.random.default_rng(0)
    half = np.triu(rng.laplace(size=(DRAWS, size, size)))
    largest = np.linalg.eigvalsh(half + np.swapaxes(np.triu(half, 1), 1, 2))[:, -1]
    return float(np.quantile(largest, SURE)) * math.sqrt(p / size)
