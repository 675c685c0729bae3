"""README, tutorials and notebooks use no term of the glossary before it is explained or linked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
EVERYDAY = {"block", "check", "flag", "labels", "level", "part", "proof", "public", "scale", "shares", "strong", "weak"}
EVERYDAY |= {"bounds", "cell", "head", "horizon", "owner", "panel", "response", "seed", "source"}
"""Terms that are also common words; these pages use them as such, and link them where they are meant as terms."""
CODE = re.compile(r"^```.*?^```$|<!--.*?-->|`[^`\n]+`", re.DOTALL | re.MULTILINE)
EXPLAINED = re.compile(r"\[[^\]]*\]\([^)]*\)|\*\*[^*]+\*\*")
"""A link, or a word set in bold, which its sentence explains."""


def terms() -> list[str]:
    """The glossary's words: its headings of the third rank; one heading may have several."""
    headings = re.findall(r"^### (.+)$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    return [term for heading in headings for term in heading.split(", ")]


def unexplained(text: str) -> Iterator[str]:
    """Terms whose first use is neither in a link nor in bold. Headings, code and tables of commands are no prose."""
    prose = re.sub(r"^(#|\|).*$", "", CODE.sub("", text), flags=re.MULTILINE)
    for term in terms():
        if term in EVERYDAY:
            continue
        said = re.search(rf"(?<![\w-]){re.escape(term)}(?:s|d|es)?(?![\w-])", prose, re.IGNORECASE)
        if said and not any(m.start() <= said.start() < m.end() for m in EXPLAINED.finditer(prose)):
            yield f"{term}: ...{prose[max(0, said.start() - 40) : said.end() + 20]!r}"


def words(notebook: Path) -> str:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("page", [ROOT / "README.md", *TUTORIALS, *NOTEBOOKS], ids=lambda page: page.stem)
def test_no_term_is_used_before_it_is_explained(page: Path) -> None:
    text = words(page) if page.suffix == ".ipynb" else page.read_text(encoding="utf-8")
    assert list(unexplained(text)) == []


def test_a_term_that_is_not_explained_is_found() -> None:
    assert len(terms()) > 50 and set(terms()) >= EVERYDAY
    assert not list(
        unexplained("The [epsilon](glossary.md#epsilon) is small. Epsilon adds up. **Budgets** end. A budget.")
    )
    assert len(list(unexplained("Epsilon is small, see [epsilon](glossary.md#epsilon). Two ledgers."))) == 2
