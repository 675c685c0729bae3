"""Tables that add up: totals without bias, no table worse than its own draws, intervals that hold their counts.

Kinds of data unlike the simulator's: skewed sizes, equal ones, a few giants among small ones, mostly nobody.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.noise.source import SeededSource
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments
from discreet.tables.calibration import calibrate
from discreet.tables.consistency import consistent, least_squares
from discreet.tables.intervals import intervals
from discreet.tables.release import CountRelease

UNIT = Establishments("0.1")
SHAPE = (6, 8, 20)
NESTED = ("abc", "ab", "a", "")
KINDS = ("skewed", "equal", "giants", "nobody")
REPEATS = 40
LEVEL = 0.95
ROUNDING = 0.1
"""What whole numbers that add up may cost a table beside fractions, in jobs per count."""


def world(kind: str) -> tuple[Any, Any]:
    """Jobs and the largest establishment of every cell."""
    rng = np.random.default_rng(1)
    n = int(np.prod(SHAPE))
    many = {"skewed": 1 + rng.geometric(0.2, n), "equal": np.full(n, 50), "giants": np.full(n, 5)}
    cell = np.repeat(np.arange(n), many.get(kind, np.full(n, 2)))
    k = len(cell)
    sizes = {
        "skewed": np.exp(rng.normal(1.5, 1.4, k)).astype(int),
        "equal": np.full(k, 20),
        "giants": np.where(np.arange(k) % 1001, rng.integers(1, 6, k), 20_000),
        "nobody": (rng.random(k) < 0.2) * rng.integers(1, 4, k),
    }
    counts = np.bincount(cell, sizes[kind], n).astype(np.int64)
    largest = np.zeros(n, dtype=np.int64)
    np.maximum.at(largest, cell, sizes[kind])
    return counts.reshape(SHAPE), largest.reshape(SHAPE)


def margin(by: str) -> tuple[int, ...]:
    return tuple(i for i, name in enumerate("abc") if name not in by)


def table(by: str, counts: Any, ends: Any) -> CountRelease:
    index = np.indices([SHAPE["abc".index(name)] for name in by])
    keys = pa.table({name: pa.array(index[i].ravel()) for i, name in enumerate(by)})
    return CountRelease(keys, (), ((),), counts, *ends, LEVEL, Guarantee(UNIT, Pure(1)))


@cache
def trials(kind: str, tables: tuple[str, ...] = NESTED) -> dict[str, Any]:
    """For every table the true counts and those of `REPEATS` draws, before and after, with the ends of intervals."""
    counts, largest = world(kind)
    mechanism, source = calibrate("polynomial", unit=UNIT, epsilon=1), SeededSource(3)
    truth = [counts.sum(axis=margin(by)).reshape(-1, 1) for by in tables]
    size = [largest.max(axis=margin(by)).reshape(-1, 1) for by in tables]
    found: dict[str, Any] = {"truth": truth, "before": [], "after": []}
    for _ in range(REPEATS):
        drawn = [mechanism.draw(n, x, source) for n, x in zip(truth, size, strict=True)]
        half = [intervals(y, mechanism, level=(1 + LEVEL) / 2, bounded=True) for y in drawn]
        raw = [table(by, y, ends) for by, y, ends in zip(tables, drawn, half, strict=True)]
        found["before"].append(drawn)
        found["after"].append(consistent(raw, [mechanism] * len(tables), half))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_total_has_no_bias(kind: str) -> None:
    found = trials(kind)
    error = np.array([after[0].counts.sum() - found["truth"][0].sum() for after in found["after"]])
    assert abs(error.mean()) <= 3 * error.std(ddof=1) / np.sqrt(REPEATS)


@pytest.mark.parametrize("kind", KINDS)
def test_no_table_is_worse_than_its_own_draws(kind: str) -> None:
    found = trials(kind)
    for i, by in enumerate(NESTED):
        before, after = (
            np.mean([np.abs(counts - found["truth"][i]).mean() for counts in draws])
            for draws in ([drawn[i] for drawn in found["before"]], [moved[i].counts for moved in found["after"]])
        )
        assert after <= 1.03 * before + ROUNDING, (by, before, after)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_the_counts_and_the_truth(kind: str) -> None:
    found = trials(kind)
    for i, truth in enumerate(found["truth"]):
        tables = [moved[i] for moved in found["after"]]
        assert all(((t.lower <= t.counts) & (t.counts <= t.upper)).all() for t in tables)
        held = np.mean([((t.lower <= truth) & (truth <= t.upper)).mean() for t in tables])
        assert held >= LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / (REPEATS * truth.size))


def test_an_interval_is_cut_at_the_end_of_the_count_above() -> None:
    """A fine count is part of the one above it, whose interval is narrower where noise is too wide for the fine one."""
    counts, largest = world("skewed")
    wide, close = (calibrate("polynomial", unit=UNIT, epsilon=epsilon) for epsilon in ("0.15", 4))
    truth = [counts.reshape(-1, 1), counts.sum(axis=2).reshape(-1, 1)]
    size = [largest.reshape(-1, 1), largest.max(axis=2).reshape(-1, 1)]
    drawn = [m.draw(n, x, SeededSource(5)) for m, n, x in zip((wide, close), truth, size, strict=True)]
    half = [intervals(y, m, level=0.975, bounded=True) for m, y in zip((wide, close), drawn, strict=True)]
    assert np.isinf(half[0][1]).any()
    raw = [table(by, y, ends) for by, y, ends in zip(("abc", "ab"), drawn, half, strict=True)]
    fine = consistent(raw, [wide, close], half)[0]
    assert np.isfinite(fine.upper).all()
    assert ((fine.lower <= truth[0]) & (truth[0] <= fine.upper)).mean() >= LEVEL


def test_tables_add_up_in_integers_whatever_was_drawn() -> None:
    for tables in (NESTED, ("abc", "ab", "bc"), ("abc", "a", "b", "c")):
        moved = {by: t.counts for by, t in zip(tables, trials("nobody", tables)["after"][0], strict=True)}
        fine = moved["abc"].reshape(SHAPE)
        assert (fine >= 0).all()
        for by in tables:
            assert np.array_equal(fine.sum(axis=margin(by)).ravel(), moved[by].ravel())


def test_the_total_is_a_fixed_combination_of_the_draws() -> None:
    """Whatever the shares in which gaps are handed out: docs/proofs/consistency.md."""
    rng = np.random.default_rng(4)
    fine = rng.normal(0, 9, 24)
    member = {"a": np.arange(24) // 6, "b": np.arange(24) % 6, "t": np.zeros(24, dtype=np.int64)}
    sums = [
        (m, rng.normal(0, 9, m.max() + 1), np.full(m.max() + 1, r))
        for m, r in zip(member.values(), (0.3, 0.1, 0.02), strict=True)
    ]
    totals = [least_squares(fine, rng.uniform(0.1, 50, 24), sums).sum() for _ in range(5)]
    assert np.allclose(totals, totals[0], rtol=1e-9)
    weight = np.array([1, 1 / 0.3, 1 / 0.1, 1 / 0.02])
    drawn = np.array([fine.sum(), *(counts.sum() for _, counts, _ in sums)])
    assert totals[0] == pytest.approx(weight @ drawn / weight.sum(), rel=1e-9)
