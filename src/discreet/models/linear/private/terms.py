"""Random slopes and crossed factors in a private model: which sums they need, from the public design alone.

Every column of a random term needs one sum for each level, and one row touches one of them. A term whose groups are
unions of another's, with the same columns, needs none of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.formula.design import Codes, Design, Piece, RandomDesign
from discreet.models.linear.cells import CellSums
from discreet.models.linear.gram import gram_of
from discreet.models.linear.private.arrow import TermPlace
from discreet.words.errors import FitError

LARGEST = 2**30  # bytes of the blocks and their border, of which there are a few at a time
LEAST_UNIT = 1e-9  # root mean square of a column that is zero in every row


@dataclass(frozen=True)
class TermDesign:
    """The random terms of a model, placed in blocks and a border, with their cross-products.

    Attributes
    ----------
    places : of the terms, in the formula's order.
    ZZ, ZB, BB : as in `TermSums`.
    parents : of the terms whose sums add up from those of another: that term, and the level of each of its levels.
    """

    places: tuple[TermPlace, ...]
    ZZ: Matrix = field(repr=False)
    ZB: Matrix = field(repr=False)
    BB: Matrix = field(repr=False)
    parents: dict[int, tuple[int, Integers]] = field(repr=False)

    @property
    def drawn(self) -> Integers:
        """Columns of the border whose sums are drawn."""
        kept = np.ones(len(self.BB), dtype=bool)
        for term in self.parents:
            kept[self.places[term].columns] = False
        return np.flatnonzero(kept)

    def sizes(self, term: int) -> Vector:
        """Sums of squares of a term's columns (levels, width)."""
        place = self.places[term]
        if place.in_blocks:
            return np.asarray(np.einsum("gii->gi", self.ZZ)[:, place.columns])
        return np.diag(self.BB)[place.columns].reshape(place.levels, place.width)


def is_nested(random: Sequence[RandomDesign], codes: Codes) -> bool:
    """Whether all terms are intercepts of groups that lie within each other."""
    if any(len(term.names) != 1 or term.pieces[0].monomial.atoms or term.pieces[0].coded for term in random):
        return False
    ordered = sorted(random, key=lambda term: -len(term.grouping))
    return all(parent_of(a, b, codes) is not None for a, b in pairwise(ordered))


def parent_of(fine: RandomDesign, coarse: RandomDesign, codes: Codes) -> Integers | None:
    """The level of `coarse` in which each level of `fine` lies; None if some lies in two."""
    at, above = fine.grouping.codes(codes), coarse.grouping.codes(codes)
    parent = np.full(len(fine.grouping), -1)
    parent[at] = above
    return parent if np.array_equal(parent[at], above) else None


def term_design(cells: CellSums, design: Design, kept: Integers) -> TermDesign:
    """Blocks for the grouping with most levels, a border for the rest."""
    terms = design.random
    main = max((term.grouping for term in terms), key=len)
    inside = [term.grouping.columns == main.columns for term in terms]
    wide = sum(len(term.names) for term, own in zip(terms, inside, strict=True) if own)
    other = sum(term.effects for term, own in zip(terms, inside, strict=True) if not own)
    need = 8 * 2 * (other + len(kept)) * (2 * wide * len(main) + 2 * (other + len(kept)))
    if need > LARGEST:
        names = " and ".join(repr(term.term.name) for term in terms)
        raise FitError(
            f"Grouping factors {names} have {len(main):,} and {other:,} effects, which would take "
            f"{need / 2**30:,.0f} GiB.",
            f"One factor may have many levels, and the others so few that {LARGEST / 2**30:.0f} GiB suffices.",
            "Use fewer levels, or drop a term.",
            about="formula",
        )
    gram = gram_of(cells, design).keep(kept)
    G, p = len(main), len(kept)
    ZZ, ZB, BB = np.zeros((G, wide, wide)), np.zeros((G, wide, other + p)), np.zeros((other + p, other + p))
    BB[other:, other:] = gram.joint[:-1, :-1]
    places, block, border = [], 0, 0
    for i, (term, own) in enumerate(zip(terms, inside, strict=True)):
        q = len(term.names)
        squares = np.einsum("gii->i", gram.ZZ[i]) / gram.rows
        places.append(
            TermPlace(own, block if own else border, len(term.grouping), q, np.maximum(np.sqrt(squares), LEAST_UNIT))
        )
        columns, fixed = places[i].columns, gram.Zxy[i][:, :-1]
        if own:
            ZZ[:, columns, columns] = gram.ZZ[i]
            ZB[:, columns, other:] = fixed.reshape(G, q, p)
            block += q
        else:
            for level, square in enumerate(gram.ZZ[i]):
                at = slice(border + level * q, border + (level + 1) * q)
                BB[at, at] = square
            BB[columns, other:], BB[other:, columns] = fixed, fixed.T
            border += q * len(term.grouping)
    for (i, j), met in gram.crossed.items():
        _place(met.left, met.right, met.blocks, places[i], places[j], ZZ, ZB, BB)
    parents: dict[int, tuple[int, Integers]] = {}
    for i, (term, own) in enumerate(zip(terms, inside, strict=True)):
        for j, (finer, within) in enumerate(zip(terms, inside, strict=True)):
            if not own and within and term.pieces == finer.pieces:
                parent = parent_of(finer, term, cells.codes)
                if parent is not None:
                    parents[i] = (j, parent)
    return TermDesign(tuple(places), ZZ, ZB, BB, parents)


def _place(
    left: Integers, right: Integers, blocks: Matrix, a: TermPlace, b: TermPlace, ZZ: Matrix, ZB: Matrix, BB: Matrix
) -> None:
    """Products of two terms, at their places."""
    if a.in_blocks and b.in_blocks:
        ZZ[left, a.columns, b.columns] = blocks
        ZZ[left, b.columns, a.columns] = blocks.transpose(0, 2, 1)
        return
    if b.in_blocks:
        left, right, blocks, a, b = right, left, blocks.transpose(0, 2, 1), b, a
    across = b.start + right[:, None, None] * b.width + np.arange(b.width)
    if a.in_blocks:
        down = a.start + np.arange(a.width)[:, None]
        ZB[left[:, None, None], down, across] = blocks
        return
    down = a.start + left[:, None, None] * a.width + np.arange(a.width)[:, None]
    BB[down, across] = blocks
    BB[across, down] = blocks


def piece_place(random: RandomDesign, piece: Piece, codes: Codes, count: int) -> Integers:
    """For each row or cell the sum of this piece that it enters, level after level; -1 where it enters none."""
    at = piece.position(codes, random.grouping.levels, count)
    group = random.grouping.codes(codes)
    return np.where(at >= 0, group * piece.width(random.grouping.levels) + at, -1)
