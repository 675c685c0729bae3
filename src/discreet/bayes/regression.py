"""The border between data and a posterior: a formula and a frame become a response and a design.

Formulas are those of `discreet.formula` without random terms. Functions that learn from all rows (center, scale,
poly, bs, log_size) are refused: through them one row would touch every part, and the proof would fail. The levels of
categories are taken from the data and are public, so such columns must be declared; all others are numbers. Nothing
else that a row holds can stop or warn: a row with an entry that is missing, infinite, the logarithm of what has none,
or beyond 1e100, counts as a row of zeros and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.bayes.conjugate import HUGE
from discreet.errors import DataError, FormulaError
from discreet.formula.design import Design, Layout
from discreet.formula.formula import Factor, Formula, read_formula
from discreet.formula.rows import (
    ModelRows,
    encode,
    given_order,
    open_frame,
    plan,
    refuse_decimals,
    refuse_empty,
    values_of,
)
from discreet.privacy.columns import declared, refuse_undeclared, taken
from discreet.privacy.units import AnyRow, Unit

if TYPE_CHECKING:
    from discreet.formula.rows import Frame
    from discreet.release.account import Account

LEVEL = "<level>"
LEARNING = ("center", "scale", "poly", "bs", "log_size")
PUBLISHED = "The levels of a category become names of coefficients, which are published."
_ANY_ROW = AnyRow()


@dataclass(frozen=True, slots=True)
class Regression:
    """y = X beta + error, with the coefficients' names as R writes them and the `public` columns of its formula.

    `named` are all columns of the formula, the response first.

    `longest` bounds the sum of a row's absolute entries by the formula alone; there is no such bound with a column of
    numbers.
    """

    y: Vector
    X: Matrix
    names: tuple[str, ...]
    public: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    longest: int | None = None

    def columns(self, coefficients: Sequence[str]) -> Integers:
        """The columns of X that carry these coefficients."""
        for name in coefficients:
            if name not in self.names:
                raise FormulaError(
                    f"Coefficient {name!r} is not in the model: the category has no such level, or it is the "
                    "first one, which the others are compared with.",
                    remedy="Name one of its other levels.",
                    about="coefficient",
                )
        return np.array([self.names.index(name) for name in coefficients], dtype=np.int64)


def regression(
    formula: str,
    data: Any,
    coefficients: Sequence[str] = (),
    *,
    public: Sequence[str] = (),
    account: Account | None = None,
) -> Regression:
    """Read the columns of `formula` from a frame, a mapping of columns or a file.

    `public` names the columns whose levels everybody may know. `coefficients` are refused before any row is read if no
    level of any category could make them, and so are columns that `account` has seen in another role.
    """
    model = fixed_formula(formula)
    unit = _ANY_ROW if account is None else account.unit
    known = declared_in(model, public, unit)
    if account is not None:
        account.compare(taken(unit, known, model.columns))
    frame = open_frame(data, numbers=[column for column in model.columns if column not in known])
    layout = plan(frame, model)
    refuse_undeclared(layout.coded, known, why=PUBLISHED)
    refuse_decimals(frame, layout)
    refuse_unknown(coefficients, layout)
    rows, levels = read_any(frame, layout)
    design = Design.of(layout, rows.codes, levels)
    X = np.zeros((rows.count, len(design.names)))
    start = 0
    with np.errstate(all="ignore"):
        y = rows.evaluate(layout.response).copy()
        for piece in layout.fixed:
            at = piece.position(rows.codes, levels, rows.count)
            touched = np.flatnonzero(at >= 0)
            X[touched, start + at[touched]] = rows.evaluate(piece.monomial)[touched]
            start += piece.width(levels)
        usable = (np.abs(X) < HUGE).all(axis=1) & (np.abs(y) < HUGE)
    for code in rows.codes.values():
        usable &= code >= 0
    X[~usable], y[~usable] = 0.0, 0.0
    numbers = any(piece.monomial.atoms for piece in layout.fixed)
    return Regression(y, X, design.names, known, model.columns, None if numbers else len(layout.fixed))


def declared_in(model: Formula, public: Sequence[str], unit: Unit) -> tuple[str, ...]:
    """The columns of a formula that are declared public; categories that the formula itself names must be."""
    known = declared(public, unit, model.response.column)
    named = [factor.column for term in model.fixed for factor in term if factor.function == "C"]
    refuse_undeclared(named, known, why=PUBLISHED)
    return tuple(column for column in model.columns if column in known)


def read_any(frame: Frame, layout: Layout) -> tuple[ModelRows, dict[str, tuple[str, ...]]]:
    """The model's columns and the levels of its categories, whatever single rows hold: -1 for no level, nan, inf."""
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    from discreet.frames import collect, working

    table = frame.select(*(nw.col(c) for c in layout.model.columns))
    with working("rows of the model"):
        arrow = collect(table, step="rows of the model") if isinstance(table, nw.LazyFrame) else table.to_arrow()
    refuse_empty(arrow.num_rows)
    ordered, codes, levels = given_order(frame, layout.coded), {}, {}
    for column in layout.coded:
        known = np.asarray(arrow[column].is_valid().to_numpy())
        codes[column] = np.full(arrow.num_rows, -1, dtype=np.int64)
        if not known.any():
            raise DataError(
                f"Column {column!r} has no levels: all of it is missing.",
                remedy="Leave it out of the formula.",
                about="formula",
            )
        codes[column][known], levels[column] = encode(arrow[column].drop_null(), column, given_order=column in ordered)
    values = {}
    for factor in layout.numeric:
        raw = values_of(arrow[factor.column].cast(pa.float64(), safe=False).fill_null(np.nan))
        values[factor] = _apply(factor, np.asarray(raw, dtype=np.float64))[:, None]
    return ModelRows(arrow.num_rows, codes, values), levels


def refuse_unknown(coefficients: Sequence[str], layout: Layout) -> None:
    """Refuse names that the formula cannot make; speaks of the formula only, never of levels."""
    possible = [
        name
        for piece in layout.fixed
        for name in piece.names({column: (LEVEL,) * (1 + reduced) for column, reduced in piece.coded})
    ]
    pattern = re.compile("|".join(re.escape(name).replace(LEVEL, ".+") for name in possible) or "(?!)", re.DOTALL)
    for name in coefficients:
        if not (isinstance(name, str) and pattern.fullmatch(name)):
            raise FormulaError(
                f"Coefficient {name!r} is not in the model; it has: {', '.join(possible) or 'none'}.",
                remedy="Name one of these.",
                about="coefficient",
            )


def _apply(factor: Factor, x: Vector) -> Vector:
    with np.errstate(all="ignore"):
        return np.log(x) if factor.function == "log" else x


def fixed_formula(text: str) -> Formula:
    """Read a formula that has fixed terms only and nothing that learns from all rows."""
    if "|" in text:
        raise FormulaError(
            f"Formula {text!r} has a random term; posterior summaries by parts are for fixed effects.",
            remedy="Drop the (... | group) terms.",
            about="formula",
        )
    model = read_formula(text, needs_random=False)
    for factor in (model.response, *(factor for term in model.fixed for factor in term)):
        if factor.function in LEARNING:
            raise FormulaError(
                f"Formula {text!r} has {factor}, which is computed from all rows, so one row would touch every part.",
                "Columns, C, log and their interactions are possible.",
                "Transform the column with public constants first.",
                about="formula",
            )
    return model
