"""The study of published tables: what it calls a fault, and that small cases of it have none."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.words.errors import DataError
from discreet_papers import tables
from faults_of import about


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        pytest.param(kind, table, marks=[] if (i - j) % len(tables.TABLES) < 2 else [pytest.mark.full_size])
        for i, kind in enumerate(tables.KINDS)
        for j, table in enumerate(tables.TABLES)
    ],
)
def test_intervals_hold_on_every_kind_of_data(kind: str, table: str) -> None:
    """Few large and many small establishments, skewed sizes, many in a cell, nobody; with sizes and without.

    The daily run has two tables of every kind, and every table.
    """
    shares = tables.EPSILONS | tables.MORE.get(table, {})
    rows = [tables.width(kind, table, epsilon, share, cells=400) for epsilon, share in shares.items()]
    assert not tables.faults({"widths": rows, "sums": [], "releases": 1})


@pytest.mark.parametrize("table", tables.LAWS)
def test_intervals_of_mechanisms_by_name_hold_too(table: str) -> None:
    rows = [
        tables.width(kind, table, epsilon, share, cells=400)
        for kind in ("one of 20,000, 200 of 3", "1,000 of 20", "nobody")
        for epsilon, share in tables.EPSILONS.items()
    ]
    assert not tables.faults({"widths": rows, "sums": [], "releases": 1})


@pytest.mark.parametrize("world", tables.WORLDS)
def test_tables_that_add_up_hold_and_are_not_off(world: str) -> None:
    rows = tables.added_up(world, "crossed", ("abc", "ab", "bc"), shape=(3, 4, 6), releases=12, seed=3)
    assert not tables.faults({"widths": [], "sums": rows, "releases": 12})


def test_a_fault_is_found() -> None:
    width: dict[str, Any] = {
        "establishments": "1,000 of 20", "table": "women", "epsilon": "1", "cells": 400, "times": 9.0,
        "times error": 0.1, "held with": 0.9, "held without": None,
    }  # fmt: skip
    row: dict[str, Any] = {
        "sizes": "giants", "tables": "nested", "by": "a", "counts": 100, "held after": 0.8, "bias": -31.0,
        "standard error": 10.0,
    }  # fmt: skip
    found = tables.faults({"widths": [width], "sums": [row], "releases": 4})
    assert [line.rpartition(": ")[2] for line in found] == [
        "holds 90.0 %",
        "9.0 times",
        "holds 80.0 %",
        "total off by -31",
    ]


def test_what_no_share_can_do() -> None:
    """A tenth of epsilon 1 cannot give 8 times the error, at alpha 0.1; three twentieths can (docs/proofs/sizes.md)."""
    assert tables.limit("1", "1/10")["least"] == pytest.approx(11.9, abs=0.05)
    assert tables.limit("1", "3/20")["least"] == pytest.approx(3.4, abs=0.05)
    noisy = tables.width("1,000 of 20", "all workers", "2", "1/10", cells=400)["times"]
    assert tables.limit("2", "1/10")["least"] <= noisy


def test_it_takes_no_data(tmp_path: Any) -> None:
    with pytest.raises(DataError, check=about("data")):
        tables.run(data=tmp_path)
