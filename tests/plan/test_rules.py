"""Rules of the agency: what the basic form leaves out, recorded, reported and computed again by the reviewer."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import load_workbook

from discreet.plan.run import RunResult, run
from discreet.publication.site import site
from discreet.review.verdict import verify_bundle
from discreet.tables.quality import SUPPRESSED
from discreet.words.errors import PlanError

HEAD = """
[data]
source = "jobs.parquet"
{more}
[data.schema]
workplace_attributes = ["county", "state"]
worker_attributes = {{}}
{pay}
[hierarchy]
place = ["county", "state"]
[unit]
kind = "establishments"
alpha = 0.1
[budget]
epsilon = 20
ledger = "ledger.db"
dataset = "jobs"
"""
OUTPUT = """
[output]
folder = "out"
formats = ["parquet"]
"""
MOVED = (
    HEAD.format(more='quarters = ["2024Q1", "2024Q2", "2024Q3"]', pay="").replace("{}", "{{}}")
    + """
[[release]]
name = "moved"
kind = "{kind}"
{asked}
by = ["county"]
round_to = 10
suppress = {{ below = 60 }}
epsilon = 8
"""
    + OUTPUT
)
SUMS = (
    HEAD.format(more="", pay="magnitudes = { pay = { cap = 100 } }").replace("jobs.parquet", "now.parquet")
    + """
[[release]]
name = "paid"
kind = "sums"
of = "pay"
tables = [["county"], ["state"], []]
measure = "finest"
round_to = 100
epsilon = 8
"""
    + OUTPUT
)


def histories(folder: Path) -> None:
    """Jobs of three quarters in eight counties of two states, and those of one quarter with pay."""
    rng = np.random.default_rng(3)
    workplace = np.repeat(np.arange(80), rng.integers(5, 60, 80))
    county = np.array([f"c{i % 8}" for i in range(80)])
    rows = {"worker": np.arange(len(workplace)), "workplace": workplace, "county": county[workplace]}
    rows["state"] = np.array([f"s{int(name[1:]) // 4}" for name in rows["county"]])
    kept = [rng.random(len(workplace)) < 0.8 for _ in range(3)]
    quarters = [pa.table({k: v[keep] for k, v in rows.items()}) for keep in kept]
    told = [q.append_column("quarter", pa.array([f"2024Q{i}"] * len(q))) for i, q in enumerate(quarters, start=1)]
    pq.write_table(pa.concat_tables(told), folder / "jobs.parquet")
    pay = pa.array(rng.integers(10, 100, len(quarters[0])))
    pq.write_table(quarters[0].append_column("pay", pay), folder / "now.parquet")


def ruled(plan: Path) -> Path:
    text = plan.read_text()
    text = text.replace('by = ["place", "sector"]\n', 'by = ["place", "sector"]\nsuppress = { below = 40 }\n')
    text = text.replace(
        'by = ["place", "sex"]\n', 'by = ["place", "sex"]\nsuppress = { quality = ["poor", "mostly noise"] }\n'
    )
    plan.write_text(text)
    return plan


def test_a_rule_goes_from_the_plan_to_the_reviewer(plan: Path) -> None:
    done = run(ruled(plan))
    folder = plan.parent / "out"
    basic = pq.read_table(folder / "places" / "basic.parquet").to_pandas()
    research = pq.read_table(folder / "places" / "research.parquet").to_pandas()
    gone = basic["quality"] == "suppressed"
    assert gone.any() and not gone.all()
    assert basic.loc[gone, ["count", "lower", "upper"]].isna().all(axis=None)
    assert (basic.loc[~gone, "count"] >= 40).all() and research["count"].notna().all()
    sexes = pq.read_table(folder / "sexes" / "basic.parquet").to_pandas()
    assert not sexes["quality"].isin(["poor", "mostly noise"]).any()
    about = json.loads((folder / "places" / "release.json").read_text())
    assert (
        about["parameters"]["suppress"] == {"below": 40, "quality": []} and "suppressed" in about["columns"]["quality"]
    )
    report = (folder / "report.html").read_text()
    assert f"leaves out numbers below 40: {gone.sum()} of {len(basic)}" in report
    assert "below 40" in about["columns"]["quality"] and "of quality 'poor'" in report.replace("&#x27;", "'")
    cells = rows_of(report, "Jobs by place, sector")
    for place, sector, count, left in zip(basic["place"], basic["sector"], basic["count"], gone, strict=True):
        assert cells[f"{place}, {sector}"] == (SUPPRESSED if left else f"{count:,.0f}"), (place, sector)
    assert "P0, farm" in cells, "labels are those of the basic form"
    findings = {one.subject: one for one in verify_bundle(done.bundle)}
    assert not [one for one in findings.values() if one.wrong], findings
    assert findings["places: basic form"].holds and findings["report.html"].holds


def rows_of(report: str, caption: str) -> dict[str, str]:
    """What a report shows of each cell of the table with this caption: its number, or that it is suppressed."""
    table = next(part for part in report.split("<table") if f"{caption}, " in part)
    found = re.findall(r'<th scope="row">(.*?)</th><td class="number"><b>(.*?)</b>.*?(?:<td>([^<]*)</td>)?</tr>', table)
    return {cell: number or flag for cell, number, flag in found}


def assert_rates_are_inside(done: RunResult, drawn: pa.Table) -> None:
    """Noise may take a rate below zero, where no true one is: readers see the nearest that its interval holds."""
    rate = "jcr" if "jcr" in drawn.column_names else "rate"
    for off, end in ((-9.0, "lower"), (9.0, "upper")):
        at = drawn.column_names.index(rate)
        far = drawn.set_column(at, rate, pa.array(np.full(len(drawn), off)))
        request = done.check.releases[0].request
        seen = replace(request, release=request.release.model_copy(update={"suppress": None})).basic(far, {})
        moved, ends = np.array(seen[rate]), np.array(seen[f"{rate}_{end}"], dtype=np.float64)
        known = np.isfinite(ends)
        assert known.any() and moved[known] == pytest.approx(ends[known], rel=1e-3), (rate, end)


@pytest.mark.parametrize("kind", ["flows", "changes"])
def test_a_rule_holds_in_the_report_of_flows_and_changes(kind: str, tmp_path: Path) -> None:
    histories(tmp_path)
    asked = {"flows": 'quarter = "2024Q2"', "changes": 'quarters = ["2024Q1", "2024Q2"]'}[kind]
    plan = tmp_path / "plan.toml"
    plan.write_text(MOVED.format(kind=kind, asked=asked))
    done = run(plan)
    basic = pq.read_table(tmp_path / "out" / "moved" / "basic.parquet").to_pandas()
    assert_rates_are_inside(done, pq.read_table(tmp_path / "out" / "moved" / "research.parquet"))
    report = (tmp_path / "out" / "report.html").read_text()
    assert "Numbers of moved are rounded to multiples of 10" in report and "leaves out numbers below 60" in report
    number, flag, caption = {
        "flows": ("jcr", "creation_quality", "Job creation rate"),
        "changes": ("change", "change_quality", "Changes with intervals"),
    }[kind]
    cells = rows_of(report, caption)
    gone = basic[flag] == SUPPRESSED
    assert gone.any() and basic.loc[gone, number].isna().all()
    for cell, left, value in zip(basic["county"], gone, basic[number], strict=True):
        shown = cells[cell if kind == "flows" else f"{cell}, 2024Q2"]
        assert (shown == SUPPRESSED) == left, cell
        assert left or float(shown.replace(",", "").replace("\u2212", "-")) == pytest.approx(value, abs=0.005)


@pytest.mark.parametrize("by", ["county", pytest.param("state", marks=pytest.mark.full_size)])
def test_a_revision_of_flows_says_what_changed(by: str, tmp_path: Path) -> None:
    histories(tmp_path)
    plan = tmp_path / "plan.toml"
    text = MOVED.format(kind="flows", asked='quarter = "2024Q2"')
    first, second = text.index("[[release]]"), text.index("[output]")
    again = text[first:second].replace("moved", "again").replace('["county"]', f'["{by}"]') + 'replaces = "moved"\n'
    plan.write_text(text[:second] + again + text[second:])
    done = run(plan)
    page = (tmp_path / "out" / "report.html").read_text()
    one, two = (pq.read_table(tmp_path / "out" / name / "research.parquet").to_pandas() for name in ("moved", "again"))
    if by == "state":
        assert "By state, quarter: the cells are not the same." in page
    else:
        assert f"employment {(one['employment'] - two['employment']).abs().mean():.3g}, beginning" in page
    assert next(one for one in verify_bundle(done.bundle) if one.subject == "report.html").holds


def test_reports_of_sums_speak_of_their_magnitude_and_show_every_table(tmp_path: Path, command: Any) -> None:
    """Tables that are sums of drawn ones are in the report too, rounded as the agency rounds."""
    histories(tmp_path)
    plan = tmp_path / "plan.toml"
    plan.write_text(SUMS)
    told = " ".join(command("check", plan)[1].split())
    assert "paid: Typical half-width of an interval, by the same size" in told and "times as much pay" in told
    assert "without intervals" not in told
    plan.write_text(SUMS.replace("epsilon = 8", 'epsilon = "1/2"'))  # nothing bounds the largest establishment
    told = " ".join(command("check", plan)[1].split())
    assert "without intervals, but for sums of one number: by state; nothing." in told
    plan.write_text(SUMS)
    done = run(plan)
    report = (tmp_path / "out" / "report.html").read_text()
    assert "Numbers of paid are rounded to multiples of 100" in report
    for place, caption in (("1-county", "Pay by county"), ("2-state", "Pay by state"), ("3-total", "Pay in all")):
        table = pq.read_table(tmp_path / "out" / "paid" / place / "basic.parquet").to_pandas()
        shown = rows_of(report, caption)
        assert sorted(int(value.replace(",", "")) for value in shown.values()) == sorted(table["sum"])
    for wrong in ("Jobs by", "jobs by", "all jobs", "every count", "one count", "true count", "All jobs"):
        assert wrong not in report, wrong
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]


def test_a_rule_holds_and_is_named_in_every_format_of_a_publication(plan: Path) -> None:
    text = ruled(plan).read_text().replace("suppress = { below = 40 }", "suppress = { below = 40 }\nround_to = 20")
    plan.write_text(text)
    run(plan)
    data = plan.parent / "site" / "downloads"
    site(plan.parent / "out", plan.parent / "site", formats=("csv", "parquet", "xlsx", "csvw", "sdmx"))
    gone = pq.read_table(data / "places.parquet")["quality"].to_pandas() == SUPPRESSED
    assert gone.any()
    sdmx = pd.read_csv(data / "places.sdmx.csv")
    assert (sdmx["OBS_STATUS"] == "Q").tolist() == gone.tolist() and sdmx.loc[gone, "OBS_VALUE"].isna().all()
    for name in ("csv-metadata.json", "structure.xml", "../table-places.html"):
        told = (data / name).read_text()
        assert "below 40" in told and "multiples of 20" in told, name
    book = load_workbook(data / "places.xlsx")
    told = " ".join(str(cell) for sheet in book for row in sheet.iter_rows(values_only=True) for cell in row)
    assert "below 40" in told and "multiple of 20" in told


EVERYTHING = (
    HEAD.format(more="", pay="magnitudes = { pay = { cap = 100 } }").replace("jobs.parquet", "now.parquet")
    + "".join(
        f"""
[[release]]
name = "{name}"
kind = "{kind}"
{asked}
by = ["county"]
suppress = {{ below = 1000000000 }}
epsilon = 2
"""
        for name, kind, asked in (("one", "count", ""), ("two", "count", ""), ("paid", "sum", 'of = "pay"'))
    )
    + '[[alarms]]\nname = "changes"\nearly = "one"\nlate = "two"\n'
    + OUTPUT.replace('["parquet"]', '["csv", "parquet", "xlsx"]')
)


def test_a_rule_that_leaves_every_number_out_is_carried_out(tmp_path: Path) -> None:
    """It was paid for, and ended in a raw error in the report, and in a refusal where alarms had no number left."""
    histories(tmp_path)
    (tmp_path / "plan.toml").write_text(EVERYTHING)
    done = run(tmp_path / "plan.toml")
    assert set(pq.read_table(tmp_path / "out" / "paid" / "basic.parquet")["quality"].to_pylist()) == {SUPPRESSED}
    assert pq.read_table(tmp_path / "out" / "alarms-changes.parquet").num_rows == 0
    assert not [one for one in verify_bundle(done.bundle) if one.wrong]
    site(done.folder, tmp_path / "site")


def test_another_rule_than_the_one_that_was_paid_for_is_refused(plan: Path) -> None:
    run(ruled(plan))
    plan.write_text(plan.read_text().replace("below = 40", "below = 30"))
    with pytest.raises(PlanError) as error:
        run(plan)
    assert error.value.faults[0].place == ("release", 0, "suppress")


@pytest.mark.parametrize(
    ("rule", "forms", "place"),
    [
        ("{ below = 40 }", '["basic"]', "suppress"),
        ("{}", '["basic", "research"]', "suppress"),
        ("{ below = 0 }", '["basic", "research"]', "suppress"),
        ('{ quality = ["bad"] }', '["basic", "research"]', "suppress"),
        ("{ under = 40 }", '["basic", "research"]', "suppress"),
    ],
)
def test_bad_rules_are_refused(plan: Path, rule: str, forms: str, place: str) -> None:
    text = ruled(plan).read_text().replace("{ below = 40 }", rule) + f"forms = {forms}\n"
    plan.write_text(text)
    with pytest.raises(PlanError) as error:
        run(plan)
    assert any(fault.place[:3] == ("release", 0, place) for fault in error.value.faults)
    assert not (plan.parent / "ledger.db").exists()
