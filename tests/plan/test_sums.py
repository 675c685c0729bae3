"""Sums of a magnitude in a plan: checked, run, reported, bundled, verified, and what is refused with nothing spent."""

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
from discreet.privacy.units import Establishments
from discreet.privacy.verify import verify
from discreet.review.constants import stated
from discreet.review.verdict import verify_bundle
from discreet.words.errors import PlanError

PLAN = """
[data]
source = "data/jobs.parquet"

[data.schema]
workplace_attributes = ["county", "sector"]
worker_attributes = {}
size = "n"

[data.schema.magnitudes]
payroll = { cap = 200000 }

[unit]
kind = "establishments"
alpha = 0.1

[budget]
epsilon = 4
ledger = "ledger.db"
dataset = "pay"

[[release]]
name = "jobs"
kind = "counts"
tables = [["county", "sector"], ["county"]]
measure = "finest"
add_up = true
establishments = true
epsilon = 1

[[release]]
name = "payroll"
kind = "sums"
of = "payroll"
tables = [["county", "sector"], ["county"]]
add_up = true
establishments = true
scale_share = 0.1
epsilon = 2

[[release]]
name = "total"
kind = "sum"
of = "payroll"
by = []
epsilon = 1

[output]
folder = "out"
"""


@pytest.fixture
def pay(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    size = rng.geometric(0.1, 500)
    rows = {
        "workplace": np.arange(500),
        "county": rng.integers(0, 8, 500),
        "sector": rng.choice(["11", "23"], 500),
        "n": size,
        "payroll": size * rng.integers(20_000, 90_000, 500),
    }
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "data" / "jobs.parquet")
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    return plan


def test_sums_go_from_the_plan_to_the_reviewer(pay: Path) -> None:
    done = run(pay)
    folder = pay.parent / "out"
    fine = pq.read_table(folder / "payroll" / "1-county-sector" / "basic.parquet")
    county = pq.read_table(folder / "payroll" / "2-county" / "basic.parquet")
    assert fine.column_names[:3] == ["county", "sector", "sum"] and "establishments" in fine.column_names
    true = pq.read_table(pay.parent / "data" / "jobs.parquet")
    assert sum(fine["sum"].to_pylist()) == sum(county["sum"].to_pylist())
    assert abs(sum(county["sum"].to_pylist()) / sum(true["payroll"].to_pylist()) - 1) < 0.3
    assert county["establishments"].to_pylist() == np.bincount(true["county"].to_numpy()).tolist()
    promise = json.loads((folder / "payroll" / "release.json").read_text())["guarantee"]["sentence"]
    assert "payroll by at most 10 % or 200,000" in promise
    findings = {one.subject: one for one in verify_bundle(done.bundle)}
    assert not [one for one in findings.values() if one.wrong], findings
    assert findings["payroll: mechanisms"].holds and findings["payroll: intervals"].holds
    assert findings["payroll: basic form"].holds and findings["report.html"].holds
    assert (folder / "report.html").read_text().count("payroll") > 3


def test_the_reviewer_rejects_less_noise_and_a_smaller_cap(pay: Path) -> None:
    run(pay)
    table = json.loads((pay.parent / "out" / "total" / "release.json").read_text())["parameters"]["tables"][0]
    unit = Establishments("0.1")
    assert all(verify(mechanism).holds for mechanism in stated(table, unit))
    less = table | {"noise": table["noise"] | {"factor": table["noise"]["factor"] * 0.95}}
    assert not all(verify(mechanism).holds for mechanism in stated(less, unit))
    floor = table | {"noise": table["noise"] | {"floor": table["noise"]["floor"] / 2}}
    assert not all(verify(mechanism).holds for mechanism in stated(floor, unit))
    with pytest.raises(RefutedError):
        list(stated(table | {"cap": 100_000}, unit))


def changed(plan: Path, old: str, new: str) -> Path:
    text = plan.read_text()
    assert old in text
    plan.write_text(text.replace(old, new))
    return plan


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('of = "payroll"\nby', 'of = "wages"\nby', ("release", 2, "of")),
        ('of = "payroll"\nby', "by", ("release", 2, "of")),
        ("cap = 200000", "cap = 0", ("data", "schema")),
        ("cap = 200000", "top = 200000", ("data", "schema")),
        ("cap = 200000", 'cap = 200000, beyond = "drop"', ("data", "schema")),
        ('kind = "establishments"\nalpha = 0.1', 'kind = "workers"', ("release", 2, "kind")),
        ('kind = "establishments"\nalpha = 0.1', 'kind = "workers"', ("release", 0, "establishments")),
    ],
)
def test_a_fault_is_told_at_its_key(pay: Path, old: str, new: str, place: tuple[str | int, ...]) -> None:
    changed(pay, old, new)
    try:
        faults = check(read_plan(pay)).faults
    except PlanError as error:
        faults = error.faults
    assert any(fault.place[: len(place)] == place for fault in faults), faults


@pytest.mark.parametrize("value", [-1, None, 10**12], ids=["negative", "missing", "above the cap"])
def test_bad_amounts_are_refused_with_nothing_spent(
    pay: Path, value: int | None, contents: Callable[[Path], dict[str, bytes]]
) -> None:
    path = pay.parent / "data" / "jobs.parquet"
    table = pq.read_table(path)
    column = pa.array([value, *table["payroll"].to_pylist()[1:]], pa.int64())
    pq.write_table(table.set_column(4, "payroll", column), path)
    before = contents(pay.parent)
    with pytest.raises(PlanError):
        run(pay)
    assert {name for name in contents(pay.parent) if not name.endswith(".lock")} == {*before}
    if value == 10**12:
        run(changed(pay, "cap = 200000", 'cap = 200000, beyond = "clip"'))
