"""Tests of fixed effects: Satterthwaite's degrees of freedom, contrasts, and likelihood ratios along one coefficient.

The deviance as a function of theta and sigma has second derivatives, and their inverse gives the precision of the
variances. The degrees of freedom of a contrast follow from how its variance changes with them (Satterthwaite 1946;
Kuznetsova et al. 2017, doi:10.18637/jss.v082.i13, whose numbers these are). Profiles hold one combination of
coefficients and fit the rest by maximum likelihood, as lme4's confint does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear import sparse
from discreet.models.linear.moments import Moments
from discreet.models.linear.pencil import solve_parts
from discreet.models.linear.solution import Solution, solve_gram, standardised
from discreet.models.linear.sparse import Gram
from discreet.words.errors import FitError

if TYPE_CHECKING:
    from discreet.models.linear.fit import MixedFit
    from discreet.models.linear.general_fit import GeneralisedFit

STEP = 1e-4  # of theta and of sigma, for differences of slopes
WIDEST = 200.0  # standard errors within which the end of a profile is looked for


@dataclass(frozen=True, slots=True)
class Test:
    """An estimate with its standard error, degrees of freedom, t value, two-sided p value and interval."""

    estimate: float
    std_error: float
    df: float
    t: float
    p: float
    lower: float
    upper: float

    @classmethod
    def of(cls, estimate: float, std_error: float, df: float, level: float) -> Test:
        """The test of an estimate against zero, by Student's law."""
        from scipy.stats import t as student

        value = estimate / std_error if std_error > 0 else np.nan
        reach = float(student.ppf((1 + level) / 2, df)) * std_error
        p = float(2 * student.sf(abs(value), df))
        return cls(estimate, std_error, df, value, p, estimate - reach, estimate + reach)


def gram_of_fit(fit: MixedFit) -> Gram:
    """The sums that the fit was computed from, as a Gram matrix."""
    found = fit.statistics
    if isinstance(found, Moments):
        Zxy = np.column_stack([found.Sx, found.Sy])
        return Gram((found.n[:, None, None],), {}, (Zxy,), found.joint, found.rows)
    return found


class Satterthwaite:
    """Degrees of freedom of contrasts of a fit's fixed effects."""

    def __init__(self, fit: MixedFit) -> None:
        gram, scales = standardised(gram_of_fit(fit))
        T = [t * s[:, None] for t, s in zip(fit.solution.triangles, scales, strict=True)]
        unit = 2.0 ** np.rint(np.log2(fit.sigma2) / 2)  # degrees of freedom do not depend on the response's unit
        self.fit, self.unit, self.gram = fit, float(unit), _held(gram, np.zeros(gram.p), np.eye(gram.p), unit=1 / unit)
        self.at = np.append(np.concatenate([t.T[sparse.by_columns(len(t))] for t in T]), np.sqrt(fit.sigma2) / unit)

    def _slope(self, at: Vector) -> Vector:
        """Slopes of the deviance in theta and sigma."""
        reml, sigma = self.fit.method == "REML", float(at[-1])
        found = sparse.eliminate(self.gram, at[:-1])
        n, p = self.gram.rows, self.gram.p
        rss = float(np.linalg.cholesky(found.A)[-1, -1]) ** 2
        by_sigma = 2 * (n - p if reml else n) / sigma - 2 * rss / sigma**3
        return np.append(sparse.gradient(found, reml=reml, sigma2=sigma**2), by_sigma)

    def _covariance(self, at: Vector) -> Matrix:
        found, p = sparse.eliminate(self.gram, at[:-1]), self.gram.p
        restore = self.fit.origin.restore
        return np.asarray(float(at[-1]) ** 2 * restore @ np.linalg.inv(found.A[:p, :p]) @ restore.T)

    @cached_property
    def steps(self) -> Matrix:
        return np.diag(STEP * np.maximum(np.abs(self.at), 0.01))

    @cached_property
    def known(self) -> Matrix:
        """Covariance of the estimates of theta and sigma; directions without curvature are left out."""
        second = np.array([self._slope(self.at + d) - self._slope(self.at - d) for d in self.steps])
        second /= 2 * np.diag(self.steps)[:, None]
        values, vectors = np.linalg.eigh((second + second.T) / 2)
        inverse = np.where(values > 1e-8 * values.max(), 1 / np.where(values == 0, 1, values), 0.0)
        return np.asarray(2 * (vectors * np.maximum(inverse, 0)) @ vectors.T)

    @cached_property
    def moved(self) -> Matrix:
        """Slopes of the covariance of the fixed effects in theta and sigma, shape (parameters, p, p)."""
        ends = [self._covariance(self.at + d) - self._covariance(self.at - d) for d in self.steps]
        return np.array(ends) / (2 * np.diag(self.steps)[:, None, None])

    def df(self, contrast: Vector) -> float:
        variance = float(contrast @ (self.fit.covariance / self.unit**2) @ contrast)
        slope = np.einsum("kij,i,j->k", self.moved, contrast, contrast)
        spread = float(slope @ self.known @ slope)
        return 2 * variance**2 / spread if spread > 0 else np.inf


def weights_of(fit: MixedFit | GeneralisedFit, contrast: Mapping[str, float]) -> Vector:
    """A combination of fixed effects, given by name, as a vector."""
    unknown = [name for name in contrast if name not in fit.names]
    if unknown or not contrast:
        raise FitError(
            f"A contrast names {unknown[0]!r}, which is not a fixed effect." if unknown else "A contrast is empty.",
            f"Fixed effects are {', '.join(fit.names)}.",
            "Give their weights by name, such as {'x': 1, 'z': -1}.",
            about="contrast",
        )
    found = np.array([float(contrast.get(name, 0.0)) for name in fit.names])
    if not np.isfinite(found).all() or not found.any():
        raise FitError(
            f"A contrast has weights {dict(contrast)!r}.",
            "Weights are finite numbers, and one of them at least is not zero.",
            "Give their weights by name, such as {'x': 1, 'z': -1}.",
            about="contrast",
        )
    return found


def profile(fit: MixedFit, contrast: Vector, *, level: float) -> tuple[float, float]:
    """Where the ML deviance, with this combination of coefficients fixed, has risen by the chi-squared quantile."""
    from scipy.optimize import brentq
    from scipy.stats import chi2

    held, parts = fit.residual, [gram_of_fit(fit)] if fit.residual is None else list(fit.residual.parts)

    def solved(parts: list[Gram]) -> Solution:
        if held is None:
            return solve_gram(parts[0], reml=False)
        return solve_parts(parts, held.law, reml=False, start=held.free)[0]

    best = solved(parts)
    allowed = float(chi2.ppf(level, 1))
    along, shift = fit.origin.restore.T @ contrast, float(contrast @ fit.origin.offset)
    estimate = float(along @ best.beta) + shift
    error = float(np.sqrt(best.sigma2 * along @ best.unscaled @ along))
    free = np.linalg.svd(along[None, :])[2][1:].T

    def rise(value: float) -> float:
        fixed = along * (value - shift) / (along @ along)
        return solved([_held(part, fixed, free) for part in parts]).criterion

    def above(value: float) -> float:
        return rise(value) - best.criterion - allowed

    ends = []
    for sign in (-1, 1):
        inside, step = estimate, 1.5 * error
        while above(inside + sign * step) < 0 and abs(inside - estimate) < WIDEST * error:
            inside += sign * step
        if not above(inside) <= 0 <= above(inside + sign * step):
            raise FitError(
                "A profile was requested for a fit whose deviance does not rise away from its estimate.",
                "The columns and groups explain the response exactly, or nearly so; no interval says anything then.",
                'Look for a copy of the response among the columns, or use method="wald".',
                about="method",
            )
        ends.append(float(brentq(above, inside, inside + sign * step, xtol=1e-8 * error, rtol=1e-12)))
    return ends[0], ends[1]


def _held(gram: Gram, fixed: Vector, free: Matrix, *, unit: float = 1.0) -> Gram:
    """The model of y - X fixed, times a unit, with the columns X free."""
    M = np.zeros((len(fixed) + 1, free.shape[1] + 1))
    M[:-1, :-1], M[:-1, -1], M[-1, -1] = free, -fixed, unit
    found = replace(gram, Zxy=tuple(zxy @ M for zxy in gram.Zxy), joint=M.T @ gram.joint @ M)
    return gram.lend(found)
