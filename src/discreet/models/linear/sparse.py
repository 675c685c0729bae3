"""Profiled criteria for any random terms: several factors, nested or crossed, with slopes; and their gradients.

Only arrays enter and only arrays leave. Notation follows Bates et al. (2015, doi:10.18637/jss.v067.i01): theta
fills the lower triangles T_i of the relative covariance factor Lambda, Omega = Lambda'Z'Z Lambda + I. Omega is kept
as its blocks between levels that meet; `elimination` factors it. Slopes follow from the derivative of Omega in Lambda,
and need the inverse of Omega only where it has entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.linear.elimination import Elimination, Factored, Sparse

FEW = 160  # effects, whose plain matrices are quicker than sparse ones


@dataclass(frozen=True)
class Coupling:
    """Z_i'Z_j as blocks: levels `left` of term i that meet levels `right` of term j, shape (pairs, q_i, q_j)."""

    left: Integers
    right: Integers
    blocks: Matrix


@dataclass(frozen=True)
class Gram:
    """Cross-products of [Z_1 ... Z_k X y]; effects of one level stand next to each other.

    Attributes
    ----------
    ZZ : per term, the diagonal blocks of Z_i'Z_i, shape (levels, q, q).
    crossed : Z_i'Z_j for i < j.
    Zxy : per term, Z_i'[X y], shape (levels q, p + 1).
    joint : [X y]'[X y], shape (p + 1, p + 1).
    rows : number of observations.
    """

    ZZ: tuple[Matrix, ...]
    crossed: Mapping[tuple[int, int], Coupling]
    Zxy: tuple[Matrix, ...]
    joint: Matrix
    rows: float

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(zz) * zz.shape[1] for zz in self.ZZ)

    @cached_property
    def effects(self) -> int:
        return sum(self.sizes)

    @cached_property
    def bounds(self) -> list[int]:
        """Where terms begin among all effects."""
        return [sum(self.sizes[:i]) for i in range(len(self.sizes))]

    @cached_property
    def places(self) -> tuple[Integers, Integers]:
        """Rows and columns of the entries of Omega off its diagonal, each once, in the order of `entries`."""
        rows, columns = [], []
        for start, zz in zip(self.bounds, self.ZZ, strict=True):
            q = zz.shape[1]
            high, low = below(q)
            level = start + q * np.arange(len(zz))[:, None]
            rows.append((level + high).ravel())
            columns.append((level + low).ravel())
        for (i, j), met in self.crossed.items():
            _, q, r = met.blocks.shape
            left = (self.bounds[i] + met.left * q)[:, None, None] + np.arange(q)[:, None]
            right = (self.bounds[j] + met.right * r)[:, None, None] + np.arange(r)
            rows.append(np.broadcast_to(left, met.blocks.shape).ravel())
            columns.append(np.broadcast_to(right, met.blocks.shape).ravel())
        return np.concatenate(rows), np.concatenate(columns)

    @cached_property
    def elimination(self) -> Elimination:
        return Elimination.of(*self.places, self.effects)

    @cached_property
    def stacked(self) -> Matrix:
        """Z'[X y], all terms."""
        return np.concatenate(self.Zxy)

    @cached_property
    def whole(self) -> Sparse:
        """Z'Z as a sparse array, or as a plain one of few effects."""
        from scipy.sparse import coo_array

        rows, columns = self.places
        diagonal, off = self.scaled([np.eye(zz.shape[1]) for zz in self.ZZ])
        every = np.arange(self.effects)
        if self.effects <= FEW:
            plain = np.zeros((self.effects, self.effects))
            plain[rows, columns] = plain[columns, rows] = off
            plain[every, every] = diagonal
            return plain
        index = np.concatenate([rows, columns, every]), np.concatenate([columns, rows, every])
        return coo_array((np.concatenate([off, off, diagonal]), index), shape=(self.effects,) * 2).tocsr()

    def lend(self, other: Gram) -> Gram:
        """Another Gram matrix of the same pattern, which need not find the order of its elimination again."""
        other.__dict__.update({"places": self.places, "elimination": self.elimination})
        return other

    def ordered(self, orders: Sequence[Integers]) -> Gram:
        """The effects of every level of a term in another order."""
        terms = list(zip(orders, self.ZZ, self.Zxy, strict=True))
        crossed = {
            (i, j): Coupling(met.left, met.right, met.blocks[:, orders[i][:, None], orders[j]])
            for (i, j), met in self.crossed.items()
        }
        ZZ = tuple(zz[:, order[:, None], order] for order, zz, _ in terms)
        Zxy = tuple(zxy.reshape(len(zz), len(order), -1)[:, order].reshape(zxy.shape) for order, zz, zxy in terms)
        return self.lend(Gram(ZZ, crossed, Zxy, self.joint, self.rows))

    def scaled(self, T: list[Matrix]) -> tuple[Vector, Vector]:
        """Lambda'Z'Z Lambda: its diagonal, and its entries in the order of `places`."""
        diagonal, entries = [], []
        for t, zz in zip(T, self.ZZ, strict=True):
            block = _sandwich(t, zz, t)
            if len(t) == 1:
                diagonal.append(block.ravel())
            else:
                diagonal.append(np.einsum("gii->gi", block).ravel())
                high, low = below(len(t))
                entries.append(block[:, high, low].ravel())
        entries += [_sandwich(T[i], met.blocks, T[j]).ravel() for (i, j), met in self.crossed.items()]
        return np.concatenate(diagonal), np.concatenate(entries) if entries else np.zeros(0)

    @property
    def p(self) -> int:
        return len(self.joint) - 1

    def keep(self, columns: Integers) -> Gram:
        """The same with these fixed columns only."""
        with_response = np.append(columns, self.p)
        fixed = tuple(zxy[:, with_response] for zxy in self.Zxy)
        return Gram(self.ZZ, self.crossed, fixed, self.joint[np.ix_(with_response, with_response)], self.rows)

    def triangles(self, theta: Vector) -> list[Matrix]:
        """T_i from lme4's theta: lower triangles, column by column."""
        found, start = [], 0
        for zz in self.ZZ:
            q = zz.shape[1]
            T = np.zeros((q, q))
            columns, rows = by_columns(q)
            T[rows, columns] = theta[start : start + len(rows)]
            found.append(T)
            start += len(rows)
        return found

    @property
    def start(self) -> Vector:
        """Where lme4 starts: every T_i the identity."""
        return np.concatenate([np.eye(zz.shape[1])[by_columns(zz.shape[1])] for zz in self.ZZ])

    def split(self, stacked: Matrix) -> list[Matrix]:
        """Rows of all effects, by term."""
        return [stacked[start : start + size] for start, size in zip(self.bounds, self.sizes, strict=True)]


@dataclass(frozen=True)
class Eliminated:
    """Omega factored at one theta, with the Schur complement of [X y] on top.

    Attributes
    ----------
    logdet : log det Omega.
    A : [X y]' V^-1 [X y], V in units of sigma2.
    """

    gram: Gram
    triangles: list[Matrix]
    logdet: float
    A: Matrix
    factor: Factored
    reduced: tuple[list[Matrix], Matrix]

    def solve(self, right: list[Matrix]) -> list[Matrix]:
        """Omega^-1 times the stacked `right`, one array per term in the formula's order."""
        return self.gram.split(self.factor.back(*self.factor.reduce(np.concatenate(right))))

    def quadratic(self, right: list[Matrix]) -> Vector:
        """The diagonal of right' Omega^-1 right, for stacked `right` with one array per term."""
        return self.factor.squared_lengths(*self.factor.reduce(np.concatenate(right)))

    @cached_property
    def solved_fixed(self) -> list[Matrix]:
        """Omega^-1 Lambda'Z'[X y]."""
        return self.gram.split(self.factor.back(*self.reduced))


def eliminate(gram: Gram, theta: Vector) -> Eliminated:
    """Factor Omega at theta and sweep it out of [X y]'[X y]."""
    T = gram.triangles(theta)
    diagonal, entries = gram.scaled(T)
    factor = gram.elimination.factor(diagonal + 1.0, entries)
    scaled = [after(zxy.T, t).T for t, zxy in zip(T, gram.Zxy, strict=True)]
    reduced = factor.reduce(scaled[0] if len(scaled) == 1 else np.concatenate(scaled))
    return Eliminated(gram, T, factor.logdet, gram.joint - factor.squares(*reduced), factor, reduced)


def criterion(eliminated: Eliminated, *, reml: bool) -> tuple[float, float]:
    """-2 log (restricted) likelihood with beta and sigma profiled out, and the residual sum of squares."""
    return criterion_of(eliminated.A, eliminated.logdet, eliminated.gram.rows, reml=reml)


def criterion_of(A: Matrix, logdet: float, n: float, *, reml: bool) -> tuple[float, float]:
    """The same from [X y]' V^-1 [X y] and the log determinant."""
    from scipy.linalg.lapack import dpotrf

    factor, failed = dpotrf(A, lower=1, clean=0)
    if failed:
        raise np.linalg.LinAlgError("the fixed effects reproduce the response")
    pivots = factor.diagonal()
    freedom, rss = n - len(A) + 1 if reml else n, float(pivots[-1]) ** 2
    fixed = 2 * float(np.log(pivots[:-1]).sum()) if reml else 0.0
    return logdet + fixed + freedom * (1 + np.log(2 * np.pi * rss / freedom)), rss


def gradient(eliminated: Eliminated, *, reml: bool, sigma2: float | None = None) -> Vector:
    """The slope of the criterion in theta, with sigma profiled out or held.

    It gives up the factor, so `eliminated` cannot be used afterwards.
    """
    return slopes(eliminated, (), reml=reml, sigma2=sigma2)[0]


@dataclass(frozen=True)
class Swept:
    """What slopes and curvature share at one theta.

    Attributes
    ----------
    unscaled, contrast : the inverse of X'V^-1 X, and beta with -1 after it.
    scale, freedom : one over sigma2, and what the residual sum of squares is divided by for it.
    Y, spread, H : Omega^-1 Lambda'Z'[X y], Lambda Y and Z'V^-1[X y].
    weight : of H, in the slope of the criterion.
    """

    eliminated: Eliminated
    unscaled: Matrix
    contrast: Vector
    scale: float
    freedom: float
    Y: Matrix
    spread: Matrix
    H: Matrix
    weight: Matrix


def swept(eliminated: Eliminated, *, reml: bool, sigma2: float | None = None) -> Swept:
    """With sigma profiled out or held."""
    gram, T, A = eliminated.gram, eliminated.triangles, eliminated.A
    p, n = gram.p, gram.rows
    unscaled = np.asarray(np.linalg.inv(A[:p, :p]), dtype=np.float64)
    contrast = np.append(unscaled @ A[:p, p], -1.0)
    freedom = n - p if reml else n
    scale = float(freedom / (contrast @ A @ contrast)) if sigma2 is None else 1 / sigma2
    weight = scale * np.outer(contrast, contrast)
    if reml:
        weight[:p, :p] += unscaled
    Y = eliminated.factor.back(*eliminated.reduced)
    spread = np.concatenate([after(y.T, t.T).T for y, t in zip(gram.split(Y), T, strict=True)])
    H = gram.stacked - gram.whole @ spread
    return Swept(eliminated, unscaled, contrast, scale, freedom, Y, spread, H, weight)


def by_triangle(at: Swept, diagonal: Vector, entries: Vector) -> list[Matrix]:
    """Slopes of the criterion in every entry of each T, with the entries of Omega^-1."""
    gram, T = at.eliminated.gram, at.eliminated.triangles
    terms = zip(gram.split(at.H), gram.split(at.Y @ at.weight), T, strict=True)
    found = [-2 * _over_levels(h, y, len(t)) for h, y, t in terms]
    more = inverse_slopes(gram, T, *blocks_of(gram, diagonal, entries))
    return [slope + 2 * each for slope, each in zip(found, more, strict=True)]


def lower(matrices: Sequence[Matrix]) -> Vector:
    """Lower triangles as one vector, column by column."""
    return np.concatenate([matrix.T[by_columns(len(matrix))] for matrix in matrices])


def slopes(
    eliminated: Eliminated, parts: Sequence[Gram], *, reml: bool, sigma2: float | None = None
) -> tuple[Vector, Vector]:
    """Slopes of the criterion in theta, and in the weight of each of some `parts` of which the Gram matrix is a sum."""
    at = swept(eliminated, reml=reml, sigma2=sigma2)
    diagonal, entries = eliminated.factor.inverse(consume=True)
    in_parts = []
    for part in parts:
        own, between = part.scaled(eliminated.triangles)
        moved = part.stacked.T @ at.spread
        dA = part.joint - moved - moved.T + at.spread.T @ (part.whole @ at.spread)
        in_parts.append(own @ diagonal + 2 * float(between @ entries) + float(np.vdot(at.weight, dA)))
    return lower(by_triangle(at, diagonal, entries)), np.array(in_parts)


def blocks_of(gram: Gram, diagonal: Vector, entries: Vector) -> tuple[list[Matrix], dict[tuple[int, int], Matrix]]:
    """Entries of Omega^-1 as blocks: per term those of its levels, and those between levels of two terms that meet."""
    found, between, start = [], {}, 0
    for own, zz in zip(gram.split(diagonal), gram.ZZ, strict=True):
        count, q, _ = zz.shape
        found.append(_symmetric(own, entries[start : (start := start + count * q * (q - 1) // 2)], q))
    for pair, met in gram.crossed.items():
        between[pair] = entries[start : (start := start + met.blocks.size)].reshape(met.blocks.shape)
    return found, between


def inverse_slopes(
    gram: Gram, T: list[Matrix], inverse: list[Matrix], between: Mapping[tuple[int, int], Matrix]
) -> list[Matrix]:
    """The slope of half of log det Omega in each T."""
    slopes = []
    for t, zz, block in zip(T, gram.ZZ, inverse, strict=True):
        slopes.append(np.vdot(zz, block) * t if len(t) == 1 else _summed(zz, block @ t.T))
    for (i, j), met in gram.crossed.items():
        W = between[i, j]
        if len(T[i]) == len(T[j]) == 1:
            shared = float(np.vdot(met.blocks, W))
            slopes[i] = slopes[i] + shared * T[j]
            slopes[j] = slopes[j] + shared * T[i]
        else:
            slopes[i] = slopes[i] + _summed(met.blocks, W @ T[j].T)
            slopes[j] = slopes[j] + _summed(met.blocks.transpose(0, 2, 1), (T[i] @ W).transpose(0, 2, 1))
    return slopes


def _over_levels(left: Matrix, right: Matrix, q: int) -> Matrix:
    """The sum of left_g right_g' over levels g, whose q effects are rows next to each other."""
    return _summed(left.reshape(-1, q, left.shape[1]), right.reshape(-1, q, right.shape[1]))


def _summed(left: Matrix, right: Matrix) -> Matrix:
    """The sum of left_g right_g' over blocks."""
    if left.shape[1] == right.shape[1] == 1:
        return np.full((1, 1), np.vdot(left, right))
    flat = [np.ascontiguousarray(each.transpose(1, 0, 2)).reshape(each.shape[1], -1) for each in (left, right)]
    return np.asarray(flat[0] @ flat[1].T)


def diagonal_inverse(eliminated: Eliminated) -> list[Matrix]:
    """The diagonal blocks of Omega^-1 per term, shape (levels, q, q)."""
    return blocks_of(eliminated.gram, *eliminated.factor.inverse())[0]


def _symmetric(diagonal: Vector, under: Vector, q: int) -> Matrix:
    """Symmetric blocks from their diagonals and what is below them."""
    if q == 1:
        return diagonal[:, None, None]
    blocks = np.empty((len(diagonal) // q, q, q))
    every = np.arange(q)
    blocks[:, every, every] = diagonal.reshape(-1, q)
    high, low = below(q)
    blocks[:, high, low] = blocks[:, low, high] = under.reshape(len(blocks), -1)
    return blocks


def after(matrix: Matrix, T: Matrix) -> Matrix:
    """`matrix` times the block-diagonal matrix of copies of T."""
    q = len(T)
    if q == 1:
        return matrix * float(T[0, 0])
    return np.asarray((matrix.reshape(len(matrix), -1, q) @ T).reshape(matrix.shape))


def _sandwich(left: Matrix, blocks: Matrix, right: Matrix) -> Matrix:
    """left' block right, for every block."""
    if len(left) == len(right) == 1:
        return blocks * float(left[0, 0] * right[0, 0])
    found: Matrix = left.T @ (blocks @ right)
    return found


@cache
def below(q: int) -> tuple[Integers, Integers]:
    """Rows and columns of a square of size q below its diagonal."""
    return np.tril_indices(q, -1)


@cache
def by_columns(q: int) -> tuple[Integers, Integers]:
    """Columns and rows of a lower triangle, column by column."""
    return np.triu_indices(q)
