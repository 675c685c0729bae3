"""Normal regression with closed-form posteriors, for every part of a data set at once.

Only arrays: no frames, no privacy. Three priors: `Conjugate`, Zellner's `GPrior` and `SemiConjugate`; in all of them
sigma^2 ~ IG(nu/2, nu variance/2). Notation of Amitai (2018), sections 3 and 4, whose prior (3.1) prints the inverse of
the covariance that its posterior (3.2) uses: the posterior is right.

Part j has the posterior proportional to likelihood_j^power * prior^share. With one part, power = share = 1 is the usual
posterior. With M parts, power = M represents the whole data (section 4), and share = 1/M counts the prior once in all
parts together (docs/explanation/posterior-summaries.md says why that matters).

A part that cannot be used (a design without full rank under `GPrior`, numbers that overflow) gives 1/2 or 0, and never
an exception or a warning: either would reveal something about its rows.

A part's number is a function of its own rows, to the last bit: that is what privacy rests on. Shapes depend on public
numbers only, matrices are factored one by one, and in a search a part that has converged stays while others go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from typing import Protocol, TypeAlias

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.words.errors import FitError
from discreet.words.faults import Argument

LARGEST = 1e308  # of a prior's numbers
HUGE = 1e100  # numbers whose squares are still numbers
NODES, REACH = 41, 10.0  # trapezoidal rule in log sigma^2: points, over this many deviations on either side


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a data set by their triangular factors, which keep the digits that sums of squares lose.

    Attributes
    ----------
    factor : R of [X y] = Q R for each part, shape (parts, p + 1, p + 1).
    rows : how many rows each part has, shape (parts,).
    """

    factor: Matrix
    rows: Integers

    @classmethod
    def of(cls, blocks: Matrix, rows: Integers) -> Parts:
        """From the stacked rows [X y] of each part, padded with rows of zeros."""
        factor = _triangular(blocks)
        return cls(np.where(np.abs(factor).max(axis=(1, 2), keepdims=True) < HUGE, factor, 0.0), rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def coefficients(self) -> int:
        return int(self.factor.shape[-1]) - 1

    @property
    def inverse(self) -> Matrix:
        """Of each part's R_xx, so that (X'X)^-1 is it times its transpose; not finite where there is none."""
        p = self.coefficients
        with np.errstate(all="ignore"):
            return _inverse(self.factor[:, :p, :p])

    def least_squares(self) -> Matrix:
        """Of each part, shape (parts, coefficients); not finite where there is none."""
        p = self.coefficients
        with np.errstate(all="ignore"):
            return np.asarray(np.einsum("jki,ji->jk", self.inverse, self.factor[:, :p, p]))


class Marginals(Protocol):
    """Marginal posteriors: one row for each part, one column for each coefficient asked for."""

    def cdf(self, b: Vector) -> Matrix:
        """P(beta <= b), one b for each column."""

    def quantile(self, q: Vector) -> Matrix:
        """The value with P(beta <= value) = q, one q for each column."""


@dataclass(frozen=True, slots=True)
class GPrior:
    """beta | sigma^2 ~ N(0, g sigma^2 (X'X)^-1) and sigma^2 ~ IG(nu/2, nu variance/2).

    Parameters
    ----------
    g : how wide the prior is; by default the number of rows of the whole data set.
    nu, variance : what the prior of the error variance weighs in rows, and its scale.

    Examples
    --------
    >>> GPrior(g=100)
    GPrior(g=100, nu=1.0, variance=1.0)
    """

    g: float | None = None
    nu: float = 1.0
    variance: float = 1.0

    def __post_init__(self) -> None:
        _proper(self, nu=self.nu, variance=self.variance, **({} if self.g is None else {"g": self.g}))

    def check(self, coefficients: int) -> None:
        """Refuse what does not fit a model with this many coefficients."""

    def posterior(self, parts: Parts, columns: Integers, *, power: float = 1.0, share: float = 1.0) -> Marginals:
        """The posterior of the coefficients `columns` within each part."""
        g = float(parts.rows.sum()) if self.g is None else self.g
        # A part knows the whole data set's X'X as its own times the number of parts.
        with np.errstate(all="ignore"):
            rows = parts.factor[:, :-1] * math.sqrt(share * len(parts) / g)
        rows[:, :, -1] = 0.0
        return _student(self, parts, rows, columns, power)


@dataclass(frozen=True, slots=True)
class _Normal:
    """A normal prior of the coefficients, and one of the error variance."""

    mean: float | Vector = 0.0
    covariance: float | Matrix = 100.0
    nu: float = 1.0
    variance: float = 1.0

    def __post_init__(self) -> None:
        _proper(self, nu=self.nu, variance=self.variance)

    def check(self, coefficients: int) -> None:
        """Refuse what does not fit a model with this many coefficients."""
        _normal_prior(self, coefficients)


@dataclass(frozen=True, slots=True)
class Conjugate(_Normal):
    """beta | sigma^2 ~ N(mean, covariance sigma^2) and sigma^2 ~ IG(nu/2, nu variance/2).

    Parameters
    ----------
    mean, covariance : of the coefficients. A number stands for that number in every place of the diagonal.
    nu, variance : what the prior of the error variance weighs in rows, and its scale.

    Examples
    --------
    >>> Conjugate(covariance=10)
    Conjugate(mean=0.0, covariance=10, nu=1.0, variance=1.0)
    """

    def posterior(self, parts: Parts, columns: Integers, *, power: float = 1.0, share: float = 1.0) -> Marginals:
        """The posterior of the coefficients `columns` within each part."""
        mean, L = _normal_prior(self, parts.coefficients)
        root = np.linalg.inv(L) * math.sqrt(share)
        rows = np.concatenate([root, (root @ mean)[:, None]], axis=1)
        return _student(self, parts, np.broadcast_to(rows, (len(parts), *rows.shape)), columns, power)


@dataclass(frozen=True, slots=True)
class SemiConjugate(_Normal):
    """beta ~ N(mean, covariance), independent of sigma^2: normal given sigma^2, which is integrated by quadrature.

    Parameters
    ----------
    mean, covariance : of the coefficients. A number stands for that number in every place of the diagonal.
    nu, variance : what the prior of the error variance weighs in rows, and its scale.

    Examples
    --------
    >>> SemiConjugate(covariance=10)
    SemiConjugate(mean=0.0, covariance=10, nu=1.0, variance=1.0)
    """

    def posterior(self, parts: Parts, columns: Integers, *, power: float = 1.0, share: float = 1.0) -> Marginals:
        """The posterior of the coefficients `columns` within each part."""
        p = parts.coefficients
        mean, L = _normal_prior(self, p)
        L = L / math.sqrt(share)
        # With theta = L^-1 (beta - mean) ~ N(0, I) and R_xx L = U S V', the coordinates of V' theta are independent.
        with np.errstate(all="ignore"):
            U, S, Vt = _singular(parts.factor[:, :p, :p] @ L)
            c = np.einsum("jki,jk->ji", U, parts.factor[:, :p, p] - parts.factor[:, :p, :p] @ mean)
            rest = parts.factor[:, p, p] ** 2
        size = self.nu + power * parts.rows

        def shrinkage(x: Matrix) -> Matrix:
            return np.asarray(1 + power * S[:, None, :] ** 2 * np.exp(-x)[..., None])

        def log_density(x: Matrix) -> Matrix:
            """Of x = log sigma^2; the points of a part are the last axis."""
            shrink = shrinkage(x)
            misfit = self.nu * self.variance + power * (rest[:, None] + (c[:, None, :] ** 2 / shrink).sum(-1))
            return np.asarray(-(size[:, None] * x + np.log(shrink).sum(-1) + misfit * np.exp(-x)) / 2)

        with np.errstate(all="ignore"):
            least, most = (self.nu * self.variance + power * (rest + k * (c**2).sum(-1)) for k in (0, 1))
            mode = _peak(log_density, np.log(least / size) - 1, np.log(most / self.nu) + 1)
            x = mode[:, None] + np.linspace(-REACH, REACH, NODES) * np.sqrt(2 / size)[:, None]
            height, shrink = log_density(x), shrinkage(x)
            weight = np.exp(height - height.max(axis=1, keepdims=True))
            theta = (power * S * c)[:, None, :] * np.exp(-x)[..., None] / shrink
            back = np.einsum("ki,jli->jkl", L, Vt)[:, columns]  # the rows of L V that are asked for
            location = mean[columns][:, None] + np.einsum("jkl,jql->jkq", back, theta)
            scale = np.sqrt(np.einsum("jkl,jql->jkq", back**2, 1 / shrink))
            return Mixture(location, scale, (weight / weight.sum(axis=1, keepdims=True))[:, None, :])


Prior: TypeAlias = GPrior | Conjugate | SemiConjugate


@dataclass(frozen=True, slots=True)
class Student:
    """location + scale * t(df); shapes (parts, columns), df (parts, 1)."""

    location: Matrix
    scale: Matrix
    df: Matrix

    def cdf(self, b: Vector) -> Matrix:
        from scipy.special import stdtr

        with np.errstate(all="ignore"):
            return _usable(stdtr(self.df, (b - self.location) / self.scale), 0.5)

    def quantile(self, q: Vector) -> Matrix:
        from scipy.special import stdtrit

        with np.errstate(all="ignore"):
            return _usable(self.location + self.scale * stdtrit(self.df, q), 0.0)


@dataclass(frozen=True, slots=True)
class Mixture:
    """A finite mixture of normals; location and scale have shape (parts, columns, nodes), weight (parts, 1, nodes)."""

    location: Matrix
    scale: Matrix
    weight: Matrix

    def cdf(self, b: Vector) -> Matrix:
        with np.errstate(all="ignore"):
            return _usable(self._below(np.broadcast_to(b, self.location.shape[:2])), 0.5)

    def quantile(self, q: Vector) -> Matrix:
        """By Newton's method between the smallest and the largest of the normals' own quantiles, each part alone."""
        from scipy.special import ndtri

        with np.errstate(all="ignore"):
            own = self.location + self.scale * ndtri(np.asarray(q))[:, None]
            low, high = own.min(axis=-1), own.max(axis=-1)
            x = (self.weight * own).sum(axis=-1)
            active = np.isfinite(x)
            for _ in range(60):
                excess = self._below(x) - q
                active &= np.abs(excess) > 1e-13
                if not active.any():
                    break
                low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
                step = x - excess / self._density(x)
                move = np.where((step >= low) & (step <= high), step, (low + high) / 2)
                x = np.where(active, move, x)
        return _usable(x, 0.0)

    def _below(self, b: Matrix) -> Matrix:
        from scipy.special import ndtr

        return np.asarray((self.weight * ndtr((b[..., None] - self.location) / self.scale)).sum(axis=-1))

    def _density(self, b: Matrix) -> Matrix:
        z = (b[..., None] - self.location) / self.scale
        return np.asarray((self.weight * np.exp(-(z**2) / 2) / self.scale).sum(axis=-1) / math.sqrt(2 * math.pi))


def _student(prior: GPrior | Conjugate, parts: Parts, rows: Matrix, columns: Integers, power: float) -> Student:
    """The posterior when the prior of beta is worth the further `rows` [root of precision, root * mean]."""
    p = parts.coefficients
    df = np.asarray(prior.nu + power * parts.rows[:, None], dtype=np.float64)
    with np.errstate(all="ignore"):
        R = _triangular(np.concatenate([parts.factor * math.sqrt(power), rows], axis=1))
        inverse = _inverse(R[:, :p, :p])[:, columns]
        squares = prior.nu * prior.variance + R[:, p, p][:, None] ** 2
        location = np.einsum("jki,ji->jk", inverse, R[:, :p, p])
        return Student(location, np.sqrt((inverse**2).sum(axis=-1) * squares / df), df)


def _triangular(blocks: Matrix) -> Matrix:
    """R of each block's QR decomposition, square: (parts, k, k) from (parts, rows, k)."""
    parts, rows, k = blocks.shape
    if rows < k:
        blocks = np.concatenate([blocks, np.zeros((parts, k - rows, k))], axis=1)
    return np.asarray(np.linalg.qr(blocks, mode="r"))


def _singular(stack: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """U, S, V' of square matrices, one by one: NaN for one that has none, where NumPy's batch would fail for all."""
    U, Vt = np.full_like(stack, np.nan), np.full_like(stack, np.nan)
    S = np.full(stack.shape[:2], np.nan)
    for j, matrix in enumerate(stack):
        with suppress(np.linalg.LinAlgError):
            U[j], S[j], Vt[j] = np.linalg.svd(matrix)
    return U, S, Vt


def _inverse(R: Matrix) -> Matrix:
    """Inverses of upper triangular matrices; a singular one gives what division by zero gives."""
    p = R.shape[-1]
    inverse = np.zeros_like(R)
    for i in reversed(range(p)):
        rest = np.einsum("jk,jki->ji", R[:, i, i + 1 :], inverse[:, i + 1 :])
        inverse[:, i] = (np.eye(p)[i] - rest) / R[:, i, i, None]
    return inverse


def _peak(function: Callable[[Matrix], Matrix], low: Vector, high: Vector) -> Vector:
    """The maximum of a unimodal function of each part, by golden section."""
    g = (math.sqrt(5) - 1) / 2
    for _ in range(48):
        a, b = high - g * (high - low), low + g * (high - low)
        at_a, at_b = function(np.stack([a, b], axis=1)).T
        low, high = np.where(at_a > at_b, low, a), np.where(at_a > at_b, b, high)
    return np.asarray((low + high) / 2)


def _normal_prior(prior: _Normal, p: int) -> tuple[Vector, Matrix]:
    """The prior's mean and the root L of its covariance L L', for p coefficients."""
    name = type(prior).__name__
    mean, covariance = np.asarray(prior.mean, dtype=np.float64), np.asarray(prior.covariance, dtype=np.float64)
    mean = np.full(p, mean) if mean.ndim == 0 else mean
    covariance = np.diag(np.full(p, covariance)) if covariance.ndim == 0 else covariance
    if mean.shape != (p,) or covariance.shape != (p, p):
        raise FitError(
            f"{name} has a mean of shape {mean.shape} and a covariance of shape {covariance.shape}; the "
            f"model has {p} coefficients.",
            remedy=f"Give one number each, or shapes ({p},) and ({p}, {p}).",
            about="prior",
        )
    improper = FitError(
        f"{name} is improper: its mean and covariance are not finite, or the covariance is not positive definite.",
        "A posterior by partition needs a proper prior.",
        "For a vague one use a large number, such as covariance=1e6.",
        about="prior",
    )
    if not (np.isfinite(covariance).all() and np.isfinite(mean).all() and np.allclose(covariance, covariance.T)):
        raise improper
    try:
        return mean, np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise improper from None


def _proper(prior: object, **amounts: float) -> None:
    for name, amount in amounts.items():
        if not (isinstance(amount, Real) and 0 < amount <= LARGEST):
            zero = " (zero degrees of freedom)" if name == "nu" and str(amount) in ("0", "0.0") else ""
            raise FitError(
                f"{type(prior).__name__} with {name}={str(amount)[:20]}{zero} is improper.",
                "A posterior by partition needs a proper prior: nu, variance and g are positive and finite.",
                f"Use for example {name}=1.",
                about="prior",
            )


def _usable(values: Matrix, otherwise: float) -> Matrix:
    return np.where(np.isfinite(values), values, otherwise)


UNIT_INFORMATION = GPrior()


def check_prior(prior: object) -> None:
    """Refuse what is no prior."""
    if not isinstance(prior, Prior):
        raise FitError(
            (Argument("prior", prior), " is no prior."),
            "GPrior(), Conjugate() and SemiConjugate() are.",
            "Leave it out for the first.",
            about="prior",
        )
