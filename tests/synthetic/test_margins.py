"""Whole numbers in cells whose sums lie in intervals: against brute force, and where intervals contradict."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.synthetic.contradictions import reconciled
from discreet.synthetic.margins import Margin, fit, rounded
from discreet.synthetic.sizes import SizeShape, shared, workforces


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=60), st.data())
def test_rounding_keeps_every_sum_of_neighbours(values: list[float], data: st.DataObject) -> None:
    """A sum that lay between two whole numbers lies between them afterwards."""
    real = np.array(values)
    whole = rounded(real)
    a = data.draw(st.integers(0, len(values) - 1))
    b = data.draw(st.integers(a + 1, len(values)))
    low, high = np.floor(real[a:b].sum() + 1e-9), np.ceil(real[a:b].sum() - 1e-9)
    assert low <= whole[a:b].sum() <= high
    assert (whole >= 0).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_crossing_margins_are_met_wherever_they_can_be(seed: int) -> None:
    """Three by three cells with sums by row, by column and in all, around a table that exists."""
    rng = np.random.default_rng(seed)
    table = rng.poisson(rng.choice([0.5, 3, 40]), 9)
    row, column = np.divmod(np.arange(9), 3)
    margins = []
    for group in (np.arange(9), row, column, np.zeros(9, dtype=np.int64)):
        true = np.bincount(group, weights=table)
        noisy = true + rng.integers(-2, 3, len(true))
        low, high = np.minimum(noisy, true) - rng.integers(0, 2), np.maximum(noisy, true) + rng.integers(0, 2)
        margins.append(Margin.of(group, noisy, low, high))
    found = fit(margins, np.ones(9), rng=rng)
    assert (found >= 0).all()
    assert not any(margin.outside(found).any() for margin in margins)


def test_contradictions_are_left_where_brute_force_finds_no_table() -> None:
    group = np.arange(2)
    parts = Margin.of(group, np.array([5.0, 5.0]), np.array([4.0, 4.0]), np.array([6.0, 6.0]))
    whole = Margin.of(np.zeros(2, dtype=np.int64), np.array([20.0]), np.array([19.0]), np.array([21.0]))
    possible = [
        cells
        for cells in product(range(25), repeat=2)
        if not any(m.outside(np.array(cells)).any() for m in (parts, whole))
    ]
    assert not possible
    found = fit([parts, whole], np.ones(2), rng=np.random.default_rng(1))
    assert sum(int(m.outside(found).sum()) for m in (parts, whole)) == 1


def test_contradictions_give_way_in_every_part_of_a_table() -> None:
    """Two parts that share no cell: what is mended in one says nothing about the other."""
    parts = Margin.of(np.arange(4), np.full(4, 5.0), np.full(4, 4.0), np.full(4, 6.0))
    whole = Margin.of(np.repeat([0, 1], 2), np.full(2, 20.0), np.full(2, 19.0), np.full(2, 21.0))
    moved = reconciled([parts, whole], np.full(4, 5), np.ones(4, dtype=np.bool_))
    most = moved[1].sums(moved[0].upper)
    assert (most >= moved[1].lower).all()
    assert (parts.upper.reshape(2, 2).sum(axis=1) < whole.lower).all(), "they contradict each other before"


def test_no_more_sums_are_missed_than_the_true_table_misses() -> None:
    """Some intervals fail to hold the truth; one that is far off must not take others with it."""
    missed, failing = np.zeros(12, dtype=int), np.zeros(12, dtype=int)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        shape = (3, 4, 2)
        table, cells = rng.poisson(30, 24), np.stack(np.unravel_index(np.arange(24), shape))
        margins = []
        for axes in ((0, 1), (0, 2), (1,)):
            group = np.ravel_multi_index(tuple(cells[list(axes)]), tuple(shape[axis] for axis in axes))
            true = np.bincount(group, weights=table)
            off = np.where(rng.random(len(true)) < 0.08, rng.choice([-12, 12], len(true)), 0)
            width = rng.integers(0, 2, len(true))
            margins.append(Margin.of(group, true + off, true + off - width, true + off + width))
        found = fit(margins, np.ones(24), rng=rng)
        missed[seed], failing[seed] = (sum(m.outside(values).sum() for m in margins) for values in (found, table))
    assert missed.sum() <= failing.sum()
    assert (missed <= failing + 1).all()


def test_without_more_than_two_margins_attributes_are_independent() -> None:
    """The maximum-entropy table in closed form: rows times columns over the total."""
    row, column = np.divmod(np.arange(6), 3)
    rows, columns = np.array([3000.0, 9000.0]), np.array([2000.0, 4000.0, 6000.0])
    wide = np.inf
    margins = [
        Margin.of(row, rows, rows - wide, rows + wide),
        Margin.of(column, columns, columns - wide, columns + wide),
    ]
    found = fit(margins, np.ones(6), rng=np.random.default_rng(1))
    assert found == pytest.approx(np.outer(rows, columns).ravel() / 12000, abs=1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_workforces_add_up_and_keep_the_released_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs, number = rng.poisson(50, 12) * rng.integers(0, 2, 12), rng.integers(1, 9, 12)
    largest = np.maximum(rng.integers(1, 60, 12), np.ceil(jobs / number)).astype(np.float64)
    size = workforces(jobs, number, SizeShape(), rng, largest=largest)
    cell = np.repeat(np.arange(12), number)
    assert (np.bincount(cell, weights=size, minlength=12) == jobs).all()
    assert (size >= 0).all()
    assert (size <= largest[cell]).all()


def test_amounts_are_shared_in_proportion() -> None:
    cell, weight = np.array([0, 0, 0, 2, 2]), np.array([1.0, 2.0, 1.0, 3.0, 1.0])
    found = shared(np.array([400, 0, 8]), cell, weight, np.full(5, np.inf))
    assert found.tolist() == [100, 200, 100, 6, 2]
    capped = shared(np.array([400, 0, 8]), cell, weight, np.array([300, 120, 300, 5, 5]))
    assert capped[1] == 120 and capped[:3].sum() == 400 and capped[3:].tolist() == [5, 3]
