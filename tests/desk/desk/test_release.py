"""The way of a release in a real browser: plan, estimate, approval, run, reload, download, ledger; also if killed."""

from __future__ import annotations

import csv
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from discreet.ledger import Ledger
from discreet.review.verdict import verify_bundle

SEXES = {"female", "male"}


@pytest.fixture(scope="module")
def served(copied: Any, serve: Any) -> Any:
    return serve(copied())


@pytest.fixture(scope="module")
def state(served: Any, chromium: Any) -> Any:
    """What a browser keeps after the link was opened; the link opens once."""
    context = chromium.new_context()
    context.new_page().goto(served.link)
    kept = context.storage_state()
    context.close()
    return kept


def planned(page: Any, base: str, *, title: str, name: str, epsilon: str = "1") -> None:
    """Fill the form in and send it to review."""
    page.goto(f"{base}/plans/new?source=jobs&by=sector&by=ownership")
    page.fill("#title", title)
    page.fill("#release-0-name", name)
    page.fill("#release-0-epsilon", epsilon)
    page.click("text=Send to review")
    page.wait_for_selector("#promise, .trouble")
    assert "/review/" in page.url, page.inner_text("main")


def test_from_plan_to_ledger(served: Any, state: Any, visit: Any, worker_of: Any, tmp_path: Path) -> None:
    shown = visit(storage_state=state)
    page, base = shown.page, served.base

    page.goto(f"{base}/plans/new?source=jobs&by=sector&by=ownership")
    error = _error(page)
    for field, value in (("#release-0-epsilon", "2"), ("#unit-alpha", "0.05")):
        was = page.locator("#estimate .error").first.inner_text()
        page.fill(field, value)
        page.wait_for_function("was => document.querySelector('#estimate .error')?.innerText !== was", arg=was)
        smaller = _error(page)
        assert smaller < 0.7 * error  # about half, since the noise is as wide as alpha / epsilon
        error = smaller
    assert page.inner_text("#cost") == "2"
    page.check("input[value=sex]")
    page.wait_for_selector("text=kinds of workers")
    page.fill("#release-0-epsilon", "9")
    page.wait_for_selector("#estimate .trouble >> text=epsilon=8 is left")
    assert page.get_attribute("#release-0-epsilon", "aria-invalid") == "true"

    planned(page, base, title="Jobs by sector", name="sectors", epsilon="2")
    page.click("text=Approve")
    page.click("text=Run it")
    worker = worker_of(served.folder)
    page.reload()
    assert page.inner_text(".head ~ .actions .state") == "running"
    assert page.locator("#events li").count() >= 1
    os.kill(worker, signal.SIGCONT)
    page.wait_for_selector("text=What came out")
    assert page.inner_text("#step") == "1 released, epsilon=6 is left"

    with page.expect_download() as bundle:
        page.click('a:text-is("Reviewer\'s bundle")')
    bundle.value.save_as(tmp_path / "bundle.zip")
    findings = verify_bundle(tmp_path / "bundle.zip", ledger=served.folder / "ledger.db")
    assert not any(finding.wrong for finding in findings)
    page.click("a:text-is('sectors')")
    with page.expect_download() as table:
        page.click("text=research.csv")
    published = next((served.folder / "releases").glob("*/sectors/research.csv"))
    assert Path(table.value.path()).read_bytes() == published.read_bytes()
    assert page.locator(".ranked tbody tr .mark svg").count() == 15
    page.goto(f"{base}/ledger")
    assert "6 of 8 epsilon left" in " ".join(page.inner_text(".cards").split())
    page.click("text=Verify now")
    assert "intact: 3 entries" in page.inner_text(".note")
    page.goto(f"{base}/log")
    told = page.inner_text("main")
    assert "Intact." in told
    assert all(word in told for word in ("entered by the link", "plan approved", "run started", "ledger verified"))
    assert not shown.complaints


def test_more_of_a_release(served: Any, state: Any, visit: Any) -> None:
    """A filter moves the estimate, a fault opens what was closed, and what is published is what was asked for."""
    shown = visit(storage_state=state)
    page, base = shown.page, served.base
    page.goto(f"{base}/plans/new?source=jobs&by=sector&by=ownership")
    whole = _error(page)
    assert not page.is_visible("#release-0-where")
    page.click("summary:has-text('More')")
    page.fill("#release-0-where", "sector: 11 Agriculture, 21 Mining")
    page.wait_for_selector("#estimate .only >> text=Only sector: 11 Agriculture, 21 Mining")
    assert _error(page) != whole
    page.fill("#release-0-where", "sex: other")
    page.click("summary:has-text('More')")
    page.wait_for_selector("#estimate .trouble >> text=the public domain is")
    assert page.is_visible("#release-0-where") and page.get_attribute("#release-0-where", "aria-invalid") == "true"
    page.fill("#release-0-where", "sector: 11 Agriculture, 21 Mining")
    page.check("input[name=release-0-by][value=sex]")
    page.check("input[name=release-0-shrink][value=sector]")
    page.wait_for_selector("#estimate >> text=groups by sector")
    page.select_option("#release-0-stratum", "sector")
    page.fill("#title", "Farms and mines")
    page.fill("#release-0-name", "farms")
    page.click("text=Send to review")
    page.wait_for_url("**/review/*")
    page.click("text=Approve")
    page.click("text=Run it")
    page.wait_for_selector("text=What came out")
    (published,) = (served.folder / "releases").glob("*/farms/research.csv")
    rows = list(csv.DictReader(published.read_text().splitlines()))
    assert {row["sector"] for row in rows} == {"11 Agriculture", "21 Mining"} and {r["sex"] for r in rows} == SEXES
    assert not shown.complaints


def test_without_a_script(served: Any, state: Any, visit: Any) -> None:
    """The form, its estimate and its buttons work where no script runs."""
    page = visit(storage_state=state, java_script_enabled=False).page
    page.goto(f"{served.base}/plans/new?source=jobs&by=sector&by=ownership")
    before = _error(page)
    page.fill("#release-0-epsilon", "4")
    with page.expect_navigation():
        page.click("text=Update the estimate >> visible=true")
    assert _error(page) < before / 2
    with page.expect_navigation():
        page.click("text=Add a release")
    assert page.locator("legend", has_text=re.compile("^Release 2$")).count() == 1
    page.click("text=Send to review")
    page.wait_for_url("**/review/*")
    assert page.inner_text(".costs dd >> nth=0") == "5"


def test_killed_in_the_middle(served: Any, state: Any, serve: Any, visit: Any, worker_of: Any) -> None:
    """The server is killed: the worker lives on. The worker is killed: the run is resumed, nothing is paid twice."""
    page = visit(storage_state=state).page
    planned(page, served.base, title="Killed in the middle", name="killed", epsilon="3")
    page.click("text=Approve")
    page.click("text=Run it")
    worker = worker_of(served.folder, "release killed")
    served.kill()
    serve(served.folder, served.port)
    page.reload()
    assert page.inner_text(".head ~ .actions .state") == "running"
    before = charges(served.folder)
    os.kill(worker, signal.SIGKILL)
    page.wait_for_selector(".state.interrupted")
    page.click("button:text-is('Resume')")
    page.wait_for_selector("text=What came out")
    after = charges(served.folder)
    assert after[: len(before)] == before
    assert [float(entry.loss.epsilon) for entry in after if entry.release == "killed"] == [3.0]
    with Ledger.open(served.folder / "ledger.db", read_only=True) as ledger:
        assert ledger.verify()
        published = [entry for entry in ledger.entries() if entry.kind == "publish" and entry.release == "killed"]
        assert len(published) == 1
    assert len(list((served.folder / "releases").glob("*/killed/release.json"))) == 1


def charges(folder: Path) -> list[Any]:
    if not (folder / "ledger.db").exists():
        return []
    with Ledger.open(folder / "ledger.db", read_only=True) as ledger:
        return [entry for entry in ledger.entries() if entry.kind == "charge"]


def _error(page: Any) -> float:
    page.wait_for_selector("#estimate .error")
    return float(
        page.locator("#estimate .error").first.inner_text().removeprefix("at most ").lstrip("±").replace(",", "")
    )
