"""The best parameters of a generalised mixed model: a start without random effects, then descent on the likelihood.

Only arrays enter and only arrays leave, except for the names that a refusal of separated rows needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from discreet.arrays import Mask, Matrix, Vector
from discreet.models.linear.descent import FAR, descend
from discreet.models.linear.evaluations import Sloped, counted, told
from discreet.models.linear.laplace import Problem, laplace, quadrature
from discreet.models.linear.solution import BOUNDARY, flat
from discreet.words.errors import Unidentified
from discreet.words.progress import Progress, part, silent

STEP, GROWING, LONGEST = 1e-3, 10.0, 0.1  # standard errors over which slopes are compared, and variables at most
SEEN = 1e-7  # change of the value over a step from which on rounding does not hide the difference of slopes
ABSENT = -40.0  # logit of a share of extra zeros that no double tells from none
SMALL, EVEN = -4.0, 0.0  # logits of the shares that are tried beside the first one
MORE = ((0.5, -1.0), (1.0, 0.0), (1.0, 1.5), (0.25, 0.0))  # theta and logit: tried where no other search ended flat
LEAST = 1e-300  # of the mean of responses
FLAT = 1e-2  # squared slopes in units of their curvature, up to which a search has ended and is not stuck
SHARP = 0.05  # curvature of a parameter of the family, for each row
SAME = 1e-8  # difference of values below which two searches ended alike
Start: TypeAlias = tuple[Vector, Vector, Vector]
Found: TypeAlias = tuple[Vector, float]


@dataclass(frozen=True)
class _Criterion:
    """Minus the log-likelihood of (beta by its root, theta by its unit, parameters of the family); `held` ones stay."""

    problem: Problem
    points: int
    root: Matrix
    unit: Vector
    held: Mapping[int, float]

    def parts(self, x: Vector) -> Start:
        p, k = len(self.root), len(self.unit)
        rest = np.concatenate([x[p : p + k] * self.unit, x[p + k :]])
        for place, value in self.held.items():
            rest[place] = value
        return self.root @ x[:p], rest[:k], rest[k:]

    def laplace(self, x: Vector) -> tuple[float, Vector]:
        p, k = len(self.root), len(self.unit)
        try:
            value, slope = laplace(self.problem, *self.parts(x))
        except np.linalg.LinAlgError:
            return FAR, np.zeros(len(x))
        if not np.isfinite(value):
            return FAR, np.zeros(len(x))
        found = np.concatenate([self.root.T @ slope[:p], slope[p : p + k] * self.unit, slope[p + k :]])
        for place in self.held:
            found[p + place] = 0.0
        return value, found

    def by_points(self, x: Vector) -> float:
        try:
            return quadrature(self.problem, *self.parts(x), self.points)
        except np.linalg.LinAlgError:
            return FAR

    def differences(self, x: Vector) -> tuple[float, Vector]:
        steps = 1e-5 * np.eye(len(x))
        slopes = [(self.by_points(x + d) - self.by_points(x - d)) / 2e-5 for d in steps]
        return self.by_points(x), np.array(slopes)


@dataclass(frozen=True)
class _Search:
    """Descent on the likelihood. `diagonal` says which variables may be stuck at zero, where slopes vanish."""

    criterion: _Criterion
    curvature: Vector
    diagonal: Mask
    each: float

    def lowest(self, first: Vector, progress: Progress) -> Found:
        function, curvature = self.criterion.laplace, self.curvature
        watched = told(function, progress, curvature=curvature, promised=1e-10, each=self.each)
        x, value = descend(watched, first, curvature=curvature, promised=1e-10)
        for zero in np.flatnonzero(self.diagonal & (np.abs(x) < BOUNDARY)):
            aside = np.where(np.arange(len(x)) == zero, 0.1, x)
            if function(aside)[0] < value:
                x, value = descend(watched, aside, curvature=curvature, promised=1e-10)
        return x, value

    def by_points(self, first: Vector, progress: Progress) -> Found:
        watched = told(self.criterion.differences, progress, curvature=self.curvature, promised=1e-9)
        return descend(watched, first, curvature=self.curvature, promised=1e-9)

    def settled(self, x: Vector) -> bool:
        """Whether slopes vanish here. They do not near a flat top of a group, where the approximation has no bound."""
        return float(np.sum(self.criterion.laplace(x)[1] ** 2 / self.curvature)) < FLAT

    def holding(self, place: int, value: float) -> _Search:
        """The search that holds one more parameter after beta."""
        held = {**self.criterion.held, place: value}
        return replace(self, criterion=replace(self.criterion, held=held))


def maximise(
    problem: Problem,
    points: int,
    names: tuple[str, ...],
    *,
    start: Start | None = None,
    errors: bool = True,
    held: tuple[int, float] | None = None,
    progress: Progress = silent,
) -> tuple[Vector, Vector, Vector, float, Matrix]:
    """beta, theta, parameters of the family, minus the log-likelihood, and the inverse of its second derivatives.

    `start` is where the first three are looked for; without it, extra zeros are looked for from several shares. Without
    `errors` the inverse is not computed, and empty. `held` is the place of a parameter after beta, and the value that
    it keeps.
    """
    without, curve, root = _without_effects(problem, names)
    p, k, law = len(without), len(problem.pattern.start), problem.family
    own = np.array([parameter.first for parameter in law.own])
    scales = [np.sqrt(np.mean(term.columns**2, axis=0)) for term in problem.terms]
    unit = np.concatenate([_by_row(1 / s) for s in scales])
    root = _with_effects(problem, curve, 0.5 * problem.pattern.start * unit if start is None else start[1], root)
    diagonal = np.concatenate([np.zeros(p, dtype=bool), problem.pattern.start > 0, np.zeros(len(own), dtype=bool)])
    if held is not None:
        diagonal[p + held[0]] = False
    first = np.concatenate([np.linalg.solve(root, without), 0.5 * problem.pattern.start, own])
    if start is not None:
        theta = np.where(problem.pattern.start > 0, np.maximum(start[1] / unit, 0.1), start[1] / unit)
        first = np.concatenate([np.linalg.solve(root, start[0]), theta, start[2]])  # slopes are zero at theta = 0
        if law.inflated:
            first[-1] = max(first[-1], SMALL)  # and where there are no extra zeros
    levels = np.concatenate([np.full(t.q * (t.q + 1) // 2, float(t.levels)) for t in problem.terms])
    curvature = np.concatenate([np.ones(p), np.maximum(levels, 2.0), np.full(len(own), SHARP * len(problem.y))])
    each = 0.0 if progress is silent else problem.pattern.elimination.seconds
    criterion = _Criterion(problem, points, root, unit, {} if held is None else {held[0]: held[1]})
    search = _Search(criterion, curvature, diagonal, each)
    last = k + len(own) - 1
    if law.inflated and start is None and last not in criterion.held:
        x, value = _with_zeros(search, first, last, points, part(progress, 0.0, 0.7))
    else:
        x, value = search.lowest(first, part(progress, 0.0, 0.3 if points > 1 else 0.7))
        if points > 1:
            x, value = search.by_points(x, part(progress, 0.3, 0.7))
    beta, theta, own = criterion.parts(x)
    triangles = problem.pattern.triangles(theta)
    signs = flat([np.where(np.diag(T) < 0, -1.0, 1.0) * np.ones_like(T) for T in triangles])
    inverse = np.zeros((0, 0))
    if errors:
        function = criterion.laplace if points == 1 else criterion.differences
        second = _second(function, x, curvature, len(own), part(progress, 0.7, 1.0))
        back = np.zeros_like(second)
        back[:p, :p], back[p:, p:] = root, np.diag(np.concatenate([signs * unit, np.ones(len(own))]))
        inverse = back @ _inverse(second) @ back.T
    problem.modes = []
    return beta, signs * theta, own, value, inverse


def is_stuck(problem: Problem, beta: Vector, theta: Vector, own: Vector) -> bool:
    """Whether the likelihood still rises with the share of extra zeros, as it does without bound near a flat top."""
    return float(laplace(problem, beta, theta, own)[1][-1]) ** 2 / (SHARP * len(problem.y)) >= FLAT


def _with_zeros(search: _Search, first: Vector, last: int, points: int, progress: Progress) -> Found:
    """The lowest of several searches: the likelihood has several tops, and is flat where there are no extra zeros.

    The one without extra zeros is among them, so a fit is never below it. Laplace's approximation is infinite where the
    density of a group's effects has a flat top: searches that end at such a place, whose slopes do not vanish, count
    only where there are no others.
    """
    plain = search.holding(last, ABSENT)
    telling = [part(progress, i / 6, (i + 1) / 6) for i in range(6)]
    without, level = plain.lowest(first, telling[0])
    without[-1] = ABSENT
    aside = np.where(search.diagonal, np.maximum(np.abs(without), 0.1), without)
    ends = [search.lowest(first, telling[1])]
    ends += [search.lowest(np.append(aside[:-1], share), telling[2 + i]) for i, share in enumerate((SMALL, EVEN))]
    kept = [end for end in ends if search.settled(end[0])]
    for theta, share in () if kept else MORE:
        ends.append(search.lowest(np.append(np.where(search.diagonal, theta, first)[:-1], share), telling[3]))
        kept += [ends[-1]] if search.settled(ends[-1][0]) else []
    found, *others = kept or ends
    for other in others:
        found = other if other[1] < found[1] - SAME else found
    if points > 1:
        found = search.by_points(found[0], telling[4])
        without, level = plain.by_points(without, telling[5])
    return (without, level) if level <= found[1] + SAME else found


def _second(function: Sloped, x: Vector, curvature: Vector, own: int, progress: Progress) -> Matrix:
    """Second derivatives as differences of slopes, over steps that grow until rounding does not hide what they change.

    Some of the `own` parameters, the last ones, may have no end, as a size does where counts are Poisson's. They are
    then flat, have zeros here, and count as known.
    """
    one_more = counted(progress, "second derivatives", len(x))
    found, at = np.zeros((len(x), len(x))), np.arange(len(x))
    flat_ones = []
    for i, step in enumerate(STEP / np.sqrt(curvature)):
        while True:
            d = np.where(at == i, step, 0.0)
            found[i] = (function(x + d)[1] - function(x - d)[1]) / (2 * step)
            if found[i, i] * step**2 >= SEEN or step >= LONGEST:
                break
            step *= GROWING
        if i >= len(x) - own and found[i, i] * step**2 < SEEN:
            flat_ones.append(i)
        one_more()
    found[flat_ones] = found[:, flat_ones] = 0.0
    return (found + found.T) / 2


def _inverse(second: Matrix) -> Matrix:
    """The inverse, without directions that are flat; in any units of the variables."""
    scale = 1 / np.sqrt(np.where(np.diag(second) > 0, np.diag(second), 1.0))
    scaled = np.linalg.pinv(second * np.outer(scale, scale), rcond=1e-12, hermitian=True)
    return np.asarray(scaled * np.outer(scale, scale))


def _by_row(scale: Vector) -> Vector:
    """The scale of the row of each entry of a lower triangle, column by column."""
    q = len(scale)
    return np.array([scale[row] for column in range(q) for row in range(column, q)])


def _with_effects(problem: Problem, curve: Vector, theta: Vector, root: Matrix) -> Matrix:
    """A root of the covariance of fixed effects beside random ones of a guessed size.

    Where rows have many events, all uncertainty of an intercept is that of its groups. `root`, of the model without
    effects, is for what rounding leaves nothing of.
    """
    X, T = problem.X, problem.pattern.triangles(theta)
    if not X.shape[1]:
        return root
    try:
        factor = problem.factor(problem.gram(curve), T)
        met = np.stack([problem.gathered(T, curve * column) for column in X.T], axis=1)
        left = X.T @ (curve[:, None] * X) - met.T @ factor.back(*factor.reduce(met))
        return np.asarray(np.linalg.inv(np.linalg.cholesky((left + left.T) / 2)).T)
    except np.linalg.LinAlgError:
        return root


def _without_effects(problem: Problem, names: tuple[str, ...]) -> tuple[Vector, Vector, Matrix]:
    """Fixed effects of the model without random ones, the curvature of rows there, and a root of the covariance.

    Separated rows are refused.
    """
    X, law = problem.X, problem.family
    y, weights = problem.y, 1.0 if problem.weights is None else problem.weights
    center = np.clip(np.average(y, weights=None if problem.weights is None else problem.weights), LEAST, None)
    own = np.array([parameter.first for parameter in law.own])
    beta = np.linalg.lstsq(X, law.link.of(np.full(len(y), center)) - problem.offset, rcond=None)[0]
    value = -np.inf
    for _ in range(50):
        at = law.start(y, X @ beta + problem.offset, own)
        curve = np.maximum(at.curve * weights, 1e-12)
        root = np.linalg.inv(np.linalg.cholesky(X.T @ (curve[:, None] * X))).T
        step = root @ (root.T @ (X.T @ (at.slope * weights)))
        gain = float(step @ (X.T @ (at.slope * weights)))
        if gain < 1e-8:
            break
        value, size = float((at.density * weights).sum()), 1.0
        while size > 1e-6:
            there = float((law.start(y, X @ (beta + size * step) + problem.offset, own).density * weights).sum())
            if there >= value:
                break
            size /= 2
        beta = beta + size * step
    if law.separated is not None and law.separated(X @ beta, y).any():
        moved = np.abs(beta) * X.std(axis=0) + np.abs(beta) * (X.std(axis=0) == 0)
        worst = names[int(np.argmax(moved))]
        raise Unidentified(
            "The fixed effects separate the outcomes: some rows are predicted with certainty, so "
            f"{worst} has no finite estimate.",
            "Every level of a factor needs both outcomes, or a count above zero.",
            "Drop that term, or join levels of it.",
            about="formula",
        )
    if law.says is not None:
        curve = curve * law.says(at.curve)
        root = np.linalg.inv(np.linalg.cholesky(X.T @ (curve[:, None] * X))).T
    return np.asarray(beta, dtype=np.float64), curve, np.asarray(root, dtype=np.float64)
