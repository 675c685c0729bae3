"""Offsets of linear models: columns that are added to the linear predictor as they are.

A linear model of y with an offset is the model of y - offset, so the response of the rows in memory has it subtracted.
`offset_of` is what fitted values, predictions and simulated responses add again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.models.formula.arithmetic import with_columns
from discreet.models.formula.formula import Formula
from discreet.models.formula.rows import DISTANT, Learned, ModelRows, number_column

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame
    from discreet.models.linear.fit import MixedFit


def read_offset(frame: AnyFrame, model: Formula, offset: str | None, rows: int) -> Vector | None:
    """The sum of the formula's offsets and of the one beside it; None without any."""
    found = [number_column(frame, name, "formula", rows, called="An offset") for name in model.offsets]
    if offset is not None:
        found.append(number_column(frame, offset, "offset", rows))
    return np.sum(found, axis=0) if found else None


def subtracted(rows: ModelRows, learned: Learned, model: Formula, offset: Vector) -> tuple[ModelRows, Learned]:
    """The rows with the offset taken from their response, and what is learned of them."""
    of = model.response
    y = rows.values[of] - offset[:, None]
    mean = y.mean(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        far = bool((np.abs(mean) > DISTANT * y.std(axis=0)).any())
    distant = (learned.distant - {of}) | ({of} if far else set())
    changed = replace(rows, values={**rows.values, of: y})
    return changed, replace(learned, means={**learned.means, of: mean}, distant=frozenset(distant))


def offset_of(fit: MixedFit, data: Any = None, *, rows: int) -> Vector | float:
    """The offset of the fitted rows, or of new `data`, which then have its columns; 0 where there is none."""
    if fit.offset is None or data is None:
        return 0.0 if fit.offset is None else fit.offset
    from discreet.data.frames import open_frame

    model: Formula = fit.design.layout.model
    asked: Mapping[str, str | None] = fit.asked
    made = {name: node for name, node in model.made if name in model.offsets}
    frame = with_columns(open_frame(data, ordered=True), made, about="data")
    names = [*model.offsets, *([name] if (name := asked.get("offset")) else [])]
    found = [number_column(frame, name, "data", rows, called="An offset") for name in names]
    return np.asarray(np.sum(found, axis=0))
