"""Settings that contradict each other keep a desk from opening: each is named, and no file appears."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.desk.desk import Desk
from discreet.words.errors import PlanError

SOUND = """
[[source]]
name = "jobs"
path = "data/jobs.parquet"
dataset = "jobs"
epsilon = 4
unit = { kind = "establishments", alpha = 0.1 }
[source.schema]
workplace_attributes = ["county", "state"]
worker_attributes = {}
"""
BUDGET, UNIT = "epsilon = 4\n", 'unit = { kind = "establishments", alpha = 0.1 }'
HELD = SOUND.replace(BUDGET, BUDGET + 'quarters = ["2024Q1", "2024Q2", "2024Q3"]\n')
SECOND = SOUND.replace('name = "jobs"', 'name = "more"')
LOOKED_UP = '[source.hierarchy.place]\nlevels = ["county", "state"]\nlookup = "states.csv"\n'
PAID = "[source.schema.magnitudes.pay]\ncap = 10\n"

CASES = {
    "two ways to divide a budget": (SOUND.replace(BUDGET, BUDGET + "per_year = 2\nper_quarter = 1\n"), "per_quarter"),
    "more for a quarter than in all": (SOUND.replace(BUDGET, BUDGET + "per_quarter = 5\n"), "per_quarter"),
    "amounts for quarters, data of a year": (
        SOUND.replace(BUDGET, BUDGET + 'per_quarter = 1\nperiod = "2024"\n'), "period",
    ),
    "jobs that protect rows": (
        SOUND.replace(UNIT, 'unit = { kind = "rows", lower = 0, upper = 1, response = "y" }'), "unit",
    ),
    "rows that protect establishments": (SOUND.replace("path", 'kind = "rows"\npath', 1), "unit"),
    "rows with quarters": (HELD.replace("path", 'kind = "rows"\npath', 1), "quarters"),
    "quarters out of order": (HELD.replace('"2024Q1", "2024Q2"', '"2024Q2", "2024Q1"'), "quarters"),
    "a quarter twice": (HELD.replace('"2024Q1", "2024Q2"', '"2024Q1", "2024Q1"'), "quarters"),
    "a quarter that is none": (HELD.replace("2024Q3", "2024Q5"), "quarters"),
    "quarters and amounts": (HELD + PAID, "schema"),
    "quarters and a list of workers": (HELD.replace(BUDGET, BUDGET + 'workers = "w.parquet"\n'), "workers"),
    "a quarter that is a county": (HELD.replace(BUDGET, BUDGET + 'time = "county"\n'), "time"),
    "amounts of workers with two jobs": (
        SOUND.replace(BUDGET, BUDGET + "allow_multiple = 2\n") + PAID, "allow_multiple",
    ),
    "a level that is a column and looked up": (SOUND + LOOKED_UP, "hierarchy.place"),
    "a level that is nowhere": (
        SOUND + '[source.hierarchy]\nplace = ["county", "nation"]\n', "hierarchy.place",
    ),
    "a column of two roles": (SOUND.replace('"county", "state"', '"county", "worker"'), "schema"),
    "a data set without a name": (SOUND.replace('dataset = "jobs"', 'dataset = ""'), "dataset"),
    "one data set, two budgets": (SOUND + SECOND.replace(BUDGET, "epsilon = 3\n"), "the budget"),
    "one data set, two units": (SOUND + SECOND.replace("alpha = 0.1", "alpha = 0.2"), "the unit"),
    "one data set, two policies": (SOUND + SECOND.replace(BUDGET, BUDGET + "per_year = 1\n"), "amount for a period"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_they_are_refused(case: str, tmp_path: Path) -> None:
    text, about = CASES[case]
    (tmp_path / "desk.toml").write_text(text)
    with pytest.raises(PlanError) as refused:
        Desk.open(tmp_path)
    assert about in str(refused.value), refused.value
    assert [path.name for path in tmp_path.iterdir()] == ["desk.toml"]


def test_what_does_not_contradict_opens(tmp_path: Path) -> None:
    unfixed = SECOND.replace(UNIT, UNIT.replace("0.1", "0.2") + "\nunit_fixed = false")
    derived = SECOND.replace('name = "more"', 'name = "third"').replace('"county", "state"', '"county"') + LOOKED_UP
    (tmp_path / "desk.toml").write_text(SOUND + unfixed + derived)
    assert len(Desk.open(tmp_path).sources) == 3
    (tmp_path / "desk.toml").write_text(HELD.replace(BUDGET, BUDGET + "per_quarter = 4\n"))
    assert Desk.open(tmp_path).sources["jobs"].quarters
