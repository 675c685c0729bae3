"""The comparison with noise infusion: simulated data have the published shape, and errors are the expected ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.audit.stand_in import same_shape
from discreet.noise.source import SeededSource
from discreet.pages.page import Prose
from discreet.plan.comparison import CLASSES_OF_SUMS, FEWEST_CELLS, MOST_CELLS, compare, foreseen
from discreet.plan.run import run
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure
from discreet.report.comparison import SimulatedErrors
from discreet.report.comparison import one as one_comparison
from discreet.simulate import national
from discreet.tables.baseline.establishments import histograms
from discreet.tables.baseline.infusion import Infusion
from discreet.tables.release import CountRelease

UNIT = dc.Establishments("0.1")


def released(counts: np.ndarray, kinds: int) -> CountRelease:
    """A table as if published, with places of two sectors."""
    cells = len(counts)
    keys = pa.table({"place": [f"P{i // 2}" for i in range(cells)], "sector": ["a", "b"] * (cells // 2)})
    worker_by = ("sex",) if kinds > 1 else ()
    levels = tuple((f"k{i}",) for i in range(kinds)) if kinds > 1 else ((),)
    ends = np.zeros(counts.shape)
    return CountRelease(keys, worker_by, levels, counts, ends, ends, 0.95, Guarantee(UNIT, Pure(1)))


@pytest.fixture
def session() -> dc.Session:
    schema = dc.Schema(workplace_attributes=["place", "sector"], worker_attributes={"sex": ["k0", "k1", "k2"]})
    jobs = {"workplace": [1], "worker": [1], "place": ["P"], "sector": ["a"], "sex": ["k0"]}
    return dc.Session(dc.read_jobs(jobs, schema=schema), unit=UNIT, budget=10)


@pytest.mark.parametrize("kinds", [1, 3])
def test_cells_keep_their_counts(kinds: int) -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 5000, (400, kinds))
    release = released(counts, kinds)
    firms = same_shape(counts, release.worker_by, release.levels, release.keys, rng)
    cells = firms.cells()
    assert np.array_equal(cells.counts.sum(axis=1), counts.sum(axis=1))
    if kinds > 1:  # kinds are drawn with the published shares: within six standard errors
        expected, variance = counts, counts * (1 - counts / counts.sum(axis=1, keepdims=True))
        assert (np.abs(cells.counts - expected) < 6 * np.sqrt(variance) + 1).all()
    assert (cells.largest_total <= counts.sum(axis=1)).all()
    # LODES: 527,000 establishments for 10.9 million jobs
    assert cells.establishments.sum() == pytest.approx(counts.sum() * 527_000 / 10_900_000, rel=0.05)


def test_errors_are_the_expected_ones(session: dc.Session) -> None:
    """With one job per cell the noise is k E|Z| on every count; infusion replaces a 1 by 1 or 2."""
    query = session.count(by=["place", "sector"])
    ready = query.prepare(epsilon=2, mechanism="polynomial")
    found = compare(released(np.ones((4000, 1), dtype=np.int64), 1), query, ready)
    assert isinstance(found, SimulatedErrors)
    assert (found.cells, found.of) == (MOST_CELLS, 4000)
    integers = np.arange(-200, 201)
    expected = float(np.abs(integers) @ ready.mechanism.law.probability(integers.astype(float), ready.mechanism.factor))
    assert found.whole.ours == pytest.approx(expected, rel=0.05)
    assert found.whole.infusion == pytest.approx(0.5)
    assert [group.name for group in found.by_size] == ["1 to 9"]
    assert {group.name for group in found.by_stratum} == {"a", "b"}
    assert sum(group.counts for group in found.by_stratum) == MOST_CELLS


def test_half_the_epsilon_twice_the_error(session: dc.Session) -> None:
    query = session.count(by=["place", "sector"])
    counts = np.random.default_rng(2).integers(10, 10_000, (2000, 1))
    errors = [compare(released(counts, 1), query, query.prepare(epsilon=e)).whole.ours for e in (4, 2, 1)]
    assert errors[0] < errors[1] / 1.7 < errors[2] / 3.4


def test_same_answer_every_time(session: dc.Session) -> None:
    query = session.count(by=["place", "sector"])
    release = released(np.arange(30, 80)[:, None], 1)
    assert compare(release, query, query.prepare(epsilon=1)) == compare(release, query, query.prepare(epsilon=1))


def test_no_shape_no_comparison(session: dc.Session) -> None:
    query = session.count(by=["place", "sector"])
    ready = query.prepare(epsilon=1)
    table = released(np.full((100, 1), 9), 1)
    assert isinstance(compare(table, query, ready), SimulatedErrors)
    for few in (released(np.full((FEWEST_CELLS - 2, 1), 9), 1), released(np.full((100, 1), -3), 1)):
        assert "Fewer than 20 workplace cells" in compare(few, query, ready)
    for size in (10**13, 10**18):
        assert "too large" in compare(released(np.full((100, 1), size), 1), query, ready)
    assert isinstance(compare(released(np.full((100, 1), 10**5), 1), query, ready), SimulatedErrors)
    filtered = session.count(by=["place", "sector"], where={"sex": ["k0"]})
    assert "Only some workers are counted" in compare(table, filtered, filtered.prepare(epsilon=1))


@pytest.fixture(scope="module")
def nation(tmp_path_factory: pytest.TempPathFactory) -> dc.Session:
    folder = tmp_path_factory.mktemp("nation") / "jobs"
    national.write(folder, share=0.02)
    return dc.Session(dc.read_jobs(folder), unit=UNIT, budget=100, seed=1)


@pytest.mark.parametrize("by", [["county", "naics2"], ["naics6", "county", "ownership"]], ids=["coarse", "fine"])
def test_the_comparison_of_sums_is_near_the_one_on_the_true_amounts(nation: dc.Session, by: list[str]) -> None:
    """With published numbers of establishments within a quarter: 2,000 cells are simulated, of skewed sums. Before, and
    without them, between the shares of the cap."""
    query = nation.sum("payroll", by, establishments=True)
    ready = query.prepare(epsilon=2)
    cells, firms = query.statistics(ready), histograms(nation.jobs, workplace_by=by, magnitude="payroll")
    ours = np.abs(query._draw(ready, cells, SeededSource(1)) - cells.counts).mean()
    true = ours / Infusion(small=0).expected_error(firms, rng=np.random.default_rng(2), trials=5).mean()
    table = query.release(epsilon=2)
    found = compare(table, query, ready)
    assert isinstance(found, SimulatedErrors) and found.magnitude == "payroll" and not found.by_share_of_cap
    assert found.ratio == pytest.approx(true, rel=0.25)
    unknown = compare(replace(table, establishments=None), query, ready)
    assert unknown.ratio == unknown.by_share_of_cap[0.25] == pytest.approx(true, rel=0.25)
    assert min(unknown.by_share_of_cap.values()) < true * 1.1 and max(unknown.by_share_of_cap.values()) > true * 0.9
    assert {group.name for group in unknown.by_size} <= {*CLASSES_OF_SUMS}
    jobs = nation.count(by)
    ahead = foreseen(query, ready, jobs.statistics(jobs.prepare(epsilon=2)).counts[:, 0].astype(float))
    assert ahead is not None and min(ahead.below) < (table.counts < 0).mean() < max(ahead.below)
    told = ahead.told
    ratios = [float(word) for word in told.split() if word.replace(".", "").isdigit()]
    assert len(ratios) == 3 and min(ratios) < true < max(ratios) and "a tenth, a quarter or a half of the cap" in told


def test_sums_by_kinds_and_of_few_or_huge_cells(session: dc.Session) -> None:
    schema = dc.Schema(["place", "sector"], {"sex": ["k0", "k1", "k2"]}, magnitudes={"pay": 1000})
    one = {"workplace": [1], "worker": [1], "place": ["P"], "sector": ["a"], "sex": ["k0"], "pay": [5]}
    paid = dc.Session(dc.read_jobs(one, schema=schema), unit=UNIT, budget=10)
    query = paid.sum("pay", ["place", "sector", "sex"])
    ready, rng = query.prepare(epsilon=2), np.random.default_rng(3)
    table = replace(released(rng.integers(0, 10**7, (400, 3)), 3), magnitude="pay")
    found = compare(table, query, ready)
    assert isinstance(found, SimulatedErrors) and found.ratio > 0 and len(found.by_share_of_cap) == 3
    assert "Fewer than 20 workplace cells have pay" in compare(released(np.full((10, 3), 9), 3), query, ready)
    assert "too large" in compare(released(np.full((100, 3), 10**15), 3), query, ready)
    assert "only some workers" in compare(table, paid.sum("pay", "place", where={"sex": "k0"}), ready).lower()
    page = " ".join(block.text for block in one_comparison("pay", found, level=3) if isinstance(block, Prose))
    assert "The true sums are confidential" in page and "What is assumed" in page and "a quarter" in page


def test_noise_of_unions_is_compared_too(session: dc.Session) -> None:
    weak = dc.Session(session.jobs, unit=dc.Establishments("0.1", "weak"), budget=10)
    query = weak.count(["place", "sector", "sex"])
    ready = query.prepare(epsilon=4, mechanism="weak-unions")
    counts = np.random.default_rng(4).integers(1, 50, (60, 3))
    assert isinstance(compare(released(counts, 3), query, ready), SimulatedErrors)


def test_the_report_says_why_there_is_no_comparison(plan) -> None:
    plan.write_text(
        plan.read_text().replace('kind = "establishments"\nalpha = 0.1', 'kind = "establishment-nodes"\ntheta = 10')
    )
    run(plan)
    page = (plan.parent / "out" / "report.html").read_text()
    assert page.count("do not include the establishments left out") == 4


def test_strata_of_places_by_population(session: dc.Session) -> None:
    """A column of populations is divided into the paper's four strata."""
    table = released(np.full((80, 1), 30), 1)
    keys = table.keys.append_column("place_population", pa.array([50, 500, 50_000, 500_000] * 20))
    table = CountRelease(keys, (), ((),), table.counts, table.lower, table.upper, 0.95, table.guarantee)
    query = session.count(by=["place", "sector"])
    found = compare(table, query, query.prepare(epsilon=Fraction(1)))
    assert [group.name for group in found.by_stratum] == ["0-100", "100-10k", "10k-100k", "100k+"]
