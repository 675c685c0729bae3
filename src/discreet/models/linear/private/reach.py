"""The change that a protected unit can make in each sum of a model; a unit is one row, or all rows of one public group.

A group of rows that change together moves a sum by at most twice the half range for each of its rows there. Its whole
reach, over all sums of a part, is a norm of these. A sum has noise for the farthest reach of the groups that touch it,
so small groups do not pay for large ones. From public columns alone. The proof is docs/proofs/mixed-moments.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.frames import collect, missing, open_frame
from discreet.models.formula.design import ONE, Monomial, Piece
from discreet.models.formula.rows import encode, read_rows
from discreet.models.linear.private.public import PublicDesign, hidden
from discreet.models.linear.private.sums import Units, whole_column
from discreet.models.linear.private.terms import piece_place
from discreet.words.errors import DataError

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

MARGIN = 1 + 2.0**-30  # covers the rounding of a norm


@dataclass(frozen=True, slots=True)
class Reach:
    """Steps by which a response that moves by one step, or all those of a group, can change each sum.

    Attributes
    ----------
    groups : of the sum of each finest group (G,).
    pieces : of the sums of each piece of the fixed part, by its kept columns.
    rows : the most rows that change together.
    terms : of the sums of each piece of random slopes and crossed factors.
    """

    groups: Vector = field(repr=False)
    pieces: tuple[Vector, ...] = field(repr=False)
    rows: int = 1
    terms: tuple[Vector, ...] = field(default=(), repr=False)

    @classmethod
    def of_rows(cls, public: PublicDesign, units: Units) -> Reach:
        """One row touches one group and one column of each piece."""
        pieces = tuple(
            np.full(len(among), float(units.most.get(piece.monomial, 1))) for piece, _, among in public.parts
        )
        terms = tuple(
            np.full(size_of(public, term, piece), float(units.most.get(piece.monomial, 1)))
            for term, _, piece in public.random_parts
        )
        return cls(np.ones(len(public.n)), pieces, terms=terms)

    @classmethod
    def of_groups(
        cls, frame: AnyFrame, public: PublicDesign, units: Units, by: Sequence[str], *, squared: bool
    ) -> Reach:
        """All rows with the same values of the columns `by` change together.

        Norms are sums of sizes, for Laplace noise, or roots of sums of squares, for Gaussian noise (`squared`).
        """
        have = frame.collect_schema().names()
        absent = [column for column in by if column not in have]
        if absent:
            raise DataError(missing(absent[0], have, name="the data", asked=tuple(by), about="protect"))
        columns = dict.fromkeys([*public.model.columns, *by])
        held = collect(hidden(frame, public.model).lazy().select(*columns), step="who is protected")
        rows, _ = read_rows(open_frame(held, ordered=True), public.design.layout, public.learned)
        unit = np.zeros(held.num_rows, dtype=np.int64)
        for column in by:
            code, labels = encode(held[column], column)
            _, unit = np.unique(unit * len(labels) + code, return_inverse=True)
        every = np.ones(held.num_rows)

        def sizes(monomial: Monomial) -> Vector:
            if monomial == ONE:
                return every
            return np.abs(whole_column(rows.evaluate(monomial), units, monomial))

        finest = public.group(rows.codes) if public.terms else unit
        groups = farthest(unit, finest, every, len(public.n), squared=squared) if public.terms else _NONE
        pieces = []
        for piece, inside, _ in public.parts:
            at = piece.position(rows.codes, public.design.levels, rows.count)
            width = piece.width(public.design.levels)
            pieces.append(farthest(unit, at, sizes(piece.monomial), width, squared=squared)[inside])
        terms = []
        for term, _, piece in public.random_parts:
            at = piece_place(public.design.random[term], piece, rows.codes, rows.count)
            width = size_of(public, term, piece)
            terms.append(farthest(unit, at, sizes(piece.monomial), width, squared=squared))
        return cls(groups, tuple(pieces), int(np.bincount(unit).max()), tuple(terms))


_NONE = np.empty(0)


def size_of(public: PublicDesign, term: int, piece: Piece) -> int:
    """How many sums a piece of a random term has."""
    return len(public.design.random[term].grouping) * piece.width(public.design.levels)


def farthest(unit: Integers, at: Integers, size: Vector, width: int, *, squared: bool) -> Vector:
    """For each sum, the largest norm of the changes in all sums by one unit, among units that touch it.

    Row i of unit `unit[i]` changes the sum `at[i]`, none if -1, by at most `size[i]`. Sums that nobody touches have 1.
    """
    touched = at >= 0
    pair, among = np.unique(unit[touched] * width + at[touched], return_inverse=True)
    change = np.bincount(among, size[touched], len(pair))
    who, where = pair // width, pair % width
    summed = np.bincount(who, change**2 if squared else change)
    norm = np.asarray(np.sqrt(summed) * MARGIN if squared else summed, dtype=np.float64)
    found = np.ones(width)
    np.maximum.at(found, where, norm[who])
    return found
