"""The site of a release in Chromium, from a disk and without a network: searched, sorted, paged, seen by axe."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.publication.imprint import Imprint
from discreet.publication.site import site
from discreet.words.errors import DataError
from faults_of import about
from publication_jobs import SECTORS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
OTHER = pytest.mark.full_size
LOOKS = [
    (1280, "light"),
    (390, "dark"),
    pytest.param(1280, "dark", marks=OTHER),
    pytest.param(390, "light", marks=OTHER),
]


@pytest.fixture(scope="module")
def made(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    imprint = Imprint(title="Jobs <2026> & pay", publisher="Agency", contact="statistics@agency.example")
    return site(released, tmp_path_factory.mktemp("site") / "site", imprint=imprint).folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"]
        )
        yield opened
        opened.close()


def opened(browser: Any, path: Path, *, width: int = 1280, scheme: str = "light") -> tuple[Any, list[str]]:
    """A page of the site, and everything that it said or asked the network for."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else said.append(request.url))
    page.goto(path.as_uri())
    if path.name != "index.html":
        page.wait_for_selector("html[data-loaded=all]", timeout=60_000)
    return page, said


@in_browser
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_pages_are_whole_in_two_sizes_and_themes(made: Path, browser: Any, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for name in ("index.html", "table-sexes.html"):
        page, said = opened(browser, made / name, width=width, scheme=scheme)
        assert axe.run(page).response["violations"] == []
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert said == []
        page.context.close()


@in_browser
def test_a_table_is_searched_filtered_sorted_and_paged(made: Path, browser: Any, released: Path) -> None:
    table = pq.read_table(released / "sexes" / "basic.parquet")
    page, said = opened(browser, made / "table-sexes.html")
    counts = sorted(table["count"].to_pylist(), reverse=True)
    number = lambda: [int(text.replace(",", "")) for text in page.locator("#explorer tbody td b").all_inner_texts()]  # noqa: E731
    assert number() == counts[:25], "the largest come first"
    page.get_by_role("button", name="Next").click()
    assert number() == counts[25:50]
    page.get_by_role("button", name="Last").click()
    assert number() == counts[50:]
    page.get_by_role("button", name=re.compile("^count( |$)")).click()
    assert number() == sorted(counts)[:25]
    page.get_by_role("searchbox").fill("c3 <script>")
    page.locator("#explorer tbody tr").nth(2).wait_for(state="detached")
    assert page.locator("#explorer tbody td").nth(1).inner_text() == SECTORS[1], "a category is text and never markup"
    page.get_by_role("searchbox").fill("")
    page.locator("select[data-column='2']").select_option(label="f")
    page.get_by_text("of 30").wait_for()
    assert said == []
    page.context.close()


def test_what_a_reader_must_know_is_there_without_a_script(made: Path) -> None:
    text = (made / "index.html").read_text()
    for words in (
        "Method and guarantee",
        "mostly noise",
        "What somebody can find out at most",
        "noise infusion",
        "at most",
    ):
        assert words in text
    assert "Jobs &lt;2026&gt; &amp; pay" in text
    assert "<script>alert" not in text and "<script" not in text
    assert (made / "downloads" / "structure.xml").is_file()
    for path in made.rglob("*"):
        if path.is_file():
            assert b"MARKED-CONFIDENTIAL" not in path.read_bytes()


def test_every_link_leads_to_a_file(made: Path) -> None:
    for page in made.glob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#]+)"', page.read_text()):
            assert link.startswith(("mailto:", "data:", "https:")) or (made / link).is_file(), link


def test_what_is_there_stays(made: Path, released: Path) -> None:
    with pytest.raises(DataError, check=about("out")):
        site(released, made)
    before = (made / "index.html").read_bytes()
    (made / "index.html").write_text("mine")
    try:
        with pytest.raises(DataError, check=about("out")):
            site(released, made, force=True)
    finally:
        (made / "index.html").write_bytes(before)


@in_browser
@pytest.mark.full_size
def test_three_hundred_thousand_rows_work_from_a_disk(released: Path, tmp_path: Path, browser: Any) -> None:
    folder = Path(shutil.copytree(released / "sexes", tmp_path / "large"))
    n, rng = 300_000, np.random.default_rng(1)
    count = rng.integers(0, 100_000, n)
    rows = {
        "county": [f"C{i // 60}" for i in range(n)],
        "sector": [f"sector {i // 2 % 30}" for i in range(n)],
        "sex": ["f", "m"] * (n // 2),
        "count": count,
        "lower": count - 5,
        "upper": count + 5,
        "quality": ["good"] * n,
    }
    for path in folder.glob("*.*"):
        if path.name != "release.json":
            path.unlink()
    pq.write_table(pa.table(rows), folder / "basic.parquet")
    told = json.loads((folder / "release.json").read_text())
    told["files"] = {"basic.parquet": sha256((folder / "basic.parquet").read_bytes()).hexdigest()}
    (folder / "release.json").write_text(json.dumps(told))
    made = site(folder, tmp_path / "site", formats=["parquet"]).folder
    page, said = opened(browser, made / "table-sexes.html")
    page.get_by_role("searchbox").fill("C4999 17")
    page.locator("#explorer tbody tr").nth(2).wait_for(state="detached", timeout=20_000)
    assert [int(x.replace(",", "")) for x in page.locator("#explorer tbody td b").all_inner_texts()] == sorted(
        (int(c) for i, c in enumerate(count) if i // 60 == 4999 and i // 2 % 30 == 17), reverse=True
    )
    assert said == []
    page.context.close()
