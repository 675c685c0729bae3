"""The pages that the bench writes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from bench import __main__ as command
from bench import comparison, page
from bench.comparison import Accuracy, Comparison, Row
from bench.growth import Curve


def curve(job: str, by: str, seconds: float, size: float = 1.5e8, counts: int = 0) -> dict[str, object]:
    return Curve(job, by, (size / 10, size), (seconds / 10, seconds), (200.0, 300.0), (), True, counts).to_dict()


CURVES = [
    curve("check of every job", "jobs", 160.0),
    curve("release of workload 1", "jobs", 40.0, counts=400_000),
    curve("release of workload 3", "jobs", 80.0, counts=3_200_000),
    curve("release", "cells", 50.0, size=1e7),
]
COSTS = {"duckdb": {"check": 1.0, "cells": 2.0}, "spark": {"check": 3.0, "cells": 8.0}}
SPARK = {"cpu": COSTS, "counts": 1234}


def test_the_page_counts_what_is_ahead() -> None:
    peers = ("OpenDP, Laplace", "OpenDP", "lme4", "lme4")
    ratios = ((2.0, 2.0), (0.5, 2.0), (1.01, 0.5), (None, None))
    rows = [Row("a", peer, *both, "", "so") for peer, both in zip(peers, ratios, strict=True)]
    rows += [Row("b", "NumPy", 9.0, 9.0, "", same_work=False), Row("c", "pROC", 9.0, 1.0, "", agrees=False)]
    text = page.side_by_side(rows, [Accuracy("alpha 0.1", "P", 9.0, "the same", "90, in closed form 91")])
    assert "with 3 other programs" in text
    assert "On the 4 rows where another program did the same work" in text
    assert "discreet took less time on 1 (ties: 1) and less memory on 2; the others say why." in text
    assert "The 1 rows marked * are not the same work: less time on 1 and less memory on 1." in text
    assert "Not measured" not in text
    short = page.in_short(rows)
    assert "Beside 3 other programs, on the 4 jobs" in short
    assert "took less time on 1 (ties: 1) and less memory on 2:" in short
    assert "Not measured in the last run: roc, desk." in page.side_by_side(rows, [], absent=["roc", "desk"])
    assert "with 2 states of the code" in page.side_by_side(rows, [], codes=2)
    assert "| alpha 0.1 | P | 9 x | the same | 90, in closed form 91 |" in text


def test_the_recorded_tables_are_the_pages() -> None:
    """README, both pages and results.json come from the same run, to the last word."""
    recorded = command.read(command.RESULTS)["full"]
    assert recorded
    for path, text in command.texts(recorded).items():
        assert path.read_text(encoding="utf-8").partition(comparison.START)[2].startswith(f"\n{text}\n{comparison.END}")


def test_every_recorded_row_that_is_behind_or_missing_says_why() -> None:
    rows = [row for found in command.read(command.RESULTS)["full"].values() for row in found.rows]
    assert rows
    assert not [row for row in rows if (row.behind or row.time is None) and not row.why]


def test_costs_are_the_measured_parts() -> None:
    """Spark's factors: 3 for the check, 4 for cells, spread over 32 cores; 5e-6 s per count stay on the driver."""
    lines = page.cost(CURVES, SPARK).splitlines()
    cells = {
        line.split(" | ")[0].strip("| "): line.strip("|").split(" | ")[1:] for line in lines if line.startswith("|")
    }
    found = {name: [float(cell.replace(",", "")) for cell in row] for name, row in cells.items() if name in JOBS}
    assert found["check of every job"] == [160, 480, 15, 0]
    assert found["release of workload 1"] == pytest.approx([40, 38 * 4 + 2, 38 * 4 / 32 + 2, 2], rel=0.01)
    assert found["release of workload 3"] == pytest.approx([80, 64 * 4 + 16, 64 * 4 / 32 + 16, 16], rel=0.01)
    assert found["together"][0] == 280
    assert "the same 1,234 counts" in lines[0]


def test_a_quarter_costs_what_its_programme_and_flows_cost_too() -> None:
    """In proportion to 10.5 million establishments: the fit of tables stays on the driver, flows spread over cores."""
    more = [
        curve("tables that add up", "establishments", 30.0, size=3e6),
        curve("flows of six quarters", "establishments", 2.0, size=1.5e5),
    ]
    lines = page.cost([*CURVES, *more], SPARK).splitlines()
    found = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in lines if "|" in line}
    assert found["tables that add up"] == ["105", "105", "105", "105"]
    assert found["flows of six quarters"] == ["140", "560", "17.5", "0"]
    assert float(found["together"][0].replace(",", "")) == pytest.approx(280 + 105 + 140)
    assert "150,000,000 jobs and 10,500,000 establishments" in lines[0]


JOBS = ("check of every job", "release of workload 1", "release of workload 3", "together")


def test_parts_appear_only_if_they_were_measured() -> None:
    assert page.growth_and_cost({}) == ""
    facts = {"curves": CURVES, "spark": {"not measured": "no Java"}}
    text = page.growth_and_cost({"growth": Comparison(facts=facts)})
    assert "| check of every job | jobs | 15,000,000 | 150,000,000 | 1.00 |" in text
    assert "cluster" not in text


def test_profiles_name_the_engine_in_plain_words() -> None:
    found = {"profile": [{"function": "_seam.py: submit", "share": 0.5}, {"function": "a.py: f", "share": 0.25}]}
    lines = page.profiles({"fit": found}).splitlines()
    assert lines[2:] == ["| fit | DuckDB runs the query | 50 % |", "| fit | `a.py: f` | 25 % |"]


def test_plan_and_desk_are_quoted_as_measured() -> None:
    plan = {"jobs": 1e6, "overhead": 0.27, "ratios": [1.31, 1.12, 1.28]}
    desk = {
        "readers": 200,
        "people": 50,
        "p95_ratio_to_hello": {"worst": 9.5, "/": 9.5, "/ledger": 5.25},
        "runs": {"done": 9, "failed": 1},
        "answers_while_running": 1200,
        "ledger": {"spent": "epsilon=11"},
    }
    text = page.growth_and_cost({"plan": Comparison(facts=plan), "desk": Comparison(facts=desk)})
    assert "1,000,000 jobs released by a plan take 27 % more processor time" in text
    assert "(median of 3 pairs of runs, which lie between 12 % and 31 %)" in text
    assert "between 5.2 (`/ledger`) and 9.5 times (`/`)" in text
    assert "10 releases started at once while they read on: 9 ended well, 1,200 pages" in text
    assert "holds epsilon=11" in text


def test_a_row_without_memory_counts_for_time_alone() -> None:
    rows = [Row("job", "Spark", 9.4, memory, "the same", "", same_work=False) for memory in (2.1, None)]
    assert page.counted(rows, "time") == "less time on 2"
    assert page.counted(rows, "memory") == "less memory on 1"
