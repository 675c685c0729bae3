"""Sufficient statistics of a mixed model with one random intercept.

Given the design, the likelihood of `y = X beta + Z u + xi` with one grouping factor depends on the data only
through the sums below (Abowd, Schneider and Vilhuber 2012, section III; Bates and DebRoy 2004). They are
small, they add over disjoint rows, and removing rows subtracts. Fits, blocks, leave-one-out refits, private
releases and samplers all start from here; frames and formulas do not appear.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Integers, Matrix, Vector


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over rows, for G groups and p fixed columns.

    Attributes
    ----------
    n : rows per group, shape (G,). A group may have none: it then carries no weight.
    Sx : sum of the fixed columns per group, shape (G, p).
    Sy : sum of the response per group, shape (G,).
    XX, Xy, yy : X'X, X'y and y'y over all rows, shapes (p, p), (p,) and a number.
    """

    n: Vector
    Sx: Matrix
    Sy: Vector
    XX: Matrix
    Xy: Vector
    yy: float

    @property
    def rows(self) -> float:
        return float(self.n.sum())

    @property
    def joint(self) -> Matrix:
        """Cross-products of [X y], shape (p + 1, p + 1)."""
        p = len(self.Xy)
        whole = np.empty((p + 1, p + 1))
        whole[:p, :p], whole[:p, p], whole[p, :p], whole[p, p] = self.XX, self.Xy, self.Xy, self.yy
        return whole

    @property
    def means(self) -> Matrix:
        """Group means of [X y], shape (G, p + 1); zero for a group without rows."""
        sums = np.column_stack([self.Sx, self.Sy])
        return sums / np.maximum(self.n, 1)[:, None]

    @property
    def within(self) -> Matrix:
        """Cross-products of [X y] about the group means: what the random intercept cannot touch."""
        means = self.means
        return self.joint - means.T @ (self.n[:, None] * means)

    def keep(self, columns: Integers) -> Moments:
        """The moments of a model with these fixed columns only."""
        return replace(self, Sx=self.Sx[:, columns], XX=self.XX[np.ix_(columns, columns)], Xy=self.Xy[columns])

    def add(self, *, group: int | Integers, x: Matrix, y: Vector, sign: int = 1) -> Moments:
        """The moments with more rows: designs `x` (m, p), responses `y` (m,), group indices `group`."""
        x, y = np.atleast_2d(x), np.atleast_1d(y)
        group = np.broadcast_to(group, len(y))
        n, Sx, Sy = self.n.copy(), self.Sx.copy(), self.Sy.copy()
        np.add.at(n, group, sign)
        np.add.at(Sx, group, sign * x)
        np.add.at(Sy, group, sign * y)
        XX, Xy = self.XX + sign * x.T @ x, self.Xy + sign * x.T @ y
        return Moments(n, Sx, Sy, XX, Xy, self.yy + sign * float(y @ y))

    def downdate(self, *, group: int | Integers, x: Matrix, y: Vector) -> Moments:
        """The moments without some rows: one row, or all rows of a group."""
        return self.add(group=group, x=x, y=y, sign=-1)
