"""Sizes of responses, columns and weights that doubles cannot compute with: refused before anything is fitted.

Estimates need sums of squares, products of two such sums, and squares of those. So sizes of the response and of each
column must not be too many powers of ten from 1, both together. What is here looks at sums, not at rows; a column whose
sum of squares is zero is looked at again, as squares of small numbers vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.arrays import Matrix, Vector
from discreet.models.formula.design import Design, Monomial, Piece
from discreet.models.formula.rows import ModelRows
from discreet.models.linear.families.family import Family
from discreet.models.linear.moments import Moments
from discreet.models.linear.sparse import Gram
from discreet.words.errors import FitError

POWERS = 65.0  # of ten, of response and column together: the fourth power of their product is a double, times rows
# Weights beyond which the likelihood has too few digits. Heavy weights lead to effects that are known: of Poisson
# counts in closed form, which 1e8 keeps within 0.05 standard errors in 30 data sets and 1e9 misses; of negative
# binomials those of weights of 1e3, which 1e4 keeps in 12 and 1e5 misses by 0.42. With extra zeros their limit
# is the same, and not measured.
HEAVY, LIGHT = 1e5, 1e-4
EVENTS = 1e11  # of a row, weight times count, where weights are above `HEAVY`: with 4e11 variances were another model's
POSSIBLE = (
    "The sizes of the response and of a column, each times the root of its weights, are at most "
    f"{POWERS:.0f} powers of ten from 1, both together."
)


def refuse_scales(found: Moments | Gram, design: Design, *, weights: Vector | None = None) -> None:
    """Refuse sums of squares whose products and their squares are no doubles."""
    if weights is not None and abs(float(np.log10(weights.max()))) > POWERS:
        raise FitError(
            f"The weights are too {_side(float(weights.max()))} for a double: their products with squares are needed.",
            POSSIBLE,
            "Divide the weights by their mean: estimates stay the same, but for the residual variance's unit.",
            about="weights",
        )
    rows, names = found.rows, (*design.names, "")
    squares = [*zip(names, np.diag(found.joint).tolist(), strict=True)]
    if isinstance(found, Gram):
        for term, zz in zip(design.random, found.ZZ, strict=True):
            squares += zip(term.names, np.einsum("gii->i", zz).tolist(), strict=True)
    refuse_squares(float(found.joint[-1, -1]) / rows, [(name, each / rows) for name, each in squares])


def refuse_squares(response: float, columns: Sequence[tuple[str, float]]) -> None:
    """Refuse mean squares of a response and of named columns that are too many powers of ten from 1."""
    own = _power(response)
    for name, square in columns:
        power = _power(square)
        if (abs(power) + abs(own) if name else abs(own)) <= POWERS:
            continue
        at_response = not name or abs(own) > abs(power)
        raise _beyond("" if at_response else name, _side(response if at_response else square))


def refuse_columns(names: Sequence[str], columns: Matrix) -> None:
    """Refuse columns at every row whose largest values are too many powers of ten from 1."""
    largest = np.abs(columns).max(axis=0, initial=0.0)
    for name, value in zip(names, largest.tolist(), strict=True):
        if value > 0 and abs(np.log10(value)) > POWERS:
            raise _beyond(name, _side(value))


def _beyond(name: str, side: str) -> FitError:
    """The refusal of a column, or of the response, which has no name."""
    return FitError(
        f"{f'Column {name!r}' if name else 'The response'} is too {side} for a double: products of its squares are "
        "needed.",
        POSSIBLE,
        f"Give it in a {'larger' if side == 'large' else 'smaller'} unit, in which its values are near 1.",
        about="formula",
    )


def refuse_vanished(found: Moments | Gram, design: Design, *, rows: ModelRows | None, frame: Any) -> None:
    """Refuse columns whose squares are zero although they are not: they would be dropped as if they said nothing."""
    zero = np.diag(found.joint)[:-1] == 0
    parts = [(design.layout.fixed, zero)]
    if isinstance(found, Gram):
        parts += [(term.pieces, np.einsum("gii->i", zz) == 0) for term, zz in zip(design.random, found.ZZ, strict=True)]
    for pieces, none in parts:
        for piece in _without_squares(pieces, none, design):
            largest = _largest(piece.monomial, rows, frame)
            if 0 < largest < 10**-POWERS:
                raise _beyond(":".join(str(factor) for factor, _ in piece.monomial.atoms), "small")


def _without_squares(pieces: Sequence[Piece], none: Matrix, design: Design) -> list[Piece]:
    """The numeric pieces of which a column has squares that are zero."""
    if not none.any():
        return []
    ends = np.cumsum([0, *(piece.width(design.levels) for piece in pieces)])
    return [piece for at, piece in enumerate(pieces) if piece.monomial.atoms and none[ends[at] : ends[at + 1]].any()]


def _largest(monomial: Monomial, rows: ModelRows | None, frame: Any) -> float:
    """The largest absolute value of a product of columns, or of its columns as given where an engine has the rows."""
    if rows is not None:
        return float(np.abs(rows.evaluate(monomial)).max())
    import narwhals.stable.v2 as nw

    from discreet.data.frames import collect

    names = list(dict.fromkeys(factor.column for factor, _ in monomial.atoms))
    asked = [nw.col(name).cast(nw.Float64()).abs().max().alias(name) for name in names]
    held = collect(frame.lazy().select(*asked), step="sizes of columns")
    return float(np.prod([held[name][0].as_py() for name in names]))


def refuse_weights(law: Family, weights: Vector, y: Vector) -> None:
    """Refuse weights of counts and shares whose likelihoods are so steep, or so flat, that their top is not found."""
    largest, most = float(weights.max()), law.heaviest
    if most >= largest > HEAVY and float((weights * y).max()) > EVENTS:
        raise FitError(
            f"The largest product of a weight and a count is above {EVENTS:.0e}, so the likelihood is too steep for "
            "doubles.",
            f"Weights above {HEAVY:.0e} make at most {EVENTS:.0e} events of a row.",
            "Divide the weights, or leave them out if they are all the same.",
            about="weights",
        )
    if not LIGHT <= largest <= most:
        steep = "high and steep" if largest > most else "flat"
        raise FitError(
            f"The largest weight of family {law.name!r} is {'above' if largest > most else 'below'} "
            f"{most if largest > most else LIGHT:.0e}, so its likelihood is too {steep} for doubles.",
            f"The largest weight is from {LIGHT:.0e} to {most:.0e}.",
            "Divide the weights, or count trials in thousands." if largest > most else "Multiply the weights.",
            about="weights",
        )


def _power(square: float) -> float:
    """The power of ten of the root of a mean square; of none, that of 1."""
    return float(np.log10(square)) / 2 if square > 0 else 0.0


def _side(value: float) -> str:
    return "large" if value > 1 else "small"
