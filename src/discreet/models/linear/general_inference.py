"""Inference for mixed models of counts and shares: normal tests, contrasts, intervals of fixed effects.

A profile holds one coefficient and fits the rest, the variances of effects included, as lme4's `confint` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.evaluations import counted
from discreet.models.linear.families.family import Family
from discreet.models.linear.general_bootstrap import parametric
from discreet.models.linear.inference import WIDEST, Test, weights_of
from discreet.models.linear.intervals import percentiles, refuse_level, refuse_settings
from discreet.models.linear.laplace import Problem, Term
from discreet.models.linear.likelihood import maximise
from discreet.models.linear.origin import Origin
from discreet.words.errors import FitError, Unidentified
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    from discreet.models.linear.general_fit import GeneralisedFit

METHODS = ("wald", "profile", "parametric")
Method = Literal["wald", "profile", "parametric"]


@dataclass(frozen=True, slots=True)
class FittedRows:
    """The rows of a fit of counts or shares; `origin` leads from X, the `kept` columns, to those of the formula."""

    rows: ModelRows = field(repr=False)
    X: Matrix = field(repr=False)
    terms: tuple[Term, ...] = field(repr=False)
    offset: Vector = field(repr=False)
    weights: Vector | None = field(repr=False)
    kept: Integers = field(repr=False)
    origin: Origin = field(repr=False)

    def problem(self, y: Vector, law: Family) -> Problem:
        """The same rows with these responses."""
        return Problem(y, self.X, self.terms, self.offset, law, self.weights)


def contrast(fit: GeneralisedFit, weights: Mapping[str, float], *, level: float) -> Test:
    """A combination of fixed effects with its normal test."""
    along = weights_of(fit, weights)
    error = float(np.sqrt(np.maximum(along @ fit.covariance @ along, 0.0)))
    return Test.of(float(along @ fit.beta), error, np.inf, level)


def confint(
    fit: GeneralisedFit,
    *,
    method: Method,
    level: float,
    replicates: int,
    seed: int | np.random.Generator | None,
    progress: Progress = silent,
) -> dict[str, tuple[float, float]]:
    """Intervals of all fixed effects."""
    refuse_settings(level, replicates)
    if method == "wald":
        tests = {name: contrast(fit, {name: 1.0}, level=level) for name in fit.names}
        return {name: (test.lower, test.upper) for name, test in tests.items()}
    if method == "parametric":
        drawn = parametric(fit, replicates, np.random.default_rng(seed), progress=progress)
        return dict(zip(fit.names, percentiles(drawn, level), strict=True))
    one_more, ends = counted(progress, "profiles", len(fit.names)), {}
    for place, name in enumerate(fit.names):
        ends[name] = _profile(fit, place, level=level)
        one_more()
    return ends


def intervals(fit: GeneralisedFit, *, level: float, progress: Progress = silent) -> dict[str, tuple[float, float]]:
    """Profile intervals of standard deviations, by lme4's names, and of the family's own parameters."""
    from scipy.stats import chi2

    refuse_level(level)
    if any(len(term.names) > 1 for term in fit.random):
        raise FitError(
            f"Intervals of variances were asked of {fit.formula!r}, whose effects within a term are correlated.",
            "In families of counts and shares they are of terms with one effect, such as (1 | g) or (x || g).",
            "Write || in place of |, or draw responses with simulate and refit them.",
            about="formula",
        )
    allowed, found = float(chi2.ppf(level, 1)), {}
    one_more = counted(progress, "intervals", len(fit.random) + len(fit.own))
    for place, term in enumerate(fit.random):
        name, estimate = f"sd_{term.names[0]}|{term.group}", float(fit.theta[place])
        found[name] = _ends(fit, place, estimate, allowed, bounds=(0.0, np.inf), unit=max(0.3 * estimate, 0.1))
        one_more()
    for place, parameter in enumerate(fit.law.own):
        at = float(fit.centred[2][place])
        bounds = parameter.bounds(at)
        low, high = _ends(fit, len(fit.theta) + place, at, allowed, bounds=bounds, unit=0.5)
        found[parameter.name] = parameter.shown_end(low, bounds), parameter.shown_end(high, bounds)
        one_more()
    return found


def _ends(
    fit: GeneralisedFit, place: int, estimate: float, allowed: float, *, bounds: tuple[float, float], unit: float
) -> tuple[float, float]:
    """Where -2 log-likelihood has risen by `allowed` with one parameter held, on both sides; else the bounds."""
    from scipy.optimize import brentq

    at = fit.fitted_rows
    start = fit.centred[0][at.kept], fit.theta, fit.centred[2]
    problem = at.problem(fit.response, fit.law)

    def least(value: float) -> float:
        return 2 * maximise(problem, fit.points, fit.names, start=start, errors=False, held=(place, value))[3]

    estimate = float(np.clip(estimate, *bounds))
    best = least(estimate)
    ends = []
    for sign, bound in zip((-1, 1), bounds, strict=True):
        inside, step = estimate, unit
        while True:
            outside = float(np.clip(inside + sign * step, *bounds))
            if least(outside) - best > allowed:
                ends.append(float(brentq(lambda v: least(v) - best - allowed, inside, outside, xtol=1e-6 * unit)))
                break
            if outside == bound or abs(outside - estimate) > WIDEST * unit:
                ends.append(bound)
                break
            inside, step = outside, 1.5 * step
    return ends[0], ends[1]


def _profile(fit: GeneralisedFit, place: int, *, level: float) -> tuple[float, float]:
    """Where twice the log-likelihood, with one coefficient held, has fallen by the chi-squared quantile."""
    from scipy.optimize import brentq
    from scipy.stats import chi2

    at, allowed = fit.fitted_rows, float(chi2.ppf(level, 1))
    given = at.X @ np.linalg.inv(at.origin.restore)  # columns as given, up to what moves the constant
    column, others = given[:, place], np.delete(given, place, axis=1)
    names = tuple(name for i, name in enumerate(fit.names) if i != place)

    def least(value: float) -> float:
        offset = at.offset + value * column
        held = Problem(fit.response, others, at.terms, offset, fit.law, at.weights)
        try:
            return 2 * maximise(held, fit.points, names)[3]
        except Unidentified:
            return np.inf

    estimate, error = float(fit.beta[place]), float(np.sqrt(fit.covariance[place, place]))
    if not np.isfinite(error):
        error = 0.1 / float(np.sqrt(np.mean(column**2)))
    best = least(estimate)

    def above(value: float) -> float:
        return min(least(value) - best - allowed, 1e6)

    ends = []
    for sign in (-1, 1):
        inside, step = estimate, 1.5 * error
        while above(inside + sign * step) < 0 and abs(inside - estimate) < WIDEST * error:
            inside += sign * step
        if not above(inside) <= 0 <= above(inside + sign * step):
            raise FitError(
                f"A profile of {fit.names[place]} was requested, but the likelihood does not fall away from it.",
                "The interval has no end that the data show.",
                'Use method="wald", or fewer columns.',
                about="method",
            )
        ends.append(float(brentq(above, inside, inside + sign * step, xtol=1e-6 * error, rtol=1e-10)))
    return ends[0], ends[1]
