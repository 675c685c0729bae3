"""Values as text and as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.pages.numbers import column, finite, is_numeric, plural, text, unbroken


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1998, "1,998"),
        (12345, "12,345"),
        (-1234567, "\u22121,234,567"),
        (np.int64(7), "7"),
        (0.0, "0"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (0.123456, "0.1235"),
        (12345.678, "12,346"),
        (9999.9, "10,000"),
        (1.25e-7, "1.25×10⁻⁷"),
        (-3e15, "\u22123.00×10¹⁵"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (-math.inf, "\u2212∞"),
        (None, "–"),
        (True, "yes"),
        (np.bool_(False), "no"),
        (Fraction(1, 3), "0.3333"),
        ("0.710", "0.710"),
    ],
)
def test_one_value(value: object, shown: str) -> None:
    assert text(value) == shown


def test_a_column_shares_its_decimals_where_sizes_are_similar() -> None:
    assert column([12.6, 6.3, 3.15, None]) == ["12.60", "6.30", "3.15", "–"]
    assert column([1234.5, 0.01234]) == ["1,234", "0.01234"]
    assert column([1998, 2004]) == ["1998", "2004"], "years"
    assert column([1998, 20040]) == ["1,998", "20,040"]
    assert column([1.0, 2.0]) == ["1", "2"]
    assert column([3, 0.25]) == ["3", "0.25"]


@given(st.floats(-1e300, 1e300))
def test_text_is_the_number_to_its_digits(number: float) -> None:
    shown = text(number).replace(",", "").replace("\u2212", "-")
    if "×10" in shown:
        mantissa, exponent = shown.split("×10")
        shown = f"{mantissa}e{exponent.translate(str.maketrans('⁻⁰¹²³⁴⁵⁶⁷⁸⁹', '-0123456789'))}"
    assert float(shown) == pytest.approx(number, rel=6e-3, abs=1e-320)


@pytest.mark.parametrize(
    ("value", "numeric"),
    [(1, True), ("0.710", True), ("< 0.001", True), ("12 %", True), ("-3.4e-5", True), ("lme4", False), (True, False)],
)
def test_numeric_text_is_recognised(value: object, numeric: bool) -> None:
    assert is_numeric(value) is numeric


@dataclass
class Point:
    x: float
    y: np.ndarray


def test_finite_gives_strict_json() -> None:
    value = {
        "nan": np.float64("nan"),
        "inf": [math.inf, -math.inf, 1.5],
        "array": np.array([[1, 2], [3, 4]]),
        "flag": np.bool_(True),
        3: Fraction(1, 4),
        "point": Point(np.float32(0.5), np.array([np.nan])),
        "day": date(2020, 2, 29),
        "file": Path("somewhere/private/x.csv"),
    }
    assert json.loads(json.dumps(finite(value), allow_nan=False)) == {
        "nan": None,
        "inf": [None, None, 1.5],
        "array": [[1, 2], [3, 4]],
        "flag": True,
        "3": 0.25,
        "point": {"x": 0.5, "y": [None]},
        "day": "2020-02-29",
        "file": "x.csv",
    }


def test_finite_refuses_what_has_no_json_form() -> None:
    with pytest.raises(TypeError, match="object"):
        finite({"a": object()})


def test_one_thing_is_not_several() -> None:
    assert [plural(n, "row") for n in (0, 1, 12_345)] == ["0 rows", "1 row", "12,345 rows"]


def test_percent_signs_stay_with_their_numbers() -> None:
    assert unbroken("by 10 % or 5.5 %; a % sign") == "by 10\u00a0% or 5.5\u00a0%; a % sign"
