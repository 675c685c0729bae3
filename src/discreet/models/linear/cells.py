"""One pass over the data: sums of products of the numeric columns within every combination of levels.

A linear mixed model needs nothing else, whatever the number of rows. In an engine the pass is a group-by; in memory it
is a count (`bincount`). If there are as many combinations as rows, each row is its own cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.frames import collect
from discreet.models.formula.design import Codes, Layout, Levels, Monomial
from discreet.models.formula.formula import Factor, Function
from discreet.models.formula.functions import refuse_reach
from discreet.models.formula.rows import (
    DISTANT,
    Learned,
    ModelRows,
    States,
    encode,
    given_order,
    incomplete,
    nonpositive,
    refuse_empty,
    values_of,
)
from discreet.words.cases import case_of, unknown

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

# Counting needs an array as long as the number of possible cells; beyond this many per row it stops paying.
CELLS_PER_ROW = 2.0
LEARNS: dict[Function, bool | None] = {
    **dict.fromkeys(("", "C"), False),
    **dict.fromkeys(("log", "center", "scale"), True),
    **dict.fromkeys(("poly", "bs", "ns", "log_size", "size_class", "lag"), None),
}
"""Whether a function needs its column's mean; None for those that no engine computes."""
FIRST = 1000  # rows whose means are the guess
ROUNDING = 1e-13  # of the sums about an origin, what is left of them about another is rounding
FAR = 100.0  # standard deviations between a guess and the mean: four digits of sixteen


@dataclass(frozen=True, slots=True)
class CellSums:
    """Codes of each cell, and `total(a, b)`: the sum over a cell's rows of the product of two monomials.

    `others` are the codes of what the second is evaluated at, where that is another row. `whole` are the rows
    themselves where they are in memory, and `weights` how often each counts.
    """

    count: int
    rows: int
    codes: Codes = field(repr=False)
    total: Callable[[Monomial, Monomial], Vector] = field(repr=False)
    others: Codes | None = field(default=None, repr=False)
    whole: ModelRows | None = field(default=None, repr=False)
    weights: Vector | None = field(default=None, repr=False)

    @classmethod
    def of_rows(cls, rows: ModelRows) -> CellSums:
        """Each row its own cell."""
        return cls(rows.count, rows.count, rows.codes, rows.product, whole=rows)

    @classmethod
    def weighted(cls, rows: ModelRows, weights: Vector) -> CellSums:
        """Each row its own cell, counted as often as its weight says."""
        total = _Weighted(rows, weights).total
        return cls(rows.count, rows.count, rows.codes, total, whole=rows, weights=weights)

    @classmethod
    def paired(cls, rows: ModelRows, others: ModelRows) -> CellSums:
        """Products of each row with the other row beside it."""
        return cls(rows.count, rows.count, rows.codes, lambda a, b: rows.evaluate(a) * others.evaluate(b), others.codes)


def cells_of(rows: ModelRows, layout: Layout, levels: Levels) -> CellSums:
    """Sum rows in memory into cells."""
    possible = float(np.prod([float(len(levels[column])) for column in layout.coded]))
    if possible > CELLS_PER_ROW * rows.count:
        return CellSums.of_rows(rows)
    cell = np.zeros(rows.count, dtype=np.int64)
    for column in layout.coded:
        cell *= len(levels[column])
        cell += rows.codes[column]
    size = int(possible)
    counts = np.bincount(cell, minlength=size)
    used = np.flatnonzero(counts)
    codes = np.unravel_index(used, [len(levels[column]) for column in layout.coded])
    sums = _Counted(rows, cell, counts, used)
    return CellSums(len(used), rows.count, dict(zip(layout.coded, codes, strict=True)), sums.total, whole=rows)


@dataclass(frozen=True)
class _Weighted:
    """Products at weighted rows; a class, so that a fit can be stored."""

    rows: ModelRows
    weights: Vector

    def total(self, a: Monomial, b: Monomial) -> Vector:
        return self.rows.product(a, b) * self.weights


@dataclass(frozen=True)
class _Counted:
    """Sums of rows in memory by cell, each computed once."""

    rows: ModelRows
    cell: Integers
    counts: Integers
    used: Integers
    known: dict[frozenset[Monomial], Vector] = field(default_factory=dict)

    def total(self, a: Monomial, b: Monomial) -> Vector:
        pair = frozenset((a, b))
        if pair not in self.known:
            self.known[pair] = self._sum(a, b)
        return self.known[pair]

    def _sum(self, a: Monomial, b: Monomial) -> Vector:
        if not a.atoms and not b.atoms:
            return np.array(self.counts[self.used], dtype=np.float64)
        weights = [self.rows.evaluate(monomial) for monomial in (a, b) if monomial.atoms]
        product = weights[0] if len(weights) == 1 else weights[0] * weights[1]
        return np.array(np.bincount(self.cell, product, len(self.counts))[self.used], dtype=np.float64)


def runs_in_engine(layout: Layout) -> bool:
    """Whether a group-by can compute this model's sums: bases such as splines need the rows."""
    return all(case_of(factor.function, LEARNS) is not None for factor in layout.numeric)


def cells_in_engine(frame: nw.LazyFrame[Any], layout: Layout) -> tuple[CellSums, Layout, Learned]:
    """Let the frame's engine compute the cells: one group-by, about a guess of every column's mean.

    Sums about a guess become sums about the mean without a loss of digits, unless the guess is far off: then there is
    a second pass. Functions that learn from the column, and products of columns, need its mean first.
    """
    learns = any(case_of(factor.function, LEARNS) for factor in layout.numeric)
    multiplies = any(len(monomial.atoms) > 1 for monomial in layout.monomials)
    distant: frozenset[Factor] = frozenset()
    if learns or multiplies:
        states, means, distant = _survey(frame, layout)
    else:
        states, means = {factor: {} for factor in layout.numeric}, _first_means(frame, layout)
    found = _pass(frame, layout.centred(_vectors(means), distant), states, means)
    if not multiplies:
        means = {factor: found.mean(factor) for factor in layout.numeric}
        distant = frozenset(f for f in layout.numeric if abs(means[f]) > DISTANT * found.deviation(f))
        if any(found.is_far(factor) for factor in layout.numeric):
            found = _pass(frame, layout, states, means)
    layout = layout.centred(_vectors(means), distant)
    codes, levels = {}, {}
    ordered = given_order(frame, layout.coded)
    for i, column in enumerate(layout.coded):
        codes[column], levels[column] = encode(found.keys[i], column, given_order=column in ordered)
    learned = Learned(levels, states, _vectors(means), distant)
    return CellSums(found.rows, int(found.n.sum()), codes, found.total), layout, learned


def cells_again(frame: nw.LazyFrame[Any], layout: Layout, cells: CellSums, learned: Learned) -> CellSums:
    """The same cells with the sums that another layout of the same columns needs."""
    found = _pass(frame, layout, learned.states, {factor: float(mean[0]) for factor, mean in learned.means.items()})
    return replace(cells, total=found.total)


def _vectors(means: Mapping[Factor, float]) -> dict[Factor, Vector]:
    return {factor: np.array([mean]) for factor, mean in means.items()}


@dataclass(frozen=True)
class _Sums:
    """Sums by cell of products of monomials; those of one factor are measured from its `origin`."""

    sums: Mapping[str, Vector]
    names: Mapping[Monomial, str]
    origin: Mapping[Factor, float]
    keys: tuple[Any, ...]

    def stored(self, *names: str) -> Vector:
        return self.sums["_".join(sorted(names)) or "n"]

    @property
    def n(self) -> Vector:
        return self.stored()

    @property
    def rows(self) -> int:
        return len(self.n)

    def mean(self, factor: Factor) -> float:
        return self.origin[factor] + float(self.stored(self.names[_alone(factor)]).sum() / self.n.sum())

    def deviation(self, factor: Factor) -> float:
        name, rows = self.names[_alone(factor)], self.n.sum()
        offset, square = self.stored(name).sum() / rows, self.stored(name, name).sum() / rows
        return float(np.sqrt(max(square - offset**2, 0.0)))

    def is_far(self, factor: Factor) -> bool:
        """Whether the origin is so many standard deviations from the mean that digits were lost."""
        return abs(self.mean(factor) - self.origin[factor]) > FAR * self.deviation(factor)

    def total(self, a: Monomial, b: Monomial) -> Vector:
        """The sum of a b, from sums about the origins; one that rounding cannot tell from zero is zero.

        A column that is zero in all rows of a level would else be a column of rounding, with a coefficient.
        """
        known, moved = [], []
        for monomial in (a, b):
            known.append([self.names[_measured(monomial)]] if monomial.atoms else [])
            moved.append(self.origin[monomial.atoms[0][0]] - monomial.shift if _moves(monomial) else 0.0)
        parts = [self.stored(*known[0], *known[1])]
        if moved[0]:
            parts.append(moved[0] * (self.stored(*known[1]) if b.atoms else self.n))
        if moved[1]:
            parts += [moved[1] * self.stored(*known[0]), moved[1] * moved[0] * self.n]
        found = np.sum(parts, axis=0)
        return np.where(np.abs(found) <= ROUNDING * np.sum(np.abs(parts), axis=0), 0.0, found)


def _pass(frame: nw.LazyFrame[Any], layout: Layout, states: States, guess: Mapping[Factor, float]) -> _Sums:
    import narwhals.stable.v2 as nw

    wanted = dict.fromkeys(_measured(m) for m in layout.monomials if m.atoms)
    wanted |= dict.fromkeys(_alone(factor) for factor in layout.numeric)
    names = {monomial: f"m{i}" for i, monomial in enumerate(wanted)}
    raw = list(dict.fromkeys(factor.column for factor in layout.numeric))
    columns = []
    for monomial, name in names.items():
        start = guess[monomial.atoms[0][0]] if _moves(monomial) else 0.0
        columns.append((expression(monomial, states) - start).alias(name))
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
            raise incomplete(column, layout.model)
    found = {
        name: np.asarray(values_of(table[name]), dtype=np.float64) for name in table.column_names if name[0] in "mn"
    }
    return _Sums(found, names, dict(guess), tuple(table[name] for name in keys))


def _alone(factor: Factor) -> Monomial:
    return Monomial(((factor, 0),))


def _moves(monomial: Monomial) -> bool:
    """Whether a change of origin follows from sums: one factor, with nothing subtracted."""
    return len(monomial.atoms) == 1 and not monomial.less


def _measured(monomial: Monomial) -> Monomial:
    """The monomial whose sums serve this one."""
    return Monomial(monomial.atoms) if _moves(monomial) else monomial


def expression(monomial: Monomial, states: States) -> nw.Expr:
    """A monomial as an expression of the frame's columns."""
    import narwhals.stable.v2 as nw

    product = nw.lit(1.0)
    for (factor, _), shift in zip(monomial.atoms, monomial.shifts or (0.0,) * len(monomial.atoms), strict=True):
        product = product * (value_of(factor, states) - shift)
    for share, other in monomial.less:
        product = product - share * expression(other, states)
    return product


def value_of(factor: Factor, states: States) -> nw.Expr:
    """A numeric factor as an expression of the frame's columns."""
    import narwhals.stable.v2 as nw

    x = nw.col(factor.column).cast(nw.Float64())
    match factor.function:
        case "log":
            return x.log()
        case "":
            return x
        case "center" | "scale":
            state = states[factor]
            scaled: nw.Expr = (x - state["centre"]) / state["scale"]
            return scaled
        case _:
            raise unknown(factor.function, ("", "log", "center", "scale"))


def _first_means(frame: nw.LazyFrame[Any], layout: Layout) -> dict[Factor, float]:
    """Means of the first rows, which an engine reads without touching the others."""
    import narwhals.stable.v2 as nw

    asked = []
    for i, factor in enumerate(layout.numeric):
        x = nw.col(factor.column).cast(nw.Float64())
        asked.append(nw.when(x.is_finite()).then(x).mean().alias(f"x{i}"))
    found = collect(frame.head(FIRST).select(*asked), step="first rows").to_pylist()[0]
    return {factor: found[f"x{i}"] or 0.0 for i, factor in enumerate(layout.numeric)}


def _survey(frame: nw.LazyFrame[Any], layout: Layout) -> tuple[States, dict[Factor, float], frozenset[Factor]]:
    """In one scan: what functions learn from their columns, where their values lie, and which of them lie far off."""
    import narwhals.stable.v2 as nw

    asked = [nw.len().alias("rows")]
    for column in dict.fromkeys(factor.column for factor in layout.numeric):
        x = nw.col(column).cast(nw.Float64())
        usable = nw.when(x.is_finite()).then(x)
        asked += [(x.is_null() | ~x.is_finite()).any().alias(f"bad {column}"), usable.min().alias(f"least {column}")]
        asked += [usable.mean().alias(f"mean {column}"), usable.std(ddof=1).alias(f"scale {column}")]
        asked += [usable.max().alias(f"most {column}")]
    found = collect(frame.select(*asked), step="survey of the columns").to_pylist()[0]
    refuse_empty(found["rows"])
    states: dict[Factor, dict[str, Any]] = {}
    means: dict[Factor, float] = {}
    distant: set[Factor] = set()
    for factor in layout.numeric:
        if found[f"bad {factor.column}"]:
            raise incomplete(factor.column, layout.model)
        least, most = found[f"least {factor.column}"], found[f"most {factor.column}"]
        mean, scale = found[f"mean {factor.column}"], found[f"scale {factor.column}"]
        states[factor], means[factor] = {}, 0.0
        match factor.function:
            case "":
                means[factor] = mean
                if scale is not None and abs(mean) > DISTANT * scale:
                    distant.add(factor)
            case "log":
                if least <= 0:
                    raise nonpositive(factor)
                means[factor] = float(np.log(mean))
            case "center":
                states[factor] = {"centre": mean, "scale": 1.0}
            case "scale":
                refuse_reach(factor, least, most)
                states[factor] = {"centre": mean, "scale": scale}
            case _:
                raise unknown(factor.function, ("", "log", "center", "scale"))
    return states, means, frozenset(distant)
