"""A data set has one budget: another spelling of its name, or its files under another name, is refused."""

from __future__ import annotations

import os
from pathlib import Path
from unicodedata import normalize

import pytest

import discreet as dc
from discreet.errors import PlanError, PrivacyError
from discreet.ledger import Ledger
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.privacy.losses import Pure
from discreet.privacy.units import Workers
from discreet.scans import origin_of
from discreet.schema import Schema
from faults_of import about

SCHEMA = Schema(["place"], {"sex": ["F", "M"]})
ROWS = "workplace,worker,place,sex\na,1,x,F\na,2,x,M\nb,3,y,F\n"


@pytest.mark.parametrize("other", ["Jobs 2026", "jobs  2026", "jobs-2026", "JOBS_2026"])
def test_a_name_in_another_spelling_is_refused(other: str) -> None:
    ledger = Ledger.in_memory()
    ledger.open_budget(dataset="jobs 2026", unit=Workers(), total=Pure(2))
    with pytest.raises(PrivacyError, check=about("dataset")):
        ledger.open_budget(dataset=other, unit=Workers(), total=Pure(2))
    assert len(ledger.entries()) == 1
    ledger.open_budget(dataset="jobs 2026", unit=Workers(), total=Pure(2))


@pytest.mark.parametrize("other", [normalize("NFD", "Löhne 2026"), "Ｌöhne ２０２６", "LÖHNE\u00a02026", "löhne_2026"])
def test_letters_that_unicode_writes_otherwise_are_the_same(other: str) -> None:
    """Before, an umlaut of two signs, as some keyboards and file systems write it, was another data set."""
    ledger = Ledger.in_memory()
    ledger.open_budget(dataset="Löhne 2026", unit=Workers(), total=Pure(2))
    with pytest.raises(PrivacyError, check=about("dataset")):
        ledger.open_budget(dataset=other, unit=Workers(), total=Pure(2))


@pytest.mark.parametrize("other", ["jobs 2027", "jobs", "jobs 20 26", "jobs2026"])
def test_another_name_is_another_data_set(other: str) -> None:
    ledger = Ledger.in_memory()
    for name in ("jobs 2026", other):
        ledger.open_budget(dataset=name, unit=Workers(), total=Pure(2))
    assert len(ledger.budgets()) == 2


def test_files_under_a_second_name_are_refused_until_they_are_written_again(tmp_path: Path) -> None:
    path, ledger = tmp_path / "jobs.csv", tmp_path / "ledger.db"
    path.write_text(ROWS, encoding="utf-8")

    def session(name: str, data: object = path) -> dc.Session:
        jobs = dc.read_jobs(data, schema=SCHEMA)
        return dc.Session(jobs, unit=dc.Establishments(0.1), budget=2, ledger=ledger, dataset=name)

    session("first").count("place").release(epsilon=2)
    (tmp_path / "link.csv").symlink_to(path)
    for same in (path, str(path), tmp_path / "link.csv"):
        with pytest.raises(PrivacyError, check=about("dataset")):
            session("second", same)
    session("first")
    os.utime(path, ns=(1, 1))  # the next quarter, in the same place
    assert str(session("second").remaining) == "epsilon=2"


def test_what_a_file_holds_is_not_in_its_origin(tmp_path: Path) -> None:
    path, found = tmp_path / "jobs.csv", []
    for rows in (ROWS, ROWS.replace("a,2,x,M\n", "")):
        path.write_text(rows, encoding="utf-8")
        os.utime(path, ns=(1, 1))
        found.append(origin_of(path))
    assert found[0] is not None and found[0] == found[1]
    assert origin_of({"workplace": []}) is None
    assert origin_of(f"{path}::a") != origin_of(f"{path}::b")  # two tables of a file
    assert origin_of(tmp_path / "absent.csv") is None
    assert origin_of(f"{tmp_path}/jobs*.csv") == origin_of(path)
    assert origin_of("s3a://bucket/jobs.parquet") is None


def test_a_plan_is_refused_at_its_name_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(ROWS, encoding="utf-8")
    text = """
[data]
source = "jobs.csv"
[data.schema]
workplace_attributes = ["place"]
worker_attributes = { sex = ["F", "M"] }
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 2
dataset = "NAME"
ledger = "ledger.db"
[output]
folder = "NAME"
[[release]]
name = "places"
kind = "count"
by = ["place"]
epsilon = 2
"""
    for name in ("first", "second"):
        (tmp_path / f"{name}.toml").write_text(text.replace("NAME", name), encoding="utf-8")
    run(tmp_path / "first.toml")
    for ask in (lambda plan: check(read_plan(plan)).refuse(), run):
        with pytest.raises(PlanError, check=about("dataset")):
            ask(tmp_path / "second.toml")
    assert not (tmp_path / "second").exists()
    run(tmp_path / "first.toml")
