"""Profile-likelihood intervals of standard deviations, correlations and the residual, as lme4's confint gives them.

The deviance is the maximum-likelihood one even after REML, again as in lme4. Each parameter is moved away from its
estimate and the others are re-optimised. The interval ends where the deviance has risen by the quantile of a
chi-squared variable with one degree of freedom. An end that is never reached is the parameter's own bound.

A term's effects are turned so that its columns are orthonormal and the effects in question come first. Their standard
deviations and correlation are then products of a few entries of T (`sparse`), so all the others are free of bounds and
have slopes, at zero variances too.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear import sparse
from discreet.models.linear.descent import FAR, descend
from discreet.models.linear.evaluations import counted
from discreet.models.linear.inference import gram_of_fit
from discreet.models.linear.origin import basis
from discreet.models.linear.solution import Solution, flat, solve
from discreet.models.linear.sparse import Coupling, Gram
from discreet.words.errors import DataError
from discreet.words.faults import Argument
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    from discreet.models.linear.fit import MixedFit

WIDEST = 1e6  # units within which an end is looked for
LITTLE = 0.1  # of an effect whose estimated variance is zero, where searches begin: at zero there is no slope
PROMISED = 1e-9  # decrease of the deviance at which a search ends
HUGE = 300.0  # of a logarithm of sigma
BETTER = 1e-6  # of the root of the rise: what a second start must gain to be followed


@dataclass(frozen=True, slots=True)
class Parameter:
    """A standard deviation or a correlation: its name, estimate, bounds and the unit in which it is moved.

    `term` and `effects` say whose it is: one effect has a standard deviation, two have a correlation, none is sigma's.
    """

    name: str
    estimate: float
    low: float
    high: float
    unit: float
    term: int = 0
    effects: tuple[int, ...] = ()


def intervals(fit: MixedFit, *, level: float = 0.95, progress: Progress = silent) -> dict[str, tuple[float, float]]:
    """Intervals by lme4's names: ``sd_(Intercept)|g``, ``cor_x.(Intercept)|g``, ``sigma``."""
    from scipy.stats import chi2

    if not 0 < level < 1:
        raise DataError(
            (Argument("level", level), " is not a probability."), remedy="Use one such as 0.95.", about="level"
        )
    best, gram = solve(fit.statistics, reml=False), gram_of_fit(fit)
    given = [np.asarray(np.linalg.inv(basis(random)), dtype=np.float64) for random in fit.design.random]
    parameters = _parameters(fit, best, gram, given)
    rise, found = float(np.sqrt(chi2.ppf(level, 1))), {}
    one_more = counted(progress, "ends of intervals", 2 * len(parameters))
    for parameter in parameters:
        root, ends = _Rise(Held.of(gram, best, given, parameter), parameter, best.criterion, rise), []
        for toward in (-1, 1):
            ends.append(root.end(toward))
            one_more()
        found[parameter.name] = (ends[0], ends[1])
    if endless := [name for name, ends in found.items() if not np.isfinite(ends).all()]:
        from discreet.models.linear.fit import MixedWarning

        note = f"the deviance does not rise enough to bound {', '.join(endless)}, so that end is infinite"
        warnings.warn(note, MixedWarning, stacklevel=3)
    return found


def _parameters(fit: MixedFit, best: Solution, gram: Gram, given: list[Matrix]) -> list[Parameter]:
    """Standard deviations are moved in units of the error of one level's effect, where they are smaller than that."""
    sigma, found = float(np.sqrt(best.sigma2)), []
    terms = zip(fit.random, given, best.triangles, gram.ZZ, strict=True)
    for at, (term, back, centred, ZZ) in enumerate(terms):
        T = back @ centred
        sd = np.linalg.norm(T, axis=1) * sigma
        errors = sigma * np.sqrt(np.einsum("ij,jk,ik->i", back, np.linalg.pinv(ZZ.mean(axis=0), hermitian=True), back))
        for i, name in enumerate(term.names):
            unit = float(max(sd[i], errors[i]))
            found.append(Parameter(f"sd_{name}|{term.group}", float(sd[i]), 0.0, np.inf, unit, at, (i,)))
            for j in range(i):
                cor = float(T[i] @ T[j]) * best.sigma2 / (sd[i] * sd[j]) if sd[i] * sd[j] else 0.0
                name_of = f"cor_{name}.{term.names[j]}|{term.group}"
                found.append(Parameter(name_of, float(np.clip(cor, -1, 1)), -1.0, 1.0, 0.5, at, (i, j)))
    return [*found, Parameter("sigma", sigma, 1e-3 * sigma, np.inf, sigma)]


@dataclass(frozen=True)
class Held:
    """The deviance with one parameter held, as a smooth function of variables without bounds, and its slope.

    The variables are theta and the logarithm of sigma, without those that the held parameter decides. If it is a
    correlation, two of them are roots of the standard deviations that it is of.

    Attributes
    ----------
    gram : of the turned effects.
    places : in theta, of the entries (0, 0), (1, 0) and (1, 1) of the term's T: the first of a standard deviation, all
        three of a correlation, none of sigma.
    loadings : the effects in question as combinations of the turned ones.
    estimates : the variables at the estimates.
    """

    gram: Gram
    places: tuple[int, ...]
    loadings: Matrix
    estimates: Vector

    @classmethod
    def of(cls, gram: Gram, best: Solution, given: Sequence[Matrix], held: Parameter) -> Held:
        """`given` are the effects of the columns as given, as combinations of those of the centred ones."""
        count = len(held.effects)
        turns, roots, loadings = [], [], np.zeros((0, 0))
        for at, (ZZ, T, back) in enumerate(zip(gram.ZZ, best.triangles, given, strict=True)):
            L, Q = np.linalg.cholesky(ZZ.sum(axis=0) / gram.rows), np.eye(len(T))
            if count and at == held.term:
                asked = np.linalg.solve(L, back[list(held.effects)].T)
                Q = np.linalg.qr(asked, mode="complete")[0].T
                Q[:count] *= np.where(np.diag(Q @ asked) < 0, -1.0, 1.0)[:, None]
                loadings = (Q @ asked).T
            turns.append(np.asarray(np.linalg.solve(L.T, Q.T), dtype=np.float64))
            root = np.linalg.qr((Q @ L.T @ T).T)[1].T
            root *= np.where(np.diag(root) < 0, -1.0, 1.0)
            roots.append(root + np.diag(np.maximum(LITTLE - np.diag(root), 0.0)))
        start, q = sum(len(T) * (len(T) + 1) // 2 for T in roots[: held.term]), len(roots[held.term])
        places = (start, start + 1, start + q)[: (0, 1, 3)[count]]
        whole = np.append(flat(roots), np.log(best.sigma2) / 2)
        if count == 2:
            whole[places[0]] = np.sqrt(whole[places[0]])
            whole[places[2]] = np.sqrt(np.linalg.norm(loadings[1] @ roots[held.term]))
        decided = (len(whole) - 1, start, start + 1)[count]
        return cls(_turned(gram, turns), places, loadings, np.delete(whole, decided))

    def at(self, value: float, free: Vector) -> tuple[float, Vector]:
        """-2 log likelihood where the parameter has a value, beta profiled out, and its slope in the variables."""
        theta, log_sigma, back = self._placed(value, free)
        if not abs(log_sigma) < HUGE:
            return FAR, np.zeros(len(free))
        sigma2, rows = float(np.exp(2 * log_sigma)), self.gram.rows
        try:
            found = sparse.eliminate(self.gram, theta)
            squares = float(np.linalg.cholesky(found.A)[-1, -1] ** 2 / sigma2)
            deviance = rows * float(np.log(2 * np.pi) + 2 * log_sigma) + found.logdet + squares
            slope = np.append(sparse.gradient(found, reml=False, sigma2=sigma2), 2 * (rows - squares))
        except np.linalg.LinAlgError:  # a step so far that rounding leaves no positive definite matrix
            return FAR, np.zeros(len(free))
        return (deviance, slope @ back) if np.isfinite(deviance) else (FAR, np.zeros(len(free)))

    def _placed(self, value: float, free: Vector) -> tuple[Vector, float, Matrix]:
        """Theta and log sigma, and their slopes in the variables, shape (theta + 1, variables)."""
        size = len(free) + 1
        if not self.places:
            return free, float(np.log(value)), np.eye(size)[:, :-1]
        first, below, second = (*self.places, 0, 0)[:3]
        if not below:
            whole, back = np.insert(free, first, 0.0), np.delete(np.eye(size), first, axis=1)
            whole[first] = value / self.loadings[0, 0] * np.exp(np.clip(-whole[-1], -HUGE, HUGE))
            back[first, -1] = -whole[first]
            return whole[:-1], float(whole[-1]), back
        shared, alone = self.loadings[1, :2].tolist()
        whole, back = np.insert(free, below, 0.0), np.eye(size)
        roots = whole[[first, second]]
        one, other = roots**2  # T's (0, 0), and the second effect's standard deviation over sigma
        rest = float(np.sqrt(1 - value**2))
        whole[[first, below, second]] = one, (other * value - shared * one) / alone, other * rest / alone
        back[first, first], back[below, first] = 2 * roots[0], -shared / alone * 2 * roots[0]
        back[below, second], back[second, second] = value / alone * 2 * roots[1], rest / alone * 2 * roots[1]
        return whole[:-1], float(whole[-1]), np.delete(back, below, axis=1)


def _turned(gram: Gram, turns: Sequence[Matrix]) -> Gram:
    """Other columns of every term: Z_i times a square matrix."""
    crossed = {
        (i, j): Coupling(met.left, met.right, turns[i].T @ met.blocks @ turns[j])
        for (i, j), met in gram.crossed.items()
    }
    ZZ = tuple(M.T @ zz @ M for M, zz in zip(turns, gram.ZZ, strict=True))
    Zxy = tuple(
        (M.T @ zxy.reshape(-1, len(M), zxy.shape[1])).reshape(zxy.shape) for M, zxy in zip(turns, gram.Zxy, strict=True)
    )
    return gram.lend(Gram(ZZ, crossed, Zxy, gram.joint, gram.rows))


class _Rise:
    """The rise of the deviance when one parameter moves and the others are re-optimised."""

    def __init__(self, held: Held, moved: Parameter, least: float, rise: float) -> None:
        self.held, self.moved, self.least, self.rise = held, moved, least, rise
        self.near = held.estimates

    def __call__(self, value: float, *, both: bool) -> float:
        """Root of the rise, less the root that ends the interval.

        The search starts where the last one ended and, where `both` are asked, from the estimates; the better result
        counts.
        """
        found = self._from(value, self.near)
        if both:
            found = min(found, self._from(value, self.held.estimates), key=lambda each: each[1])
        self.near, least = found
        return float(np.sqrt(max(least - self.least, 0.0)) - self.rise)

    def _from(self, value: float, start: Vector) -> tuple[Vector, float]:
        curvature = np.full(len(start), self.held.gram.rows)
        return descend(lambda free: self.held.at(value, free), start, curvature=curvature, promised=PROMISED)

    def end(self, toward: int) -> float:
        """The end of the interval on one side: where the rise is reached, else the parameter's bound."""
        from scipy.optimize import brentq

        moved = self.moved
        bound = moved.high if toward > 0 else moved.low
        inside, step, self.near = moved.estimate, 0.5 * moved.unit, self.held.estimates
        known = {inside: -self.rise}
        while inside != bound and abs(inside) <= WIDEST * moved.unit:
            outside = float(np.clip(inside + toward * step, moved.low, moved.high))
            known[outside] = self(outside, both=True)
            if known[outside] > 0:
                for both in (False, True):
                    function = partial(self._unless, known, both)
                    found = float(brentq(function, inside, outside, xtol=1e-7 * moved.unit, rtol=1e-9))
                    if self(found, both=True) > -BETTER:
                        break
                return found
            inside, step = outside, 2 * step
        return 0.0 if moved.name == "sigma" and toward < 0 else bound

    def _unless(self, known: dict[float, float], both: bool, value: float) -> float:
        """The rise at a value where it is not known."""
        return known[value] if value in known else self(value, both=both)
