"""Every code block and every command of the README and the docs is run, page by page, in a folder of its own.

`python` blocks share one namespace; one with `>>>` shows its output and is held to it. In `console` blocks the lines
after `$` are commands, and `# exit 1` after one says how it ends. `<!-- long -->` before a block leaves it, and
what follows on that page, to `make test-full`; `<!-- not run: reason -->` is for what a test cannot do. Commands
inside a sentence or a table are held to the command tree.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from discreet.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- (?P<note>long|not run: [^>]+) -->\n+)?^(?P<fence>```+)(?P<kind>[^\n`]*)\n(?P<text>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)
RUN = {"python", "console", "sh"}
SHOWN = {"toml", "nginx", "text", "json", "r", "csv", "html", "sql", ""}
SECONDS = 300


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    line: int
    note: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["kind"], m["text"], text.count("\n", 0, m.start("fence")) + 1, m["note"] or "")
        for m in BLOCK.finditer(text)
    ]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def runs(page: Path) -> Iterator[Any]:
    """The page's parameter sets: what the daily run does, and the whole if some of it is long."""
    found = [b for b in blocks(page) if b.kind in RUN and not b.note.startswith("not run")]
    long = next((i for i, b in enumerate(found) if b.note == "long"), len(found))
    if found[:long]:
        yield pytest.param(page, found[:long], id=name(page))
    if found[long:]:
        yield pytest.param(page, found, id=f"{name(page)}-whole", marks=pytest.mark.full_size)


@pytest.mark.parametrize(("page", "found"), [case for page in PAGES for case in runs(page)])
def test_page_runs(page: Path, found: list[Block], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {"__name__": "__page__"}
    for block in found:
        where = f"{name(page)}:{block.line}"
        if block.kind != "python":
            for command in commands(block):
                shell(command, where)
        elif ">>>" in block.text:
            example = doctest.DocTestParser().get_doctest(block.text, names, where, str(page), block.line)
            out: list[str] = []
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=out.append, clear_globs=False)
            names.update(example.globs)
            assert not out, "".join(out)
        else:
            exec(compile(block.text, where, "exec", dont_inherit=True), names)


def commands(block: Block) -> Iterator[str]:
    """The commands of a block: lines after `$` where there are any, all lines otherwise; `\\` continues a line."""
    lines = block.text.replace("\\\n", " ").splitlines()
    shown = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    yield from shown or [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def shell(command: str, where: str) -> None:
    if command.startswith("make "):
        target = command.split()[1]
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"{where}: no target {target}"
        return
    expected = int(m[1]) if (m := re.search(r"# exit (\d+)", command)) else 0
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == expected, f"{where}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_are_of_a_known_kind(page: Path) -> None:
    for block in blocks(page):
        known = block.kind in RUN | SHOWN or block.kind.startswith("{")
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


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", link):
            assert (page.parent / link).exists(), f"{name(page)}: {link}"
