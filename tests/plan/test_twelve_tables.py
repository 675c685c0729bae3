"""Twelve tables at a total epsilon of 1: refused if each is drawn, possible if few are and the others derived."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.plan.run import run
from discreet.review.verdict import verify_bundle
from discreet.simulate import national
from discreet.tables.budget.division import _groups as parts_of
from discreet.tables.budget.errors import cells_of
from discreet.words.errors import Infeasible

INDUSTRIES, PLACES = ("naics6", "naics4", "naics3", "naics2"), ("county", "state")
TABLES = [
    *([industry, place] for place in PLACES for industry in INDUSTRIES),
    *([place] for place in PLACES),
    ["naics2"],
    [],
]
PLAN = f"""
[data]
source = "nation"
[public]
sizes = "sizes.parquet"
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 1
ledger = "ledger.db"
dataset = "nation"
[[release]]
name = "programme"
kind = "counts"
tables = {json.dumps(TABLES)}
epsilon = 1
[output]
folder = "out"
formats = ["parquet"]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    national.write(tmp_path / "nation", share=0.001)
    jobs = pq.read_table(tmp_path / "nation" / "jobs.parquet").to_pandas().astype({"naics6": str, "county": str})
    cells = jobs.groupby(["naics6", "county"], as_index=False)["jobs"].agg(["sum", "max"])
    cells = cells.rename(columns={"sum": "jobs", "max": "largest"})
    cells["state"] = cells["county"].str[:2]
    for digits in (2, 3, 4):
        cells[f"naics{digits}"] = cells["naics6"].str[:digits]
    cells[cells["jobs"] > 0].to_parquet(tmp_path / "sizes.parquet")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def with_measure(plan: Path, choice: dict[str, object]) -> None:
    asked = f"epsilon = 1\nmeasure = {json.dumps(choice['measure'])}\nsplit = {json.dumps(choice['split'])}\n[output]"
    plan.write_text(plan.read_text().replace("epsilon = 1\n[output]", asked))


def test_all_of_them_are_refused_and_few_with_sums_are_not(plan: Path, command, contents) -> None:
    before = contents(plan.parent)
    code, _, err = command("run", plan)
    assert code == 2 and contents(plan.parent) == before
    assert "fewer of the 12 tables" in err
    jobs = dc.read_jobs(plan.parent / "nation")
    session = dc.Session(jobs, unit=dc.Establishments("0.1"), budget=1)
    with pytest.raises(Infeasible):
        session.marginals(*TABLES).release(epsilon=1)
    assert session.remaining == dc.Pure(1)
    with_measure(plan, {"measure": [TABLES[0], TABLES[7]], "split": ["2/3", "1/3"]})
    code, out, _ = command("run", plan, "--dry-run")
    assert code == 0 and "would be released for epsilon=1" in out


def test_advice_knows_levels_of_hierarchies() -> None:
    """Cells by county are parts of cells by state, though neither table has the other's attribute."""
    jobs = {"workplace": [1, 2, 3], "worker": [1, 2, 3], "county": ["a", "b", "c"], "state": ["x", "x", "y"]}
    schema = dc.Schema(["county", "state"], {}, hierarchy={"place": ["county", "state"]})
    session = dc.Session(dc.read_jobs(jobs, schema=schema), unit=dc.Establishments("0.1"), budget=1)
    sizes = pa.table({"county": ["c", "a", "b"], "state": ["y", "x", "x"], "jobs": [5, 3, 4], "largest": [5, 3, 4]})
    fine, coarse = (cells_of(sizes, session.count(by), is_bound=False) for by in ("county", "state"))
    states = [coarse.keys["state"][int(i)].as_py() for i in parts_of(fine, coarse)]
    assert dict(zip(fine.keys["county"].to_pylist(), states, strict=True)) == {"a": "x", "b": "x", "c": "y"}


@pytest.mark.full_size
def test_the_advice_can_be_run(plan: Path, command) -> None:
    code, out, _ = command("check", plan, "--advise", "absolute", "--json")
    best = json.loads(out)["advice"]["programme"]["choices"][0]
    print(best)
    assert code == 2 and 1 <= len(best["measure"]) < 11
    with_measure(plan, best)
    assert command("check", plan)[0] == 0
    done = run(plan)
    assert done.remaining == dc.Pure(0)
    assert len([*(plan.parent / "out" / "programme").glob("*/research.parquet")]) == 12
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]
