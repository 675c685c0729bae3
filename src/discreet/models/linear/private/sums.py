"""Sums of a confidential response as exact integers.

A response is clipped to [lower, upper], measured from the middle and rounded to one of 2^14 + 1 steps. A public numeric
column is rounded to whole steps of its own. Sums of products of such integers are computed without any error, in any
order, by any engine, so their sensitivity is an integer too. What comes out of here is confidential.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.frames import collect
from discreet.models.formula.design import Codes, Monomial
from discreet.models.formula.rows import read_rows, with_doubles
from discreet.models.linear.cells import expression
from discreet.models.linear.private.public import PublicDesign, measured, monomials
from discreet.words.errors import DataError

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

HALF = 2**13  # steps from the middle of the response's range to either end
EXACT = 53  # bits of a double: sums of products below 2^53 are exact
FINEST = 16  # bits of a public numeric column


@dataclass(frozen=True, slots=True)
class Scale:
    """The whole numbers that stand for a response in [lower, upper]: -HALF to HALF."""

    lower: Fraction
    upper: Fraction

    @property
    def step(self) -> float:
        return float((self.upper - self.lower) / (2 * HALF))

    @property
    def middle(self) -> float:
        return float((self.lower + self.upper) / 2)

    def whole(self, y: Vector) -> Vector:
        clipped = np.clip(y, float(self.lower), float(self.upper))
        return np.asarray(np.clip(np.rint((clipped - self.middle) / self.step), -HALF, HALF))


@dataclass(frozen=True, slots=True)
class Units:
    """The step and the largest whole number of each numeric part of the fixed columns; public."""

    step: dict[Monomial, float]
    most: dict[Monomial, int]


@dataclass(frozen=True, slots=True)
class ResponseSums:
    """Confidential integers: `total(m)` is the sum per cell of the response times the monomial m."""

    codes: Codes
    count: int
    total: Callable[[Monomial], Vector]
    squares: int

    @property
    def plain(self) -> Vector:
        return self.total(Monomial())


def units_of(frame: AnyFrame, public: PublicDesign) -> Units:
    """Steps fine enough to be harmless and coarse enough that sums of all rows are exact; from the design alone."""
    most = 2 ** max(1, min(FINEST, EXACT - HALF.bit_length() - public.rows.bit_length()))
    largest: dict[Monomial, float] = {}
    wanted = monomials(public.design)
    if public.in_memory is not None:
        largest = {m: float(np.abs(public.in_memory.evaluate(m)).max()) for m in wanted}
    elif wanted:
        states = public.learned.states
        asked = [expression(m, states).abs().max().alias(f"m{i}") for i, m in enumerate(wanted)]
        found = collect(frame.lazy().select(*asked), step="range of the public columns").to_pylist()[0]
        largest = {m: float(found[f"m{i}"]) for i, m in enumerate(wanted)}
    return Units({m: (size or 1.0) / most for m, size in largest.items()}, dict.fromkeys(wanted, most))


def confined(frame: AnyFrame, public: PublicDesign, scale: Scale) -> AnyFrame:
    """The frame with a response that is a number within the range in every row, whatever a row holds.

    Only the type of the column can be refused, because it is known without a row.
    """
    return confined_response(with_doubles(frame, measured(public.design.layout)), public.model.response.column, scale)


def confined_response(frame: AnyFrame, column: str, scale: Scale) -> AnyFrame:
    """`confined` for the response alone, whatever the model."""
    import narwhals.stable.v2 as nw

    kind = frame.collect_schema()[column]
    if not kind.is_numeric():
        raise DataError(
            f"The response {column!r} is {kind}.",
            "Bounds and noise are for numbers.",
            "Name a numeric column.",
            about="formula",
        )
    frame, y = with_doubles(frame, [column]), nw.col(column).cast(nw.Float64())
    # Not `is_nan`: DuckDB answers that from the statistics of a Parquet file, which leave NaN out.
    number = nw.when(y.is_null() | ~y.is_finite()).then(nw.lit(scale.middle)).otherwise(y)
    return frame.with_columns(number.clip(float(scale.lower), float(scale.upper)).alias(column))


def response_sums(frame: AnyFrame, public: PublicDesign, units: Units, scale: Scale) -> ResponseSums:
    """The one pass that reads the response."""
    if public.in_memory is not None:
        return _from_rows(frame, public, units, scale)
    return _from_engine(frame, public, units, scale)


def _from_rows(frame: AnyFrame, public: PublicDesign, units: Units, scale: Scale) -> ResponseSums:
    rows, _ = read_rows(frame, public.design.layout, public.learned)
    k = scale.whole(rows.values[public.model.response][:, 0])

    def total(monomial: Monomial) -> Vector:
        if not monomial.atoms:
            return k
        return np.asarray(k * whole_column(rows.evaluate(monomial), units, monomial))

    return ResponseSums(rows.codes, rows.count, total, int((k.astype(np.int64) ** 2).sum()))


def whole_column(x: Vector, units: Units, monomial: Monomial) -> Vector:
    """A public numeric column in whole steps of its own."""
    most = units.most[monomial]
    return np.asarray(np.clip(np.rint(x / units.step[monomial]), -most, most))


def _from_engine(frame: AnyFrame, public: PublicDesign, units: Units, scale: Scale) -> ResponseSums:
    import narwhals.stable.v2 as nw

    coded, wanted = public.design.layout.coded, monomials(public.design)
    y = nw.col(public.model.response.column).cast(nw.Float64())
    k = ((y - scale.middle) / scale.step).round().clip(-HALF, HALF).cast(nw.Int64())
    columns = [k.alias("_k")]
    for i, m in enumerate(wanted):
        most, x = units.most[m], expression(m, public.learned.states) / units.step[m]
        columns.append(x.round().clip(-most, most).cast(nw.Int64()).alias(f"_x{i}"))
    sums = [nw.col("_k").sum().alias("_s"), (nw.col("_k") * nw.col("_k")).sum().alias("_q")]
    sums += [(nw.col("_k") * nw.col(f"_x{i}")).sum().alias(f"_s{i}") for i in range(len(wanted))]
    keys = {f"_c{i}": nw.col(column) for i, column in enumerate(coded)}  # no name of the data is one of a query
    grouped = frame.lazy().select(*columns, **keys)
    grouped = grouped.group_by(*keys).agg(*sums).sort(*keys) if coded else grouped.select(*sums)
    table = collect(grouped, step="sums of the response")
    names = {Monomial(): "_s", **{m: f"_s{i}" for i, m in enumerate(wanted)}}

    def total(monomial: Monomial) -> Vector:
        return np.array([float(value) for value in table[names[monomial]].to_pylist()])

    # Rows are in the order of the public cells, which were sorted by the same columns.
    assert table.num_rows == public.cells.count
    return ResponseSums(public.cells.codes, table.num_rows, total, sum(int(q) for q in table["_q"].to_pylist()))


def summed(sums: ResponseSums, at: Integers, size: int, monomial: Monomial) -> Integers:
    """Sums over the cells of each position; cells at -1 count nowhere."""
    touched = at >= 0
    found = np.bincount(at[touched], sums.total(monomial)[touched], size)
    return np.asarray(np.rint(found), dtype=np.int64)
