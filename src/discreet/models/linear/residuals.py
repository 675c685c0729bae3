"""Laws of residuals beyond one variance: a variance for each stratum of rows, or autoregression within series.

`Strata` are nlme's varIdent and glmmTMB's dispformula: the residual variance of a row is that of its stratum.
`Autoregression` is nlme's corAR1: residuals d periods apart within a series have correlation rho^d, gaps included.
Given the one before, a residual is rho^d times it plus an independent rest, so the precision is a sum over pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Vector
from discreet.data.frames import collect, missing
from discreet.models.formula.design import Design
from discreet.models.formula.rows import ModelRows, encode, given_order, values_of
from discreet.models.linear.cells import CellSums, cells_of
from discreet.models.linear.gram import gram_of
from discreet.models.linear.pencil import Weights, aligned
from discreet.models.linear.sparse import Gram
from discreet.words.errors import DataError, FitError, Unidentified

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

MOST_GAPS = 200  # different distances in time; each has three Gram matrices


@dataclass(frozen=True)
class Strata:
    """A residual variance for each level of a column.

    Attributes
    ----------
    column, levels : by which variances differ.
    codes : the level of each row.
    counts : rows of each level.
    """

    column: str
    levels: tuple[str, ...]
    codes: Integers = field(repr=False)

    @property
    def words(self) -> str:
        return f"a variance for each level of {self.column}"

    @cached_property
    def counts(self) -> Vector:
        return np.bincount(self.codes, minlength=len(self.levels)).astype(np.float64)

    @property
    def start(self) -> Vector:
        """Logarithms of weights beside that of the first level, which is 1."""
        return np.zeros(len(self.levels) - 1)

    @property
    def curvature(self) -> Vector:
        return self.counts[1:] / 2

    def weights(self, free: Vector) -> Weights:
        found = np.exp(np.append(0.0, free))
        slopes = np.diag(found)[1:]
        return Weights(found, slopes, -float(self.counts[1:] @ free), -self.counts[1:])

    def parts(self, cells: CellSums, rows: ModelRows, design: Design, kept: Integers) -> list[Gram]:
        whole, found = gram_of(cells, design).keep(kept), []
        for level in range(len(self.levels)):
            inside = rows.take(np.flatnonzero(self.codes == level))
            found.append(gram_of(cells_of(inside, design.layout, design.levels), design).keep(kept))
        return [aligned(part, whole) for part in found]

    def applied(self, y: Vector) -> list[Vector]:
        """For each part the responses that its rows meet."""
        return [np.where(self.codes == level, y, 0.0) for level in range(len(self.levels))]

    def of_rows(self, free: Vector) -> Vector:
        """Weights of the rows."""
        return self.weights(free).of_parts[self.codes]

    def variances(self, free: Vector, sigma2: float) -> dict[str, float]:
        own = (sigma2 / self.weights(free).of_parts).tolist()
        return {f"Residual: {level}": value for level, value in zip(self.levels, own, strict=True)}


@dataclass(frozen=True)
class Autoregression:
    """Correlation rho^d of residuals that are d periods apart within a series.

    Attributes
    ----------
    series, time : the columns.
    first : rows with none before them in their series.
    pairs : per distance d, rows and the row before each.
    """

    series: tuple[str, ...]
    time: str
    first: Integers = field(repr=False)
    pairs: dict[int, tuple[Integers, Integers]] = field(repr=False)

    @property
    def words(self) -> str:
        return f"autoregression within {', '.join(self.series)}"

    @property
    def start(self) -> Vector:
        """The inverse hyperbolic tangent of rho."""
        return np.zeros(1)

    @property
    def curvature(self) -> Vector:
        return np.array([2.0 * sum(len(later) for later, _ in self.pairs.values())])

    def weights(self, free: Vector) -> Weights:
        """Of the first rows, then for each distance of squares, products and squares before."""
        rho = float(np.tanh(free[0]))
        by_free = 1 - rho**2
        found, slopes, logdet, slope = [1.0], [0.0], 0.0, 0.0
        for distance, (later, _) in self.pairs.items():
            r, by_rho = rho**distance, distance * rho ** (distance - 1)
            left = 1 - r**2
            found += [1 / left, -r / left, r**2 / left]
            slopes += [2 * r / left**2 * by_rho, -(1 + r**2) / left**2 * by_rho, 2 * r / left**2 * by_rho]
            logdet += len(later) * float(np.log(left))
            slope -= len(later) * 2 * r / left * by_rho
        return Weights(np.array(found), by_free * np.array([slopes]), logdet, np.array([by_free * slope]))

    def parts(self, cells: CellSums, rows: ModelRows, design: Design, kept: Integers) -> list[Gram]:
        self._refuse_split(rows, design)
        whole = gram_of(cells, design).keep(kept)

        def squares(of: ModelRows) -> Gram:
            return gram_of(cells_of(of, design.layout, design.levels), design)

        found = [squares(rows.take(self.first))]
        for later, before in self.pairs.values():
            now, then = rows.take(later), rows.take(before)
            there, back = (gram_of(CellSums.paired(*each), design) for each in ((now, then), (then, now)))
            found += [squares(now), _sum(there, back), squares(then)]
        return [aligned(part.keep(kept), whole) for part in found]

    def applied(self, y: Vector) -> list[Vector]:
        """For each part the responses that its rows meet: their own, or those of the other row of a pair."""

        def met(rows: Integers, responses: Vector) -> Vector:
            found = np.zeros(len(y))
            found[rows] = responses
            return found

        found = [met(self.first, y[self.first])]
        for later, before in self.pairs.values():
            found += [met(later, y[later]), met(later, y[before]) + met(before, y[later]), met(before, y[before])]
        return found

    def _refuse_split(self, rows: ModelRows, design: Design) -> None:
        for random in design.random:
            group = random.grouping.codes(rows.codes)
            if any((group[later] != group[before]).any() for later, before in self.pairs.values()):
                raise FitError(
                    f"A series of {', '.join(self.series)} has rows in several levels of {random.term.name!r}.",
                    "Autoregression is within series that lie inside one level of every grouping factor.",
                    "Name the grouping column among the series, or drop the random term.",
                    about="series",
                )

    def rho(self, free: Vector) -> float:
        return float(np.tanh(free[0]))

    def drawn(self, free: Vector, rng: np.random.Generator, count: int) -> Vector:
        """Residuals of variance one, rows in their order."""
        rho, found = self.rho(free), rng.normal(size=count)
        before, distance = np.full(count, -1), np.zeros(count)
        for d, (later, earlier) in self.pairs.items():
            before[later], distance[later] = earlier, d
        ready = self.first
        after = np.full(count, -1)
        after[before[before >= 0]] = np.flatnonzero(before >= 0)
        while len(ready := after[ready][after[ready] >= 0]):  # one step along all series together
            r = rho ** distance[ready]
            found[ready] = r * found[before[ready]] + np.sqrt(1 - r**2) * found[ready]
        return found

    def variances(self, free: Vector, sigma2: float) -> dict[str, float]:
        return {"Residual": sigma2}


ResidualLaw = Strata | Autoregression


@dataclass(frozen=True)
class Fitted:
    """A law of residuals at its estimates.

    Attributes
    ----------
    law, free : the law and its free parameters.
    parts : the Gram matrices that it weighs.
    squares : the response's sum of squares without weights.
    """

    law: ResidualLaw
    free: Vector
    parts: tuple[Gram, ...] = field(repr=False)
    squares: float

    def variances(self, sigma2: float) -> dict[str, float]:
        return self.law.variances(self.free, sigma2)

    @property
    def rho(self) -> float | None:
        return self.law.rho(self.free) if isinstance(self.law, Autoregression) else None

    @property
    def asked(self) -> dict[str, Any]:
        """The arguments that ask for this law."""
        if isinstance(self.law, Strata):
            return {"residual_by": self.law.column}
        return {"series": list(self.law.series), "time": self.law.time}


def _sum(one: Gram, other: Gram) -> Gram:
    """The sum of two Gram matrices of the same pairs of rows."""
    crossed = {pair: replace(met, blocks=met.blocks + other.crossed[pair].blocks) for pair, met in one.crossed.items()}
    ZZ, Zxy = zip(one.ZZ, other.ZZ, strict=True), zip(one.Zxy, other.Zxy, strict=True)
    return Gram(tuple(a + b for a, b in ZZ), crossed, tuple(a + b for a, b in Zxy), one.joint + other.joint, one.rows)


def read_strata(frame: AnyFrame, column: Any, rows: int) -> Strata:
    """The strata of a column, each with at least two rows."""
    codes, levels = _codes(frame, column, "residual_by", rows)
    if len(levels) < 2 or np.bincount(codes).min() < 2:
        raise Unidentified(
            f"residual_by={column!r} has one level, or a level with a single row.",
            "Variances are compared between levels of two rows or more.",
            "Leave it out, or join levels.",
            about="residual_by",
        )
    return Strata(column, levels, codes)


def read_series(frame: AnyFrame, series: Any, time: Any, rows: int) -> Autoregression:
    """Rows in the order of time within each series."""
    names = (series,) if isinstance(series, str) else tuple(series or ())
    if not names or not isinstance(time, str):
        raise FitError(
            f"series={series!r} and time={time!r} do not give the order of the residuals.",
            "Autoregression has columns that name a series, and one that counts its periods.",
            'Use series=["county", "industry"], time="quarter".',
            about="series" if not names else "time",
        )
    place = np.zeros(rows, dtype=np.int64)
    for name in names:
        codes, levels = _codes(frame, name, "series", rows)
        place = np.unique(place * len(levels) + codes, return_inverse=True)[1]
    period = _periods(frame, time, rows)
    order = np.lexsort((period, place))
    same = place[order][1:] == place[order][:-1]
    gap = np.diff(period[order])
    if (gap[same] == 0).any():
        raise DataError(
            f"A series of {', '.join(names)} has several rows in one period of {time!r}.",
            "A series has one row in each period.",
            "Name the columns that distinguish its rows in series.",
            about="series",
        )
    later, before, gaps = order[1:][same], order[:-1][same], gap[same]
    distances = np.unique(gaps)
    if not 0 < len(distances) <= MOST_GAPS:
        raise Unidentified(
            f"Rows of the series are {len(distances)} different numbers of periods apart.",
            f"Between 1 and {MOST_GAPS} are possible, where series have two rows or more.",
            "Count periods by ones, or name coarser series.",
            about="time",
        )
    pairs = {int(d): (later[gaps == d], before[gaps == d]) for d in distances}
    return Autoregression(names, time, np.setdiff1d(order, later), pairs)


def _column(frame: AnyFrame, name: Any, about: str) -> Any:
    import narwhals.stable.v2 as nw

    schema = frame.collect_schema()
    if name not in schema.names():
        raise DataError(missing(str(name), schema.names(), name="the data", about=about))
    column = frame.select(nw.col(name))
    held = collect(column, step=about) if isinstance(column, nw.LazyFrame) else column
    return held[name].to_arrow() if isinstance(held, nw.DataFrame) else held[name]


def _codes(frame: AnyFrame, name: Any, about: str, rows: int) -> tuple[Integers, tuple[str, ...]]:
    found = encode(_column(frame, name, about), name, given_order=bool(given_order(frame, [name])))
    assert len(found[0]) == rows
    return found


def _periods(frame: AnyFrame, time: str, rows: int) -> Integers:
    column = _column(frame, time, "time")
    import pyarrow as pa

    numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    values = (
        np.asarray(values_of(column), dtype=np.float64) if numeric and not column.null_count else np.array([np.nan])
    )
    if not np.isfinite(values).all() or (values != np.rint(values)).any():
        raise DataError(
            f"time={time!r} is not a column of whole numbers in every row.",
            "It counts periods: 1, 2, 3, with gaps where periods are missing.",
            "Number the periods first.",
            about="time",
        )
    return values.astype(np.int64)


def strata_of(law: Strata, data: AnyFrame) -> Integers:
    """The strata of new rows."""
    column = _column(data, law.column, "data")
    codes, levels = encode(column, law.column)
    at = {level: k for k, level in enumerate(law.levels)}
    if unknown := [level for level in levels if level not in at]:
        raise DataError(
            f"Column {law.column!r} of the new data has {len(unknown)} levels that the fit never saw.",
            "Their residual variance is not known.",
            "Drop those rows.",
            about="data",
        )
    return np.array([at[level] for level in levels], dtype=np.int64)[codes]
