"""The border between data and a posterior: a formula and a frame become a response and a design.

Formulas are those of `discreet.mixed.formula` without random terms. Functions that learn from all rows (center, scale,
poly, bs) are refused: through them one row would touch every part, and the proof would fail. The levels of categories
are taken from the data and are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.errors import FormulaError
from discreet.mixed.design import Design
from discreet.mixed.formula import Model, read_formula
from discreet.mixed.rows import open_frame, plan, read_rows

LEARNING = ("center", "scale", "poly", "bs")


@dataclass(frozen=True, slots=True)
class Regression:
    """y = X beta + error, with the coefficients' names as R writes them."""

    y: Vector
    X: Matrix
    names: tuple[str, ...]

    def columns(self, coefficients: Sequence[str]) -> Integers:
        """The columns of X that carry these coefficients."""
        for name in coefficients:
            if name not in self.names:
                raise FormulaError(
                    f"Coefficient {name!r} is not in the model; it has: {', '.join(self.names)}. Name one of these."
                )
        return np.array([self.names.index(name) for name in coefficients], dtype=np.int64)


def regression(formula: str, data: Any) -> Regression:
    """Read the columns of `formula` from a frame, a mapping of columns or a file."""
    model = fixed_formula(formula)
    frame = open_frame(data)
    layout = plan(frame, model)
    rows, learned = read_rows(frame, layout)
    design = Design.of(layout, rows.codes, learned.levels)
    X = np.zeros((rows.count, len(design.names)))
    start = 0
    for piece in layout.fixed:
        at = piece.position(rows.codes, learned.levels, rows.count)
        touched = np.flatnonzero(at >= 0)
        X[touched, start + at[touched]] = rows.evaluate(piece.monomial)[touched]
        start += piece.width(learned.levels)
    return Regression(rows.evaluate(layout.response), X, design.names)


def fixed_formula(text: str) -> Model:
    """Read a formula that has fixed terms only and nothing that learns from all rows."""
    if "|" in text:
        raise FormulaError(
            f"Formula {text!r} has a random term; posterior summaries by parts are for fixed effects. "
            "Drop the (... | group) terms."
        )
    model = read_formula(text, needs_random=False)
    for factor in (model.response, *(factor for term in model.fixed for factor in term)):
        if factor.function in LEARNING:
            raise FormulaError(
                f"Formula {text!r} has {factor}, which is computed from all rows, so one row would touch every part. "
                "Columns, C, log and their interactions are possible. Transform the column with public constants first."
            )
    return model
