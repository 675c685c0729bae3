"""Advice on a budget: which tables to draw and what share of epsilon each gets, so that the total error is least.

The error of a table falls with its epsilon, so the best split is found by handing out thousandths of epsilon where they
take off most. If a table is a sum of another, it may be added up and not drawn: from the drawn one with the fewest
counts, whose share then serves both. If all are made to agree (`tables.consistency`), a count is a weighted mean of its
own draw and of the sum of the finest draws in it. Expected errors of such means follow from the variances of their
parts. Only public sizes and constants enter.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.privacy.losses import shown
from discreet.tables.budget.allotment import handed_out, hull_gains, polished
from discreet.tables.budget.errors import ErrorCurve, PublicCells, jobs_of_a_count
from discreet.words.cases import case_of
from discreet.words.errors import Infeasible

Measure: TypeAlias = Literal["absolute", "relative"]

UNITS, MOST_UNITS = 1_000, 10_000
"""Parts in which epsilon is handed out: thousandths, or less for many tables."""

MANY = 5
"""Up to this number of tables every choice is tried; beyond it, only some."""

PLACES = 60
"""Shares at which the error of a table is computed; between, it is interpolated."""

NORMAL = math.sqrt(2 / math.pi)
"""E|Z| of a standard normal variable."""


@dataclass(frozen=True, slots=True)
class BudgetChoice:
    """One way to spend epsilon.

    Attributes
    ----------
    measured : the tables that are drawn, by their place.
    split : the share of epsilon of each of these.
    errors : the mean expected error of a count, for every table that was asked for.
    total : the error of all counts together, absolute or relative.
    """

    measured: tuple[int, ...]
    split: tuple[Fraction, ...]
    errors: tuple[float, ...]
    total: float


@dataclass(frozen=True, slots=True)
class BudgetAdvice:
    """What to do with epsilon.

    Attributes
    ----------
    tables : the attributes of each table.
    choices : ways to spend epsilon, the best first; among them all tables drawn, where that is possible.
    equal : all tables drawn with equal shares; None where that is impossible.
    is_bound : whether errors are upper bounds, because largest establishments are not public.
    """

    tables: tuple[tuple[str, ...], ...]
    epsilon: Fraction
    measure: Measure
    add_up: bool
    choices: tuple[BudgetChoice, ...]
    equal: BudgetChoice | None
    is_bound: bool

    def __repr__(self) -> str:
        return f"<BudgetAdvice for {len(self.tables)} tables at epsilon={shown(self.epsilon)}>"

    @property
    def best(self) -> BudgetChoice:
        """The choice of the least total error."""
        return self.choices[0]

    @property
    def split(self) -> tuple[Fraction, ...]:
        """The shares of the tables that the best choice draws."""
        return self.best.split

    @property
    def measured(self) -> tuple[tuple[str, ...], ...]:
        """The tables that the best choice draws, for `measure`."""
        return tuple(self.tables[i] for i in self.best.measured)

    def added_up(self, choice: BudgetChoice) -> list[tuple[str, ...]]:
        """The tables that a choice does not draw."""
        return [by for i, by in enumerate(self.tables) if i not in choice.measured]

    def __str__(self) -> str:
        what = "jobs" if case_of(self.measure, {"absolute": True, "relative": False}) else "relative errors"
        lines = [f"Of epsilon={shown(self.epsilon)}, for the least {self.measure} error of all counts together:"]
        for choice in self.choices:
            parts = zip(choice.measured, choice.split, strict=True)
            drawn = "; ".join(f"{_named(self.tables[i])} {share}" for i, share in parts)
            derived = [_named(by) for by in self.added_up(choice)]
            rest = f"; added up: {', '.join(derived)}" if derived else ""
            lines.append(f"- {choice.total:,.4g} {what}: {drawn}{rest}")
        if self.equal is not None:
            lines.append(f"- {self.equal.total:,.4g} {what}: equal shares for all {len(self.tables)} tables")
        errors = "; ".join(
            f"{_named(by)} {error:,.3g}" for by, error in zip(self.tables, self.best.errors, strict=True)
        )
        lines.append(f"Mean error of a count by the first: {errors}.")
        lines += ["Largest establishments are not public: errors are of cells with one each."] * self.is_bound
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The advice as plain values, ready for JSON."""
        return {
            "epsilon": str(self.epsilon),
            "error": self.measure,
            "add_up": self.add_up,
            "is_upper_bound": self.is_bound,
            "choices": [self._plain(choice) for choice in self.choices],
            "equal_split": None if self.equal is None else self._plain(self.equal),
        }

    def _plain(self, choice: BudgetChoice) -> dict[str, Any]:
        return {
            "measure": [list(self.tables[i]) for i in choice.measured],
            "split": [str(share) for share in choice.split],
            "total_error": choice.total,
            "mean_error_of_a_count": list(choice.errors),
        }


def _named(by: Sequence[str]) -> str:
    return " x ".join(by) or "total"


def advised(
    curves: Mapping[int, ErrorCurve],
    *,
    tables: Sequence[tuple[str, ...]],
    epsilon: Fraction,
    measure: Measure,
    add_up: bool,
    finest: int | None,
    above: Sequence[Sequence[int]],
) -> BudgetAdvice:
    """The best splits of epsilon, over all tables and over those worth drawing.

    `above` has for each table those of which it is a sum. With `add_up` all are sums of the `finest`.
    """
    workload = _Workloads([curves[i] for i in range(len(tables))], float(epsilon), measure, add_up, finest, above)
    every = tuple(range(len(tables)))
    possible = _choices(workload)
    if not possible:
        raise workload.infeasible([i for i in every if not above[i]], epsilon)
    ordered = sorted(possible, key=lambda choice: choice.total)
    choices = tuple(choice for i, choice in enumerate(ordered) if i < MANY or choice.measured == every)
    equal = workload.equal(every)
    is_bound = any(curve.cells.is_bound for curve in curves.values())
    return BudgetAdvice(tuple(tables), epsilon, measure, add_up, choices, equal, is_bound)


def _choices(workload: _Workloads) -> list[BudgetChoice]:
    """The tables that are sums of no other, with any of the others; of many, with those that help, one by one."""
    every = tuple(range(len(workload.curves)))
    needed = tuple(i for i in every if not workload.above[i])
    others = [i for i in every if workload.above[i]]
    if len(others) < MANY:
        some = [chosen for n in range(len(others) + 1) for chosen in combinations(others, n)]
        found = [workload.best(tuple(sorted((*needed, *chosen)))) for chosen in some]
        return [choice for choice in found if choice is not None]
    few = sorted(others, key=lambda i: workload.curves[i].counts)[: 2 * MANY]
    best = workload.best(needed)
    kept = [best, workload.best(every)]
    while best is not None:
        more = [workload.best(tuple(sorted((*best.measured, i)))) for i in few if i not in best.measured]
        kept += more
        better = [choice for choice in more if choice is not None and choice.total < best.total]
        best = min(better, key=lambda choice: choice.total) if better else None
    return list({choice.measured: choice for choice in kept if choice is not None}.values())


class _Workloads:
    """Totals of a workload's errors, by what is drawn and with which shares."""

    def __init__(
        self,
        curves: Sequence[ErrorCurve],
        epsilon: float,
        measure: Measure,
        add_up: bool,
        finest: int | None,
        above: Sequence[Sequence[int]],
    ) -> None:
        self.curves, self.epsilon, self.add_up, self.finest, self.above = curves, epsilon, add_up, finest, above
        self.units = min(max(UNITS, 50 * len(curves)), MOST_UNITS)
        self.relative = case_of(measure, {"relative": True, "absolute": False})
        self._kept: dict[tuple[int, int], Any] = {}
        self._taken_off: dict[tuple[int, tuple[int, ...]], Vector] = {}
        self._by_units: dict[tuple[int, int], Vector] = {}
        self._parts: dict[tuple[int, int], Integers] = {}

    def least(self, chosen: Sequence[int]) -> list[int]:
        """The fewest units that each table needs."""
        needed = (self.units * self.curves[i].least / self.epsilon for i in chosen)
        return [max(math.ceil(units - 1e-9), 1) for units in needed]

    def best(self, chosen: tuple[int, ...]) -> BudgetChoice | None:
        """The best split for the tables that are drawn; None where epsilon does not suffice."""
        least = self.least(chosen)
        if sum(least) > self.units:
            return None
        units = self._greedy(chosen, least)
        if len(chosen) > 1 and self.add_up:
            units = polished(units, least, lambda units: self.value(chosen, units))
        return self._choice(chosen, units)

    def equal(self, chosen: tuple[int, ...]) -> BudgetChoice | None:
        """All with equal shares."""
        share = Fraction(1, len(chosen))
        if any(self.curves[i].least > self.epsilon * float(share) for i in chosen):
            return None
        return self._choice(chosen, [self.units / len(chosen)] * len(chosen), (share,) * len(chosen))

    def infeasible(self, chosen: Sequence[int], epsilon: Fraction) -> Infeasible:
        needed = sum(self.curves[i].least for i in chosen)
        return Infeasible(
            f"epsilon={shown(epsilon)} does not suffice for {len(chosen)} tables.",
            f"Their mechanisms need at least {needed:.4g} together.",
            "Raise epsilon, or leave tables out.",
            about="epsilon",
        )

    def _greedy(self, chosen: Sequence[int], least: Sequence[int]) -> list[float]:
        """Units one by one to the table whose error they lower most, on the convex hull of its error."""
        served: dict[int, list[int]] = {i: [i] for i in chosen}
        for i in [] if self.add_up else range(len(self.curves)):
            if i not in served:
                served[self._source(i, chosen)].append(i)
        slopes = [self._gains(i, tuple(served[i]), start) for i, start in zip(chosen, least, strict=True)]
        return handed_out(slopes, least, self.units)

    def _gains(self, of: int, served: tuple[int, ...], start: int) -> Vector:
        """The reduction of the error by each unit from `start` on, of a table that is drawn and of those it serves."""
        if (of, served) not in self._taken_off:
            at = np.arange(start, self.units + 1)
            places = np.unique(np.geomspace(start, self.units, PLACES).round())
            totals = np.sum([self._totals(of, i, places) for i in served], axis=0)
            self._taken_off[of, served] = hull_gains(np.interp(at, places, totals))
        return self._taken_off[of, served]

    def _totals(self, of: int, i: int, places: Vector) -> Vector:
        """The error of a table that is drawn, or added up from one that is, by the units of that one."""
        if (of, i) not in self._by_units:
            curve, epsilons = self.curves[of], self.epsilon * places / self.units
            if of == i:
                totals = [curve.total(e) for e in epsilons]
            else:
                weights = self._weights(self.curves[i])
                totals = [float(self._combined(i, {of: curve.at(e)}) @ weights) for e in epsilons]
            self._by_units[of, i] = np.array(totals)
        return self._by_units[of, i]

    def value(self, chosen: Sequence[int], units: Sequence[float]) -> float:
        """The total error of a split."""
        return sum(float(table.error @ table.weights) for table in self._errors(chosen, units))

    def _choice(
        self, chosen: tuple[int, ...], units: Sequence[float], split: tuple[Fraction, ...] | None = None
    ) -> BudgetChoice:
        found = self._errors(chosen, units)
        means = tuple(float(np.average(table.error, weights=table.number)) for table in found)
        shares = split or tuple(Fraction(round(u), self.units) for u in units)
        return BudgetChoice(chosen, shares, means, self.value(chosen, units))

    def _errors(self, chosen: Sequence[int], units: Sequence[float]) -> list[_Errors]:
        """The expected errors of every table, drawn or not."""
        share = dict(zip(chosen, units, strict=True))
        at = {i: self.curves[i].at(self.epsilon * share[i] / self.units) for i in chosen}
        found = []
        for i, curve in enumerate(self.curves):
            if i == self.finest and self.add_up and len(share) > 1:
                found.append(_Errors(self._improved(at), self._weights(curve), np.ones(len(curve.place))))
            elif i in share and (not self.add_up or i == self.finest):
                found.append(_Errors(at[i][0], curve.weights, np.bincount(curve.place).astype(np.float64)))
            else:
                found.append(_Errors(self._combined(i, at), self._weights(curve), np.ones(len(curve.place))))
        return found

    def _weights(self, curve: ErrorCurve) -> Vector:
        """The effect on the total of an error of one job in every count of each cell."""
        levels = curve.query.levels
        counts = jobs_of_a_count(curve.cells, levels)
        return np.asarray(levels / np.maximum(counts, 1) if self.relative else np.full(len(counts), float(levels)))

    def _source(self, i: int, drawn: Collection[int]) -> int:
        """The drawn table of which another is a sum: the finest if all agree, else that with the fewest counts."""
        if self.add_up:
            assert self.finest is not None
            return self.finest
        return min((j for j in self.above[i] if j in drawn), key=lambda j: (self.curves[j].counts, j))

    def _combined(self, i: int, at: Mapping[int, tuple[Vector, Vector]]) -> Vector:
        """The error of a count by cell: a sum of finer draws, or a weighted mean of that and the count's own draw.

        The weight is one number for the whole table, as in `consistency.trust`; other tables would only help.
        """
        of = self._source(i, at)
        mean, variance = at[of]
        parts = np.column_stack([variance, variance**2, np.sqrt(variance) * mean])
        sums, squares, shape = (self._members(of, i) @ parts).T
        shape = shape / sums
        if i not in at:
            return _mean_error(sums, squares, shape)
        own_mean, own = (row[self.curves[i].place] for row in at[i])
        kappa = sums.sum() / (sums.sum() + own.sum())
        one, other = kappa**2 * own, (1 - kappa) ** 2 * sums
        both = one + other
        shape = (one * own_mean / np.sqrt(own) + other * shape) / both
        return _mean_error(both, one**2 + (1 - kappa) ** 4 * squares, shape)

    def _improved(self, at: Mapping[int, tuple[Vector, Vector]]) -> Vector:
        """The error of a finest count by cell, after it was moved to agree with the one table that helps it most.

        A count with variance v takes its share w = v / V of the gap between a sum and its own draw.
        """
        assert self.finest is not None
        fine = self.curves[self.finest]
        mean, variance = (row[fine.place] for row in at[self.finest])
        least = variance
        for i in at.keys() - {self.finest}:
            group = self._groups(self.finest, i)
            sums = (self._members(self.finest, i) @ at[self.finest][1])[group]
            own = at[i][1][self.curves[i].place][group]
            kappa = sums.sum() / (sums.sum() + own.sum())
            share = variance / sums
            least = np.minimum(least, variance * (1 - 2 * share * kappa) + (share * kappa) ** 2 * (sums + own))
        return np.asarray(mean * np.sqrt(least / variance))

    def _groups(self, of: int, i: int) -> Integers:
        """For each cell of a finer table, the cell of another that contains it."""
        if (of, i) not in self._parts:
            self._parts[of, i] = _groups(self.curves[of].cells, self.curves[i].cells)
        return self._parts[of, i]

    def _members(self, of: int, i: int) -> Any:
        """The number of finer counts of each class in a count of each cell: a sparse matrix."""
        from scipy import sparse

        if (of, i) not in self._kept:
            fine, coarse = self.curves[of], self.curves[i]
            each = np.full(len(fine.place), fine.query.levels / coarse.query.levels)
            shape = (len(coarse.place), len(fine.weights))
            self._kept[of, i] = sparse.csr_matrix((each, (self._groups(of, i), fine.place)), shape=shape)
        return self._kept[of, i]


@dataclass(frozen=True, slots=True, eq=False)
class _Errors:
    """Expected errors of counts, what each adds to the total, and how many cells it is of."""

    error: Vector
    weights: Vector
    number: Vector


def _groups(fine: PublicCells, coarse: PublicCells) -> Integers:
    """For each fine cell, the coarse cell that contains it."""
    names = coarse.keys.column_names
    if not names:
        return np.zeros(len(fine.jobs), dtype=np.int64)
    rows = {key: i for i, key in enumerate(zip(*(coarse.keys[name].to_pylist() for name in names), strict=True))}
    keys = zip(*(fine.level(name).to_pylist() for name in names), strict=True)
    return np.array([rows[key] for key in keys], dtype=np.int64)


def _mean_error(variance: Vector, fourth: Vector, shape: Vector) -> Vector:
    """E|S| of sums of independent noise: `shape` is E|Z| / sd of a part, that of a normal variable for many parts."""
    alike = np.minimum(fourth / variance**2, 1.0)  # 1 for a single part, 1/n for n equal ones
    return np.asarray(np.sqrt(variance) * (NORMAL + (shape - NORMAL) * alike))
