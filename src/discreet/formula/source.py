"""A formula and its data, brought together: dots, columns made of columns, sizes, and the rule for missing values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from discreet.errors import DataError
from discreet.formula.arithmetic import with_columns
from discreet.formula.dots import with_every_column
from discreet.formula.formula import Formula, read_formula
from discreet.formula.rows import with_sizes_in_order
from discreet.frames import open_frame

if TYPE_CHECKING:
    from discreet.frames import AnyFrame

Missing = Literal["error", "drop"]


def opened(
    formula: str, data: Any, *, missing: Missing = "error", beside: Iterable[str | None] = ()
) -> tuple[AnyFrame, Formula, tuple[str, ...]]:
    """The frame with every column that the formula asks for, the formula, and notes on what was left out.

    Columns `beside` the formula, such as weights, count among the values that a row must have, and no dot has them.
    """
    if missing not in ("error", "drop"):
        raise DataError(
            f"missing={missing!r} is no rule.",
            "Missing values are an error, or their rows are dropped.",
            'Use "error" or "drop".',
            about="missing",
        )
    frame = open_frame(data, ordered=True)
    others = [name for name in beside if name]
    text, undotted = with_every_column(formula, frame.collect_schema().names(), beside=others)
    model = read_formula(text)
    frame, model = with_sizes_in_order(with_columns(frame, dict(model.made)), model)
    if missing == "error":
        return frame, model, undotted
    frame, model, lost = _complete(frame, model, others)
    return frame, model, (*undotted, *lost)


def _complete(frame: AnyFrame, model: Formula, beside: list[str]) -> tuple[AnyFrame, Formula, tuple[str, ...]]:
    """The rows that have every value of the model."""
    import narwhals.stable.v2 as nw

    schema = frame.collect_schema()
    there = []
    for column in (*model.columns, *model.offsets, *beside):
        if column in schema:
            known = ~nw.col(column).is_null()
            there.append(known & nw.col(column).is_finite() if schema[column].is_float() else known)
    whole = frame.filter(*there)
    if isinstance(frame, nw.LazyFrame) or isinstance(whole, nw.LazyFrame):
        return whole, model, ("rows with missing values were left out, as asked",)
    lost = len(frame) - len(whole)
    note = f"{lost:,} of {len(frame):,} rows have missing values and were left out, as asked"
    return whole, model, (note,) if lost else ()
