"""Hierarchies in a plan: levels from columns, prefixes and a file; several tables for the price of one; verified."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.archive.findings import RefutedError
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.review.recompute import check_intervals
from discreet.review.verdict import verify_bundle
from discreet.words.errors import PlanError
from faults_of import about

PLAN = """
[data]
source = "data/jobs.parquet"

[data.schema]
workplace_attributes = ["naics6", "county", "state"]
worker_attributes = {}
size = "n"

[hierarchy]
place = ["county", "state"]

[hierarchy.industry]
levels = ["naics6", "naics2"]
prefix = [6, 2]

[unit]
kind = "establishments"
alpha = 0.1

[budget]
epsilon = 1
ledger = "ledger.db"
dataset = "firms"

[[release]]
name = "levels"
kind = "counts"
tables = [["naics6", "county"], ["naics2", "county"], ["naics6", "state"], ["naics2", "state"], ["state"], []]
measure = "finest"
add_up = true
epsilon = 1

[output]
folder = "out"
"""


@pytest.fixture
def firms(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    county = rng.integers(0, 6, 600)
    rows = {
        "workplace": np.arange(600),
        "naics6": rng.choice(["111110", "111120", "236115", "522110"], 600),
        "county": [f"c{i}" for i in county],
        "state": [f"s{i // 3}" for i in county],
        "n": rng.geometric(0.1, 600),
    }
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "data" / "jobs.parquet")
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    return plan


def changed(plan: Path, old: str, new: str) -> Path:
    text = plan.read_text()
    assert old in text
    plan.write_text(text.replace(old, new))
    return plan


def counts(folder: Path, form: str = "basic") -> dict[tuple[str, ...], int]:
    table = pq.read_table(folder / f"{form}.parquet")
    keys = [name for name in table.column_names if name in ("naics6", "naics2", "county", "state")]
    rows = zip(*(table[name].to_pylist() for name in keys), strict=True) if keys else [()]
    return dict(zip(rows, table["count"].to_pylist(), strict=True))


def test_six_tables_are_released_for_the_price_of_one_and_add_up(firms: Path) -> None:
    done = run(firms)
    folder = firms.parent / "out" / "levels"
    for form in ("basic", "research"):
        fine = counts(folder / "1-naics6-county", form)
        for place, part in {
            "2-naics2-county": lambda code, county: (code[:2], county),
            "3-naics6-state": lambda code, county: (code, f"s{int(county[1:]) // 3}"),
            "4-naics2-state": lambda code, county: (code[:2], f"s{int(county[1:]) // 3}"),
            "5-state": lambda code, county: (f"s{int(county[1:]) // 3}",),
            "6-total": lambda code, county: (),
        }.items():
            sums: dict[tuple[str, ...], int] = {}
            for key, n in fine.items():
                sums[part(*key)] = sums.get(part(*key), 0) + n
            assert counts(folder / place, form) == sums, (form, place)
    assert str(done.remaining) == "epsilon=0"
    findings = {one.subject: one for one in verify_bundle(done.bundle)}
    assert not [one for one in findings.values() if one.state == "WRONG"], findings
    assert findings["levels: intervals"].state == findings["levels: basic form"].state == "holds"
    assert findings["request"].state == "holds" and findings["report.html"].state == "holds"


def test_tables_that_add_up_may_be_below_zero(firms: Path) -> None:
    """The plan says so; before, the key was passed over."""
    rows = pq.read_table(firms.parent / "data" / "jobs.parquet")
    few = rows.set_column(rows.column_names.index("n"), "n", pa.array([i % 300 == 0 for i in range(600)]).cast("int64"))
    pq.write_table(few, firms.parent / "data" / "jobs.parquet")
    changed(firms, "add_up = true", "add_up = true\nnon_negative = false")
    done = run(changed(firms, 'measure = "finest"', 'measure = [["naics6", "county"]]'))
    folder = firms.parent / "out" / "levels"
    fine = counts(folder / "1-naics6-county")
    assert min(fine.values()) < 0
    assert counts(folder / "6-total")[()] == sum(fine.values())
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]


def test_a_table_that_is_no_sum_is_refuted(firms: Path) -> None:
    """One job more in a derived table, with all hashes made to fit."""
    done = run(firms)
    folder = firms.parent / "out" / "levels"
    request = done.check.releases[0].request
    about = json.loads((folder / "release.json").read_text())
    assert "same" in check_intervals(request, folder, about)
    path = folder / "5-state" / "research.parquet"
    table = pq.read_table(path)
    more = pa.array([table["count"][0].as_py() + 1, *table["count"].to_pylist()[1:]])
    pq.write_table(table.set_column(table.column_names.index("count"), "count", more), path)
    with pytest.raises(RefutedError):
        check_intervals(request, folder, about)


def test_a_sum_without_one_of_its_cells_is_refuted(firms: Path) -> None:
    """Cells are compared in the order of the published ones, and every one has to be there."""
    done = run(firms)
    folder = firms.parent / "out" / "levels"
    request = done.check.releases[0].request
    about = json.loads((folder / "release.json").read_text())
    path = folder / "2-naics2-county" / "research.parquet"
    table = pq.read_table(path)
    pq.write_table(table.take(list(reversed(range(len(table))))), path)
    assert "same" in check_intervals(request, folder, about)
    for rows in (range(len(table) - 1), [0, *range(len(table) - 1)]):
        pq.write_table(table.take(list(rows)), path)
        with pytest.raises(RefutedError):
            check_intervals(request, folder, about)


def test_a_run_again_finds_everything_released(firms: Path, contents: Callable[[Path], dict[str, bytes]]) -> None:
    run(firms)
    before = contents(firms.parent)
    run(firms)
    assert contents(firms.parent) == before
    with pytest.raises(PlanError):
        run(changed(firms, '["state"], []]', '["state"]]'))


def test_levels_are_looked_up_in_a_file(firms: Path) -> None:
    (firms.parent / "codes.csv").write_text("naics6,naics2\n111110,farm\n111120,farm\n236115,build\n522110,bank\n")
    run(changed(firms, "prefix = [6, 2]", 'lookup = "codes.csv"'))
    found = counts(firms.parent / "out" / "levels" / "4-naics2-state")
    assert {key[0] for key in found} == {"farm", "build", "bank"}
    findings = verify_bundle(firms.parent / "out" / "bundle.zip")
    assert not [one for one in findings if one.state == "WRONG"]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('place = ["county", "state"]', 'place = ["county", "state", "county"]', ("hierarchy", "place")),
        ('place = ["county", "state"]', 'place = ["county", "nation"]', ("hierarchy", "place")),
        ("prefix = [6, 2]", "prefix = [2, 6]", ("hierarchy", "industry")),
        ("prefix = [6, 2]", "", ("hierarchy", "industry")),
        ("prefix = [6, 2]", "prefixes = [6, 2]", ("hierarchy", "industry", "prefixes")),
        ('measure = "finest"', 'measure = [["state"]]', ("release", 0, "measure")),
        ('[hierarchy]\nplace = ["county", "state"]', "", ("release", 0, "tables")),
    ],
)
def test_a_fault_is_told_at_its_key_before_anything_is_read(firms: Path, old: str, new: str, place: tuple) -> None:
    changed(firms, old, new)
    (firms.parent / "data" / "jobs.parquet").unlink()
    try:
        faults = check(read_plan(firms)).faults
    except PlanError as error:
        faults = error.faults
    assert any(fault.place[: len(place)] == place for fault in faults), faults


@pytest.mark.parametrize(
    ("column", "value", "name"), [("naics6", "11", "industry"), ("state", "s9", "place")], ids=["orphan", "two parents"]
)
def test_codes_that_are_no_hierarchy_are_refused_with_nothing_spent(
    firms: Path, column: str, value: str, name: str, contents: Callable[[Path], dict[str, bytes]]
) -> None:
    path = firms.parent / "data" / "jobs.parquet"
    table = pq.read_table(path)
    broken = pa.array([value, *table[column].to_pylist()[1:]])
    pq.write_table(table.set_column(table.column_names.index(column), column, broken), path)
    before = contents(firms.parent)
    with pytest.raises(PlanError) as caught:
        run(firms)
    assert [fault.place for fault in caught.value.faults] == [("hierarchy", name)]
    after = contents(firms.parent)
    assert {name: after[name] for name in before} == before and not any("ledger" in name for name in after)


def test_odd_names_go_from_plan_to_reviewer_and_stay_in_their_folder(firms: Path) -> None:
    """Two hierarchies are spelled alike in paths, and attributes are as long as names may be."""
    names = {"naics6": "x" * 100, "county": 'order "by"/select', "state": "y" * 99 + "北", "naics2": "%s;{0}"}
    table = pq.read_table(firms.parent / "data" / "jobs.parquet")
    table = table.rename_columns([names.get(name, name) for name in table.column_names])
    table = table.append_column("'pay'", table["n"])
    pq.write_table(table, firms.parent / "data" / "jobs.parquet")
    text = firms.read_text().replace("[hierarchy]\nplace =", '[hierarchy]\n"北京" =')
    text = text.replace("[hierarchy.industry]", '[hierarchy."東京"]')
    text = text.replace('kind = "counts"', 'kind = "sums"\nof = "\'pay\'"')  # whose noise costs a reviewer little
    text = text.replace('size = "n"', 'size = "n"\nmagnitudes = { "\'pay\'" = { cap = 9 } }')
    for old, new in names.items():
        text = text.replace(json.dumps(old), json.dumps(new))
    firms.write_text(text)
    done = run(firms)
    there = {path.relative_to(firms.parent).parts[0] for path in firms.parent.rglob("*")}
    assert there == {"data", "plan.toml", "ledger.db", "out"}
    parents = sorted(path.name for path in (firms.parent / "out" / "levels").glob("parents*.csv"))
    assert parents == ["parents-untitled-2.csv", "parents-untitled.csv"]
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]


def test_a_level_with_a_path_for_a_name_is_refused_at_its_line_before_anything_is_spent(firms: Path) -> None:
    changed(firms, '"naics2"', '"../../n2"')
    with pytest.raises(PlanError, check=about("hierarchy.industry")):
        run(firms)
    assert not (firms.parent / "ledger.db").exists()
    assert not (firms.parent / "out").exists()
