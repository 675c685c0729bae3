"""Statistics before all else: tables that are their own charts, noise greyed, one script known by its hash."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.pages.page import POLICY, SCRIPT, Heading, Note, Page, Prose, Table
from discreet.pages.ranked import MOST, WIDTH, Mark, Ranked, rows
from discreet.privacy.assurance import Claim
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.losses import Pure
from discreet.privacy.units import Establishments
from discreet.report.estimates import estimates, in_short
from discreet.report.release import DataSet, Facts, Release, Results, TableOfCounts, page
from discreet.tables.expected import ByLargest
from discreet.tables.release import CountRelease

UNIT = Establishments("0.1")


def published(counts: Any, reach: float, kinds: int = 1) -> Facts:
    counts = np.asarray(counts).reshape(-1, kinds)
    keys = pa.table({"place": [f"P{i}" for i in range(len(counts))]})
    levels, by = (tuple((i,) for i in range(kinds)), ("sex",)) if kinds > 1 else (((),), ())
    table = CountRelease(keys, by, levels, counts, counts - reach, counts + reach, 0.9, Guarantee(UNIT, Pure(1)))
    results = Results(counts=[TableOfCounts(table, "polynomial (tight)", Pure(1), ByLargest({1: 0.5}), "No sizes.")])
    release = Release(
        "jobs", "", Pure(1), Claim("jobs", "data", UNIT, Pure(1)), 2, "today", results, {"basic.csv": "ab"}
    )
    return Facts("", [DataSet("data", UNIT, Pure(4), Pure(3), [release])], "cd", "0")


def with_(known: Facts, **changes: object) -> Facts:
    """The facts with other ones of their data set."""
    return replace(known, datasets=[replace(known.datasets[0], **changes)])


def test_the_order_of_a_report() -> None:
    """In short, the statistics, what to trust, then the rest; the contents come after the summary."""
    shown = page(published([900, 5], 30.0))
    html = shown.html()
    assert isinstance(shown.blocks[0], Note) and shown.blocks[0].kind == "in short"
    assert "Most jobs by place: P0, 900 (870 to 930)" in html
    order = [html.index(text) for text in ("In short", "<nav", ">Release jobs", 'class="scroll ranked"')]
    order += [html.index(f">{name}</h2>") for name in ("What to trust, and what not", "What was protected, and how")]
    order += [html.index(f">{name}</h2>") for name in ("Budget", "Beside noise infusion", "What this does not promise")]
    assert order == sorted(order)


def test_counts_are_ranked_and_noise_is_greyed() -> None:
    ranked = next(block for block in page(published([5, 900, 60], 30.0)).blocks if isinstance(block, Ranked))
    assert [(mark.label, mark.value, mark.flag, mark.faint) for mark in ranked.marks] == [
        ("P1", 900, "good", False),
        ("P2", 60, "poor", False),
        ("P0", 5, "mostly noise", True),
    ]
    assert "intervals of 90" in ranked.caption
    _, body = rows(ranked)
    assert body.count('class="faint"') == 1 and '<tr class="faint"><th scope="row">P0' in body


def test_kinds_of_workers_are_sparklines() -> None:
    ranked = next(b for b in page(published([[900, 1], [5, 6]], 30.0, kinds=2)).blocks if isinstance(b, Ranked))
    assert [(mark.value, mark.kinds, mark.flag) for mark in ranked.marks] == [
        (901, (900, 1), "1 of 2"),
        (11, (5, 6), "2 of 2"),
    ]
    assert rows(ranked)[1].count("<rect") == 4


@pytest.mark.parametrize("kinds", [1, 2])
def test_a_total_is_a_table_of_one_row(kinds: int) -> None:
    known = published(np.full((1, kinds), 40), 3.0, kinds=kinds)
    part = known.releases[0].results.counts[0]
    bare = replace(part.table, keys=part.table.keys.select([]))
    release = replace(known.releases[0], results=Results(counts=[replace(part, table=bare)]))
    shown = page(with_(known, releases=[release]))
    ranked = next(block for block in shown.blocks if isinstance(block, Ranked))
    assert [(mark.label, mark.value) for mark in ranked.marks] == [("all jobs", 40 * kinds)]
    assert f"All jobs together: {40 * kinds}." in shown.html()


def test_the_largest_are_shown_and_the_rest_is_said() -> None:
    ranked = next(b for b in page(published(np.arange(MOST + 100), 3.0)).blocks if isinstance(b, Ranked))
    assert len(ranked.marks) == MOST and ranked.marks[0].value == MOST + 99
    assert f"the {MOST} largest of {MOST + 100}" in ranked.caption


@pytest.mark.parametrize("value", [np.nan, np.inf, -3.0, 0.0, 1e-9, 1e12])
def test_pictures_stay_in_their_cells(value: float) -> None:
    marks = [Mark("<b>&", value, value - 1, value + 1), Mark("b", 2.0), Mark("c", 5.0, -1e6, 1e6, "flag")]
    head, body = rows(Ranked(("A", "B", "C"), marks, "x", whole=False))
    assert "&lt;b&gt;&amp;" in body and "nan" not in body and "inf" not in body
    xs = [float(x) for x in re.findall(r'(?:M|H|x=")(-?[\d.]+)', body)]
    assert all(0 <= x <= WIDTH for x in xs)
    assert head.count("<th") == 4 and body.count("<tr") == 3
    assert rows(Ranked(("A", "B", "C"), marks[:2], "x"))[0].count("<th") == 3, "a column without a flag is left out"


def test_one_number_of_decimals_in_a_table() -> None:
    marks = [Mark("a", 0.1, 0.0847, 0.1153), Mark("b", 0.03404, 0.0179, 0.0502), Mark("c", -0.5, -1.2, 0.2)]
    _, body = rows(Ranked(("A", "B", "C"), marks, "x", whole=False))
    shown = re.findall(r"\d+\.(\d+)(?=<|\u00a0)", body)
    assert len({len(decimals) for decimals in shown}) == 1


MODEL = pa.table(
    {
        "effect": ["fixed", "fixed", "variance", "random", "random"],
        "group": [None, None, "g", "g", "g"],
        "term": ["(Intercept)", "x", "variance", "a", "b"],
        "estimate": [1.0, 0.5, 0.25, -0.4, 0.3],
        "std_error": [0.1, 0.1, None, 0.1, 0.2],
        "flag": [None, None, "hardly seen", None, None],
    }
)


def test_a_model_is_charts_of_effects_with_intervals() -> None:
    fixed, variances, random = estimates(MODEL, "m")
    assert isinstance(fixed, Ranked) and isinstance(variances, Table) and isinstance(random, Ranked)
    assert fixed.marks[1].low == pytest.approx(0.5 - 0.196) and fixed.marks[1].high == pytest.approx(0.5 + 0.196)
    assert variances.rows == (("g", "variance", 0.25, "hardly seen"),)
    assert [(mark.label, mark.faint) for mark in random.marks] == [("b", True), ("a", False)], "grey: may be zero"
    (line,) = in_short(MODEL, "m")
    assert "1 of 1 effects" in line and "x, 0.5 (0.304 to 0.696)" in line


def test_answers_with_their_ends() -> None:
    table = pa.table({"coefficient": ["x"], "at": [0.0], "answer": [None], "low": [0.2], "high": [0.4]})
    (shown,) = estimates(table.set_column(2, "answer", pa.array([None], pa.float64())), "p")
    assert isinstance(shown, Ranked) and "nan" not in rows(shown)[1]


def test_the_one_script_is_known_by_its_hash_and_comes_with_a_table_to_search() -> None:
    plain = Page("T", [Heading("H"), Prose("x")]).html()
    assert "<script" not in plain and f'content="{POLICY}"' in plain
    ranked = Page("T", [Ranked(("A", "B", "C"), [Mark("a", 1)], "x")]).html()
    scripts = re.findall(r"<script>(.*?)</script>", ranked, re.DOTALL)
    assert scripts == [SCRIPT]
    hashed = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    assert f"{POLICY}; script-src 'sha256-{hashed}'" in ranked
    assert "innerHTML" not in SCRIPT and "fetch" not in SCRIPT
