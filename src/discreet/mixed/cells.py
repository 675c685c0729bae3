"""One pass over the data: sums of products of the numeric columns within every combination of levels.

A linear mixed model needs nothing else, whatever the number of rows. In an engine the pass is a group-by; in
memory it is counting (`bincount`). Where combinations are as many as rows, each row is its own cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Vector
from discreet.errors import DataError
from discreet.frames import collect
from discreet.mixed.design import Codes, Layout, Levels, Monomial
from discreet.mixed.formula import Factor
from discreet.mixed.rows import Learned, Rows, encode, given_order, missing_message, nonpositive_message, refuse_empty

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

# Counting needs an array as long as the number of possible cells; beyond this many per row it stops paying.
CELLS_PER_ROW = 2.0
ENGINE_FUNCTIONS = ("", "C", "log", "center", "scale")


@dataclass(frozen=True, slots=True)
class Cells:
    """Codes of each cell, and `total(a, b)`: the sum over a cell's rows of the product of two monomials."""

    count: int
    rows: int
    codes: Codes = field(repr=False)
    total: Callable[[Monomial, Monomial], Vector] = field(repr=False)


def cells_of(rows: Rows, layout: Layout, levels: Levels) -> Cells:
    """Sum rows in memory into cells."""
    possible = float(np.prod([float(len(levels[column])) for column in layout.coded]))
    if possible > CELLS_PER_ROW * rows.count:
        return Cells(rows.count, rows.count, rows.codes, lambda a, b: rows.evaluate(a) * rows.evaluate(b))
    cell = np.zeros(rows.count, dtype=np.int64)
    for column in layout.coded:
        cell *= len(levels[column])
        cell += rows.codes[column]
    size = int(possible)
    counts = np.bincount(cell, minlength=size)
    used = np.flatnonzero(counts)
    codes = np.unravel_index(used, [len(levels[column]) for column in layout.coded])

    @cache
    def total(a: Monomial, b: Monomial) -> Vector:
        if not a.atoms and not b.atoms:
            return np.array(counts[used], dtype=np.float64)
        weights = rows.evaluate(a) * rows.evaluate(b) if a.atoms and b.atoms else rows.evaluate(a if a.atoms else b)
        return np.array(np.bincount(cell, weights=weights, minlength=size)[used], dtype=np.float64)

    return Cells(len(used), rows.count, dict(zip(layout.coded, codes, strict=True)), _symmetric(total))


def _symmetric(total: Callable[[Monomial, Monomial], Vector]) -> Callable[[Monomial, Monomial], Vector]:
    """Ask for each unordered pair under one name, so that a cached or stored sum is found either way round."""
    return lambda a, b: total(a, b) if hash(a) <= hash(b) else total(b, a)


def runs_in_engine(layout: Layout) -> bool:
    """Whether a group-by can compute this model's sums: bases such as splines need the rows."""
    return all(factor.function in ENGINE_FUNCTIONS for factor in layout.numeric)


def cells_in_engine(frame: nw.LazyFrame[Any], layout: Layout) -> tuple[Cells, Layout, Learned]:
    """Let the frame's engine compute the cells: one scan to check and centre, one group-by."""
    import narwhals.stable.v2 as nw

    learned_states, means, rows = _survey(frame, layout)
    layout = layout.centred(means)

    def value(factor: Factor) -> nw.Expr:
        x = nw.col(factor.column).cast(nw.Float64())
        if factor.function == "log":
            return x.log()
        if state := learned_states[factor]:
            x = (x - state["centre"]) / state["scale"]
        return x

    names = {monomial: f"_m{index}" for index, monomial in enumerate(layout.monomials) if monomial.atoms}
    columns = []
    for monomial, name in names.items():
        expression = nw.lit(1.0)
        for factor, _ in monomial.atoms:
            expression = expression * value(factor)
        columns.append((expression - monomial.shift).alias(name))
    pairs = {tuple(sorted((a, b))): f"_s{a[2:]}_{b[2:]}" for a in names.values() for b in names.values() if a <= b}
    sums = [(nw.col(a) * nw.col(b)).sum().alias(alias) for (a, b), alias in pairs.items()]
    sums += [nw.col(name).sum().alias(f"_t{name}") for name in names.values()]
    grouped = frame.select(*layout.coded, *columns).group_by(*layout.coded).agg(nw.len().alias("_n"), *sums)
    table = collect(grouped.sort(*layout.coded), step="cells of the design")
    codes, levels = {}, {}
    ordered = given_order(frame, layout.coded)
    for column in layout.coded:
        codes[column], levels[column] = encode(table[column], column, given_order=column in ordered)

    def total(a: Monomial, b: Monomial) -> Vector:
        if not a.atoms and not b.atoms:
            stored = "_n"
        elif a.atoms and b.atoms:
            stored = pairs[tuple(sorted((names[a], names[b])))]
        else:
            stored = f"_t{names[a if a.atoms else b]}"
        return np.asarray(table[stored].to_numpy(), dtype=np.float64)

    return Cells(table.num_rows, rows, codes, total), layout, Learned(levels, learned_states, means)


def _survey(frame: nw.LazyFrame[Any], layout: Layout) -> tuple[dict[Factor, dict[str, Any]], dict[Factor, Vector], int]:
    """Check every column and learn centres and scales in one scan."""
    import narwhals.stable.v2 as nw

    asked = [nw.len().alias("rows")]
    asked += [nw.col(column).is_null().any().alias(f"null {column}") for column in layout.coded]
    for column in dict.fromkeys(factor.column for factor in layout.numeric):
        x = nw.col(column).cast(nw.Float64())
        usable = nw.when(x.is_finite()).then(x)
        asked += [(x.is_null() | ~x.is_finite()).any().alias(f"null {column}")] if column not in layout.coded else []
        asked += [(~x.is_finite()).any().alias(f"infinite {column}"), usable.min().alias(f"least {column}")]
        asked += [usable.mean().alias(f"mean {column}"), usable.std(ddof=1).alias(f"scale {column}")]
    found = collect(frame.select(*asked), step="survey of the columns").to_pylist()[0]
    refuse_empty(found["rows"])
    for name, value in found.items():
        if name.startswith(("null ", "infinite ")) and value:
            raise DataError(missing_message(name.partition(" ")[2]))
    states: dict[Factor, dict[str, Any]] = {}
    means: dict[Factor, Vector] = {}
    for factor in layout.numeric:
        if factor.function == "log" and found[f"least {factor.column}"] <= 0:
            raise DataError(nonpositive_message(factor))
        mean, scale = found[f"mean {factor.column}"], found[f"scale {factor.column}"]
        scaled = factor.function in ("center", "scale")
        states[factor] = {"centre": mean, "scale": scale if factor.function == "scale" else 1.0} if scaled else {}
        # Any value near the mean serves to centre, so the log of the mean stands for the mean of the log.
        means[factor] = np.array([np.log(mean) if factor.function == "log" else 0.0 if scaled else mean])
    return states, means, int(found["rows"])
