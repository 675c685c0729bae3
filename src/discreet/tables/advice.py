"""Advice on a budget: which tables to draw and what share of epsilon each gets, so that the total error is least.

The error of a table falls with its epsilon, so the best split is found by handing out thousandths of epsilon where they
take off most. If tables are parts of one another, fewer may be drawn and the others added up. If all are made to agree
(`tables.consistency`), a count is a weighted mean of its own draw and of the sum of the finest draws in it. Expected
errors of such means follow from the variances of their parts. Only public sizes and constants enter.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.errors import Infeasible
from discreet.privacy.losses import shown
from discreet.tables.foresight import ErrorCurve, PublicCells, jobs_of_a_count

Measure: TypeAlias = Literal["absolute", "relative"]

UNITS, MOST_UNITS = 1_000, 10_000
"""Parts in which epsilon is handed out: thousandths, or less for many tables."""

MANY = 5
"""Up to this number of tables every choice is tried; beyond it, only some."""

PLACES = 150
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
        what = "jobs" if self.measure == "absolute" else "relative errors"
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
) -> BudgetAdvice:
    """The best splits of epsilon, over all tables and, where there is a `finest` table, over those worth drawing."""
    workload = _Workloads([curves[i] for i in range(len(tables))], float(epsilon), measure, add_up, finest)
    every = tuple(range(len(tables)))
    found = {chosen: workload.best(chosen) for chosen in _choices(workload, every, finest)}
    possible = [choice for choice in found.values() if choice is not None]
    if not possible:
        raise workload.infeasible(every, epsilon)
    ordered = sorted(possible, key=lambda choice: choice.total)
    choices = tuple(choice for i, choice in enumerate(ordered) if i < MANY or choice.measured == every)
    equal = workload.equal(every)
    is_bound = any(curve.cells.is_bound for curve in curves.values())
    return BudgetAdvice(tuple(tables), epsilon, measure, add_up, choices, equal, is_bound)


def _choices(workload: _Workloads, every: tuple[int, ...], finest: int | None) -> list[tuple[int, ...]]:
    """The tables to draw: all; or, if all others are sums of one table, that one with any of the others."""
    if finest is None or len(every) == 1:
        return [every]
    others = [i for i in every if i != finest]
    if len(every) <= MANY:
        some = [chosen for n in range(len(others) + 1) for chosen in combinations(others, n)]
        return [tuple(sorted((finest, *chosen))) for chosen in some]
    few = sorted(others, key=lambda i: workload.curves[i].counts)[: 2 * MANY]
    return [(finest,), *(tuple(sorted((finest, i))) for i in few), every]


class _Workloads:
    """Totals of a workload's errors, by what is drawn and with which shares."""

    def __init__(
        self, curves: Sequence[ErrorCurve], epsilon: float, measure: Measure, add_up: bool, finest: int | None
    ) -> None:
        self.curves, self.epsilon, self.add_up, self.finest = curves, epsilon, add_up, finest
        self.units = min(max(UNITS, 50 * len(curves)), MOST_UNITS)
        self.relative = measure == "relative"
        self._kept: dict[int, Any] = {}
        self._taken_off: dict[int, Vector] = {}
        self._parts: dict[int, Integers] = {}

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
            units = _polished(units, least, lambda units: self.value(chosen, units))
        return self._choice(chosen, units)

    def equal(self, chosen: tuple[int, ...]) -> BudgetChoice | None:
        """All with equal shares."""
        share = Fraction(1, len(chosen))
        if any(self.curves[i].least > self.epsilon * float(share) for i in chosen):
            return None
        return self._choice(chosen, [self.units / len(chosen)] * len(chosen), (share,) * len(chosen))

    def infeasible(self, chosen: Sequence[int], epsilon: Fraction) -> Infeasible:
        needed = sum(self.curves[i].least for i in chosen)
        fewer = " draw the finest alone," if self.finest is not None else ""
        return Infeasible(
            f"epsilon={shown(epsilon)} does not suffice for {len(chosen)} tables.",
            f"Their mechanisms need at least {needed:.4g} together.",
            f"Raise epsilon,{fewer} or leave tables out.",
            about="epsilon",
        )

    def _greedy(self, chosen: Sequence[int], least: Sequence[int]) -> list[float]:
        """Units one by one to the table whose error they lower most, on the convex hull of its error."""
        slopes = [self._gains(i, start) for i, start in zip(chosen, least, strict=True)]
        units = list(least)
        queue = [(-gain[0], k) for k, gain in enumerate(slopes) if len(gain)]
        heapq.heapify(queue)
        for _ in range(self.units - sum(least)):
            _, k = heapq.heappop(queue)
            units[k] += 1
            done = units[k] - least[k]
            if done < len(slopes[k]):
                heapq.heappush(queue, (-slopes[k][done], k))
        return [float(u) for u in units]

    def _gains(self, i: int, start: int) -> Vector:
        """The reduction of the error by each unit from `start` on, for a table that is drawn alone."""
        if i not in self._taken_off:
            at = np.arange(start, self.units + 1)
            places = np.unique(np.geomspace(start, self.units, PLACES).round())
            totals = [self.curves[i].total(self.epsilon * place / self.units) for place in places]
            self._taken_off[i] = _hull_gains(np.interp(at, places, totals))
        return self._taken_off[i]

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

    def _combined(self, i: int, at: Mapping[int, tuple[Vector, Vector]]) -> Vector:
        """The error of a count by cell: a sum of the finest draws, or a weighted mean of that and the count's own draw.

        The weight is one number for the whole table, as in `consistency.trust`; other tables would only help.
        """
        assert self.finest is not None
        mean, variance = at[self.finest]
        parts = np.column_stack([variance, variance**2, np.sqrt(variance) * mean])
        sums, squares, shape = (self._members(i) @ parts).T
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
            group = self._groups(i)
            sums = (self._members(i) @ at[self.finest][1])[group]
            own = at[i][1][self.curves[i].place][group]
            kappa = sums.sum() / (sums.sum() + own.sum())
            share = variance / sums
            least = np.minimum(least, variance * (1 - 2 * share * kappa) + (share * kappa) ** 2 * (sums + own))
        return np.asarray(mean * np.sqrt(least / variance))

    def _groups(self, i: int) -> Integers:
        """For each fine cell, the cell of another table that contains it."""
        if i not in self._parts:
            assert self.finest is not None
            self._parts[i] = _groups(self.curves[self.finest].cells, self.curves[i].cells)
        return self._parts[i]

    def _members(self, i: int) -> Any:
        """The number of fine counts of each class in a count of each cell: a sparse matrix."""
        from scipy import sparse

        if i not in self._kept:
            assert self.finest is not None
            fine, coarse = self.curves[self.finest], self.curves[i]
            each = np.full(len(fine.place), fine.query.levels / coarse.query.levels)
            shape = (len(coarse.place), len(fine.weights))
            self._kept[i] = sparse.csr_matrix((each, (self._groups(i), fine.place)), shape=shape)
        return self._kept[i]


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


def _hull_gains(totals: Vector) -> Vector:
    """The reduction by each further unit, on the lower convex hull of totals: never more than by the one before."""
    hull = [0]
    for i in range(1, len(totals)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (totals[b] - totals[a]) * (i - a) <= (totals[i] - totals[a]) * (b - a):
                break
            hull.pop()
        hull.append(i)
    return -np.diff(np.interp(np.arange(len(totals)), hull, totals[hull]))


def _polished(units: Sequence[float], least: Sequence[int], value: Callable[[Sequence[float]], float]) -> list[float]:
    """Move units from one table to another as long as that helps, in decreasing steps."""
    best, here = list(units), value(units)
    step = 256
    while step:
        moved = False
        for giver, taker in permutations(range(len(best)), 2):
            tried = list(best)
            tried[giver] -= step
            tried[taker] += step
            if tried[giver] >= least[giver] and (there := value(tried)) < here:
                best, here, moved = tried, there, True
        step = step if moved else step // 2
    return best
