"""Random disjoint blocks of the rows, and the estimates of every block: the first half of sub-sample and aggregate.

Smith's method as section IV of Abowd, Schneider and Vilhuber (2012) uses it: k blocks of floor(N / k) rows, every model
fitted to each block by itself. A block's estimates are a function of its own rows, to the last bit. The content of a
response changes no shape, raises nothing and warns of nothing, and a block that cannot be fitted has NaN in its own
place. One random intercept goes through `discreet.models.linear.blocks`; the linear model and nested intercepts are here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.blocks import CHUNK_NUMBERS, fit_chunk
from discreet.models.linear.matrix import dense
from discreet.models.linear.private.public import PublicDesign
from discreet.models.linear.reml import estimable
from discreet.words.errors import FitError, PrivacyError
from discreet.words.faults import Argument
from discreet.words.progress import Progress, silent

Blocks: TypeAlias = int | Literal["optimal", "most"]
Entries: TypeAlias = tuple[Integers, Integers, Vector]
_NO_ENTRIES: Entries = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
SMALLEST_BLOCK = 2
LARGEST_RATIO = 1e4
EXACT = "the fixed part reproduces the response"


def best_blocks(rows: int, *, spread: float, epsilon: float) -> int:
    """k* = N^(3/5) L^(2/5) / epsilon^(2/5), cut to a whole number: Smith's optimum, 8,945 in the documents' case."""
    return int(rows**0.6 * (spread / epsilon) ** 0.4)


def most_blocks(rows: int) -> int:
    """N^(2/3): beyond it the bias of small blocks is not negligible."""
    return int(rows ** (2 / 3))


def count_blocks(blocks: Blocks, rows: int, *, spread: float, epsilon: float) -> int:
    """The number of blocks that was asked for. A rule's own number is never beyond what `most_blocks` allows.

    `spread` is in halves of the response's range, so no rule depends on its unit: in the documents it is [0, 2].
    """
    most = max(min(most_blocks(rows), rows // SMALLEST_BLOCK), 1)
    rules = {"optimal": min(max(best_blocks(rows, spread=spread, epsilon=epsilon), 1), most), "most": most}
    found = rules.get(str(blocks), blocks)
    if not isinstance(found, int) or isinstance(found, bool):
        raise PrivacyError(
            (Argument("blocks", blocks), " is not a number of blocks."),
            remedy="Give a whole number, 'optimal' or 'most'.",
            about="blocks",
        )
    if rows < SMALLEST_BLOCK:
        raise PrivacyError(
            f"Blocks of {rows} rows were asked for.",
            f"A block needs {SMALLEST_BLOCK} at least.",
            "Take method='moments', which has no blocks.",
            about="method",
        )
    if not 1 <= found <= rows // SMALLEST_BLOCK:
        raise PrivacyError(
            (Argument("blocks", found), f" leaves {rows // max(found, 1)} of {rows:,} rows to a block."),
            f"A block needs {SMALLEST_BLOCK} at least.",
            f"Ask for 1 to {rows // SMALLEST_BLOCK:,}.",
            about="blocks",
        )
    return found


@dataclass(frozen=True)
class BlockEstimates:
    """Estimates of every block, in centred columns and from the response's origin.

    Attributes
    ----------
    beta : shape (k, p); NaN where the block has no such level or is not estimable.
    variances : of each random term, then residual, shape (k, terms + 1); NaN where not estimable.
    effects : per term, arrays of block, level and EBLUP, one entry for each pair that the design has; NaN where the
        block's response could not be fitted.
    estimable : whether the block's model could be fitted, shape (k,).
    """

    beta: Matrix
    variances: Matrix
    effects: tuple[Entries, ...]
    estimable: Mask

    def __len__(self) -> int:
        return len(self.estimable)


def _concatenated(found: list[Entries]) -> Entries:
    blocks, levels, values = zip(*found, strict=True)
    return np.concatenate(blocks), np.concatenate(levels), np.concatenate(values)


def partition(rows: int, blocks: int, rng: np.random.Generator) -> Integers:
    """Rows of each block, shape (blocks, rows per block); the rest is in none."""
    size = rows // blocks
    return np.asarray(rng.permutation(rows)[: blocks * size].reshape(blocks, size))


def refuse_dropped(public: PublicDesign) -> None:
    """Refuse fixed columns that no block can tell apart, which the public design shows before anything is paid."""
    if len(public.kept) < len(public.design.names):
        raise FitError(
            f"Fixed columns of {public.model.text!r} are combinations of others, in every block: "
            f"{', '.join(public.dropped)}.",
            "A method that fits blocks of rows needs every fixed column.",
            "Drop them, or use 'moments', which leaves them out.",
            about="formula",
        )


def fit_partition(
    data: ModelRows, public: PublicDesign, chosen: Integers, *, progress: Progress = silent
) -> BlockEstimates:
    """Fit the model to every block of `chosen`."""
    refuse_dropped(public)
    fit = {0: _linear, 1: _one_intercept}.get(len(public.terms), _nested)
    together = max(1, CHUNK_NUMBERS // (chosen.shape[1] * (len(public.kept) + 1)))
    parts: list[BlockEstimates] = []
    for start in range(0, len(chosen), together):
        rows = chosen[start : start + together]
        with np.errstate(all="ignore"):
            parts.append(fit(data, public, rows))
        done, of = start + len(rows), len(chosen)
        progress(f"{done:,} of {of:,} blocks", done / of)
    return _joined(parts)


def _joined(parts: list[BlockEstimates]) -> BlockEstimates:
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    effects = tuple(
        _concatenated(
            [
                (b + start, level, u)
                for part, start in zip(parts, starts, strict=True)
                for b, level, u in [part.effects[term]]
            ]
        )
        for term in range(len(parts[0].effects))
    )
    return BlockEstimates(
        np.concatenate([part.beta for part in parts]),
        np.concatenate([part.variances for part in parts]),
        effects,
        np.concatenate([part.estimable for part in parts]),
    )


def _one_intercept(data: ModelRows, public: PublicDesign, chosen: Integers) -> BlockEstimates:
    found: dict[str, Any] = fit_chunk(data, public.design, _AS_THEY_ARE, chosen, 0, reml=True)
    effects = (found["block"], found["level"], found["effect"])
    return BlockEstimates(found["beta"], found["variances"], (effects,), found["estimable"])


class _Centred:
    """Coefficients of the centred columns, left as they are."""

    @staticmethod
    def beta(centred: Matrix) -> Matrix:
        return centred


_AS_THEY_ARE: Any = _Centred()


def _stacked(data: ModelRows, public: PublicDesign, chosen: Integers) -> Matrix:
    """[X y] of every block, shape (blocks, rows, p + 1)."""
    part = data.take(chosen.ravel())
    X = dense(part, public.design.layout.fixed, public.design.levels)
    joint = np.column_stack([X, part.evaluate(public.design.layout.response)])
    return joint.reshape(*chosen.shape, -1)


def _solve_present(gram: Matrix, right: Matrix, present: Mask) -> Matrix:
    """Batched least squares on the columns that a block has; NaN for the others."""
    p = gram.shape[1]
    gram = np.where(present[:, :, None] & present[:, None, :], gram, 0.0)
    gram[:, np.arange(p), np.arange(p)] += ~present
    solved = np.linalg.solve(gram, np.where(present, right, 0.0)[..., None])[..., 0]
    return np.where(present, solved, np.nan)


def _linear(data: ModelRows, public: PublicDesign, chosen: Integers) -> BlockEstimates:
    joint = _stacked(data, public, chosen)
    p, size = joint.shape[2] - 1, chosen.shape[1]
    gram = joint.transpose(0, 2, 1) @ joint
    present, solvable = estimable(gram[:, :p, :p], floor=np.zeros(p))
    solvable &= present.sum(axis=1) < size
    beta = np.full((len(chosen), p), np.nan)
    variances = np.full((len(chosen), 1), np.nan)
    if solvable.any():  # a matter of the design
        some = gram[solvable]
        beta[solvable] = _solve_present(some[:, :p, :p], some[:, :p, p], present[solvable])
        rss = some[:, p, p] - np.einsum("bi,bi->b", some[:, :p, p], np.nan_to_num(beta[solvable]))
        variances[solvable, 0] = np.maximum(rss, 0) / (size - present[solvable].sum(axis=1))
    return BlockEstimates(beta, variances, (), np.isfinite(variances[:, 0]))


def _nested(data: ModelRows, public: PublicDesign, chosen: Integers) -> BlockEstimates:
    """Two nested intercepts, one block after the other."""
    if len(public.terms) != 2:
        raise FitError(
            f"{public.model.text!r} has {len(public.terms)} random terms.",
            "Blocks are fitted to two nested ones at most.",
            "Drop a term, or use method='moments'.",
            about="formula",
        )
    joint, size = _stacked(data, public, chosen), chosen.shape[1]
    part = data.take(chosen.ravel())
    fine, coarse = (public.design.random[i].grouping.codes(part.codes).reshape(chosen.shape) for i in public.terms)
    p = joint.shape[2] - 1
    gram = joint.transpose(0, 2, 1) @ joint
    present, solvable = estimable(gram[:, :p, :p], floor=np.zeros(p))
    beta, variances = np.full((len(chosen), p), np.nan), np.full((len(chosen), 3), np.nan)
    entries: list[list[Entries]] = [[_NO_ENTRIES], [_NO_ENTRIES]]
    for b in range(len(chosen)):
        columns = np.append(np.flatnonzero(present[b]), p)
        nest = _Nest.of(joint[b][:, columns], fine[b], coarse[b])
        solvable[b] &= 1 < len(nest.n) < size and len(columns) <= size
        if not solvable[b]:
            continue
        try:
            ratios = nest.best_ratios()
            beta[b, columns[:-1]], sigma2, u_fine, u_coarse = nest.solve(ratios)
            variances[b] = sigma2 * np.append(ratios, 1.0)
        except np.linalg.LinAlgError:
            solvable[b] = False
            u_fine, u_coarse = np.full(len(nest.fine), np.nan), np.full(len(nest.coarse), np.nan)
        entries[0].append((np.full(len(u_fine), b), nest.fine, u_fine))
        entries[1].append((np.full(len(u_coarse), b), nest.coarse, u_coarse))
    return BlockEstimates(beta, variances, tuple(_concatenated(found) for found in entries), solvable)


@dataclass(frozen=True, slots=True)
class _Nest:
    """One block with two nested intercepts, reduced to means of its finest groups."""

    rows: int
    within: Matrix
    means: Matrix
    n: Vector
    starts: Integers
    parent: Integers
    fine: Integers
    coarse: Integers

    @classmethod
    def of(cls, joint: Matrix, fine: Integers, coarse: Integers) -> _Nest:
        order = np.lexsort([fine, coarse])
        joint, fine, coarse = joint[order], fine[order], coarse[order]
        at = np.flatnonzero(np.diff(fine, prepend=-1))
        n = np.diff(np.append(at, len(fine))).astype(np.float64)
        means = np.add.reduceat(joint, at) / n[:, None]
        parents = coarse[at]
        starts = np.flatnonzero(np.diff(parents, prepend=-1))
        parent = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(n))))
        within = joint.T @ joint - means.T @ (n[:, None] * means)
        return cls(len(joint), within, means, n, starts, parent, fine[at], parents[starts])

    def _reduced(self, ratios: Vector) -> tuple[Vector, Vector, Matrix, Matrix]:
        """Weights of the finest groups, shrinkage of the coarser ones, Z'V^-1[X y] and [X y]'V^-1[X y]; sigma2 is 1."""
        w = self.n / (1 + ratios[0] * self.n)
        pulled = w[:, None] * self.means
        shrink = ratios[1] / (1 + ratios[1] * np.add.reduceat(w, self.starts))
        fine = pulled - w[:, None] * (shrink[:, None] * np.add.reduceat(pulled, self.starts))[self.parent]
        return w, shrink, fine, self.within + self.means.T @ fine

    def _criterion(self, deviations: Vector) -> tuple[float, Vector]:
        """-2 log restricted likelihood with beta and sigma2 profiled out, and its slopes."""
        ratios = deviations**2
        w, shrink, fine, A = self._reduced(ratios)
        weight = np.add.reduceat(w, self.starts)
        inverse = np.linalg.inv(A[:-1, :-1])
        z = np.append(-inverse @ A[:-1, -1], 1.0)
        rss, freedom = float(z @ A @ z), self.rows - len(inverse)
        if not 0 < rss < math.inf:
            raise np.linalg.LinAlgError(EXACT)
        logdet = np.log1p(ratios[0] * self.n).sum() + np.log1p(ratios[1] * weight).sum()
        value = logdet + np.linalg.slogdet(A[:-1, :-1])[1] + freedom * np.log(rss)
        traces = (w.sum() - shrink @ np.add.reduceat(w**2, self.starts), (weight / (1 + ratios[1] * weight)).sum())
        slopes = []
        for trace, Q in zip(traces, (fine, np.add.reduceat(fine, self.starts)), strict=True):
            lost = np.sum((Q[:, :-1] @ inverse) * Q[:, :-1]) + freedom * np.sum((Q @ z) ** 2) / rss
            slopes.append(trace - lost)
        return float(value), 2 * deviations * np.array(slopes)

    def best_ratios(self) -> Vector:
        from scipy.optimize import minimize

        bounds = [(0, math.sqrt(LARGEST_RATIO))] * 2
        found = minimize(self._criterion, np.array([0.3, 0.2]), jac=True, method="L-BFGS-B", bounds=bounds)
        return np.asarray(found.x, dtype=np.float64) ** 2

    def solve(self, ratios: Vector) -> tuple[Vector, float, Vector, Vector]:
        """beta, sigma2 and the effects of the finest and of the coarser groups."""
        _, _, fine, A = self._reduced(ratios)
        beta = np.asarray(np.linalg.solve(A[:-1, :-1], A[:-1, -1]), dtype=np.float64)
        rss = float(A[-1, -1] - A[:-1, -1] @ beta)
        if not 0 <= rss < math.inf:
            raise np.linalg.LinAlgError(EXACT)
        sigma2 = rss / (self.rows - len(beta))
        t = fine @ np.append(-beta, 1.0)
        return beta, sigma2, ratios[0] * t, np.asarray(ratios[1] * np.add.reduceat(t, self.starts))


def same_rows(one: ModelRows, other: ModelRows, public: PublicDesign) -> bool:
    """Whether two passes gave the public columns in the same order."""
    values = [factor for factor in one.values if factor != public.model.response]
    return all(np.array_equal(one.codes[column], other.codes[column]) for column in one.codes) and all(
        np.array_equal(one.values[factor], other.values[factor], equal_nan=True) for factor in values
    )
