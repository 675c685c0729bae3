"""A lookup of a hierarchy is published as it stands, so no confidential file can be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.words.errors import PlanError

ROWS = "workplace,jobs,code,emp\na,3,c1,3\nb,23,c2,23\nc,45,c3,45\n"
PLAN = """
[hierarchy.area]
levels = ["code", "emp"]
lookup = "LOOKUP"
[data]
source = "jobs.csv"
[data.schema]
workplace_attributes = ["code"]
worker_attributes = {}
size = "jobs"
unused = ["*"]
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 4
dataset = "jobs"
ledger = "ledger.db"
[[release]]
name = "a"
kind = "counts"
tables = [["code"], ["emp"]]
measure = "finest"
epsilon = 1
[output]
folder = "out"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "link.csv").symlink_to(tmp_path / "jobs.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "jobs.csv")
    (tmp_path / "areas.csv").write_text("code,emp\nc1,x\nc2,x\nc3,y\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("lookup", ["jobs.csv", "./jobs.csv", "link.csv", "hard.csv"])
def test_a_confidential_file_is_no_lookup(folder: Path, lookup: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red before: the exact workforces stood in parents-area.csv of the release. Nor is it read as one."""
    monkeypatch.setattr("discreet.plan.confidential.read_lookup", lambda *_: pytest.fail("it was read"))
    (folder / "plan.toml").write_text(PLAN.replace("LOOKUP", lookup), encoding="utf-8")
    for ask in (lambda plan: check(read_plan(plan)).refuse(), run):
        with pytest.raises(PlanError) as refused:
            ask(folder / "plan.toml")
        assert ("hierarchy", "area") in [fault.place for fault in refused.value.faults]
    assert not (folder / "ledger.db").exists() and not (folder / "out").exists()


def test_a_public_file_is_one(folder: Path) -> None:
    (folder / "plan.toml").write_text(PLAN.replace("LOOKUP", "areas.csv"), encoding="utf-8")
    run(folder / "plan.toml")
    assert (folder / "out" / "a").is_dir()
    (folder / "areas.csv").unlink()
    check(read_plan(folder / "plan.toml")).refuse()  # what is released needs no file again


BAD = {
    "nothing": None,
    "no table": "\0\1",
    "no rows": "",
    "one level": "code\nc1\n",
    "two parents": "code,emp\nc1,x\nc1,y\nc2,x\nc3,y\n",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_public_lookup_is_told_before_data_are_asked_for(folder: Path, kind: str) -> None:
    """Red before: `check` had no complaint, and only a run told."""
    (folder / "jobs.csv").unlink()
    if (content := BAD[kind]) is not None:
        (folder / "bad.csv").write_text(content, encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN.replace("LOOKUP", "bad.csv"), encoding="utf-8")
    with pytest.raises(PlanError) as refused:
        check(read_plan(folder / "plan.toml")).refuse()
    assert ("hierarchy", "area") in [fault.place for fault in refused.value.faults]
    assert not (folder / "ledger.db").exists() and not (folder / "out").exists()


@pytest.mark.parametrize(("lookup", "known"), [("areas.csv", True), ("jobs.csv", False), ("link.csv", False)])
def test_no_expected_error_is_computed_from_a_confidential_lookup(folder: Path, lookup: str, known: bool) -> None:
    """Red before: the number of public cells by a level told how many different values the confidential file has."""
    text = PLAN.replace("LOOKUP", lookup).replace('measure = "finest"\n', "").replace("epsilon = 1\n", "epsilon = 4\n")
    (folder / "sizes.csv").write_text("code,jobs\nc1,30\nc2,20\nc3,50\n", encoding="utf-8")
    (folder / "plan.toml").write_text(text.replace("[[release]]", '[public]\nsizes = "sizes.csv"\n[[release]]'))
    found = check(read_plan(folder / "plan.toml"))
    assert [table.expected is not None for known in found.releases for table in known.tables] == [known, known]
    assert bool(found.faults) is not known
