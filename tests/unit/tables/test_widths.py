"""Intervals that can be used: noisy sizes cover in every size class, on data of every kind, and are narrow.

Kinds of data: one establishment, 1,000 of 20, few large among many small, a giant, skewed sizes, nobody.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.data.jobs import Jobs
from discreet.data.schema import Schema
from discreet.noise.source import SeededSource
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments
from discreet.privacy.verify import neighbouring_cells, verify
from discreet.tables.calibration import calibrate
from discreet.tables.intervals import widths
from discreet.tables.intervals.quantiles import line_quantile, pivot_quantile
from discreet.tables.intervals.widths import Trade, advised
from discreet.tables.mechanisms.joint_polynomial import coordinate_quantile
from discreet.tables.quality import MEANING, NOISE, NONE, QUALITY, quality
from discreet.tables.sizes import noisy_sizes
from discreet.words.errors import Infeasible, PrivacyError
from faults_of import about

CELLS = 1500
LEVEL = 0.95
SIZES = {
    "one establishment of 300": [300],
    "1,000 establishments of 20": [20] * 1000,
    "few large among many small": [400] * 3 + [2] * 500,
    "one giant": [20_000] + [3] * 200,
    "skewed": np.exp(np.random.default_rng(3).normal(1.5, 1.3, 300)).astype(int).tolist(),
    "nobody": [0, 0, 0],
    "single workers": [1] * 12,
}
SCHEMA = Schema(workplace_attributes=["cell"], worker_attributes={"sex": ["f", "m"]}, size="n")


@cache
def jobs(kind: str) -> Any:
    """One cell of establishments of these sizes, a third of each workforce women."""
    sizes = np.array(SIZES[kind])
    rows = {
        "workplace": np.repeat(np.arange(len(sizes)), 2),
        "cell": np.zeros(2 * len(sizes), dtype=np.int64),
        "sex": np.tile(["f", "m"], len(sizes)),
        "n": np.stack([sizes // 3, sizes - sizes // 3], axis=1).ravel(),
    }
    return dc.read_jobs(rows, schema=SCHEMA)


TABLES: dict[str, dict[str, Any]] = {
    "all workers": {"by": "cell"},
    "by sex": {"by": ["cell", "sex"]},
    "women": {"by": "cell", "where": {"sex": ["f"]}},
}


@cache
def released(
    kind: str, table: str, epsilon: str, substitution: bool = False, share: str = "0.1"
) -> tuple[Any, Any, float]:
    """`CELLS` cells like this one with their intervals, the true counts, the true 95 % point at all of epsilon."""
    unit = Establishments("0.1", substitution=substitution)
    query = dc.Session(jobs(kind), unit=unit, budget=100).count(**TABLES[table])
    ready, whole = query.prepare(epsilon=epsilon, scale_share=share), query.prepare(epsilon=epsilon).mechanism
    cells = query.statistics(ready)
    many = cells.take(np.zeros(CELLS, dtype=np.int64))
    found = query._wrap(ready, many, query.drawn(ready, many, SeededSource(5)), level=LEVEL)
    law: Any = whole.law
    quantile = coordinate_quantile(law, 1 - LEVEL) if law.dimension > 1 else line_quantile(law, LEVEL)
    return found, many.counts, quantile * float(whole.scale(np.array([float(max(SIZES[kind]))]))[0])


@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("substitution", [False, True])
def test_intervals_cover_in_every_kind_of_cell(kind: str, table: str, epsilon: str, substitution: bool) -> None:
    found, truth, _ = released(kind, table, epsilon, substitution)
    held = (found.lower <= truth) & (truth <= found.upper)
    assert np.isfinite(found.upper).all()
    assert held.mean(axis=0).min() >= LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / len(held))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", ["1,000 establishments of 20", "few large among many small", "skewed", "one giant"])
@pytest.mark.parametrize("epsilon", ["2", "4"])
def test_intervals_of_many_establishments_are_at_most_eight_times_the_error(
    kind: str, table: str, epsilon: str
) -> None:
    """For a tenth of epsilon; without it, up to 1,000 times or without an end."""
    found, _, point = released(kind, table, epsilon)
    half = ((found.upper - found.lower) / 2).mean()
    assert half <= 8 * point, half / point


@pytest.mark.parametrize("table", TABLES)
def test_where_a_tenth_is_too_little_check_says_what_is_enough(table: str) -> None:
    """At epsilon 1 no bound for a tenth can do it (docs/proofs/sizes.md); three twentieths do, and that is told."""
    query = dc.Session(jobs("1,000 establishments of 20"), unit=Establishments("0.1"), budget=100).count(
        **TABLES[table]
    )
    check = query.check(epsilon=1)
    assert advised(check.expected.tradeoff) == "3/20" and "With scale_share = 3/20 or more" in str(check)
    assert advised(query.check(epsilon=2).expected.tradeoff) == "1/10"
    assert advised(query.check(epsilon="0.3").expected.tradeoff) is None and "With any scale_share" in str(
        query.check(epsilon="0.3")
    )
    for share, holds in (("1/10", False), ("3/20", True)):
        found, _, point = released("1,000 establishments of 20", table, "1", share=share)
        assert bool(((found.upper - found.lower) / 2).mean() <= 8 * point) is holds


def test_other_shares_are_compared_when_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while something is released, and not from its rows: what is sent elsewhere has none of them."""
    looked: list[Jobs] = []

    def compared(query: Any, *asked: Any) -> tuple[Trade, ...]:
        looked.append(query.jobs)
        return trades(query, *asked)

    trades = widths._trades
    monkeypatch.setattr(widths, "_trades", compared)
    session = dc.Session(jobs("one establishment of 300"), unit=Establishments("0.1"), budget=100)
    found = session.count("cell").release(epsilon=2, name="a")
    assert not looked
    kept = pickle.dumps(found.check.expected)
    assert [trade.share for trade in found.check.expected.tradeoff] == list(widths.SHARES)
    assert len(looked) == 1 and not isinstance(looked[0].table, type(session.jobs.table))
    assert pickle.loads(kept).tradeoff == session.count("cell").check(epsilon=2).expected.tradeoff


def test_without_a_share_nothing_changes() -> None:
    query = dc.Session(jobs("skewed"), unit=Establishments("0.1"), budget=100, seed=5).count("cell")
    ready = query.prepare(epsilon=2)
    assert ready.sizes is None and ready.guarantee.loss == Pure(2) and "scale_share" not in ready.parameters
    assert query.release(epsilon=2).largest is None


def test_the_share_is_part_of_the_price() -> None:
    query = dc.Session(jobs("skewed"), unit=Establishments("0.1"), budget=2).count(["cell", "sex"])
    ready = query.prepare(epsilon=2, scale_share="0.1")
    assert ready.guarantee.loss == Pure(2) and ready.sizes is not None
    assert ready.mechanism.loss + ready.sizes.loss == Pure(2) and ready.sizes.loss == Pure("0.2")
    assert "0.2" in str(ready.guarantee) and "docs/proofs/sizes.md" in str(ready.guarantee)
    query.release(epsilon=2, scale_share="0.1")
    assert not query.account.remaining


@pytest.mark.parametrize("alpha", ["0.01", "0.1"])
@pytest.mark.parametrize("epsilon", ["1/5", "3"])
def test_noisy_sizes_keep_their_promise_and_need_it(alpha: str, epsilon: str) -> None:
    """The exact loss over all neighbours is at most the claim, and above it with a tenth less noise."""
    unit = Establishments(alpha)
    if unit.log_growth / 4 > float(Fraction(epsilon)):
        pytest.skip("refused")
    sizes = noisy_sizes(unit, Fraction(epsilon))
    assert verify(sizes).holds
    assert not verify(sizes.scaled(0.9)).holds


@pytest.mark.parametrize("alpha", ["0.00001", "0.01", "0.1", "7/9", "3"])
@pytest.mark.parametrize(("epsilon", "share"), [("1/2", "1"), ("2", "1/10"), ("2", "2/3"), ("20", "1/3")])
def test_noisy_sizes_keep_one_worker_inside_half_where_an_exchange_is_promised(
    alpha: str, epsilon: str, share: str
) -> None:
    unit, paid = Establishments(alpha, substitution=True), Fraction(epsilon) * Fraction(share)
    near = neighbouring_cells(unit)
    if unit.log_growth / 4 > paid:
        with pytest.raises(Infeasible, check=about("scale_share")):
            noisy_sizes(unit, paid)
        return
    sizes = noisy_sizes(unit, paid)
    verdict = verify(sizes, neighbours=near)
    assert verdict.holds and verdict.worst_loss > 0.999 * float(paid)
    assert not verify(sizes.scaled(0.99), neighbours=near).holds
    usual = replace(noisy_sizes(Establishments(alpha), paid), unit=unit)
    assert not verify(usual, neighbours=near).holds


@pytest.mark.parametrize("substitution", [False, True])
def test_sizes_of_alphas_that_doubles_cannot_tell_from_none_are_refused(substitution: bool) -> None:
    with pytest.raises(Infeasible, check=about("scale_share")):
        noisy_sizes(Establishments("1e-7", substitution=substitution), Fraction(1))
    noisy_sizes(Establishments("1e-6", substitution=substitution), Fraction(1))


@pytest.mark.parametrize("exponent", [0.1, 0.5, 0.95, 2.0])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_the_quantile_of_noise_over_size_is_never_too_small(exponent: float, level: float) -> None:
    rng = np.random.default_rng(7)
    law = calibrate("polynomial", unit=Establishments("0.1"), epsilon=2).law
    drawn = np.abs(law.quantile(rng.random(400_000))) * np.exp(-exponent * rng.laplace(size=400_000))  # type: ignore[union-attr]
    q = pivot_quantile(law, exponent, level)
    assert (drawn <= q).mean() >= level - 4 * np.sqrt(level * (1 - level) / len(drawn))
    assert q <= 1.06 * np.quantile(drawn, level)


def test_sizes_are_drawn_as_log_laplace_draws() -> None:
    sizes = noisy_sizes(Establishments("0.1"), Fraction(1, 5))
    drawn = sizes.draw(np.full(40_000, 200), np.full(40_000, 200), SeededSource(2))
    assert np.median(drawn) == pytest.approx(200, rel=0.02)
    ratio = np.log(np.maximum(drawn, 0.5) / 200) / sizes.exponent
    assert np.abs(ratio).mean() == pytest.approx(1, abs=0.03)
    small = sizes.draw(np.arange(10).repeat(4_000), np.arange(10).repeat(4_000), SeededSource(3)).reshape(10, -1)
    assert np.abs(np.median(small, axis=1) - 10).max() <= 1  # the floor of one worker: no size below it is told


def test_shares_that_make_no_sense_are_refused() -> None:
    query = dc.Session(jobs("nobody"), unit=Establishments("0.1"), budget=2).count("cell")
    for share in (1, "1.5", -1):
        with pytest.raises(PrivacyError, check=about("scale_share")):
            query.check(epsilon=1, scale_share=share)
    with pytest.raises(Infeasible, check=about("scale_share")):
        query.check(epsilon=1, scale_share="0.001")
    with pytest.raises(PrivacyError, check=about("scale_share")):
        query.check(epsilon=1, mechanism="log-laplace", scale_share="0.1")
    assert query.account.remaining == Pure(2)


@pytest.mark.parametrize("table", TABLES)
def test_check_tells_the_width_before_it_is_paid(table: str) -> None:
    """What is told for a cell of many establishments is the median of what is released."""
    kind = "1,000 establishments of 20"
    query = dc.Session(jobs(kind), unit=Establishments("0.1"), budget=2).count(**TABLES[table])
    check = query.check(epsilon=2, scale_share="0.1")
    trade = {each.share: each for each in check.expected.tradeoff}
    assert trade["1/10"].among < trade["0"].among or not np.isfinite(trade["0"].among)
    assert trade["1/5"].error > trade["1/10"].error > trade["0"].error
    assert "half-width" in str(check) and ("no interval" in str(query.check(epsilon="0.3")) or table == "all workers")
    found, _, _ = released(kind, table, "2")
    half = np.median((found.upper - found.lower) / 2)
    told = check.expected.widths
    scale = told[10][1] + (told[100][1] - told[10][1]) * (20 - 10) / 90
    assert half == pytest.approx(scale, rel=0.35)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", ["1,000 establishments of 20", "one establishment of 300", "one giant", "nobody"])
@pytest.mark.parametrize("share", ["0", "1/10"])
def test_a_public_bound_of_the_largest_establishment_holds_and_is_narrow(kind: str, table: str, share: str) -> None:
    """In the event on which the ends of the counts rest already: coverage stays, widths are those of the bound."""
    query = dc.Session(jobs(kind), unit=Establishments("0.1"), budget=100).count(**TABLES[table])
    ready = query.prepare(epsilon=2, scale_share=share)
    cells, largest = query.statistics(ready), float(max(SIZES[kind]))
    many = cells.take(np.zeros(CELLS, dtype=np.int64))
    drawn = query.drawn(ready, many, SeededSource(7))
    bare = query.ends(ready, drawn)(LEVEL)
    lower, upper = query.ends(ready, drawn._replace(at_most=np.full(CELLS, largest)))(LEVEL)
    held = (lower <= many.counts) & (many.counts <= upper)
    assert held.mean(axis=0).min() >= LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / CELLS)
    if share == "0" or table != "women":
        assert ((upper - lower) / 2 <= ready.mechanism.reach(np.array([largest]), level=0.99) + 1).all()
    some = drawn._replace(at_most=np.where(np.arange(CELLS) < 9, largest, np.nan))
    half = query.ends(ready, some)(LEVEL)
    assert all(np.array_equal(a[9:], b[9:], equal_nan=True) for a, b in zip(half, bare, strict=True))
    assert all(np.array_equal(a[:9], b[:9]) for a, b in zip(half, (lower, upper), strict=True))


def test_flags_follow_published_thresholds() -> None:
    counts = np.array([[1000], [1000], [1000], [10], [0], [0], [7], [7]])
    lower = np.array([[900.0], [899], [0], [0], [0], [0], [0], [np.nan]])
    upper = np.array([[1100.0], [1100], [2000], [21], [0], [3], [np.inf], [np.nan]])
    assert quality(counts, lower, upper).ravel().tolist() == [
        "good", "fair", "poor", NOISE, "good", NOISE, NONE, NONE,
    ]  # fmt: skip
    assert all(flag in MEANING for flag in (*QUALITY, NOISE, NONE))


def test_an_end_that_is_not_there_is_null_everywhere() -> None:
    """By sex at (alpha 0.1, epsilon 0.3) no upper end exists: one spelling, and the flag says so."""
    query = dc.Session(jobs("skewed"), unit=Establishments("0.1"), budget=9, seed=1).count(["cell", "sex"])
    wide = query.release(epsilon="0.3").to_arrow()
    assert set(wide["upper"].to_pylist()) == {None} and set(wide["quality"].to_pylist()) == {NONE}
    narrow = query.release(epsilon=1, scale_share="0.2").to_arrow()
    assert narrow["upper"].null_count == 0 and "largest" in narrow.column_names
