"""NA in CSV files: a column of numbers is one although its missing values are marked, as R marks them.

Among words, NA is a word: it may be a country's code. What looks like a code, with zeros before it or more digits than
a double keeps, is no number. Nothing here is for private releases, which declare what they read as numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from discreet.data.frames import collect, open_frame
from discreet.data.scans import is_csv

if TYPE_CHECKING:
    from discreet.data.frames import AnyFrame

MARK = "NA"
WHOLE = "0|[1-9][0-9]"
NUMBER = f"(?i)^[+-]?(({WHOLE}{{0,14}}|({WHOLE}*)?[.][0-9]+|({WHOLE}*)[.])(e[+-]?[0-9]+)?|nan|inf|infinity)$"
FIRST = 20_480  # rows that tell most columns of words


def with_numbers(frame: AnyFrame, data: Any, columns: Iterable[str]) -> AnyFrame:
    """The frame of a CSV file with those `columns` as numbers that are numbers and NA; any other frame as it is."""
    import narwhals.stable.v2 as nw

    if not is_csv(data) or not isinstance(frame, nw.LazyFrame):
        return frame
    schema = frame.collect_schema()
    words = [column for column in dict.fromkeys(columns) if schema.get(column) == nw.String]
    for rows in (frame.head(FIRST), frame):
        if not words:
            return frame
        fits = [(nw.col(c).str.contains(NUMBER) | (nw.col(c) == MARK)).all().alias(c) for c in words]
        found = collect(rows.select(*fits), step="marks for missing values").to_pylist()[0]
        words = [column for column in words if found[column]]
    return open_frame(data, readings=dict.fromkeys(words, "number"), ordered=True) if words else frame
