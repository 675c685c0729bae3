"""The hash of what computes a release: which files, and what of their text."""

from __future__ import annotations

import ast
import importlib.util
import io
import tokenize
from functools import cache
from pathlib import Path

import pytest

from discreet.privacy.source_code import BRACKET, Module
from discreet.release.code import ROOT, SAYS, _files, computing

MODULE = '''"""Words."""

from discreet.ledger import (
    Ledger,  # where it is paid
    Head as Top,
)

SQL = """
SELECT count(*) # of all
"""
TITLE = Field(description="A title (with a bracket).", default="#1")


def f(x):
    """It is doubled."""
    from discreet.pages import page

    if x < 0:
        raise DataError(f"{x!r} (below zero).", "Use 'other' :-)", about="x") from None
    faults = [Fault("x", f"It is {x:.0%}.")]
    return 2 * x, faults
'''


def with_a_parser(source: str) -> str:
    """What `Module.of` finds by patterns, found by Python's parser and tokens."""
    lines, dropped, names = source.splitlines(), set(), []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names += [alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in node.names]
        elif not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ):
            continue
        dropped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline) if "#" in source else ():
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    kept = (line.rstrip() for number, line in enumerate(lines, start=1) if number not in dropped)
    return "\n".join([*sorted(names), *(line for line in kept if line)])


def test_patterns_find_in_every_file_what_a_parser_finds() -> None:
    for file in computing():
        source = (ROOT / file).read_text(encoding="utf-8")
        assert Module.of(source, words=True).text == with_a_parser(source), file


def test_what_is_left_without_words_has_its_brackets() -> None:
    for file, module in computing().items():
        depth, least = 0, 0
        for found in BRACKET.finditer(module.text):
            depth += (found.lastgroup == "open") - (found.lastgroup == "close")
            least = min(least, depth)
        assert depth == least == 0, file


@pytest.mark.parametrize(
    ("text", "becomes", "same"),
    [
        ("Words", "Other words", True),
        ("where it is paid", "where it was paid", True),
        ("It is doubled.", "Twice as much.", True),
        ("below zero", "negative", True),
        ("Use 'other' :-)", "Use more :-(", True),
        ("It is {x", "It was {x", True),
        ("A title (with a", "The title (without a", True),
        ("from discreet.pages import", "from discreet.pages.site import", True),
        ("raise DataError", "raise PlanError", False),
        ("# of all", "# of some", False),
        ('default="#1"', 'default="#2"', False),
        ("2 * x", "3 * x", False),
        ("x < 0", "x <= 0", False),
        ("Head as Top", "Entry as Top", False),
    ],
)
def test_words_are_no_part_of_it(text: str, becomes: str, same: bool) -> None:
    changed = MODULE.replace(text, becomes)
    assert changed != MODULE
    assert (Module.of(changed, words=False).text == Module.of(MODULE, words=False).text) is same


def test_imports_are_followed_but_to_what_only_says_something() -> None:
    assert _files(Module.of(MODULE, words=False)) >= {"ledger/__init__.py", "ledger/Head.py"}
    assert not {file for file in _files(Module.of(MODULE, words=False)) if file.startswith("report")}


def test_whatever_a_proof_covers_computes() -> None:
    covered = {file.partition("::")[0] for proof in proofs().PROOFS.glob("*.md") for file in proofs().covered(proof)}
    computed = {file for file in covered if file.partition("/")[0].removesuffix(".py") not in SAYS}
    assert len(computed) > 20 and computed <= computing().keys()


def test_every_function_that_releases_is_a_door_or_behind_one() -> None:
    release = {path for path in ROOT.rglob("*.py") if "release.question import" in path.read_text(encoding="utf-8")}
    files = {path.relative_to(ROOT).as_posix() for path in release}
    assert len(files) > 8 and files <= computing().keys()


def test_pages_commands_and_words_do_not() -> None:
    places = {"/".join(file.removesuffix(".py").split("/")[:depth]) for file in computing() for depth in (1, 2)}
    assert not places & SAYS
    assert {"noise", "privacy", "tables", "models/linear", "models/bayes", "release", "ledger", "plan"} <= places
    assert {"data/jobs", "data/frames"} <= places
    assert {each for each in SAYS if not (ROOT / each).is_dir() and not (ROOT / f"{each}.py").is_file()} == set()


@cache
def proofs():
    path = Path(__file__).parents[1] / "proofs.py"
    spec = importlib.util.spec_from_file_location("proofs_of_code", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
