"""The site builds without a warning, its links lead somewhere, and its pages are readable in both sizes and themes."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
WIDER = (
    "() => { const d = document.documentElement; return [...document.querySelectorAll('article *')]"
    ".filter(e => !e.closest('pre, .formula, .table-wrapper, .headerlink') && e.getBoundingClientRect().width"
    " && e.getBoundingClientRect().right > d.clientWidth + 1).map(e => e.outerHTML.slice(0, 120)); }"
)
pytestmark = [pytest.mark.xdist_group("site"), pytest.mark.full_size]  # the build takes 20 s; `.ci/run` has `make docs`


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` builds; a warning fails it."""
    out = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(out)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return out


class Anchors(HTMLParser):
    """Where a page can be entered, and where its links lead."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.sources: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        if tag == "a":
            self.links.append(given.get("href") or "")
        if tag in ("script", "link", "img"):
            self.sources.append(given.get("src") or given.get("href") or "")


def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    pages = {page: Anchors(page) for page in site.rglob("*.html")}
    assert len(pages) > 40
    broken = []
    for page, found in pages.items():
        for link in (*found.links, *found.sources):
            path, _, anchor = link.partition("#")
            if "://" in link or link.startswith(("mailto:", "data:")):
                continue
            to = (page.parent / path.partition("?")[0]).resolve() if path else page
            if not to.exists() or (anchor and to in pages and anchor not in pages[to].ids):
                broken.append(f"{page.relative_to(site)}: {link}")
        assert not [source for source in found.sources if "://" in source], "the site asks for nothing elsewhere"
    assert not broken, broken


def test_the_site_has_every_public_name(site: Path) -> None:
    spec = importlib.util.spec_from_file_location("public", DOCS / "public.py")
    assert spec and spec.loader
    public = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(public)
    ids = Anchors(site / "reference" / "python.html").ids
    names = {name for group in public.groups().values() for name in group}
    names |= {
        f"{name}.{member}"
        for name in names
        if isinstance(public.value(name), type)
        for member, _ in public.members(public.value(name))
    }
    assert not names - ids


def test_proofs_are_typeset(site: Path) -> None:
    for page in (site / "proofs").glob("*.html"):
        assert page.read_text(encoding="utf-8").count("<math>") > 5, page.name


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        yield opened
        opened.close()


def faults(browser: Any, site: Path, names: Iterator[str], *, width: int, theme: str) -> list[tuple[str, str, str]]:
    """What axe finds, what is wider than the screen, and what the console says, page by page."""
    import axe_playwright_python

    axe = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text(encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, offline=True)
    page, found = context.new_page(), []
    page.on("console", lambda message: found.append((page.url, "console", message.text)))
    page.on("pageerror", lambda error: found.append((page.url, "console", str(error))))
    for name in names:
        page.goto((site / f"{name}.html").as_uri())
        found += [(name, "wider", element) for element in page.evaluate(WIDER)]
        page.evaluate(axe)
        for fault in page.evaluate("axe.run({preload: false, resultTypes: ['violations']})")["violations"]:
            found += [(name, fault["id"], node["html"][:160]) for node in fault["nodes"]]
    context.close()
    return found


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_readable(browser: Any, site: Path, width: int, theme: str) -> None:
    names = sorted(page.relative_to(site).with_suffix("").as_posix() for page in site.rglob("*.html"))
    assert faults(browser, site, iter(names), width=width, theme=theme) == []


def test_a_fault_is_found(browser: Any, tmp_path: Path) -> None:
    page = "<title>t</title><article><img src=''><p style='width:2000px'>x</p></article>"
    (tmp_path / "page.html").write_text(page)
    found = {kind for _, kind, _ in faults(browser, tmp_path, iter(["page"]), width=390, theme="light")}
    assert {"wider", "image-alt"} <= found
