"""A plan carried out: what is written, what it says, what it does when asked again, and that nothing leaks."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Ledger
from discreet.ledger.publication import check_release, fingerprints
from discreet.plan.check import check
from discreet.plan.kinds.counts import PlannedCounts
from discreet.plan.outputs import basic
from discreet.plan.readers import shown_tables
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.privacy.units import Establishments
from discreet.words.errors import DiscreetError, PlanError, PrivacyError
from faults_of import about

UNIT = Establishments("0.1")


@pytest.fixture
def done(plan: Path) -> Path:
    """The output folder of the toy plan."""
    run(plan)
    return plan.parent / "out"


def test_everything_is_there(done: Path) -> None:
    names = {path.relative_to(done).as_posix() for path in done.rglob("*") if path.is_file()}
    tables = ["places", "sexes", "margins/1-place-sector", "margins/2-place"]
    expected = {f"{t}/{form}.{kind}" for t in tables for form in ("basic", "research") for kind in ("csv", "parquet")}
    expected |= {f"{name}/release.json" for name in ("places", "sexes", "margins")}
    assert names == expected | {"report.html", "bundle.zip", "anchors.jsonl"}


def test_no_release_starts_a_chart_engine(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer to start than all else that a plan adds to its tables."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    run(plan)
    assert (plan.parent / "out" / "report.html").read_text(encoding="utf-8").count("<figure>") >= 2


def test_research_counts_are_near_the_truth(plan: Path, done: Path) -> None:
    """Noise has the size that check promises: the mean error over cells is within three of its expectation."""
    jobs = pq.read_table(plan.parent / "data" / "jobs.parquet")
    places = pq.read_table(plan.parent / "data" / "places.parquet")
    truth = jobs.join(places, "workplace").group_by(["place", "sector"]).aggregate([("worker", "count")])
    released = pq.read_table(done / "places" / "research.parquet")
    both = released.join(truth, ["place", "sector"])
    assert len(both) == len(truth) == 8
    error = np.abs(np.array(both["count"]) - np.array(both["worker_count"]))
    assert error.mean() < 12  # largest establishments have about 25 workers: expected error 1.3, tails 1 in 10^8


def test_manifest(plan: Path, done: Path) -> None:
    about = json.loads((done / "sexes" / "release.json").read_text())
    assert about["guarantee"]["definition"] == "strong (alpha=0.1, epsilon=2)-employer-employee privacy"
    assert about["guarantee"]["private"] is True
    assert about["parameters"]["tables"][0]["mechanism"] == "joint-rings"
    assert about["parameters"]["tables"][0]["domains"] == {"sex": ["f", "m"]}
    assert about["code"]["discreet"] == "0.1.0"
    assert about["code"]["libraries"]["numpy"] == np.__version__
    assert "exact" in about["sampler"]
    assert about["files"] == {n: h for n, h in fingerprints(done / "sexes").items() if n != "release.json"}
    with Ledger.open(plan.parent / "ledger.db", read_only=True) as ledger:
        assert check_release(ledger, done / "sexes" / "release.json") == ""
        charge = ledger.charged("toys", "sexes")
    assert charge is not None
    assert about["ledger"] == charge.reference


def test_csv_and_parquet_say_the_same(done: Path) -> None:
    for form in ("basic", "research"):
        with (done / "sexes" / f"{form}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        table = pq.read_table(done / "sexes" / f"{form}.parquet").to_pylist()
        assert [{k: str(v) for k, v in row.items()} for row in rows] == [
            {k: str(int(v) if isinstance(v, float) else v) for k, v in row.items()} for row in table
        ]


def test_basic_form() -> None:
    research = pa.table(
        {
            "sector": ["11", "11", "52"],
            "kind": [1, 2, 1],
            "count": [0, 12, 8],
            "lower": [0.0, 11.0, np.nan],
            "upper": [2.0, np.inf, np.nan],
        }
    )
    research = research.set_column(3, "lower", pa.array([0.0, 11.0, None]))
    shown = basic(research, {"sector": {"11": "Farming"}}, round_to=5)
    assert shown.to_pylist() == [
        {"sector": "Farming", "kind": 1, "count": 0, "lower": 0, "upper": 5},
        {"sector": "Farming", "kind": 2, "count": 10, "lower": 10, "upper": None},
        {"sector": "52", "kind": 1, "count": 10, "lower": None, "upper": None},
    ]


def test_tables_add_up(done: Path) -> None:
    fine = pq.read_table(done / "margins" / "1-place-sector" / "basic.parquet")
    coarse = pq.read_table(done / "margins" / "2-place" / "basic.parquet")
    summed = fine.group_by("place").aggregate([("count", "sum")]).sort_by("place")
    assert summed["count_sum"].to_pylist() == coarse.sort_by("place")["count"].to_pylist()
    assert pc.min(fine["count"]).as_py() >= 0


def test_again_changes_nothing(plan: Path, done: Path, contents) -> None:
    before = contents(plan.parent)
    outcome = run(plan)
    assert {known.state for known in outcome.check.releases} == {"released"}
    assert contents(plan.parent) == before


def test_again_needs_no_data(plan: Path, done: Path) -> None:
    (plan.parent / "data" / "jobs.parquet").unlink()
    report = (done / "report.html").read_bytes()
    (done / "report.html").unlink()
    run(plan)
    assert (done / "report.html").read_bytes() == report


def test_a_further_release_is_paid_alone(plan: Path, done: Path) -> None:
    more = '\n[[release]]\nname = "sectors"\nkind = "count"\nby = ["sector"]\nepsilon = "0.5"\n'
    plan.write_text(plan.read_text().replace("\n[output]", more + "\n[output]"))
    with pytest.raises(PlanError, check=about("release.3.epsilon")):
        run(plan)
    with Ledger.open(plan.parent / "ledger.db") as ledger:
        from discreet.privacy.losses import Pure

        ledger.change_budget(
            dataset="toys", unit=UNIT, total=Pure("6.5"), reason="a test", by="anna", confirmed_by="rita"
        )
    plan.write_text(plan.read_text().replace("epsilon = 6\n", "epsilon = 6.5\n"))
    before = {name: fingerprints(done / name) for name in ("places", "sexes", "margins")}
    outcome = run(plan)
    assert [known.state for known in outcome.check.releases] == ["released"] * 3 + ["new"]
    assert {name: fingerprints(done / name) for name in before} == before
    assert not outcome.remaining
    assert outcome.check.only.cost.amounts == {"epsilon": Fraction(1, 2)}


def test_dry_run_reads_the_data_and_writes_nothing(plan: Path, command, contents) -> None:
    before = contents(plan.parent)
    code, out, _ = command("run", plan, "--dry-run")
    assert code == 0
    assert "nothing was written or spent" in out
    assert contents(plan.parent) == before
    code, out, _ = command("run", plan, "--dry-run", "--json")
    assert json.loads(out)["dry_run"] is True


def test_json_for_machines(plan: Path, command) -> None:
    code, out, _ = command("run", plan, "--json")
    told = json.loads(out)
    assert code == 0
    assert [release["before"] for release in told["releases"]] == ["new"] * 3
    assert told["releases"][0]["files"] == fingerprints(plan.parent / "out" / "places")
    assert told["remaining"] == {"epsilon": "0"}
    assert told["report"] == "out/report.html"
    assert str(plan.parent) not in out


def test_progress_tells_every_step(plan: Path) -> None:
    steps = []
    run(plan, progress=lambda step, share: steps.append((step, share)))
    assert [share for _, share in steps] == [done / len(steps) for done in range(len(steps))]
    assert steps[5][0] == "release places"


def test_nothing_confidential_in_any_byte(tmp_path: Path, toys, command) -> None:
    """Marked identifiers and a marked filler column are in the data and in no byte of anything that is written."""
    mark, plan = "ZQXMARKED", toys(tmp_path / "toys")
    folder = plan.parent
    for name, columns in (("jobs", ("workplace", "worker")), ("places", ("workplace",))):
        table = pq.read_table(folder / "data" / f"{name}.parquet")
        for column in columns:
            values = [f"{mark}-{column}-{value}" for value in table[column].to_pylist()]
            table = table.set_column(table.column_names.index(column), column, [values])
        pq.write_table(table.append_column("note", [[mark] * len(table)]), folder / "data" / f"{name}.parquet")
    plan.write_text(plan.read_text().replace("[data.schema]", '[data.schema]\nunused = ["note"]'))
    said = "".join(command("run", plan, *more)[i] for more in ((), ("--json",)) for i in (1, 2))
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.parent.name != "data":
            assert mark.encode() not in path.read_bytes(), path
        if path.suffix == ".parquet" and path.parent.name != "data":
            assert mark not in str(pq.read_table(path).to_pydict()), path
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as packed:
                assert all(mark.encode() not in packed.read(name) for name in packed.namelist())
    assert (folder / "out" / "report.html").exists()
    table = pq.read_table(folder / "data" / "jobs.parquet")
    wrong = table.set_column(table.column_names.index("sex"), "sex", [[mark, *table["sex"].to_pylist()[1:]]])
    pq.write_table(wrong, folder / "data" / "jobs.parquet")
    plan.write_text(plan.read_text().replace('"toys"', '"toys 2"').replace('folder = "out"', 'folder = "out2"'))
    code, out, err = command("run", plan)
    assert code == 2
    assert "outside its public domain" in err
    assert mark not in said + out + err
    pq.write_table(pa.table({"workplace": [mark]}), folder / "data" / "jobs.parquet")
    assert mark not in "".join(map(str, command("run", plan)))


def test_a_full_disk_is_told_and_resumed(plan: Path, monkeypatch: pytest.MonkeyPatch, command) -> None:
    from discreet.plan import outputs

    write = outputs.write_table

    def full(table: pa.Table, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs, "write_table", full)
    code, _, err = command("run", plan)
    assert code == 1
    assert "No space left on device. It may be paid for; nothing was shown." in err
    monkeypatch.setattr(outputs, "write_table", write)
    assert run(plan).check.releases[0].state == "paid, not released"
    with Ledger.open(plan.parent / "ledger.db", read_only=True) as ledger:
        assert ledger.verify()
        assert not ledger.remaining("toys", UNIT)


def test_workers_as_the_unit(plan: Path, command) -> None:
    plan.write_text(plan.read_text().replace('kind = "establishments"\nalpha = 0.1', 'kind = "workers"'))
    outcome = run(plan)
    assert "**not** hidden" not in (plan.parent / "out" / "report.html").read_text()
    assert "not</strong> hidden" in (plan.parent / "out" / "report.html").read_text()
    assert outcome.bundle is not None
    code, out, _ = command("verify", outcome.bundle)
    assert code == 0, out


def test_only_one_form_and_format(plan: Path, command) -> None:
    plan.write_text(plan.read_text().replace('folder = "out"', 'folder = "out"\nforms = ["basic"]\nformats = ["csv"]'))
    outcome = run(plan)
    assert sorted(path.name for path in (plan.parent / "out" / "places").iterdir()) == ["basic.csv", "release.json"]
    code, out, _ = command("verify", outcome.bundle)
    assert code == 0, out


def test_one_pass_serves_a_table_of_all_workers(plan: Path) -> None:
    """Counted by kinds first, the statistics of all workers are derived; they are those of a pass of its own."""
    from discreet.plan.check import check
    from discreet.plan.confidential import Confidential
    from discreet.plan.reading import read_plan

    text = plan.read_text().replace('by = ["place", "sex"]', 'by = ["place", "sector", "sex"]')
    plan.write_text(text)
    file = read_plan(plan)
    requests = {known.name: known.request for known in check(file).releases}
    shared, alone = (Confidential(file.sources[0]) for _ in range(2))
    requests["sexes"].offer(shared).read(None)
    [derived], [own] = (requests["places"].offer(data).read(None) for data in (shared, alone))
    assert derived.keys.equals(own.keys)
    told = ("counts", "largest", "largest_total", "establishments", "second")
    for name in told:
        assert np.array_equal(getattr(derived, name), getattr(own, name)), name
    expecting = Confidential(file.sources[0])
    expecting.expect(requests["places"].queries[0], requests["places"].ready[0])
    requests["sexes"].offer(expecting).read(None)
    expecting._jobs = None  # what follows reads nothing
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Confidential, "jobs", lambda _: pytest.fail("the data were read again"))
        [again] = requests["places"].offer(expecting).read(None)
    assert all(np.array_equal(getattr(again, name), getattr(own, name)) for name in told)
    assert (derived.worker_by, derived.levels) == (own.worker_by, own.levels)


def test_a_filter_is_not_shared(plan: Path) -> None:
    """A table of women only says nothing about all workers, and must not be taken for them."""
    text = plan.read_text().replace('by = ["place", "sex"]', 'by = ["place", "sector"]\nwhere = { sex = ["f"] }')
    plan.write_text(text)
    run(plan)
    both = [pq.read_table(plan.parent / "out" / name / "research.parquet") for name in ("places", "sexes")]
    jobs = pq.read_table(plan.parent / "data" / "jobs.parquet")
    assert pc.sum(both[0]["count"]).as_py() == pytest.approx(len(jobs), abs=80)
    assert pc.sum(both[1]["count"]).as_py() == pytest.approx(pc.sum(pc.equal(jobs["sex"], "f")).as_py(), abs=80)


@pytest.mark.parametrize("kept", [["m"], ["m", "f"]])
def test_a_report_reads_the_kinds_that_a_table_keeps(plan: Path, command, kept: list[str]) -> None:
    """Another number of kinds ended in an error when all was paid for, or put numbers beside kinds of others."""
    text = plan.read_text(encoding="utf-8")
    plan.write_text(text.replace('by = ["place", "sex"]', f'by = ["place", "sex"]\nwhere = {{ sex = {kept} }}'))
    made = run(plan)
    [request] = [each.request for each in made.check.releases if each.name == "sexes"]
    assert isinstance(request, PlannedCounts)
    [table] = shown_tables(request, made.folder / "sexes")
    drawn = pq.read_table(made.folder / "sexes" / "basic.parquet")
    assert table.levels == tuple((kind,) for kind in sorted(kept))
    assert table.values.ravel().tolist() == drawn["count"].to_pylist() and table.values.shape[1] == len(kept)
    assert command("verify", made.bundle)[0] == command("site", made.folder, "--out", plan.parent / "site")[0] == 0


def test_the_package_is_not_loaded_for_a_plan_that_is_wrong(tmp_path: Path) -> None:
    """A wrong plan is told at once: neither DuckDB nor SQLAlchemy is needed to see it."""
    plan = tmp_path / "plan.toml"
    plan.write_text("title = 3\n")
    code = (
        "import sys\nfrom discreet.plan.reading import read_plan\n"
        "try: read_plan(sys.argv[1])\nexcept ValueError: pass\n"
        "print([m for m in ('duckdb', 'sqlalchemy', 'pandas', 'altair') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, plan], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_plan_of_tables_loads_nothing_that_it_does_not_need(plan: Path) -> None:
    """A third of a second and 50 MiB of every run, where pandas is installed."""
    unused = ("pandas", "pyarrow.dataset", "scipy.optimize", "discreet.models.formula", "discreet.models.bayes")
    unused += tuple(f"discreet.models.linear.{name}" for name in ("fit", "moments", "private", "reml"))
    code = (
        "import sys\nfrom discreet.plan.run import run\nrun(sys.argv[1])\n"
        f"print([m for m in {unused} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, plan], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_markup_in_names_stays_text(plan: Path) -> None:
    """Titles, data sets and categories are other people's texts: none of them may become part of the page."""
    evil = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'
    places = pq.read_table(plan.parent / "data" / "places.parquet")
    names = pa.array([f"{evil} \u2603 {i}" for i in range(len(places))])
    pq.write_table(places.set_column(1, "place", names), plan.parent / "data" / "places.parquet")
    text = plan.read_text().replace('title = "Toys"', f"title = '''{evil}'''")
    text = text.replace('by = ["place", "sector"]\n', 'by = ["place", "sector"]\nstratum = "place"\n', 1)
    plan.write_text(text.replace('dataset = "toys"', f"dataset = '''{evil}'''"))
    run(plan)
    page = (plan.parent / "out" / "report.html").read_text()
    assert page.count("<script") == 1  # the page's own, which its policy names by its hash
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u2603" in page
    assert "<svg" in page


def test_a_report_that_cannot_be_written_costs_nothing_more(plan: Path, command) -> None:
    """As on a full disk: the releases stay, and the next run writes the report."""
    obstacle = plan.parent / "out" / ".report.html.partial"
    obstacle.mkdir(parents=True)
    code, _, err = command("run", plan)
    assert code == 1
    assert "All releases are made and in their folders" in err
    obstacle.rmdir()
    code, out, _ = command("run", plan)
    assert code == 0
    assert out.count("was released before, unchanged") == 3
    assert (plan.parent / "out" / "bundle.zip").exists()


def test_a_folder_that_disappears_before_the_report_is_said(plan: Path) -> None:
    """Red before: an error of the system, without a word on what was paid for."""
    before, first, *_ = plan.read_text().split("[[release]]")
    plan.write_text(f'{before}[[release]]{first}[output]\nfolder = "out"\n')

    def lose(step: str, share: float) -> None:
        if step == "write the report":
            shutil.rmtree(plan.parent / "out")

    with pytest.raises(DiscreetError, check=about("folder")):
        run(plan, progress=lose)
    with Ledger.open(plan.parent / "ledger.db", read_only=True) as ledger:
        assert [entry.kind for entry in ledger.entries()][-2:] == ["charge", "publish"]


def test_what_follows_the_noise_is_rehearsed_before_the_charge(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise PrivacyError("These intervals cannot be computed.", about="intervals")

    monkeypatch.setattr("discreet.tables.intervals.counts.intervals", broken)
    for ask in (lambda: check(read_plan(plan)).refuse(), lambda: run(plan)):
        with pytest.raises(PlanError, check=about("intervals")):
            ask()
    assert not (plan.parent / "ledger.db").exists() and not (plan.parent / "out").exists()


def test_a_folder_that_cannot_be_made_is_found_before_a_ledger_is(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(PlanError, check=about("output.folder")):
        run(plan)
    assert not (plan.parent / "ledger.db").exists() and not (plan.parent / "out").exists()
