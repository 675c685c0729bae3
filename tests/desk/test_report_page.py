"""The report page in a real browser: it renders, asks for nothing and reports no error."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.pages import charts
from discreet.pages.page import Figure, Heading, Note, Page, Prose, Table

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr --v=0"
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        arguments = [str(CHROMIUM), *QUIET.split(), profile, *options, page.as_uri()]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=True)

    return run


@pytest.fixture
def report(tmp_path: Path) -> Path:
    rows = [{"epsilon": e, "error": k / e, "who": who} for who, k in (("ours", 1), ("theirs", 3)) for e in (1, 2, 4)]
    page = Page(
        "Job counts under employer-employee privacy",
        [
            Heading("Result"),
            Note("result", "The error halves."),
            Prose("A paragraph with `code` and a long word: " + "establishment" * 12),
            Table(
                ["mechanism", *(f"column {i}" for i in range(12))],
                [["polynomial", *range(100_000, 100_012)]],
                "A table wider than a telephone",
            ),
            Figure(charts.lines(rows, "epsilon", "error", "who"), "Error falls with epsilon.", "Error by epsilon"),
        ],
    )
    return page.write(tmp_path / "report.html")


def test_renders_without_an_error(browse: Callable[..., subprocess.CompletedProcess[str]], report: Path) -> None:
    shown = browse(report, "--dump-dom")
    assert "CONSOLE" not in shown.stderr
    assert "<h1>Job counts under employer-employee privacy</h1>" in shown.stdout
    assert shown.stdout.count("<svg") == 1
    assert shown.stdout.count("<tbody>") == 2


def test_a_console_error_would_be_seen(browse: Callable[..., subprocess.CompletedProcess[str]], report: Path) -> None:
    """The check above can fail: the page's own policy forbids a script, and the browser says so."""
    page = report.read_text().replace("</main>", "<script>document.title = 'ran'</script></main>")
    report.write_text(page)
    shown = browse(report, "--dump-dom")
    assert "CONSOLE" in shown.stderr
    assert "Content Security Policy" in shown.stderr
    assert "<title>ran</title>" not in shown.stdout


@pytest.mark.full_size  # daily of a whole report, in test_release_report.py
@pytest.mark.parametrize("width", [1280, 390])
def test_fits_the_screen(browse: Callable[..., subprocess.CompletedProcess[str]], report: Path, width: int) -> None:
    """A frame of the given width; only the marked regions may be wider than the page."""
    frame = report.with_name("frame.html")
    inner = re.sub(r"<meta http-equiv=[^>]*>", "", report.read_text())
    probe = (
        "<script>const d = document.documentElement; d.dataset.wide = [...document.querySelectorAll('body *')]"
        ".filter(e => !e.closest('.scroll, pre, .skip, details') && e.getBoundingClientRect().right > d.clientWidth)"
        ".map(e => e.tagName).join(); d.dataset.scroll = d.scrollWidth + ' of ' + d.clientWidth;"
        "parent.document.title = d.dataset.scroll + ';' + d.dataset.wide;</script></body>"
    )
    inner = inner.replace("</body>", probe).replace("&", "&amp;").replace('"', "&quot;")
    frame.write_text(f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{inner}"></iframe>')
    shown = browse(frame, "--dump-dom", "--window-size=1600,1000")
    title = re.search(r"<title>(\d+) of (\d+);(.*?)</title>", shown.stdout)
    assert title is not None, shown.stderr[-2000:]
    assert int(title[1]) == int(title[2]) == width
    assert title[3] == ""


@pytest.mark.full_size  # daily of a whole report, in test_release_report.py
def test_takes_a_picture(browse: Callable[..., subprocess.CompletedProcess[str]], report: Path, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    browse(report, f"--screenshot={picture}", "--window-size=800,600")
    header = picture.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    assert struct.unpack(">II", header[16:24]) == (800, 600)
    assert picture.stat().st_size > 10_000  # an empty page of this size is about 3 kB
