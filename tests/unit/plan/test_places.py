"""Where a plan's faults are shown: at the line of their key, under the name that the plan has for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.plan.reading import read_plan
from discreet.words.errors import PlanError

PLAN = """title = "Two"

[source.jobs.data]
source = "jobs.parquet"
schema = "schema.toml"

[source.jobs.unit]
kind = "establishments"
alpha = 0.1

[source.jobs.budget]
epsilon = 1
dataset = "jobs"
ledger = "ledger.db"

[[release]]
name = "places"
source = "jobs"
kind = "counts"
tables = [["place"], ["place", "sex"]]
epsilon = 1

[output]
folder = "out"
"""
MORE = PLAN[PLAN.index("[source.jobs.data]") : PLAN.index("[[release]]")].replace("source.jobs", "source.more")


def shown(folder: Path, text: str) -> list[tuple[int, str]]:
    plan = folder / "plan.toml"
    plan.write_text(text)
    with pytest.raises(PlanError) as found:
        read_plan(plan)
    return [(fault.at.line, fault.about) for fault in found.value.faults if fault.at is not None]


@pytest.mark.parametrize(
    ("old", "new", "line", "about"),
    [
        ('[source.jobs.unit]\nkind = "establishments"\nalpha = 0.1\n', "", 3, "source.jobs.unit"),
        ("alpha = 0.1\n", 'alpha = "a"\n', 9, "source.jobs.unit.alpha"),
        ("[[release]]", MORE + "[[release]]", 16, "source.more"),
        ("epsilon = 1\n\n", 'epsilon = 1\nmeasure = "fines"\n\n', 22, "release.0.measure"),
        ("epsilon = 1\n\n", "epsilon = 1\nmeasure = [[3]]\n\n", 22, "release.0.measure.0.0"),
        ("epsilon = 1\n\n", "epsilon = 1\nmeasure = 3\n\n", 22, "release.0.measure"),
        ('"schema.toml"\n', '"schema.toml"\nallow_multiple = "two"\n', 6, "source.jobs.data.allow_multiple"),
        ('"schema.toml"\n', '"schema.toml"\nallow_multiple = 0\n', 6, "source.jobs.data.allow_multiple"),
    ],
)
def test_a_fault_is_at_the_line_of_its_key_and_once(tmp_path: Path, old: str, new: str, line: int, about: str) -> None:
    """Red before: a table that a source lacks, and a source of no release, were shown at line 1; a value that may be of
    two kinds was refused twice, under the names that pydantic has for the kinds."""
    assert PLAN.replace(old, new, 1) != PLAN
    assert shown(tmp_path, PLAN.replace(old, new, 1)) == [(line, about)]
