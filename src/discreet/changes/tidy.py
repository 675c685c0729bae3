"""Tidy tables: which column is what, and columns as arrays.

A panel has the columns `series`, `t`, `value`; forecasts have `series`, `method`, `t`, `forecast`. Other usual names
(`OTHER`) are understood, and forecasts may be wide, with one column per method, as forecasting packages write them.
Names and labels are read once each, however many rows mention them. Nothing is judged here.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Integers, Mask, Matrix, Vector
from discreet.changes.calendar import calendar
from discreet.changes.numerals import read_numbers
from discreet.data import frames
from discreet.words.errors import DataError, concerning
from discreet.words.faults import Spelled

OTHER = {
    "series": ("unique_id", "series_id", "item_id", "id"),
    "t": ("ds", "date", "timestamp", "period", "time", "month"),
    "value": ("y", "target", "actual"),
    "forecast": ("yhat", "y_hat", "mean", "prediction"),
    "method": ("model",),
    "horizon": ("h",),
    "origin": ("cutoff",),
}
"""Names under which other programs write our columns; ours come first."""

SHOWN = 12
"""Columns that a message lists."""

OTHER_NAMES = Spelled(
    "Rename its columns.",
    command="Say which they are with --series, --time, --value, --method-column or --forecast.",
    form="Write their names under 'Columns of these files'.",
)

NAMED = r" ?(Z|[A-Z]{3,4}|[A-Za-z]+/[A-Za-z_/]+)"  # a zone
ISO = re.compile(rf"\d{{4}}([-/.])\d\d\1\d\d([T ]\d\d:\d\d(:\d\d(\.\d{{1,6}})?)?({NAMED}|[+-]\d\d:?\d\d)?)?")
ZONE = re.compile(r"([A-Za-z]|:\d\d.*[+-]\d\d:?\d\d)$")
WHOLE = re.compile(r"0|[1-9]\d{0,17}")
SLASHED = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})(?:[ T](\d\d?)(:\d\d(?::\d\d)?)(?: ?([AaPp])[Mm])?)?")
TWO_DIGITS = re.compile(r"\d{1,2}[/.-]\d{1,2}[/.-]\d\d(?: .*)?")
MONTH_YEAR = re.compile(r"(?P<part>0?[1-9]|1[0-2])[/.-](?P<year>\d{4})")
YEAR_MONTH = re.compile(r"(?P<year>\d{4})(?:[ -]?[Mm]|/)(?P<part>0?[1-9]|1[0-2])")
QUARTER_YEAR = re.compile(r"(?:[Qq](?P<part>[1-4])|(?P<plain>[1-4])[Qq])[ /.-]?(?P<year>\d{4})")
SPREADSHEET, LATEST = np.datetime64("1899-12-30"), 73_050
"""The day from which spreadsheets count days, and the number of a day in 2100; that of 1970 is the first taken."""

NAMED_MONTHS = ("%b %Y", "%B %Y", "%Y %b", "%b-%Y", "%Y-%b", "%b-%y")
NAMED_DAYS = ("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%d. %B %Y", "%B %d, %Y", "%b %d, %Y")
WORDS_FIRST = re.compile(r"(?!\d{4}\b).*(?<!\d)(?:19|20|21)\d\d(?!\d).*|\d{1,2}[ .-]*[^\W\d]{3,}[ .-]*\d\d")
"""A year behind something else, as in 1. März 2024 and 1-Mai-24: words that differ are then sorted before years."""

LIMIT = re.compile(r"(.+)-(lo|hi)-(\d+(?:\.\d+)?)")
"""Limits of a method's interval as statsforecast names them: AutoETS-lo-90."""


@dataclass(frozen=True, slots=True)
class Labels:
    """A column with few distinct entries: those in order, and the place of each row's among them."""

    known: np.ndarray
    code: Integers


def renamed(data: Any, names: Mapping[str, str], *, what: str) -> Any:
    """A table in which columns have our names; `names` says what ours are called in it, such as {"value": "sales"}."""
    import narwhals.stable.v2 as nw

    if not names:
        return data
    with concerning(what):
        _refuse_periods(data, what)
        frame = frames.open_frame(data, name=what)
        present = frame.collect_schema().names()
        frames.refuse(frames.missing(theirs, present, name=what) for theirs in names.values() if theirs not in present)
        kept = [name for name in present if name not in names and name not in names.values()]
        return frame.select(*kept, *(nw.col(theirs).alias(ours) for ours, theirs in names.items()))


def in_our_names(panel: Any, forecasts: Any, names: Mapping[str, str]) -> tuple[Any, Any]:
    """Both tables with columns as they are called here; `names` has theirs, and forecasts may be None."""

    def of(*ours: str) -> dict[str, str]:
        return {name: names[name] for name in ours if names.get(name, name) != name}

    rows = renamed(panel, of("series", "t", "value"), what="panel")
    if forecasts is None:
        return rows, None
    return rows, renamed(forecasts, of("series", "t", "method", "forecast"), what="forecasts")


def columns(
    data: Any, names: Sequence[str], *, what: str, numbers: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Named columns of any table or file as arrays; `numbers` are those that must be numeric."""
    return {
        name: column if isinstance(column, np.ndarray) else column.known[column.code]
        for name, column in read(data, names, what=what, numbers=numbers, optional=optional).items()
    }


def read(
    data: Any, names: Sequence[str], *, what: str, numbers: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, Any]:
    """The same with `Labels` for the columns that are no `numbers`."""
    import narwhals.stable.v2 as nw

    with concerning(what):
        _refuse_periods(data, what)
        frame = _ours(frames.open_frame(data, name=what), (*names, *optional))
        present = frame.collect_schema().names()
        absent = [name for name in names if name not in present]
        if absent:
            asked = f"The {what} has no column {' or '.join(map(repr, absent))}."
            more = f" and {len(present) - SHOWN:,} more, and a table has a row for each series and period"
            listed = f"It has {', '.join(map(repr, present[:SHOWN]))}{more if len(present) > SHOWN else ''}."
            raise DataError(asked, listed, (OTHER_NAMES,), about=what)
        schema = frame.collect_schema()
        texts = [name for name in numbers if name in present and schema[name] == nw.String]
        others = [name for name in numbers if name in present and name not in texts]
        frames.require(frame, dict.fromkeys(others, "number"), name=what)
        wanted = [*names, *(name for name in optional if name in present)]
        table = frames.collect(frame.select(*wanted), step=f"read {what}")
        if not len(table):
            raise DataError(f"No rows in the {what}.", remedy="Check the file or the filter that made it.", about=what)
        return {
            name: np.array(read_numbers(table[name].to_pylist(), name=name, what=what))
            if name in texts
            else _numbers(table[name])
            if name in numbers
            else labels(table[name], name=name, what=what)
            for name in wanted
        }


def _refuse_periods(data: Any, what: str) -> None:
    """Refuse pandas' periods, which other engines read as the number of periods since 1970."""
    kinds = data.dtypes.items() if type(data).__module__.partition(".")[0] == "pandas" else ()
    found = [name for name, kind in kinds if str(kind).startswith("period[")]
    if found:
        raise DataError(
            f"Column {found[0]!r} of the {what} holds periods of pandas.",
            "Periods are dates, text such as 2024-01 or numbers.",
            "Use .dt.to_timestamp() or .astype(str).",
            about="time",
        )


def methods_beside(data: Any, known: Sequence[str]) -> list[str]:
    """The columns of a wide table of forecasts that hold methods: numbers that are none of `known`."""
    with concerning("forecasts"):
        frame = _ours(frames.open_frame(data, name="forecasts"), known)
    schema = frame.collect_schema()
    if "forecast" in schema or "method" in schema:
        return []
    return [name for name, dtype in schema.items() if name not in known and dtype.is_numeric()]


def with_limits(asked: dict[str, Any], wide: Mapping[str, Vector]) -> tuple[dict[str, Any], tuple[str, ...], Matrix]:
    """Methods side by side; limits such as x-lo-90 and x-hi-90 are quantiles of x, where all methods have the same."""
    found = {name: LIMIT.fullmatch(name) for name in wide}
    limits = {name: limit for name, limit in found.items() if limit and limit[1] in wide}
    methods = tuple(name for name in wide if name not in limits)
    levels: dict[str, dict[float, str]] = {name: {0.5: name} for name in methods}
    for name, limit in limits.items():
        tail = (1 - float(limit[3]) / 100) / 2
        levels[limit[1]][round(tail if limit[2] == "lo" else 1 - tail, 9)] = name
    shared = sorted(levels[methods[0]])
    points = np.stack([wide[name] for name in methods])
    alone = len(shared) == 1 or {"quantile", "sample"} & {*asked}
    if alone or any(sorted(one) != shared for one in levels.values()):
        return asked, methods, points
    asked, _ = chosen(asked, points, np.tile(np.arange(points.shape[1]), len(shared)))
    asked["quantile"] = np.repeat(shared, points.shape[1])
    return asked, methods, np.stack([np.concatenate([wide[levels[name][q]] for q in shared]) for name in methods])


def chosen(asked: dict[str, Any], matrix: Matrix, rows: Mask | Integers) -> tuple[dict[str, Any], Matrix]:
    """The rows of all columns that are asked for."""
    picked = {
        name: Labels(column.known, column.code[rows]) if isinstance(column, Labels) else column[rows]
        for name, column in asked.items()
    }
    return picked, matrix[:, rows]


def _ours(frame: Any, names: Sequence[str]) -> Any:
    """The frame with usual names of other programs replaced by ours, where ours are not there."""
    import narwhals.stable.v2 as nw

    present = frame.collect_schema().names()
    folded = {name.casefold(): name for name in reversed(present)}
    found = {
        ours: folded[theirs]
        for ours in names
        if ours not in present
        for theirs in reversed((ours, *OTHER.get(ours, ())))
        if theirs in folded
    }
    if not found:
        return frame
    kept = [name for name in present if name not in found.values()]
    return frame.select(*kept, *(nw.col(theirs).alias(ours) for ours, theirs in found.items()))


def _numbers(column: Any) -> np.ndarray:
    import pyarrow as pa

    if pa.types.is_integer(column.type) and not column.null_count:
        return _array(column)
    return _array(column.cast(pa.float64()).fill_null(np.nan) if column.null_count else column.cast(pa.float64()))


def _array(column: Any) -> np.ndarray:
    """An Arrow column without nulls as an array; Arrow's own way would load pandas, which takes half a second."""
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return np.from_dlpack(column)
    if pa.types.is_date32(kind):
        return np.from_dlpack(column.cast(pa.int32())).astype("datetime64[D]")
    if pa.types.is_timestamp(kind):
        return np.from_dlpack(column.cast(pa.int64())).view(f"datetime64[{kind.unit}]")
    return np.array(column.to_pylist(), None if pa.types.is_boolean(kind) else object)


def labels(column: Any, *, name: str, what: str) -> Labels:
    """An Arrow column as labels: text in order, numbers and dates by size."""
    import pyarrow as pa

    if column.null_count:
        raise DataError(
            f"{column.null_count} rows of the {what} have no `{name}`.",
            "Every row belongs to one.",
            "Fill it, or leave these rows out.",
            about=what,
        )
    if pa.types.is_timestamp(column.type) and column.type.tz:
        raise _zoned()
    coded = column.combine_chunks().dictionary_encode() if isinstance(column, pa.ChunkedArray) else column
    known = _dated(_array(coded.dictionary))
    if name in ("series", "method"):
        known = known.astype(str)
    if name in ("t", "origin"):
        known = _of_days(_counted(dates(known)))
        if known.dtype.kind == "M" and len(known) and known.min() < np.datetime64("1000"):
            raise _two_digits(str(known.min())[:10])
    order, place = np.unique(known, return_inverse=True)
    return Labels(order, place[_array(coded.indices)])


def _dated(values: np.ndarray) -> np.ndarray:
    """Python's dates as NumPy's."""
    if values.dtype == object and all(isinstance(value, datetime.date) for value in values):
        if any(getattr(value, "tzinfo", None) for value in values):
            raise _zoned()
        return values.astype("datetime64[us]")
    return values


def _two_digits(text: str) -> DataError:
    return DataError(
        f"Periods such as {text!r} have years of two digits.",
        "They can be read in several ways, and a year has four digits.",
        "Write dates as 2024-01-31.",
        about="time",
    )


def _counted(known: np.ndarray) -> np.ndarray:
    """Days as spreadsheets number them, as dates: whole numbers at uneven steps that are days of a calendar."""
    if known.dtype.kind not in "iu" or len(known) < 3:
        return known
    ordered = np.unique(known)
    uneven = len(np.unique(np.diff(ordered))) > 1
    first = int((np.datetime64("1970-01-01") - SPREADSHEET).astype(int))
    if not uneven or ordered[0] < first or ordered[-1] > LATEST:
        return known
    try:
        calendar(SPREADSHEET + ordered.astype("timedelta64[D]"))
    except DataError:
        return known
    return np.asarray(SPREADSHEET + known.astype("timedelta64[D]"))


def _zoned() -> DataError:
    return DataError(
        "A column has times with a time zone.",
        "Days and hours of a calendar have none, and summer time would shift them.",
        "Give local times without a zone.",
        about="time",
    )


def _of_days(known: np.ndarray) -> np.ndarray:
    """Times that are all midnight as days: with other times among them, midnight is a time of day."""
    if known.dtype.kind != "M":
        return known
    days = known.astype("datetime64[D]")
    return days if (days == known).all() else known


def dates(known: np.ndarray) -> np.ndarray:
    """Text that spells days, times, or dates otherwise (31/01/2024, 01/2024, 2024M01, Q1 2024, Jan 2024) as dates, and
    whole numbers as numbers; other labels as they are.

    Refused if their order as text is not that of their numbers.
    """
    if known.dtype.kind not in "OUT" or not len(known):
        return known
    spelled = [str(text).strip() for text in known]
    if all(map(ISO.fullmatch, spelled)):
        if any(map(ZONE.search, spelled)):
            raise _zoned()
        return _made([re.sub(r"[/.]", "-", t[:10]) + t[10:].replace(" ", "T") for t in spelled], "datetime64[us]")
    if all(map(WHOLE.fullmatch, spelled)):
        return np.array(spelled, np.int64)
    slashed = [SLASHED.fullmatch(text) for text in spelled]
    if all(slashed):
        first, second = (max(int(found[k]) for found in slashed if found) for k in (1, 2))
        if first <= 12 and second <= 12 and (first > 1 and second > 1):
            raise DataError(
                f"Periods such as {spelled[0]!r} can be read as day and month or as month and day.",
                "Dates are read without a doubt as 2024-01-31.",
                "Write them so.",
                about="time",
            )
        day_first = second <= 12 if first > 12 or first == second == 1 else first == 1 and second <= 12
        parts = [
            (found[3], *((found[2], found[1]) if day_first else (found[1], found[2]))) for found in slashed if found
        ]
        days = [f"{int(y):04d}-{int(m):02d}-{int(d):02d}" for y, m, d in parts]
        clock = [_clock(*found.groups()[3:]) for found in slashed if found]
        return _made([day + time for day, time in zip(days, clock, strict=True)], "datetime64[us]")
    if all(map(TWO_DIGITS.fullmatch, spelled)):
        raise _two_digits(spelled[0])
    for pattern, months in ((MONTH_YEAR, 1), (YEAR_MONTH, 1), (QUARTER_YEAR, 3)):
        read = [found.groupdict() for text in spelled if (found := pattern.fullmatch(text))]
        if len(read) == len(spelled):
            begun = [(one["year"], months * (int(one["part"] or one.get("plain", 0)) - 1) + 1) for one in read]
            return _made([f"{year}-{month:02d}-01" for year, month in begun])
    for form in (*NAMED_MONTHS, *NAMED_DAYS):
        try:
            return _made([datetime.datetime.strptime(text, form).strftime("%Y-%m-%d") for text in spelled])
        except ValueError:
            continue
    _refuse_unordered(spelled)
    return known


def _clock(hour: str | None, rest: str | None, half: str | None) -> str:
    """A time of day as ISO spells it: 12:30 AM is half an hour after midnight."""
    if hour is None:
        return ""
    return f"T{int(hour) % 12 + 12 * (half in 'Pp') if half else int(hour):02d}{rest}"


def _refuse_unordered(spelled: list[str]) -> None:
    """Refuse labels that are out of order as text: 2024-10 before 2024-9, years last, words before years."""
    if len({re.sub(r"\d+", "0", text) for text in spelled}) > 1:
        if all(map(WORDS_FIRST.fullmatch, spelled)):
            raise _unordered(sorted(spelled))
        return
    numbers = {text: [int(part) for part in re.findall(r"\d+", text)] for text in spelled}
    years = [[1900 <= part <= 2199 for part in found] for found in numbers.values()]
    late = any(all(of) for of in list(zip(*years, strict=True))[1:]) and not all(found[0] for found in years)
    ordered = sorted(spelled)
    if late or sorted(ordered, key=lambda text: numbers[text]) != ordered:
        raise _unordered(ordered)


def _unordered(ordered: list[str]) -> DataError:
    return DataError(
        f"Periods such as {ordered[0]!r} and {ordered[-1]!r} are in another order as text than in time.",
        "Text is in order if the year comes first and numbers have leading zeros.",
        "Write 2024-09, or give dates.",
        about="time",
    )


def _made(texts: list[str], kind: str = "datetime64[D]") -> np.ndarray:
    try:
        return np.array(texts, kind)
    except ValueError:
        raise DataError(
            "A period spells a day that does not exist.", "Dates are read as 2024-01-31.", "Correct it.", about="time"
        ) from None
