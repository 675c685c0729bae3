"""Plans for workers with several jobs: the bound is declared, promised, paid for and in the bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.plan.run import run
from discreet.review.verdict import verify_bundle
from discreet.words.errors import DiscreetError
from faults_of import about

PLAN = """
[data]
source = "jobs.parquet"
allow_multiple = {bound}
[data.schema]
workplace_attributes = ["place"]
worker_attributes = {{}}
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 3
ledger = "ledger.db"
dataset = "jobs"
[[release]]
name = "jobs"
kind = "count"
by = ["place"]
epsilon = 2
[output]
folder = "out"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Worker 0 has twenty rows at one establishment and one at another."""
    jobs = {"workplace": ["a"] * 30 + ["b"] * 5, "worker": [0] * 20 + [*range(1, 11)] + [0, 11, 12, 13, 14]}
    pq.write_table(pa.table({**jobs, "place": ["P"] * 30 + ["Q"] * 5}), tmp_path / "jobs.parquet")
    return tmp_path


@pytest.mark.parametrize(("bound", "words"), [("2", "up to 2 establishments"), ("true", "about one of them")])
def test_the_bound_is_in_every_promise_and_cannot_be_changed_afterwards(folder: Path, bound: str, words: str) -> None:
    plan = folder / "plan.toml"
    plan.write_text(PLAN.format(bound=bound))
    outcome = run(plan)
    written = json.loads((folder / "out" / "jobs" / "release.json").read_text())
    assert words in written["guarantee"]["sentence"] and words in (folder / "out" / "report.html").read_text()
    report = (folder / "out" / "report.html").read_text()
    assert ("the odds move up to 4 times as far" if bound == "2" else "together nothing is promised") in report
    assert outcome.bundle is not None
    assert all(not finding.wrong for finding in verify_bundle(outcome.bundle))
    plan.write_text(PLAN.format(bound="7"))
    with pytest.raises(DiscreetError, check=about("data.allow_multiple")):
        run(plan)


def test_more_jobs_than_declared_are_refused_before_anything_is_paid(folder: Path) -> None:
    plan = folder / "plan.toml"
    plan.write_text(PLAN.format(bound="1"))
    with pytest.raises(DiscreetError, check=about("allow_multiple")):
        run(plan)
    assert not (folder / "ledger.db").exists()
