"""From the columns a fit is computed with back to the columns of the formula.

Sums of squares keep their digits only near zero. So a numeric column x is measured from its mean m wherever the model
spans the same space either way: in `x` beside a constant, and in `x:z` as (x - m)(z - k) where `x`, `z` and the
constant are in the model too. The same holds inside a random term, whose covariance has no zeros. `basis` is the
change of basis. It is worked out on the formula, so it is exact whatever the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.formula.design import Levels, Monomial, Piece, RandomDesign
from discreet.formula.formula import Factor

Atom = tuple[Factor, int]
Combination = dict[int, float]  # columns by position, with their coefficients


@dataclass(frozen=True, slots=True)
class Origin:
    """From coefficients of centred columns to those of the columns as given; holds for any part of the rows too.

    Attributes
    ----------
    restore, offset : beta = restore @ centred + offset, shapes (p, p) and (p,).
    logdet : what centring took from log det X'V^-1 X.
    """

    restore: Matrix
    offset: Vector
    logdet: float

    def beta(self, centred: Matrix) -> Matrix:
        """One vector of coefficients, or one per row; a missing coefficient (NaN) stays missing alone."""
        present = np.where(np.isnan(centred), 0.0, centred)
        return np.where(np.isnan(centred), np.nan, present @ self.restore.T + self.offset)


def origin(pieces: Sequence[Piece], levels: Levels, *, kept: Integers, own: Matrix, moved: float) -> Origin:
    """Undo centring of the fixed columns that are `kept` and of a response that was `moved`.

    `own` has every centred column as a combination of the kept ones, shape (kept, columns).
    """
    columns = _Columns(pieces, levels)
    if not (columns.centred or moved):
        return Origin(np.eye(len(kept)), np.zeros(len(kept)), 0.0)
    given = own @ columns.matrix()[:, kept]
    restore = np.asarray(np.linalg.inv(given), dtype=np.float64)
    offset = np.zeros(len(kept))
    if moved:
        offset = restore @ own @ columns.vector(columns.constant()) * moved
    return Origin(restore, offset, float(2 * np.linalg.slogdet(given)[1]))


def basis(random: RandomDesign) -> Matrix:
    """B with Z = Z_centred B for the columns of a random term; B times the effects as given are those as centred."""
    return _Columns(random.pieces, random.grouping.levels).matrix()


class _Columns:
    """The columns of a part of the design by what they are made of: numeric atoms and levels of coded columns."""

    def __init__(self, pieces: Sequence[Piece], levels: Levels) -> None:
        self.pieces, self.levels = pieces, levels
        self.starts = np.cumsum([0, *(piece.width(levels) for piece in pieces)])
        self.found = {(frozenset(p.monomial.atoms), frozenset(dict(p.coded))): at for at, p in enumerate(pieces)}
        self.centred = any(p.monomial.shifts or p.monomial.less for p in pieces)

    def matrix(self) -> Matrix:
        """Each column as given, as a combination of the centred ones."""
        B = np.eye(self.starts[-1])
        for piece, start in zip(self.pieces, self.starts[:-1], strict=True):
            if not (piece.monomial.shifts or piece.monomial.less):
                continue
            for at, codes in enumerate(self._codes(piece)):
                B[:, start + at] = self.vector(self.given(frozenset(piece.monomial.atoms), codes, frozenset()))
        return B

    def vector(self, combination: Combination) -> Vector:
        found = np.zeros(self.starts[-1])
        found[list(combination)] = list(combination.values())
        return found

    def constant(self) -> Combination:
        return self.given(frozenset(), {}, frozenset())

    def given(self, atoms: frozenset[Atom], codes: dict[str, int], centred: frozenset[Atom]) -> Combination:
        """The product of `atoms`, measured from their means where `centred`, within the levels `codes`."""
        at = self.found.get((atoms, frozenset(codes)))
        if at is None:  # the constant, which the first coded piece spans by all its levels together
            at = next(i for i, piece in enumerate(self.pieces) if piece.adds_up_to_one)
            return dict.fromkeys(range(self.starts[at], self.starts[at + 1]), 1.0)
        monomial = self.pieces[at].monomial
        for atom, shift in zip(monomial.atoms, monomial.shifts, strict=False):
            if shift and atom not in centred:
                here = self.given(atoms, codes, centred | {atom})
                below = self.given(atoms - {atom}, codes, centred)
                return _sum((1.0, here), (shift, below))
        reduced = [column for column, fewer in self.pieces[at].coded if fewer and codes[column] == 0]
        if reduced:  # the first level is what the others leave of the term without this factor
            column = reduced[0]
            whole = self.given(atoms, {c: code for c, code in codes.items() if c != column}, centred)
            others = range(1, len(self.levels[column]))
            return _sum((1.0, whole), *((-1.0, self.given(atoms, codes | {column: k}, centred)) for k in others))
        own = {int(self.starts[at]) + self._place(self.pieces[at], codes): 1.0}
        return _sum((1.0, own), *((share, self._plain(other)) for share, other in monomial.less))

    def _plain(self, monomial: Monomial) -> Combination:
        """A monomial without coded columns, measured from its own origins."""
        atoms = frozenset(monomial.atoms)
        return self.given(atoms, {}, atoms)

    def _codes(self, piece: Piece) -> list[dict[str, int]]:
        """The levels that each column of a piece stands for, the first factor varying fastest."""
        codes: list[dict[str, int]] = [{}]
        for column, reduced in reversed(piece.coded):
            codes = [known | {column: k} for known in codes for k in range(int(reduced), len(self.levels[column]))]
        return codes

    def _place(self, piece: Piece, codes: dict[str, int]) -> int:
        at, stride = 0, 1
        for column, reduced in piece.coded:
            at += stride * (codes[column] - int(reduced))
            stride *= len(self.levels[column]) - int(reduced)
        return at


def _sum(*parts: tuple[float, Combination]) -> Combination:
    total: Combination = {}
    for share, part in parts:
        for column, value in part.items():
            total[column] = total.get(column, 0.0) + share * value
    return total
