"""One draw from the posterior of a mixed model with declared variances, as Gaussian noise in sums of the response.

Given the residual variance sigma2 and the variance tau2 of the effects, the posterior of theta = (u, beta) is normal
with a covariance Sigma that no response enters: Sigma^-1 = A'A / s2 + P, with A = [Z X], P the prior's precision, and
s2 = sigma2 / w for a likelihood that counts with the power w. A draw is theta = Sigma (t + xi) / s2, t = A'(y - X b),
with xi ~ N(0, C) and C = s2^2 Sigma^-1. So it is a function of L^-1 t plus white noise, for C = L L'. Z'Z is diagonal,
so C is diagonal with a border of p columns and nothing costs more than O(G p^2). Only arrays here;
docs/proofs/posterior-draw.md has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import Integers, Matrix, Vector

GRID = 2.0**-24  # of the whitened sums of the fixed columns, whose noise has deviation 1
MARGIN = 1 + 2.0**-30  # covers the rounding of what is computed from public numbers
UNIT = 2.0**-53


@dataclass(frozen=True)
class DrawLaw:
    """The public constants of a draw.

    Attributes
    ----------
    n, Sx, XX : rows per group (G,), sums of the fixed columns (G, p), their products (p, p).
    precision : of the prior of the fixed effects (p, p).
    residual, group : the declared variances. `power` : with which the likelihood counts.
    """

    n: Vector
    Sx: Matrix
    XX: Matrix
    precision: Matrix
    residual: float
    group: float
    power: float = 1.0

    @property
    def s2(self) -> float:
        return self.residual / self.power

    @cached_property
    def own(self) -> Vector:
        """The diagonal of C for the groups."""
        return np.asarray(self.s2 * self.n + self.s2**2 / self.group)

    @cached_property
    def root(self) -> Matrix:
        """The lower triangle of what the groups leave of C for the fixed columns."""
        border = self.s2 * self.Sx
        left = self.s2 * self.XX + self.s2**2 * self.precision - border.T @ (border / self.own[:, None])
        return np.asarray(np.linalg.cholesky(left), dtype=np.float64)

    @cached_property
    def turns(self) -> tuple[Matrix, Matrix]:
        """Matrices whose doubles define the mechanism: whitened = first @ X'y - second @ Z'y, shapes (p, p), (p, G)."""
        first = np.asarray(np.linalg.inv(self.root), dtype=np.float64)
        return first, np.asarray(first @ (self.s2 * self.Sx / self.own[:, None]).T, dtype=np.float64)

    def rho(self, group: Integers, columns: Matrix, *, reach: float, slack: float) -> float:
        """zCDP of rows whose response moves by `reach`: half the largest squared length of L^-1 (e_g, x), over rows.

        `slack` bounds how far arithmetic and the grid move the whitened sums of the fixed columns.
        """
        first, second = self.turns
        moved = np.sqrt(((columns @ first.T - second.T[group]) ** 2).sum(axis=1)) * reach * MARGIN + slack
        return float(0.5 * MARGIN * (reach**2 / self.own[group] + moved**2).max()) if len(group) else 0.0

    def slack(self, sums: Vector, of_groups: Vector) -> float:
        """Of arithmetic and grid, from bounds of the absolute sums of columns and of groups."""
        first, second = self.turns
        terms = len(self.n) + len(first) + 4
        error = 1.01 * terms * UNIT * (np.abs(first) @ sums + np.abs(second) @ of_groups)
        return float(MARGIN * np.sqrt(((GRID + 2 * error) ** 2).sum()))

    def whole(self, by_column: Vector, by_group: Vector) -> Integers:
        """The whitened sums of the fixed columns, in steps of the grid."""
        first, second = self.turns
        return np.asarray(np.rint((first @ by_column - second @ by_group) / GRID), dtype=np.int64)

    def theta(self, by_group: Vector, whitened: Vector, public: Vector) -> tuple[Vector, Vector]:
        """The draw: effects and fixed effects about their prior mean.

        From noisy sums by group, noisy whitened sums, and the coefficients of the fixed columns that were taken off the
        response before it was summed.
        """
        first, second = self.turns
        moved = by_group + self.Sx @ public
        r = whitened + first @ (self.XX @ public) - second @ (self.Sx @ public)
        beta = np.linalg.solve(self.root.T, r)
        u = (moved - self.s2 * (self.Sx @ beta)) / self.own
        return np.asarray(self.s2 * u), np.asarray(self.s2 * beta)

    def deviations(self) -> tuple[Vector, Vector]:
        """Standard deviations of a draw about the posterior mean: of effects and of fixed effects."""
        covariance = self.s2**2 * np.linalg.inv(self.root @ self.root.T)
        share = self.s2 * self.Sx / self.own[:, None]
        brought = np.einsum("gi,ij,gj->g", share, covariance, share)
        return np.sqrt(self.s2**2 / self.own + brought), np.sqrt(np.diag(covariance))
