"""Every page in both sizes and themes: axe finds nothing, nothing is wider than the screen, the console is silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

PAGES = (
    *(
        "/",
        "/data",
        "/data/new",
        "/plans",
        "/plans/new?source=jobs",
        "/plans/new?source=flows",
        "/utility",
        "/review",
        "/runs",
    ),
    *("/releases", "/ledger", "/changes", "/models", "/log", "/people", "/login"),
)
WIDER = (
    "() => { const d = document.documentElement; return [...document.querySelectorAll('body *')]"
    ".filter(e => !e.closest('.scroll, pre, .skip, .side nav, .hidden, .events')"
    " && e.getBoundingClientRect().right > d.clientWidth + 1).map(e => e.tagName + '.' + e.className); }"
)


CONTRASTS = "{resultTypes: ['violations'], runOnly: ['color-contrast']}"
FEWER = "document.querySelectorAll('.ranked tbody tr:nth-child(n+20)').forEach(row => row.remove())"


@pytest.fixture(scope="module")
def filled(copied: Any, password: str) -> Path:
    """The desk of the demonstration, with people, a run that failed and one that was interrupted."""
    from discreet.desk import example
    from discreet.desk.accounts import add_account, disable_account, local_name
    from discreet.desk.audit_log import now
    from discreet.desk.desk import Desk
    from discreet.desk.store import DeskStore, runs

    desk = Desk.open(copied())
    example.furnish(desk)
    store, me = DeskStore(desk.database), local_name()
    for name, role in (("anna", "analyst"), ("ben", "reviewer")):
        add_account(store, name, role, password, by=me)
    disable_account(store, "ben", by=me)
    plan = next((desk.releases).glob("*/report.html")).parent.name
    with store.writing() as connection:
        for name, event in (
            ("run-a", '{"at":"2026-01-01T10:00:00","kind":"failed","text":"It failed."}\n'),
            ("run-b", ""),
        ):
            connection.execute(runs.insert().values(name=name, plan=plan, by=me, at=now()))
            (desk.runs / f"{name}.jsonl").write_text(event)
    store.close()
    return desk.folder


@pytest.fixture(scope="module")
def served(filled: Path, serve: Any) -> Any:
    return serve(filled)


@pytest.fixture(scope="module")
def state(served: Any, chromium: Any) -> Any:
    """What a browser keeps after the link was opened; the link opens once."""
    context = chromium.new_context()
    context.new_page().goto(served.link)
    kept = context.storage_state()
    context.close()
    return kept


@pytest.fixture(scope="module")
def addresses(filled: Path) -> list[str]:
    plan, release = next((filled / "releases").glob("*/*/release.json")).parent.parts[-2:]
    draft = next(path.stem for path in (filled / "plans").glob("job-creation-*.toml"))
    waiting = next(path.stem for path in (filled / "plans").glob("*-ownership-*.toml"))
    found = [f"/releases/{plan}/{release}", f"/plans/{draft}", f"/review/{waiting}", f"/review/{plan}"]
    return [*PAGES, *found, f"/papers/{plan}/report", "/runs/run-a", "/runs/run-b"]


def test_the_demonstration_opens_with_work(filled: Path, served: Any, state: Any, visit: Any) -> None:
    """A finished release, a plan that waits and a picture of risk and utility; a second time adds nothing."""
    from discreet.desk import example
    from discreet.desk.desk import Desk

    before = sorted((filled / "plans").iterdir())
    example.furnish(Desk.open(filled))
    assert sorted((filled / "plans").iterdir()) == before
    shown = visit(served.base, storage_state=state)
    page = shown.page
    page.wait_for_selector("[data-part] figure svg[role=img]")
    told = page.inner_text("main")
    assert all(word in told for word in ("Jobs by place and ownership", "jobs-by-sector", "Job creation by industry"))
    page.click("text=Jobs by place and ownership")
    assert page.locator("button:text-is('Approve')").count() == 1
    assert not shown.complaints


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.full_size)])
def test_every_page(every: int, addresses: list[str], served: Any, state: Any, visit: Any) -> None:
    """Pages share frame and stylesheet: in the daily run axe sees every second page, and every fourth in the dark.

    There a page becomes narrow and dark where it stands; in the long run it is also opened so.
    """
    import axe_playwright_python

    axe = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text(encoding="utf-8")
    # Every rule once; the theme changes contrasts alone.
    wide, narrow = (1280, "light", "{resultTypes: ['violations']}"), (390, "dark", CONTRASTS)
    for looks in ([wide, narrow],) if every > 1 else ([wide, narrow], [narrow]):
        shown = visit(storage_state=state)
        page = shown.page
        for number, address in enumerate(addresses):
            _become(page, *looks[0][:2])
            answer = page.goto(f"{served.base}{address}")
            assert answer.status == 200, address
            assert page.locator("h1").count() == 1
            for width, theme, rules in looks:
                _become(page, width, theme)
                assert page.evaluate(WIDER) == [], (address, width)
                if number % (every if theme == "dark" else (every + 1) // 2):
                    continue
                page.evaluate(FEWER)
                page.evaluate(axe)
                found = page.evaluate(f"() => axe.run({rules})")["violations"]
                assert [(fault["id"], fault["nodes"][0]["html"]) for fault in found] == [], (address, width, theme)
        assert shown.complaints == []
    assert page.goto(f"{served.base}/nothing").status == 404
    assert "The desk has no such page" in page.inner_text("[role=alert]")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"


def _become(page: Any, width: int, theme: str) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=theme)
