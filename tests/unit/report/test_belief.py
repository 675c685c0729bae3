"""Figure 1 of a release: nobody is more than sure, axes have powers of ten, and words are about what is there."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.pages.axis import log_ticks
from discreet.pages.page import Figure, Prose, Table
from discreet.privacy.assurance import Assurance
from discreet.privacy.belief import TRUE_SIZES, permitted
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments, Workers
from discreet.report.belief import size_beliefs

WEAK = Establishments("0.33", "weak")


@pytest.mark.parametrize("epsilon", [3, 7, 60])
def test_nobody_is_more_than_sure(epsilon: int) -> None:
    _, _, table = size_beliefs(Assurance.of_definition(WEAK, Pure(epsilon)), {})
    assert isinstance(table, Table)
    shares = [str(cell).split("\u00a0")[0] for row in table.rows for cell in row[1:]]
    assert all(0 < float(share) <= 100 and len(share) <= 12 for share in shares), shares


def test_an_axis_with_few_odd_values_has_powers_of_ten() -> None:
    figure, *_ = size_beliefs(Assurance.of_definition(WEAK, Pure(7)), {})
    assert isinstance(figure, Figure)
    assert log_ticks([0.00045553, 0.00091022, 0.002079, 0.99818]) == pytest.approx([1e-4, 1e-3, 0.01, 0.1, 1])
    assert log_ticks([1, 20, 500]) == [1, 20, 500] and log_ticks([1234.5, 1300.7]) == [1234.5, 1300.7]


@pytest.mark.parametrize("unit", [WEAK, Workers()])
def test_words_are_about_the_lines_that_are_there(unit: Establishments) -> None:
    known = {size: permitted(unit, 1.0, size).prior for size in TRUE_SIZES}
    for typical in ({}, {"jobs": known}):
        _, words, table = size_beliefs(Assurance.of_definition(unit, Pure(1)), typical)
        assert isinstance(words, Prose) and isinstance(table, Table)
        assert ("**Typically**" in words.text) == bool(typical) == any("Typically" in name for name in table.columns)
        assert np.all([len(row) == len(table.columns) for row in table.rows])


def test_tables_without_a_line_are_named() -> None:
    known = {size: permitted(WEAK, 1.0, size).prior for size in TRUE_SIZES}
    typical = {**dict.fromkeys("abcd", known), "kinds": None}
    _, words, table = size_beliefs(Assurance.of_definition(WEAK, Pure(1)), typical)
    assert isinstance(words, Prose) and words.text.endswith("None is drawn for d and kinds.")
    assert isinstance(table, Table) and len(table.columns) == 6
    _, words, _ = size_beliefs(Assurance.of_definition(WEAK, Pure(1)), {"kinds": None})
    assert isinstance(words, Prose) and words.text.endswith("A typical belief is not drawn for kinds.")
