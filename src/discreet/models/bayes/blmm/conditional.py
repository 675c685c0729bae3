"""Everything given the two variances: the fixed effects and each random effect are normal, in closed form.

With V = I + lambda ZZ', lambda = var(u) / var(xi), the cross-products A = [X y]' V^-1 [X y] come from moments alone
(see `mixed.reml`). So the cost of a pair of variances does not depend on the number of rows. The prior of the fixed
effects speaks of the columns as given while the moments are of centred columns; `Model.of` carries it over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.bayes.blmm.prior import Prior
from discreet.models.bayes.blmm.variance_prior import VariancePrior
from discreet.models.linear.moments import Moments


@dataclass(frozen=True)
class PosteriorModel:
    """Data and prior in one coordinate system, for G groups and p fixed columns.

    Attributes
    ----------
    n, means, within : group sizes, group means of [X y] and cross-products about them, as in `Moments`.
    precision, information : prior of the fixed effects: inverse covariance, and that times the mean.
    laws : priors of the residual and of the group variance.
    """

    n: Vector
    means: Matrix
    within: Matrix
    precision: Matrix
    information: Vector
    prior: Prior
    laws: tuple[VariancePrior, VariancePrior]

    @classmethod
    def of(
        cls,
        moments: Moments,
        prior: Prior,
        *,
        restore: Matrix | None = None,
        offset: Vector | None = None,
        group: str | None = None,
    ) -> PosteriorModel:
        """`restore` and `offset` as in `mixed.fit.Origin`: effects as given = restore @ these + offset."""
        p = len(moments.Xy)
        restore = np.eye(p) if restore is None else restore
        offset = np.zeros(p) if offset is None else offset
        return cls(
            n=moments.n,
            means=moments.means,
            within=moments.within,
            precision=restore.T @ restore / prior.sd**2,
            information=-restore.T @ offset / prior.sd**2,
            prior=prior,
            laws=(prior.of("Residual"), prior.of(group)),
        )

    @property
    def rows(self) -> float:
        return float(self.n.sum())

    @property
    def groups(self) -> int:
        return len(self.n)

    @cached_property
    def sizes(self) -> tuple[Vector, Matrix]:
        """Distinct group sizes s, and for each the sum over its groups of the products of means, (s, (p + 1)^2)."""
        sizes, at = np.unique(self.n, return_inverse=True)
        products = np.zeros((len(sizes), self.means.shape[1] ** 2))
        for start in range(0, self.groups, 4096):
            part = self.means[start : start + 4096]
            np.add.at(products, at[start : start + 4096], np.einsum("gi,gj->gij", part, part).reshape(len(part), -1))
        return sizes, products

    @cached_property
    def from_prior_mean(self) -> Matrix:
        """[X y] times this is [X y - X b], b the prior mean of the fixed effects: what the density is computed from.

        In these coordinates b may be far away, and its squares would hide the rest.
        """
        turn = np.eye(self.means.shape[1])
        turn[:-1, -1] = -np.linalg.solve(self.precision, self.information)
        return turn

    def cross_products(self, ratio: Vector) -> Matrix:
        """A at each lambda, shape (K, p + 1, p + 1)."""
        sizes, products = self.sizes
        weights = sizes / (1 + ratio[:, None] * sizes)
        return self.within + (weights @ products).reshape(len(ratio), *self.within.shape)

    def at(self, residual: Vector, group: Vector) -> Conditional:
        """The laws given K pairs of variances, and the posterior density of each pair."""
        ratio = group / residual
        turn = self.from_prior_mean
        A = turn.T @ self.cross_products(ratio) @ turn
        precision = A[:, :-1, :-1] / residual[:, None, None] + self.precision
        information = A[:, :-1, -1] / residual[:, None]
        triangle = np.linalg.cholesky(precision)
        root = np.swapaxes(np.linalg.inv(triangle), 1, 2)
        half = np.einsum("kji,kj->ki", root, information)
        logdet = 2 * np.log(np.diagonal(triangle, axis1=1, axis2=2)).sum(axis=1)
        sizes, counts = np.unique(self.n, return_counts=True)
        log_density = -0.5 * (
            self.rows * np.log(residual)
            + np.log1p(ratio[:, None] * sizes) @ counts
            + A[:, -1, -1] / residual
            + logdet
            - np.einsum("ki,ki->k", half, half)
        )
        for law, variance in zip(self.laws, (residual, group), strict=True):
            log_density += law.log_density(np.log(variance))
        beta = np.einsum("kij,kj->ki", root, half) - turn[:-1, -1]
        return Conditional(self, residual, group, beta, root, log_density)


@dataclass(frozen=True)
class Conditional:
    """Normal laws at K pairs of variances.

    Attributes
    ----------
    residual, group : the variances, shape (K,).
    beta, root : fixed effects ~ N(beta, root root'), shapes (K, p) and (K, p, p).
    log_density : of the pair of log variances given the data, up to a constant, shape (K,).
    """

    model: PosteriorModel
    residual: Vector
    group: Vector
    beta: Matrix
    root: Matrix
    log_density: Vector

    def take(self, which: slice | Vector) -> Conditional:
        parts = (self.residual, self.group, self.beta, self.root, self.log_density)
        return Conditional(self.model, *(part[which] for part in parts))

    @property
    def ratio(self) -> Vector:
        return self.group / self.residual

    def effects(self) -> tuple[Matrix, Matrix, Matrix]:
        """Mean and deviation of every random effect, and the share of its deviation that beta brings; (K, G) each."""
        n, x, y = self.model.n, self.model.means[:, :-1], self.model.means[:, -1]
        mean, deviation, share = (np.empty((len(self.residual), len(n))) for _ in range(3))
        for k, ratio in enumerate(self.ratio):
            shrink = ratio * n / (1 + ratio * n)
            mean[k] = shrink * (y - x @ self.beta[k])
            brought = shrink**2 * ((x @ self.root[k]) ** 2).sum(axis=1)
            variance = self.group[k] / (1 + ratio * n) + brought
            deviation[k], share[k] = np.sqrt(variance), np.sqrt(brought / variance)
        return mean, deviation, share
