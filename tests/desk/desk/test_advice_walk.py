"""How to divide epsilon, asked for at the desk, and Figure 1 of the report of what was released, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from discreet.ledger import Ledger


def totals(page: Any) -> list[tuple[str, float]]:
    """The ways to divide epsilon and their errors, as a reader sees them."""
    rows = page.locator("#advice-0 tbody tr").all()
    return [(row.locator("th").inner_text(), float(row.locator("td").inner_text().replace(",", ""))) for row in rows]


@pytest.fixture(scope="module")
def served(copied: Any, serve: Any) -> Any:
    return serve(copied())


@pytest.fixture(scope="module")
def state(served: Any, chromium: Any) -> Any:
    context = chromium.new_context()
    context.new_page().goto(served.link)
    kept = context.storage_state()
    context.close()
    return kept


def test_advice_is_shown_and_spends_nothing(served: Any, state: Any, visit: Any, tmp_path: Path) -> None:
    shown = visit(storage_state=state)
    page = shown.page
    page.goto(f"{served.base}/plans/new?source=jobs&by=place&by=sector")
    assert not page.is_visible("text=Advise")
    page.select_option("#release-0-kind", "counts")
    page.fill("#title", "Jobs twice")
    page.fill("#release-0-name", "both")
    page.fill("#release-0-tables", "place, sector\nplace")
    page.fill("#release-0-epsilon", "2")
    for button, measure in (("least error in jobs", "absolute"), ("least relative error", "relative")):
        page.click(f"button:has-text('{button}')")
        page.wait_for_selector(f"#advice-0 >> text=least {measure} error")
        page.locator("#advice-0").screenshot(path=tmp_path / f"{measure}.png")
        ways = totals(page)
        errors = [error for _, error in ways]
        assert len(ways) > 1 and errors[:-1] == sorted(errors[:-1]) and errors[0] == min(errors)
        assert ways[-1][0] == "Equal shares for all"
        assert page.input_value("#release-0-epsilon") == "2"
        assert page.input_value("#release-0-tables").split() == ["place,", "sector", "place"]
    assert not (served.folder / "ledger.db").exists() or not Ledger.open(served.folder / "ledger.db").entries()
    assert not shown.complaints


def test_the_report_of_a_release_draws_figure_1(served: Any, state: Any, visit: Any, tmp_path: Path) -> None:
    shown = visit(storage_state=state)
    page = shown.page
    page.goto(f"{served.base}/plans/new?source=jobs&by=sector&by=ownership")
    page.fill("#title", "Jobs by sector")
    page.fill("#release-0-name", "sectors")
    page.fill("#release-0-epsilon", "2")
    page.click("text=Send to review")
    page.wait_for_selector("#promise")
    page.click("text=Approve")
    page.click("text=Run it")
    page.wait_for_selector("text=What came out")
    (report,) = (served.folder / "releases").rglob("report.html")
    page.goto(report.as_uri())
    figure = page.locator("figure:has(figcaption:has-text('Figure 1'))").first
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    figure.screenshot(path=tmp_path / "figure.png")
    lines = figure.locator("svg path[stroke], svg polyline").count()
    assert box["width"] > 300 and box["height"] > 100 and lines >= 3
    # Of every size that is shown: known before, typically after, and at most; nobody learns more than is permitted.
    (table,) = (each for each in page.locator("table").all() if "Typically after sectors" in each.text_content())
    rows = table.locator("tbody tr").all()
    shares = [[float(cell.rstrip("%")) for cell in row.locator("td").all_text_contents()] for row in rows]
    assert shares and all(each[0] <= each[-1] <= 100 and max(each) == each[-1] for each in shares)
    assert not shown.complaints
