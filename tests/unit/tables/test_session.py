"""From jobs to a release: what is checked, what is charged, what is published and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.data.jobs import Jobs
from discreet.noise.source import SeededSource
from discreet.privacy.losses import Approximate, Pure
from discreet.tables.cells import cell_statistics
from discreet.tables.query import MOST_COUNTS
from discreet.words.errors import BudgetExceeded, DataError, DiscreetError, Infeasible, PrivacyError
from faults_of import about

WORKPLACE = ["place", "sector", "ownership"]
KINDS = [*WORKPLACE, "sex", "education"]


def session(jobs: Jobs, **options: object) -> dc.Session:
    settings: dict[str, object] = {"unit": dc.Establishments(0.1), "budget": 100} | options
    return dc.Session(jobs, **settings)  # type: ignore[arg-type]


def test_check_spends_nothing_and_tells_the_cost(jobs: Jobs) -> None:
    table = session(jobs, budget=3).count(by=KINDS)
    check = table.check(epsilon=2)
    assert check.guarantee.loss == Pure(2) and check.affordable
    expected = check.expected
    assert expected.cells_per_workplace_cell == 8 and expected.mechanism == "joint-rings (tight)"
    assert expected.error[10_000] == pytest.approx(10 * expected.error[1000], rel=1e-4)
    assert not table.check(epsilon=4).affordable
    assert table.account.remaining == Pure(3)
    assert "Expected error" in str(check)


def test_check_needs_no_data(jobs: Jobs) -> None:
    class Untouchable:
        schema = jobs.schema
        workplaces = jobs.workplaces
        validated = True
        allow_multiple, most_jobs = False, 1
        limits, _several = Jobs.limits, Jobs._several
        name, origin, quarters = "untouchable", jobs.origin, jobs.quarters

        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"check read {name}")

    opened = dc.Session(Untouchable(), unit=dc.Establishments(0.1), budget=2)  # type: ignore[arg-type]
    assert "scale_share" in str(opened.count(by=KINDS).check(epsilon=2))  # told, and so compared
    with pytest.raises(Infeasible):
        opened.count(by=KINDS).release(epsilon="0.5")


@pytest.mark.parametrize(("by", "mechanism"), [(WORKPLACE, "two-sizes"), (KINDS, "joint-rings")])
def test_a_release_has_every_cell_and_errors_of_the_expected_size(
    jobs: Jobs, by: Sequence[str], mechanism: str
) -> None:
    release = session(jobs, seed=1).count(by=by).release(epsilon=4)
    worker_by = [name for name in by if name in jobs.schema.worker_attributes]
    truth = cell_statistics(jobs, workplace_by=WORKPLACE, worker_by=worker_by)
    assert release.counts.shape == truth.counts.shape and release.keys.equals(truth.keys)
    assert release.parameters["mechanism"] == mechanism
    expected = session(jobs).count(by=by).prepare(epsilon=4).mechanism
    size = expected.expected_error(truth.counts.astype(float), truth.largest_total[:, None].astype(float))
    large = np.broadcast_to(truth.largest_total[:, None] > 100, release.counts.shape)  # noise wider than the rounding
    error = np.abs(release.counts - truth.counts)[large].mean()
    assert error == pytest.approx(np.broadcast_to(size, release.counts.shape)[large].mean(), rel=0.35)
    assert not release.guarantee.private and str(release.guarantee).startswith("NOT PRIVATE")


def test_cells_without_jobs_get_noise_too(jobs: Jobs) -> None:
    truth = cell_statistics(jobs, workplace_by=WORKPLACE, worker_by=["sex", "education"])
    release = session(jobs, unit=dc.Establishments("0.2"), seed=2).count(by=KINDS).release(epsilon=2)
    empty = truth.counts == 0
    assert empty.any() and (release.counts[empty] != 0).mean() > 0.2


def test_a_filter_on_workers_hides_the_whole_workforce_under_strong(jobs: Jobs) -> None:
    where = {"sex": ["female"], "education": ["bachelor or more"]}
    strong = session(jobs).count(by=WORKPLACE, where=where)
    weak = session(jobs, unit=dc.Establishments(0.1, "weak")).count(by=WORKPLACE, where=where)
    cells = cell_statistics(jobs, workplace_by=WORKPLACE, where=where)
    assert np.array_equal(strong._hidden(cells)[:, 0], cells.largest_total)
    assert np.array_equal(weak._hidden(cells), cells.largest)
    assert (cells.largest_total >= cells.largest[:, 0]).all() and (cells.largest_total > cells.largest[:, 0]).any()
    assert np.isnan(strong.release(epsilon=2).lower).all()  # nothing public bounds the whole workforce
    assert not np.isnan(weak.release(epsilon=2).lower).any()


def test_one_attribute_and_one_value_need_no_list(jobs: Jobs) -> None:
    short = session(jobs).count(by="sector", where={"sex": "female"})
    long = session(jobs).count(by=["sector"], where={"sex": ["female"]})
    assert (short.workplace_by, short.where) == (long.workplace_by, long.where)


def test_more_counts_than_were_paid_for_are_not_drawn(jobs: Jobs) -> None:
    opened = session(jobs)
    paid, more = opened.count(by=["sex"]), opened.count(by=["sex", "education"])
    ready = paid.prepare(epsilon=2)
    cells = more.statistics(more.prepare(epsilon=2))
    with pytest.raises(PrivacyError, check=about("by")):
        paid._draw(ready, cells, SeededSource(1))


def test_a_value_listed_twice_is_one_value(jobs: Jobs) -> None:
    table = session(jobs, seed=1).count(by=["sector", "sex"], where={"sex": ["female"] * 8})
    assert table.levels == 1
    assert table.release(epsilon=4).counts.shape[1] == 1


def test_intervals_exist_only_where_something_public_bounds_the_size(jobs: Jobs) -> None:
    """Per-cell noise under strong is scaled by the whole workforce, which one kind's count does not bound."""
    table = session(jobs, seed=1).count(by=["sector", "sex"])
    assert np.isnan(table.release(epsilon=4, mechanism="polynomial").lower).all()
    assert not np.isnan(table.release(epsilon=4).lower).any()


def test_tables_of_many_kinds_have_intervals(jobs: Jobs) -> None:
    wide = session(jobs, unit=dc.Establishments("0.01"), budget=20, seed=1)
    release = wide.count(by=["sex", "age", "race", "ethnicity"]).release(epsilon=20)
    assert release.counts.shape[1] == 192 and np.isfinite(release.upper).all()


def test_a_failure_after_the_noise_costs_nothing(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("discreet.tables.intervals.counts.intervals", broken)
    opened = session(jobs, budget=4)
    with pytest.raises(RuntimeError):
        opened.count(by=["sector"]).release(epsilon=2)
    assert opened.remaining == Pure(4)


def test_seeds_and_unchecked_rows_are_on_record(jobs: Jobs, tmp_path: Path) -> None:
    from dataclasses import replace

    seeded = session(jobs, ledger=tmp_path / "ledger.db", dataset="jobs", seed=7)
    assert not seeded.count(by=["sector"]).check(epsilon=1).guarantee.private
    entry = seeded.count(by=["sector"]).release(epsilon=1).entry
    assert entry is not None and entry.payload["details"]["private"] is False
    unchecked = session(replace(jobs, validated=False)).count(by=["sector"]).check(epsilon=1)
    assert "not validated" in str(unchecked.guarantee) and "not validated" not in str(
        session(jobs).count(by=["sector"]).check(epsilon=1).guarantee
    )


def test_extreme_noise_never_shows_the_count() -> None:
    from discreet.noise.sampler import MOST
    from discreet.noise.source import SeededSource
    from discreet.tables.calibration import calibrate

    mechanism = calibrate("polynomial", unit=dc.Establishments("0.1"), epsilon=2).scaled(1e40)
    drawn = mechanism.draw(np.arange(1000), np.full(1000, 10**6), SeededSource(1))
    assert set(np.abs(drawn[np.abs(drawn) > 2**60]).tolist()) == {MOST}


def test_names_that_tables_need_are_refused() -> None:
    for name in ("count", "__level"):
        with pytest.raises(DataError, check=about("schema")):
            dc.Schema(workplace_attributes=[name], worker_attributes={"sex": ["f", "m"]})


def test_a_file_without_a_header_shows_no_row(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("SECRET-FIRM-17,SECRET-WORKER-9,P1,f\n1,2,3,4\n")
    with pytest.raises(DataError, check=about("source")) as caught:
        dc.read_jobs(path, schema=dc.Schema(workplace_attributes=["place"], worker_attributes={"sex": ["f", "m"]}))
    assert "SECRET" not in str(caught.value)


def test_weak_composition_is_charged_honestly(jobs: Jobs) -> None:
    weak = session(jobs, unit=dc.Establishments("0.01", "weak"), budget=Approximate(9, "0.4"))
    table = weak.count(by=KINDS)
    ready = table.prepare(epsilon=8, delta="0.4", mechanism="smooth-laplace")
    assert ready.mechanism.loss == Approximate(1, "0.05")
    assert ready.guarantee.loss == Approximate(8, "0.4")
    table.release(epsilon=8, delta="0.4", mechanism="smooth-laplace")
    assert weak.remaining == Approximate(1, 0)


def test_the_ledger_remembers_across_sessions(jobs: Jobs, tmp_path: Path) -> None:
    book = tmp_path / "ledger.db"
    first = session(jobs, budget=3, ledger=book, dataset="jobs")
    release = first.count(by=["sector"]).release(epsilon=2, name="sectors")
    assert release.entry is not None and release.name == "sectors" and release.guarantee.private
    second = session(jobs, budget=3, ledger=book, dataset="jobs")
    assert second.remaining == Pure(1)
    with pytest.raises(BudgetExceeded, check=about("epsilon")):
        second.count(by=["sector"]).release(epsilon=2, name="again")
    with pytest.raises(PrivacyError, check=about("release")):
        second.count(by=["sector"]).release(epsilon=2, name="sectors")
    assert second.remaining == Pure(1)
    with dc.Ledger.open(book, read_only=True) as ledger:
        assert ledger.verify().intact


def test_alphas_do_not_mix_under_one_budget(jobs: Jobs, tmp_path: Path) -> None:
    session(jobs, ledger=tmp_path / "ledger.db", dataset="jobs")
    with pytest.raises(PrivacyError, check=about("unit")):
        session(jobs, unit=dc.Establishments("0.2"), ledger=tmp_path / "ledger.db", dataset="jobs")


@pytest.mark.parametrize(
    ("ask", "error", "about"),
    [
        (lambda s: s.count(by=["plaice"]), DataError, "by"),
        (lambda s: s.count(by=["sector", "sector"]), DataError, "by"),
        (lambda s: s.count(by=["sector"], where={"sx": ["male"]}), DataError, "where.sx"),
        (lambda s: s.count(by=["sector"], where={"sex": ["other"]}).release(epsilon=1), DataError, "where.sex"),
        (lambda s: s.count(by=["sector"]).release(epsilon=0), PrivacyError, "epsilon"),
        (lambda s: s.count(by=["sector"]).release(epsilon="0.01"), Infeasible, "epsilon"),
        (lambda s: s.count(by=["sector"]).release(epsilon=1, mechanism="edge-laplace"), PrivacyError, "mechanism"),
        (lambda s: s.count(by=["sector"]).release(epsilon=1, mechanism="magic"), PrivacyError, "mechanism"),
        (
            lambda s: s.count(by=["sector", "sex"]).check(epsilon=4, mechanism="log-laplace"),
            PrivacyError,
            "mechanism",
        ),
        (lambda s: s.count(by=["sector"]).release(epsilon=1, level=2), PrivacyError, "level"),
        (lambda s: s.marginals(), PrivacyError, "tables"),
        (
            lambda s: s.marginals(["sector"], ["place"]).release(epsilon=1, split=["1/2", "1/3"]),
            PrivacyError,
            "split",
        ),
        (lambda s: s.marginals(["sector"], ["place"]).release(epsilon=2, add_up=True), DataError, "tables"),
        (lambda s: s.count(by=["sector"]).release(epsilon=True), PrivacyError, "epsilon"),
        (lambda s: s.count(by=["sector"]).release(epsilon=1, delta=False), PrivacyError, "delta"),
        (
            lambda s: s.count(by=["sector"], where={"place": "nowhere"}).release(epsilon=1),
            DataError,
            "where.place",
        ),
        (
            lambda s: s.count(where={"ownership": ["private", "royal"]}).release(epsilon=1),
            DataError,
            "where.ownership",
        ),
        (
            lambda s: s.count(
                by=["place"], where={"sector": "92 Public administration", "ownership": "private"}
            ).release(epsilon=1),
            DataError,
            "where",
        ),
    ],
)
def test_wrong_requests_are_refused_before_anything_is_spent(
    jobs: Jobs, ask: object, error: type[DiscreetError], about: str
) -> None:
    opened = session(jobs, budget=10)
    with pytest.raises(error) as refused:
        ask(opened)  # type: ignore[operator]
    assert refused.value.about == about
    assert opened.remaining == Pure(10)


def test_more_counts_than_memory_are_refused_with_the_number(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.tables.query.MOST_COUNTS", 1000)
    opened = session(jobs)
    with pytest.raises(DataError, check=about("by")):
        opened.count(by=[*WORKPLACE, "sex", "age"]).release(epsilon=50)
    assert opened.remaining == Pure(100) and MOST_COUNTS > 10**7


def test_other_units_have_their_own_mechanism(jobs: Jobs) -> None:
    edge = session(jobs, unit=dc.Workers(), seed=3).count(by=KINDS).release(epsilon=1)
    assert edge.parameters["mechanism"] == "edge-laplace" and edge.guarantee.loss == Pure(1)
    truth = cell_statistics(jobs, workplace_by=WORKPLACE, worker_by=["sex", "education"]).counts
    assert np.abs(edge.counts - truth).mean() < 1.5
    alone = dc.read_jobs({"workplace": [1], "worker": [1], "sector": ["a"]}, schema=dc.Schema(["sector"], {}))
    for unit in (dc.Workers(), dc.EstablishmentNodes(20)):
        opened = session(alone, unit=unit)
        for ask in (opened.count(by=["sector"]).check, opened.count(by=["sector"]).release):
            with pytest.raises(DataError, check=about("by")):
                ask(epsilon=1)
        assert opened.remaining == Pure(100)
        assert opened.count(by=[]).release(epsilon=1).counts.shape == (1, 1)
    assert session(alone).count(by=["sector"]).check(epsilon=1).affordable
    nodes = session(jobs, unit=dc.EstablishmentNodes(20), seed=3).count(by=["sector"]).release(epsilon=1)
    kept = cell_statistics(jobs, workplace_by=["sector"], largest_establishment=20).counts
    assert np.abs(nodes.counts - kept).mean() < 100
    assert "larger than theta are not counted" in str(nodes.guarantee)
    assert "theta" not in str(edge.guarantee)
    for theta in (1.5, True, 0, "20"):
        with pytest.raises(PrivacyError, check=about("theta")):
            dc.EstablishmentNodes(theta)
    with pytest.raises(PrivacyError, check=about("mechanism")):
        session(jobs, unit=dc.Workers()).count(by=["sector"]).release(epsilon=1, mechanism="polynomial")
    with pytest.raises(PrivacyError, check=about("unit")):
        session(jobs, unit=dc.Rows(0, 1)).count(by=["sector"]).release(epsilon=1)


def test_several_tables_in_one_release_add_up(jobs: Jobs) -> None:
    opened = session(jobs, seed=4)
    sectors, places, kinds = opened.marginals(["sector"], WORKPLACE, KINDS).release(
        epsilon=6, split=["1/6", "1/6", "2/3"], add_up=True
    )
    assert opened.remaining == Pure(94)
    assert (kinds.counts >= 0).all()
    assert np.array_equal(kinds.counts.sum(axis=1), places.counts[:, 0])
    by_sector = dict(zip(sectors.keys["sector"].to_pylist(), sectors.counts[:, 0].tolist(), strict=True))
    found: dict[str, int] = {}
    for sector, count in zip(places.keys["sector"].to_pylist(), places.counts[:, 0].tolist(), strict=True):
        found[sector] = found.get(sector, 0) + count
    assert found == by_sector
    assert all("agree" in str(table.guarantee) for table in (sectors, places, kinds))
    assert kinds.entry == sectors.entry


def test_the_published_table_is_long_and_labelled(jobs: Jobs) -> None:
    release = session(jobs).count(by=KINDS).release(epsilon=4)
    table = release.to_arrow()
    assert isinstance(table, pa.Table)
    assert table.column_names == [*KINDS, "count", "lower", "upper", "quality"]
    assert len(table) == release.counts.size
    row = table.slice(8 * 3 + 5, 1).to_pylist()[0]
    assert row["count"] == release.counts[3, 5] and (row["sex"], row["education"]) == release.levels[5]
    assert row["place"] == release.keys["place"][3].as_py()
    assert release.non_negative().counts.min() >= 0


def test_without_a_public_list_the_guarantee_says_what_is_assumed(jobs: Jobs, tmp_path: Path) -> None:
    table = pa.table({"workplace": [1, 1, 2], "worker": [1, 2, 3], "sector": ["a", "a", "b"], "sex": ["f", "m", "f"]})
    plain = dc.read_jobs(
        table, schema=dc.Schema(workplace_attributes=["sector"], worker_attributes={"sex": ["f", "m"]})
    )
    release = session(plain).count(by=["sector"]).release(epsilon=1)
    assert "taken to be public" in str(release.guarantee)


@pytest.mark.parametrize(
    ("sizes", "kind"), [([2**63, 5], pa.uint64()), ([2**62, 2**62], pa.int64()), ([2**53, 1], pa.int64())]
)
def test_sizes_that_do_not_add_up_exactly_are_refused(sizes: list[int], kind: pa.DataType) -> None:
    schema = {"workplace_attributes": ["place"], "worker_attributes": {}, "size": "size", "worker": None}
    table = pa.table({"workplace": [1, 2], "place": ["P", "P"], "size": pa.array(sizes, kind)})
    with pytest.raises(DataError, check=about("source")):
        dc.read_jobs(table, schema=schema)
    unchecked = dc.read_jobs(table, schema=schema, validate=False)
    opened = session(unchecked)
    if sum(sizes) >= 2**63:
        with pytest.raises(DataError, check=about("source")):
            opened.count(by=["place"]).release(epsilon=1)
        assert opened.remaining == Pure(100)


def test_nothing_confidential_is_printed(jobs: Jobs) -> None:
    opened = session(jobs)
    cells = cell_statistics(jobs, workplace_by=["sector"])
    text = repr(opened) + repr(jobs) + repr(cells) + repr(opened.count(by=["sector"]).release(epsilon=1))
    for value in (*cells.counts.ravel().tolist(), *cells.largest.ravel().tolist()):
        assert value < 1000 or str(value) not in text.replace(",", "")


def test_a_release_loads_no_root_finder() -> None:
    """A third of a second and 24 MiB of every process that releases a table."""
    code = (
        "import sys, discreet as dc\n"
        "jobs = {'workplace': [1, 2], 'worker': [1, 2], 'sector': ['a', 'b'], 'sex': ['f', 'm']}\n"
        "schema = dc.Schema(['sector'], {'sex': ['f', 'm']})\n"
        "session = dc.Session(dc.read_jobs(jobs, schema=schema), unit=dc.Establishments('0.1'), budget=9)\n"
        "for by in (['sector'], ['sector', 'sex']): session.count(by=by).release(epsilon=3)\n"
        "print('scipy.special' in sys.modules, 'scipy.optimize' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "False"]
