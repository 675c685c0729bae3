"""Sources of one plan that are one data set, or have one name in two spellings, are refused with nothing spent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Ledger
from discreet.plan.check import check
from discreet.plan.reading import read_plan
from discreet.plan.run import run
from discreet.words.errors import PlanError

SOURCE = """
[source.{name}.data]
source = "{file}.parquet"
[source.{name}.data.schema]
workplace_attributes = ["county"]
worker_attributes = {{}}
magnitudes = {{ pay = {{ cap = {cap} }} }}
[source.{name}.unit]
kind = "establishments"
alpha = 0.1
[source.{name}.budget]
epsilon = 4
ledger = "ledger.db"
dataset = "{dataset}"
[[release]]
name = "of-{name}"
source = "{name}"
kind = "sum"
of = "pay"
by = ["county"]
epsilon = 1
"""


@pytest.fixture(autouse=True)
def _own_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def written(folder: Path, *sources: dict[str, object]) -> Path:
    rng = np.random.default_rng(0)
    for name in ("jobs", "other"):
        firm = rng.integers(0, 30, 300)
        columns = {"workplace": firm, "worker": np.arange(300), "county": firm % 4, "pay": rng.integers(0, 100, 300)}
        table = pa.table(columns)
        pq.write_table(table, folder / f"{name}.parquet")
        pq.write_table(table.take(rng.permutation(300)), folder / f"{name}-copy.parquet")
    plan = folder / "plan.toml"
    texts = [SOURCE.format(**({"name": f"s{i}", "cap": 100} | each)) for i, each in enumerate(sources)]
    plan.write_text("".join(texts) + '[output]\nfolder = "out"\nbundle = false\n')
    return plan


def test_a_magnitude_has_one_cap_in_one_plan(tmp_path: Path) -> None:
    """The second release was refused after the first was paid."""
    one, other = {"file": "jobs", "dataset": "d"}, {"file": "other", "dataset": "d", "cap": 200}
    plan = written(tmp_path, one, other)
    [fault] = check(read_plan(plan)).faults
    assert fault.place == ("source", "s1", "data", "schema")
    with pytest.raises(PlanError):
        run(plan)
    assert not (tmp_path / "ledger.db").exists() and not (tmp_path / "out").exists()
    assert not check(read_plan(written(tmp_path, one, other | {"cap": 100}))).faults


@pytest.mark.parametrize("alike", ["Jobs-2026", "jobs  2026", "JOBS 2026"])
def test_two_spellings_of_one_name(tmp_path: Path, alike: str) -> None:
    plan = written(tmp_path, {"file": "jobs", "dataset": "jobs 2026"}, {"file": "other", "dataset": alike})
    [fault] = check(read_plan(plan)).faults
    assert fault.place == ("source", "s1", "budget", "dataset")


def test_a_copy_in_another_order_is_refused_before_a_ledger_is_made(tmp_path: Path) -> None:
    plan = written(tmp_path, {"file": "jobs", "dataset": "one"}, {"file": "jobs-copy", "dataset": "two"})
    with pytest.raises(PlanError) as error:
        run(plan)
    assert [fault.place for fault in error.value.faults] == [("source", "s1", "budget", "dataset")]
    assert not (tmp_path / "ledger.db").exists() and not (tmp_path / "out").exists()
    different = written(tmp_path, {"file": "jobs", "dataset": "one"}, {"file": "other", "dataset": "two"})
    run(different)
    with Ledger.open(tmp_path / "ledger.db", read_only=True) as ledger:
        assert [str(budget.spent) for budget in ledger.budgets()] == ["epsilon=1", "epsilon=1"]
