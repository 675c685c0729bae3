"""Sums of a magnitude: what is read, what is promised and refused, and the noise that an exact search finds enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.data.jobs import Jobs
from discreet.data.schema import Schema
from discreet.noise.source import SeededSource
from discreet.tables.baseline.attacks import p_percent
from discreet.tables.baseline.establishments import histograms
from discreet.tables.baseline.infusion import Infusion
from discreet.words.errors import DataError, PrivacyError
from faults_of import about

CAP = 250_000
ALPHA = dc.Establishments("0.1")
LEVEL = 0.95


def schema(**more: Any) -> Schema:
    return Schema(["county", "sector"], {}, size="n", magnitudes={"payroll": {"cap": CAP, **more}})


@cache
def rows(n: int = 3000) -> dict[str, Any]:
    """One row per establishment; the mean pay of a job is 52,000."""
    rng = np.random.default_rng(8)
    size = 1 + np.exp(rng.normal(1.4, 1.5, n)).astype(int)
    pay = np.exp(rng.normal(np.log(45_000), 0.5, n)).clip(8_000, 240_000)
    return {
        "workplace": np.arange(n),
        "county": rng.integers(0, 12, n),
        "sector": rng.choice(["11", "23", "52"], n),
        "n": size,
        "payroll": (size * pay).astype(np.int64),
    }


@cache
def jobs() -> Jobs:
    return dc.read_jobs(rows(), schema=schema())


def session(unit: Any = ALPHA, seed: int | None = 1) -> dc.Session:
    return dc.Session(jobs(), unit=unit, budget=1000, seed=seed)


def truth() -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for county, sector, amount in zip(rows()["county"], rows()["sector"], rows()["payroll"], strict=True):
        found[str(county), str(sector)] = found.get((str(county), str(sector)), 0) + int(amount)
    return found


def test_cells_are_sums_and_largest_amounts() -> None:
    query = session().sum("payroll", ["county", "sector"])
    cells = query.statistics(query.prepare(epsilon=1))
    keys = list(zip(cells.keys["county"].to_pylist(), cells.keys["sector"].to_pylist(), strict=True))
    assert dict(zip(keys, cells.counts[:, 0].tolist(), strict=True)) == truth()
    first = [rows()["payroll"][(rows()["county"] == int(c)) & (rows()["sector"] == s)].max() for c, s in keys]
    assert cells.largest_total.tolist() == first


def test_amounts_of_jobs_are_added_by_establishment() -> None:
    table = {"workplace": [1, 1, 2], "worker": [1, 2, 3], "place": ["a", "a", "a"], "pay": [10.4, 20.6, 5.0]}
    declared = Schema(["place"], {}, magnitudes={"pay": 100})
    query = dc.Session(dc.read_jobs(table, schema=declared), unit=ALPHA, budget=9).sum("pay", "place")
    cells = query.statistics(query.prepare(epsilon=1))
    assert cells.counts.tolist() == [[36]] and cells.largest_total.tolist() == [31]  # 10 + 21 and 5, row by row


@pytest.mark.parametrize("substitution", [False, True], ids=["", "substitution"])
@pytest.mark.parametrize("mechanism", [None, "polynomial", "staircase"])
def test_the_noise_is_enough_and_five_percent_less_is_not(mechanism: str | None, substitution: bool) -> None:
    unit = dc.Establishments("0.1", substitution=substitution)
    ready = session(unit).sum("payroll", "county").prepare(epsilon=2, mechanism=mechanism)
    assert ready.mechanism.step == CAP
    verdict = dc.verify(ready.mechanism)
    assert verdict.holds and verdict.worst_loss >= 1.9
    assert not dc.verify(ready.mechanism.scaled(0.95)).holds


def test_the_noise_of_large_caps_is_enough_and_less_is_not() -> None:
    """Pay in a small currency; the reviewer's pairs of cells were too large for whole numbers of 64 bits."""
    declared = Schema(["county"], {}, size="jobs", magnitudes={"payroll": 2**40})
    table = {"workplace": [1], "county": ["a"], "jobs": [3], "payroll": [5]}
    large = dc.Session(dc.read_jobs(table, schema=declared), unit=ALPHA, budget=9).sum("payroll", "county")
    mechanism = large.prepare(epsilon=2).mechanism
    assert dc.verify(mechanism).holds and not dc.verify(mechanism.scaled(0.95)).holds


def test_the_noise_of_sizes_is_enough_and_less_is_not() -> None:
    ready = session().sum("payroll", "county").prepare(epsilon=2, scale_share="1/10")
    assert dc.verify(ready.sizes).holds and not dc.verify(ready.sizes.scaled(0.95)).holds


def test_a_floor_below_the_cap_does_not_hide_the_pay_of_one_worker() -> None:
    """The floor of the noise is what hides one worker in a small establishment."""
    mechanism = session().sum("payroll", "county").prepare(epsilon=2).mechanism
    assert not dc.verify(replace(mechanism, floor=mechanism.floor / 1.1)).holds


def test_errors_are_as_expected_and_intervals_hold() -> None:
    query = session().sum("payroll", ["county", "sector"])
    for share in ("0", "1/5"):
        ready = query.prepare(epsilon=2, scale_share=share)
        cells, source, off, held = query.statistics(ready), SeededSource(3), [], []
        for _ in range(60):
            table = query._wrap(ready, cells, query.drawn(ready, cells, source), level=LEVEL)
            off.append(np.abs(table.counts - cells.counts).mean())
            held.append(((table.lower <= cells.counts) & (cells.counts <= table.upper)).mean())
        largest = cells.largest_total.astype(float)
        told = ready.mechanism.integer_error(largest, largest).mean()
        assert abs(np.mean(off) / told - 1) < 0.1
        assert np.mean(held) >= LEVEL - 0.01
    assert set(query.check(epsilon=2).expected.error) == {size * CAP for size in (1, 10, 100, 1_000, 10_000)}


def test_tables_of_sums_add_up() -> None:
    work = session().marginals(["county", "sector"], ["county"], [], of="payroll")
    fine, county, total = work.release(epsilon=3, add_up=True)
    assert fine.counts.sum() == county.counts.sum() == total.counts.sum()
    assert total.to_arrow().column_names[:1] == ["sum"]
    assert abs(total.counts.sum() / sum(truth().values()) - 1) < 0.2


def test_the_guarantee_says_that_amounts_are_hidden_up_to_a_share_or_the_cap() -> None:
    told = str(session().sum("payroll", "county").check(epsilon=1).guarantee)
    assert all(part in told for part in ("payroll", "10 %", "250,000", "docs/proofs/magnitudes.md", "is not hidden"))
    assert "50 times as much payroll" in str(session().sum("payroll", "county").check(epsilon=1))
    assert "payroll" not in str(session().count("county").check(epsilon=1).guarantee)
    clipped = dc.Session(dc.read_jobs(rows(), schema=schema(beyond="clip")), unit=ALPHA, budget=9)
    assert "were cut" in str(clipped.sum("payroll").check(epsilon=1).guarantee)


def test_a_mean_is_a_sum_over_a_count() -> None:
    open_session = session()
    found = open_session.mean("payroll", "county").release(epsilon=4)
    assert str(open_session.remaining) == "epsilon=996"
    assert np.allclose(found.means, found.sums.counts / found.counts.counts)
    true = {
        c: rows()["payroll"][rows()["county"] == c].sum() / rows()["n"][rows()["county"] == c].sum() for c in range(12)
    }
    lower, upper = found.ends
    held = [low <= true[c] <= high for c, low, high in zip(range(12), lower[:, 0], upper[:, 0], strict=True)]
    assert sum(held) >= 11
    assert found.to_arrow().column_names == ["county", "mean", "lower", "upper", "sum", "count"]
    assert found.tidy()["effect"].to_pylist() == ["mean"] * 12


def test_no_mean_and_no_end_is_impossible() -> None:
    """Forty cells of one small establishment each at little epsilon: noise is larger than the sums and the counts."""
    few = {name: np.asarray(column)[:40] for name, column in rows().items()} | {"county": np.arange(40)}
    found = dc.read_jobs(few, schema=schema())
    for share in (0, "1/5"):
        open_session = dc.Session(found, unit=ALPHA, budget=2, seed=2)
        means = open_session.mean("payroll", "county").release(epsilon=2, scale_share=share)
        sums, counts = means.sums.counts, means.counts.counts
        assert ((sums < 0) & (counts > 0)).any() and ((sums > CAP * counts) & (counts > 0)).any()
        assert str(open_session.remaining) == "epsilon=0" and "250,000" in str(means)
        kept = means.means[np.isfinite(means.means)]
        assert kept.min() == 0 and kept.max() == CAP
        lower, upper = means.ends
        assert lower.min() >= 0 and upper.max() == CAP and (lower <= upper).all()
        assert (means.sums.largest is not None) == bool(share)


def test_establishments_are_published_beside_where_they_are_public() -> None:
    found = session().sum("payroll", "county", establishments=True).release(epsilon=2).to_arrow()
    assert found["establishments"].to_pylist() == np.bincount(rows()["county"]).tolist()
    fine, coarse = (
        session().marginals(["county"], [], of="payroll", measure="finest", establishments=True).release(epsilon=2)
    )
    assert coarse.establishments.tolist() == [3000] and fine.establishments.sum() == 3000
    for unit in (dc.EstablishmentNodes(1000), dc.Workers()):
        with pytest.raises(PrivacyError, check=about("establishments")):
            session(unit).count("county", establishments=True)


def refused() -> Iterator[tuple[dict[str, Any], str]]:
    amounts = rows()["payroll"]
    for value, what in ((-1, "source"), (None, "source"), (float("nan"), "source"), (10**15, "magnitudes.payroll")):
        column = [value, *map(float, amounts[1:])]
        yield rows() | {"payroll": column}, what
    yield rows() | {"payroll": ["much"] * 3000}, "source"
    yield {name: column for name, column in rows().items() if name != "payroll"}, "source"


@pytest.mark.parametrize(("table", "what"), list(refused()), ids=["negative", "null", "nan", "cap", "text", "absent"])
def test_bad_amounts_are_refused_before_a_session_exists(table: dict[str, Any], what: str) -> None:
    with pytest.raises(DataError, check=about(what)):
        dc.read_jobs(table, schema=schema())


@pytest.mark.parametrize("number", [int, float], ids=["whole", "fractions"])
@pytest.mark.parametrize("jobs_of_it", [None, 1, 3], ids=["a job a row", "one job", "three jobs"])
def test_a_cap_is_met_and_one_more_is_refused(jobs_of_it: int | None, number: type) -> None:
    """What a worker adds is hidden up to the cap and no further, so nothing above it is summed, by however little."""
    declared = Schema(["county"], {}, size=None if jobs_of_it is None else "n", magnitudes={"payroll": {"cap": CAP}})
    most = CAP * (jobs_of_it or 1)
    sizes = {} if jobs_of_it is None else {"n": [jobs_of_it, 4]}
    table: dict[str, Any] = {"worker": [1, 2]} if jobs_of_it is None else {}
    table |= {"workplace": [1, 2], "county": ["a", "b"], **sizes}
    for amount, accepted in ((most, True), (most + 1, False), (most + most // 2, False), (2 * most, False)):
        given = table | {"payroll": [number(amount), number(5)]}
        if accepted:
            query = dc.Session(dc.read_jobs(given, schema=declared), unit=ALPHA, budget=9).sum("payroll", "county")
            assert query.statistics(query.prepare(epsilon=1)).counts.ravel().tolist() == [amount, 5]
            continue
        with pytest.raises(DataError, check=about("magnitudes.payroll")):
            dc.read_jobs(given, schema=declared)


@pytest.mark.parametrize("beyond", ["refuse", "clip"])
@pytest.mark.parametrize(("amount", "what"), [(-0.3, "source"), (-1e-9, "source"), (CAP + 0.3, "magnitudes.payroll")])
def test_amounts_just_beyond_an_end_are_not_rounded_to_it(amount: float, what: str, beyond: str) -> None:
    """But where they are cut to it."""
    declared = Schema([], {}, magnitudes={"payroll": {"cap": CAP, "beyond": beyond}})
    table = {"workplace": [1, 2], "worker": [1, 2], "payroll": [amount, 5.0]}
    if amount > CAP and beyond == "clip":
        query = dc.Session(dc.read_jobs(table, schema=declared), unit=ALPHA, budget=9).sum("payroll")
        assert query.statistics(query.prepare(epsilon=1)).counts.sum() == CAP + 5
        return
    with pytest.raises(DataError, check=about(what)):
        dc.read_jobs(table, schema=declared)


def test_amounts_above_the_cap_are_cut_where_that_is_declared() -> None:
    table = rows() | {"payroll": [10**12, *rows()["payroll"][1:].tolist()]}
    found = dc.read_jobs(table, schema=schema(beyond="clip"))
    query = dc.Session(found, unit=ALPHA, budget=9).sum("payroll")
    cut = query.statistics(query.prepare(epsilon=1)).counts.sum() - rows()["payroll"][1:].sum()
    assert cut == CAP * rows()["n"][0]


@pytest.mark.parametrize(
    ("amount", "what"), [(1e17, "magnitudes.payroll"), (-1e17, "source"), (1e300, "magnitudes.payroll")]
)
def test_a_number_that_is_too_large_is_told_as_one_above_the_cap_or_cut_to_it(amount: float, what: str) -> None:
    table = rows() | {"payroll": [amount, *map(float, rows()["payroll"][1:])]}
    with pytest.raises(DataError, check=about(what)) as refusal:
        dc.read_jobs(table, schema=schema())
    assert "no number" not in str(refusal.value)
    if amount > 0:
        query = dc.Session(dc.read_jobs(table, schema=schema(beyond="clip")), unit=ALPHA, budget=9).sum("payroll")
        cut = query.statistics(query.prepare(epsilon=1)).counts.sum() - rows()["payroll"][1:].sum()
        assert cut == CAP * rows()["n"][0]


@pytest.mark.parametrize("beyond", ["refuse", "clip"])
@pytest.mark.parametrize("amounts", [[1, 2], [1.6, 2.4]], ids=["whole", "fractions"])
@pytest.mark.parametrize(
    ("kind", "most", "cap"),
    [("int64", 2**50, 2**40), ("int32", 9_000, CAP), ("int16", 9_000, 10**7), ("int32", 9, 2**31 - 1)],
)
def test_jobs_times_a_cap_are_no_overflow(kind: str, most: int, cap: int, amounts: list[float], beyond: str) -> None:
    """In 32 bits 8,590 jobs at the usual cap are too many, and whether an establishment has so many is protected."""
    declared = Schema(["county"], {}, size="n", magnitudes={"payroll": {"cap": cap, "beyond": beyond}})
    size = np.array([most, 3], dtype=kind)
    table = {"workplace": [1, 2], "county": ["a", "b"], "n": size, "payroll": np.array(amounts)}
    query = dc.Session(dc.read_jobs(table, schema=declared), unit=ALPHA, budget=9).sum("payroll", "county")
    assert query.statistics(query.prepare(epsilon=1)).counts.ravel().tolist() == [round(each) for each in amounts]


@pytest.mark.parametrize("cap", [0, -1, 2.5, True, None, "much", 2**41])
def test_a_cap_is_a_whole_number(cap: Any) -> None:
    with pytest.raises(DataError, check=about("magnitudes.payroll")):
        Schema([], {}, magnitudes={"payroll": {"cap": cap}})


def test_what_is_not_proved_is_refused() -> None:
    for unit in (dc.Workers(), dc.EstablishmentNodes(1000)):
        with pytest.raises(PrivacyError, check=about("unit")):
            session(unit).sum("payroll")
    for mechanism in ("ladder", "log-laplace", "smooth-gamma", "joint-rings"):
        with pytest.raises(PrivacyError, check=about("mechanism")):
            session().sum("payroll", "county").check(epsilon=2, mechanism=mechanism)
    with pytest.raises(DataError, check=about("of")):
        session().sum("wages")
    declared = Schema(["place"], {"sex": ["f", "m"]}, magnitudes={"pay": 100})
    table = {"workplace": [1, 2], "worker": [1, 2], "place": ["a", "b"], "sex": ["f", "m"], "pay": [1, 2]}
    with pytest.raises(DataError, check=about("allow_multiple")):
        dc.read_jobs(table, schema=declared, allow_multiple=True)
    weak = dc.Session(dc.read_jobs(table, schema=declared), unit=dc.Establishments("0.1", "weak"), budget=9)
    with pytest.raises(PrivacyError, check=about("by")):
        weak.sum("pay", ["place", "sex"]).check(epsilon=2)


def test_a_magnitude_has_one_cap_in_all_releases_of_a_data_set(tmp_path: Any) -> None:
    asked: dict[str, Any] = {"unit": ALPHA, "budget": 9, "ledger": tmp_path / "ledger.db", "dataset": "pay"}
    dc.Session(jobs(), **asked).sum("payroll", "county").release(epsilon=1)
    lower = Schema(["county", "sector"], {}, size="n", magnitudes={"payroll": {"cap": CAP // 2, "beyond": "clip"}})
    other = dc.Session(dc.read_jobs(rows(), schema=lower), **asked)
    with pytest.raises(PrivacyError, check=about("magnitudes")):
        other.sum("payroll", "county").release(epsilon=1)
    assert str(other.remaining) == "epsilon=8"


def test_by_kinds_of_workers_one_loss_covers_all() -> None:
    rng, n = np.random.default_rng(1), 900
    table = {
        "workplace": rng.integers(0, 60, n),
        "worker": np.arange(n),
        "sex": rng.choice(["f", "m"], n),
        "pay": rng.integers(1, 100, n),
    }
    table["place"] = table["workplace"] % 4
    found = dc.read_jobs(table, schema=Schema(["place"], {"sex": ["f", "m"]}, magnitudes={"pay": 100}))
    query = dc.Session(found, unit=ALPHA, budget=9, seed=1).sum("pay", ["place", "sex"])
    ready = query.prepare(epsilon=2)
    assert dc.verify(ready.mechanism).holds and not dc.verify(ready.mechanism.scaled(0.95)).holds
    cells = query.statistics(ready)
    assert cells.counts.sum() == table["pay"].sum() and cells.counts.shape == (4, 2)


def test_the_p_percent_attack_finds_exact_sums_and_not_private_ones() -> None:
    """Whoever knows all others of a cell takes them off the sum: is the largest 10 % larger than it was?"""
    query = session().sum("payroll", ["county", "sector"])
    ready = query.prepare(epsilon=1)
    cells = query.statistics(ready)
    known: dict[str, Any] = {"sums": cells.counts[:, 0], "largest": cells.largest_total, "share": 0.1}
    exact = p_percent(lambda sums, largest, trial: sums, **known)
    assert (exact.power, exact.false_alarms) == (1.0, 0.0)

    def draw(sums: Any, largest: Any, trial: int) -> Any:
        return ready.mechanism.draw(sums, largest, SeededSource(trial))

    private = p_percent(draw, **known, trials=60)
    assert private.cases == 36 * 60
    assert private.power <= np.e * private.false_alarms + 0.05
    assert 0.4 < private.power < np.e / (1 + np.e) + 0.05  # the best that any test of even odds has at epsilon 1
    narrow = p_percent(lambda s, x, t: s + (draw(s, x, t) - s) // 10, **known, trials=60)
    assert narrow.power > np.e * narrow.false_alarms + 0.2


def test_errors_of_sums_are_below_those_of_infusion() -> None:
    query = session().sum("payroll", ["county", "sector"])
    cells = query.statistics(query.prepare(epsilon=2))
    largest = cells.largest_total.astype(float)
    ours = query.prepare(epsilon=2).mechanism.integer_error(largest, largest)
    firms = histograms(jobs(), workplace_by=["county", "sector"], magnitude="payroll")
    infused = Infusion(small=0).expected_error(firms, rng=np.random.default_rng(2))[:, 0]
    assert ours.sum() / infused.sum() < 1
