"""The exact posterior of a mixed model with one random intercept: quadrature over two variances, closed form after.

A Gauss-Hermite product rule in the two log variances, centred at their posterior mode and scaled by the curvature
there, refined until the answer stands still. Fixed and random effects are then finite mixtures of normals. What is
left is quadrature error, measured against a finer rule (`Posterior.error`), and no Monte Carlo error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.bayes.blmm.conditional import Conditional, Model
from discreet.bayes.blmm.marginal import Curve
from discreet.bayes.blmm.mixture import Mixtures
from discreet.errors import FitError

ORDERS = (5, 7, 11, 17, 25, 37, 55)  # nodes per axis, tried in turn
TOLERANCE = 1e-4  # of the log probability of any of 20 bins of any random effect
PRUNED = 1e-11  # share of the posterior that a node must carry
PROBES = np.arange(1, 20) / 20
CHECKED = 200  # random effects on which convergence is judged, spread over group sizes


@dataclass(frozen=True)
class Peak:
    """Where the posterior of (log residual, log group) variance is highest, and a Cholesky factor of its covariance."""

    model: Model
    mode: Vector
    scale: Matrix


@dataclass(frozen=True)
class Posterior:
    """The posterior as K weighted nodes of (residual variance, group variance).

    Attributes
    ----------
    nodes, weights : the laws given each pair of variances, and the pairs' probabilities (they add to 1).
    mode, scale : of (log residual, log group) variance; `scale` is a Cholesky factor of their covariance at the mode.
    order : nodes per axis before negligible ones were dropped.
    error : largest change of a log bin probability (20 bins, all random effects checked) from the rule before.
    """

    nodes: Conditional
    weights: Vector
    mode: Vector
    scale: Matrix
    order: int
    error: float

    @classmethod
    def of(cls, model: Model, *, tolerance: float = TOLERANCE) -> Posterior:
        """Refine until the bins of the random effects stand still to `tolerance`."""
        peak = find_peak(model)
        mode, scale = peak.mode, peak.scale
        groups = np.argsort(model.n, kind="stable")[np.linspace(0, model.groups - 1, CHECKED).astype(int)]
        groups = np.unique(groups)
        before: Mixtures | None = None
        for order in ORDERS:
            nodes, weights = _rule(model, mode, scale, order)
            mean, deviation, _ = nodes.effects()
            now = Mixtures(weights, mean[:, groups], deviation[:, groups])
            if before is not None:
                error = float(np.abs(np.log(now.bins(before.quantile(PROBES)) * 20)).max())
                if error < tolerance:
                    return cls(nodes, weights, mode, scale, order, error)
            before = now
        raise FitError(
            f"The posterior of the variances did not settle with {ORDERS[-1]} x {ORDERS[-1]} nodes. A prior with more "
            "degrees of freedom or data with more groups would. Raise `nu`, or sample with method='gibbs'."
        )

    def refined(self, steps: int = 1) -> Posterior:
        """The same posterior on a finer rule; what changes is quadrature error."""
        order = self.order + 8 * steps
        nodes, weights = _rule(self.nodes.model, self.mode, self.scale, order)
        return Posterior(nodes, weights, self.mode, self.scale, order, self.error)

    @property
    def model(self) -> Model:
        return self.nodes.model

    def coefficients(self, *, restore: Matrix | None = None, offset: Vector | None = None) -> Mixtures:
        """Posteriors of the fixed effects, in the coordinates that `restore` and `offset` lead to."""
        beta, root = self.nodes.beta, self.nodes.root
        if restore is not None:
            beta, root = beta @ restore.T, restore @ root
        return Mixtures(self.weights, beta if offset is None else beta + offset, np.sqrt((root**2).sum(axis=2)))

    @cached_property
    def _effects(self) -> tuple[Matrix, Matrix, Matrix]:
        return self.nodes.effects()

    @property
    def effects(self) -> Mixtures:
        """Posteriors of the random effects, one law per group."""
        mean, deviation, _ = self._effects
        return Mixtures(self.weights, mean, deviation)

    @property
    def brought(self) -> Matrix:
        """Share of each random effect's deviation that the uncertainty of the fixed effects brings, (K, G)."""
        return self._effects[2]

    def variance(self, which: int) -> Curve:
        """The posterior of the residual (0) or the group (1) variance."""
        return Curve.of(*self._marginal(which))

    def _marginal(self, which: int, points: int = 241, reach: float = 9.0) -> tuple[Vector, Vector]:
        """The log of the variance on a grid, and its density there, the other variance integrated out."""
        covariance = self.scale @ self.scale.T
        other, spread = 1 - which, np.sqrt(covariance[which, which])
        at = self.mode[which] + spread * np.linspace(-reach, reach, points)
        slope = covariance[which, other] / covariance[which, which]
        z, w = np.polynomial.hermite_e.hermegauss(self.order)
        rest = np.sqrt(covariance[other, other] - slope * covariance[which, other])
        theta = np.empty((2, points, len(z)))
        theta[which] = at[:, None]
        theta[other] = self.mode[other] + slope * (at - self.mode[which])[:, None] + rest * z
        log_density = _log_density(self.model, *theta.reshape(2, -1)).reshape(points, len(z))
        density = np.exp(log_density - log_density.max() + 0.5 * z * z) @ w
        return at, density


def _log_density(model: Model, residual: Vector, group: Vector, chunk: int = 512) -> Vector:
    """The log posterior density at pairs of log variances."""
    parts: Iterator[slice] = (slice(start, start + chunk) for start in range(0, len(residual), chunk))
    return np.concatenate([model.at(np.exp(residual[s]), np.exp(group[s])).log_density for s in parts])


def find_peak(model: Model) -> Peak:
    """The posterior mode of the log variances and a Cholesky factor of the inverse curvature there."""
    from scipy.optimize import minimize

    nu, V = model.prior.nu, model.prior.V
    pooled = (model.within[-1, -1] + nu * V) / (model.rows + nu)
    unit = np.sqrt([2 / (model.rows + nu), 2 / (model.groups + nu)])
    candidates = np.log(pooled) + np.linspace(-14, 6, 41)
    profile = _log_density(model, np.full(41, np.log(pooled)), candidates)
    start = np.array([np.log(pooled), candidates[profile.argmax()]])

    def loss(z: Vector) -> float:
        return -float(_log_density(model, *(start + unit * z)[:, None])[0])

    options = {"xatol": 1e-4, "fatol": 1e-8, "maxfev": 4000}
    found = minimize(loss, np.zeros(2), method="Nelder-Mead", options=options)
    mode = start + unit * found.x
    h = 0.2
    offsets = h * np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)])
    f = _log_density(model, *(mode[:, None] + unit[:, None] * offsets.T)).reshape(3, 3)
    curvature = np.array(
        [
            [f[0, 1] - 2 * f[1, 1] + f[2, 1], (f[2, 2] - f[2, 0] - f[0, 2] + f[0, 0]) / 4],
            [(f[2, 2] - f[2, 0] - f[0, 2] + f[0, 0]) / 4, f[1, 0] - 2 * f[1, 1] + f[1, 2]],
        ]
    )
    try:
        scale = np.linalg.cholesky(np.linalg.inv(-curvature / h**2))
    except np.linalg.LinAlgError:
        raise FitError(
            "The posterior of the two variances has no peak. A prior with more degrees of freedom does. Raise `nu`."
        ) from None
    return Peak(model, mode, unit[:, None] * scale)


def _rule(model: Model, mode: Vector, scale: Matrix, order: int) -> tuple[Conditional, Vector]:
    z, w = np.polynomial.hermite_e.hermegauss(order)
    first, second = np.repeat(z, order), np.tile(z, order)
    theta = mode[:, None] + scale @ np.array([first, second])
    log_weight = np.log(np.repeat(w, order)) + np.log(np.tile(w, order)) + 0.5 * (first**2 + second**2)
    log_weight += _log_density(model, *theta)
    weights = np.exp(log_weight - log_weight.max())
    weights /= weights.sum()
    kept = weights > PRUNED
    weights = weights[kept] / weights[kept].sum()
    return model.at(*np.exp(theta[:, kept])), weights
