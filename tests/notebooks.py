"""Notebooks of the tutorials: the same words, cells and outputs, in `examples/`. `make pages` writes them.

A sentence of a tutorial becomes a cell of text, a `python` block a cell of code with its output, and a command a line
that begins with `!`. The tests run the cells, and hold each notebook to its tutorial.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pages

TUTORIALS = sorted((pages.ROOT / "docs" / "tutorials").glob("*.md"))
EXAMPLES = pages.ROOT / "examples"
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
ITSELF = re.compile(r"^This page takes .*?\n\n", re.MULTILINE | re.DOTALL)


def path(tutorial: Path) -> Path:
    return EXAMPLES / f"{tutorial.stem}.ipynb"


def notebook(tutorial: Path) -> str:
    """The notebook of a tutorial, as text."""
    found = list(cells(tutorial))
    for number, cell in enumerate(found):
        cell["id"] = f"{tutorial.stem}-{number}"
    content = {"cells": found, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def cells(tutorial: Path) -> Iterator[dict[str, Any]]:
    text, end = tutorial.read_text(encoding="utf-8"), 0
    last: dict[str, Any] | None = None
    for block in pages.BLOCK.finditer(text):
        if words := from_examples(tutorial, ITSELF.sub("", text[end : block.start()])).strip():
            yield {"cell_type": "markdown", "metadata": {}, "source": lines(words)}
        end = block.end()
        if block["kind"] == pages.OUTPUT:
            assert last is not None, f"{tutorial.name} shows an output before any code"
            last["outputs"] = printed(block["text"])
        elif block["kind"] == "python":
            yield (last := code(block["text"]))
        else:
            for command, shown, _ in pages.commands(pages.Block("console", block["text"], 0)):
                yield code(f"!{command}", shown)
    yield {"cell_type": "markdown", "metadata": {}, "source": lines(from_examples(tutorial, text[end:]).strip())}


def code(source: str, shown: str = "") -> dict[str, Any]:
    outputs = printed(shown) if shown else []
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": outputs,
        "source": lines(source.strip()),
    }


def printed(text: str) -> list[dict[str, Any]]:
    return [{"name": "stdout", "output_type": "stream", "text": lines(text)}]


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def from_examples(tutorial: Path, text: str) -> str:
    """The words with their links as they are from the folder of examples."""
    return re.sub(
        r"\]\((?!#|[a-z]+:)([^)#]+)",
        lambda m: f"]({Path(os.path.relpath((tutorial.parent / m[1]).resolve(), EXAMPLES)).as_posix()}",
        text,
    )


def blocks(written: Path) -> Iterator[pages.Block]:
    """A notebook's cells of code as the blocks of a page."""
    for number, cell in enumerate(json.loads(written.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            shown = "".join("".join(output["text"]) for output in cell["outputs"])
            if source.startswith("!"):
                yield pages.Block("console", f"$ {source[1:]}\n{shown}\n", number)
            else:
                yield pages.Block("python", source, number)
                if shown:
                    yield pages.Block(pages.OUTPUT, shown, number)


def write() -> None:
    for tutorial in TUTORIALS:
        path(tutorial).write_text(notebook(tutorial), encoding="utf-8")
