"""Two quarters of the same establishments under two names: every paper carries the sum for those who are in both."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from discreet.desk.book import book_at
from discreet.ledger import Ledger
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.privacy.assurance import APART, ASKED, DIFFERENT
from discreet.publication.site import site
from discreet.review.verdict import verify_bundle
from discreet.words.errors import PlanError
from faults_of import about

SUM = "Somebody who is in several of 'q1' and 'q2' is covered by the sum of their losses alone, epsilon=4."
SOURCE = """
[source.{name}.data]
source = "data/{name}.parquet"
workplaces = "data/places.parquet"
[source.{name}.data.schema]
workplace_attributes = ["place", "sector"]
worker_attributes = {{ sex = ["f", "m"] }}
[source.{name}.unit]
kind = "establishments"
alpha = 0.1
[source.{name}.budget]
epsilon = 3
ledger = "ledger.db"
dataset = "{name}"

[[release]]
name = "jobs-{name}"
source = "{name}"
kind = "count"
mechanism = "polynomial"
by = ["place"]
epsilon = 2
"""


@pytest.fixture(scope="module")
def quarters(tmp_path_factory: pytest.TempPathFactory, toys) -> Path:
    plan = toys(tmp_path_factory.mktemp("quarters") / "toys")
    text = "".join(SOURCE.format(name=name) for name in ("q1", "q2"))
    plan.write_text(f'{text}\n[output]\nfolder = "out"\n', encoding="utf-8")
    import pyarrow.parquet as pq

    jobs = pq.read_table(plan.parent / "data" / "jobs.parquet")
    pq.write_table(jobs, plan.parent / "data" / "q1.parquet")
    pq.write_table(jobs.slice(3), plan.parent / "data" / "q2.parquet")  # three workers have left
    return plan


@pytest.fixture(scope="module")
def released(quarters: Path) -> Path:
    run(quarters)
    return quarters


def test_a_check_adds_up_and_asks_whether_anybody_is_in_both(quarters: Path) -> None:
    found = check(read_plan(quarters))
    assert not found.faults and ASKED in found.notes, "an existing plan goes on"
    assert found.in_several is not None and found.in_several.covered.startswith(SUM)
    assert found.to_dict()["in_several"]["loss"] == {"epsilon": "4"}


def test_every_paper_carries_the_sum(released: Path, command, tmp_path: Path) -> None:
    """Red before: each source's table said 'from all releases', and no paper had the sum."""
    out, ledger = released.parent / "out", released.parent / "ledger.db"
    page = (out / "report.html").read_text(encoding="utf-8").replace("&#x27;", "'").replace("\u00a0", " ")
    assert "from all releases, to at most" not in page and "from all releases of 'q1', to at most" in page
    assert SUM in page and APART in page
    [both] = [part for part in page.split("<table") if "from all releases of 'q1' and 'q2', to at most" in part]
    assert "35.6 %" in both.partition("</table>")[0], "1 % becomes 35.6 % by both, and not 6.95 %"
    findings = verify_bundle(out / "bundle.zip", ledger=ledger)
    assert not [one for one in findings if one.wrong], findings
    assert "same bytes" in next(one.words for one in findings if one.subject == "report.html")
    site(out, tmp_path / "site", formats=("csv",))
    first = (tmp_path / "site" / "index.html").read_text(encoding="utf-8").replace("&#x27;", "'")
    assert SUM in first and "with proved privacy" in first and "these releases of 'q1'" in first
    for printed in (
        command("audit", "identification", out)[1],
        command("audit", "identification", out / "jobs-q1", out / "jobs-q2")[1],
        command("ledger", "show", ledger)[1],
        command("check", released)[1],
    ):
        assert SUM in " ".join(printed.split())
    assert book_at(str(ledger)).in_several.startswith(SUM), "the desk's page of its ledger"


def test_the_help_does_not_say_that_data_sets_are_of_different_people(command) -> None:
    told = " ".join(command("audit", "identification", "--help")[1].split())
    assert "different people" not in told and "in several" in told


def test_where_nobody_is_in_both_the_plan_says_so(released: Path, tmp_path: Path) -> None:
    """A declaration changes no request: what was paid for is found again, and the reviewer makes the same report."""
    folder = Path(shutil.copytree(released.parent, tmp_path / "copy"))
    plan = folder / "plan.toml"
    plan.write_text(f'people = "different"\n{plan.read_text(encoding="utf-8")}', encoding="utf-8")
    found = check(read_plan(plan))
    assert found.in_several is None and ASKED not in found.notes
    done = run(plan)
    assert {known.state for known in done.check.releases} == {"released"} and done.bundle is not None
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert DIFFERENT in page and "covered by the sum of their losses" not in page
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]
    plan.write_text(plan.read_text(encoding="utf-8").replace('"different"', '"none"'), encoding="utf-8")
    with pytest.raises(PlanError, check=about("people")):
        read_plan(plan)


def test_a_charge_that_promises_nothing_ends_the_bounds_of_its_data(released: Path, tmp_path: Path) -> None:
    """A report's bound is over all releases of the data: one seeded release beside it, and there is none."""
    folder = Path(shutil.copytree(released.parent, tmp_path / "copy"))
    with Ledger.open(folder / "ledger.db") as ledger:
        unit = read_plan(folder / "plan.toml").sources[0].unit
        ledger.charge(dataset="q1", unit=unit, release="trial", loss=ledger.budget("q1", unit).remaining,
                      details={"private": False})  # fmt: skip
    done = run(folder / "plan.toml")
    page = (folder / "out" / "report.html").read_text(encoding="utf-8").replace("&#x27;", "'")
    assert "Nothing is promised about 'q1': of release 'trial' the noise was seeded" in page
    assert "from all releases of 'q1', to at most" not in page and "from all releases of 'q2', to at most" in page
    assert "98.3 %" not in page.replace("\u00a0", " ").partition("several data sets")[2].partition("Budget")[0]
    assert done.bundle is not None and not [one for one in verify_bundle(done.bundle) if one.wrong]
    assert json.loads(json.dumps(done.check.to_dict()))["in_several"]["promised"] is False
