"""Profiled criteria for any random terms: several factors, nested or crossed, with slopes.

Only arrays enter and only arrays leave. Notation follows Bates et al. (2015, doi:10.18637/jss.v067.i01): theta
fills the lower triangles T_i of the relative covariance factor Lambda, Omega = Lambda'Z'Z Lambda + I. Omega is
never stored whole: the largest factor is eliminated first, and with it every factor it is nested in, because
their diagonal blocks stay block-diagonal; what is left is one dense Schur complement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from discreet.arrays import Integers, Matrix, Vector

SMALL = 200  # effects in all: up to here one dense factor beats any structure
Sparse: TypeAlias = Any  # a scipy.sparse array; SciPy ships no types


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
    crossed: Mapping[tuple[int, int], Sparse]
    Zxy: tuple[Matrix, ...]
    joint: Matrix
    rows: float

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(zz) * zz.shape[1] for zz in self.ZZ)

    @cached_property
    def order(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Terms eliminated block by block, largest first, and the terms left for the dense Schur complement."""
        largest_first = sorted(range(len(self.ZZ)), key=lambda i: -self.sizes[i])
        if sum(self.sizes) <= SMALL:
            return (), tuple(largest_first)
        chain = largest_first[:1]
        for term in largest_first[1:]:
            if not all(self._nested(inner, term) for inner in chain):
                break
            chain.append(term)
        return tuple(chain), tuple(largest_first[len(chain) :])

    @cached_property
    def chained(self) -> dict[tuple[int, int], Sparse]:
        """Z_i'Z_j between terms of the chain."""
        chain, _ = self.order
        return {(i, j): self.block(i, j) for at, i in enumerate(chain) for j in chain[at + 1 :]}

    @cached_property
    def in_rest(self) -> Matrix:
        """Z_rest'Z_rest, dense: it is about to be filled by the elimination anyway."""
        from scipy.sparse import block_array

        _, rest = self.order
        blocks = [[self.block(i, j) if i != j else _block_diagonal(self.ZZ[i]) for j in rest] for i in rest]
        return np.asarray(block_array(blocks).toarray())

    @cached_property
    def to_rest(self) -> dict[tuple[int, int], Sparse]:
        """Z_i'Z_j from the chain to the rest."""
        chain, rest = self.order
        return {(i, j): self.block(i, j) for i in chain for j in rest}

    def block(self, i: int, j: int) -> Sparse:
        """Z_i'Z_j for i != j."""
        return self.crossed[i, j] if i < j else self.crossed[j, i].T.tocsr()

    def _nested(self, inner: int, outer: int) -> bool:
        """Whether every level of `inner` meets one level of `outer` only."""
        q, r = self.ZZ[inner].shape[1], self.ZZ[outer].shape[1]
        block = self.block(inner, outer).tocoo()
        met = np.unique((block.row // q).astype(np.int64) * (len(self.ZZ[outer]) + 1) + block.col // r)
        return len(met) == len(np.unique(block.row // q))

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
            columns, rows = np.triu_indices(q)
            T[rows, columns] = theta[start : start + len(rows)]
            found.append(T)
            start += len(rows)
        return found

    @property
    def start(self) -> Vector:
        """Where lme4 starts: every T_i the identity."""
        return np.concatenate([np.eye(zz.shape[1])[np.triu_indices(zz.shape[1])] for zz in self.ZZ])


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
    _inverse: dict[int, Sparse]
    _coupled: dict[tuple[int, int], Sparse]
    _coupled_rest: dict[int, Sparse]
    _dense: Matrix | None
    _scaled: list[Matrix]

    def solve(self, right: list[Matrix]) -> list[Matrix]:
        """Omega^-1 times the stacked `right`, one array per term in the formula's order."""
        import scipy.linalg as la

        chain, rest = self.gram.order
        right = [block.copy() for block in right]
        tail = np.concatenate([right[j] for j in rest]) if rest else None
        for at, i in enumerate(chain):
            for j in chain[at + 1 :]:
                right[j] -= self._coupled[i, j].T @ right[i]
            if tail is not None:
                tail -= self._coupled_rest[i].T @ right[i]
        if tail is not None:
            tail = la.cho_solve((self._dense, True), tail, check_finite=False)
            bounds = np.cumsum([self.gram.sizes[j] for j in rest])[:-1]
            for j, block in zip(rest, np.split(tail, bounds), strict=True):
                right[j] = block
        for at in reversed(range(len(chain))):
            i = chain[at]
            solved = self._inverse[i] @ right[i]
            for j in chain[at + 1 :]:
                solved -= self._coupled[i, j] @ right[j]
            if tail is not None:
                solved -= self._coupled_rest[i] @ tail
            right[i] = solved
        return right

    def quadratic(self, right: list[Matrix]) -> Vector:
        """The diagonal of right' Omega^-1 right, for stacked `right` with one array per term."""
        import scipy.linalg as la

        chain, rest = self.gram.order
        right = list(right)
        tail = np.concatenate([right[j] for j in rest]) if rest else None
        total = np.zeros(right[0].shape[1])
        for at, i in enumerate(chain):
            total += np.einsum("ic,ic->c", right[i], self._inverse[i] @ right[i])
            for j in chain[at + 1 :]:
                right[j] = right[j] - self._coupled[i, j].T @ right[i]
            if tail is not None:
                tail -= self._coupled_rest[i].T @ right[i]
        if tail is not None:
            half = la.solve_triangular(self._dense, tail, lower=True, check_finite=False, overwrite_b=True)
            total += np.einsum("ic,ic->c", half, half)
        return total

    @cached_property
    def solved_fixed(self) -> list[Matrix]:
        """Omega^-1 Lambda'Z'[X y]."""
        return self.solve(self._scaled)


def eliminate(gram: Gram, theta: Vector) -> Eliminated:
    """Factor Omega at theta and sweep it out of [X y]'[X y]."""
    import scipy.linalg as la
    from scipy.sparse import csr_array, hstack

    T = gram.triangles(theta)
    chain, rest = gram.order
    diagonal = {i: np.einsum("ji,gjk,kl->gil", T[i], gram.ZZ[i], T[i]) + np.eye(len(T[i])) for i in chain}
    crossed = {(i, j): _before(T[i], _after(block, T[j])) for (i, j), block in gram.chained.items()}
    scaled = [_before(t, zxy) for t, zxy in zip(T, gram.Zxy, strict=True)]
    right = list(scaled)
    A, logdet = gram.joint.copy(), 0.0
    dense, tail, to_rest = None, None, {}
    if rest:
        pairs = {(i, j): _before(T[i], _after(block, T[j])) for (i, j), block in gram.to_rest.items()}
        to_rest = {i: csr_array(hstack([pairs[i, j] for j in rest])) for i in chain}
        dense, start = gram.in_rest.copy(), 0
        for j in rest:
            own = slice(start, start + gram.sizes[j])
            dense[:, own] = _after(dense[:, own], T[j])
            dense[own] = _before(T[j], dense[own])
            start = own.stop
        dense[np.diag_indices(start)] += 1.0
        tail = np.concatenate([right[j] for j in rest])
    inverse, coupled, coupled_rest = {}, {}, {}
    for at, i in enumerate(chain):
        logdet += 2 * float(np.log(np.diagonal(np.linalg.cholesky(diagonal[i]), axis1=1, axis2=2)).sum())
        inverse[i] = _block_diagonal(np.linalg.inv(diagonal[i]))
        reduced = inverse[i] @ right[i]
        A -= right[i].T @ reduced
        later = chain[at + 1 :]
        for j in later:
            coupled[i, j] = inverse[i] @ crossed[i, j]
        for a, j in enumerate(later):
            diagonal[j] = diagonal[j] - _blocks(crossed[i, j].T @ coupled[i, j], len(T[j]))
            for k in later[a + 1 :]:
                crossed[j, k] = crossed[j, k] - crossed[i, j].T @ coupled[i, k]
            right[j] = right[j] - crossed[i, j].T @ reduced
        if dense is not None and tail is not None:
            coupled_rest[i] = inverse[i] @ to_rest[i]
            dense -= (to_rest[i].T @ coupled_rest[i]).toarray()
            tail = tail - to_rest[i].T @ reduced
            for j in later:
                to_rest[j] = to_rest[j] - crossed[i, j].T @ coupled_rest[i]
    if dense is not None and tail is not None:
        # One factor of [S R; R' A] holds those of S and of the Schur complement; OpenBLAS wakes all its threads for
        # the smallest triangular solve, so this is also the quick way.
        size = len(dense)
        whole = np.zeros((size + len(A), size + len(A)))
        whole[:size, :size], whole[size:, :size], whole[size:, size:] = dense, tail.T, A
        whole = la.cholesky(whole, lower=True, overwrite_a=True, check_finite=False)
        dense = whole[:size, :size]
        logdet += 2 * float(np.log(np.diagonal(dense)).sum())
        A = whole[size:, size:] @ whole[size:, size:].T
    return Eliminated(gram, T, logdet, A, inverse, coupled, coupled_rest, dense, scaled)


def _after(matrix: Any, T: Matrix) -> Any:
    """`matrix` times the block-diagonal matrix of copies of T; dense stays dense, sparse stays sparse."""
    q = len(T)
    if q == 1:
        return matrix * T[0, 0]
    if isinstance(matrix, np.ndarray):
        return (matrix.reshape(len(matrix), -1, q) @ T).reshape(matrix.shape)
    return matrix @ _block_diagonal(np.broadcast_to(T, (matrix.shape[1] // q, q, q)))


def _before(T: Matrix, matrix: Any) -> Any:
    """The transposed block-diagonal matrix of copies of T times `matrix`."""
    return _after(matrix.T, T).T


def _block_diagonal(blocks: Matrix) -> Sparse:
    from scipy.sparse import bsr_array, diags_array

    count, q, _ = blocks.shape
    if q == 1:
        return diags_array(blocks[:, 0, 0]).tocsr()
    return bsr_array((np.ascontiguousarray(blocks), np.arange(count), np.arange(count + 1))).tocsr()


def _blocks(matrix: Sparse, q: int) -> Matrix:
    """The diagonal blocks of a block-diagonal sparse array."""
    count = matrix.shape[0] // q
    entries = matrix.tocoo()
    found = np.zeros((count, q, q))
    np.add.at(found, (entries.row // q, entries.row % q, entries.col % q), entries.data)
    return found


def criterion(eliminated: Eliminated, *, reml: bool) -> tuple[float, float]:
    """-2 log (restricted) likelihood with beta and sigma profiled out, and the residual sum of squares."""
    pivots = np.diagonal(np.linalg.cholesky(eliminated.A))
    n, p = eliminated.gram.rows, eliminated.gram.p
    freedom, rss = n - p if reml else n, float(pivots[-1]) ** 2
    fixed = 2 * float(np.log(pivots[:-1]).sum()) if reml else 0.0
    return eliminated.logdet + fixed + freedom * (1 + np.log(2 * np.pi * rss / freedom)), rss


def diagonal_inverse(eliminated: Eliminated, *, columns: int = 256) -> list[Matrix]:
    """The diagonal blocks of Omega^-1 per term, shape (levels, q, q), solving for some columns at a time."""
    gram = eliminated.gram
    found = []
    for i, zz in enumerate(gram.ZZ):
        size, q = gram.sizes[i], zz.shape[1]
        blocks = np.empty((len(zz), q, q))
        chunk = max(columns // q, 1) * q
        for start in range(0, size, chunk):
            at = np.arange(start, min(start + chunk, size))
            unit = [np.zeros((n, len(at))) for n in gram.sizes]
            unit[i][at, at - start] = 1.0
            block = eliminated.solve(unit)[i][at].reshape(len(at) // q, q, len(at) // q, q)
            level = np.arange(len(at) // q)
            blocks[at[::q] // q] = block[level, :, level, :]
        found.append(blocks)
    return found
