"""The cross-products of a model from its cells: moments for one random intercept, a Gram matrix for the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.models.formula.design import ONE, Design, Levels, Piece, RandomDesign
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.cells import CellSums
from discreet.models.linear.matrix import dense
from discreet.models.linear.moments import Moments
from discreet.models.linear.sparse import Coupling, Gram

PAIRS = 2_000  # of pieces: beyond it their products are of matrices
CHUNK = 8_192  # rows at a time
SPARSE = 16  # possible pairs of levels for each row: of more, those that meet are sorted
ENTRIES = 2**20  # of products at the rows in memory: fewer are summed as they are, and not by cell


def moments_of(cells: CellSums, design: Design) -> Moments:
    """Collect the moments of a model whose only random term is an intercept."""
    fixed, levels = design.layout.fixed, design.levels
    response, intercept = (Piece(design.layout.response),), (Piece(ONE),)
    grouping = design.random[0].grouping
    if (rows := _few(cells, design)) is not None:
        columns, group = dense(rows, (*fixed, *response), levels), grouping.codes(rows.codes)
        sums, joint = _summed(group, len(grouping), columns), columns.T @ columns
        n = np.bincount(group, minlength=len(grouping)).astype(np.float64)
        return Moments(n, sums[:, :-1], sums[:, -1], joint[:-1, :-1], joint[:-1, -1], joint[-1, -1])
    group = grouping.codes(cells.codes)
    per_group = grouped_products(cells, group, len(grouping), intercept, (*intercept, *fixed, *response), levels)[:, 0]
    pieces = (*fixed, *response)
    joint = products(cells, pieces, pieces, levels)
    return Moments(
        n=per_group[:, 0],
        Sx=per_group[:, 1:-1],
        Sy=per_group[:, -1],
        XX=joint[:-1, :-1],
        Xy=joint[:-1, -1],
        yy=joint[-1, -1],
    )


def gram_of(cells: CellSums, design: Design) -> Gram:
    """Collect the cross-products of [Z_1 ... Z_k X y] for any random terms."""
    if (rows := _few(cells, design)) is not None:
        return _gram_of_rows(rows, cells.weights, design)
    levels, terms = design.levels, design.random
    columns = (*design.layout.fixed, Piece(design.layout.response))
    codes = [term.grouping.codes(cells.codes) for term in terms]
    diagonal, fixed = [], []
    for term, code in zip(terms, codes, strict=True):
        size, pieces = len(term.grouping), term.pieces
        diagonal.append(grouped_products(cells, code, size, pieces, pieces, levels))
        fixed.append(grouped_products(cells, code, size, pieces, columns, levels).reshape(term.effects, -1))
    pairs = [(i, j) for i in range(len(terms)) for j in range(i + 1, len(terms))]
    crossed = {(i, j): _crossed(cells, terms[i], terms[j], codes[i], codes[j], levels) for i, j in pairs}
    return Gram(tuple(diagonal), crossed, tuple(fixed), products(cells, columns, columns, levels), float(cells.rows))


def _few(cells: CellSums, design: Design) -> ModelRows | None:
    """The rows, where they are in memory and the products of their columns are few."""
    most = max(len(term.names) for term in design.random) * (len(design.names) + 1)
    return cells.whole if cells.whole is not None and most * cells.rows <= ENTRIES else None


def _gram_of_rows(rows: ModelRows, weights: Vector | None, design: Design) -> Gram:
    """The same, from columns at every row."""
    levels, terms = design.levels, design.random
    columns = dense(rows, (*design.layout.fixed, Piece(design.layout.response)), levels)
    own = [dense(rows, term.pieces, levels) for term in terms]
    codes, sizes = [term.grouping.codes(rows.codes) for term in terms], [len(term.grouping) for term in terms]
    weighed = own if weights is None else [each * weights[:, None] for each in own]
    terms_of = list(zip(codes, sizes, weighed, strict=True))
    crossed = {}
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            met, pair = _met(terms[i], terms[j], codes[i], codes[j])
            blocks = _multiplied(pair, len(met), weighed[i], own[j])
            crossed[i, j] = Coupling(met // sizes[j], met % sizes[j], blocks)
    return Gram(
        tuple(_multiplied(*of, each) for of, each in zip(terms_of, own, strict=True)),
        crossed,
        tuple(_multiplied(*of, columns).reshape(term.effects, -1) for of, term in zip(terms_of, terms, strict=True)),
        columns.T @ (columns if weights is None else columns * weights[:, None]),
        float(rows.count),
    )


def _multiplied(group: Integers, groups: int, left: Matrix, right: Matrix) -> Matrix:
    """`left' right` within each group, of columns at every row."""
    both = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
    return _summed(group, groups, both).reshape(groups, left.shape[1], right.shape[1])


def _summed(group: Integers, groups: int, columns: Matrix) -> Matrix:
    """Sums of columns within each group."""
    width = columns.shape[1]
    place = (group[:, None] * width + np.arange(width)).ravel()
    return np.asarray(np.bincount(place, columns.ravel(), groups * width).reshape(groups, width), dtype=np.float64)


def _met(left: RandomDesign, right: RandomDesign, g: Integers, h: Integers) -> tuple[Integers, Integers]:
    """Pairs of levels of two terms that meet, and which of them each row has."""
    size = len(right.grouping)
    if left.grouping.columns == right.grouping.columns:
        return np.arange(len(left.grouping)) * (size + 1), g
    pair, possible = g * size + h, len(left.grouping) * size
    if possible > SPARSE * len(pair):
        return np.unique(pair, return_inverse=True)
    there = np.bincount(pair, minlength=possible) > 0
    return np.flatnonzero(there), np.cumsum(there)[pair] - 1


def _crossed(
    cells: CellSums, left: RandomDesign, right: RandomDesign, g: Integers, h: Integers, levels: Levels
) -> Coupling:
    """Z_left' Z_right by the pairs of levels that meet."""
    met, pair = _met(left, right, g, h)
    blocks = grouped_products(cells, pair, len(met), left.pieces, right.pieces, levels)
    return Coupling(met // len(right.grouping), met % len(right.grouping), blocks)


def products(cells: CellSums, left: Sequence[Piece], right: Sequence[Piece], levels: Levels) -> Matrix:
    """`left' right`, both sets of columns summed over all rows.

    Of many pieces, as a spline of many degrees has, the rows are multiplied: sums of all pairs would be kept by cell.
    """
    if cells.whole is not None and len(left) * len(right) > PAIRS:
        return _by_rows(cells.whole, cells.weights, left, right, levels)
    found: Matrix = grouped_products(cells, np.zeros(cells.count, dtype=np.int64), 1, left, right, levels)[0]
    return found


def _by_rows(
    rows: ModelRows, weights: Vector | None, left: Sequence[Piece], right: Sequence[Piece], levels: Levels
) -> Matrix:
    """`left' right` from the rows, a part of them at a time."""
    total: Matrix | None = None
    for start in range(0, rows.count, CHUNK):
        at = np.arange(start, min(start + CHUNK, rows.count))
        part = rows.take(at)
        A = dense(part, left, levels)
        B = A if right is left else dense(part, right, levels)
        product = A.T @ (B if weights is None else B * weights[at, None])
        total = product if total is None else total + product
    assert total is not None
    return total


def grouped_products(
    cells: CellSums, group: Integers, groups: int, left: Sequence[Piece], right: Sequence[Piece], levels: Levels
) -> Matrix:
    """`left' right` within each group, shape `(groups, width of left, width of right)`."""
    if not left or not right:  # no fixed effects
        return np.zeros((groups, *(sum(piece.width(levels) for piece in pieces) for pieces in (left, right))))
    blocks = []
    for a in left:
        wide, at = a.width(levels), a.position(cells.codes, levels, cells.count)
        row = []
        for b in right:
            high, to = b.width(levels), b.position(cells.others or cells.codes, levels, cells.count)
            touched = (at >= 0) & (to >= 0)
            index = (group * wide + at) * high + to
            sums = np.bincount(index[touched], cells.total(a.monomial, b.monomial)[touched], groups * wide * high)
            row.append(sums.reshape(groups, wide, high))
        blocks.append(np.concatenate(row, axis=2))
    return np.concatenate(blocks, axis=1)
