"""Sparse Cholesky factors of matrices with one pattern and many values, by rounds of independent unknowns.

Only arrays enter and only arrays leave. Unknowns that share no entry can be eliminated together. So a round takes a set
of them with few neighbours each (Luby's independent sets in the order of minimum degree), and is a handful of
operations on whole arrays. The part that no round makes cheaper is one dense core, left to LAPACK. The places of
numbers are found once per pattern (`Elimination`). A factor (`Factored`) then solves, and gives the entries of the
inverse that the pattern has (Takahashi's recurrence, run backwards over the same rounds), which gradients need.

Available wheels do not fit: qdldl and SuperLU give no entries of the inverse and eliminate one column at a time,
cholespy gives no determinant, cvxopt is under the GPL, and scikit-sparse has no wheel; NumPy and LAPACK are here
anyway.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector

PAIR, FLOP, ROUND = 40e-9, 1 / 1.5e10, 2e-4  # seconds: of a pair of neighbours, of dense arithmetic, of a round's start
MOST_PAIRS = 40_000_000  # of all rounds together: about 1 GiB of places
PASSES = 4  # over the graph in search of unknowns for a round
DENSE = 0.25  # pairs over squared unknowns left: beyond it nearly every entry is filled
Sparse: TypeAlias = Any  # a scipy.sparse array; SciPy ships no types


@dataclass(frozen=True)
class Round:
    """Places of one round: `out` unknowns leave, `stay` are left, and `at` are the entries between the two.

    Attributes
    ----------
    leaver, starts, neighbour : the entries `at` as compressed rows of leavers, with the place of each among those left.
    stays, to : entries between unknowns that stay, and their places in the next round.
    first, second, target : pairs of entries `at` with a leaver in common, and where their product goes.
    size : entries of the next round.
    """

    out: Integers
    stay: Integers
    at: Integers
    leaver: Integers
    starts: Integers
    neighbour: Integers
    stays: Integers
    to: Integers
    first: Integers
    second: Integers
    target: Integers
    size: int

    @cached_property
    def _form(self) -> Sparse:
        from scipy.sparse import csr_array

        shape = len(self.out), len(self.stay)
        return csr_array((np.zeros(len(self.at)), self.neighbour, self.starts), shape=shape)

    def coupling(self, values: Vector) -> Sparse:
        """The entries `at` as a sparse array; a copy of a form, for SciPy checks every place of a new one."""
        found = copy(self._form)
        found.data = values
        return found


@dataclass(frozen=True)
class Elimination:
    """How matrices of one pattern are factored.

    Attributes
    ----------
    rounds : in their order.
    core : unknowns of the dense core, with the places of its lower triangle that hold entries.
    """

    rounds: tuple[Round, ...]
    core: int
    core_entries: Integers | None

    @classmethod
    def of(cls, rows: Integers, columns: Integers, unknowns: int) -> Elimination:
        """For a symmetric matrix whose entries below the diagonal, each given once, are at `rows` and `columns`."""
        a: Integers | None = np.maximum(rows, columns)
        b: Integers | None = np.minimum(rows, columns)
        n, pairs = unknowns, 0
        rounds: list[Round] = []
        shuffled = np.random.default_rng(1)
        while 3.0 * FLOP * n**3 >= ROUND and a is not None and b is not None:
            chosen = _independent(a, b, n, MOST_PAIRS - pairs, shuffled)
            if chosen is None:
                break
            step, (a, b, n) = _round(a, b, n, chosen)
            rounds.append(step)
            pairs += len(step.first)
        return cls(tuple(rounds), n, None if a is None or b is None else a + b * n)

    @property
    def bytes(self) -> float:
        """Memory of a factor with its inverse, and of the places, with what finding them takes."""
        return 8.0 * (2 * self.core**2 + 10 * sum(len(step.first) for step in self.rounds))

    @property
    def seconds(self) -> float:
        """About how long a factor with its inverse takes."""
        return FLOP * self.core**3 + PAIR * sum(len(step.first) for step in self.rounds)

    def factor(self, diagonal: Vector, entries: Vector) -> Factored:
        """Factor the matrix; `LinAlgError` where it is not positive definite."""
        pivots, couplings = [], []
        for step in self.rounds:
            pivot, B = diagonal[step.out], entries[step.at]
            if not (pivot > 0).all():
                raise np.linalg.LinAlgError("a pivot is not positive")
            F = B / pivot[step.leaver]
            left = len(step.stay)
            diagonal = diagonal[step.stay]
            if len(F):
                diagonal = diagonal - np.bincount(step.neighbour, F * B, left)
            kept = entries[step.stays]
            if len(step.first):
                entries = -np.bincount(step.target, F[step.first] * B[step.second], step.size).astype(np.float64)
                entries[step.to] += kept
            elif step.size == len(kept):
                entries = kept
            else:
                entries = np.zeros(step.size)
                entries[step.to] = kept
            pivots.append(pivot)
            couplings.append(F)
        return Factored(self, pivots, couplings, self._dense(diagonal, entries))

    def _dense(self, diagonal: Vector, entries: Vector) -> Matrix:
        """The lower factor of the core, in Fortran's order; above the diagonal it holds anything."""
        from scipy.linalg.lapack import dpotrf

        n = self.core
        if n == 0:
            return np.zeros((0, 0))
        if self.core_entries is None:
            core = entries
        else:
            core = np.zeros(n * n)
            core[self.core_entries] = entries
        core[:: n + 1] = diagonal
        factor, info = dpotrf(core.reshape(n, n, order="F"), lower=1, overwrite_a=1, clean=0)
        if info:
            raise np.linalg.LinAlgError("the core is not positive definite")
        return np.asarray(factor)


@dataclass(frozen=True)
class Factored:
    """A factored matrix."""

    how: Elimination
    pivots: list[Vector]
    couplings: list[Vector]
    dense: Matrix

    @property
    def logdet(self) -> float:
        total = 2 * float(np.log(np.diagonal(self.dense)).sum())
        return total + sum(float(np.log(pivot).sum()) for pivot in self.pivots)

    def reduce(self, right: Matrix) -> tuple[list[Matrix], Matrix]:
        """Forward substitution: the values of `right` for each round's eliminated unknowns, and for the core."""
        seen = []
        for step, F in zip(self.how.rounds, self.couplings, strict=True):
            own, right = right[step.out], right[step.stay]
            if len(F):
                right = right - step.coupling(F).T @ own
            seen.append(own)
        if self.how.core:
            right = _triangular(self.dense, right, transposed=False)
        return seen, right

    def back(self, seen: list[Matrix], core: Matrix) -> Matrix:
        """Back substitution, from what `reduce` gave."""
        solved = _triangular(self.dense, core, transposed=True) if self.how.core else core
        rounds = zip(
            reversed(self.how.rounds), reversed(self.couplings), reversed(self.pivots), seen[::-1], strict=True
        )
        for step, F, pivot, own in rounds:
            whole = np.empty((len(step.out) + len(step.stay), solved.shape[1]))
            own = own / pivot[:, None]
            whole[step.out] = own - step.coupling(F) @ solved if len(F) else own
            whole[step.stay] = solved
            solved = whole
        return solved

    def normal(self, rng: np.random.Generator) -> Vector:
        """A draw from the normal law whose covariance is the inverse: with inverse = F'F, F' times white noise."""
        seen = [rng.normal(size=(len(pivot), 1)) * np.sqrt(pivot)[:, None] for pivot in self.pivots]
        return np.asarray(self.back(seen, rng.normal(size=(self.how.core, 1)))[:, 0])

    def squares(self, seen: list[Matrix], core: Matrix) -> Matrix:
        """right' Omega^-1 right, from what `reduce` gave."""
        total = core.T @ core
        for own, pivot in zip(seen, self.pivots, strict=True):
            total += own.T @ (own / pivot[:, None])
        return total

    def squared_lengths(self, seen: list[Matrix], core: Matrix) -> Vector:
        """The diagonal of `squares`."""
        total = np.einsum("ic,ic->c", core, core)
        for own, pivot in zip(seen, self.pivots, strict=True):
            total += np.einsum("ic,ic,i->c", own, own, 1 / pivot)
        return np.asarray(total)

    def inverse(self, *, consume: bool = False) -> tuple[Vector, Vector]:
        """The diagonal of the inverse, and its entries where the matrix has any; `consume` gives the factor up."""
        from scipy.linalg.lapack import dpotri

        diagonal, entries = np.zeros(0), np.zeros(0)
        if self.how.core:
            core, info = dpotri(self.dense, lower=1, overwrite_c=int(consume))
            assert info == 0
            flat = core.ravel(order="F")
            diagonal = flat[:: self.how.core + 1].copy()
            entries = flat if self.how.core_entries is None else flat[self.how.core_entries]
        for step, F, pivot in zip(
            reversed(self.how.rounds), reversed(self.couplings), reversed(self.pivots), strict=True
        ):
            G = F * diagonal[step.neighbour]
            if len(step.first):
                met = entries[step.target]
                G += np.bincount(step.first, F[step.second] * met, len(F))
                G += np.bincount(step.second, F[step.first] * met, len(F))
            whole, known = np.empty(len(step.at) + len(step.stays)), np.empty(len(step.out) + len(step.stay))
            whole[step.at] = -G
            whole[step.stays] = entries[step.to]
            known[step.out] = 1 / pivot
            if len(F):
                known[step.out] += np.bincount(step.leaver, F * G, len(step.out))
            known[step.stay] = diagonal
            entries, diagonal = whole, known
        return diagonal, entries


def _triangular(factor: Matrix, right: Matrix, *, transposed: bool) -> Matrix:
    from scipy.linalg.lapack import dtrtrs

    solved, _ = dtrtrs(factor, right, lower=1, trans=int(transposed))
    return np.asarray(solved)


def _independent(a: Integers, b: Integers, n: int, pairs: int, rng: np.random.Generator) -> Mask | None:
    """Unknowns for the next round, or None where a dense core is quicker."""
    degree = np.bincount(a, minlength=n) + np.bincount(b, minlength=n)
    gain = 3.0 * FLOP * n**2 - PAIR * degree.astype(np.float64) ** 2 / 2
    free = (gain > 0) | (degree <= 1)
    if gain[free].sum() < ROUND:
        return None
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((rng.permutation(n), degree))] = np.arange(n)
    chosen = np.zeros(n, dtype=bool)
    for _ in range(PASSES):
        own = np.where(free, rank, n)
        nearest = np.full(n, n)
        np.minimum.at(nearest, a, own[b])
        np.minimum.at(nearest, b, own[a])
        new = free & (own < nearest)
        if not new.any():
            break
        chosen |= new
        free &= ~new
        free[a[new[b]]] = False
        free[b[new[a]]] = False
    order = np.flatnonzero(chosen)
    order = order[np.argsort(degree[order], kind="stable")]
    within = np.cumsum(degree[order] * (degree[order] - 1) // 2) <= pairs
    chosen[order[~within]] = False
    return chosen if chosen.any() and gain[chosen].sum() > ROUND else None


def _round(
    a: Integers, b: Integers, n: int, chosen: Mask
) -> tuple[Round, tuple[Integers | None, Integers | None, int]]:
    """One round, and the entries and the number of unknowns after it; None for entries of a core filled at once."""
    out, stay = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    place = np.empty(n, dtype=np.int64)
    place[out], place[stay] = np.arange(len(out)), np.arange(len(stay))
    touched = chosen[a] | chosen[b]
    at, stays = np.flatnonzero(touched), np.flatnonzero(~touched)
    a_leaves = chosen[a[at]]
    leaver = place[np.where(a_leaves, a[at], b[at])]
    neighbour = place[np.where(a_leaves, b[at], a[at])]
    order = np.lexsort((neighbour, leaver))
    at, leaver, neighbour = at[order], leaver[order], neighbour[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(leaver, minlength=len(out)))])
    later = starts[leaver + 1] - np.arange(len(at)) - 1
    first = np.repeat(np.arange(len(at)), later)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
    left = len(stay)
    low, high = place[b[stays]], place[a[stays]]
    size = left * left
    entries: tuple[Integers | None, Integers | None] = (None, None)
    if len(first) + len(stays) > DENSE * left**2 or left * left * 3 * FLOP * left < ROUND:
        to, target = high + low * left, neighbour[second] + neighbour[first] * left
    else:
        keys = np.concatenate([high * left + low, neighbour[second] * left + neighbour[first]])
        found, inverse = np.unique(keys, return_inverse=True)
        to, target = inverse[: len(stays)], inverse[len(stays) :]
        size, entries = len(found), (found // max(left, 1), found % max(left, 1))
    step = Round(out, stay, at, leaver, starts, neighbour, stays, to, first, second, target, size)
    return step, (*entries, left)
