"""A fitted model as arrays: minimise the criterion, then solve for everything else at the minimum.

Two ways in, one way out: moments of one random intercept are profiled in one dimension (`reml`), anything
else by a quasi-Newton search over theta (`sparse`). No names, no frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.linear import reml as one
from discreet.models.linear import sparse
from discreet.models.linear.descent import FAR, descend
from discreet.models.linear.evaluations import ToldCurve, told
from discreet.models.linear.few import MOST, FewEffects
from discreet.models.linear.information import ManyEffects, Surface
from discreet.models.linear.memory import refuse_memory
from discreet.models.linear.moments import Moments
from discreet.models.linear.sparse import Eliminated, Gram
from discreet.models.linear.start import starts
from discreet.words.errors import FitError
from discreet.words.progress import Progress, part, silent

STEEP = 100.0  # effects over the residual, in standard deviations
ROUNDS, FLAT = 8, 1e-3  # searches by simplex at most; a gain of the criterion that ends them
BEYOND = (0.3, 1.0, 3.0)  # sizes of effects at which a fit is looked for that is better than one without them
ASIDE = 0.01  # how far theta is moved from a zero to see whether the criterion falls there
PROMISED = 1e-11  # decrease of the criterion at which a search ends
ORDER = "order of elimination"
BOUNDARY = 1e-4  # lme4's isSingular: a diagonal theta below this is zero


@dataclass(frozen=True)
class Solution:
    """The model at its estimates.

    Attributes
    ----------
    criterion : -2 log (restricted) likelihood.
    beta, unscaled : fixed effects (p,) and their covariance over sigma2 (p, p).
    sigma2 : residual variance.
    triangles : per random term, the lower triangle T with covariance sigma2 T T'.
    effects : per random term, EBLUPs, shape (levels, q).
    evaluations : how often the criterion was computed; 0 where Newton's method ran instead.
    eliminated : the factored system of a general model, None for one random intercept.
    far : what the response's distance from zero may move the criterion by.
    """

    criterion: float
    beta: Vector
    unscaled: Matrix
    sigma2: float
    triangles: tuple[Matrix, ...]
    effects: tuple[Matrix, ...]
    evaluations: int
    eliminated: Eliminated | None
    far: float = 0.0

    @property
    def theta(self) -> Vector:
        """lme4's theta: the lower triangles, column by column."""
        return flat(self.triangles)

    @property
    def doubt(self) -> float:
        """About how far rounding may move the criterion: effects far above the residual cost digits of its squares.

        So does a response far from zero in a model without an intercept, by `far`.
        """
        triangles = self.eliminated.triangles if self.eliminated else ()
        steepest = max((float(np.abs(T).max()) for T in triangles), default=0.0)
        steep = 10 * float(np.finfo(float).eps) * steepest**2 * (self.eliminated.gram.rows if self.eliminated else 0.0)
        return steep + self.far

    @property
    def is_exact(self) -> bool:
        """Whether the search for one ratio ended at the largest: groups and columns explain the response wholly."""
        return self.eliminated is None and float(self.triangles[0][0, 0]) ** 2 >= (1 - 1e-6) * one.LARGEST

    @property
    def is_singular(self) -> bool:
        """Whether a diagonal of theta is zero, with slopes in units of their own root mean square."""
        triangles = self.eliminated.triangles if self.eliminated else self.triangles
        return any(np.diag(T).min() < BOUNDARY for T in triangles)


def flat(triangles: Sequence[Matrix]) -> Vector:
    """Lower triangles as one vector, column by column."""
    return np.concatenate([T.T[np.triu_indices(len(T))] for T in triangles])


def solve(statistics: Moments | Gram, *, reml: bool, progress: Progress = silent) -> Solution:
    """Fit a model from whatever it is summed up in."""
    if isinstance(statistics, Moments):
        return solve_moments(statistics, reml=reml, progress=progress)
    return solve_gram(statistics, reml=reml, progress=progress)


def solve_moments(moments: Moments, *, reml: bool, progress: Progress = silent) -> Solution:
    """Fit a model with one random intercept from its moments."""
    curve = one.GroupCurve.of(moments)
    with exact_fit_refused():
        ratio = one.best_ratio(curve if progress is silent else ToldCurve(curve, progress), reml=reml)
        at = one.profile(curve, ratio, reml=reml)
        if not np.isfinite(at.criterion[0]):
            raise np.linalg.LinAlgError
    beta, ratio0 = at.beta[0], float(ratio[0])
    return Solution(
        criterion=float(at.criterion[0]),
        beta=beta,
        unscaled=at.unscaled[0],
        sigma2=float(at.sigma2[0]),
        triangles=(np.full((1, 1), np.sqrt(ratio0)),),
        effects=(one.effects(moments, ratio=ratio0, beta=beta)[:, None],),
        evaluations=0,
        eliminated=None,
    )


def solve_gram(gram: Gram, *, reml: bool, progress: Progress = silent) -> Solution:
    """Fit a model with any random terms from its cross-products."""
    progress(ORDER, 0.0)
    refuse_memory(gram)
    standard, scales = standardised(gram)
    with exact_fit_refused():
        theta, evaluations = search(standard, reml=reml, progress=part(progress, 0.05, 0.95))
        progress("estimates", 0.95)
        return solution_at(standard, scales, theta, reml=reml, evaluations=evaluations)


def solution_at(gram: Gram, scales: list[Vector], theta: Vector, *, reml: bool, evaluations: int) -> Solution:
    """Everything else at the minimum, from a Gram matrix that was standardised by `scales`."""
    at = sparse.eliminate(gram, theta)
    value, rss = sparse.criterion(at, reml=reml)
    p = gram.p
    unscaled = np.asarray(np.linalg.inv(at.A[:p, :p]), dtype=np.float64)
    beta = unscaled @ at.A[:p, p]
    sigma2 = rss / (gram.rows - p if reml else gram.rows)
    triangles = tuple(T / s[:, None] for T, s in zip(at.triangles, scales, strict=True))
    spherical = [solved[:, p] - solved[:, :p] @ beta for solved in at.solved_fixed]
    effects = [b.reshape(-1, len(T)) @ T.T for b, T in zip(spherical, triangles, strict=True)]

    return Solution(value, beta, unscaled, sigma2, triangles, tuple(effects), evaluations, at)


def effect_variances(solution: Solution, statistics: Moments | Gram) -> list[tuple[Matrix, Matrix]]:
    """Per random term, var(u^ - u) and lme4's variance, which takes beta as known; shapes (levels, q, q)."""
    sigma2, unscaled, found = solution.sigma2, solution.unscaled, []
    if isinstance(statistics, Moments):
        ratio, Sx = solution.theta[0] ** 2, statistics.Sx
        shrink = ratio / (1 + ratio * statistics.n)
        spread = shrink + shrink**2 * np.einsum("gi,ij,gj->g", Sx, unscaled, Sx)
        return [(sigma2 * spread[:, None, None], sigma2 * shrink[:, None, None])]
    assert solution.eliminated is not None
    at, p = solution.eliminated, len(solution.beta)
    for T, inverse, solved in zip(solution.triangles, sparse.diagonal_inverse(at), at.solved_fixed, strict=True):
        known = sigma2 * T @ inverse @ T.T
        moved = T @ solved[:, :p].reshape(-1, len(T), p)
        found.append((known + sigma2 * moved @ unscaled @ moved.transpose(0, 2, 1), known))
    return found


def standardised(gram: Gram) -> tuple[Gram, list[Vector]]:
    """Random columns of unit mean square, and their scales: the search must not depend on the units of a slope."""
    scales = [np.sqrt(np.einsum("gii->i", zz) / gram.rows) for zz in gram.ZZ]
    return in_units(gram, scales), scales


def in_units(gram: Gram, scales: list[Vector]) -> Gram:
    """Random columns divided by their scales."""
    spread = [np.tile(1 / s, len(zz)) for s, zz in zip(scales, gram.ZZ, strict=True)]
    found = replace(
        gram,
        ZZ=tuple(zz / np.outer(s, s) for zz, s in zip(gram.ZZ, scales, strict=True)),
        crossed={
            (i, j): replace(met, blocks=met.blocks / np.outer(scales[i], scales[j]))
            for (i, j), met in gram.crossed.items()
        },
        Zxy=tuple(zxy * s[:, None] for zxy, s in zip(gram.Zxy, spread, strict=True)),
    )
    return gram.lend(found)


def search(gram: Gram, *, reml: bool, progress: Progress = silent) -> tuple[Vector, int]:
    """The theta that minimises the criterion, and how often that was computed.

    The first column of a triangle belongs to the effect that seems to vary most: of one that does not vary at all, the
    rest of the column would have no direction.
    """
    known = starts(gram)
    orders = [np.argsort(-np.diag(T), kind="stable") for T in gram.triangles(known[0])]
    if all((np.diff(order) > 0).all() for order in orders):
        return _search(gram, known, reml=reml, progress=progress)
    turned = gram.ordered(orders)
    theta, count = _search(turned, starts(turned), reml=reml, progress=progress)
    roots = [T[np.argsort(order)] for T, order in zip(turned.triangles(theta), orders, strict=True)]
    return flat([_upright(np.linalg.qr(root.T)[1].T) for root in roots]), count


def _upright(T: Matrix) -> Matrix:
    """The same triangle with a diagonal that is not negative."""
    return np.asarray(np.tril(T) * np.where(np.diag(T) < 0, -1.0, 1.0))


def _search(gram: Gram, known: Sequence[Vector], *, reml: bool, progress: Progress) -> tuple[Vector, int]:
    """Minimise from one of the `known` starts, unbounded: the sign of a column of T is free, so zero is no wall.

    If effects are `STEEP` times the residual, sums of squares lose the digits that slopes need, and a simplex in
    relative steps continues.
    """
    diagonal = gram.start > 0
    curvature = np.concatenate([np.full(q * (q + 1) // 2, 2.0 * count) for count, q, _ in map(np.shape, gram.ZZ)])
    surface: Surface = FewEffects(gram, reml) if gram.effects <= MOST else ManyEffects(gram, reml)
    count, last, bend = 0, FAR, np.diag(curvature)

    def value(theta: Vector) -> float:
        nonlocal count, last
        count += 1
        try:
            last = surface.value(theta)
        except np.linalg.LinAlgError:
            last = FAR
        return last

    def sloped(theta: Vector) -> tuple[float, Vector]:
        nonlocal bend
        found = last if theta is surface.theta else value(theta)
        if found >= FAR:
            return FAR, np.zeros(len(theta))
        try:
            slope, bend = surface.bent()
        except np.linalg.LinAlgError:
            return FAR, np.zeros(len(theta))
        return found, slope

    each = 0.0 if progress is silent else gram.elimination.seconds
    watched = told(sloped, progress, curvature=curvature, promised=PROMISED, each=each)

    def run(start: Vector) -> tuple[Vector, float]:
        return descend(watched, start, curvature=lambda: bend, promised=PROMISED, alone=value)

    theta, best = run(known[0] if len(known) == 1 else min(known, key=value))
    if best >= FAR:  # an exact fit
        raise np.linalg.LinAlgError
    for zero in np.flatnonzero(diagonal & (np.abs(theta) < BOUNDARY)):  # it may be a saddle: leave it once
        aside = np.where(np.arange(len(theta)) == zero, ASIDE, theta)
        if value(aside) < best:
            theta, best = min([(theta, best), run(aside)], key=lambda at: at[1])
    zeros = diagonal & (np.abs(theta) < BOUNDARY)
    if zeros.any():  # or the valley at zero is one of two, and not the deeper
        parts = [zeros, *(np.arange(len(theta)) == zero for zero in np.flatnonzero(zeros))]
        known = [np.where(part, size, theta) for part in parts[: len(parts) - (zeros.sum() == 1)] for size in BEYOND]
        lower = [(found, at) for at in known if (found := value(at)) < best]
        if lower:
            theta, best = min([(theta, best), run(min(lower, key=lambda each: each[0])[1])], key=lambda at: at[1])
    steep = (np.abs(theta) > STEEP).any()
    if steep:
        from scipy.optimize import minimize
    for _ in range(ROUNDS if steep else 0):
        found = minimize(value, theta, method="Nelder-Mead", options=_relative_steps(theta))
        gain, (theta, best) = best - found.fun, min([(theta, best), (found.x, float(found.fun))], key=lambda at: at[1])
        if gain < FLAT:
            break
    zeros = diagonal & (np.abs(theta) < 10 * BOUNDARY)
    if zeros.any() and value(zeroed := np.where(zeros, 0.0, theta)) <= best + 1e-9:
        theta = zeroed
    return flat([_upright(T) for T in gram.triangles(theta)]), count


def _relative_steps(theta: Vector) -> dict[str, object]:
    """A simplex around theta whose steps are half of each entry, or of the residual's scale where an entry is small."""
    steps = np.diag(np.maximum(np.abs(theta), 1.0) / 2)
    simplex = np.vstack([theta, theta + steps])
    return {"initial_simplex": simplex, "xatol": 1e-7 * np.abs(theta).max(), "fatol": FLAT / 10, "maxiter": 500}


@contextmanager
def exact_fit_refused() -> Iterator[None]:
    try:
        yield
    except np.linalg.LinAlgError:
        raise FitError(
            "The fixed effects reproduce the response exactly, so no variance is left to estimate.",
            remedy="Use fewer fixed effects, or check that the response is not computed from them.",
            about="formula",
        ) from None
