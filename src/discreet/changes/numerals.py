"""Numbers as people write them: 1,234.56 or 1.234,56 or 1 234,56. Read where there is one way to, refused otherwise.

A column is read as a whole: one number shows what the marks of all others mean. `1,234` alone can be either.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from discreet.words.errors import DataError

EMPTY = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""Texts without a number, in small letters."""

SPACES = re.compile(r"(?<=\d)[ \u00a0\u202f'\u2019](?=\d{3}(?!\d))")
"""Between thousands, whatever stands before the decimals."""

PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
POINT = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d*)?")
COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d*)?")
NAMED = 3


def read_numbers(texts: Sequence[str | None], *, name: str, what: str) -> list[float]:
    """The numbers of a column of texts; NaN where there is none."""
    bare = [SPACES.sub("", (text or "").strip().replace("\u2212", "-")) for text in texts]
    told = [text for text in bare if text.casefold() not in EMPTY]
    if all(map(PLAIN.fullmatch, told)):
        return _made(bare, "", ".")
    point, comma = (all(map(form.fullmatch, told)) for form in (POINT, COMMA))
    if point and comma:
        shown = next(text for text in told if "," in text or "." in text)
        raise DataError(
            f"Column {name!r} of the {what} has {shown!r}, which can be read as {_number(shown, ',', '.'):g} or as "
            f"{_number(shown, '.', ','):g}.",
            "Other numbers of the column do not say which of its marks is that of decimals.",
            "Write numbers with a decimal point and without a mark for thousands.",
            about=what,
        )
    if not point and not comma:
        odd = sorted({text for text in told if not PLAIN.fullmatch(text)}, key=lambda text: (len(text), text))
        raise DataError(
            f"Column {name!r} of the {what} has what is no number: {', '.join(map(repr, odd[:NAMED]))}"
            f"{f' and {len(odd) - NAMED:,} more' if len(odd) > NAMED else ''}.",
            "Numbers are written as 1234.56, 1,234.56 or 1.234,56, all of a column in one way; an empty field is none.",
            "Correct them, or leave these rows out.",
            about=what,
        )
    return _made(bare, *((",", ".") if point else (".", ",")))


def _made(texts: Sequence[str], thousands: str, decimal: str) -> list[float]:
    return [math.nan if text.casefold() in EMPTY else _number(text, thousands, decimal) for text in texts]


def _number(text: str, thousands: str, decimal: str) -> float:
    return float((text.replace(thousands, "") if thousands else text).replace(decimal, "."))
