"""The expected error of a table at every epsilon, on cells whose sizes are public.

Cells are put into classes of nearly equal size, and mechanisms are calibrated at a few epsilons from the least that is
possible, and at more where errors between these are not as interpolated. So thousands of cells cost no more than a few
hundred, and a search over epsilons calibrates nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.privacy.units import Establishments
from discreet.tables.mechanisms.mechanism import Mechanism
from discreet.tables.query import CountQuery
from discreet.words.errors import PrivacyError

if TYPE_CHECKING:
    import pyarrow as pa

FINE = 0.1
"""Sizes of a class differ by no more than this share."""

POINTS, HALVED = 4, 3
"""Epsilons at which a mechanism is calibrated first, and how often the distance of two is halved at most."""

PRECISION = 0.08
"""The share by which an interpolated total may differ from the mechanism's own."""

HALVINGS, SMALLEST = 10, Fraction(1, 1000)
"""The precision of the least epsilon, in logarithms, and the share of the whole below which none is searched for."""


@dataclass(frozen=True, slots=True, eq=False)
class PublicCells:
    """Workplace cells of a table with sizes that are public.

    Attributes
    ----------
    keys : their workplace attributes, one row each.
    jobs, largest : the jobs of each, and the workers of its largest establishment.
    is_bound : whether `largest` is not known and stands for the whole cell.
    many : how many cells each row stands for, where sizes are only typical.
    above : the levels above these attributes in declared hierarchies, as far as they are public.
    """

    keys: pa.Table
    jobs: Vector
    largest: Vector
    is_bound: bool = False
    many: int = 1
    above: pa.Table | None = None

    def level(self, name: str) -> pa.ChunkedArray:
        """An attribute of each cell, or a level above one."""
        return self.keys[name] if self.above is None or name in self.keys.column_names else self.above[name]


def cells_of(table: pa.Table, query: CountQuery, *, is_bound: bool) -> PublicCells | None:
    """The cells of a query in a public table of sizes; None if that lacks an attribute, or has no such cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = [name for name in query.where if name in query.jobs.schema.workplace_attributes]
    if not {*query.workplace_by, *kept} <= {*table.column_names}:
        return None
    for name in kept:
        values = {str(value) for value in query.where[name]}
        table = table.filter(pc.is_in(table[name].cast(pa.string()), value_set=pa.array(sorted(values))))
    if not len(table):
        return None
    names = list(query.workplace_by)
    chains = [chain.levels for chain in query.jobs.schema.hierarchies]
    higher = {level for levels in chains for i, name in enumerate(levels) if name in names for level in levels[i + 1 :]}
    above = sorted((higher & {*table.column_names}) - {*names})
    found = [("jobs", "sum"), ("largest", "max"), *((name, "min") for name in above)]  # a cell has one of each level
    cells = table.group_by(names, use_threads=False).aggregate(found)
    jobs, largest = (np.array(cells[name], dtype=np.float64) for name in ("jobs_sum", "largest_max"))
    levels = cells.select([f"{name}_min" for name in above]).rename_columns(above)
    return PublicCells(cells.select(names), jobs, largest, is_bound, above=levels)


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """The noise of a table's counts by class of cells, as a function of epsilon.

    Attributes
    ----------
    least : below this epsilon no mechanism exists.
    place : the class of each cell.
    weights : for each class, how much an error of one job in every count of its cells adds to the total.
    """

    query: CountQuery
    cells: PublicCells
    least: float
    epsilons: Vector
    means: Matrix
    variances: Matrix
    place: Integers
    weights: Vector

    @classmethod
    def of(
        cls, query: CountQuery, cells: PublicCells, *, epsilon: Fraction, relative: bool, calibrated: Calibrations
    ) -> ErrorCurve:
        """The curve of a table up to an epsilon, which has to be possible; raises `Infeasible` where it is not."""
        place, jobs, largest = _classes(cells)
        share = 1 / np.maximum(jobs_of_a_count(cells, query.levels), 1) if relative else np.ones(len(cells.jobs))
        weights = np.asarray(np.bincount(place, share, len(jobs)) * query.levels * cells.many, dtype=np.float64)
        calibrated.mechanism(query, epsilon)  # refused here, if at all
        least = calibrated.least(query, epsilon)

        def noise(place: float) -> Matrix:
            tried = min(max(Fraction(_epsilon_at(place)).limit_denominator(10**6), least), epsilon)
            found = moments(calibrated.mechanism(query, tried), query, jobs, largest, known=not cells.is_bound)
            return np.maximum(np.stack(found), 1e-12)

        first = [_place_of(e) for e in np.geomspace(float(least), float(epsilon), POINTS)]
        places, found = _refined(first, noise, weights)
        means, variances = np.stack(found, axis=1)
        return cls(query, cells, float(least), np.array([*map(_epsilon_at, places)]), means, variances, place, weights)

    def at(self, epsilon: float) -> tuple[Vector, Vector]:
        """Mean error and variance of a count of each class."""
        x = _place_of(float(np.clip(epsilon, self.epsilons[0], self.epsilons[-1])))
        known = self._places
        right = int(np.clip(np.searchsorted(known, x), 1, len(known) - 1))
        share = (x - known[right - 1]) / (known[right] - known[right - 1])
        mean, variance = (
            np.exp((1 - share) * rows[right - 1] + share * rows[right])
            for rows in (self._log_means, self._log_variances)
        )
        return mean, variance

    @cached_property
    def _places(self) -> Vector:
        return np.array([_place_of(epsilon) for epsilon in self.epsilons])

    @cached_property
    def _log_means(self) -> Matrix:
        return np.log(self.means)

    @cached_property
    def _log_variances(self) -> Matrix:
        return np.log(self.variances)

    def total(self, epsilon: float) -> float:
        """The error of all counts together."""
        return float(self.at(epsilon)[0] @ self.weights)

    @property
    def counts(self) -> int:
        return len(self.cells.jobs) * self.query.levels * self.cells.many


def _place_of(epsilon: float) -> float:
    """ln sinh(epsilon / 2): the log error of a staircase is a line in it, and that of other laws nearly."""
    return epsilon / 2 + math.log(-math.expm1(-epsilon)) - math.log(2)


def _epsilon_at(place: float) -> float:
    return 2 * math.asinh(math.exp(place))


def _refined(
    places: Sequence[float], noise: Callable[[float], Matrix], weights: Vector
) -> tuple[Sequence[float], list[Matrix]]:
    """Places with the noise at each: more of them where the total error half-way is not the interpolated one."""
    known = {place: noise(place) for place in places}
    waiting = [(low, high, HALVED) for low, high in pairwise(places) if low < high]
    while waiting:
        low, high, left = waiting.pop()
        middle = (low + high) / 2
        known[middle] = noise(middle)
        true, told = known[middle][0], np.sqrt(known[low][0] * known[high][0])
        if left > 1 and np.abs(true - told) @ weights > PRECISION * float(true @ weights):
            waiting += [(low, middle, left - 1), (middle, high, left - 1)]
    ordered = sorted(known)
    return ordered, [known[place] for place in ordered]


class Calibrations:
    """Mechanisms of the tables of one workload, calibrated once for each epsilon; nothing is drawn here."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self.asked = dict(asked)
        self._known: dict[tuple[Any, ...], Mechanism | PrivacyError] = {}

    def mechanism(self, query: CountQuery, epsilon: Fraction, name: str | None = None) -> Mechanism:
        """The mechanism of a table with this epsilon; raises `Infeasible` where there is none."""
        key = (query.kinds, epsilon, name)
        if key not in self._known:
            try:
                self._known[key] = query.prepare(epsilon=epsilon, mechanism=name, **self.asked).mechanism
            except PrivacyError as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, PrivacyError):
            raise found
        return found

    def least(self, query: CountQuery, epsilon: Fraction) -> Fraction:
        """About the least epsilon for which the table can be drawn, a little above it.

        Polynomial noise is calibrated at once, and stands in where others cannot be.
        """
        name = None
        if isinstance(query.account.unit, Establishments):
            name = "joint-polynomial" if query.levels > 1 else "polynomial"
        if self.asked.get("delta") is not None or self.asked.get("calibration") == "paper":
            name = None
        low, high = math.log(epsilon * SMALLEST), math.log(epsilon)
        found = epsilon
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            tried = min(Fraction(math.exp(middle)).limit_denominator(10**6), epsilon)
            try:
                self.mechanism(query, tried, name)
                high, found = middle, tried
            except PrivacyError:  # too little for the mechanism, or for the digits of a number
                low = middle
        return found


def jobs_of_a_count(cells: PublicCells, levels: int) -> Vector:
    """A count's jobs, as if a cell's were divided equally."""
    return np.asarray(cells.jobs / levels)


def moments(
    mechanism: Mechanism, query: CountQuery, jobs: Vector, largest: Vector, *, known: bool
) -> tuple[Vector, Vector]:
    """Mean absolute error and variance of a count.

    Two-sided geometric noise of mean m has the variance m^2 + m sqrt(m^2 + 1), which is about right for small cells.
    Elsewhere the variance is that of the law, whose scale is larger than one.
    """
    mean, _ = mechanism.mean_error(query.kinds, jobs=jobs, largest=largest, known=known)
    variance = mean**2 + mean * np.sqrt(mean**2 + 1)
    spread = getattr(mechanism.law, "variance", np.inf)
    if mechanism.additive and not mechanism.by_kinds and np.isfinite(spread):
        wide = mechanism.scale(largest) ** 2 * spread
        # Below this size a table of its own takes the place of the law.
        variance = np.where(largest < getattr(mechanism, "tabled", 0), variance, np.maximum(variance, wide))
    return mean, variance


def _classes(cells: PublicCells) -> tuple[Integers, Vector, Vector]:
    """The class of each cell, and the mean sizes of the classes."""
    bins = [np.floor(np.log(np.maximum(sizes, 0.5)) / np.log1p(FINE)) for sizes in (cells.jobs, cells.largest)]
    small = np.minimum(cells.largest, 40)  # one by one where noise depends on single workers
    _, place = np.unique(np.stack([*bins, np.where(cells.jobs > 0, small, 0)]), axis=1, return_inverse=True)
    place = place.ravel()
    number = np.bincount(place)
    jobs, largest = (np.bincount(place, sizes) / number for sizes in (cells.jobs, cells.largest))
    return place, jobs, largest
