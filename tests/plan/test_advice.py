"""Advice on the budget of a plan: from public sizes alone, by the command and as JSON, and why there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SIZES = "place,sector,jobs,largest\n" + "".join(
    f"P{i},{sector},{40 + 30 * i},{10 + 5 * i}\n" for i in range(4) for sector in ("farm", "shop")
)


def with_sizes(plan: Path, text: str = SIZES) -> None:
    (plan.parent / "sizes.csv").write_text(text)
    plan.write_text(plan.read_text().replace("[[release]]", '[public]\nsizes = "sizes.csv"\n\n[[release]]', 1))


def test_the_command_tells_the_best_split(plan: Path, command, contents) -> None:
    with_sizes(plan)
    for path in (plan.parent / "data").iterdir():
        path.unlink()
    before = contents(plan.parent)
    code, out, _ = command("check", plan, "--advise", "absolute", "--json")
    assert code == 0 and contents(plan.parent) == before
    advice = json.loads(out)["advice"]
    assert list(advice) == ["margins"]  # the others have one table
    assert sum(map(_number, advice["margins"]["choices"][0]["split"])) == pytest.approx(1)
    code, out, _ = command("check", plan, "--advise", "relative")
    assert code == 0 and "Advice for margins" in out and "place x sector" in out
    assert "advice" not in json.loads(command("check", plan, "--json")[1])


def test_the_split_can_be_run(plan: Path, command) -> None:
    with_sizes(plan)
    advice = json.loads(command("check", plan, "--advise", "absolute", "--json")[1])["advice"]["margins"]
    every = next(choice for choice in advice["choices"] if len(choice["measure"]) == 2)
    plan.write_text(plan.read_text().replace('split = ["1/2", "1/2"]', f"split = {json.dumps(every['split'])}"))
    assert command("check", plan)[0] == 0


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (None, "No sizes are public"),
        ("place,jobs\nP0,3\n", "No sizes are public"),
    ],
)
def test_without_sizes_it_says_why_there_is_none(plan: Path, command, sizes: str | None, words: str) -> None:
    if sizes is not None:
        with_sizes(plan, sizes)
    code, out, _ = command("check", plan, "--advise", "absolute")
    assert code == 0 and words in out


def test_a_plan_of_single_tables_has_nothing_to_divide(plan: Path, command) -> None:
    text = plan.read_text()
    start, end = text.index('[[release]]\nname = "margins"'), text.index("[output]")
    plan.write_text(text[:start] + text[end:])
    code, out, _ = command("check", plan, "--advise", "absolute")
    assert code == 0 and "no release of several tables" in out


def test_another_kind_of_error_is_refused(plan: Path, command) -> None:
    assert command("check", plan, "--advise", "squared")[0] == 2


def _number(text: str) -> float:
    top, _, bottom = text.partition("/")
    return float(top) / float(bottom or 1)


def test_sizes_of_the_finest_level_are_sizes_of_every_level_above(tmp_path: Path, command) -> None:
    """Prefixes and a lookup: public sizes by industry and county are enough for tables by sector and region."""
    rows = {"workplace": [1, 2, 3, 4], "n": [5, 9, 20, 7], "county": ["01001", "01003", "02001", "02001"]}
    rows["naics"] = ["1111", "1121", "2361", "2371"]
    pq.write_table(pa.table(rows), tmp_path / "jobs.parquet")
    (tmp_path / "regions.csv").write_text("county,region\n01001,north\n01003,north\n02001,south\n")
    sizes = "naics,county,jobs,largest\n1111,01001,500,90\n1121,01003,90,9\n2361,02001,200,20\n2371,02001,70,7\n"
    (tmp_path / "sizes.csv").write_text(sizes)
    (tmp_path / "plan.toml").write_text(LEVELS)
    found = json.loads(command("check", tmp_path / "plan.toml", "--advise", "absolute", "--json")[1])
    tables = found["releases"][0]["tables"]
    assert [table["expected_error"]["cells"] for table in tables] == [4, 4, 2, 2]
    assert len(found["advice"]["levels"]["choices"]) > 1
    largest = [table["expected_error"]["by_cell_size"][-1] for table in tables]
    assert largest[2]["from"] == 100 and largest[2]["cells"] == 2, "both sectors have 100 jobs or more"


LEVELS = """
[data]
source = "jobs.parquet"
[data.schema]
workplace_attributes = ["naics", "county"]
worker_attributes = {}
size = "n"
[hierarchy.industry]
levels = ["naics", "naics3", "sector"]
prefix = [4, 3, 2]
[hierarchy.place]
levels = ["county", "region"]
lookup = "regions.csv"
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 8
ledger = "ledger.db"
dataset = "jobs"
[public]
sizes = "sizes.csv"
[[release]]
name = "levels"
kind = "counts"
tables = [["naics", "county"], ["naics3", "region"], ["sector"], ["region"]]
epsilon = 8
[output]
folder = "out"
"""
