"""The best parameters of a generalised mixed model: a start without random effects, then descent on the likelihood.

Only arrays enter and only arrays leave, except for the names that a refusal of separated rows needs.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.errors import Unidentified
from discreet.lmm.descent import FAR, descend
from discreet.lmm.evaluations import counted, told
from discreet.lmm.families import family
from discreet.lmm.laplace import Problem, laplace, quadrature
from discreet.lmm.solution import BOUNDARY, flat
from discreet.progress import Progress, part, silent

APART = 15.0  # a linear predictor so far from zero that a probability is 0 or 1 to six digits
STEP = 1e-4  # of the differences of slopes that give second derivatives
Start: TypeAlias = tuple[Vector, Vector, Vector]


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

    `start` is where the first three are looked for. Without `errors` the inverse is not computed, and empty. `held` is
    the place of a parameter after beta, and the value that it keeps.
    """
    without, root = _without_effects(problem, names)
    p, k = len(without), len(problem.pattern.start)
    own = np.array([{"log size": 1.0, "logit of extra zeros": -1.0}[name] for name in problem.family.own])
    scales = [np.sqrt(np.mean(term.columns**2, axis=0)) for term in problem.terms]
    unit = np.concatenate([_by_row(1 / s) for s in scales])

    def parts(x: Vector) -> tuple[Vector, Vector, Vector]:
        beta, rest = root @ x[:p], np.concatenate([x[p : p + k] * unit, x[p + k :]])
        if held is not None:
            rest[held[0]] = held[1]
        return beta, rest[:k], rest[k:]

    def sloped(x: Vector) -> tuple[float, Vector]:
        try:
            value, slope = laplace(problem, *parts(x))
        except np.linalg.LinAlgError:
            return FAR, np.zeros(len(x))
        if not np.isfinite(value):
            return FAR, np.zeros(len(x))
        found = np.concatenate([root.T @ slope[:p], slope[p : p + k] * unit, slope[p + k :]])
        if held is not None:
            found[p + held[0]] = 0.0
        return value, found

    def by_points(x: Vector) -> float:
        try:
            return quadrature(problem, *parts(x), points)
        except np.linalg.LinAlgError:
            return FAR

    def differences(x: Vector) -> tuple[float, Vector]:
        steps = 1e-5 * np.eye(len(x))
        return by_points(x), np.array([(by_points(x + d) - by_points(x - d)) / 2e-5 for d in steps])

    first = np.concatenate([np.linalg.solve(root, without), 0.5 * problem.pattern.start, own])
    if start is not None:
        theta = np.where(problem.pattern.start > 0, np.maximum(start[1] / unit, 0.1), start[1] / unit)
        first = np.concatenate([np.linalg.solve(root, start[0]), theta, start[2]])  # slopes are zero at theta = 0
    levels = np.concatenate([np.full(t.q * (t.q + 1) // 2, float(t.levels)) for t in problem.terms])
    curvature = np.concatenate([np.ones(p), np.maximum(levels, 2.0), np.full(len(own), 0.05 * len(problem.y))])
    each = 0.0 if progress is silent else problem.pattern.elimination.seconds
    share = 0.3 if points > 1 else 0.7
    watched = told(sloped, part(progress, 0.0, share), curvature=curvature, promised=1e-10, each=each)
    x, value = descend(watched, first, curvature=curvature, promised=1e-10)
    diagonal = np.concatenate([np.zeros(p, dtype=bool), problem.pattern.start > 0, np.zeros(len(own), dtype=bool)])
    if held is not None:
        diagonal[p + held[0]] = False
    for zero in np.flatnonzero(diagonal & (np.abs(x) < BOUNDARY)):
        aside = np.where(np.arange(len(x)) == zero, 0.1, x)
        if sloped(aside)[0] < value:
            x, value = descend(watched, aside, curvature=curvature, promised=1e-10)
    function = sloped
    if points > 1:
        function = differences
        watched = told(differences, part(progress, share, 0.7), curvature=curvature, promised=1e-9)
        x, value = descend(watched, x, curvature=curvature, promised=1e-9)
    beta, theta, own = parts(x)
    triangles = problem.pattern.triangles(theta)
    signs = flat([np.where(np.diag(T) < 0, -1.0, 1.0) * np.ones_like(T) for T in triangles])
    inverse = np.zeros((0, 0))
    if errors:
        one_more = counted(part(progress, 0.7, 1.0), "second derivatives", len(x))
        second = np.empty((len(x), len(x)))
        for row, d in zip(second, STEP * np.eye(len(x)), strict=True):
            row[:] = (function(x + d)[1] - function(x - d)[1]) / (2 * STEP)
            one_more()
        back = np.zeros_like(second)
        back[:p, :p], back[p:, p:] = root, np.diag(np.concatenate([signs * unit, np.ones(len(own))]))
        inverse = back @ np.linalg.pinv((second + second.T) / 2, rcond=1e-12, hermitian=True) @ back.T
    problem.modes = []
    return beta, signs * theta, own, value, inverse


def _by_row(scale: Vector) -> Vector:
    """The scale of the row of each entry of a lower triangle, column by column."""
    q = len(scale)
    return np.array([scale[row] for column in range(q) for row in range(column, q)])


def _without_effects(problem: Problem, names: tuple[str, ...]) -> tuple[Vector, Matrix]:
    """Fixed effects of the model without random ones, and a root of their covariance; refuses separated rows."""
    X, law = problem.X, family("binomial" if not problem.family.counts else "poisson")
    y, weights = problem.y, 1.0 if problem.weights is None else problem.weights
    center = np.clip(np.average(y, weights=None if problem.weights is None else problem.weights), 1e-6, None)
    guess = np.log(center / (1 - min(center, 1 - 1e-6))) if law.name == "binomial" else np.log(center)
    beta = np.linalg.lstsq(X, np.full(len(y), guess) - problem.offset, rcond=None)[0]
    value = -np.inf
    for _ in range(50):
        at = law.law(y, X @ beta + problem.offset, np.zeros(0))
        curve = np.maximum(at.curve * weights, 1e-12)
        root = np.linalg.inv(np.linalg.cholesky(X.T @ (curve[:, None] * X))).T
        step = root @ (root.T @ (X.T @ (at.slope * weights)))
        gain = float(step @ (X.T @ (at.slope * weights)))
        if gain < 1e-8:
            break
        value, size = float((at.density * weights).sum()), 1.0
        while size > 1e-6:
            there = float((law.law(y, X @ (beta + size * step) + problem.offset, np.zeros(0)).density * weights).sum())
            if there >= value:
                break
            size /= 2
        beta = beta + size * step
    eta = X @ beta
    apart = (np.abs(eta) > APART) if law.name == "binomial" else (eta < np.median(eta) - APART) & (y == 0)
    if apart.any():
        moved = np.abs(beta) * X.std(axis=0) + np.abs(beta) * (X.std(axis=0) == 0)
        worst = names[int(np.argmax(moved))]
        raise Unidentified(
            "The fixed effects separate the outcomes: some rows are predicted with certainty, so "
            f"{worst} has no finite estimate.",
            "Every level of a factor needs both outcomes, or a count above zero.",
            "Drop that term, or join levels of it.",
            about="formula",
        )
    return np.asarray(beta, dtype=np.float64), np.asarray(root, dtype=np.float64)
