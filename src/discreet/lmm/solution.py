"""A fitted model as arrays: minimise the criterion, then solve for everything else at the minimum.

Two ways in, one way out: moments of one random intercept are profiled in one dimension (`reml`), anything
else by a quasi-Newton search over theta (`sparse`). No names, no frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.errors import FitError
from discreet.lmm import reml as one
from discreet.lmm import sparse
from discreet.lmm.moments import Moments
from discreet.lmm.sparse import Eliminated, Gram

FAR = 1e15  # the criterion where rounding leaves no positive definite matrix
STEEP = 100.0  # effects over the residual, in standard deviations
ROUNDS, FLAT = 8, 1e-3  # searches by simplex at most; a gain of the criterion that ends them
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
    """

    criterion: float
    beta: Vector
    unscaled: Matrix
    sigma2: float
    triangles: tuple[Matrix, ...]
    effects: tuple[Matrix, ...]
    evaluations: int
    eliminated: Eliminated | None

    @property
    def theta(self) -> Vector:
        """lme4's theta: the lower triangles, column by column."""
        return flat(self.triangles)

    @property
    def doubt(self) -> float:
        """About how far rounding may move the criterion: effects far above the residual cost digits of its squares."""
        triangles = self.eliminated.triangles if self.eliminated else ()
        steepest = max((float(np.abs(T).max()) for T in triangles), default=0.0)
        return 10 * float(np.finfo(float).eps) * steepest**2 * (self.eliminated.gram.rows if self.eliminated else 0.0)

    @property
    def is_singular(self) -> bool:
        """Whether a diagonal of theta is zero, with slopes in units of their own root mean square."""
        triangles = self.eliminated.triangles if self.eliminated else self.triangles
        return any(np.diag(T).min() < BOUNDARY for T in triangles)


def flat(triangles: Sequence[Matrix]) -> Vector:
    """Lower triangles as one vector, column by column."""
    return np.concatenate([T.T[np.triu_indices(len(T))] for T in triangles])


def solve(statistics: Moments | Gram, *, reml: bool) -> Solution:
    """Fit a model from whatever it is summed up in."""
    if isinstance(statistics, Moments):
        return solve_moments(statistics, reml=reml)
    return solve_gram(statistics, reml=reml)


def solve_moments(moments: Moments, *, reml: bool) -> Solution:
    """Fit a model with one random intercept from its moments."""
    curve = one.GroupCurve.of(moments)
    with _exact_fit_refused():
        ratio = one.best_ratio(curve, reml=reml)
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


def solve_gram(gram: Gram, *, reml: bool) -> Solution:
    """Fit a model with any random terms from its cross-products."""
    scales = [np.sqrt(np.einsum("gii->i", zz) / gram.rows) for zz in gram.ZZ]
    standard = _standardised(gram, scales)
    with _exact_fit_refused():
        theta, evaluations = search(lambda t: sparse.criterion(sparse.eliminate(standard, t), reml=reml)[0], standard)
        at = sparse.eliminate(standard, theta)
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


def _standardised(gram: Gram, scales: list[Vector]) -> Gram:
    """Random columns of unit mean square, so that the search is blind to the units of a slope."""
    from scipy.sparse import diags_array

    spread = [np.tile(1 / s, len(zz)) for s, zz in zip(scales, gram.ZZ, strict=True)]
    return replace(
        gram,
        ZZ=tuple(zz / np.outer(s, s) for zz, s in zip(gram.ZZ, scales, strict=True)),
        crossed={(i, j): diags_array(spread[i]) @ m @ diags_array(spread[j]) for (i, j), m in gram.crossed.items()},
        Zxy=tuple(zxy * s[:, None] for zxy, s in zip(gram.Zxy, spread, strict=True)),
    )


def search(value: Callable[[Vector], float], gram: Gram) -> tuple[Vector, int]:
    """Minimise over theta by L-BFGS, unbounded: the sign of a column of T is free, so zero is no wall to run into.

    Slopes by central differences are exact to about 1e-10 of the criterion, but not where effects are `STEEP` times the
    residual: there sums of squares lose the digits that slopes need, and a simplex in relative steps goes on.
    """
    from scipy.optimize import minimize

    diagonal = gram.start > 0
    count = 0

    def safe(theta: Vector) -> float:
        nonlocal count
        count += 1
        try:
            return value(theta)
        except np.linalg.LinAlgError:
            return FAR

    def run(start: Vector) -> tuple[Vector, float]:
        options = {"ftol": 1e-14, "gtol": 1e-6, "maxiter": 500}
        found = minimize(safe, start, method="L-BFGS-B", jac="3-point", options=options)
        return found.x, float(found.fun)

    value(gram.start)  # an exact fit fails here, where it can be told from a step too far
    theta, best = run(gram.start)
    if (np.abs(theta[diagonal]) < BOUNDARY).any():  # a zero may be a saddle: leave it once
        again, other = run(np.where(diagonal & (np.abs(theta) < BOUNDARY), 0.1, theta))
        theta, best = (again, other) if other < best else (theta, best)
    for _ in range(ROUNDS if (np.abs(theta) > STEEP).any() else 0):
        found = minimize(safe, theta, method="Nelder-Mead", options=_relative_steps(theta))
        gain, (theta, best) = best - found.fun, min([(theta, best), (found.x, float(found.fun))], key=lambda at: at[1])
        if gain < FLAT:
            break
    zeroed = np.where(diagonal & (np.abs(theta) < 10 * BOUNDARY), 0.0, theta)
    found = gram.triangles(zeroed if safe(zeroed) <= best + 1e-9 else theta)
    return flat([T * np.where(np.diag(T) < 0, -1.0, 1.0) for T in found]), count


def _relative_steps(theta: Vector) -> dict[str, object]:
    """A simplex around theta whose steps are half of each entry, or of the residual's scale where an entry is small."""
    steps = np.diag(np.maximum(np.abs(theta), 1.0) / 2)
    simplex = np.vstack([theta, theta + steps])
    return {"initial_simplex": simplex, "xatol": 1e-7 * np.abs(theta).max(), "fatol": FLAT / 10, "maxiter": 500}


@contextmanager
def _exact_fit_refused() -> Iterator[None]:
    try:
        yield
    except np.linalg.LinAlgError:
        raise FitError(
            "The fixed effects reproduce the response exactly, so no variance is left to estimate. "
            "Use fewer fixed effects, or check that the response is not computed from them.",
            about="formula",
        ) from None
