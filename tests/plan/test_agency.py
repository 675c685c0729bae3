"""A release beside the agency's own table: checked before, compared after, kept, and computed again by a reviewer."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.archive.packing import as_json
from discreet.cli.plan import _beside_agencies
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.release.folder import open_release
from discreet.review.verdict import verify_bundle
from discreet.words.errors import PlanError

CELLS = [(f"P{i}", sector) for i in range(4) for sector in ("farm", "shop")]


def with_agency(plan: Path, *, compare: str = "", rows: list[list[object]] | None = None) -> Path:
    """The plan's first release alone, beside a file whose first cell is suppressed, second missing, last unknown."""
    rows = rows or [
        *([place, sector, 10 * i, "N" if i == 0 else ""] for i, (place, sector) in enumerate(CELLS) if i != 1),
        ["P9", "farm", 7, ""],
    ]
    with (plan.parent / "agency.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["area", "sector", "emp", "code"], *rows])
    text = plan.read_text(encoding="utf-8")
    second = text.index("[[release]]", text.index("[[release]]") + 1)
    asked = compare or (
        '{ file = "agency.csv", title = "QCEW", columns = { place = "area", count = "emp" }, flag = "code", '
        'suppressed = ["N"] }'
    )
    first = text[:second].replace('by = ["place", "sector"]', f'by = ["place", "sector"]\ncompare = {asked}')
    plan.write_text(
        first.replace('"count"\n', '"count"\nmechanism = "polynomial"\n', 1) + text[text.index("[output]") :]
    )
    return plan


def test_from_the_check_to_the_reviewer(plan: Path, command) -> None:
    with_agency(plan)
    told = json.loads(command("check", plan, "--json")[1])["releases"][0]["agency"]
    assert (told["cells"], told["suppressed"], told["by"], told["number"]) == (8, 1, ["place", "sector"], "count")
    assert sum(each["cells"] for each in told["by_size"]) == 7
    assert all(each["expected_error"] > 0 for each in told["by_size"]), told
    assert "places beside QCEW" in command("check", plan)[1]
    done = run(plan)
    folder = plan.parent / "out" / "places"
    ours = {(row["place"], row["sector"]): row for row in pq.read_table(folder / "research.parquet").to_pylist()}
    found = json.loads((folder / "comparison.json").read_text())["found"]
    number = found["numbers"]["count"]
    assert (number["cells"], number["published"], number["suppressed"], number["absent"]) == (8, 6, 1, 1)
    assert number["elsewhere"] == 1 and found["only"] == {"place": {"here": [], "there": ["P9"]}}
    both = {cell: 10 * i for i, cell in enumerate(CELLS) if i > 1}
    differences = [abs(ours[cell]["count"] - emp) for cell, emp in both.items()]
    assert number["whole"]["difference"] == pytest.approx(sum(differences) / 6)
    assert number["filled"] == ours[CELLS[0]]["count"] and number["theirs"] == sum(both.values())
    inside = [ours[cell]["lower"] <= emp <= ours[cell]["upper"] for cell, emp in both.items()]
    assert number["whole"]["inside"] == sum(inside)
    page = (plan.parent / "out" / "report.html").read_text(encoding="utf-8")
    assert "places beside QCEW" in page and "there alone: P9" in page
    findings = {one.subject: one for one in verify_bundle(done.bundle)}
    assert not [one for one in findings.values() if one.wrong], findings
    assert findings["places: agency's table"].holds and findings["report.html"].holds
    assert "agency.csv" in done.bundle.read_bytes().decode("latin-1")
    (plan.parent / "agency.csv").unlink()  # what is released needs it no more
    assert not check(read_plan(plan)).faults
    [table] = open_release(folder).tables("research")
    assert table.path.stem == "research"
    plan.write_text(plan.read_text().replace('"QCEW"', '"QWI"'))
    assert check(read_plan(plan)).faults[0].place == ("release", 0, "compare")


def test_factors_of_infused_noise_say_how_far_off_the_agency_is(plan: Path, command) -> None:
    """A number of one establishment is off by (0.05 + 0.15) / 2 on average, one of several by less."""
    asked = '{ file = "agency.csv", columns = { place = "area", count = "emp" }, factors = [0.05, 0.15] }'
    with_agency(plan, compare=asked, rows=[["P0", "farm", 200, ""], ["P1", "shop", 200, ""]])
    told = json.loads(command("check", plan, "--json")[1])["releases"][0]["agency"]
    assert told["off"] == pytest.approx(0.1) and told["by_size"][0]["mean"] == 200
    assert "at most about 20" in command("check", plan)[1]
    with_out = plan.read_text().replace(", factors = [0.05, 0.15]", "")
    plan.write_text(with_out)
    assert json.loads(command("check", plan, "--json")[1])["releases"][0]["agency"]["off"] is None


def test_factors_say_it_of_sums_too() -> None:
    """Our error of a sum depends on the largest amount; theirs is a share of the number."""
    beside = {"number": "sum", "title": "QCEW", "by": ["county"], "by_size": [], "cells": 3, "suppressed": 1}
    for off, said in ((0.1, "at most about 10% of a number"), (None, "unknown")):
        known = SimpleNamespace(name="pay", agency=SimpleNamespace(**beside, off=off))
        [table] = _beside_agencies(SimpleNamespace(releases=[known]))  # type: ignore[arg-type]
        assert said in next(iter(table.columns[-1].cells))


@pytest.mark.parametrize(
    ("compare", "rows", "about"),
    [
        ('{ file = "nowhere.csv" }', None, ("compare", "file")),
        ('{ file = "data/jobs.parquet" }', None, ("compare", "file")),
        ('{ file = "agency.csv" }', None, ("compare",)),
        ('{ file = "agency.csv", columns = { place = "area" } }', None, ("compare", "columns")),
        ('{ file = "agency.csv", columns = { count = "emp" } }', None, ("compare",)),
        ('{ file = "agency.csv", columns = { place = "area", count = "jobs" } }', None, ("compare", "columns")),
        ('{ file = "agency.csv", columns = { town = "area", count = "emp" } }', None, ("compare", "columns")),
        ('{ file = "agency.csv", columns = { place = "area", count = "emp" }, flag = "d" }', None, ("compare", "flag")),
        (
            '{ file = "agency.csv", columns = { place = "area", count = "emp" }, where = { area = ["P7"] } }',
            None,
            ("compare", "where"),
        ),
        ("", [["P0", "farm", 1, ""], ["P0", "farm", 2, ""]], ("compare",)),
        ("", [["p0", "farm", 1, ""], ["P0", "Farm", 2, ""]], ("compare",)),
        ("", [["P0", "farm", "many", ""]], ("compare", "suppressed")),
        *(("", [["P0", "farm", odd, ""]], ("compare", "suppressed")) for odd in ("inf", "nan", "1e308", "-1e16")),
        ('{ path = "agency.csv" }', None, ("compare", "file")),
        ('{ file = "agency.csv", factors = [0.15, 0.05] }', None, ("compare", "factors")),
        ('{ file = "agency.csv", factors = [0.5, 1.5] }', None, ("compare", "factors")),
        ('{ file = "agency.csv", factors = [0, 0.1] }', None, ("compare", "factors", 0)),
    ],
)
def test_bad_tables_are_refused_before_anything_is_spent(plan: Path, compare: str, rows, about, contents) -> None:
    with_agency(plan, compare=compare, rows=rows)
    before = contents(plan.parent)
    with pytest.raises(PlanError) as error:
        run(plan)
    assert ("release", 0, *about) in [fault.place for fault in error.value.faults]
    assert contents(plan.parent) == before


@pytest.mark.parametrize("odd", [1e300, float("inf")])
def test_a_parquet_file_with_a_number_beyond_whole_ones_is_refused(plan: Path, odd: float, contents) -> None:
    with_agency(plan, compare='{ file = "agency.parquet" }')
    table = pa.table({"place": ["P0", "P1"], "sector": ["farm", "farm"], "count": [odd, 2.0]})
    pq.write_table(table, plan.parent / "agency.parquet")
    before = contents(plan.parent)
    with pytest.raises(PlanError) as error:
        run(plan)
    assert [fault.place for fault in error.value.faults] == [("release", 0, "compare")]
    assert contents(plan.parent) == before


def test_a_reviewer_refutes_another_comparison(plan: Path) -> None:
    """Numbers of the agency or of the comparison that were changed after they were published, hashes and all."""
    from discreet.archive.findings import RefutedError
    from discreet.review.recompute import check_agency

    with_agency(plan)
    done = run(plan)
    request, folder = done.check.releases[0].request, plan.parent / "out" / "places"
    assert "computed again" in check_agency(request, folder)
    about = json.loads((folder / "comparison.json").read_text())
    changed = {**about, "found": json.loads(json.dumps(about["found"]))}
    changed["found"]["numbers"]["count"]["suppressed"] = 0
    for content in (changed, about | {"title": "another"}, about | {"table": "nowhere"}):
        (folder / "comparison.json").write_bytes(as_json(content))
        with pytest.raises(RefutedError):
            check_agency(request, folder)
    (folder / "comparison.json").unlink()
    with pytest.raises(RefutedError):
        check_agency(request, folder)
    with zipfile.ZipFile(done.bundle) as packed:
        assert "places/comparison.json" in packed.namelist() and "places/agency.csv" in packed.namelist()
