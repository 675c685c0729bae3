"""Pages that run: the blocks of the README and of docs/, and the outputs that they show.

`python` blocks of a page share one namespace. An `output` block right after one holds what it prints; one with `>>>`
shows its output itself. In `console` blocks the lines after `$` are commands, the lines under one are what it prints,
and `# exit 1` after one says how it ends. `...` stands for anything. `<!-- long -->` before a block leaves it, and what
follows on that page, to `make test-full`; `<!-- not run: reason -->` is for what a test cannot do.

`make pages` runs every page that shows outputs and writes those that differ, with `...` for hashes and times. Read
them, and put `...` where else every run differs: noise that has no seed.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- (?P<note>long|not run: [^>]+) -->\n+)?^(?P<fence>```+)(?P<kind>[^\n`]*)\n(?P<text>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)
RUN = {"python", "console", "sh"}
SHOWN = {"toml", "nginx", "text", "json", "r", "csv", "html", "sql", ""}
OUTPUT = "output"
SECONDS = 300
WIDTH = 110  # of a line of output
PASSING = re.compile(r"\b[0-9a-f]{64}\b|\b\d{4}-\d\d-\d\d \d\d:\d\d\b")  # hashes, times
SETTLED = ("discreet audit ", "discreet changes compare ", "discreet demo ", "discreet ledger ", "discreet verify ")
"""Commands that write nothing, or whose second run has tests of its own: a second run of a page leaves them out."""
COLUMNS = "100"  # a page's width; tables of the command fold in it
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.DONT_ACCEPT_BLANKLINE


@dataclass(frozen=True)
class Block:
    """One fenced block: its kind, its text, where it stands (line, and the span of its text) and the note before it."""

    kind: str
    text: str
    line: int
    note: str = ""
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Difference:
    """An output that is not what the page shows, and the part of the page that shows it."""

    where: str
    shown: str
    printed: str
    span: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.where}: the page shows\n{self.shown}\nbut this is printed (see `make pages`)\n{self.printed}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["kind"], m["text"], text.count("\n", 0, m.start("fence")) + 1, m["note"] or "", m.span("text"))
        for m in BLOCK.finditer(text)
    ]


def runnable(page: Path) -> list[Block]:
    """The blocks that are run or compared."""
    return [b for b in blocks(page) if b.kind in RUN | {OUTPUT} and not b.note.startswith("not run")]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run(page: Path, found: Iterable[Block], *, again: bool = False) -> list[Difference]:
    """Run the blocks in the present folder, `again` where they ran before; the outputs that differ.

    An error, or another exit code, is raised.
    """
    names: dict[str, Any] = {"__name__": "__page__"}
    differences, printed = [], ""
    for block in found:
        where = f"{name(page)}:{block.line}"
        if block.kind == OUTPUT:
            differences += differ(where, block.text, printed, block.span)
        elif block.kind != "python":
            for command, shown, span in commands(block):
                if again and command.startswith(SETTLED):
                    continue
                said = shell(command, where)
                differences += differ(where, shown, said, span) if shown else []
        elif ">>>" in block.text:
            example = doctest.DocTestParser().get_doctest(block.text, names, where, str(page), block.line)
            out: list[str] = []
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=out.append, clear_globs=False)
            names.update(example.globs)
            if out:
                raise AssertionError("".join(out))
        else:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(compile(block.text, where, "exec", dont_inherit=True), names)
            printed = said.getvalue()
    return differences


def differ(where: str, shown: str, printed: str, span: tuple[int, int]) -> list[Difference]:
    printed = "".join(f"{line}\n" for long in printed.strip("\n").splitlines() for line in folded(long.rstrip()))
    same = doctest.OutputChecker().check_output(shown, printed, LIKE)
    return [] if same else [Difference(where, shown, printed, span)]


def folded(line: str) -> list[str]:
    """A long sentence in several lines; tables and frames, which have runs of spaces or rules, as they are."""
    if len(line) <= WIDTH or "  " in line.strip() or "│" in line:
        return [line]
    return textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def commands(block: Block) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """A block's commands, each with the output under it: lines after `$`, or, where there are none, all lines."""
    if "$ " not in block.text:
        yield from ((line, "", (0, 0)) for line in block.text.splitlines() if line.strip() and line.lstrip()[0] != "#")
        return
    for m in re.finditer(r"^\$ (?P<command>(?:.*\\\n)*.*)\n(?P<shown>(?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        start = block.span[0]
        span = (start + m.start("shown"), start + m.end("shown"))
        yield m["command"].replace("\\\n", " "), m["shown"].strip("\n"), span


def shell(command: str, where: str) -> str:
    """What a command prints. Targets of the Makefile are only looked up."""
    if command.startswith("make "):
        target = command.split()[1]
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"{where}: no target {target}"
        return ""
    expected = int(m[1]) if (m := re.search(r"# exit (\d+)", command)) else 0
    plain = re.fullmatch(r"discreet [^|&;<>$`]*", re.sub(r'"[^"$`]*"', "", command))
    code, out, err = within(command) if plain else without(command)
    assert code == expected, f"{where}: {command}\n{out[-2000:]}\n{err[-2000:]}"
    return out


LOOK = {"COLUMNS": COLUMNS, "NO_COLOR": "1", "TERM": "dumb"}


def within(command: str) -> tuple[int, str, str]:
    """Exit code and outputs of our own command, in this process: starting one takes longer than most commands."""
    from discreet.cli import main

    kept, argv = dict(os.environ), sys.argv
    out, err = io.StringIO(), io.StringIO()
    os.environ.update(LOOK)
    sys.argv = shlex.split(command, comments=True)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = argv
        os.environ.clear()
        os.environ.update(kept)
    return code, out.getvalue(), err.getvalue()


def without(command: str) -> tuple[int, str, str]:
    """The same of a line for the shell."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, **LOOK, "PATH": path}
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=False, env=env
    )
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def beside_examples(folder: Path) -> Iterator[None]:
    """A folder to run pages in: the present one, on the path of modules, with the examples."""
    shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    before, path = Path.cwd(), list(sys.path)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = path


def write(page: Path) -> bool:
    """Put what is printed in place of the outputs that differ; whether any did."""
    with tempfile.TemporaryDirectory() as folder, beside_examples(Path(folder)):
        found = run(page, runnable(page))
    text = page.read_text(encoding="utf-8")
    for one in reversed(found):
        text = text[: one.span[0]] + PASSING.sub("...", one.printed) + text[one.span[1] :]
    page.write_text(text, encoding="utf-8")
    return bool(found)


def shows_outputs(page: Path) -> bool:
    found = runnable(page)
    return any(b.kind == OUTPUT or (b.kind == "console" and any(s for _, s, _ in commands(b))) for b in found)


if __name__ == "__main__":
    import notebooks

    if any(one.startswith("-") for one in sys.argv[1:]):
        sys.exit(__doc__)
    asked = [Path(one).resolve() for one in sys.argv[1:]] or [page for page in PAGES if shows_outputs(page)]
    for page in asked:
        print(f"{name(page)}: {'outputs written' if write(page) else 'as shown'}", flush=True)
    notebooks.write()
