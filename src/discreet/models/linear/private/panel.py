"""Which earlier rows of its series every row has: a matter of the public columns `series` and `time` alone.

A row is used if it has all lags of the model. Its response is then in the row itself, and in the used rows that come
later by a lag. A row at the start of its series is used in the second way only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers, Mask
from discreet.data.frames import collect, missing
from discreet.models.formula.rows import encode, incomplete, refuse_empty, values_of
from discreet.words.errors import DataError, Unidentified
from discreet.words.faults import Argument

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    from discreet.data.frames import AnyFrame

FARTHEST = 2**31  # periods between the first and the last


@dataclass(frozen=True, slots=True)
class SeriesRows:
    """Columns of all rows, ordered by series and period; the series of each row and its period."""

    frame: nw.DataFrame[Any] = field(repr=False)
    series: Integers = field(repr=False)
    period: Integers = field(repr=False)


@dataclass(frozen=True, slots=True)
class SeriesPanel:
    """Rows of series in time.

    Attributes
    ----------
    shifts : 0 and the lags, ascending: the places that a response can take in a used row.
    series : the series of every row of the data.
    source : the row of the data whose response stands in each place of each used row, (places, used rows).
    target : the inverse: the used row in which a row of the data has each place, -1 for none, (places, rows).
    """

    shifts: tuple[int, ...]
    series: Integers = field(repr=False)
    source: Integers = field(repr=False)
    target: Integers = field(repr=False)

    @property
    def used(self) -> Integers:
        """The used rows among those of the data."""
        return np.asarray(self.source[0])

    @property
    def places(self) -> Mask:
        """Whether a row of the data has each place anywhere, (rows, places)."""
        return np.asarray(self.target.T >= 0)

    @classmethod
    def of(cls, series: Integers, time: Integers, lags: Sequence[int]) -> SeriesPanel:
        """From the series of each row and its period, a whole number; two rows of a series have different periods."""
        shifts = (0, *sorted(lags))
        wide = int(time.max() - time.min()) + shifts[-1] + 1  # so that what is earlier never lies in another series
        key = series * wide + (time - time.min())
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        found = np.empty((len(shifts), len(key)), dtype=np.int64)
        for place, shift in enumerate(shifts):
            at = np.minimum(np.searchsorted(ordered, key - shift), len(key) - 1)
            found[place] = np.where(ordered[at] == key - shift, order[at], -1)
        used = np.flatnonzero((found >= 0).all(axis=0))
        source = found[:, used]
        target = np.full((len(shifts), len(key)), -1)
        for place in range(len(shifts)):
            target[place, source[place]] = np.arange(len(used))
        return cls(shifts, series, source, target)


def in_time(frame: AnyFrame, columns: Sequence[str], *, series: Sequence[str], time: str) -> SeriesRows:
    """These columns of all rows, in the order of series and periods, which engines do not promise.

    Only `series` and `time` are read; two rows of one series and period are refused.
    """
    schema = frame.collect_schema()
    for column in (*columns, *series, time):
        if column not in schema:
            asked = (*columns, *series, time)
            raise DataError(missing(column, schema.names(), name="the data", asked=asked, about="formula"))
    for column in series:
        if schema[column].is_float() or schema[column].is_decimal() or schema[column].is_nested():
            raise DataError(
                f"Column {column!r} is {schema[column]}, whose values name no series.",
                "Series are named by text, whole numbers, dates or true/false.",
                ("Name other columns as ", Argument("series", list(series)), "."),
                about="series",
            )
    if not schema[time].is_integer():
        raise DataError(
            f"Column {time!r} is {schema[time]}, and lags are counted in periods.",
            "A period is a whole number that grows by one.",
            "Make such a column first, for example 4 * year + quarter.",
            about="time",
        )
    rows = _eager(frame.select(*dict.fromkeys((*columns, *series, time))))
    arrow = rows.select(*dict.fromkeys((*series, time))).to_arrow()
    refuse_empty(arrow.num_rows)
    if arrow[time].null_count:
        raise incomplete(time)
    period = np.asarray(values_of(arrow[time]), dtype=np.int64)
    first, span = int(period.min()), int(period.max()) - int(period.min()) + 1
    if span > FARTHEST:
        raise DataError(
            f"Column {time!r} spans more than {FARTHEST:,} periods.",
            "A period is a whole number that grows by one.",
            "Count periods from a first one.",
            about="time",
        )
    code = np.zeros(len(period), dtype=np.int64)
    for column in series:
        part, levels = encode(arrow[column], column)
        code = np.unique(code * len(levels) + part, return_inverse=True)[1]
    key = code * span + (period - first)
    order = np.argsort(key, kind="stable")
    if not np.diff(key[order]).all():
        raise DataError(
            f"Two rows of one series have the same {time!r}, so their order is not known.",
            f"A series, here {', '.join(series)}, has one row in a period.",
            ("Name all columns that tell series apart as ", Argument("series", [*series, "..."]), "."),
            about="series",
        )
    return SeriesRows(rows[order], code[order], period[order])


def panel_of(rows: SeriesRows, lags: Sequence[int]) -> SeriesPanel:
    """Which rows are used; refuses a panel without any."""
    panel = SeriesPanel.of(rows.series, rows.period, lags)
    if not len(panel.used):
        raise Unidentified(
            f"No row has all earlier rows that the lags {', '.join(map(str, lags))} ask for.",
            "A row is used where each of them is a row of its series.",
            "Use shorter lags or longer series, and check that the time grows by one from period to period.",
            about="formula",
        )
    return panel


def _eager(frame: AnyFrame) -> nw.DataFrame[Any]:
    import narwhals.stable.v2 as nw

    if isinstance(frame, nw.LazyFrame):
        return nw.from_native(collect(frame, step="rows of the series"), eager_only=True)
    return frame
