"""The design at given rows: as a dense chunk, or times coefficients without being built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.data.frames import missing, open_frame
from discreet.models.formula.arithmetic import with_columns
from discreet.models.formula.design import Design, Levels, Piece, RandomDesign
from discreet.models.formula.rows import Learned, ModelRows, read_rows, refuse_kinds
from discreet.words.errors import DataError

SHOWN = 8  # levels that a refusal names


def dense(rows: ModelRows, pieces: Sequence[Piece], levels: Levels) -> Matrix:
    """The columns of `pieces` at all of `rows`; pass a part of the rows to keep it small."""
    widths = [piece.width(levels) for piece in pieces]
    X = np.zeros((rows.count, sum(widths)))
    every = np.arange(rows.count)
    for piece, start in zip(pieces, np.cumsum([0, *widths])[:-1], strict=True):
        if not piece.coded:
            X[:, start] = rows.evaluate(piece.monomial)
            continue
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
            f"Grouping factor {term.term.name!r} of the new data has levels the fit never saw.",
            remedy='Drop those rows, or pass new_levels="zero" to predict them without a random effect.',
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


def place_rows(data: Any, design: Design, learned: Learned, *, effects: bool = True) -> ModelRows:
    """New rows, coded as the fitted ones were; levels of grouping factors that the fit never saw are -1.

    Without `effects` the columns of random terms are not needed.
    """
    if not effects:
        fixed_only = replace(design.layout.model, random=())
        design = replace(design, layout=replace(design.layout, model=fixed_only, random=()), random=())
    model = design.layout.model
    made = {name: node for name, node in model.made if name in model.columns[1:]}
    frame = with_columns(open_frame(data, ordered=True), made, about="data")
    schema = frame.collect_schema()
    for column in design.layout.model.columns[1:]:
        if column not in schema:
            raise DataError(missing(column, schema.names(), name="the new data", about="data"))
    refuse_kinds(schema, design.layout, response=False)
    rows, _ = read_rows(frame, design.layout, learned, response=False)
    grouping = {column for term in design.random for column in term.grouping.columns}
    fixed = {column for piece in design.layout.fixed for column, _ in piece.coded}
    for column in sorted(fixed):
        if (rows.codes[column] < 0).any():
            also = " Random effects of new levels can be set to zero; fixed ones cannot." if column in grouping else ""
            known = learned.levels[column]
            more = f" and {len(known) - SHOWN:,} more" if len(known) > SHOWN else ""
            raise DataError(
                f"Column {column!r} of the new data has levels the fit never saw.",
                f"The fit knows {', '.join(map(repr, known[:SHOWN]))}{more}.",
                f"Spell levels as the fitted data do, drop those rows, or fit again with rows of those levels.{also}",
                about="data",
            )
    return rows
