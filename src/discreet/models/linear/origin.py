"""From the columns of the computation back to the columns of the formula.

Sums of squares keep their digits only near zero. So a numeric column x is measured from its mean m if the model spans
the same space either way: in `x` beside a constant, and in `x:z` as (x - m)(z - k) if `x`, `z` and the constant are in
the model too. The same holds inside a random term, whose covariance has no zeros. Columns of factors are indicators of
levels, whatever their contrasts. `basis` is the change of basis. It is worked out on the formula, so it is exact
whatever the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.formula.contrasts import coding, recodes
from discreet.models.formula.design import ONE, Levels, Monomial, Piece, RandomDesign
from discreet.models.formula.formula import Factor
from discreet.models.linear.reml import independent
from discreet.words.errors import FormulaError

ROUNDING = 1e-12

Atom = tuple[Factor, int]
Combination = dict[int, float]  # columns by position, with their coefficients


@dataclass(frozen=True, slots=True)
class Origin:
    """From coefficients of centred columns to those of the columns as given; valid for any part of the rows too.

    Attributes
    ----------
    restore, offset : beta = restore @ centred + offset, shapes (p, p) and (p,).
    logdet : what centring took from log det X'V^-1 X.
    named : which of the formula's columns have a coefficient.
    recoded : whether coefficients are of other contrasts than the columns.
    """

    restore: Matrix
    offset: Vector
    logdet: float
    named: Integers
    recoded: bool = False

    def beta(self, centred: Matrix) -> Matrix:
        """One vector of coefficients, or one per row; a missing coefficient (NaN) stays missing alone.

        In other contrasts every coefficient that is made of it is missing.
        """
        lost = np.isnan(centred)
        present = np.where(lost, 0.0, centred)
        missing = lost @ (np.abs(self.restore.T) > ROUNDING) if self.recoded else lost
        return np.where(missing, np.nan, present @ self.restore.T + self.offset)


def origin(pieces: Sequence[Piece], levels: Levels, *, kept: Integers, own: Matrix, moved: float, XX: Matrix) -> Origin:
    """Undo centring of the fixed columns that are `kept`, with products `XX`, and of a response that was `moved`.

    `own` has every centred column as a combination of the kept ones, shape (kept, columns). If contrasts differ from
    those of the columns, other columns may be combinations of earlier ones.
    """
    columns = _Columns(pieces, levels)
    if not (columns.centred or moved):
        return Origin(np.eye(len(kept)), np.zeros(len(kept)), 0.0, kept)
    whole, recoded = own @ columns.matrix(), any(piece.recoded for piece in pieces)
    named = kept
    if len(kept) < whole.shape[1] and (
        recoded or not any(piece.monomial == ONE and not piece.coded for piece in pieces)
    ):
        found = independent(whole.T @ XX @ whole)  # a constant column is none of the centred ones
        named = found if recoded or len(found) == len(kept) else kept
    given = whole[:, named]
    restore = np.asarray(np.linalg.inv(given), dtype=np.float64)
    offset = np.zeros(len(kept))
    if moved:
        offset = restore @ own @ columns.vector(columns.constant()) * moved
    return Origin(restore, offset, float(2 * np.linalg.slogdet(given)[1]), named, recoded)


def basis(random: RandomDesign) -> Matrix:
    """B with Z = Z_centred B for the columns of a random term; B times the effects as given are those as centred."""
    return _Columns(random.pieces, random.grouping.levels).matrix()


class _Columns:
    """The columns of a part of the design by what they are made of: numeric atoms and levels of coded columns."""

    def __init__(self, pieces: Sequence[Piece], levels: Levels) -> None:
        self.pieces, self.levels = pieces, levels
        self.starts = np.cumsum([0, *(piece.width(levels) for piece in pieces)])
        self.found = {(frozenset(p.monomial.atoms), frozenset(dict(p.coded))): at for at, p in enumerate(pieces)}
        self.centred = any(p.monomial.shifts or p.monomial.less or p.recoded for p in pieces)

    def matrix(self) -> Matrix:
        """Each column as given, as a combination of the centred ones."""
        B = np.eye(self.starts[-1])
        for piece, start in zip(self.pieces, self.starts[:-1], strict=True):
            if not (piece.monomial.shifts or piece.monomial.less or piece.recoded):
                continue
            codings = [self._coding(piece, column, reduced) for column, reduced in piece.coded]
            own = [
                self.vector(self.given(frozenset(piece.monomial.atoms), codes, frozenset()))
                for codes in self._codes(piece, [first for first, _ in codings])
            ]
            weights: Matrix = np.eye(1)
            for _, weight in codings:
                weights = np.asarray(np.kron(weight, weights))
            if not own:  # a factor of one level has no columns beside its margin
                continue
            B[:, start : start + weights.shape[1]] = np.stack(own, axis=1) @ weights
        return B

    def _coding(self, piece: Piece, column: str, reduced: bool) -> tuple[int, Matrix]:
        """The first level that the columns of a factor are made of, and the weights of levels in each column."""
        contrast, count = piece.factor(column).contrast, len(self.levels[column])
        return (0, coding(contrast, count)) if reduced and recodes(contrast) else (reduced, np.eye(count - reduced))

    def vector(self, combination: Combination) -> Vector:
        found = np.zeros(self.starts[-1])
        found[list(combination)] = list(combination.values())
        return found

    def constant(self) -> Combination:
        return self.given(frozenset(), {}, frozenset())

    def given(self, atoms: frozenset[Atom], codes: dict[str, int], centred: frozenset[Atom]) -> Combination:
        """The product of `atoms`, measured from their means where `centred`, within the levels `codes`."""
        at = self.found.get((atoms, frozenset(codes)))
        if at is None:
            return self._together(atoms, codes, centred)
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

    def _together(self, atoms: frozenset[Atom], codes: dict[str, int], centred: frozenset[Atom]) -> Combination:
        """A term without a piece, such as the constant without an intercept: all levels of a coded piece together."""
        for piece in self.pieces:
            more = {column: reduced for column, reduced in piece.coded if column not in codes}
            if (
                frozenset(piece.monomial.atoms) == atoms
                and not any(more.values())
                and {*codes, *more} == {column for column, _ in piece.coded}
            ):
                every = product(*(range(len(self.levels[column])) for column in more))
                picked = [codes | dict(zip(more, levels, strict=True)) for levels in every]
                return _sum(*((1.0, self.given(atoms, each, centred)) for each in picked))
        raise FormulaError(
            "A factor with other contrasts than treatment is in a product without its margin, where the model "
            "would depend on the coding.",
            "Products have margins where each part of them is a term too.",
            "Write a * b instead of a:b, or leave the contrasts out.",
            about="formula",
        )

    def _plain(self, monomial: Monomial) -> Combination:
        """A monomial without coded columns, measured from its own origins."""
        atoms = frozenset(monomial.atoms)
        return self.given(atoms, {}, atoms)

    def _codes(self, piece: Piece, first: Sequence[int]) -> list[dict[str, int]]:
        """Combinations of levels of a piece from the `first` ones on, the first factor varying fastest."""
        codes: list[dict[str, int]] = [{}]
        for (column, _), start in reversed(list(zip(piece.coded, first, strict=True))):
            codes = [known | {column: k} for known in codes for k in range(int(start), len(self.levels[column]))]
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
