"""What the theme leaves out for readers with a keyboard or a screen reader, put in when the site is built."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

CHANGES = (
    (r'<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    (r'<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Pages">'),
    (r'<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer'),
    (r'<th class="head"><p></p></th>', "<td></td>"),
    (r"<pre>", '<pre tabindex="0">'),
    (r'<div class="table-wrapper', '<div tabindex="0" role="group" aria-label="table" class="table-wrapper'),
)
"""What scrolls can be reached by keyboard; headings have a rank; landmarks of a kind have names."""


def mend(text: str) -> str:
    for before, after in CHANGES:
        text = re.sub(before, after, text)
    return text if "<h1" in text else re.sub(r"(<article[^>]*>)", r"\1<h1>Search</h1>", text, count=1)


def mend_site(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            page.write_text(mend(text), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", mend_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
