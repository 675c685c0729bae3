"""The comparison with noise infusion: simulated data have the published shape, and errors are the expected ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.audit.stand_in import same_shape
from discreet.plan.comparison import FEWEST_CELLS, MOST_CELLS, compare
from discreet.plan.run import run
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure
from discreet.report.comparison import SimulatedErrors
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
