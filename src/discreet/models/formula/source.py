"""A formula and its data, brought together: dots, columns made of columns, sizes, and the rule for missing values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from discreet.data.frames import open_frame
from discreet.models.formula.arithmetic import with_columns
from discreet.models.formula.dots import with_every_column
from discreet.models.formula.formula import Formula, read_formula
from discreet.models.formula.marks import with_numbers
from discreet.models.formula.rows import with_sizes_in_order
from discreet.words.errors import DataError

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

Missing = Literal["error", "drop"]


@dataclass(frozen=True, slots=True)
class ModelData:
    """A formula and its data.

    Attributes
    ----------
    model : the formula, dots written out.
    whole : all rows, with every column that the formula asks for.
    rows : those that are fitted.
    missing : the rule that left the others out.
    notes : how many it left out, and which columns a dot did.
    """

    model: Formula
    whole: AnyFrame
    rows: AnyFrame
    missing: Missing
    notes: tuple[str, ...]

    @property
    def released(self) -> AnyFrame:
        """The rows that a private release reads. Whether a response is missing is protected: it leaves no row out."""
        if self.missing == "error":
            return self.whole
        return _complete(self.whole, [*self.model.columns[1:], *self.model.offsets])


def opened(formula: str, data: Any, *, missing: Missing = "error", beside: Iterable[str | None] = ()) -> ModelData:
    """The formula with its data, every column that it asks for among them.

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
    frame = with_numbers(frame, data, [*model.given, *others])
    frame, model = with_sizes_in_order(with_columns(frame, dict(model.made)), model)
    if missing == "error":
        return ModelData(model, frame, frame, missing, undotted)
    rows = _complete(frame, [*model.columns, *model.offsets, *others])
    return ModelData(model, frame, rows, missing, (*undotted, *_left_out(frame, rows)))


def _complete(frame: AnyFrame, columns: Iterable[str]) -> AnyFrame:
    """The rows that have a value in each of these columns."""
    import narwhals.stable.v2 as nw

    schema, there = frame.collect_schema(), []
    for column in columns:
        if column in schema:
            known = ~nw.col(column).is_null()
            there.append(known & nw.col(column).is_finite() if schema[column].is_float() else known)
    return frame.filter(*there) if there else frame


def _left_out(frame: AnyFrame, rows: AnyFrame) -> tuple[str, ...]:
    import narwhals.stable.v2 as nw

    if isinstance(frame, nw.LazyFrame) or isinstance(rows, nw.LazyFrame):
        return ("rows with missing or infinite values were left out, as asked",)
    lost = len(frame) - len(rows)
    note = f"{lost:,} of {len(frame):,} rows have missing or infinite values and were left out, as asked"
    return (note,) if lost else ()
