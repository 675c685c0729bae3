"""The demo's report in a real browser: no network, no error, nothing wider than the screen, every part named."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import sync_playwright

from discreet.demo import DemoResult

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr --v=0"
)
NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND"
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def report(demonstrated: DemoResult) -> Path:
    return demonstrated.folder / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        yield browser
        browser.close()


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        arguments = [str(CHROMIUM), *QUIET.split(), NO_NETWORK, profile, *options, page.as_uri()]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=240, check=True)

    return run


@in_browser
def test_opens_without_a_network_and_without_errors(browse, report: Path) -> None:
    shown = browse(report, "--dump-dom")
    assert "CONSOLE" not in shown.stderr
    assert "<h1>Demo: private counts of jobs</h1>" in shown.stdout
    assert shown.stdout.count('role="img"') == report.read_text().count('role="img"') == 4
    assert shown.stdout.count('type="search"') == 2, "the script that its hash allows did not run"


@in_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_fits_the_screen(browse, report: Path, tmp_path: Path, width: int) -> None:
    """Only regions that scroll by themselves may be wider than the page."""
    inner = re.sub(r"<meta http-equiv=[^>]*>", "", report.read_text())
    probe = (
        "<script>const d = document.documentElement; const wide = [...document.querySelectorAll('body *')]"
        ".filter(e => !e.closest('.scroll, pre, .skip, details') && e.getBoundingClientRect().right > d.clientWidth)"
        ".map(e => e.tagName).join(); parent.document.title = d.scrollWidth + ' of ' + d.clientWidth + ';' + wide;"
        "</script></body>"
    )
    inner = inner.replace("</body>", probe).replace("&", "&amp;").replace('"', "&quot;")
    frame = tmp_path / "frame.html"
    frame.write_text(f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{inner}"></iframe>')
    title = re.search(r"<title>(\d+) of (\d+);(.*?)</title>", browse(frame, "--dump-dom").stdout)
    assert title is not None
    assert (int(title[1]), int(title[2]), title[3]) == (width, width, "")


@in_browser
def test_takes_a_picture(browse, report: Path, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    browse(report, f"--screenshot={picture}", "--window-size=900,1400")
    header = picture.read_bytes()[:24]
    assert struct.unpack(">II", header[16:24]) == (900, 1400)
    assert picture.stat().st_size > 40_000


OTHER = pytest.mark.full_size


@in_browser
@pytest.mark.parametrize(
    ("width", "scheme"),
    [(1280, "light"), (390, "dark"), pytest.param(1280, "dark", marks=OTHER), pytest.param(390, "light", marks=OTHER)],
)
def test_axe_finds_nothing(browser: Any, report: Path, scheme: str, width: int) -> None:
    """The rules of axe-core, and that they would find a fault: a picture without words, put in afterwards.

    Of long tables some rows of each look stay: they are all alike, and axe takes long.
    """
    axe = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text()
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, bypass_csp=True
    )
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(report.as_uri())
    for folded in page.locator("details").all():
        folded.locator("summary").click()
    page.evaluate("document.querySelectorAll('tbody tr:nth-child(n+20):not(.faint)').forEach(row => row.remove())")
    page.evaluate("document.querySelectorAll('tbody tr:nth-child(n+30)').forEach(row => row.remove())")
    page.evaluate(axe)
    found = page.evaluate("axe.run()")
    page.evaluate("document.querySelector('main').append(new Image())")
    broken = page.evaluate("axe.run({runOnly: ['image-alt']})")
    context.close()
    assert [(fault["id"], fault["nodes"][0]["target"]) for fault in found["violations"]] == []
    assert len(found["passes"]) > 20
    assert said == []
    assert [fault["id"] for fault in broken["violations"]] == ["image-alt"]


@in_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_figure_that_scrolls_says_so(browser: Any, report: Path, width: int) -> None:
    """In words that also name the region for a screen reader; no shadow lies over a number, and tables are searched."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    found = page.evaluate(
        "[...document.querySelectorAll('figure > .scroll')].map(e => [e.scrollWidth > e.clientWidth, "
        "getComputedStyle(e.parentNode.querySelector('figcaption'), '::after').content.includes('sideways'), "
        "getComputedStyle(e).backgroundImage, e.tabIndex])"
    )
    named = page.get_by_role("region", name=re.compile("sideways")).count()
    ranked = page.evaluate("[...document.querySelectorAll('.ranked')].map(e => e.scrollWidth <= e.clientWidth)")
    page.locator("input[type=search]").first.fill("health PUBLIC")
    shown = page.evaluate(
        "[...document.querySelectorAll('.ranked tbody tr')].slice(0, 400).filter(e => e.offsetHeight)"
        ".map(e => e.innerText)"
    )
    context.close()
    assert found == [[width == 390, width == 390, "none", 0]] * 4
    assert named == (4 if width == 390 else 0)
    assert ranked == [True, True], "the statistics themselves fit the screen"
    assert shown and all("Health" in text and "public" in text for text in shown) and len(shown) < 100


class Outline(HTMLParser):
    """Headings, tables, pictures and ids of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.captions = self.tables = self.cells = self.scoped = 0
        self.described: list[bool] = []
        self.landmarks: list[str | None] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.ids += [named["id"]] if named.get("id") else []
        self.links += [named["href"]] if tag == "a" and named.get("href") else []
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self.tables += tag == "table"
        self.captions += tag == "caption"
        self.cells += tag == "th"
        self.scoped += tag == "th" and "scope" in named
        if tag in ("aside", "nav", "main"):
            self.landmarks.append(f"{tag} {named.get('aria-label')}")
        if tag == "svg" and named.get("aria-hidden") != "true":
            self.described.append(named.get("role") == "img" and bool(named.get("aria-labelledby")))


def test_structure_for_readers_who_cannot_see(report: Path) -> None:
    page = Outline()
    page.feed(report.read_text())
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False)), "a level is skipped"
    assert page.tables == page.captions > 10
    assert page.cells == page.scoped
    assert all(page.described)
    assert len(set(page.landmarks)) == len(page.landmarks), "two landmarks have one name"
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert '<html lang="en">' in report.read_text()
