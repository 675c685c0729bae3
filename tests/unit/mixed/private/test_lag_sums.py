"""Sums with lags: those of the rows, and with the sensitivity that the proof states, by brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from discreet.models.linear.private.lag_sums import PairClasses, RowClasses, gram, pair_classes, place_sizes, place_sums
from discreet.models.linear.private.panel import SeriesPanel

HALF = 2
ENDS = (-HALF, HALF)


def ragged(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four series with gaps, one of them too short, in any order."""
    rng = np.random.default_rng(seed)
    series = np.repeat(np.arange(4), [6, 7, 1, 9])
    time = np.concatenate([np.sort(rng.choice(12, n, replace=False)) + 50 for n in (6, 7, 1, 9)])
    order = rng.permutation(len(series))
    return series[order], time[order]


def by_hand(series: np.ndarray, time: np.ndarray, lags: tuple[int, ...]) -> list[list[int]]:
    """Used rows with the rows of their lags."""
    at = {(s, t): i for i, (s, t) in enumerate(zip(series.tolist(), time.tolist(), strict=True))}
    found = [[at.get((s, t - lag), -1) for lag in (0, *lags)] for (s, t) in at]
    return sorted(row for row in found if min(row) >= 0)


@pytest.mark.parametrize("lags", [(1,), (1, 2), (2,), (1, 4), (1, 2, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_classes_make_up_the_sums_of_the_rows(lags: tuple[int, ...], seed: int) -> None:
    series, time = ragged(seed)
    panel, rows = SeriesPanel.of(series, time, lags), by_hand(series, time, lags)
    assert sorted(panel.source.T.tolist()) == rows
    k = np.random.default_rng(seed).integers(-HALF, HALF + 1, len(series))
    w = k[panel.source]
    at = panel.series[panel.used] % 2
    classes = RowClasses.of(panel, at)
    assert classes is not None
    expected = [[wp[at == g].sum() for g in (0, 1)] for wp in w]
    assert np.array_equal(classes.by_place(classes.sums(k), 2), expected)
    pairs = pair_classes(panel)
    assert np.array_equal(gram(pairs, [p.sums(k, 1) for p in pairs]), (w - 1) @ (w - 1).T)
    x = np.arange(len(rows)) - 3
    assert np.array_equal(place_sums(panel, k, at, x, 2), [(wp * x)[at == g].sum() for wp in w for g in (0, 1)])


def test_a_column_that_changes_within_a_series_has_no_classes() -> None:
    panel = SeriesPanel.of(np.repeat([0, 1], 4), np.tile(np.arange(4), 2), (1,))
    assert RowClasses.of(panel, np.array([0, 0, 0, 1, 1, 1])) is not None
    assert RowClasses.of(panel, np.array([0, 0, 1, 1, 1, 1])) is None
    dropped = RowClasses.of(panel, np.array([-1, -1, -1, 0, 0, 0]))
    assert dropped is not None and dropped.column.tolist() == [0, 0, 0] and (dropped.label[:4] == -1).all()


SHAPES = {
    "long": ([0] * 4, range(4), (1,)),
    "short": ([0, 0, 1, 1], [0, 1, 0, 1], (1,)),
    "two lags": ([0] * 5, range(5), (1, 2)),
    "a gap": ([0] * 4, [0, 1, 3, 4], (1,)),
    "a season": ([0] * 5, range(5), (2,)),
}


@pytest.mark.parametrize("centre", [-2, 0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_response_moves_all_sums_together_by_their_sensitivities(shape: str, centre: int) -> None:
    """All panels of extreme responses, every row replaced by everything: each change is attained, and none is passed.

    The loss of Laplace noise is the sum over parts of change over scale. With a centre at an end, where noise is
    widest, one pair of neighbours attains all changes at once: losses that are added waste nothing.
    """
    series, time, lags = SHAPES[shape]
    panel = SeriesPanel.of(np.array(series), np.array(list(time)), lags)
    at, x = np.zeros(len(panel.used), dtype=np.int64), np.array([1, -3, 2, 3])[: len(panel.used)]
    rows, pairs = RowClasses.of(panel, at), pair_classes(panel)
    assert rows is not None
    sizes = place_sizes(panel, at, x)
    limits = [2 * HALF, 2 * HALF * sizes[0], *(p.sensitivity(HALF, centre) for p in pairs)]

    def statistics(k: tuple[int, ...]) -> list[np.ndarray]:
        whole = np.array(k)
        return [rows.sums(whole), place_sums(panel, whole, at, x, 1), *(p.sums(whole, centre) for p in pairs)]

    most, euclid, together = np.zeros(len(limits)), np.zeros(len(limits)), 0.0
    shares = [0, *range(2, len(limits))]  # x need not be largest in the row that moves the others most
    for k in product(ENDS, repeat=len(series)):
        here = statistics(k)
        for row in range(len(series)):
            for value in range(-HALF, HALF + 1):
                there = statistics((*k[:row], value, *k[row + 1 :]))
                moved = [np.abs(a - b) for a, b in zip(here, there, strict=True)]
                change = np.array([m.sum() for m in moved])
                most = np.maximum(most, change)
                euclid = np.maximum(euclid, [np.sqrt((m**2).sum()) for m in moved])
                together = max(together, float((change / limits)[shares].sum()))
    assert most.tolist() == limits
    assert euclid[1] == pytest.approx(2 * HALF * sizes[1] ** 0.5)
    assert np.all(euclid <= np.array(limits) + 1e-9)
    if abs(centre) == HALF and shape != "a gap":
        assert together == pytest.approx(len(shares))


def test_sums_are_exact_beyond_the_digits_of_a_double() -> None:
    big = PairClasses(0, 1, *(np.arange(3),) * 2, np.zeros(3, dtype=int), np.ones((1, 1, 1), dtype=bool))
    k = np.array([2**30 + 1, 2**30 + 3, 1])
    assert big.sums(k, 0)[0] == sum(int(v) ** 2 for v in k)
