"""The exact posterior of a mixed model with one random intercept: quadrature over two variances, closed form after.

A Gauss-Hermite product rule in the two log variances, centred at their posterior mode and scaled by the curvature
there, refined until the answer stands still. It is then compared with equal steps over all of the posterior, which see
every mode (`lattice`), and gives way to them where the two differ. Fixed and random effects are then finite mixtures of
normals. The only error is that of quadrature, measured against a finer rule (`Posterior.error`); there is no Monte
Carlo error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.bayes.blmm.conditional import Conditional, PosteriorModel
from discreet.models.bayes.blmm.lattice import Lattice, find_modes, least_deviations, log_density, unsettled
from discreet.models.bayes.blmm.marginal import GridMarginal
from discreet.models.bayes.blmm.mixture import Mixtures
from discreet.words.errors import FitError

ORDERS = (5, 7, 11, 17, 25, 37, 55)  # nodes per axis, tried in turn
TOLERANCE = 1e-4  # of the log probability of any of 20 bins of any random effect
AGREES = 1e-3  # the same, between a rule at one mode and the whole lattice
PRUNED = 1e-11  # share of the posterior that a node must carry
PROBES = np.arange(1, 20) / 20
CHECKED = 200  # random effects on which convergence is judged, spread over group sizes


@dataclass(frozen=True)
class Peak:
    """The mode of the posterior of (log residual, log group) variance, and a Cholesky factor of its covariance."""

    model: PosteriorModel
    mode: Vector
    scale: Matrix


@dataclass(frozen=True)
class Posterior:
    """The posterior as K weighted nodes of (residual variance, group variance).

    Attributes
    ----------
    nodes, weights : the laws given each pair of variances, and the pairs' probabilities (they add to 1).
    mode, scale : of (log residual, log group) variance; `scale` is a Cholesky factor of their covariance at the mode.
    lattice : the box that holds all of the posterior.
    order : nodes per axis before negligible ones were dropped; 0 and below where the nodes are the lattice's.
    error : largest change of a log bin probability (20 bins, all random effects checked) from the rule before.
    """

    nodes: Conditional
    weights: Vector
    mode: Vector
    scale: Matrix
    lattice: Lattice
    order: int
    error: float

    @classmethod
    def of(cls, model: PosteriorModel, *, tolerance: float = TOLERANCE) -> Posterior:
        """Refine until the bins of the random effects stand still to `tolerance`, and agree with the whole lattice."""
        modes = find_modes(model)
        lattice = Lattice.around(model, modes)
        peak = peak_at(model, modes[0])
        groups = np.argsort(model.n, kind="stable")[np.linspace(0, model.groups - 1, CHECKED).astype(int)]
        groups = np.unique(groups)

        def bins(nodes: Conditional, weights: Vector) -> Mixtures:
            mean, deviation, _ = nodes.effects()
            return Mixtures(weights, mean[:, groups], deviation[:, groups])

        whole = _sums(lattice, 0)
        reference, before = bins(*whole), None
        for order in ORDERS:
            nodes, weights = _rule(peak, order)
            now = bins(nodes, weights)
            if before is not None:
                error = _apart(before, now)
                if error < tolerance:
                    if _apart(reference, now) > max(AGREES, tolerance):
                        break
                    return cls(nodes, weights, peak.mode, peak.scale, lattice, order, error)
            before = now
        error = _apart(reference, bins(*_sums(lattice, 1)))
        if error > max(AGREES, tolerance):
            raise unsettled()
        return cls(*whole, peak.mode, peak.scale, lattice, 0, error)

    def refined(self, steps: int = 1) -> Posterior:
        """The same posterior on a finer rule; what changes is quadrature error."""
        if self.order > 0:
            nodes, weights = _rule(Peak(self.model, self.mode, self.scale), self.order + 8 * steps)
            return replace(self, nodes=nodes, weights=weights, order=self.order + 8 * steps)
        nodes, weights = _sums(self.lattice, steps - self.order)
        return replace(self, nodes=nodes, weights=weights, order=self.order - steps)

    @property
    def model(self) -> PosteriorModel:
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

    def variance(self, which: int) -> GridMarginal:
        """The posterior of the residual (0) or the group (1) variance."""
        return GridMarginal.of(*self._marginals[which])

    @cached_property
    def _marginals(self) -> tuple[tuple[Vector, Vector], tuple[Vector, Vector]]:
        return self.lattice.marginals()


def find_peak(model: PosteriorModel) -> Peak:
    """The posterior mode of the log variances and a Cholesky factor of the inverse curvature there."""
    return peak_at(model, find_modes(model)[0])


def peak_at(model: PosteriorModel, mode: Vector) -> Peak:
    """The peak whose mode is known."""
    unit = least_deviations(model)
    h = 0.2
    offsets = h * np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)])
    f = log_density(model, *(mode[:, None] + unit[:, None] * offsets.T)).reshape(3, 3)
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
            "The posterior of the two variances has no peak.",
            "A prior with more degrees of freedom does.",
            "Raise `nu`.",
            about="prior",
        ) from None
    return Peak(model, mode, unit[:, None] * scale)


def _rule(peak: Peak, order: int) -> tuple[Conditional, Vector]:
    z, w = np.polynomial.hermite_e.hermegauss(order)
    first, second = np.repeat(z, order), np.tile(z, order)
    theta = peak.mode[:, None] + peak.scale @ np.array([first, second])
    log_weight = np.log(np.repeat(w, order)) + np.log(np.tile(w, order)) + 0.5 * (first**2 + second**2)
    log_weight += log_density(peak.model, *theta)
    weights = np.exp(log_weight - log_weight.max())
    return _pruned(peak.model, theta, weights / weights.sum())


def _sums(lattice: Lattice, finer: int) -> tuple[Conditional, Vector]:
    """The rule of equal steps, each `finer` a fifth shorter than the one before."""
    first, second, weights = lattice.nodes(0.8**finer)
    theta = np.array([np.repeat(first, len(second)), np.tile(second, len(first))])
    return _pruned(lattice.model, theta, weights.ravel())


def _pruned(model: PosteriorModel, theta: Matrix, weights: Vector) -> tuple[Conditional, Vector]:
    kept = weights > PRUNED
    return model.at(*np.exp(theta[:, kept])), weights[kept] / weights[kept].sum()


def _apart(one: Mixtures, other: Mixtures) -> float:
    """The largest change of a log probability of 20 bins."""
    return float(np.abs(np.log(other.bins(one.quantile(PROBES)) * 20)).max())
