"""Several sources in one plan: one check, one run, one report, one bundle; and no source pays for another."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Ledger
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.plan.shape import json_schema
from discreet.privacy.losses import Pure
from discreet.review.verdict import verify_bundle
from discreet.words.errors import PlanError


@pytest.fixture
def both(tmp_path: Path, two_sources) -> Path:
    return two_sources(tmp_path / "both")


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory, two_sources) -> Path:
    """The same plan after its run, which many tests share and none changes."""
    plan = two_sources(tmp_path_factory.mktemp("released"))
    run(plan)
    return plan


def test_a_check_and_a_dry_run(both: Path, command, contents) -> None:
    code, out, err = command("check", both)
    assert code == 0, err
    assert "for 'toys'" in out and "for 'panel'" in out and "All 2 data sets together: epsilon=6." in out
    told = json.loads(command("check", both, "--json")[1])
    assert [each["budget"]["dataset"] for each in told["budgets"]] == ["toys", "panel"]
    assert [each["cost"] for each in told["budgets"]] == [{"epsilon": "4"}, {"epsilon": "2"}]
    assert [each["dataset"] for each in told["releases"]] == ["toys", "panel", "toys"] and told["cost"] == {
        "epsilon": "6"
    }
    before = contents(both.parent)
    code, out, err = command("run", both, "--dry-run")
    assert code == 0, err
    assert contents(both.parent) == before


def test_from_run_to_reviewer(released: Path) -> None:
    both = released
    with Ledger.open(both.parent / "ledger.db", read_only=True) as ledger:
        assert {budget.dataset: budget.spent for budget in ledger.budgets()} == {"toys": Pure(4), "panel": Pure(2)}
        charges = [(entry.dataset, entry.release) for entry in ledger.entries() if entry.kind == "charge"]
    assert charges == [("toys", "places"), ("panel", "effects"), ("toys", "sexes")]
    bundle = both.parent / "out" / "bundle.zip"
    found = verify_bundle(bundle, ledger=both.parent / "ledger.db")
    assert not [one for one in found if one.wrong], found
    assert "same bytes" in next(one.words for one in found if one.subject == "report.html")
    page = (both.parent / "out" / "report.html").read_text(encoding="utf-8")
    assert "Budget: toys" in page and "Budget: panel" in page and page.count(" cost epsilon=") == 2
    again = run(both)
    assert {known.state for known in again.check.releases} == {"released"}
    assert again.bundle == bundle


def test_each_data_set_is_attacked_for_itself(released: Path, command, tmp_path: Path) -> None:
    """It was refused, although the help names the output folder of a plan."""
    page, out = tmp_path / "page.html", released.parent / "out"
    code, text, _ = command("audit", "identification", out, "--out", page)
    assert code == 0 and {"Data set toys", "Data set panel"} <= set(text.splitlines())
    code, text, _ = command("audit", "identification", out, "--json")
    assert code == 0 and set(json.loads(text)["datasets"]) == {"toys", "panel"}
    assert page.read_text(encoding="utf-8").count("<h2") >= 2


def test_the_order_of_sources_is_no_fault(both: Path) -> None:
    """Red before: a bundle lists sources by name, the report had them in the plan's order.

    What nothing depends on is named by its source: another source may have a column of that name that counts.
    """
    text = (
        both.read_text(encoding="utf-8")
        .replace("[source.jobs", "[source.zoo")
        .replace('source = "jobs"', 'source = "zoo"')
    )
    last = text.rindex("[[release]]")
    both.write_text(text[:last] + text[text.index("[output]") :], encoding="utf-8")
    assert text.index("[source.zoo") < text.index("[source.panel")
    found = verify_bundle(run(both).bundle)
    assert not [one for one in found if one.wrong]
    [names] = [one.words for one in found if "no table depends" in one.words]
    assert "'sex' of source 'zoo'" in names and "'place'" not in names, names


def test_one_source_by_name_is_as_one_without(plan: Path) -> None:
    """A name changes no request: what was paid for under the short form is found under the long one."""
    text = plan.read_text(encoding="utf-8")
    second = text.index("[[release]]", text.index("[[release]]") + 1)
    text = text[:second].replace('"count"', '"count"\nmechanism = "polynomial"') + text[text.index("[output]") :]
    plan.write_text(text, encoding="utf-8")
    done = run(plan)
    for table in ("data.schema", "data", "unit", "budget"):
        text = text.replace(f"[{table}]", f"[source.jobs.{table}]")
    plan.write_text(text, encoding="utf-8")
    again = run(plan)
    assert {known.state for known in again.check.releases} == {"released"}
    assert again.publications == done.publications
    assert not [one for one in verify_bundle(again.bundle) if one.wrong]


REFUSED = {
    "names none": ('source = "panel"\n', "", "release.1.source"),
    "names no source": ('source = "panel"\n', 'source = "pannel"\n', "release.1.source"),
    "an unused source": ('source = "panel"\n', 'source = "jobs"\n', "source.panel"),
    "both forms": ("[source.panel.unit]", "[budget]\nepsilon = 1\n[source.panel.unit]", "budget"),
    "a source without a name": ("[source.panel.", '[source."".', "source"),
    "a name that is none": ("[source.panel.", '[source."the panel".', "source.the panel"),
    "one data set with two budgets": ('dataset = "panel"', 'dataset = "toys"', "source.panel.budget.dataset"),
    "one data set under two units": (
        'epsilon = 2\nledger = "ledger.db"\ndataset = "panel"',
        'epsilon = 4\nledger = "ledger.db"\ndataset = "toys"',
        "source.panel.unit",
    ),
    "two ledgers": (
        'ledger = "ledger.db"\ndataset = "panel"',
        'ledger = "other.db"\ndataset = "panel"',
        "source.panel.budget.ledger",
    ),
    "no budget": (
        '[source.panel.budget]\nepsilon = 2\nledger = "ledger.db"\ndataset = "panel"',
        "",
        "source.panel.budget",
    ),
    "an unknown key": ("[source.panel.unit]", "[source.panel.unitt]", "source.panel.unitt"),
    "a wrong amount": ("alpha = 0.1", "alpha = 'a tenth'", "source.jobs.unit.alpha"),
    "one file under two budgets": ('"data/panel.parquet"', '"data/jobs.parquet"', "source.panel.budget.dataset"),
    "a folder that holds the other": ('"data/panel.parquet"', '"data"', "source.panel.budget.dataset"),
    "public sizes of another source": (
        "[source.jobs.unit]",
        "[source.jobs.public]\nsizes = 'data/panel.parquet'\n[source.jobs.unit]",
        "source.jobs.public.sizes",
    ),
    "a budget that is too small": ("epsilon = 4", "epsilon = 3", "release.2.epsilon"),
}


@pytest.mark.parametrize("old, new, place", REFUSED.values(), ids=REFUSED)
def test_refused_before_anything_is_spent(both: Path, contents, old: str, new: str, place: str) -> None:
    text = both.read_text(encoding="utf-8")
    assert old in text
    both.write_text(text.replace(old, new), encoding="utf-8")
    before = contents(both.parent)
    with pytest.raises(PlanError) as error:
        run(both)
    assert place in {fault.about for fault in error.value.faults}
    assert contents(both.parent) == before


def test_two_sources_of_one_name_are_no_toml(both: Path, command) -> None:
    both.write_text(both.read_text(encoding="utf-8").replace("[source.panel.", "[source.jobs."), encoding="utf-8")
    code, _, err = command("check", both)
    assert code == 2 and "plan.toml:18" in err


def test_a_hard_link_is_the_same_data(both: Path) -> None:
    panel = both.parent / "data" / "panel.parquet"
    panel.unlink()
    panel.hardlink_to(both.parent / "data" / "jobs.parquet")
    assert "source.panel.budget.dataset" in {fault.about for fault in check(read_plan(both)).faults}


def test_two_tables_of_one_database_are_two_data(both: Path) -> None:
    import duckdb

    with duckdb.connect(str(both.parent / "all.duckdb")) as base:
        for name in ("jobs", "panel"):
            base.execute(f"create table {name} as from '{both.parent / 'data' / name}.parquet'")
    text = both.read_text(encoding="utf-8")
    for name in ("jobs", "panel"):
        text = text.replace(f"data/{name}.parquet", f"all.duckdb::{name}")
    both.write_text(text, encoding="utf-8")
    assert not check(read_plan(both)).faults
    both.write_text(text.replace("all.duckdb::panel", "all.duckdb::jobs"), encoding="utf-8")
    assert "source.panel.budget.dataset" in {fault.about for fault in check(read_plan(both)).faults}


def test_two_files_may_share_one_budget(both: Path) -> None:
    """Quarters of one data set, say: they add up in one account."""
    pq.write_table(pq.read_table(both.parent / "data" / "jobs.parquet"), both.parent / "data" / "later.parquet")
    text = both.read_text(encoding="utf-8")
    start, end = text.index("[source.panel.data]"), text.index("[[release]]")
    first = text[text.index("[source.jobs.data]") : start]
    second = first.replace("source.jobs", "source.later").replace("data/jobs.parquet", "data/later.parquet")
    rest = text[end:].replace(
        'source = "panel"\nkind = "model"\nformula = "y ~ 1 + (1 | g)"',
        'source = "later"\nkind = "count"\nmechanism = "polynomial"\nby = ["place"]',
    )
    both.write_text((text[:start] + second + rest).replace("epsilon = 4", "epsilon = 6"), encoding="utf-8")
    done = run(both)
    assert [budget.dataset for budget in done.budgets] == ["toys"]
    assert not done.remaining
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]


def test_no_source_pays_or_waits_for_the_rows_of_another(both: Path, tmp_path: Path, two_sources) -> None:
    """Prices and requests of a source are the same whatever another holds; what another holds wrong costs nothing."""

    def asked(plan: Path) -> list[object]:
        found = check(read_plan(plan))
        return [(each.name, each.loss, each.request.details) for each in found.releases]

    other = two_sources(tmp_path / "other")
    panel = other.parent / "data" / "panel.parquet"
    pq.write_table(pq.read_table(panel).slice(0, 9), panel)
    assert asked(other) == asked(both)
    jobs = other.parent / "data" / "jobs.parquet"
    pq.write_table(pq.read_table(jobs).set_column(2, "sex", pa.array(["?"] * pq.read_metadata(jobs).num_rows)), jobs)
    with pytest.raises(PlanError):
        run(other)
    assert not (other.parent / "ledger.db").exists()


def test_a_release_moved_to_another_source_is_refuted(released: Path, tmp_path: Path) -> None:
    bundle, forged = released.parent / "out" / "bundle.zip", tmp_path / "forged.zip"
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(forged, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "request.json":
                asked = json.loads(content)
                asked["sources"]["panel"]["budget"]["epsilon"] = "20"
                content = json.dumps(asked).encode()
            new.writestr(old.getinfo(name), content)
    assert "request" in {one.subject for one in verify_bundle(forged) if one.wrong}


def test_the_schema_for_editors_knows_both_forms(both: Path, plan: Path) -> None:
    import tomllib

    validator = pytest.importorskip("jsonschema").Draft202012Validator(json_schema())
    one, several = (tomllib.loads(path.read_text(encoding="utf-8")) for path in (plan, both))
    assert not list(validator.iter_errors(one)) and not list(validator.iter_errors(several))
    assert list(validator.iter_errors(one | {"source": several["source"]}))
    del one["unit"]
    assert list(validator.iter_errors(one))


def test_a_plan_of_two_data_sets_is_published_as_one(released: Path, tmp_path: Path, command) -> None:
    out = released.parent / "out"
    code, _, err = command(
        "publish", out, "--out", tmp_path / "files", "--formats", "csv,csvw,sdmx", "--ledger", out.parent / "ledger.db"
    )
    assert code == 0, err
    names = {path.name for path in (tmp_path / "files").iterdir()}
    assert {"places.csv", "sexes.csv", "csv-metadata.json", "structure.xml"} <= names
    assert any(name.startswith("effects") for name in names)
    code, _, err = command("site", out, "--out", tmp_path / "site")
    assert code == 0, err
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "toys" in page and "About panel" in page and "About toys" in page
    code, _, err = command("synthesize", out, "--out", tmp_path / "jobs.parquet")
    assert code == 2 and not (tmp_path / "jobs.parquet").exists()
