"""Likelihoods of generalised mixed models: Laplace's approximation with its gradient, and adaptive quadrature.

Only arrays enter and only arrays leave. Spherical effects u have the mode that penalised Newton steps find; Laplace's
approximation uses the log-density there and the determinant of its second derivatives Omega = Lambda'Z'W Z Lambda + I,
with the observed W, as in TMB (Kristensen et al. 2016, doi:10.18637/jss.v070.i05). Its slopes need third derivatives of
the law and the entries of Omega^-1 between effects that meet in a row, which `elimination` knows. Quadrature is for one
scalar term: Pinheiro and Bates (1995), doi:10.1080/10618600.1995.10474663.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.linear.elimination import Factored
from discreet.models.linear.families.family import Densities, Family, Slopes, by_rows, steps_by_rows
from discreet.models.linear.sparse import Coupling, Gram, blocks_of, by_columns, inverse_slopes
from discreet.models.linear.tops import GroupRows, highest

STEPS, HALVINGS = 100, 30  # of Newton's method for the effects
SETTLED = 1e-15  # of the penalised log-density: what the last step may promise; slopes need all digits of the mode


@dataclass(frozen=True)
class Term:
    """A random term at every row: its columns, shape (rows, q), and the level of each."""

    columns: Matrix
    level: Integers
    levels: int

    @property
    def q(self) -> int:
        return int(self.columns.shape[1])

    def times(self, effects: Matrix) -> Vector:
        """Z b, for effects of shape (levels, q)."""
        if self.q == 1:
            return np.asarray(self.columns[:, 0] * effects[self.level, 0])
        return np.asarray(np.einsum("na,na->n", self.columns, effects[self.level]))

    def gather(self, rows: Vector) -> Matrix:
        """Z' rows, shape (levels, q)."""
        return np.stack([np.bincount(self.level, column * rows, self.levels) for column in self.columns.T], axis=1)


@dataclass
class Problem:
    """The rows of a generalised mixed model.

    `modes` remembers where effects were last, for the next search: of densities with one top only, so that no value
    depends on what was asked before.
    """

    y: Vector
    X: Matrix
    terms: tuple[Term, ...]
    offset: Vector
    family: Family
    weights: Vector | None
    modes: list[Matrix] = field(default_factory=list)

    def law(self, eta: Vector, own: Vector) -> Densities:
        return by_rows(self.family.law(self.y, eta, own), self.weights)

    def near(self, eta: Vector, own: Vector) -> Slopes:
        return steps_by_rows(self.family.near(self.y, eta, own), self.weights)

    @cached_property
    def pairs(self) -> dict[tuple[int, int], tuple[Integers, Integers]]:
        """For terms i < j, the pairs of levels that meet, and the pair of each row."""
        found = {}
        for j, right in enumerate(self.terms):
            for i, left in enumerate(self.terms[:j]):
                found[i, j] = np.unique(left.level * right.levels + right.level, return_inverse=True)
        return found

    def gram(self, curve: Vector) -> Gram:
        """Z'WZ by blocks."""
        diagonal = []
        for term in self.terms:
            block = np.empty((term.levels, term.q, term.q))
            for a in range(term.q):
                for b in range(a + 1):
                    product = term.columns[:, a] * term.columns[:, b] * curve
                    block[:, a, b] = block[:, b, a] = np.bincount(term.level, product, term.levels)
            diagonal.append(block)
        crossed = {}
        for (i, j), (met, pair) in self.pairs.items():
            left, right = self.terms[i], self.terms[j]
            blocks = np.empty((len(met), left.q, right.q))
            for a in range(left.q):
                for b in range(right.q):
                    product = left.columns[:, a] * right.columns[:, b] * curve
                    blocks[:, a, b] = np.bincount(pair, product, len(met))
            crossed[i, j] = Coupling(met // right.levels, met % right.levels, blocks)
        return Gram(tuple(diagonal), crossed, (), np.zeros((1, 1)), float(len(self.y)))

    @cached_property
    def pattern(self) -> Gram:
        """The pattern of Omega, whose order of elimination is found once."""
        return self.gram(np.ones(len(self.y)))

    def factor(self, gram: Gram, T: list[Matrix]) -> Factored:
        diagonal, entries = gram.scaled(T)
        return self.pattern.elimination.factor(diagonal + 1.0, entries)

    def spread(self, T: list[Matrix], u: list[Matrix]) -> Vector:
        """Z Lambda u."""
        parts = [term.times(v @ t.T) for term, t, v in zip(self.terms, T, u, strict=True)]
        return np.asarray(np.sum(parts, axis=0))

    def gathered(self, T: list[Matrix], rows: Vector) -> Vector:
        """Lambda'Z' rows, all effects in one vector."""
        return np.concatenate([(term.gather(rows) @ t).ravel() for term, t in zip(self.terms, T, strict=True)])

    def by_term(self, stacked: Vector) -> list[Matrix]:
        return [part.reshape(-1, term.q) for part, term in zip(self.pattern.split(stacked), self.terms, strict=True)]


@dataclass(frozen=True)
class Mode:
    """Effects at their mode, with everything that Laplace's approximation is made of."""

    T: list[Matrix]
    u: list[Matrix]
    eta: Vector
    law: Densities
    gram: Gram
    factor: Factored

    @property
    def penalised(self) -> float:
        """Minus the log-density of rows and effects, without constants."""
        return _penalised(self.law, self.u)


def _penalised(law: Densities | Slopes, u: list[Matrix]) -> float:
    with np.errstate(over="ignore"):  # infinite after a step too far
        return float(sum(np.vdot(each, each) for each in u)) / 2 - float(law.density.sum())


def mode(problem: Problem, beta: Vector, theta: Vector, own: Vector) -> Mode:
    """The mode of the spherical effects by Newton's method; `LinAlgError` where there is none to be found."""
    T = problem.pattern.triangles(theta)
    fixed = problem.X @ beta + problem.offset
    zero = [np.zeros((term.levels, term.q)) for term in problem.terms]
    if not problem.family.inflated:
        first = problem.modes if problem.modes and problem.family.concave else zero
        problem.modes = u = _climbed(problem, T, fixed, lambda eta: problem.near(eta, own), first)
    elif len(problem.terms) == 1:
        u = _highest_of_groups(problem, T, fixed, own)
    else:
        u = _highest(problem, T, fixed, own)
    law = problem.law(eta := fixed + problem.spread(T, u), own)
    gram = problem.gram(law.curve)
    return Mode(T, u, eta, law, gram, problem.factor(gram, T))


def _highest_of_groups(problem: Problem, T: list[Matrix], fixed: Vector, own: Vector) -> list[Matrix]:
    """The highest mode where zeros may be extra, of one term: group by group."""
    assert problem.family.base is not None
    (term,), base = problem.terms, problem.family.base
    y, weights = problem.y, problem.weights

    def near(law: Family, own: Vector, rows: Integers, eta: Vector) -> Slopes:
        return steps_by_rows(law.near(y[rows], eta, own), None if weights is None else weights[rows])

    def all_of(law: Family, own: Vector) -> GroupRows:
        everything = np.arange(len(y))
        return GroupRows(term.columns @ T[0], term.level, term.levels, fixed, everything, partial(near, law, own))

    counted = all_of(base, own[:-1])
    last = problem.modes or [np.zeros((term.levels, term.q))] * 2
    u, problem.modes = highest(all_of(problem.family, own), counted, counted.rows_where(y > 0), last)
    return [u]


def _highest(problem: Problem, T: list[Matrix], fixed: Vector, own: Vector) -> list[Matrix]:
    """The same of several terms: from where all zeros are counted, and from where all are extra."""
    assert problem.family.base is not None
    base, above = problem.family.base, (problem.y > 0).astype(np.float64)
    weights = above if problem.weights is None else above * problem.weights

    def counted(eta: Vector) -> Slopes:
        return steps_by_rows(base.near(problem.y, eta, own[:-1]), problem.weights)

    def extra(eta: Vector) -> Slopes:
        return steps_by_rows(base.near(problem.y, eta, own[:-1]), weights)

    zero = [np.zeros((term.levels, term.q)) for term in problem.terms]
    last = [problem.modes[: len(zero)], problem.modes[len(zero) :]] if problem.modes else [zero, zero]
    single = [_climbed(problem, T, fixed, law, u) for law, u in zip((counted, extra), last, strict=True)]
    problem.modes = [*single[0], *single[1]]
    tops = []
    for first in single:
        u = _climbed(problem, T, fixed, lambda eta: problem.near(eta, own), first)
        law = problem.near(fixed + problem.spread(T, u), own)
        held = problem.factor(problem.gram(law.curve), T).logdet / 2
        tops.append((_penalised(law, u) + max(held, 0.0), u))
    return min(tops, key=lambda top: top[0])[1]


def _climbed(
    problem: Problem, T: list[Matrix], fixed: Vector, near: Callable[[Vector], Slopes], first: list[Matrix]
) -> list[Matrix]:
    """Effects at a top of their density, by Newton steps from `first`, or from zero where that is higher."""
    u, law = first, near(fixed + problem.spread(T, first))
    value = _penalised(law, u)
    if any(each.any() for each in first):
        zero = [np.zeros_like(each) for each in u]
        other = near(fixed)
        if not np.isfinite(value) or _penalised(other, zero) < value:
            u, law, value = zero, other, _penalised(other, zero)
    for _ in range(STEPS):
        gram, slope = problem.gram(law.curve), problem.gathered(T, law.slope)
        slope = slope - np.concatenate([each.ravel() for each in u])
        try:
            factor = problem.factor(gram, T)
        except np.linalg.LinAlgError:  # far from the mode the observed curvature may be negative
            factor = problem.factor(problem.gram(np.maximum(law.curve, 0.0)), T)
        step = factor.back(*factor.reduce(slope[:, None]))[:, 0]
        promised = float(step @ slope)
        size = 1.0
        for _ in range(HALVINGS):
            moved = [old + size * new for old, new in zip(u, problem.by_term(step), strict=True)]
            new_law = near(fixed + problem.spread(T, moved))
            there = _penalised(new_law, moved)
            if np.isfinite(there) and there <= value + 1e-13 * abs(value):
                break
            size /= 2
        else:
            break
        u, law, value = moved, new_law, there
        if promised <= SETTLED * (1 + abs(value)):  # Newton's next step would be lost in rounding
            break
    return u


def laplace(problem: Problem, beta: Vector, theta: Vector, own: Vector) -> tuple[float, Vector]:
    """Minus the approximate log-likelihood, and its slope in (beta, theta, own)."""
    at = mode(problem, beta, theta, own)
    value = at.penalised + at.factor.logdet / 2
    diagonal, entries = at.factor.inverse()
    blocks, between = blocks_of(at.gram, diagonal, entries)
    known = [term.columns @ t for term, t in zip(problem.terms, at.T, strict=True)]
    leverage = np.zeros(len(problem.y))
    for term, scaled, block in zip(problem.terms, known, blocks, strict=True):
        leverage += _quadratic(scaled, block[term.level], scaled)
    for (i, j), block in between.items():
        leverage += 2 * _quadratic(known[i], block[problem.pairs[i, j][1]], known[j])
    a = leverage * at.law.change / 2
    w = at.factor.back(*at.factor.reduce(problem.gathered(at.T, a)[:, None]))[:, 0]
    drawn = problem.by_term(w)
    along = problem.spread(at.T, drawn)
    total = a - at.law.curve * along - at.law.slope
    slopes = inverse_slopes(at.gram, at.T, blocks, between)
    by_theta = []
    for term, u, pull, slope in zip(problem.terms, at.u, drawn, slopes, strict=True):
        found = slope + term.gather(total).T @ u + term.gather(at.law.slope).T @ pull
        by_theta.append(found.T[by_columns(term.q)])
    by_own = [-d.sum() + leverage @ dc / 2 + along @ ds for d, ds, dc in at.law.own]
    return value, np.concatenate([problem.X.T @ total, *by_theta, np.array(by_own)])


def _quadratic(left: Matrix, blocks: Matrix, right: Matrix) -> Vector:
    """left_n' block_n right_n at every row."""
    if left.shape[1] == right.shape[1] == 1:
        return np.asarray(left[:, 0] * blocks[:, 0, 0] * right[:, 0])
    return np.asarray(np.einsum("na,nab,nb->n", left, blocks, right))


def quadrature(problem: Problem, beta: Vector, theta: Vector, own: Vector, points: int) -> float:
    """Minus the log-likelihood of a model with one scalar term, by adaptive Gauss-Hermite quadrature."""
    from scipy.special import logsumexp

    at = mode(problem, beta, theta, own)
    (term,), t = problem.terms, float(at.T[0][0, 0])
    nodes, weights = np.polynomial.hermite.hermgauss(points)
    scale = np.sqrt(2 / (1 + t**2 * at.gram.ZZ[0][:, 0, 0]))
    fixed, logs = problem.X @ beta + problem.offset, []
    for node, weight in zip(nodes, weights, strict=True):
        u = at.u[0][:, 0] + scale * node
        density = problem.law(fixed + t * term.times(u[:, None]), own).density
        logs.append(np.bincount(term.level, density, term.levels) - u**2 / 2 + node**2 + np.log(weight))
    return -float((logsumexp(np.stack(logs), axis=0) + np.log(scale) - np.log(2 * np.pi) / 2).sum())
