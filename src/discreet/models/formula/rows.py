"""The border between data and a mixed model: any frame or file in, coded columns out.

A path (CSV, Parquet) or a lazy frame stays in its engine, which computes aggregates. Rows come into memory only on
demand, and then only the columns of the formula, with categories as integers. Faulty data end here with a `DataError`
that names the column and never a value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.data.frames import collect, missing, working
from discreet.models.formula.arithmetic import refuse_made
from discreet.models.formula.basis import deviations
from discreet.models.formula.contrasts import Contrasts, with_contrasts
from discreet.models.formula.design import Layout, Levels, Monomial, lay_out
from discreet.models.formula.formula import NUMERIC, Factor, Formula, Term, refuse_lags
from discreet.models.formula.functions import apply, learn
from discreet.models.formula.memory import refuse_matrices
from discreet.words.cases import case_of
from discreet.words.errors import DataError, FormulaError, Unidentified, concerning
from discreet.words.faults import Spelled

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

# What a function of a column has learned from the data: nothing, a centre, a scale, a polynomial's recurrence.
States: TypeAlias = Mapping[Factor, dict[str, Any]]

DISTANT = 3.0
COPIES = 2  # of the columns while a basis is made
SIZES = dict.fromkeys(("", "C", *NUMERIC), False) | {"log_size": True, "size_class": True}
"""Whether a function is one of a group: of the number of its rows."""


def with_doubles(frame: AnyFrame, columns: Collection[str]) -> AnyFrame:
    """The frame with these columns of numbers as doubles, the nearest ones where they are none.

    narwhals casts columns of Arrow in a way that fails there, with the value in its message.
    """
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    schema = frame.collect_schema()
    cast = [column for column in columns if schema[column].is_numeric() and not schema[column].is_float()]
    if isinstance(frame, nw.LazyFrame) or frame.implementation.is_polars():
        return frame.with_columns(nw.col(*cast).cast(nw.Float64())) if cast else frame
    for column in cast:
        values = values_of(frame[column].to_arrow().cast(pa.float64(), safe=False).fill_null(np.nan))
        frame = frame.with_columns(nw.new_series(column, values, backend=frame.implementation))
    return frame


def with_outcomes(frame: AnyFrame, response: str) -> AnyFrame:
    """The frame with true and false of the response as 1 and 0."""
    import narwhals.stable.v2 as nw

    if frame.collect_schema().get(response) != nw.Boolean:
        return frame
    return frame.with_columns(nw.col(response).cast(nw.Int8()).cast(nw.Float64()))


def with_sizes(frame: AnyFrame, model: Formula) -> tuple[AnyFrame, Formula]:
    """The frame with a column for each `log_size(g)` and `size_class(g)`, and the model of these.

    The size is the number of rows that share a row's g; its class, a factor, is named by the largest power of two in
    it. Engines may return rows in another order then.
    """
    import narwhals.stable.v2 as nw

    schema = frame.collect_schema()
    for factor in _sized(model):
        column = factor.column
        if column == model.response.column:
            raise FormulaError(
                f"Column {column!r} is the response, so its sizes cannot explain it.", remedy="Name a group."
            )
        if column not in schema:
            raise DataError(missing(column, schema.names(), name="the data", asked=model.columns, about="formula"))
        size = nw.len().over(column).cast(nw.Float64())
        # Half a row more: then no engine's rounding takes a power of two for less.
        whole = (2.0 ** (size + 0.5).log(2).floor()).round().cast(nw.Int64()).cast(nw.String())
        made = case_of(factor.function, {"log_size": size.log(), "size_class": whole})
        frame = frame.with_columns(made.alias(str(factor)))

    def named(terms: tuple[Term, ...]) -> tuple[Term, ...]:
        return tuple(tuple(Factor(str(f)) if case_of(f.function, SIZES) else f for f in term) for term in terms)

    random = tuple(replace(each, terms=named(each.terms)) for each in model.random)
    return frame, replace(model, fixed=named(model.fixed), random=random)


def with_sizes_in_order(frame: AnyFrame, model: Formula) -> tuple[AnyFrame, Formula]:
    """`with_sizes` where rows must keep their order, which engines do not promise."""
    import narwhals.stable.v2 as nw

    if (sized := _sized(model)) and isinstance(frame, nw.LazyFrame):
        raise FormulaError(
            f"{sized[0]} was requested for a file or a lazy frame, whose rows would lose their order.",
            "Frames in memory and private releases know it.",
            "Load the data, or compute the column first.",
        )
    return with_sizes(frame, model)


def _sized(model: Formula) -> list[Factor]:
    terms = [*model.fixed, *(term for random in model.random for term in random.terms)]
    return sorted({f for term in terms for f in term if case_of(f.function, SIZES)}, key=str)


@concerning("formula")
def plan(frame: AnyFrame, model: Formula, *, offsets: bool = False, contrasts: Contrasts | None = None) -> Layout:
    """Lay a formula out on a frame's schema; refuses unknown columns and columns that hold no numbers.

    Only a caller who adds offsets to the linear predictor allows `offsets`, and only one who recodes coefficients
    allows `contrasts`.
    """
    assert not _sized(model), "sizes become columns first"
    if model.offsets and not offsets:
        raise FormulaError(
            f"offset({model.offsets[0]}) was asked of a release, or of fits of blocks.",
            "Plain fits have offsets.",
            "Subtract it from the response in a column of its own.",
        )
    refuse_lags(model)
    schema = frame.collect_schema()
    refuse_made(model.made, schema.names())
    for column in model.columns:
        if column not in schema:
            raise DataError(missing(column, schema.names(), name="the data", asked=model.columns, about="formula"))
    kinds = frozenset(c for c in model.columns if not schema[c].is_numeric())
    model = with_contrasts(model, kinds, contrasts)
    layout = lay_out(model, kinds)
    refuse_kinds(schema, layout)
    _refuse_constant_slopes(frame, layout)
    return layout


def _refuse_constant_slopes(frame: AnyFrame, layout: Layout) -> None:
    """Refuse slopes that rows tell nothing of: all zero, or the same in every row beside an intercept."""
    import narwhals.stable.v2 as nw

    alone = [
        (term, piece.monomial.atoms[0][0])
        for term, pieces in zip(layout.model.random, layout.random, strict=True)
        for piece in pieces
        if len(piece.monomial.atoms) == 1 and not piece.coded
    ]
    columns = list(dict.fromkeys(factor.column for _, factor in alone))
    if not columns:
        return
    ends = [getattr(nw.col(c), end)().cast(nw.Float64()).alias(f"{end} {c}") for c in columns for end in ("min", "max")]
    found = collect(frame.lazy().select(*ends), step="slopes").to_pylist()[0]
    for term, factor in alone:
        least, most = found[f"min {factor.column}"], found[f"max {factor.column}"]
        if least is not None and least == most and (() in term.terms or not (least or factor.function)):
            raise Unidentified(
                f"{factor} is the same in every row, and {term} asks for slopes along it.",
                "A slope is seen where its column differs between rows.",
                "Drop it from the random term.",
                about="formula",
            )


def refuse_kinds(schema: Mapping[str, Any], layout: Layout, *, response: bool = True) -> None:
    """Refuse numeric factors that are not numbers, and levels that are no single values."""
    for factor in layout.numeric:
        if (response or factor != layout.model.response) and not schema[factor.column].is_numeric():
            raise DataError(
                f"{factor} needs a numeric column, but {factor.column!r} is {schema[factor.column]}.",
                "A column of a CSV file is numeric if each of its values is a number, empty or NA.",
                "Use a numeric column, write missing values as NA and true and false as 1 and 0, or use the bare name "
                "for categories.",
                about="formula",
            )
    for column in layout.bare:
        if schema[column].is_temporal():
            raise DataError(
                f"Column {column!r} is {schema[column]}, and every moment would be a level of its own.",
                "Numbers and categories are possible.",
                f"Make a number of it, such as days since a date, or write C({column}).",
                about="formula",
            )
    for column in layout.coded:
        if schema[column].is_nested() or str(schema[column]) in ("Object", "Unknown"):
            raise DataError(
                f"Column {column!r} is {schema[column]}, whose values cannot be levels of a factor.",
                "Levels are text, numbers, dates or true/false, and all values of one kind.",
                "Convert it, for example to text, or take a part of it into a column of its own.",
                about="formula",
            )


def refuse_decimals(frame: AnyFrame, layout: Layout) -> None:
    """Levels are published by name, and the values of a measured column must not be."""
    schema = frame.collect_schema()
    for column in layout.coded:
        if schema[column].is_float() or schema[column].is_decimal():
            raise FormulaError(
                f"{column!r} would make every value of a column of decimals a published level.",
                "Levels are text, whole numbers, dates or true/false.",
                "Use the column as it is, or cut it into classes by public limits first.",
            )


@dataclass(frozen=True, slots=True)
class ModelRows:
    """The columns of a model in memory: codes of categories, values of numeric factors `(count, basis size)`."""

    count: int
    codes: Mapping[str, Integers] = field(repr=False)
    values: Mapping[Factor, Matrix] = field(repr=False)

    def take(self, at: Integers) -> ModelRows:
        """Some of the rows, in the order given."""
        codes = {column: code[at] for column, code in self.codes.items()}
        return ModelRows(len(at), codes, {factor: value[at] for factor, value in self.values.items()})

    def evaluate(self, monomial: Monomial) -> Vector:
        """The monomial at every row."""
        if not monomial.atoms:
            return np.ones(self.count)
        shifts = monomial.shifts or (0.0,) * len(monomial.atoms)
        parts = [self.values[factor][:, part] for factor, part in monomial.atoms]
        total = reduce(np.multiply, [x - shift if shift else x for x, shift in zip(parts, shifts, strict=True)])
        for share, other in monomial.less:
            total = total - share * self.evaluate(other)
        return np.asarray(total)

    def product(self, a: Monomial, b: Monomial) -> Vector:
        """The product of two monomials at every row."""
        return self.evaluate(a) * self.evaluate(b)


@dataclass(frozen=True, slots=True)
class Learned:
    """Facts learned while reading: levels of every coded column, states of every function, column means.

    `distant` are the factors whose mean is at least `DISTANT` standard deviations from zero.
    """

    levels: Levels
    states: States
    means: Mapping[Factor, Vector]
    distant: frozenset[Factor]


def read_rows(
    frame: AnyFrame, layout: Layout, known: Learned | None = None, *, response: bool = True
) -> tuple[ModelRows, Learned]:
    """Bring the model's columns into memory, learning levels and states, or applying `known` ones to new data.

    A level that `known` does not have is coded -1. Without `response`, or if new data lack it, the response is left
    out.
    """
    import narwhals.stable.v2 as nw

    response &= known is None or layout.model.response.column in frame.collect_schema()
    needed = {f for m in layout.monomials if response or m != layout.response for f, _ in m.atoms}
    numeric = [factor for factor in layout.numeric if factor in needed]
    coded = layout.coded
    wanted = {f.column for f in numeric} | set(coded)
    asked = [column for column in dict.fromkeys(layout.model.columns) if column in wanted]
    with working("rows of the model"):
        held: Any = frame.to_native() if frame.implementation.is_pyarrow() else frame
        if isinstance(held, nw.LazyFrame):
            held = collect(held.select(*map(nw.col, asked)), step="rows of the model")
        arrow = {c: held[c].to_arrow() if isinstance(held, nw.DataFrame) else held[c] for c in asked}
    refuse_empty(count := len(held))
    ordered = given_order(frame, coded)
    codes, levels = {}, dict(known.levels) if known else {}
    for column in coded:
        found, labels = encode(arrow[column], column, given_order=column in ordered)
        if known:
            at = {label: index for index, label in enumerate(known.levels[column])}
            found = np.array([at.get(label, -1) for label in labels], dtype=np.int64)[found]
        else:
            levels[column] = labels
        codes[column] = found
    values, states = {}, dict(known.states) if known else {}
    columns = len({atom for m in layout.monomials for atom in m.atoms if atom[0] in needed})
    refuse_matrices(columns, 8.0 * COPIES * count * columns)
    for factor in numeric:
        raw = _numbers(arrow[factor.column], factor, layout.model)
        if not known:
            states[factor] = learn(factor, raw)
        values[factor] = apply(factor, raw, states[factor])
    rows = ModelRows(count, codes, values)
    if known:
        return rows, known
    means = {factor: value.mean(axis=0) for factor, value in values.items()}
    with np.errstate(over="ignore", invalid="ignore"):  # squares too large for a double are refused later
        distant = frozenset(f for f, x in values.items() if (np.abs(means[f]) > DISTANT * deviations(x)).any())
    return rows, Learned(levels, states, means, distant)


def number_column(
    frame: AnyFrame, name: str, about: str, rows: int, *, positive: bool = False, called: str = ""
) -> Vector:
    """A column of finite numbers beside the formula, such as weights; `called` is its name in words."""
    import narwhals.stable.v2 as nw

    schema = frame.collect_schema()
    if name not in schema:
        raise DataError(missing(name, schema.names(), name="the data", about=about))
    if not schema[name].is_numeric():
        raise DataError(
            f"{about}={name!r} is {schema[name]}.",
            f"{called or about} is a column of numbers.",
            "Name another column, or convert it.",
            about=about,
        )
    column = frame.select(nw.col(name).cast(nw.Float64()))
    held = collect(column, step=about) if isinstance(column, nw.LazyFrame) else column
    arrow = held[name].to_arrow() if isinstance(held, nw.DataFrame) else held[name]
    values = np.asarray(values_of(arrow), dtype=np.float64)
    if arrow.null_count or not np.isfinite(values).all() or (positive and (values <= 0).any()):
        raise DataError(
            f"Column {name!r} has values that are missing, infinite{', zero or less' if positive else ''}.",
            f"{called or about} is a finite{', positive' if positive else ''} number in every row.",
            "Drop or repair those rows first.",
            about=about,
        )
    assert len(values) == rows
    return values


def refuse_empty(count: int) -> None:
    if count == 0:
        raise DataError(
            "The data have no rows, so there is nothing to fit.",
            remedy="Check the path or the filter before it.",
            about="data",
        )


def given_order(frame: AnyFrame, columns: Sequence[str]) -> set[str]:
    """Columns whose type states the order of its levels; all others are sorted."""
    import narwhals.stable.v2 as nw

    schema = frame.collect_schema()
    pandas = frame.implementation.is_pandas()
    return {c for c in columns if schema[c] == nw.Enum or (pandas and schema[c] == nw.Categorical)}


def encode(column: Any, name: str, *, given_order: bool = False) -> tuple[Integers, tuple[str, ...]]:
    """Codes and labels of a PyArrow column.

    Levels are sorted unless the type gives their order; unused ones are dropped.
    """
    import pyarrow as pa

    if column.null_count:
        raise incomplete(name)
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if not pa.types.is_dictionary(array.type):
        if pa.types.is_string_view(array.type):
            array = array.cast(pa.large_string())
        if pa.types.is_floating(array.type):
            array = pa.array(values_of(array) + 0.0)  # zero without a sign
        array = array.dictionary_encode()
    index, words = values_of(array.indices), array.dictionary
    numeric = pa.types.is_integer(words.type) or pa.types.is_floating(words.type)
    values = values_of(words) if numeric else np.array(words.to_pylist(), dtype=object)
    if numeric and not np.isfinite(values).all():
        raise incomplete(name)
    used = np.flatnonzero(np.bincount(index, minlength=len(values)))
    order = used if given_order else used[np.argsort(values[used], kind="stable")]
    place = np.full(len(values), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[index], tuple(map(str if pa.types.is_string(words.type) else _label, values[order].tolist()))


def values_of(column: Any) -> Any:
    """A column of numbers without nulls as an array. Arrow's own conversion would load pandas, which takes a second."""
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    plain = pa.types.is_integer(array.type) or pa.types.is_float64(array.type)
    return np.from_dlpack(array) if plain and not array.null_count else array.to_numpy(zero_copy_only=False)


def _label(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()  # as R has it
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def incomplete(name: str, model: Formula | None = None) -> DataError:
    """The error for a column that lacks values, or for one that the model makes of others."""
    if model is not None and name in dict(model.made):
        return DataError(
            f"{name} is missing or infinite in some rows.",
            "What it is made of is missing there, or it is a root or a logarithm of what has none, a division by zero "
            "or beyond doubles.",
            ("Change or shift the column. ", WITHOUT_THEM),
            about="data",
        )
    return DataError(
        f"Column {name!r} has missing or infinite values.",
        "A mixed model needs complete rows.",
        WITHOUT_THEM,
        about="data",
    )


WITHOUT_THEM = Spelled(
    'A fit leaves such rows out with missing="drop"; for a release, drop or impute them first.',
    plan="Drop or impute them at the source.",
    command="A fit leaves such rows out with --missing drop; for a release, drop or impute them at the source.",
)


def _numbers(column: Any, factor: Factor, model: Formula) -> Vector:
    values = np.asarray(values_of(column), dtype=np.float64)
    if column.null_count or not np.isfinite(values).all():
        raise incomplete(factor.column, model)
    if factor.function == "log" and values.min() <= 0:
        raise nonpositive(factor)
    return values


def nonpositive(factor: Factor) -> DataError:
    """The error for a logarithm of what has none."""
    asked = f"{factor} needs positive values, and {factor.column!r} has others."
    return DataError(asked, "Zero and less have no logarithm.", "Shift the column or drop the log.", about="formula")
