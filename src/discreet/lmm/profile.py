"""Profile-likelihood intervals of standard deviations, correlations and the residual, as lme4's confint gives them.

The deviance is the maximum-likelihood one even after REML, again as in lme4. Each parameter is moved away from its
estimate and the others are re-optimised. The interval ends where the deviance has risen by the quantile of a
chi-squared variable with one degree of freedom. An end that is never reached is the parameter's own bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.errors import DataError
from discreet.faults import Argument
from discreet.lmm import sparse
from discreet.lmm.evaluations import counted
from discreet.lmm.moments import Moments
from discreet.lmm.origin import basis
from discreet.lmm.reml import GroupCurve
from discreet.lmm.solution import Solution, solve
from discreet.lmm.sparse import Gram
from discreet.progress import Progress, silent

if TYPE_CHECKING:
    from discreet.lmm.effects import RandomEffects
    from discreet.lmm.fit import MixedFit

IMPOSSIBLE = 1e12  # stands for the deviance where correlations do not form a covariance matrix
WIDEST = 60.0  # how many times its unit a parameter may grow while another is held


@dataclass(frozen=True, slots=True)
class Parameter:
    """A standard deviation or a correlation: name, estimate, bounds and the unit in which it is moved."""

    name: str
    estimate: float
    low: float
    high: float
    unit: float


def intervals(fit: MixedFit, *, level: float = 0.95, progress: Progress = silent) -> dict[str, tuple[float, float]]:
    """Intervals by lme4's names: ``sd_(Intercept)|g``, ``cor_x.(Intercept)|g``, ``sigma``."""
    from scipy.stats import chi2

    if not 0 < level < 1:
        raise DataError(
            (Argument("level", level), " is not a probability."), remedy="Use one such as 0.95.", about="level"
        )
    best = solve(fit.statistics, reml=False)
    bases = [basis(random) for random in fit.design.random]
    parameters = _parameters(fit.random, best, bases)
    deviance = _deviance(fit.statistics, bases)
    rise = float(np.sqrt(chi2.ppf(level, 1)))
    found = {}
    one_more = counted(progress, "ends of intervals", 2 * len(parameters))
    for index, parameter in enumerate(parameters):
        root = _Rise(deviance, parameters, index, best.criterion, rise)
        ends = []
        for toward in (-1, 1):
            ends.append(root.end(toward))
            one_more()
        found[parameter.name] = (ends[0], ends[1])
    return found


def _parameters(random: tuple[RandomEffects, ...], best: Solution, bases: list[Matrix]) -> list[Parameter]:
    sigma, found = float(np.sqrt(best.sigma2)), []
    for term, B, centred in zip(random, bases, best.triangles, strict=True):
        T = np.linalg.solve(B, centred)
        sd = np.linalg.norm(T, axis=1) * sigma
        typical = np.sqrt(np.mean(term.values**2, axis=0)) + 0.1 * sigma
        for i, name in enumerate(term.names):
            unit = float(sd[i] or typical[i])
            found.append(Parameter(f"sd_{name}|{term.group}", float(sd[i]), 0.0, np.inf, unit))
            for j in range(i):
                cor = float(T[i] @ T[j]) * best.sigma2 / (sd[i] * sd[j]) if sd[i] * sd[j] else 0.0
                found.append(Parameter(f"cor_{name}.{term.names[j]}|{term.group}", cor, -1.0, 1.0, 0.5))
    return [*found, Parameter("sigma", sigma, 1e-3 * sigma, np.inf, sigma)]


def _deviance(statistics: Moments | Gram, bases: list[Matrix]) -> Callable[[Vector], float]:
    """-2 log likelihood as a function of standard deviations, correlations and sigma; beta is profiled out.

    `bases` take effects of the columns as given to those of the centred columns that the statistics are about.
    """
    if isinstance(statistics, Moments):
        curve, rows = GroupCurve.of(statistics), statistics.rows

        def parts(theta: Vector) -> tuple[float, Matrix]:
            (A,), (logdet,) = curve.at(theta**2, 0)
            return float(logdet[0]), A[0]
    else:
        gram, rows = statistics, statistics.rows

        def parts(theta: Vector) -> tuple[float, Matrix]:
            at = sparse.eliminate(gram, theta)
            return at.logdet, at.A

    def deviance(values: Vector) -> float:
        sigma, theta, start = values[-1], [], 0
        for B in bases:
            q = len(B)
            triangle = _triangle(values[start : start + q * (q + 1) // 2], q)
            if triangle is None:
                return IMPOSSIBLE
            upper = np.asarray(np.linalg.qr((B @ triangle).T, mode="r"))  # any root of a covariance, made triangular
            theta.append(upper[np.triu_indices(q)] / sigma)
            start += q * (q + 1) // 2
        try:
            logdet, A = parts(np.concatenate(theta))
            rss = np.linalg.cholesky(A)[-1, -1] ** 2
        except np.linalg.LinAlgError:  # a step so far that rounding leaves no positive definite matrix
            return IMPOSSIBLE
        return float(rows * np.log(2 * np.pi * sigma**2) + logdet + rss / sigma**2)

    return deviance


def _triangle(values: Vector, q: int) -> Matrix | None:
    """The Cholesky factor of a covariance matrix given row by row as correlations and a standard deviation."""
    rows, columns = np.tril_indices(q)
    order = np.lexsort((np.where(rows == columns, -1, columns), rows))
    given = np.zeros((q, q))
    given[rows[order], columns[order]] = values
    sd, cor = np.diag(given).copy(), np.tril(given, -1) + np.eye(q)
    factor = np.zeros((q, q))
    for i in range(q):
        for j in range(i):
            left = cor[i, j] - factor[i, :j] @ factor[j, :j]
            factor[i, j] = left / factor[j, j] if factor[j, j] > 0 else 0.0
        pivot = 1 - factor[i, :i] @ factor[i, :i]
        if pivot < -1e-9:
            return None
        factor[i, i] = np.sqrt(np.maximum(pivot, 0.0))
    return sd[:, None] * factor


class _Rise:
    """The rise of the deviance when one parameter moves and the others are re-optimised."""

    def __init__(
        self,
        deviance: Callable[[Vector], float],
        parameters: list[Parameter],
        index: int,
        least: float,
        rise: float,
    ) -> None:
        self.deviance, self.index, self.least, self.rise = deviance, index, least, rise
        self.moved = parameters[index]
        self.others = [parameter for at, parameter in enumerate(parameters) if at != index]
        self.estimates = np.array([parameter.estimate / parameter.unit for parameter in self.others])
        self.near = self.estimates

    def __call__(self, value: float) -> float:
        """Signed root of the rise, less the root that ends the interval."""
        units = np.array([parameter.unit for parameter in self.others])

        def constrained(scaled: Vector) -> float:
            return self.deviance(np.insert(scaled * units, self.index, value))

        least = self._one(constrained) if len(self.others) == 1 else self._several(constrained)
        return float(np.sqrt(max(least - self.least, 0.0)) - self.rise)

    def _one(self, constrained: Callable[[Vector], float]) -> float:
        from scipy.optimize import minimize_scalar

        other = self.others[0]
        bounds = (other.low / other.unit, WIDEST)
        found = minimize_scalar(
            lambda x: constrained(np.array([x])), bounds=bounds, method="bounded", options={"xatol": 1e-7}
        )
        return min(float(found.fun), constrained(np.array([bounds[0]])))

    def _several(self, constrained: Callable[[Vector], float]) -> float:
        """Searches start where the last one ended and from the estimates; the better result counts.

        Logarithms of standard deviations and inverse hyperbolic tangents of correlations have no walls to run into.
        """
        from scipy.optimize import minimize

        units = np.array([other.unit for other in self.others])
        bounded = np.array([other.low < 0 for other in self.others])

        def free(scaled: Vector) -> Vector:
            held = np.where(bounded, np.clip(scaled * units, -1 + 1e-9, 1 - 1e-9), np.maximum(scaled, 0.05))
            return np.where(bounded, np.arctanh(np.where(bounded, held, 0.0)), np.log(np.where(bounded, 1.0, held)))

        def scaled(free: Vector) -> Vector:
            return np.where(bounded, np.tanh(free) / units, np.exp(np.where(bounded, 0.0, free)))

        limits = [(-15.0, 15.0) if other.low < 0 else (-15.0, float(np.log(WIDEST))) for other in self.others]
        options = {"ftol": 1e-11, "gtol": 1e-4}
        best = None
        for start in (self.near, self.estimates):
            found = minimize(
                lambda x: constrained(scaled(x)), free(start), method="L-BFGS-B", bounds=limits, options=options
            )
            if best is None or found.fun < best.fun:
                best = found
        assert best is not None
        self.near = scaled(best.x)
        return float(best.fun)

    def end(self, toward: int) -> float:
        """The end of the interval on one side: where the rise is reached, else the parameter's bound."""
        from scipy.optimize import brentq

        moved = self.moved
        bound = moved.high if toward > 0 else moved.low
        inside, step = moved.estimate, 0.5 * moved.unit
        while True:
            outside = float(np.clip(inside + toward * step, moved.low, moved.high))
            if self(outside) > 0:
                return float(brentq(self, inside, outside, xtol=1e-7 * moved.unit, rtol=1e-9))
            if outside == bound or abs(outside) > WIDEST * moved.unit:
                return 0.0 if moved.name == "sigma" and toward < 0 else bound
            inside = outside
