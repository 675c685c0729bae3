"""Thousands of small mixed models at once: k random disjoint blocks of the rows, each fitted on its own.

Sub-sample and aggregate (section IV of Abowd, Schneider and Vilhuber 2012) needs the estimates of every block.
Within a block only the size of a group matters. So a block is a few matrices, one per group size, and all blocks are
profiled together in batched linear algebra. As in the paper, a level that a block does not contain has no estimate
there, and a block may find no variance between groups. A block is not estimable if its moment matrix is singular, or if
its fixed part reproduces its response. All these are counted, none is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.data.frames import open_frame
from discreet.models.formula.design import Design
from discreet.models.formula.formula import read_formula
from discreet.models.formula.rows import ModelRows, plan, read_rows, with_sizes_in_order
from discreet.models.linear.cells import cells_of
from discreet.models.linear.estimate import is_one_intercept, origin_of, refuse_unidentifiable
from discreet.models.linear.fit import Method
from discreet.models.linear.gram import products
from discreet.models.linear.matrix import dense
from discreet.models.linear.origin import Origin
from discreet.models.linear.reml import best_ratio, estimable, independent, profile
from discreet.words.errors import FitError
from discreet.words.faults import Argument
from discreet.words.progress import Progress, silent

CHUNK_NUMBERS = 500_000  # dense design entries worked on at a time: 4 MB stay in cache


@dataclass(frozen=True)
class Blocks:
    """Estimates of every block.

    Attributes
    ----------
    names, levels : fixed effects and levels of the grouping factor.
    size : rows per block; `unused` rows are in no block.
    beta : shape (k, p); NaN where a block has no such level or is not estimable.
    variances : group and residual variance, shape (k, 2); NaN where not estimable.
    block, level, effect : EBLUPs of the levels that each estimable block contains, one entry per pair.
    estimable, zero_variance : per block, shape (k,).
    missing_columns, missing_levels : fixed effects and levels without a row in the block, shape (k,).
    """

    names: tuple[str, ...]
    levels: tuple[str, ...]
    size: int
    unused: int
    beta: Matrix
    variances: Matrix
    block: Integers
    level: Integers
    effect: Vector
    estimable: Mask
    zero_variance: Mask
    missing_columns: Integers
    missing_levels: Integers

    def __len__(self) -> int:
        return len(self.estimable)

    @property
    def presence(self) -> Integers:
        """The number of estimable blocks in which each level has an EBLUP."""
        return np.bincount(self.level, minlength=len(self.levels))

    @property
    def mean_effects(self) -> Vector:
        """The paper's average of EBLUPs over the blocks that have them; NaN for a level in none."""
        total = np.bincount(self.level, self.effect, minlength=len(self.levels))
        return np.where(self.presence > 0, total / np.maximum(self.presence, 1), np.nan)

    @property
    def mean_beta(self) -> Vector:
        """The paper's average of fixed effects over the blocks that have them; NaN for one in none."""
        known = np.isfinite(self.beta)
        return np.where(known.any(axis=0), np.nansum(self.beta, axis=0) / np.maximum(known.sum(axis=0), 1), np.nan)

    def counts(self) -> dict[str, int]:
        """How the blocks fared, for a report."""
        return {
            "blocks": len(self),
            "rows_per_block": self.size,
            "not_estimable": int((~self.estimable).sum()),
            "zero_variance": int(self.zero_variance.sum()),
            "most_missing_columns": int(self.missing_columns.max()),
            "fewest_missing_levels": int(self.missing_levels.min()),
            "most_missing_levels": int(self.missing_levels.max()),
        }


def fit_blocks(
    formula: str,
    data: Any,
    *,
    blocks: int,
    seed: int,
    method: Method = "REML",
    progress: Progress = silent,
) -> Blocks:
    """Fit a model with one random intercept to each of `blocks` random disjoint blocks of floor(N / blocks) rows."""
    frame, model = with_sizes_in_order(open_frame(data, ordered=True), read_formula(formula))
    layout = plan(frame, model)
    rows, learned = read_rows(frame, layout)
    layout = layout.centred(learned.means, learned.distant)
    cells = cells_of(rows, layout, learned.levels)
    design = Design.of(layout, cells.codes, learned.levels)
    if not is_one_intercept(design):
        raise FitError(
            f"Blocks are fitted to one random intercept, and {formula!r} has more.",
            remedy="Use one (1 | group).",
            about="formula",
        )
    refuse_unidentifiable(design, rows.count)
    size = rows.count // blocks if blocks > 0 else 0
    if size < 2:
        raise FitError(
            (
                Argument("blocks", blocks),
                f" leaves {size} rows per block of {rows.count}.",
            ),
            "A block has two rows at least.",
            f"Ask for 1 to {rows.count // 2}.",
            about="blocks",
        )
    order = np.random.default_rng(seed).permutation(rows.count)[: blocks * size].reshape(blocks, size)
    XX = products(cells, layout.fixed, layout.fixed, design.levels)
    kept = independent(XX)
    if len(kept) < len(XX):
        raise FitError(
            f"Fixed columns of {formula!r} are combinations of others, in every block.",
            remedy="Drop them.",
            about="formula",
        )
    origin = origin_of(cells, XX, design, kept)
    per_chunk = max(1, CHUNK_NUMBERS // (size * (len(design.names) + 1)))
    parts = []
    for start in range(0, blocks, per_chunk):
        chosen = order[start : start + per_chunk]
        with np.errstate(all="ignore"):
            parts.append(fit_chunk(rows, design, origin, chosen, start, reml=method == "REML"))
        done = start + len(chosen)
        progress(f"{done:,} of {blocks:,} blocks", done / blocks)
    joined = {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}
    fitted = np.isfinite(joined["effect"])
    joined |= {name: joined[name][fitted] for name in ("block", "level", "effect")}
    return Blocks(design.names, design.random[0].grouping.labels, size, rows.count - blocks * size, **joined)


@dataclass(frozen=True)
class _SizeCurve:
    """A `Curve` of many blocks: group means enter by the size of their group, shape (B, sizes, P, P)."""

    sizes: Vector
    within: Matrix
    outer: Matrix
    counts: Matrix
    rows: Vector
    columns: Vector

    @property
    def span(self) -> tuple[float, float]:
        return float(self.sizes[0]), float(self.sizes[-1])

    def at(self, ratio: Vector, order: int) -> tuple[list[Matrix], list[Vector]]:
        v = self.sizes / (1 + ratio[:, None] * self.sizes)
        flat = self.outer.reshape(*self.counts.shape, -1)
        powers = np.stack([v, -(v**2), 2 * v**3][: order + 1], axis=1)
        A = list((powers @ flat).reshape(len(v), order + 1, *self.within.shape[1:]).swapaxes(0, 1))
        A[0] = A[0] + self.within
        logdet = [np.log1p(ratio[:, None] * self.sizes), v, -(v**2)][: order + 1]
        return A, [np.einsum("bc,bc->b", self.counts, value) for value in logdet]

    def take(self, which: Mask | Integers) -> _SizeCurve:
        parts = ("within", "outer", "counts", "rows", "columns")
        return replace(self, **{name: getattr(self, name)[which] for name in parts})


def fit_chunk(
    rows: ModelRows, design: Design, origin: Origin, chosen: Integers, first: int, *, reml: bool
) -> dict[str, Any]:
    """Estimates of some blocks.

    The design alone decides all shapes and which entries there are: a block whose response cannot be fitted has NaN
    in its own, and no other block knows of it.
    """
    count, size = chosen.shape
    part = rows.take(chosen.ravel())
    grouping, p = design.random[0].grouping, len(design.names)
    joint = np.empty((part.count, p + 1))
    joint[:, :p] = dense(part, design.layout.fixed, design.levels)
    joint[:, p] = part.evaluate(design.layout.response)
    gram = _squared(joint.reshape(count, size, p + 1))

    key = np.repeat(np.arange(count), size) * len(grouping) + grouping.codes(part.codes)
    by_group = np.argsort(key, kind="stable")
    key, starts, n = np.unique(key[by_group], return_index=True, return_counts=True)
    block, level = np.divmod(key, len(grouping))
    sizes, size_of = np.unique(n, return_inverse=True)
    counts = np.bincount(block * len(sizes) + size_of, minlength=count * len(sizes)).reshape(count, -1)
    outer = np.zeros((count, len(sizes), p + 1, p + 1))
    within, alone = np.zeros_like(gram), gram.copy()
    for at, of in enumerate(sizes.tolist()):
        if of > 1:
            members = np.flatnonzero(size_of == at)
            # Blocks hold different numbers of groups of a size: pad with zeros, which add nothing to a product.
            padded = np.zeros((count, int(counts[:, at].max()), of, p + 1))
            rank = np.arange(len(members)) - np.repeat(np.cumsum(counts[:, at]) - counts[:, at], counts[:, at])
            padded[block[members], rank] = joint[by_group[starts[members, None] + np.arange(of)]]
            outer[:, at] = _squared(padded.mean(axis=2))
            whole = _squared(padded.reshape(count, -1, p + 1))
            within += whole - of * outer[:, at]
            alone -= whole
    if sizes[0] == 1:  # most groups of a small block are single rows: what the others leave of the Gram matrix
        outer[:, 0] = alone

    present, solvable = estimable(gram[:, :p, :p], floor=np.zeros(p))
    within[:, np.arange(p), np.arange(p)] += ~present
    groups, columns = counts.sum(axis=1), present.sum(axis=1)
    solvable &= (groups > 1) & (groups < size) & (columns < size)
    curve = _SizeCurve(
        sizes.astype(np.float64),
        within,
        outer,
        counts.astype(np.float64),
        np.full(count, float(size)),
        columns.astype(np.float64),
    ).take(solvable)
    ratio, beta, variances = np.full(count, np.nan), np.full((count, p), np.nan), np.full((count, 2), np.nan)
    if solvable.any():
        best = best_ratio(curve, reml=reml)
        found = profile(curve, best, reml=reml)
        ratio[solvable] = np.where(np.isfinite(found.sigma2), best, np.nan)
        beta[solvable] = np.where(present[solvable], found.beta, np.nan)
        variances[solvable] = np.column_stack([ratio[solvable] * found.sigma2, found.sigma2])
    against = np.concatenate([-np.nan_to_num(beta), np.ones((count, 1))], axis=1)
    residual = (joint.reshape(count, size, p + 1) @ against[:, :, None]).ravel()
    effect = ratio[block] / (1 + ratio[block] * n) * np.add.reduceat(residual[by_group], starts)
    known = solvable[block]  # a matter of the design
    return {
        "beta": origin.beta(beta),
        "variances": variances,
        "block": block[known] + first,
        "level": level[known],
        "effect": effect[known],
        "estimable": solvable & np.isfinite(ratio),
        "zero_variance": solvable & (ratio == 0),
        "missing_columns": p - columns,
        "missing_levels": len(grouping) - groups,
    }


def _squared(stacks: Matrix) -> Matrix:
    """M'M of each matrix of a stack."""
    found: Matrix = stacks.transpose(0, 2, 1) @ stacks
    return found
