"""One pass over the data: sums of products of the numeric columns within every combination of levels.

A linear mixed model needs nothing else, whatever the number of rows. In an engine the pass is a group-by; in
memory it is counting (`bincount`). Where combinations are as many as rows, each row is its own cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from discreet.arrays import Vector
from discreet.errors import DataError
from discreet.frames import collect
from discreet.mixed.design import Codes, Layout, Levels, Monomial
from discreet.mixed.formula import Factor
from discreet.mixed.rows import (
    Learned,
    Rows,
    States,
    encode,
    given_order,
    missing_message,
    nonpositive_message,
    refuse_empty,
    values_of,
)

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

# Counting needs an array as long as the number of possible cells; beyond this many per row it stops paying.
CELLS_PER_ROW = 2.0
LEARNS = ("log", "center", "scale")
ENGINE_FUNCTIONS = ("", "C", *LEARNS)
FIRST = 1000  # rows whose means are the guess
FAR = 100.0  # standard deviations between a guess and the mean: four digits of sixteen
Atoms: TypeAlias = tuple[tuple[Factor, int], ...]


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
    """Let the frame's engine compute the cells: one group-by, about a guess of every column's mean.

    Sums about a guess become sums about the mean without a loss of digits, unless the guess is far off: then there is
    a second pass. Functions that learn from the column need its mean first.
    """
    learns = any(factor.function in LEARNS for factor in layout.numeric)
    states, guess = _survey(frame, layout) if learns else ({factor: {} for factor in layout.numeric}, {})
    guess = guess or _first_means(frame, layout)
    found = _pass(frame, layout, states, guess)
    means = {factor: found.mean(((factor, 0),)) for factor in layout.numeric}
    if any(found.is_far(((factor, 0),)) for factor in layout.numeric):
        found = _pass(frame, layout, states, means)
    layout = layout.centred({factor: np.array([mean]) for factor, mean in means.items()})
    codes, levels = {}, {}
    ordered = given_order(frame, layout.coded)
    for i, column in enumerate(layout.coded):
        codes[column], levels[column] = encode(found.table[f"k{i}"], column, given_order=column in ordered)
    learned = Learned(levels, states, {factor: np.array([mean]) for factor, mean in means.items()})
    return Cells(found.table.num_rows, int(found.n.sum()), codes, found.total), layout, learned


@dataclass(frozen=True)
class _Sums:
    """Sums by cell of products of columns, each measured from its `origin`."""

    table: Any
    names: Mapping[Atoms, str]
    origin: Mapping[Atoms, float]

    def stored(self, *names: str) -> Vector:
        return np.asarray(values_of(self.table["_".join(sorted(names)) or "n"]), dtype=np.float64)

    @property
    def n(self) -> Vector:
        return self.stored()

    def mean(self, atoms: Atoms) -> float:
        return self.origin[atoms] + float(self.stored(self.names[atoms]).sum() / self.n.sum())

    def is_far(self, atoms: Atoms) -> bool:
        """Whether the origin is so many standard deviations from the mean that digits were lost."""
        name, rows = self.names[atoms], self.n.sum()
        offset, square = self.stored(name).sum() / rows, self.stored(name, name).sum() / rows
        return bool(offset**2 > FAR**2 * (square - offset**2))

    def total(self, a: Monomial, b: Monomial) -> Vector:
        """The sum of a b, from sums about the origins."""
        known, moved = [], []
        for monomial in (a, b):
            known.append([self.names[monomial.atoms]] if monomial.atoms else [])
            moved.append(self.origin[monomial.atoms] - monomial.shift if monomial.atoms else 0.0)
        found = self.stored(*known[0], *known[1])
        if moved[0] and b.atoms:
            found = found + moved[0] * self.stored(*known[1])
        elif moved[0]:
            return found + moved[0] * self.n
        if moved[1]:
            found = found + moved[1] * (self.stored(*known[0]) + moved[0] * self.n)
        return found


def _pass(frame: nw.LazyFrame[Any], layout: Layout, states: States, guess: Mapping[Factor, float]) -> _Sums:
    import narwhals.stable.v2 as nw

    wanted = dict.fromkeys(m.atoms for m in layout.monomials if m.atoms)
    wanted |= dict.fromkeys(((factor, 0),) for factor in layout.numeric)
    names = {atoms: f"m{i}" for i, atoms in enumerate(wanted)}
    origin = {atoms: 0.0 if atoms[1:] else guess[atoms[0][0]] for atoms in names}
    raw = list(dict.fromkeys(factor.column for factor in layout.numeric))
    columns = []
    for atoms, name in names.items():
        product = nw.lit(1.0)
        for factor, _ in atoms:
            product = product * value_of(factor, states)
        columns.append((product - origin[atoms]).alias(name))
    for i, column in enumerate(raw):
        x = nw.col(column).cast(nw.Float64())
        columns.append((x.is_null() | ~x.is_finite()).cast(nw.Int64()).alias(f"bad{i}"))
    pairs = combinations_with_replacement(sorted(names.values()), 2)
    sums = [(nw.col(a) * nw.col(b)).sum().alias(f"{a}_{b}") for a, b in pairs]
    sums += [nw.col(name).sum() for name in names.values()] + [nw.col(f"bad{i}").max() for i in range(len(raw))]
    keys = {f"k{i}": nw.col(column) for i, column in enumerate(layout.coded)}
    grouped = frame.select(*columns, **keys).group_by(*keys).agg(nw.len().alias("n"), *sums)
    table = collect(grouped.sort(*keys), step="cells of the design")
    refuse_empty(table.num_rows)
    for i, column in enumerate(raw):
        if values_of(table[f"bad{i}"]).any():
            raise DataError(missing_message(column))
    return _Sums(table, names, origin)


def value_of(factor: Factor, states: States) -> nw.Expr:
    """A numeric factor as an expression of the frame's columns."""
    import narwhals.stable.v2 as nw

    x = nw.col(factor.column).cast(nw.Float64())
    if factor.function == "log":
        return x.log()
    state = states[factor]
    return (x - state["centre"]) / state["scale"] if state else x


def _first_means(frame: nw.LazyFrame[Any], layout: Layout) -> dict[Factor, float]:
    """Means of the first rows, which an engine reads without touching the others."""
    import narwhals.stable.v2 as nw

    asked = []
    for i, factor in enumerate(layout.numeric):
        x = nw.col(factor.column).cast(nw.Float64())
        asked.append(nw.when(x.is_finite()).then(x).mean().alias(f"x{i}"))
    found = collect(frame.head(FIRST).select(*asked), step="first rows").to_pylist()[0]
    return {factor: found[f"x{i}"] or 0.0 for i, factor in enumerate(layout.numeric)}


def _survey(frame: nw.LazyFrame[Any], layout: Layout) -> tuple[States, dict[Factor, float]]:
    """What functions learn from their columns, and about where their values lie, in one scan."""
    import narwhals.stable.v2 as nw

    asked = [nw.len().alias("rows")]
    for column in dict.fromkeys(factor.column for factor in layout.numeric):
        x = nw.col(column).cast(nw.Float64())
        usable = nw.when(x.is_finite()).then(x)
        asked += [(x.is_null() | ~x.is_finite()).any().alias(f"bad {column}"), usable.min().alias(f"least {column}")]
        asked += [usable.mean().alias(f"mean {column}"), usable.std(ddof=1).alias(f"scale {column}")]
    found = collect(frame.select(*asked), step="survey of the columns").to_pylist()[0]
    refuse_empty(found["rows"])
    states: dict[Factor, dict[str, Any]] = {}
    means: dict[Factor, float] = {}
    for factor in layout.numeric:
        if found[f"bad {factor.column}"]:
            raise DataError(missing_message(factor.column))
        if factor.function == "log" and found[f"least {factor.column}"] <= 0:
            raise DataError(nonpositive_message(factor))
        mean, scale = found[f"mean {factor.column}"], found[f"scale {factor.column}"]
        scaled = factor.function in ("center", "scale")
        states[factor] = {"centre": mean, "scale": scale if factor.function == "scale" else 1.0} if scaled else {}
        means[factor] = float(np.log(mean)) if factor.function == "log" else 0.0 if scaled else mean
    return states, means
