"""Changes between quarters: levels of two quarters or more and what changed between them, under one epsilon.

An establishment may grow in every quarter at once, by a share alpha of its workforce then or by one worker. Such steps
fill a box. Rings in the norm whose ball is the hull of that box and its negative have the same noise for a level and
for a change, which has less error than the difference of two releases (docs/proofs/changes.md). Workers need not be
followed: only the counts of every quarter are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from discreet.arrays import Integers, Matrix, Vector
from discreet.data.codes import Codes
from discreet.data.histories import Histories
from discreet.data.schema import Label
from discreet.noise.rings import Rings
from discreet.noise.sampler import draw_within
from discreet.noise.source import SeededSource, Source
from discreet.privacy.losses import Loss
from discreet.privacy.units import Establishments
from discreet.release.account import Account
from discreet.tables.calibration import calibrate
from discreet.tables.cells import cell_statistics
from discreet.tables.expected import SIZES
from discreet.tables.intervals.counts import BY_COUNTS, refuse_level
from discreet.tables.intervals.quantiles import OUTWARD, not_below_zero, plausible
from discreet.tables.mechanisms.defaults import default
from discreet.tables.mechanisms.weak_joint import cylinder_quantile
from discreet.tables.movement.published import (
    LARGEST,
    TOGETHER,
    MovementErrors,
    MovementQuery,
    MovementRelease,
    Noise,
    PreparedMovement,
    Statistic,
    establishments_only,
    mean_by,
    merged_keys,
    no_keys,
    workplace_names,
)
from discreet.tables.sizes import NoisySizes
from discreet.words.errors import Infeasible

if TYPE_CHECKING:
    import pyarrow as pa

PROOF = "docs/proofs/changes.md"
COLUMNS = ("earlier", "later", "change", "rate")
POINTS, FINE = 2**15, 2.0**24  # coarse enough that doubles decide nearly every draw


class QuarterNoise(Protocol):
    """The required kind of mechanism: rings around vectors, with a scale for each count."""

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> Establishments: ...
    @property
    def loss(self) -> Loss: ...
    @property
    def law(self) -> Rings: ...
    @property
    def factor(self) -> float: ...
    @property
    def share(self) -> float: ...
    @property
    def floor(self) -> float: ...
    def constants(self) -> dict[str, Any]: ...
    def scale(self, largest: Vector) -> Vector: ...
    def draw_apart(self, count: Integers, largest: Integers, source: Source) -> Integers: ...
    def half_width(
        self, published: Integers | Vector, sizes: NoisySizes, *, level: float, beside: float | None = None
    ) -> Vector: ...


@dataclass(frozen=True, slots=True)
class ChangeCells:
    """Confidential: jobs of every cell in every quarter, and largest workforces, both of shape (cells, quarters)."""

    keys: pa.Table
    levels: Integers
    largest: Integers


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class ChangeRelease(MovementRelease):
    """Published levels and changes, a row for every cell and every two quarters that follow one another in the list.

    Attributes
    ----------
    quarters : the quarters, in their order.
    levels : published jobs, shape (cells, quarters).
    level_ends, change_ends, rate_ends : ends of intervals of levels, of changes, and of changes over earlier levels.
    """

    effect = "change"

    quarters: tuple[Label, ...]
    levels: Integers
    level_ends: tuple[Matrix, Matrix]
    change_ends: tuple[Matrix, Matrix]
    rate_ends: tuple[Matrix, Matrix]

    @property
    def changes(self) -> Integers:
        """Later less earlier jobs, shape (cells, quarters - 1)."""
        return np.diff(self.levels, axis=1)

    def about(self) -> dict[str, Sequence[Label]]:
        cells = len(self.levels)
        quarters = Codes.of(self.quarters)
        return {"from": [*quarters[:-1]] * cells, "to": [*quarters[1:]] * cells}

    def statistics(self) -> list[Statistic]:
        low, high = self.level_ends
        earlier, later = self.levels[:, :-1], self.levels[:, 1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(earlier > 0, self.changes / earlier, np.nan)
        return [
            Statistic("earlier", earlier.ravel(), (low[:, :-1].ravel(), high[:, :-1].ravel()), True),
            Statistic("later", later.ravel(), (low[:, 1:].ravel(), high[:, 1:].ravel()), True),
            Statistic("change", self.changes.ravel(), _flat(self.change_ends), True),
            Statistic("rate", rate.ravel(), _flat(self.rate_ends), False),
        ]

    def __repr__(self) -> str:
        by = ", ".join(self.keys.column_names) or "no attribute"
        cells = f"{len(self.levels):,} cells by {by}"
        return f"<ChangeRelease of {len(self.quarters)} quarters in {cells}: {self.guarantee.loss}>"


@dataclass(frozen=True, slots=True)
class PreparedChanges(PreparedMovement[ChangeRelease]):
    """Changes with their noise: all that is decided before data are read."""

    noise: QuarterNoise

    @property
    def rings(self) -> Noise:
        return self.noise

    @property
    def dimension(self) -> int:
        return len(self.quarters)

    def expected(self) -> MovementErrors:
        """Expected errors for some sizes of a cell's largest establishment, the same in all quarters."""
        found = expected_errors(self.noise, np.array(SIZES, dtype=np.float64))
        ratio = ratio_to_releases(self.noise)
        note = (
            "Single releases of these quarters are not possible at this price together."
            if ratio is None
            else f"A change has {ratio:.2f} times the error of a difference of single releases at the same total price."
        )
        return MovementErrors(
            {name: dict(zip(SIZES, errors.tolist(), strict=True)) for name, errors in found.items()}, (note,)
        )

    def on_sizes(self, largest: Vector) -> dict[str, float]:
        return mean_by(lambda sizes: expected_errors(self.noise, sizes), largest)

    def read(self, histories: Histories) -> ChangeCells:
        return statistics(histories, self.quarters, self.by)

    def draw(self, cells: ChangeCells, source: Source) -> ChangeRelease:
        """The levels with noise, and noisy sizes where they were paid for."""
        levels = self.noise.draw_apart(cells.levels, cells.largest, source)
        largest = None
        if self.sizes is not None:
            size = cells.largest.max(axis=1)
            largest = self.sizes.draw(size, size, source)
        return self.released(cells.keys, levels, largest)

    def released(self, keys: pa.Table, levels: Integers, largest: Integers | None) -> ChangeRelease:
        ends = self._ends(levels, largest, level=self.level)
        both = self._ends(levels, largest, level=(1 + self.level) / 2)
        pairs = len(self.quarters) - 1
        repeated = keys.take(np.repeat(np.arange(len(levels)), pairs)) if keys.column_names else keys
        return ChangeRelease(
            keys=repeated,
            level=self.level,
            guarantee=self.guarantee,
            parameters=self.details,
            largest=None if largest is None else np.repeat(largest, pairs),
            quarters=self.quarters,
            levels=levels,
            level_ends=ends[0],
            change_ends=ends[1],
            rate_ends=_rate_ends((both[0][0][:, :-1], both[0][1][:, :-1]), both[1]),
        )

    def again(self, table: pa.Table) -> ChangeRelease:
        """The release from earlier and later jobs of a published table."""
        pairs = len(self.quarters) - 1
        earlier, later = (np.array(table[name], dtype=np.int64).reshape(-1, pairs) for name in ("earlier", "later"))
        levels = np.column_stack([earlier[:, :1], later])
        largest = None if self.sizes is None else np.array(table[LARGEST], dtype=np.int64)[::pairs]
        keys = table.select(list(self.by)).take(np.arange(0, len(table), pairs)) if self.by else no_keys()
        return self.released(keys, levels, largest)

    def _ends(
        self, levels: Integers, largest: Integers | None, *, level: float
    ) -> tuple[tuple[Matrix, Matrix], tuple[Matrix, Matrix]]:
        """The ends of levels and of changes, each of probability at least `level`."""
        refuse_level(level)
        noise, miss = self.noise, 1 - level
        counted = miss if self.sizes is None else BY_COUNTS * miss
        counts, law = levels.astype(np.float64), noise.law
        low, high = plausible(counts, noise.factor * cylinder_quantile(law, counted), noise.share, noise.floor)
        # A third for the scale of either quarter, a third for the noise of the change.
        third = cylinder_quantile(law, counted / 3)
        scale = noise.scale(plausible(counts, noise.factor * third, noise.share, noise.floor)[1]) * OUTWARD
        reach = np.maximum(scale[:, :-1], scale[:, 1:]) * third * OUTWARD + 1
        if self.sizes is not None and largest is not None:
            width = noise.half_width(largest, self.sizes, level=1 - (miss - counted), beside=1 - counted)[:, None]
            narrow = not_below_zero(counts - width, counts + width)
            # Both hold together; where they do not meet, noise was beyond both, and the wider one is kept.
            inner = np.maximum(low, narrow[0]), np.minimum(high, narrow[1])
            meet = inner[0] <= inner[1]
            low, high = np.where(meet, inner[0], low), np.where(meet, inner[1], high)
            wide = noise.half_width(largest, self.sizes, level=1 - (miss - counted), beside=1 - counted / 3)[:, None]
            reach = np.minimum(reach, wide + 0.5)
        changes = np.diff(counts, axis=1)
        return (low, high), (np.ceil(changes - reach), np.floor(changes + reach))


@dataclass(frozen=True, slots=True, repr=False)
class ChangeQuery(MovementQuery[ChangeRelease]):
    """Levels and changes of some quarters by workplace attributes."""

    @classmethod
    def of(
        cls, histories: Histories, account: Account, *, quarters: Sequence[Label], by: str | Sequence[str]
    ) -> ChangeQuery:
        """The query for the attributes `by`, which describe establishments."""
        asked = histories.in_order(quarters)
        taken = ("from", "to", *COLUMNS, LARGEST)
        return cls(histories, account, asked, workplace_names(histories.schema, by, what="Changes", taken=taken))

    def _unit(self) -> Establishments:
        return establishments_only(self.account.unit, "Changes")

    def _asked(self) -> dict[str, Any]:
        return {"changes": list(self.quarters)}

    def _prepared(
        self, unit: Establishments, epsilon: Fraction, sizes: NoisySizes | None, level: float, details: dict[str, Any]
    ) -> PreparedChanges:
        k = len(self.quarters)
        noise = cast(QuarterNoise, calibrate("weak-joint", unit=unit, epsilon=epsilon, cells=k))
        guarantee = self._guarantee(unit, noise.loss, sizes, proof=PROOF, about=TOGETHER.format(k))
        return PreparedChanges(self.quarters, self.by, sizes, level, guarantee, details, noise)

    def __repr__(self) -> str:
        return f"Changes of {len(self.quarters)} quarters by {', '.join(self.by) or 'no attribute'}, not released"


def statistics(histories: Histories, quarters: Sequence[Label], by: Sequence[str]) -> ChangeCells:
    """Jobs and the largest workforce of every cell in every quarter, a pass of the engine for each."""
    found = [cell_statistics(histories.at(quarter), workplace_by=by) for quarter in quarters]
    keys, places = merged_keys([each.keys for each in found])
    levels, largest = (np.zeros((len(keys) if by else 1, len(found)), dtype=np.int64) for _ in range(2))
    for i, (each, at) in enumerate(zip(found, places, strict=True)):
        levels[at, i], largest[at, i] = each.counts[:, 0], each.largest_total
    return ChangeCells(keys, levels, largest)


def expected_errors(noise: QuarterNoise, largest: Vector) -> Mapping[str, Vector]:
    """E|published - true| of a level and of a change, where all quarters have the same largest establishment."""
    points, scale = _points(noise.law), noise.scale(np.asarray(largest, dtype=np.float64))
    drawn = [np.rint(points * one) for one in scale.tolist()]
    levels = np.array([np.abs(each).mean() for each in drawn])
    changes = np.array([np.abs(np.diff(each, axis=1)).mean() for each in drawn])
    return {"earlier": levels, "later": levels, "change": changes}


def ratio_to_releases(noise: QuarterNoise, largest: float = 1000.0) -> float | None:
    """The error of a change over that of the difference of two of k single releases with a k-th of epsilon each.

    Single releases have the default noise for one count. The difference of two errors is taken as root two times one
    error, as for normal noise, which is a little too small. None where they are not possible.
    """
    size, share = np.array([largest]), noise.loss.amounts["epsilon"] / noise.law.d
    kind = default(noise.unit, share, cells=1, everyone=True)
    try:
        alone = calibrate(kind, unit=noise.unit, epsilon=share)
    except Infeasible:
        return None
    apart = float(alone.integer_error(size, size)[0]) * math.sqrt(2)
    return float(expected_errors(noise, size)["change"][0]) / apart


def _rate_ends(earlier: tuple[Matrix, Matrix], change: tuple[Matrix, Matrix]) -> tuple[Matrix, Matrix]:
    """The ends of change over earlier jobs where both have theirs; no cell loses more jobs than it had."""
    (least, most), (low, high) = earlier, change
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(low >= 0, low / most, np.where(least > 0, low / least, -1.0))
        upper = np.where(high < 0, high / most, np.where(least > 0, high / least, np.inf))
    return np.maximum(np.nan_to_num(lower, nan=-1.0), -1.0), np.where(np.isnan(upper), np.inf, upper)


def _flat(ends: tuple[Matrix, Matrix]) -> tuple[Vector, Vector]:
    return ends[0].ravel(), ends[1].ravel()


@lru_cache(maxsize=16)
def _points(law: Rings) -> Matrix:
    """Points of the law, always the same: they stand for it in means, and are never added to anything."""
    scale = np.full((POINTS, law.d), FINE)
    return np.asarray(draw_within(law, scale=scale, total=scale.sum(axis=1), source=SeededSource(0)) / FINE)
