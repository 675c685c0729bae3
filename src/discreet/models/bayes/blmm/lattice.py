"""The posterior of the two log variances wherever it has mass: all its modes, a box around them, sums on a lattice.

If prior and data disagree on a variance, the posterior can have two modes: the differences between groups are explained
by the random effects, or by the residuals. A rule centred at one mode cannot find the other. So the modes are searched
first, along the log ratio of the variances, and a box around them grows until nothing is left outside. Equal steps in
it are as good as any rule: the error of such a sum falls like exp(-2 (pi / step)^2), with the step in deviations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.bayes.blmm.conditional import PosteriorModel
from discreet.models.bayes.blmm.variance_prior import InverseGamma
from discreet.words.errors import FitError

RATIO_STEP, RESIDUAL_STEPS = 0.5, 21  # of the search for modes: steps of the log ratio, points of the log residual
MODES = 6  # of the places found, the highest that are climbed from
NEGLIGIBLE = 34.0  # nats below the highest point
STEP = 0.4  # of the lattice of the marginals, in the least deviations that a log variance can have
POINTS = 400_000  # of a lattice, at most
FINE = 8  # points of a marginal's curve between two of the lattice


@dataclass(frozen=True)
class Lattice:
    """A box of (log residual, log group) variance, shape (2,) each corner, that holds the posterior."""

    model: PosteriorModel
    low: Vector
    high: Vector

    @classmethod
    def around(cls, model: PosteriorModel, modes: Matrix) -> Lattice:
        """Grow a box around `modes` (m, 2) until the density at each of its sides is negligible."""
        unit = least_deviations(model)
        low, high = modes.min(axis=0) - 6 * unit, modes.max(axis=0) + 6 * unit
        top = log_density(model, *modes.T).max()
        for _ in range(60):
            grown = False
            for axis in (0, 1):
                along = _spaced(low[1 - axis], high[1 - axis], unit[1 - axis])
                for corner, sign in ((low, -1), (high, 1)):
                    side = np.empty((2, len(along)))
                    side[axis], side[1 - axis] = corner[axis], along
                    if log_density(model, *side).max() > top - NEGLIGIBLE:
                        corner[axis] += sign * max(2 * unit[axis], 0.15 * (high[axis] - low[axis]))
                        grown = True
            if not grown:
                return cls(model, low, high)
        raise unsettled()

    def nodes(self, step: float) -> tuple[Vector, Vector, Matrix]:
        """Log residual and log group variances, and the posterior's share at each pair; `step` in least deviations."""
        unit = least_deviations(self.model)
        first, second = (_spaced(self.low[k], self.high[k], step * unit[k]) for k in (0, 1))
        height = log_density(self.model, np.repeat(first, len(second)), np.tile(second, len(first)))
        weight = np.exp(height - height.max()).reshape(len(first), len(second))
        return first, second, weight / weight.sum()

    def marginals(self) -> tuple[tuple[Vector, Vector], tuple[Vector, Vector]]:
        """Each log variance on a fine grid, and its density there up to a constant."""
        from scipy.interpolate import CubicSpline

        first, second, weight = self.nodes(STEP)
        curves = []
        for at, mass in ((first, weight.sum(axis=1)), (second, weight.sum(axis=0))):
            fine = np.linspace(at[0], at[-1], FINE * (len(at) - 1) + 1)
            curves.append((fine, np.exp(CubicSpline(at, np.log(np.maximum(mass, 1e-300)))(fine))))
        return curves[0], curves[1]


def find_modes(model: PosteriorModel) -> Matrix:
    """The local maxima of the density of the log variances, the highest first; shape (m, 2)."""
    from scipy.optimize import minimize

    unit = least_deviations(model)
    residual, group = _search(model)
    height = log_density(model, residual.ravel(), group.ravel()).reshape(residual.shape)
    padded = np.pad(height, 1, constant_values=-np.inf)
    m, k = len(height), RESIDUAL_STEPS
    around = [padded[1 + i : 1 + i + m, 1 + j : 1 + j + k] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    tops = np.flatnonzero((height >= np.max(around, axis=0)).ravel())
    tops = tops[np.argsort(-height.ravel()[tops], kind="stable")][:MODES]
    options = {"xatol": 1e-4, "fatol": 1e-8, "maxfev": 4000}
    found: list[tuple[float, Vector]] = []
    for start in np.column_stack([residual.ravel()[tops], group.ravel()[tops]]):

        def loss(z: Vector, start: Vector = start) -> float:
            return -float(log_density(model, *(start + unit * z)[:, None])[0])

        climbed = minimize(loss, np.zeros(2), method="Nelder-Mead", options=options)
        at = start + unit * climbed.x
        if all(np.abs((at - other) / unit).max() > 0.5 for _, other in found):
            found.append((-climbed.fun, at))
    highest = max(top for top, _ in found)
    kept = sorted((pair for pair in found if pair[0] > highest - NEGLIGIBLE), key=lambda pair: -pair[0])
    return np.array([at for _, at in kept])


def least_deviations(model: PosteriorModel) -> Vector:
    """The least standard deviations that the two log variances can have: all rows, all groups tell of them."""
    of_residual, of_group = (law.freedom for law in model.laws)
    found: Vector = np.sqrt([2 / (model.rows + of_residual), 2 / (model.groups + of_group)])
    return found


def log_density(model: PosteriorModel, residual: Vector, group: Vector, chunk: int = 512) -> Vector:
    """The log posterior density at pairs of log variances."""
    parts: Iterator[slice] = (slice(start, start + chunk) for start in range(0, len(residual), chunk))
    return np.concatenate([model.at(np.exp(residual[s]), np.exp(group[s])).log_density for s in parts])


def unsettled() -> FitError:
    return FitError(
        "The posterior of the two variances is too wide to be integrated.",
        "A prior with more degrees of freedom, or data with more groups, would make it narrower.",
        "Raise `nu`, or sample with method='gibbs'.",
        about="prior",
    )


def _search(model: PosteriorModel) -> tuple[Matrix, Matrix]:
    """Pairs of log variances among which every mode has a neighbour.

    At one ratio of the variances the residual variance is nearly an inverse gamma. Its scale lies between the residual
    squares with free fixed effects and those with fixed effects at their prior mean.
    """
    residual_law, group_law = model.laws
    nu, turn = residual_law.freedom + group_law.freedom, model.from_prior_mean
    total = float((turn.T @ model.cross_products(np.zeros(1))[0] @ turn)[-1, -1]) + residual_law.squares
    lowest = np.log(group_law.squares / (group_law.freedom + model.groups) / 10 / total)
    highest = np.log(10 * total * (model.rows + nu) / residual_law.squares)
    if not all(isinstance(law, InverseGamma) for law in model.laws):  # these keep no variance away from zero
        lowest, highest = min(lowest, np.log(0.01 / model.n.max())), max(highest, np.log(1e4 * model.groups))
    log_ratio = np.arange(lowest, highest + RATIO_STEP, RATIO_STEP)
    A = turn.T @ model.cross_products(np.exp(log_ratio)) @ turn
    fixed = A[:, -1, -1]
    free = fixed
    if turn.shape[0] > 1:
        inverse = np.linalg.pinv(A[:, :-1, :-1], rcond=1e-12, hermitian=True)
        free = fixed - np.einsum("ki,kij,kj->k", A[:, :-1, -1], inverse, A[:, :-1, -1])
    own = residual_law.squares + group_law.squares * np.exp(-log_ratio)
    free = np.log((np.maximum(free, 1e-10 * fixed) + own) / (model.rows + nu))
    fixed = np.log((fixed + own) / (max(model.rows - turn.shape[0], 0) + nu))
    residual = np.linspace(free, fixed, RESIDUAL_STEPS, axis=1)
    return residual, residual + log_ratio[:, None]


def _spaced(low: float, high: float, step: float) -> Vector:
    count = int(np.ceil((high - low) / step)) + 1
    if count > POINTS:
        raise unsettled()
    return np.linspace(low, high, count)
