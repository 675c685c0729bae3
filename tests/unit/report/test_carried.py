"""The list of published files that a report carries: read back as it was, and never guessed."""

from __future__ import annotations

from pathlib import Path

from discreet.pages.carried import published_files
from discreet.pages.page import Page, Prose
from discreet.plan.bundle import set_aside

FILES = {'odd/<name> & "more".csv': "a" * 64, "b/table.csv": "b" * 64}


def test_a_page_carries_its_files_and_nobody_reads_its_words() -> None:
    page = Page("A report", [Prose(f'<meta name="discreet-published" content="{{}}"> of {"c" * 64}')], published=FILES)
    assert published_files(page.html()) == FILES
    assert published_files(Page("Another", [Prose("Nothing.")]).html()) is None
    assert published_files('<meta name="discreet-published" content="[1]">') is None
    assert published_files('<meta name="discreet-published" content="{">') is None


def test_a_report_that_carries_no_list_is_kept(tmp_path: Path) -> None:
    """As those of earlier versions are: it may be about releases that the new one does not have."""
    report = tmp_path / "report.html"
    report.write_text(Page("Of an earlier version", [Prose("Nothing.")]).html())
    before = report.read_bytes()
    set_aside(tmp_path, {})
    (kept,) = tmp_path.iterdir()
    assert kept.name != "report.html" and kept.read_bytes() == before
