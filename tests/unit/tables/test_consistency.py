"""Tables that add up: totals without bias, no table worse than its own draws, intervals that hold their counts.

Kinds of data unlike the simulator's: skewed sizes, equal ones, a few giants among small ones, giants of one place,
mostly nobody; and giants that counts do not tell, where noisy sizes have to; one
cell of thousands of small ones. Tables nest, or cross each other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.data.schema import Schema
from discreet.noise.source import SeededSource
from discreet.privacy.units import Establishments
from discreet.tables import consistency
from discreet.tables.calibration import calibrate
from discreet.tables.consistency import least_squares, margins_of, round_across, trust, whole_numbers
from discreet.tables.workload import agreed

SHAPE = (4, 6, 12)
CELLS = int(np.prod(SHAPE))
NESTED = ("abc", "ab", "a", "")
CROSSED = (("abc", "a", "b"), ("abc", "ab", "bc"), ("abc", "a", "b", "c"), ("abc", "ab", "bc", "ac", "a", "b", "c", ""))
KINDS = ("skewed", "equal", "giants", "one place", "nobody")
PAIRS = [
    pytest.param(kind, tables, id=f"{kind}-{'-'.join(tables)}", marks=[] if kind in few else [pytest.mark.full_size])
    for tables, few in (
        (NESTED, KINDS),
        (CROSSED[0], ("skewed", "giants")),
        (CROSSED[1], ("skewed", "giants", "one place")),
    )
    for kind in KINDS
]
"""Tables that nest of all kinds of data. The daily run crosses those of the kinds whose cells differ most."""

REPEATS = 20
LEVEL = 0.95
ROUNDING = 0.1
"""What whole numbers that add up may cost a table beside fractions, in jobs per count."""

PEAKED = 1.02
"""Squares are what a fit keeps from growing. Noise has a peak at zero, so absolute errors may grow a little."""

SCHEMA = Schema(workplace_attributes=["a", "b", "c"], worker_attributes={}, size="n")


@cache
def jobs(kind: str) -> Any:
    """One row for each establishment."""
    rng = np.random.default_rng(1)
    many = {"skewed": 1 + rng.geometric(0.2, CELLS), "equal": np.full(CELLS, 50), "giants": np.full(CELLS, 5)}
    many |= {"hidden": np.where(rng.random(CELLS) < 0.03, 1, 400), "nobody": np.full(CELLS, 2)}
    many |= {
        "one full cell": np.where(np.arange(CELLS), 1, 20_000),
        "four full cells": np.where(np.arange(CELLS) % 72, 1, 20_000),
        "alternating": np.where(np.arange(CELLS) % 2, 200, 1),
    }
    cell = np.repeat(np.arange(CELLS), many.get(kind, np.full(CELLS, 5)))
    a, b, c = (index.ravel() for index in np.indices(SHAPE))
    k = np.arange(len(cell))
    small = rng.integers(1, 6, k.size)
    sizes = {
        "skewed": np.exp(rng.normal(1.5, 1.4, k.size)).astype(int),
        "equal": np.full(k.size, 20),
        "giants": np.where(k % 301, small, 20_000),
        "one place": np.where((k % 5 == 0) & (a[cell] == 0) & (c[cell] % 7 == 0), 20_000, small),
        "nobody": (rng.random(k.size) < 0.2) * rng.integers(1, 4, k.size),
        "hidden": np.where(many["hidden"][cell] == 1, 2000, 5),
        "one full cell": np.where(cell == 0, 3, rng.integers(1, 400, k.size)),
        "four full cells": np.where(cell % 72 == 0, 3, rng.integers(1, 400, k.size)),
        "one huge": np.where(k == 7, 50_000, rng.integers(1, 20, k.size)),
    }[kind]
    rows = {"workplace": k, "a": a[cell], "b": b[cell], "c": c[cell], "n": sizes}
    return dc.read_jobs(rows, schema=SCHEMA)


@cache
def trials(kind: str, tables: tuple[str, ...] = NESTED, share: str = "0", epsilon: int = 1) -> dict[str, Any]:
    """For every table the true counts and those of `REPEATS` draws, before and after, with their intervals."""
    session = dc.Session(jobs(kind), unit=Establishments("0.1"), budget=1000)
    queries = [session.count(list(by)) for by in tables]
    ready = [query.prepare(epsilon=epsilon, scale_share=share) for query in queries]
    cells = [query.statistics(part) for query, part in zip(queries, ready, strict=True)]
    source, found = SeededSource(12), {"truth": [cell.counts for cell in cells], "before": [], "after": []}
    for _ in range(REPEATS):
        raw = [
            query._wrap(part, cell, query.drawn(part, cell, source), level=LEVEL)
            for query, part, cell in zip(queries, ready, cells, strict=True)
        ]
        found["before"].append(raw)
        found["after"].append(agreed(queries, ready, raw, level=LEVEL))
    return found


def errors(found: dict[str, Any], i: int, power: int) -> tuple[Any, Any]:
    """The mean error of table i in each draw, before and after."""
    return tuple(  # type: ignore[return-value]
        np.array([(np.abs(t[i].counts - found["truth"][i]) ** power).mean() for t in found[when]])
        for when in ("before", "after")
    )


def assert_no_worse(found: dict[str, Any], tables: tuple[str, ...]) -> None:
    """Squares and absolute values, beyond what chance and whole numbers do."""
    for i, by in enumerate(tables):
        before, after = errors(found, i, 1)
        chance = 2 * (after - before).std(ddof=1) / np.sqrt(REPEATS)
        assert after.mean() <= PEAKED * before.mean() + ROUNDING + chance, (by, before.mean(), after.mean())
        before, after = errors(found, i, 2)
        chance = 2 * (after - before).std(ddof=1) / np.sqrt(REPEATS)
        assert after.mean() <= before.mean() + ROUNDING + chance, (by, before.mean(), after.mean())


@pytest.mark.parametrize(("kind", "tables"), PAIRS)
def test_the_total_has_no_bias(kind: str, tables: tuple[str, ...]) -> None:
    found = trials(kind, tables)
    error = np.array([after[0].counts.sum() - found["truth"][0].sum() for after in found["after"]])
    assert abs(error.mean()) <= 3 * error.std(ddof=1) / np.sqrt(REPEATS)


@pytest.mark.parametrize(("kind", "tables"), PAIRS)
def test_no_table_is_worse_than_its_own_draws(kind: str, tables: tuple[str, ...]) -> None:
    assert_no_worse(trials(kind, tables), tables)


@pytest.mark.parametrize("tables", [NESTED, CROSSED[1]], ids="-".join)
@pytest.mark.parametrize("epsilon", [1, 4])
def test_a_cell_of_thousands_of_small_establishments_makes_no_table_worse(
    epsilon: int, tables: tuple[str, ...]
) -> None:
    """It has most jobs and hardly any noise. Before, squares of the total grew 6.6 times, those by a 3.7 times."""
    found = trials("one full cell", tables, epsilon=epsilon)
    for i, by in enumerate(tables):
        before, after = errors(found, i, 2)
        chance = 2 * (after - before).std(ddof=1) / np.sqrt(REPEATS)
        assert after.mean() <= before.mean() + ROUNDING + chance, (by, before.mean(), after.mean())
    error = np.array([after[0].counts.sum() - found["truth"][0].sum() for after in found["after"]])
    assert abs(error.mean()) <= 3 * error.std(ddof=1) / np.sqrt(REPEATS)


def test_gaps_tell_a_cell_of_small_establishments_from_a_large_one() -> None:
    """Before, four such cells took what the gaps had: squares grew by 13 and 26 % over 400 draws."""
    found = trials("four full cells")
    for i in (0, 1):
        before, after = errors(found, i, 2)
        assert after.mean() < before.mean(), NESTED[i]


@pytest.mark.parametrize(
    ("kind", "tables"),
    [
        pytest.param(kind, tables, id=f"{kind}-{'-'.join(tables)}", marks=[pytest.mark.full_size] if long else [])
        for tables, many in zip(CROSSED[2:], ((False, False, True), (True, True, False)), strict=True)
        for kind, long in zip(("skewed", "giants", "one place"), many, strict=True)
    ],
)
def test_nor_is_one_of_many_tables(kind: str, tables: tuple[str, ...]) -> None:
    assert_no_worse(trials(kind, tables), tables)


@pytest.mark.parametrize("tables", [NESTED, *CROSSED[:2]], ids="-".join)
def test_sizes_tell_where_the_noise_is_if_counts_do_not(tables: tuple[str, ...]) -> None:
    """A cell of one establishment counts as many jobs as one of 400, and has 200 times its noise."""
    assert_no_worse(trials("hidden", tables, "2/5"), tables)
    before, after = errors(trials("hidden", tables, "2/5"), 0, 1)
    assert after.mean() < 0.95 * before.mean()


@pytest.mark.parametrize("tables", [NESTED, *CROSSED[:2]], ids="-".join)
def test_one_huge_establishment_makes_no_other_place_worse_if_sizes_are_known(tables: tuple[str, ...]) -> None:
    """Each sum is trusted by itself. By one number for a table, other places' errors grew 2 to 6 times."""
    found = trials("one huge", tables, "2/5")
    assert_no_worse(found, tables)
    for i, by in enumerate(tables):
        if by in ("a", "b"):
            square = {
                when: np.mean([(t[i].counts - found["truth"][i]) ** 2.0 for t in found[when]], axis=0).ravel()[1:]
                for when in ("before", "after")
            }
            assert np.sqrt(square["after"].mean()) < 1.2 * np.sqrt(square["before"].mean()), by


@pytest.mark.parametrize(("kind", "tables"), PAIRS)
def test_intervals_hold_the_counts_and_the_truth(kind: str, tables: tuple[str, ...]) -> None:
    found = trials(kind, tables)
    for i, truth in enumerate(found["truth"]):
        moved = [after[i] for after in found["after"]]
        assert all(((t.lower <= t.counts) & (t.counts <= t.upper)).all() for t in moved)
        held = np.mean([((t.lower <= truth) & (truth <= t.upper)).mean() for t in moved])
        assert held >= LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / (REPEATS * truth.size))


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_tables_that_agree_are_narrower(kind: str) -> None:
    """Finer cells bound the largest establishment of a coarse one. What that costs is small where it is of no use."""
    found = trials(kind)
    reach = {
        when: [np.mean([(t[i].upper - t[i].lower).mean() for t in found[when]]) for i in range(len(NESTED))]
        for when in ("before", "after")
    }
    ratio = np.array(reach["after"]) / np.array(reach["before"])
    assert max(ratio) <= 1.06
    assert ratio[-1] <= {"equal": 0.05, "skewed": 0.3, "nobody": 0.25}.get(kind, 0.9)


def test_an_interval_is_cut_at_the_end_of_the_count_above() -> None:
    """A fine count is part of the one above it, whose interval is narrower where noise is too wide for the fine one."""
    session = dc.Session(jobs("skewed"), unit=Establishments("0.1"), budget=9, seed=5)
    raw = session.count(["a", "b", "c"]).release(epsilon="0.15")
    tables = session.marginals(["a", "b", "c"], ["a", "b"])
    fine, _ = tables.release(epsilon="4.15", split=["3/83", "80/83"], add_up=True)
    assert np.isinf(raw.upper).any() and np.isfinite(fine.upper).all()
    truth = trials("skewed")["truth"][0]
    assert ((fine.lower <= truth) & (truth <= fine.upper)).mean() >= LEVEL


@pytest.mark.parametrize("tables", [NESTED, *CROSSED[:2]], ids="-".join)
def test_tables_add_up_in_integers_whatever_was_drawn(tables: tuple[str, ...]) -> None:
    moved = {by: t.counts for by, t in zip(tables, trials("nobody", tables)["after"][0], strict=True)}
    fine = moved["abc"].reshape(SHAPE)
    assert (fine >= 0).all()
    for by in tables:
        margin = tuple(i for i, name in enumerate("abc") if name not in by)
        assert np.array_equal(fine.sum(axis=margin).ravel(), moved[by].ravel())


@pytest.mark.parametrize("tables", [NESTED, CROSSED[0]], ids="-".join)
def test_without_a_floor_integers_add_up_and_every_count_is_that_of_the_fit(
    tables: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative counts stay, and then nothing is taken from others: the fit is a combination of draws without bias."""
    session = dc.Session(jobs("nobody"), unit=Establishments("0.1"), budget=1000)
    queries = [session.count(list(by)) for by in tables]
    ready = [query.prepare(epsilon=1) for query in queries]
    fitted: list[Any] = []
    fit = consistency.fit
    monkeypatch.setattr(consistency, "fit", lambda *given: (fitted.append(fit(*given)), fitted[-1])[1])
    after = agreed(queries, ready, trials("nobody", tables)["before"][0], level=LEVEL, non_negative=False)
    moved = {by: t.counts for by, t in zip(tables, after, strict=True)}
    fine, x = moved["abc"].reshape(SHAPE), fitted[0][0].reshape(SHAPE)
    assert (fine < 0).any() and np.abs(fine - x).max() < 2
    for by in tables:
        margin = tuple(i for i, name in enumerate("abc") if name not in by)
        assert np.array_equal(fine.sum(axis=margin).ravel(), moved[by].ravel())
        assert np.abs(fine.sum(axis=margin) - x.sum(axis=margin)).max() < 2
    for table in after:
        assert (table.lower <= table.counts).all() and (table.counts <= table.upper).all()
        assert "non-negative" not in str(table.guarantee)


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


def test_a_table_is_trusted_by_one_number_that_no_draw_moves_far() -> None:
    """Where each sum was trusted by its own draws, those that drew low were trusted more, and totals fell."""
    mechanism: Any = calibrate("polynomial", unit=Establishments("0.1"), epsilon=1)
    rng, member = np.random.default_rng(8), np.arange(240) // 6
    variance = rng.exponential(size=240) ** 2
    share = trust(mechanism, mechanism, member, variance)
    assert np.ptp(share) == 0 and 1 / 6 <= share[0] <= 1
    drawn = [trust(mechanism, mechanism, member, np.where(np.arange(240) == i, 0, variance))[0] for i in range(240)]
    assert np.abs(np.array(drawn) / trust(mechanism, mechanism, member, variance)[0] - 1).max() < 0.1


def test_a_sum_is_trusted_by_its_own_size_where_sizes_are_known() -> None:
    """Sizes are drawn apart from the counts, so what follows them favours no draw. Their noise alone moves nothing."""
    mechanism: Any = calibrate("polynomial", unit=Establishments("0.1"), epsilon=1)
    rng, member = np.random.default_rng(8), np.arange(240) // 6
    variance = np.full(240, 1.0)
    noisy = np.exp(2 * rng.laplace(0, 0.2, 40))
    alike = trust(mechanism, mechanism, member, variance, 3 * noisy)
    assert np.ptp(alike) == 0 and alike[0] == pytest.approx(3 * noisy.mean() / 6)
    huge = np.where(np.arange(240) < 6, [1e6, 1, 1, 1, 1, 1] * 40, 1.0)
    share = trust(mechanism, mechanism, member, huge, np.where(np.arange(40) == 0, 1e6, 1.0))
    assert share[0] > 0.9 and (share[1:] < 0.25).all()  # 1/6 is right; by one number for the table all had 1


@pytest.mark.parametrize("table", ["ab", "a"])
def test_totals_by_one_attribute_have_no_bias_where_zero_cuts_many_counts(table: str) -> None:
    """What small counts win by being cut at zero was once taken from large ones of other places and kinds."""
    rng, (a, b, c) = np.random.default_rng(3), (index.ravel() for index in np.indices(SHAPE))
    empty = np.array([0.9, 0.9, 0.3, 0.3])[a] * np.where((b == 0) | (c < 2), 1, 0.9) + 0.1 * (c > 6)
    truth = np.where(rng.random(CELLS) < empty, rng.integers(0, 4, CELLS), rng.integers(100, 3000, CELLS))
    deviation = 20 + 0.02 * truth
    member = {"ab": a * SHAPE[1] + b, "a": a}[table]

    def z(margins: list[list[Any]], repeats: int = 300) -> dict[str, float]:
        """The largest bias over its standard error, by attribute and of single counts."""
        off: dict[str, list[Any]] = {name: [] for name in ("a", "b", "c", "cells")}
        for _ in range(repeats):
            x = truth + deviation * rng.laplace(size=CELLS)
            whole = whole_numbers(x, deviation**2, [member], [], margins)
            assert (whole >= 0).all() and whole.sum() == np.rint(x.sum())
            for (_, found), at in zip(off.items(), (a, b, c, np.arange(CELLS)), strict=True):
                found.append(np.bincount(at, whole - truth))
        mean, spread = ({n: f(np.array(d), axis=0) for n, d in off.items()} for f in (np.mean, np.std))
        return {name: float(np.abs(mean[name] / spread[name]).max() * np.sqrt(repeats)) for name in off}

    kept = z([[a], [b], [c]])
    assert max(kept[name] for name in "abc") <= 4.5, kept
    assert kept["cells"] > 10, "a count near zero is biased, as every one is that cannot be below"
    assert z([])["c"] > 8, "the same draws show a bias where attributes are forgotten"


def test_margins_are_every_attribute_with_the_levels_above_it() -> None:
    """Parents come first: counties add up to states that add up to the total."""
    rows = {"workplace": range(6), "county": [*"uvwwvu"], "state": [*"ABBBBA"], "kind": [*"xyxyxx"], "n": [3] * 6}
    schema = Schema(["county", "state", "kind"], {}, size="n", hierarchy={"place": ["county", "state"]})
    session = dc.Session(dc.read_jobs(rows, schema=schema), unit=Establishments("0.1"), budget=9, seed=1)
    table = session.count(["county", "kind"]).release(epsilon=4)
    place, kind = margins_of(table)
    cells = list(zip(table.keys["county"].to_pylist(), table.keys["kind"].to_pylist(), strict=True))
    told = [dict(zip(member.tolist(), cells, strict=True)) for member in (*place, *kind)]
    assert [len(each) for each in told] == [2, 3, 2]
    states = {cell[0]: {"u": "A"}.get(cell[0], "B") for cell in cells}
    assert len({(at, states[cell[0]]) for at, cell in zip(place[0].tolist(), cells, strict=True)}) == 2
    assert len({(at, cell[0]) for at, cell in zip(place[1].tolist(), cells, strict=True)}) == 3
    assert len({(at, cell[1]) for at, cell in zip(kind[0].tolist(), cells, strict=True)}) == 2


@pytest.mark.full_size
def test_a_national_total_is_not_off() -> None:
    """41 million jobs in 300,000 cells: before, the total of four nested tables was off by 350,000."""
    shape, rng = (50, 60, 100), np.random.default_rng(1)
    cell = np.repeat(np.arange(np.prod(shape)), rng.poisson(11, np.prod(shape)) + 1)
    sizes = np.exp(rng.normal(1.5, 1.4, cell.size)).astype(np.int64)
    a, b, c = (index.ravel()[cell] for index in np.indices(shape))
    rows = {"workplace": np.arange(cell.size), "a": a, "b": b, "c": c, "n": sizes}
    session = dc.Session(dc.read_jobs(rows, schema=SCHEMA), unit=Establishments("0.1"), budget=99, seed=2)
    tables = session.marginals(*map(list, NESTED))
    done = [tables.release(epsilon=4, add_up=True) for _ in range(5)]
    error = np.array([release[0].counts.sum() for release in done]) - sizes.sum()
    assert abs(error.mean()) <= 4 * error.std(ddof=1) / np.sqrt(len(done))
    assert np.abs(error).mean() <= 5_000
    total = done[0][-1]
    assert ((total.upper - total.lower) <= 50_000).all() and (
        (total.lower <= sizes.sum()) & (sizes.sum() <= total.upper)
    ).all()


def test_rounding_keeps_sums_in_every_direction() -> None:
    """Sums of the groups exactly; sums across them within two, where independent rounding would be off by a dozen."""
    rng = np.random.default_rng(6)
    a, b, c = (index.ravel() for index in np.indices((30, 8, 25)))
    x = rng.exponential(0.4, a.size)
    x *= (np.rint(np.bincount(a, x)) / np.bincount(a, x))[a]
    across = [b, c, b * 25 + c]
    whole = round_across(x, a, across)
    assert np.array_equal(np.bincount(a, whole), np.rint(np.bincount(a, x)).astype(int))
    assert (np.abs(whole - x) <= 1).all() and (whole >= 0).all()
    for member in across:
        assert np.abs(np.bincount(member, whole) - np.bincount(member, x)).max() <= 2
