"""Numbers as spreadsheets of many countries write them; what can be read in two ways is refused."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.changes.exceptions import exception_report
from discreet.changes.numerals import read_numbers
from discreet.words.errors import DataError
from faults_of import about

NUMBERS = [1234.5, -7.25, 999.0, 1234567.89, 0.0]


def commas(number: float) -> str:
    return f"{number:,.2f}"


def swapped(number: float, thousands: str = ".") -> str:
    return commas(number).replace(",", "_").replace(".", ",").replace("_", thousands)


@pytest.mark.parametrize(
    "spell",
    [repr, commas, swapped, *(lambda number, mark=mark: swapped(number, mark) for mark in " \u00a0\u202f'"), str],
    ids=["python", "1,234.50", "1.234,50", "1 234,50", "no-break", "narrow", "Swiss", "text"],
)
def test_every_usual_spelling(spell):
    texts = [spell(number) for number in NUMBERS]
    assert read_numbers(texts, name="value", what="panel") == NUMBERS


def test_nothing_is_no_number_and_a_true_minus_is_one():
    found = read_numbers(["\u22123", "", None, "N/A", " 4 ", "5e3"], name="value", what="panel")
    np.testing.assert_array_equal(found, [-3, np.nan, np.nan, np.nan, 4, 5000])


@pytest.mark.parametrize("texts", [["1,234", "12"], ["7", "-1,000"], ["1.234", "1,234"]])
def test_two_readings_are_refused(texts):
    with pytest.raises(DataError, check=about("panel")):
        read_numbers(texts, name="value", what="panel")


@pytest.mark.parametrize(
    "texts", [["$5"], ["12 %"], ["1,23,4"], ["1.2.3"], ["about 4"], ["1,234.5", "1.234,5"], ["--1"]]
)
def test_no_numbers_are_named(texts):
    with pytest.raises(DataError, check=about("panel", naming=(repr(texts[-1]),))):
        read_numbers(texts, name="value", what="panel")


def test_a_file_with_decimal_commas_is_the_same_report(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"s{i:02d}", f"2024-{m:02d}", 900 + 300 * rng.random()) for i in range(30) for m in range(1, 13)]
    for name, mark, spell in (("plain", ",", lambda v: f"{v:.2f}"), ("comma", ";", swapped)):
        lines = [f"series{mark}t{mark}value", *(f"{s}{mark}{t}{mark}{spell(v)}" for s, t, v in rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8-sig")
    asked = {"capacity": 5, "methods": ("naive",), "past": 6}
    plain, comma = (exception_report(tmp_path / f"{name}.csv", **asked) for name in ("plain", "comma"))
    assert plain.rows == comma.rows
