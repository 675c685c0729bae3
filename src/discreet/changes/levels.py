"""Levels of a panel: regions, cities and tracts ranked together, with alarms that do not repeat each other.

The sum of all series of a region is a series too, and so is that of a city. When a tract jumps its city and its region
seem to jump, and when a region moves all its tracts do. A list takes the most alarming node first. The unusual part of
that node's forecast change is then spread over its tracts in proportion to their size and subtracted from all other
nodes. Nodes above it keep the rest of their change, and nodes below it keep their own part. The next node is the most
alarming by what remains; a node above or below a listed one must have half of its change left. The chance of each is
that of its own series, because the series is what will be looked at.

A node that is set aside, because its forecast change is the return from a jump, speaks for its tracts, city and region
before any node is listed. A tract explains all of its forecast change. A sum explains at most its jump, and what its
own nodes have not explained falls to its other tracts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.changes import tidy
from discreet.changes.alarms import ListLength
from discreet.changes.panel import TidyPanel, told
from discreet.changes.scored import Gold, Scored
from discreet.changes.standards import is_relative
from discreet.words.cases import case_of
from discreet.words.errors import DataError

BETWEEN = " / "
OWN = 0.5
"""The share of its change that a node above or below a listed one must keep to be listed too."""

RECENT = 12
"""Periods whose mean is the size of a series."""


@dataclass(frozen=True, slots=True)
class Branches:
    """A panel with the sums of its series.

    Attributes
    ----------
    panel : series and sums, in order of their names; a sum is called after its path, such as "North / Leeds".
    leaves : the rows of the series themselves.
    above : the rows of the sums that each of these is part of, from the top down, shape (leaves, levels); -1 where a
        sum would be of one series alone.
    levels : the columns that name the sums.
    """

    panel: TidyPanel
    leaves: Integers
    above: Integers
    levels: tuple[str, ...]

    def sums(self, of_leaves: Vector) -> Vector:
        """Sums of what leaves have, for every row of the panel."""
        found = np.zeros(len(self.panel))
        found[self.leaves] = of_leaves
        for column in self.above.T:
            there = column >= 0
            found += np.bincount(column[there], weights=of_leaves[there], minlength=len(found))
        return found

    def means(self, of_leaves: Matrix) -> Matrix:
        """Means over the leaves of every row of the panel, in each period over those that have a number there."""
        known = np.isfinite(of_leaves)
        total, number = np.zeros((2, len(self.panel), of_leaves.shape[1]))
        total[self.leaves], number[self.leaves] = np.where(known, of_leaves, 0.0), known
        for column in self.above.T:
            there = column >= 0
            np.add.at(total, column[there], np.where(known, of_leaves, 0.0)[there])
            np.add.at(number, column[there], known[there])
        with np.errstate(invalid="ignore"):
            return np.asarray(total / number)

    def level_of(self, row: int) -> str:
        """The kind of a row of the panel: the name of a level, or "series"."""
        places = np.flatnonzero((self.above == row).any(axis=0))
        return self.levels[int(places[0])] if len(places) else "series"

    def within(self, row: int) -> np.ndarray:
        """Which leaves a row of the panel consists of."""
        return np.asarray((self.leaves == row) | (self.above == row).any(axis=1))


def branches(data: Any, panel: TidyPanel, levels: Sequence[str]) -> Branches:
    """The panel with a sum for every value of `levels`, columns of the same table from the top down.

    A series that has not begun, or has ended, adds nothing to a sum, and in a period that it lacks its value before.
    Series that are set aside have no part in it.
    """
    if not levels or len(set(levels)) < len(levels) or {"series", "t", "value"} & set(levels):
        raise DataError(
            f"Levels {list(levels)} are no hierarchy.",
            "A hierarchy lists columns of the panel from the top down, apart from series, period and value.",
            "Give for example ['region', 'city'].",
            about="hierarchy",
        )
    read = tidy.read(data, ("series", *levels), what="panel")
    names, place = read["series"].known, read["series"].code
    paths = np.full((len(names), len(levels)), -1)
    for k, level in enumerate(levels):
        code = read[level].code
        paths[place, k] = code
        torn = np.unique(place[paths[place, k] != code])
        if len(torn):
            raise DataError(
                f"{len(torn):,} series are in more than one {level}: {told(names[torn])}.",
                "A series belongs to one of each level in all periods.",
                "Correct these rows, or leave the level out.",
                about="hierarchy",
            )
    _refuse_upside_down(paths, levels)
    own = paths[np.searchsorted(names, panel.names)]
    values = np.where(np.isfinite(panel.values), panel.values, 0.0)
    if panel.holes.any():
        source = np.maximum.accumulate(np.where(panel.holes, 0, np.arange(values.shape[1])), axis=1)
        values = np.take_along_axis(values, source, axis=1)
    sums: list[Matrix] = []
    titles: list[str] = []
    member = np.full(own.shape, -1)
    for k in range(len(levels)):
        path, which, count = np.unique(own[:, : k + 1], axis=0, return_inverse=True, return_counts=True)
        which, new = which.ravel(), np.flatnonzero(count > 1)
        summed = np.zeros((len(path), values.shape[1]))
        np.add.at(summed, which, values)
        taken = [BETWEEN.join(str(read[levels[j]].known[code]) for j, code in enumerate(row)) for row in path[new]]
        number = np.full(len(path), -1)
        number[new] = len(titles) + np.arange(len(new))
        member[:, k] = number[which]
        sums.append(summed[new])
        titles += taken
    everything = np.concatenate([panel.names.astype(str), np.array(titles, dtype=str)])
    if len(np.unique(everything)) < len(everything):
        known, count = np.unique(everything, return_counts=True)
        raise DataError(
            f"Series and levels have the same name: {told(known[count > 1])}.",
            "A sum is called after its values of the levels.",
            "Give series or levels other names.",
            about="hierarchy",
        )
    order = np.argsort(everything, kind="stable")
    rank = np.argsort(order)
    stacked: Matrix = np.concatenate([panel.values, *sums])
    ends = len(panel.periods) - 1
    first = np.concatenate([panel.first, np.zeros(len(titles), np.int64)])
    last = np.concatenate([panel.last, np.full(len(titles), ends)])
    whole = TidyPanel(everything[order], panel.periods, stacked[order], first[order], last[order], panel.set_aside)
    above = np.where(member >= 0, rank[np.maximum(member, 0) + len(panel)], -1)
    return Branches(whole, rank[: len(panel)], above, tuple(levels))


def _refuse_upside_down(paths: Integers, levels: Sequence[str]) -> None:
    """Each value above that lies in one value below, of which there are fewer, is the finer level of the two."""
    for k, (above, below) in enumerate(pairwise(levels)):
        pairs = np.unique(paths[:, k : k + 2], axis=0)
        upper, lower = (len(np.unique(pairs[:, side])) for side in (0, 1))
        if lower < upper == len(pairs):
            raise DataError(
                f"Each {above} lies in one {below}, and there are fewer of these: {lower:,} of {upper:,}.",
                "A hierarchy lists columns of the panel from the top down.",
                f"Give {below!r} before {above!r}.",
                about="hierarchy",
            )


def branching(
    data: Any, panel: TidyPanel, levels: Sequence[str], columns: Mapping[str, str] | None, line: ListLength
) -> Branches:
    """The same for a list, which must have a capacity."""
    if line.capacity is None:
        raise DataError(
            "Levels were given without a capacity, and a list by costs counts every node.",
            "A list without repetitions has a length.",
            "Give a capacity, such as 20.",
            about="capacity",
        )
    return branches(tidy.renamed(data, columns or {}, what="panel"), panel, levels)


@dataclass(frozen=True, slots=True)
class Unrepeated:
    """Picks cases of one period so that no alarm repeats another, nor a return; `every` has these too."""

    tree: Branches
    gold: Gold
    past: Scored
    coming: Scored
    every: Scored

    def __call__(self, past: bool, method: int, places: Integers, most: int) -> Integers:
        """At most `most` of the cases at `places`, the most alarming by what remains first.

        It ends early where nothing alarming is left.
        """
        scored = self.past if past else self.coming
        cases, base = scored.cases, scored.base.select(places)
        spread = base.change_sd if is_relative(self.gold.policy) else base.level_sd
        excess = _excess(scored, self.gold, method, places)
        rows = cases.row[places]
        begin = int(cases.origin[places[0]]) + 1 if len(places) else 0
        recent = self.tree.panel.values[self.tree.leaves, max(begin - RECENT, 0) : begin]
        size = np.abs(np.where(np.isfinite(recent), recent, 0.0)).mean(axis=1) + 1e-12
        explained, returned = self._returns(method, begin - 1, size)
        listed: list[int] = []
        touched = self.tree.sums(returned.astype(float)) > 0
        free = np.ones(len(places), bool)
        turned = {"decline": np.negative, "increase": np.positive, "both": np.abs}[self.gold.direction]
        while len(listed) < min(most, len(places)):
            left = excess - self.tree.sums(explained)[rows]
            own = ~touched[rows] | (left * np.sign(excess) >= OWN * np.abs(excess))
            score = np.where(free & own, turned(left) / spread, -np.inf)
            best = int(np.argmax(score))
            if not score[best] > 0:
                break
            inside = self.tree.within(int(rows[best]))
            explained[inside] += left[best] * size[inside] / size[inside].sum()
            beside = self._around(rows[listed], inside)
            if beside is not None and beside.any():
                explained[beside] -= left[best] * size[beside] / size[beside].sum()
            touched |= self.tree.sums(inside.astype(float)) > 0
            listed.append(best)
            free[best] = False
        return np.asarray(places[listed], np.int64)

    def _returns(self, method: int, origin: int, size: Vector) -> tuple[Vector, Mask]:
        """The change of each leaf that nodes explain which are set aside as returns, and the leaves of such nodes."""
        tree, places = self.tree, self._aside(origin)
        leaves = len(tree.leaves)
        sign = case_of(self.gold.direction, {"decline": -1.0, "increase": 1.0, "both": 0.0})
        explained, returned = np.zeros(leaves), np.zeros(leaves, bool)
        excess, jump = np.zeros((2, len(tree.panel)))
        rows, base = self.every.cases.row[places], self.every.base.select(places)
        excess[rows] = np.maximum(sign * _excess(self.every, self.gold, method, places), 0.0)
        jump[rows] = -sign * (base.previous - base.change_mean)
        explained[:], returned[:] = excess[tree.leaves], np.isin(tree.leaves, rows)
        for above in tree.above.T[::-1]:
            mine = (above >= 0) & np.isin(above, rows)
            free = mine & ~returned
            rest = np.minimum(excess, jump) - tree.sums(explained)
            weight = np.bincount(above[free], size[free], len(tree.panel))
            explained[free] += np.maximum(rest[above[free]], 0.0) * size[free] / weight[above[free]]
            returned |= mine
        return sign * explained, returned

    def _aside(self, origin: int) -> Integers:
        """The places of cases from an origin that are set aside as returns."""
        return np.flatnonzero(self.every.impossible & (self.every.cases.origin == origin))

    def _around(self, listed: Integers, inside: np.ndarray) -> np.ndarray | None:
        """The other leaves of the nearest listed node above, whose change has been explained already."""
        nearest: np.ndarray | None = None
        for each in listed:
            leaves = self.tree.within(int(each))
            if (
                leaves.sum() > inside.sum()
                and leaves[inside].all()
                and (nearest is None or leaves.sum() < nearest.sum())
            ):
                nearest = leaves
        return None if nearest is None else nearest & ~inside

    def repeats(self, rows: list[dict[str, Any]], capacity: int) -> None:
        """Add to the rows of a report the level of each, and what it would repeat on a plain list."""
        row_of = {str(name): k for k, name in enumerate(self.tree.panel.names)}
        aside = self._aside(int(self.coming.cases.origin[0])) if len(rows) else ()
        spoken = [row["series"] for row in rows if row["flag"]] + [str(self.every.cases.series[k]) for k in aside]
        listed = [(name, self.tree.within(row_of[name])) for name in spoken]
        least = sorted((row["score"] for row in rows), reverse=True)[: max(capacity, 1)][-1]
        for row in rows:
            row["level"] = self.tree.level_of(row_of[row["series"]])
            row["repeats"] = None
            if not row["flag"] and row["score"] >= least:
                own = self.tree.within(row_of[row["series"]])
                near = [(abs(int(other.sum()) - int(own.sum())), name) for name, other in listed if (other & own).any()]
                row["repeats"] = min(near)[1] if near else None


def _excess(scored: Scored, gold: Gold, method: int, places: Integers) -> Vector:
    """Forecast changes beyond the usual, in units of the series."""
    base = scored.base.select(places)
    centre = base.last + base.change_mean if is_relative(gold.policy) else base.level_mean
    return np.asarray(scored.cases.forecasts[method, places] - centre)
