"""Exact refits without a row or a group, thousands at a time.

A refit never touches the data again: it subtracts the removed rows from the moments and minimises. Sums over all groups
are smooth in the logarithm of the variance ratio. So they are tabulated once at Chebyshev points, and every refit
interpolates them at its own ratio to machine precision. Section VI.A.4 and table III of Abowd, Schneider and Vilhuber
(2012).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.models.formula.design import Piece
from discreet.models.linear.gram import grouped_products
from discreet.models.linear.matrix import dense
from discreet.models.linear.reml import LARGEST, SMALLEST, GroupCurve, best_ratio, estimable, profile
from discreet.words.progress import Progress, silent

if TYPE_CHECKING:
    from discreet.models.linear.fit import MixedFit

CHUNK = 512  # refits solved together
NODES = 320  # interpolation over the 22 decades of the ratio is then exact to about 1e-13


@dataclass(frozen=True, slots=True)
class Refits:
    """Fits without some rows, one per removal.

    Attributes
    ----------
    names : fixed effects.
    beta : fixed effects of each refit, shape (B, p); missing (NaN) where the removal left nothing to estimate it.
    variances : group and residual variance, shape (B, 2).
    criterion : of each refit, shape (B,).
    effect_change : the largest change of any EBLUP that is left, shape (B,), and `effect_changed`, its level.
    """

    names: tuple[str, ...]
    beta: Matrix
    variances: Matrix
    criterion: Vector
    effect_change: Vector
    effect_changed: Integers
    effects_of: Callable[[Integers], Matrix] = field(repr=False)

    def effects(self, refits: Integers | None = None) -> Matrix:
        """EBLUPs of the chosen refits, shape (refits, levels); NaN for a removed level."""
        return self.effects_of(np.arange(len(self.criterion)) if refits is None else np.asarray(refits))


def leave_groups_out(fit: MixedFit, groups: Integers | None = None, *, progress: Progress = silent) -> Refits:
    """Refit without each group in turn (all of them by default), by removing its sums from the moments."""
    moments = fit.moments
    which = np.arange(len(moments.n)) if groups is None else np.asarray(groups)
    columns = (*fit.design.layout.fixed, Piece(fit.design.layout.response))
    code = fit.design.random[0].grouping.codes(fit.cells.codes)
    joint = grouped_products(fit.cells, code, len(moments.n), columns, columns, fit.design.levels)[which]
    keep = np.append(fit.kept, joint.shape[1] - 1)
    joint = joint[:, keep][:, :, keep]
    sums = np.column_stack([moments.Sx, moments.Sy])[which]
    return _refit(fit, which, joint, sums, moments.n[which], progress)


def leave_rows_out(fit: MixedFit, rows: Integers, *, progress: Progress = silent) -> Refits:
    """Refit without each of the given rows in turn."""
    rows = np.asarray(rows)
    design = fit.design
    part = fit.data.take(rows)
    X = dense(part, design.layout.fixed, design.levels)[:, fit.kept]
    sums = np.column_stack([X, part.evaluate(design.layout.response)])
    joint = sums[:, :, None] * sums[:, None, :]
    return _refit(fit, design.random[0].grouping.codes(part.codes), joint, sums, np.ones(len(rows)), progress)


@dataclass(frozen=True)
class _Table:
    """Weighted sums over all groups as functions of the ratio: `(1 + c ratio)^k sum v^k m m'` at Chebyshev points."""

    nodes: Vector
    barycentric: Vector
    typical: float
    sums: Matrix
    size: int

    @classmethod
    def of(cls, n: Vector, means: Matrix) -> _Table:
        angle = np.pi * (np.arange(NODES) + 0.5) / NODES
        low, high = np.log(SMALLEST), np.log(LARGEST)
        nodes = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
        barycentric = np.sin(angle) * (-1.0) ** np.arange(NODES)
        typical = float(n.mean())
        outer = (means[:, :, None] * means[:, None, :]).reshape(len(means), -1)
        with_counts = np.column_stack([outer, np.ones(len(n))])
        ratio = np.exp(nodes)[:, None]
        v = n * (1 + typical * ratio) / (1 + ratio * n)
        sums = np.stack([v @ with_counts, v**2 @ with_counts, v**3 @ with_counts])
        return cls(nodes, barycentric, typical, sums, means.shape[1])

    def at(self, ratio: Vector, power: int) -> tuple[Matrix, Vector]:
        """sum v^power m m' and sum v^power, for each ratio."""
        t = np.clip(np.log(np.maximum(ratio, SMALLEST)), self.nodes[-1], self.nodes[0])
        gap = t[:, None] - self.nodes
        gap[gap == 0] = 1e-300
        weight = self.barycentric / gap
        found = (weight @ self.sums[power - 1]) / weight.sum(axis=1, keepdims=True)
        found /= (1 + self.typical * ratio[:, None]) ** power
        return found[:, :-1].reshape(-1, self.size, self.size), found[:, -1]


@dataclass(frozen=True)
class _Reduced:
    """A `Curve` of many refits: one group of each has lost rows, all other groups are shared."""

    table: _Table
    span: tuple[float, float]
    within: Matrix
    old_n: Vector
    old_means: Matrix
    new_n: Vector
    new_means: Matrix
    log1p: Callable[[Vector], Vector]
    rows: Vector
    columns: Vector

    def at(self, ratio: Vector, order: int) -> tuple[list[Matrix], list[Vector]]:
        A: list[Matrix] = []
        logdet = [self.log1p(ratio) - np.log1p(ratio * self.old_n) + np.log1p(ratio * self.new_n)]
        old, new = self.old_n / (1 + ratio * self.old_n), self.new_n / (1 + ratio * self.new_n)
        old_outer = self.old_means[:, :, None] * self.old_means[:, None, :]
        new_outer = self.new_means[:, :, None] * self.new_means[:, None, :]
        for power, factor in zip(range(1, order + 2), (1.0, -1.0, 2.0), strict=False):
            shared, total = self.table.at(ratio, power)
            own = (new**power)[:, None, None] * new_outer - (old**power)[:, None, None] * old_outer
            A.append(factor * (shared + own) + (self.within if power == 1 else 0.0))
            if power <= order:
                logdet.append((1.0, -1.0)[power - 1] * (total - old**power + new**power))
        return A, logdet

    def take(self, which: Mask | Integers) -> _Reduced:
        parts = ("within", "old_n", "old_means", "new_n", "new_means", "rows", "columns")
        return replace(self, **{name: getattr(self, name)[which] for name in parts})


def _refit(
    fit: MixedFit,
    group: Integers,
    joint: Matrix,
    sums: Matrix,
    n: Vector,
    progress: Progress,
) -> Refits:
    """Refit without the rows summed up in `joint`, `sums` and `n`, one removal per entry, all from `group`."""
    moments, reml = fit.moments, fit.method == "REML"
    table, span = _Table.of(moments.n, moments.means), GroupCurve.of(moments).span
    whole, all_sums = moments.joint, np.column_stack([moments.Sx, moments.Sy])
    between = moments.means.T @ (moments.n[:, None] * moments.means)
    size, p = len(group), len(fit.beta)
    beta, variances = np.full((size, p), np.nan), np.full((size, 2), np.nan)
    criterion, change = np.full(size, np.nan), np.full(size, np.nan)
    centred, changed = np.full((size, p), np.nan), np.zeros(size, dtype=np.int64)
    ratios = np.full(size, np.nan)
    start_ratio = float(fit.solution.theta[0]) ** 2

    def log1p(ratio: Vector) -> Vector:
        return np.array(np.log1p(ratio[:, None] * moments.n).sum(axis=1))

    def effects_of(at: Integers) -> Matrix:
        left = moments.n[None, :] - np.where(np.arange(len(moments.n)) == group[at][:, None], n[at][:, None], 0.0)
        known = np.nan_to_num(centred[at])
        residual = moments.Sy - known @ moments.Sx.T
        own = all_sums[group[at]] - sums[at]
        residual[np.arange(len(at)), group[at]] = own[:, -1] - np.einsum("bi,bi->b", own[:, :-1], known)
        u = ratios[at][:, None] / (1 + ratios[at][:, None] * left) * residual
        return np.where(left > 0, u, np.nan)

    for start in range(0, size, CHUNK):
        at = np.arange(start, min(start + CHUNK, size))
        g, lost = group[at], n[at]
        new_n = moments.n[g] - lost
        new_means = (all_sums[g] - sums[at]) / np.maximum(new_n, 1)[:, None]
        old_means = moments.means[g]
        own = new_n[:, None, None] * new_means[:, :, None] * new_means[:, None, :]
        own -= moments.n[g][:, None, None] * old_means[:, :, None] * old_means[:, None, :]
        left = whole - joint[at]
        within = left - (between + own)
        present, solvable = estimable(left[:, :p, :p], floor=1e-12 * np.diag(moments.XX))
        within[:, np.arange(p), np.arange(p)] += ~present
        rows = moments.rows - lost
        columns = present.sum(axis=1).astype(np.float64)
        solvable &= rows > columns
        curve = _Reduced(
            table,
            span,
            within,
            moments.n[g],
            old_means,
            new_n,
            new_means,
            log1p,
            rows,
            columns,
        ).take(solvable)
        near = np.full(int(solvable.sum()), start_ratio) if start_ratio > 0 else None
        ratio = best_ratio(curve, reml=reml, start=near)
        found = profile(curve, ratio, reml=reml)
        ok = at[solvable]
        ratios[ok], criterion[ok] = ratio, found.criterion + (fit.origin.logdet if reml else 0.0)
        centred[ok] = np.where(present[solvable], found.beta, np.nan)
        variances[ok] = np.column_stack([ratio * found.sigma2, found.sigma2])
        moved = np.abs(effects_of(at) - fit.solution.effects[0][:, 0])
        known = np.isfinite(moved).any(axis=1)
        changed[at[known]] = np.nanargmax(moved[known], axis=1)
        change[at[known]] = np.nanmax(moved[known], axis=1)
        done = int(at[-1]) + 1
        progress(f"{done:,} of {size:,} refits", done / size)
    beta = fit.origin.beta(centred)
    return Refits(fit.names, beta, variances, criterion, change, changed, effects_of)
