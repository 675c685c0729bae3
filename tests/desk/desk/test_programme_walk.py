"""A statistical programme in a real browser: levels, sums, rules, a revision and the agency's table; flows and changes.

Every page on the way is looked at in both sizes: axe finds nothing, nothing is wider than the screen.
"""

from __future__ import annotations

import csv
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Ledger
from discreet.review.verdict import verify_bundle

pytestmark = pytest.mark.full_size

SETTINGS = """
[[source]]
name = "firms"
path = "data/firms.parquet"
dataset = "firms"
epsilon = 20
period = "2026-Q1"
per_quarter = 12
unit = { kind = "establishments", alpha = 0.1 }

[source.schema]
workplace_attributes = ["naics", "county"]
worker_attributes = {}
size = "n"
magnitudes = { pay = { cap = 50 } }

[source.hierarchy.industry]
levels = ["naics", "sector"]
prefix = [4, 2]

[source.hierarchy.place]
levels = ["county", "region"]
lookup = "data/regions.csv"

[source.agency.qcew]
file = "data/qcew.csv"
title = "QCEW"
columns = { sum = "wages" }
factors = [0.05, 0.15]

[[source]]
name = "histories"
path = "data/histories.parquet"
dataset = "histories"
epsilon = 9
quarters = ["2025-Q1", "2025-Q2", "2025-Q3", "2025-Q4"]
unit = { kind = "establishments", alpha = 0.1 }

[source.schema]
workplace_attributes = ["county"]
worker_attributes = {}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, folder = np.random.default_rng(5), tmp_path_factory.mktemp("programme")
    rows = {
        "workplace": np.arange(300),
        "naics": rng.choice(["1111", "1121", "2361"], 300),
        "county": rng.choice(["01001", "01003", "02001"], 300),
        "n": rng.integers(1, 400, 300),
    }
    (folder / "data").mkdir()
    pq.write_table(pa.table(rows | {"pay": rows["n"] * 20}), folder / "data" / "firms.parquet")
    (folder / "data" / "regions.csv").write_text("county,region\n01001,north\n01003,north\n02001,south\n")
    (folder / "data" / "qcew.csv").write_text("sector,region,wages\n11,north,9000\n11,south,5000\n23,north,\n")
    jobs = [
        (worker, worker % 37, f"c{worker % 37 % 4}", f"2025-Q{quarter}")
        for worker in range(2000)
        for quarter in range(1, 5)
        if rng.random() < 0.8
    ]
    names = ("worker", "workplace", "county", "quarter")
    columns = dict(zip(names, map(list, zip(*jobs, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "data" / "histories.parquet")
    (folder / "desk.toml").write_text(SETTINGS)
    return folder


@pytest.fixture(scope="module")
def served(folder: Path, serve: Any) -> Any:
    return serve(folder)


@pytest.fixture(scope="module")
def state(served: Any, chromium: Any) -> Any:
    """What a browser keeps after the link was opened; the link opens once."""
    context = chromium.new_context()
    context.new_page().goto(served.link)
    kept = context.storage_state()
    context.close()
    return kept


def sound(page: Any) -> None:
    """What stands on the page now, in two sizes and both themes."""
    import axe_playwright_python

    axe = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text(encoding="utf-8")
    wider = (
        "() => [...document.querySelectorAll('body *')]"
        ".filter(e => !e.closest('.scroll, pre, .skip, .side nav, .hidden, .events')"
        " && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)"
        ".map(e => e.tagName + '.' + e.className)"
    )
    for width, theme in ((390, "dark"), (1280, "light")):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(wider) == [], (page.url, width)
        page.evaluate(axe)
        found = page.evaluate("() => axe.run({resultTypes: ['violations']})")["violations"]
        assert [(fault["id"], fault["nodes"][0]["html"]) for fault in found] == [], (page.url, width)


def to_the_end(page: Any) -> str:
    """Review, approval and run; every page is looked at. The address of the run."""
    page.click("text=Send to review")
    page.wait_for_selector("#promise, .trouble")
    assert "/review/" in page.url, page.inner_text("main")
    sound(page)
    page.click("text=Approve")
    page.click("text=Run it")
    page.wait_for_selector("text=What came out")
    sound(page)
    return str(page.url)


def test_levels_sums_rules_a_revision_and_the_agencys_table(
    served: Any, state: Any, visit: Any, tmp_path: Path
) -> None:
    shown = visit(storage_state=state)
    page, base = shown.page, served.base
    page.goto(f"{base}/plans/new?source=firms")
    ticks = page.locator("#release-0-by input").evaluate_all("all => all.map(e => e.value)")
    assert ticks == ["naics", "county", "sector", "region"], "levels that are prefixes or looked up are offered too"
    assert not page.is_visible("#release-0-of") and not page.is_visible("#release-0-tables")
    page.select_option("#release-0-kind", "sums")
    assert page.is_visible("#release-0-of") and page.is_visible("#release-0-tables")
    assert not page.is_visible("#release-0-by")
    page.fill("#title", "Payroll of the quarter")
    page.fill("#release-0-name", "pay")
    page.fill("#release-0-epsilon", "4")
    page.fill("#release-0-tables", "naics, county\nsector, nowhere")
    page.wait_for_selector("#estimate .trouble >> text=nowhere")
    sound(page)
    page.fill("#release-0-tables", "naics, county\nsector, region\nregion")
    page.click("summary:has-text('More')")
    page.select_option("#release-0-measure", "finest")
    page.fill("#release-0-suppress-below", "120000")
    page.check("input[name=release-0-suppress-quality][value='mostly noise']")
    page.select_option("#release-0-compare", "qcew")
    page.check("input[name=release-0-establishments]")
    page.wait_for_selector("#estimate >> text=Beside QCEW: 3 cells by sector, region, 1 of them suppressed")
    told = page.inner_text("#estimate")
    assert page.inner_text("#cost") == "4" and "This plan can be run" in told
    assert "Not drawn, but sums of drawn tables" in told and "of all jobs" not in told
    page.click("text=Add a release")
    page.fill("#release-1-name", "pay-again")
    page.select_option("#release-1-kind", "sum")
    page.check("input[name=release-1-by][value=region]")
    page.locator("#release-1 summary:has-text('More')").click()
    page.fill("#release-1-replaces", "pay")
    page.wait_for_selector("#estimate .trouble >> text=A revision is of the same kind")
    page.select_option("#release-1-kind", "sums")
    page.fill("#release-1-tables", "naics, county\nregion")
    page.select_option("#release-1-measure", "finest")
    page.fill("#release-1-epsilon", "9")
    page.wait_for_selector("#estimate .trouble >> text=2026-Q1")  # a quarter has 12, the data set 20
    page.fill("#release-1-epsilon", "8")
    page.wait_for_selector("#estimate >> text=A revision of pay")
    page.wait_for_selector("#estimate .good")
    told = page.inner_text("#estimate")
    assert "Largest establishment, by its pay" in told and "Error of a sum" in told
    assert " count " not in told and "workers" not in told
    sound(page)
    run = to_the_end(page)

    page.click("a:text-is('pay')")
    sound(page)
    words = page.inner_text("main")
    assert "suppressed" in words and "numbers below 120,000 or of quality" in words and "agency.csv" in words
    (folder,) = (served.folder / "releases").glob("*/pay")
    rows = list(csv.DictReader((folder / "2-sector-region" / "basic.csv").read_text().splitlines()))
    assert sum(int(row["establishments"]) for row in rows) == 300
    page.goto(run)
    with page.expect_download() as bundle:
        page.click('a:text-is("Reviewer\'s bundle")')
    bundle.value.save_as(tmp_path / "bundle.zip")
    assert not [one for one in verify_bundle(tmp_path / "bundle.zip", ledger=served.folder / "ledger.db") if one.wrong]
    page.goto(run)
    page.click("a:text-is('Report')")
    sound(page)
    assert "pay beside QCEW" in page.inner_text("body") and "replaces 'pay'" in page.inner_text("body")
    page.goto(f"{base}/ledger")
    sound(page)
    assert "2026-Q1" in page.inner_text("main") and "8 of 20 epsilon left" in " ".join(
        page.inner_text(".cards").split()
    )
    with Ledger.open(served.folder / "ledger.db", read_only=True) as ledger:
        assert [str(each.remaining) for each in ledger.budgets() if each.dataset == "firms"] == ["epsilon=8"]
    assert not shown.complaints


def test_flows_and_changes_of_quarters(served: Any, state: Any, visit: Any, tmp_path: Path) -> None:
    shown = visit(storage_state=state)
    page, base = shown.page, served.base
    page.goto(f"{base}/plans/new?source=histories")
    assert page.is_visible("#release-0-quarter") and not page.is_visible("#release-0-quarters")
    page.fill("#title", "Flows of a quarter")
    page.fill("#release-0-name", "flows")
    page.fill("#release-0-quarter", "2025-Q1")
    page.wait_for_selector("#estimate .trouble >> text=has no quarter before it")
    assert page.get_attribute("#release-0-quarter", "aria-invalid") == "true"
    page.fill("#release-0-quarter", "2025-Q2")
    page.check("input[name=release-0-by][value=county]")
    page.fill("#release-0-epsilon", "4")
    page.wait_for_selector("#estimate .expected >> text=destruction")
    page.click("text=Add a release")
    page.select_option("#release-1-kind", "changes")
    page.fill("#release-1-name", "year")
    page.fill("#release-1-quarters", "2025-Q1, 2025-Q4")
    page.check("input[name=release-1-by][value=county]")
    page.fill("#release-1-epsilon", "4")
    page.wait_for_selector("#estimate >> text=A change errs")
    sound(page)
    run = to_the_end(page)
    for name in ("flows", "year"):
        page.goto(run)
        page.click(f"a:text-is('{name}')")
        sound(page)
    (folder,) = (served.folder / "releases").glob("*/flows")
    rows = list(csv.DictReader((folder / "research.csv").read_text().splitlines()))
    assert [row["county"] for row in rows] == ["c0", "c1", "c2", "c3"]
    for row in rows:
        flow = {name: int(row[name]) for name in ("beginning", "end", "accessions", "separations")}
        assert flow["beginning"] + flow["accessions"] == flow["end"] + flow["separations"]
    page.goto(run)
    page.click("a:has-text('Report')")
    sound(page)
    assert not shown.complaints


def test_the_card_of_alarms_and_columns_that_know_more(served: Any, state: Any, visit: Any, tmp_path: Path) -> None:
    """Alarms between two releases of a form, right and wrong; the opened part of an exception report's form."""
    shown = visit(storage_state=state)
    page, base = shown.page, served.base
    page.goto(f"{base}/plans/new?source=firms")
    page.fill("#title", "Twice")
    page.fill("#release-0-name", "one")
    page.check("input[name=release-0-by][value=region]")
    page.fill("#release-0-epsilon", "1")
    page.click("text=Add a release")
    page.fill("#release-1-name", "two")
    page.check("input[name=release-1-by][value=region]")
    page.fill("#release-1-epsilon", "1")
    page.click("text=Add alarms")
    page.wait_for_selector("#alarms-0")
    assert page.input_value("#alarms-0-early") == "one" and page.input_value("#alarms-0-late") == "two"
    page.fill("#alarms-0-name", "moved")
    page.wait_for_timeout(400)  # it begins to estimate a quarter of a second after a change
    page.wait_for_selector("#estimate[aria-busy=false] .good")
    sound(page)
    page.fill("#alarms-0-rate", "2")
    page.wait_for_selector("#estimate[aria-busy=false] .trouble")
    sound(page)
    page.fill("#alarms-0-rate", "")
    page.fill("#alarms-0-fdr", "0.1")
    page.wait_for_selector("#estimate[aria-busy=false] .good")
    page.fill("#alarms-0-rate", "0.1")
    page.wait_for_selector("#estimate[aria-busy=false] .trouble")
    assert "Leave one out" in page.inner_text("#estimate") + page.inner_text("#alarms-0")
    sound(page)
    page.click("text=Remove alarms 1")
    page.wait_for_selector("#alarms-0", state="detached")
    page.goto(f"{base}/changes")
    page.click("summary:has-text('Columns that know more')")
    assert page.is_visible("#indicators") and page.is_visible("#known") and page.is_visible("#calendar")
    sound(page)
    ends = [date(2023, 1, 28) + timedelta(7 * int(weeks)) for weeks in np.cumsum(np.resize((4, 4, 5), 36))]
    sales = np.random.default_rng(1).gamma(4, 600, (40, len(ends)))
    rows = [
        f"{name};{end:%d.%m.%Y};{f'{value:,.2f}'.translate(str.maketrans(',.', '.,'))}"
        for name, values in zip((f"Käse, Stück {i:02d}" for i in range(40)), sales, strict=True)
        for end, value in zip(ends, values, strict=True)
    ]
    (tmp_path / "sales.csv").write_text("\n".join(["Artikel;Ende;Umsatz", *rows]), encoding="utf-8-sig")
    page.click("summary:has-text('Columns of these files')")
    for field, name in (("series", "Artikel"), ("time", "Ende"), ("value", "Umsatz")):
        page.fill(f"#{field}", name)
    page.fill("#capacity", "5")
    page.set_input_files("#panel", str(tmp_path / "sales.csv"))
    page.click("text=Make the report")
    page.wait_for_selector("text=Käse, Stück")
    assert "2026-02-21" in page.inner_text("main")  # four weeks after the last
    sound(page)
    assert not shown.complaints
