"""The design at given rows: as a dense chunk, or times coefficients without being built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.errors import DataError
from discreet.formula.design import Levels, Piece, RandomDesign
from discreet.formula.rows import ModelRows


def dense(rows: ModelRows, pieces: Sequence[Piece], levels: Levels) -> Matrix:
    """The columns of `pieces` at all of `rows`; pass a part of the rows to keep it small."""
    widths = [piece.width(levels) for piece in pieces]
    X = np.zeros((rows.count, sum(widths)))
    every = np.arange(rows.count)
    for piece, start in zip(pieces, np.cumsum([0, *widths[:-1]]), strict=True):
        at = piece.position(rows.codes, levels, rows.count)
        touched = at >= 0
        X[every[touched], start + at[touched]] = rows.evaluate(piece.monomial)[touched]
    return X


def linear(rows: ModelRows, pieces: Sequence[Piece], levels: Levels, beta: Vector) -> Vector:
    """The design of `pieces` times `beta`, without building the design."""
    total, start = np.zeros(rows.count), 0
    for piece in pieces:
        width = piece.width(levels)
        at = piece.position(rows.codes, levels, rows.count)
        part = np.append(beta[start : start + width], 0.0)[at]
        total += part * rows.evaluate(piece.monomial) if piece.monomial.atoms else part
        start += width
    return total


def random_part(
    rows: ModelRows, term: RandomDesign, levels: Levels, effects: Matrix, *, new_levels: Literal["error", "zero"]
) -> Vector:
    group = term.grouping.codes(rows.codes)
    if new_levels == "error" and (group < 0).any():
        raise DataError(
            f"Grouping factor {term.term.name!r} of the new data has levels the fit never saw. "
            'Drop those rows, or pass new_levels="zero" to predict them without a random effect.',
            about="data",
        )
    values = np.vstack([effects, np.zeros(effects.shape[1])])
    total, start = np.zeros(rows.count), 0
    for piece in term.pieces:
        at = piece.position(rows.codes, levels, rows.count)
        part = np.where(at >= 0, values[group, start + np.maximum(at, 0)], 0.0)
        total += part * rows.evaluate(piece.monomial) if piece.monomial.atoms else part
        start += piece.width(levels)
    return total
