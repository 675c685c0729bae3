"""Profiled REML and ML criteria of a model with one random intercept, for one data set or thousands at once.

Only arrays enter and only arrays leave. `ratio` is the variance ratio lambda = var(u) / var(xi). In the
eigenbasis of I + lambda ZZ', group g counts its mean with weight v = n / (1 + lambda n), so

    A(lambda) = W + sum_g v_g m_g m_g',      W within-group, m_g group means, both of [X y],

is a sum of positive semi-definite parts at every lambda in [0, inf) and no digits cancel. Its derivatives
replace v by -v^2 and 2 v^3, which makes Newton's method in log lambda exact and cheap. Profiling beta and
sigma out follows Bates et al. (2015, doi:10.18637/jss.v067.i01), equations 34, 35, 41 and 42.

Private releases need that a data set's result is a function of its own numbers, to the last bit, whatever else is in
the batch. So shapes never depend on values, and a data set that has converged does not change while others continue.
Matrices are factored one by one; one that cannot be factored makes its own result NaN and raises nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.models.linear.moments import Moments

SMALLEST, LARGEST = 1e-12, 1e10
TOLERANCE = 1e-10  # of log lambda; the criterion is flat to second order, so it is then exact to rounding
STEPS = 80
GROUPS = 4_096  # whose products are in memory at a time


class RatioProfile(Protocol):
    """A batch of B data sets seen through the ratio alone.

    `rows` and `columns` (estimable fixed effects) have shape (B,).
    """

    @property
    def rows(self) -> Vector: ...

    @property
    def columns(self) -> Vector: ...

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest group with rows."""
        ...

    def at(self, ratio: Vector, order: int) -> tuple[list[Matrix], list[Vector]]:
        """A and log det(I + lambda ZZ') with their derivatives up to `order`, shapes (B, p + 1, p + 1) and (B,)."""
        ...


@dataclass(frozen=True)
class GroupCurve:
    """One data set, from its moments."""

    within: Matrix
    means: Matrix
    n: Vector
    rows: Vector
    columns: Vector

    @classmethod
    def of(cls, moments: Moments) -> GroupCurve:
        p = moments.Sx.shape[1]
        return cls(moments.within, moments.means, moments.n, np.array([moments.rows]), np.array([float(p)]))

    @property
    def span(self) -> tuple[float, float]:
        return float(self.n[self.n > 0].min()), float(self.n.max())

    @cached_property
    def outer(self) -> Matrix:
        """m_g m_g' of some groups, flat; of all where they are few."""
        return self._outer(0)

    def _outer(self, start: int) -> Matrix:
        means = self.means[start : start + GROUPS]
        return (means[:, :, None] * means[:, None, :]).reshape(len(means), -1)

    def at(self, ratio: Vector, order: int) -> tuple[list[Matrix], list[Vector]]:
        """At one ratio, or at several: a batch of this data set."""
        A, logdet = np.zeros(((order + 1) * len(ratio), self.within.size)), np.zeros((order + 1, len(ratio)))
        for start in range(0, len(self.n), GROUPS):
            scaled = ratio[:, None] * (n := self.n[start : start + GROUPS])
            v = n / (1 + scaled)
            powers = [v, -(v**2), 2 * v**3][: order + 1]
            A += np.concatenate(powers) @ (self._outer(start) if start else self.outer)
            logdet += [part.sum(axis=1) for part in (np.log1p(scaled), *powers[:-1])]
        A[: len(ratio)] += self.within.ravel()
        return list(A.reshape(order + 1, len(ratio), *self.within.shape)), list(logdet)


@dataclass(frozen=True, slots=True)
class Profiled:
    """A batch of models at given ratios, beta and sigma profiled out.

    Attributes
    ----------
    criterion : -2 log (restricted) likelihood, shape (B,).
    ratio : lambda, shape (B,).
    beta : fixed effects, shape (B, p).
    sigma2 : residual variance, shape (B,).
    unscaled : inverse of X' V^-1 X with V in units of sigma2, shape (B, p, p).
    """

    criterion: Vector
    ratio: Vector
    beta: Matrix
    sigma2: Vector
    unscaled: Matrix


def profile(curve: RatioProfile, ratio: Vector, *, reml: bool) -> Profiled:
    """The models at the given ratios; NaN where a model has none."""
    with np.errstate(all="ignore"):
        (A,), (logdet,) = curve.at(ratio, 0)
        pivots, inverse = _factored(A, inverse=True)
        beta = (inverse @ A[:, :-1, -1:])[..., 0]
        criterion, rss = _criterion(pivots, logdet, curve, reml=reml)
        return Profiled(criterion, ratio, beta, rss / _freedom(curve, reml=reml), inverse)


def _freedom(curve: RatioProfile, *, reml: bool) -> Vector:
    return curve.rows - curve.columns if reml else curve.rows


def _factored(A: Matrix, among: Mask | None = None, *, inverse: bool = False) -> tuple[Matrix, Matrix]:
    """Pivots of each matrix [X y]' V^-1 [X y], shape (B, p + 1), and inverses of X' V^-1 X, empty unless asked for.

    NaN outside `among` and where a pivot is not positive. A batch of NumPy's would raise for all if one fails.
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    p, pivots = A.shape[1] - 1, np.full(A.shape[:2], np.nan)
    upper = np.full((len(A), p, p) if inverse else (0, p, p), np.nan)
    columns_first = A.copy().swapaxes(1, 2)  # as LAPACK likes them, and may use as its own
    for b in range(len(A)) if among is None else np.flatnonzero(among).tolist():
        factor, failed = dpotrf(columns_first[b], clean=0, overwrite_a=1)
        if not failed:
            pivots[b] = factor.diagonal()
            if inverse and p:
                upper[b] = dpotri(factor[:p, :p])[0]
    return pivots, np.where(np.tri(p, dtype=bool), upper.swapaxes(1, 2), upper) if inverse else upper


def _criterion(pivots: Matrix, logdet: Vector, curve: RatioProfile, *, reml: bool) -> tuple[Vector, Vector]:
    """The criterion and the residual sum of squares; both from the pivots of [X y]' V^-1 [X y]."""
    freedom, rss = _freedom(curve, reml=reml), pivots[:, -1] ** 2
    fixed = 2 * np.log(pivots[:, :-1]).sum(axis=1) if reml else 0.0
    return logdet + fixed + freedom * (1 + np.log(2 * np.pi * rss / freedom)), rss


def _slopes(curve: RatioProfile, ratio: Vector, among: Mask | None = None, *, reml: bool) -> tuple[Vector, Vector]:
    """First and second derivative of the criterion in lambda; NaN outside `among`."""
    (A, A1, A2), (_, first, second) = curve.at(ratio, 2)
    p = A.shape[1] - 1
    pivots, inverse = _factored(A, among, inverse=True)
    beta, rss = (inverse @ A[:, :p, p:])[..., 0], pivots[:, p] ** 2
    z = np.concatenate([-beta, np.ones((len(beta), 1))], axis=1)
    A1z = (A1 @ z[..., None])[..., 0]
    rss1 = np.einsum("bi,bi->b", z, A1z)
    turned = (inverse @ A1z[:, :p, None])[..., 0]
    rss2 = np.einsum("bi,bi->b", z, (A2 @ z[..., None])[..., 0]) - 2 * np.einsum("bi,bi->b", A1z[:, :p], turned)
    freedom = _freedom(curve, reml=reml)
    first = first + freedom * rss1 / rss
    second = second + freedom * (rss2 / rss - (rss1 / rss) ** 2)
    if reml:
        B = inverse @ A1[:, :p, :p]
        first = first + np.trace(B, axis1=1, axis2=2)
        second = second + np.einsum("bij,bij->b", inverse, A2[:, :p, :p]) - np.einsum("bij,bji->b", B, B)
    return first, second


def best_ratio(curve: RatioProfile, *, reml: bool, start: Vector | None = None) -> Vector:
    """The ratio that minimises each criterion; 0 where the random effects have no variance, NaN where it has none.

    `start` replaces the search over a grid where the answer is known to be near.
    """
    with np.errstate(all="ignore"):
        return _newton(curve, *_started(curve, start, reml=reml), reml=reml)


def _started(curve: RatioProfile, start: Vector | None, *, reml: bool) -> tuple[Vector, Vector, Vector]:
    """The start, and the limits of the logarithms; the start is NaN if a criterion has no value."""
    size = len(curve.rows)
    if start is None:
        grid = _grid(*curve.span)
        if isinstance(curve, GroupCurve):
            values = _value(curve, grid, reml=reml)[:, None]
        else:
            values = np.stack([_value(curve, np.full(size, ratio), reml=reml) for ratio in grid])
        best = values.argmin(axis=0)
        ratio = np.where(np.isfinite(values).all(axis=0), np.maximum(grid[best], SMALLEST), np.nan)
        low = np.log(np.maximum(grid[np.maximum(best - 1, 0)], SMALLEST))
        high = np.log(np.append(grid, LARGEST)[best + 1])
    else:
        ratio, low, high = start, np.full(size, np.log(SMALLEST)), np.full(size, np.log(LARGEST))
    at_zero = ratio <= SMALLEST
    if not at_zero.any():
        return ratio, low, high
    rising = _slopes(curve, np.zeros(size), at_zero, reml=reml)[0] >= 0
    off_zero = np.where(rising, 0.0, np.maximum(ratio, 1e-6))
    return np.where(at_zero, off_zero, ratio), low, high


def _newton(curve: RatioProfile, ratio: Vector, low: Vector, high: Vector, *, reml: bool) -> Vector:
    """Newton's method in log lambda between `low` and `high`; a data set that has converged moves no more."""
    active = ratio > 0
    t = np.log(np.maximum(ratio, SMALLEST))
    for _ in range(STEPS):
        if not active.any():
            break
        lam = np.exp(t)
        first, second = _slopes(curve, lam, active, reml=reml)
        slope, bend = lam * first, lam**2 * second + lam * first
        high = np.where(active & (slope > 0), t, high)
        low = np.where(active & (slope <= 0), t, low)
        newton = t - slope / bend
        inside = (bend > 0) & (newton > low) & (newton < high)
        move = np.where(np.isnan(slope), np.nan, np.where(inside, newton, (low + high) / 2))
        step = np.abs(move - t)
        t = np.where(active, move, t)
        # Newton's error is the square of its step; a bisection's is the step itself.
        active &= step > np.where(inside, np.sqrt(TOLERANCE), TOLERANCE)
    found = np.exp(t)
    return np.where(np.isnan(t) | ((ratio > 0) & (found > 2 * SMALLEST)), found, 0.0)


def _grid(smallest: float, largest: float) -> Vector:
    """Ratios to start from, half as large again each: the criterion may have more than one valley, some narrow.

    Below the first, all weights v are n, and above the last they are 1 / lambda, so there is no further minimum.
    """
    low, high = np.log10(0.03 / largest), np.log10(30 / smallest)
    return np.array([0.0, *np.logspace(low, high, grid_size(smallest, largest) - 1)])


def grid_size(smallest: float, largest: float) -> int:
    """How many ratios a search starts from, for groups of so many rows."""
    return int(np.ceil((np.log10(30 / smallest) - np.log10(0.03 / largest)) / np.log10(1.5))) + 2


def _value(curve: RatioProfile, ratio: Vector, *, reml: bool) -> Vector:
    (A,), (logdet,) = curve.at(ratio, 0)
    return _criterion(_factored(A)[0], logdet, curve, reml=reml)[0]


def effects(moments: Moments, *, ratio: float, beta: Vector) -> Vector:
    """EBLUPs of the group effects, shape (G,)."""
    return ratio / (1 + ratio * moments.n) * (moments.Sy - moments.Sx @ beta)


def independent(gram: Matrix, *, tolerance: float = 1e-11, least: Vector | None = None) -> Integers:
    """Indices of columns that are not combinations of earlier ones, from X'X: the columns lme4 keeps.

    R drops a column whose norm falls below 1e-7 of itself; sums of squares carry half the digits, hence 1e-11.
    A column whose sum of squares is not above `least` is dropped too.
    """
    scale = np.diag(gram).copy()
    kept: list[int] = []
    factor = np.zeros_like(gram)
    for j in range(len(gram)):
        solved = factor[: len(kept), j]
        left = scale[j] - solved @ solved
        if scale[j] > (0 if least is None else least[j]) and left > tolerance * scale[j]:
            row = len(kept)
            factor[row, j:] = (gram[j, j:] - solved @ factor[:row, j:]) / np.sqrt(left)
            kept.append(j)
    return np.array(kept, dtype=np.int64)


def estimable(gram: Matrix, *, floor: Vector, tolerance: float = 1e-11) -> tuple[Mask, Mask]:
    """For a batch of X'X: which columns are present, shape (B, p), and whether those are independent, shape (B,).

    A column is present where its sum of squares exceeds `floor`, shape (p,).
    """
    squares = np.diagonal(gram, axis1=1, axis2=2)
    present = squares > floor
    unit = np.sqrt(np.where(present, squares, 1.0))
    correlation = np.where(present[:, :, None] & present[:, None, :], gram / (unit[:, :, None] * unit[:, None, :]), 0.0)
    own = np.arange(gram.shape[1])
    correlation[:, own, own] = 1.0 + tolerance
    # A dependent column is left with the tolerance times the squares of its coefficients, which may be large.
    return present, _factored(correlation)[0].min(axis=1) ** 2 > 1000 * tolerance
