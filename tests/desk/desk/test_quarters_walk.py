"""Four quarters of a programme in a real browser: employment and payroll of each, flows, changes, a revision."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.ledger import Ledger
from discreet.review.verdict import verify_bundle

pytestmark = pytest.mark.full_size

QUARTERS = ("2025-Q1", "2025-Q2", "2025-Q3", "2025-Q4")
SHARED = """
[[source]]
name = "{name}"
path = "data/{name}.parquet"
dataset = "jobs"
epsilon = 30
per_quarter = 8
unit = {{ kind = "establishments", alpha = 0.1 }}
{more}

[source.schema]
workplace_attributes = ["naics", "county"]
worker_attributes = {{}}
{magnitudes}

[source.hierarchy.industry]
levels = ["naics", "sector"]
prefix = [4, 2]
"""


def desk(folder: Path) -> None:
    """Other rows in every quarter; the first is revised."""
    rng = np.random.default_rng(8)
    kinds, counties = rng.choice(["1111", "1121", "2361"], 120), rng.choice(["01001", "01003", "02001"], 120)
    (folder / "data").mkdir()
    staff = {place: list(range(place * 1000, place * 1000 + int(rng.integers(1, 40)))) for place in range(120)}
    rows: list[tuple[Any, ...]] = []
    settings = []
    for number, quarter in enumerate(QUARTERS):
        for place, workers in staff.items():
            kept = [worker for worker in workers if rng.random() < 0.9]
            staff[place] = kept + [place * 1000 + 100 * (number + 1) + i for i in range(int(rng.integers(0, 4)))]
            rows += [(worker, place, kinds[place], counties[place], quarter) for worker in staff[place]]
    columns = dict(
        zip(("worker", "workplace", "naics", "county", "quarter"), map(list, zip(*rows, strict=True)), strict=True)
    )
    jobs = pa.table(columns)
    pq.write_table(jobs, folder / "data" / "histories.parquet")
    jobs = jobs.append_column("pay", pa.array(rng.integers(2000, 9000, len(jobs))))
    for name, quarter, cut in [*((f"q{q[-1]}", q, 0) for q in QUARTERS), ("q1r", "2025-Q1", 7)]:
        of = jobs.filter(pa.compute.equal(jobs["quarter"], quarter)).drop(["quarter"]).slice(cut)
        pq.write_table(of, folder / "data" / f"{name}.parquet")
        settings.append(
            SHARED.format(name=name, more=f'period = "{quarter}"', magnitudes="magnitudes = { pay = { cap = 9000 } }")
        )
    settings.append(SHARED.format(name="histories", more=f"quarters = {list(QUARTERS)}", magnitudes=""))
    (folder / "desk.toml").write_text("\n".join(settings))


def to_the_end(page: Any) -> str:
    page.wait_for_selector("#estimate .good")
    page.click("text=Send to review")
    page.wait_for_selector("#promise, .trouble")
    assert "/review/" in page.url, page.inner_text("main")
    page.click("text=Approve")
    page.click("text=Run it")
    page.wait_for_selector("text=What came out")
    return str(page.url)


def bundle(page: Any, run: str, to: Path, ledger: Path) -> None:
    page.goto(run)
    with page.expect_download() as found:
        page.click('a:text-is("Reviewer\'s bundle")')
    found.value.save_as(to)
    assert not [one for one in verify_bundle(to, ledger=ledger) if one.wrong]


def tables_of(page: Any, base: str, source: str, name: str, *, replaces: str = "") -> None:
    """Employment and payroll at three levels; one table of each is drawn."""
    page.goto(f"{base}/plans/new?source={source}")
    page.fill("#title", f"Programme {name}")
    for i, (kind, what, cost) in enumerate([("counts", "jobs", "2"), ("sums", "pay", "2")]):
        if i:
            page.click("text=Add a release")
        page.select_option(f"#release-{i}-kind", kind)
        page.fill(f"#release-{i}-name", f"{what}-{name}")
        page.fill(f"#release-{i}-epsilon", cost)
        page.fill(f"#release-{i}-tables", "naics, county\nsector\ncounty")
        page.locator(f"#release-{i} summary:has-text('More')").click()
        page.select_option(f"#release-{i}-measure", "finest")
        if replaces:
            page.fill(f"#release-{i}-replaces", f"{what}-{replaces}")


def test_four_quarters(tmp_path: Path, serve: Any, chromium: Any, visit: Any) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    desk(folder)
    served = serve(folder)
    context = chromium.new_context()
    context.new_page().goto(served.link)
    shown = visit(storage_state=context.storage_state())
    context.close()
    page, base, ledger = shown.page, served.base, folder / "ledger.db"
    for quarter in ("q1", "q2", "q3", "q4"):
        tables_of(page, base, quarter, quarter)
        bundle(page, to_the_end(page), tmp_path / f"{quarter}.zip", ledger)
    tables_of(page, base, "q1r", "q1-revised", replaces="q1")
    bundle(page, to_the_end(page), tmp_path / "revised.zip", ledger)

    page.goto(f"{base}/plans/new?source=histories")
    page.fill("#title", "Flows and changes")
    page.fill("#release-0-name", "flows-q2")
    page.fill("#release-0-quarter", "2025-Q2")
    page.check("input[name=release-0-by][value=county]")
    page.fill("#release-0-epsilon", "4")
    page.click("text=Add a release")
    page.select_option("#release-1-kind", "changes")
    page.fill("#release-1-name", "year")
    page.fill("#release-1-quarters", "2025-Q1, 2025-Q4")
    page.check("input[name=release-1-by][value=county]")
    page.fill("#release-1-epsilon", "4")
    bundle(page, to_the_end(page), tmp_path / "flows.zip", ledger)

    page.goto(f"{base}/ledger")
    told = page.inner_text("main")
    assert "2025-Q3: 4 of 8 left" in told and "2025-Q4: 0 of 8 left" in told
    with Ledger.open(ledger, read_only=True) as book:
        assert [str(each.remaining) for each in book.budgets()] == ["epsilon=2"]
    for name in ("jobs", "pay"):
        (one,) = (folder / "releases").glob(f"*/{name}-q1-revised")
        fine = list(csv.DictReader((one / "1-naics-county" / "research.csv").read_text().splitlines()))
        coarse = list(csv.DictReader((one / "3-county" / "research.csv").read_text().splitlines()))
        number = "count" if name == "jobs" else "sum"
        assert sum(int(row[number]) for row in fine) == sum(int(row[number]) for row in coarse)
    assert not shown.complaints
