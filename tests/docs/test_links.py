"""Links of the README, the docs and the other pages of the root lead to a file, and to a heading or a term in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))),
    *sorted((ROOT / "examples").glob("*.ipynb")),
]
CODE = re.compile(r"```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(\s*([^)\s]+)[^)]*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What a link to a page may end in after #: its headings as GitHub and MyST spell them, and named places."""
    text = re.sub(r"```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        found.add(slug if slug not in found else f"{slug}-1")
    for name, other in re.findall(r"^\(([\w-]+)\)=$|<a (?:id|name)=\"([\w-]+)\"", text, re.MULTILINE):
        found.add(name or other)
    return found


def broken(page: Path, text: str) -> list[str]:
    """The links that lead nowhere. Addresses of the web are left alone: there is no network here."""
    faults = []
    for first, second in LINK.findall(CODE.sub("", text)):
        link = first or second
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        to = (page.parent / path).resolve() if path else page
        if not to.exists() or not to.is_relative_to(ROOT):
            faults.append(f"{link}: no such file")
        elif anchor and (to.suffix != ".md" or anchor not in anchors(to)):
            faults.append(f"{link}: no such heading")
    return faults


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        text = "\n".join(
            "".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"
        )
    assert broken(page, text) == []


def test_every_page_of_the_docs_is_in_the_table_of_contents() -> None:
    """`make docs` warns of one that is not, and fails."""
    docs = ROOT / "docs"
    listed = re.findall(r"^(?:[a-z-]+/)[a-z*-]+$", (docs / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    found = {page for entry in listed for page in docs.glob(f"{entry}.md")}
    assert found == {*docs.rglob("*.md")} - {docs / "index.md"}


def test_a_broken_link_is_found() -> None:
    page = ROOT / "README.md"
    text = "[a](docs/none.md) [b](docs/index.md#none) [c](#start) [d](#none) `[e](none)` [f](docs/index.md#discreet)"
    assert broken(page, text) == [
        "docs/none.md: no such file",
        "docs/index.md#none: no such heading",
        "#none: no such heading",
    ]
