"""Every code block and every command of the README and the docs runs, page by page, and prints what the page shows.

`tests/pages.py` says how a page is written. Commands inside a sentence or a table are held to the command tree.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from discreet.cli.app import app


def beside(module: str) -> Any:
    """A module of the folder of tests."""
    spec = importlib.util.spec_from_file_location(module, Path(__file__).parents[1] / f"{module}.py")
    assert spec and spec.loader
    found = sys.modules[module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


pages = beside("pages")
notebooks = beside("notebooks")
PAGES, BLOCK, ROOT, name = pages.PAGES, pages.BLOCK, pages.ROOT, pages.name
TUTORIALS, LONG = notebooks.TUTORIALS, {"auditor", "labour-market", "planner"}


def runs(page: Path) -> Iterator[Any]:
    """The page's parameter sets: what the daily run does, and the whole if some of it is long."""
    found = pages.runnable(page)
    long = next((i for i, b in enumerate(found) if b.note == "long"), len(found))
    if found[:long]:
        yield pytest.param(
            page, found[:long], id=name(page), marks=[] if page.name == "README.md" else pytest.mark.walk
        )
    if found[long:]:
        yield pytest.param(page, found, id=f"{name(page)}-whole", marks=pytest.mark.full_size)


@pytest.mark.parametrize(("page", "found"), [case for page in PAGES for case in runs(page)])
def test_page_runs(page: Path, found: list[Any], tmp_path: Path) -> None:
    """A tutorial runs a second time where it has run before, now as its notebook; the long ones in `make test-full`."""
    run_page(page, found, tmp_path, again=page in TUTORIALS and page.stem not in LONG)


@pytest.mark.full_size
@pytest.mark.parametrize("page", [page for page in TUTORIALS if page.stem in LONG], ids=name)
def test_a_long_tutorial_runs_again_as_its_notebook(page: Path, tmp_path: Path) -> None:
    run_page(page, pages.runnable(page), tmp_path, again=True)


def run_page(page: Path, found: list[Any], folder: Path, *, again: bool) -> None:
    with pages.beside_examples(folder):
        differences = pages.run(page, found)
        if again:
            written = notebooks.path(page)
            differences += pages.run(written, notebooks.blocks(written), again=True)
    assert not differences, "\n".join(map(str, differences))


@pytest.mark.parametrize("page", TUTORIALS, ids=name)
def test_tutorials_show_outputs_and_say_what_to_conclude(page: Path) -> None:
    found = pages.runnable(page)
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.kind == "python" and "print(" in block.text:
            assert after and after.kind == pages.OUTPUT, f"{name(page)}:{block.line} prints, and shows no output"
        elif block.kind == "console":
            assert any(shown for _, shown, _ in pages.commands(block)), f"{name(page)}:{block.line} shows no output"
    assert "\n## What to conclude\n" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", TUTORIALS, ids=name)
def test_notebooks_are_made_of_the_tutorials(page: Path) -> None:
    assert notebooks.path(page).read_text(encoding="utf-8") == notebooks.notebook(page), "`make pages` writes it"


def test_an_output_that_differs_is_found(tmp_path: Path) -> None:
    page = ROOT / "docs" / "page.md"
    kept = [pages.Block("python", "print(1 + 1, 'a  b')\n", 1), pages.Block("output", "2 a ...\n", 4)]
    told = pages.Block("console", "$ echo one; echo two\none\n...\n$ exit 3  # exit 3\n", 7)
    with pages.beside_examples(tmp_path):
        assert pages.run(page, [*kept, told]) == []
        for wrong in (pages.Block("output", "3 a b\n", 4), pages.Block("console", "$ echo one\ntwo\n", 7)):
            assert len(pages.run(page, [*kept, wrong])) == 1
        with pytest.raises(AssertionError, match="exit 4"):
            pages.run(page, [pages.Block("console", "$ exit 4\n", 1)])


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_are_of_a_known_kind(page: Path) -> None:
    for block in pages.blocks(page):
        known = block.kind in pages.RUN | pages.SHOWN | {pages.OUTPUT} or block.kind.startswith("{")
        assert known, f"{name(page)}:{block.line}: ```{block.kind} is neither run nor known as not to be run"


def tree(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, group
    for word, command in getattr(group, "commands", {}).items():
        yield from tree(command, (*path, word))


TREE = dict(tree(typer.main.get_command(app)))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_in_sentences_exist(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for written in re.findall(r"`discreet ((?!ledger, format)[^`]+)`", text):
        words = shlex.split(written.replace("\\|", "|"), comments=True)
        path: tuple[str, ...] = ()
        while len(path) < len(words) and (*path, words[len(path)]) in TREE:
            path = (*path, words[len(path)])
        assert path or words[0].startswith("-"), f"{name(page)}: there is no `discreet {written}`"
        options = {option for parameter in TREE[path].params for option in parameter.opts}
        asked = {word for word in words[len(path) :] if word.startswith("--")}
        unknown = asked - options - {"--help", "--install-completion", "--version"}
        assert not unknown, f"{name(page)}: `discreet {written}` has no {unknown}"
