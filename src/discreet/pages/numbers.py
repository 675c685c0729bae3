"""The display of a value: few digits and commas for a reader, as in commands; full finite JSON for a machine.

No tables and no files: one value or one column at a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

DIGITS = 4
ABSENT = "–"
GROUP = ","
MINUS = "\u2212"
PERCENT = "\u00a0%"  # stays on the line of its number
MOST_DIGITS = 11  # of a percentage that is almost certainty
SMALLEST, LARGEST = 1e-4, 1e12  # outside, powers of ten are shorter and safer to read
YEARS = range(1800, 2101)
SPAN = 2  # powers of ten that one column may cover and still share its decimals
_NUMERIC = re.compile(r"[<>≤≥±+\u2212-]?\s*[\d.,\s]*\d(e[+-]?\d+)?\s*%?")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def is_numeric(value: object) -> bool:
    """A number, or text that reads as one, as a paper prints it: `0.710`, `12 %`, `-3.4e-5`."""
    return is_number(value) or (isinstance(value, str) and _NUMERIC.fullmatch(value) is not None)


def text(value: object, *, decimals: int | None = None) -> str:
    """One value as a reader wants it: `12345.678` as `12,346`, nothing as a dash, text as it is."""
    if value is None:
        return ABSENT
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return _grouped(f"{int(value)}")
    if not isinstance(value, Real):
        return str(value)
    number = float(value)
    if math.isnan(number):
        return ABSENT
    if number == 0:
        return "0"
    if math.isinf(number):
        return "∞" if number > 0 else f"{MINUS}∞"
    if not SMALLEST <= abs(number) < LARGEST:
        mantissa, exponent = f"{number:.{DIGITS - 2}e}".split("e")
        return f"{mantissa}×10{str(int(exponent)).translate(_SUPERSCRIPT)}".replace("-", MINUS)
    if decimals is None:
        plain = f"{number:.{_decimals(number)}f}"
        return _grouped(plain.rstrip("0").rstrip(".") if "." in plain else plain)
    return _grouped(f"{number:.{decimals}f}")


def three(value: float) -> str:
    """One value with three digits, whole numbers in full: `0.0123`, `12.3`, `12,346`."""
    return text(float(f"{value:.3g}") if abs(value) < 999.5 else round(value))


def percent(share: float, *, up: bool = False) -> str:
    """Three digits, and more where three would read as certainty; rounded `up`, a bound stays a bound."""
    exact = Decimal(repr(float(share))) * 100
    rounding = ROUND_CEILING if up else ROUND_HALF_EVEN
    if exact >= 100:
        return f"{exact.normalize():f}{PERCENT}"
    told = (Context(prec=digits, rounding=rounding).plus(exact) for digits in range(3, MOST_DIGITS + 1))
    nearly = Decimal(100) if up else 100 - Decimal(10) ** (2 - MOST_DIGITS)
    shown = next((number for number in told if number < 100), nearly)
    return f"{shown.normalize():f}{PERCENT}"


def plural(n: int, word: str) -> str:
    """A number of things: `1 row`, `12 rows`."""
    return f"{text(n)} {word}" if n == 1 else f"{text(n)} {word}s"


def unbroken(words: str) -> str:
    """Text whose percent signs stay on the lines of their numbers."""
    return re.sub(r"(?<=\d) %", PERCENT, words)


def column(values: Sequence[object]) -> list[str]:
    """The values of one column; numbers of similar size have the same decimals, so the points line up.

    A column of years has no commas.
    """
    if all(isinstance(v, Integral) and v in YEARS for v in values):
        return list(map(str, values))
    sizes = [
        abs(float(v))
        for v in values
        if isinstance(v, Real) and not isinstance(v, Integral | np.bool_) and math.isfinite(v) and v
    ]
    if not sizes or min(sizes) < SMALLEST or max(sizes) >= LARGEST or max(sizes) / min(sizes) > 10**SPAN:
        return [text(v) for v in values]
    decimals = _decimals(max(sizes))
    while decimals and all(f"{size:.{decimals}f}".endswith("0") for size in sizes):
        decimals -= 1
    return [text(v, decimals=decimals) for v in values]


def finite(value: Any) -> Any:
    """`value` as plain JSON: NumPy and dataclasses unpacked, dates as ISO text, NaN and infinities as null."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Path):
        return value.name
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return finite(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [finite(item) for item in value]
    raise TypeError(
        f"A {type(value).__name__} has no JSON form. "
        "Use numbers, text, dates, lists, dictionaries, NumPy arrays or dataclasses."
    )


def minute(at: str) -> str:
    """A time of the ledger, which writes UTC, without its seconds, as a reader writes it."""
    return at[:16].replace("T", " ")


def _decimals(number: float) -> int:
    return max(DIGITS - 1 - math.floor(math.log10(abs(number))), 0)


def _grouped(plain: str) -> str:
    whole, point, rest = plain.lstrip("-").partition(".")
    whole = f"{int(whole):{GROUP}}"
    sign = MINUS if plain.startswith("-") and (whole.strip("0") or rest.strip("0")) else ""
    return f"{sign}{whole}{point}{rest}"
