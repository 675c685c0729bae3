"""The modes of one random term's effects where zeros may be extra: the highest top of each group.

Only arrays enter and only arrays leave. With extra zeros the density of a group's effects can have several tops: its
zeros are counted, and the effect is low, or they are extra, and it is not. If every zero is counted, or every zero is
extra, there is one top, and the tops of a scalar effect lie between these two. So both are looked for, the search for
tops begins at each of them, and where it ends at two tops also between them. Where it ends depends on the parameters
alone, not on what was asked before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.models.linear.families.family import Slopes

STEPS, HALVINGS = 100, 30  # of Newton's method
ROUNDING = 1e-13  # of a group's log-density: differences below it say nothing
NEAR, SETTLED = 1e-4, 1e-15  # what the last step may promise: for a comparison of tops, and of the mode
SAME = 1e-2  # standard deviations of all effects; tops closer than this are one
Near: TypeAlias = Callable[[Integers, Vector], Slopes]


@dataclass(frozen=True)
class GroupRows:
    """The rows of one term: its scaled columns Z Lambda, shape (rows, q), and the group of each row.

    `near` gives the law at rows (their numbers) and their linear predictors.
    """

    columns: Matrix
    level: Integers
    levels: int
    fixed: Vector
    rows: Integers
    near: Near

    def of(self, kept: Integers) -> GroupRows:
        """Some of the groups, in this order."""
        place = np.full(self.levels, -1)
        place[kept] = np.arange(len(kept))
        return self.rows_where(place[self.level] >= 0, place, len(kept))

    def rows_where(self, chosen: Mask, place: Integers | None = None, levels: int | None = None) -> GroupRows:
        """Some of the rows; `place` renumbers groups."""
        level = self.level[chosen]
        return replace(
            self,
            columns=self.columns[chosen],
            level=level if place is None else place[level],
            levels=self.levels if levels is None else levels,
            fixed=self.fixed[chosen],
            rows=self.rows[chosen],
        )

    def at(self, u: Matrix) -> tuple[Slopes, Vector]:
        """The law at effects, and the log-density of each group with its effects."""
        if u.shape[1] == 1:
            eta = self.fixed + self.columns[:, 0] * u[self.level, 0]
        else:
            eta = self.fixed + np.einsum("na,na->n", self.columns, u[self.level])
        law = self.near(self.rows, eta)
        return law, self.sums(law.density) - np.einsum("ga,ga->g", u, u) / 2

    def sums(self, rows: Vector) -> Vector:
        return np.asarray(np.bincount(self.level, rows, self.levels), dtype=np.float64)

    def slope(self, law: Slopes, u: Matrix) -> Matrix:
        return np.stack([self.sums(column * law.slope) for column in self.columns.T], axis=1) - u

    def omega(self, curve: Vector) -> Matrix:
        """Minus the second derivatives, one block for each group."""
        q = self.columns.shape[1]
        found = np.tile(np.eye(q), (self.levels, 1, 1))
        for a in range(q):
            for b in range(a + 1):
                found[:, a, b] += self.sums(self.columns[:, a] * self.columns[:, b] * curve)
                found[:, b, a] = found[:, a, b]
        return found


def highest(
    all_rows: GroupRows, counted: GroupRows, positive: GroupRows, last: list[Matrix]
) -> tuple[Matrix, list[Matrix]]:
    """The effects of every group at its highest top, and where the two searches of single tops ended.

    `counted` has the law without extra zeros, `positive` the same and the rows above zero alone. `last` is where their
    tops were, which makes the search short and has no influence on its end.
    """
    low, high = (climb(each, u, NEAR) for each, u in zip((counted, positive), last, strict=True))
    found = climb(all_rows, low, NEAR)
    other = climb(all_rows, high, NEAR)
    several = np.flatnonzero(np.abs(other - found).max(axis=1) > SAME)
    if len(several):
        some = all_rows.of(several)
        tops = [found[several], other[several], climb(some, (found[several] + other[several]) / 2, NEAR)]
        best = np.argmax([some.at(u)[1] for u in tops], axis=0)
        found[several] = np.stack(tops)[best, np.arange(len(several))]
    return climb(all_rows, found, SETTLED), [low, high]


def climb(groups: GroupRows, u: Matrix, settled: float) -> Matrix:
    """A top for every group, by Newton steps of its own from `u`, or from zero where doubles do not hold that value."""
    law, value = groups.at(u)
    if not (held := np.isfinite(value)).all():
        u = np.where(held[:, None], u, 0.0)
        law, value = groups.at(u)
    found, place = u.copy(), np.arange(groups.levels)
    for _ in range(STEPS):
        slope, omega = groups.slope(law, u), _positive(groups, law.curve)
        step = slope / omega[:, :, 0] if u.shape[1] == 1 else np.linalg.solve(omega, slope[:, :, None])[:, :, 0]
        promised = np.einsum("ga,ga->g", step, slope)
        done = promised <= settled * (1 + np.abs(value))
        for _ in range(HALVINGS):
            moved = u + step
            law, there = groups.at(moved)
            worse = ~(there >= value - ROUNDING * (1 + np.abs(value)))
            if not worse.any():
                break
            step[worse] /= 2
        else:
            moved = np.where(worse[:, None], u, moved)
            law, there = groups.at(moved)
            done |= worse
        u, value = moved, there
        found[place] = u
        if done.all():
            break
        if done.sum() * 2 >= len(done):
            left = np.flatnonzero(~done)
            groups, place, u, value = groups.of(left), place[left], u[left], value[left]
            law, value = groups.at(u)
    return found


def _positive(groups: GroupRows, curve: Vector) -> Matrix:
    """Omega, without the rows' negative curvature in groups where it would not be positive."""
    omega = groups.omega(curve)
    wrong = omega[:, 0, 0] <= 0 if omega.shape[1] == 1 else np.linalg.eigvalsh(omega)[:, 0] <= 0
    if wrong.any():
        omega[wrong] = groups.omega(np.maximum(curve, 0.0))[wrong]
    return omega
