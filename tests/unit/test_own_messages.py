"""Nothing in the tree decides by the words of our own messages: a sentence can be reworded and nothing else changes.

The scan follows an error that is ours from `except` or from a parameter to its text, through assignments, and wants
that text printed or stored, never looked into; so with the text of a check, a verdict, a fit or a report, with their
notes, and with the tags of our own pages. Errors of other libraries have no other interface and are not ours.
Tests are held to the same: they ask for the class of an error and what it is about.
"""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest

from discreet.words import errors
from source_files import source_files

LOOKS = {
    *("startswith", "endswith", "find", "rfind", "index", "rindex", "count", "split", "rsplit", "splitlines"),
    *("partition", "rpartition", "replace", "removeprefix", "removesuffix", "translate"),
}
"""Methods of text that find something in it, or cut it where something is found."""
PATTERNS = {"match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
"""Methods of regular expressions."""
SENTENCES = {"possible", "remedy"}
BROAD = {"Exception", "BaseException", "ValueError", "RuntimeError"}
SPOKEN = {"said", "told"}
SPEAKERS = {
    *("check", "checked", "checks", "expected", "verdict", "report", "fit", "release", "released", "guarantee"),
    *("finding", "summary", "offer", "comparison", "audit"),
}
"""Names of what prints sentences; a number or a flag of it says the same."""
NOTES = {"notes", "cautions"}
A_TAG = re.compile(r"</?(th|td|tr|li|p|div|section|span|dd|dt|h[1-6])\b")
CLASS = re.compile(r"^class (\w+)\((\w+)", re.MULTILINE)


def _own_classes() -> set[str]:
    found = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    for text in (path.read_text(encoding="utf-8") for _, path in source_files()):
        found |= {name for name, base in CLASS.findall(text) if base in found}
    return found | BROAD


def _name(node: ast.AST | None) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _names(node: ast.AST | None) -> set[str]:
    return set() if node is None else {_name(part) for part in ast.walk(node)} - {""}


def _noted(node: ast.AST) -> bool:
    """Whether an expression is the notes of something: `fit.notes`."""
    return isinstance(node, ast.Attribute) and node.attr in NOTES


class _Scan(ast.NodeVisitor):
    """One function or module: which names hold our errors, which hold their text, and who looks into it."""

    def __init__(self, own: set[str]) -> None:
        self.own = own
        self.errors: set[str] = set()
        self.texts: set[str] = set()
        self.found: list[tuple[int, str]] = []
        self.handed: set[tuple[str, int]] = set()
        self.taken: set[tuple[str, int]] = set()

    def is_text(self, node: ast.AST | None) -> bool:
        """Whether an expression is, or holds, the text of an error of ours."""
        if node is None:
            return False
        if isinstance(node, ast.Name):
            return node.id in self.texts
        if isinstance(node, ast.Call):
            func = node.func
            if _name(func) in ("str", "repr", "format") and any(_name(a) in self.errors | SPEAKERS for a in node.args):
                return True
            if isinstance(func, ast.Attribute) and func.attr in SPOKEN:
                return True
            return isinstance(func, ast.Attribute) and self.is_text(func.value)
        if isinstance(node, ast.Attribute):
            return node.attr == "args" and _name(node.value) in self.errors
        if isinstance(node, ast.JoinedStr):
            return any(
                isinstance(part, ast.FormattedValue) and (_name(part.value) in self.errors or self.is_text(part.value))
                for part in node.values
            )
        if isinstance(node, ast.Subscript | ast.Starred):
            return self.is_text(node.value)
        if isinstance(node, ast.BinOp):
            return self.is_text(node.left) or self.is_text(node.right)
        if isinstance(node, ast.NamedExpr):
            return self.is_text(node.value)
        return isinstance(node, ast.BoolOp) and any(map(self.is_text, node.values))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        inner = _Scan(self.own)
        inner.errors, inner.texts, inner.taken = set(self.errors), set(self.texts), self.taken
        for place, argument in enumerate((*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)):
            if (node.name, place) in self.taken:
                inner.texts.add(argument.arg)
            if _names(argument.annotation) & (self.own - set(dir(builtins))):
                inner.errors.add(argument.arg)
        for statement in node.body:
            inner.visit(statement)
        self.found += inner.found
        self.handed |= inner.handed

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 (the visitor's names)

    def visit_Try(self, node: ast.Try) -> None:
        ours_are_out = False
        for handler in node.handlers:
            caught = _names(handler.type)
            if handler.name and caught & self.own and not (ours_are_out and caught <= BROAD):
                self.errors.add(handler.name)
            self.generic_visit(handler)
            self.errors.discard(handler.name or "")
            ours_are_out = ours_are_out or "DiscreetError" in caught
        for part in (*node.body, *node.orelse, *node.finalbody):
            self.visit(part)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            if self.is_text(node.value) and isinstance(target, ast.Name):
                self.texts.add(target.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.generic_visit(node)
        if self.is_text(node.value):
            self.texts.add(node.target.id)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        if (self.is_text(node.iter) or _noted(node.iter)) and isinstance(node.target, ast.Name):
            self.texts.add(node.target.id)
        self.generic_visit(node)

    def _visit_made(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        for each in node.generators:
            self.visit(each)
        self.generic_visit(node)

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _visit_made  # noqa: N815

    def visit_For(self, node: ast.For) -> None:
        if (self.is_text(node.iter) or _noted(node.iter)) and isinstance(node.target, ast.Name):
            self.texts.add(node.target.id)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        func = node.func
        if isinstance(func, ast.Name):
            self.handed |= {(func.id, place) for place, given in enumerate(node.args) if self.is_text(given)}
        if isinstance(func, ast.Attribute):
            if func.attr in LOOKS and self.is_text(func.value):
                self.found.append((node.lineno, f".{func.attr} of an error's text"))
            if func.attr in PATTERNS and any(map(self.is_text, node.args)):
                self.found.append((node.lineno, f".{func.attr} on an error's text"))
            patterns = [each.value for each in node.args[:1] if isinstance(each, ast.Constant)]
            if func.attr in PATTERNS | {"compile"} and any(A_TAG.search(str(each)) for each in patterns):
                self.found.append((node.lineno, "a pattern for a page of ours"))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            looks_in = isinstance(operator, ast.In | ast.NotIn) and self.is_text(right)
            equal = isinstance(operator, ast.Eq | ast.NotEq) and (self.is_text(left) or self.is_text(right))
            if looks_in or equal:
                self.found.append((node.lineno, "a comparison with an error's text"))
        self.generic_visit(node)


def looks(text: str, own: set[str]) -> list[tuple[int, str]]:
    """The lines of a module that look into the text of our errors, or into the sentences of a fault."""
    tree = ast.parse(text)
    scan = _Scan(own)
    scan.visit(tree)
    handed: set[tuple[str, int]] = set()
    while scan.handed - handed:  # a text that is handed to another function of the module is still one
        handed |= scan.handed
        scan = _Scan(own)
        scan.taken = handed
        scan.visit(tree)
    found = {*scan.found}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = [node.func.value] if node.func.attr in LOOKS else node.args if node.func.attr in PATTERNS else []
        else:
            of = (
                node.comparators
                if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn)
                else []
            )
        found |= {(node.lineno, "a look into a sentence") for part in of if _name(part) in SENTENCES}
    return sorted(found)


def test_no_pattern_is_matched_against_our_own_messages() -> None:
    own = _own_classes()
    wrong = [
        f"{place}:{line}: {what}"
        for place, path in source_files()
        for line, what in looks(path.read_text(encoding="utf-8"), own)
    ]
    assert not wrong, "\n".join(wrong)


def matched(text: str, own: set[str]) -> list[int]:
    """The lines of a test that match words of an error which is ours, or may be by the class it asks for."""
    if "match" not in text:
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and _name(node.func) == "raises"
        and node.args
        and _names(node.args[0]) & own
        and any(each.arg == "match" for each in node.keywords)
    ]


def test_tests_ask_what_an_error_is_about_and_not_for_its_words() -> None:
    """Errors of other libraries have only words; they are asked for by their own class."""
    tests, own = Path(__file__).parents[1], _own_classes() | {"ImportError"}
    wrong = [
        f"{path.relative_to(tests)}:{line}: match= on an error of ours; ask with check=about(...)"
        for path in sorted(tests.rglob("*.py"))
        for line in matched(path.read_text(encoding="utf-8"), own)
    ]
    assert not wrong, "\n".join(wrong)
    own = {"DataError", "ValueError"}
    assert matched("with pytest.raises(DataError, match='no file'): f()", own) == [1]
    assert matched("with pytest.raises((errors.DataError, OSError), match=words): f()", own) == [1]
    assert matched("\nwith raises(ValueError, match='x') as caught: f()", own) == [2]
    assert not matched("with pytest.raises(DataError, check=about('by')): f()", own)
    assert not matched("with pytest.raises(OSError, match='disk full'): f()", own)


@pytest.mark.parametrize(
    "body",
    [
        "is_new = 'no table' in str(error)",
        "lines = str(error).splitlines()",
        "text = str(error).lower()\n    found = [key for key in KEYS if text.startswith(key)]",
        "text = f'{error}'\n    return re.sub('a', 'b', text)",
        "return [re.match('a', line) for line in error.said(PLAN).split('x')]",
        "return error.args[0].removeprefix('public: ')",
        "return error.faults[0].said().partition('=')",
        "if (text := str(error)) == 'x':\n        return 1",
        "return PATTERN.search(str(error))",
    ],
)
def test_the_scan_sees(body: str) -> None:
    handled = f"def f():\n  try:\n    g()\n  except DataError as error:\n    {body}\n"
    given = f"def f(error: DataError):\n    {body}\n"
    foreign = f"def f():\n  try:\n    g()\n  except TOMLDecodeError as error:\n    {body}\n"
    assert looks(handled, {"DataError"}) and looks(given, {"DataError"})
    if "said" not in body:
        assert not looks(foreign, {"DataError"})


@pytest.mark.parametrize(
    "text",
    [
        "def f(word):\n    check = release_mixed.check('y ~ x', data)\n    return word if word in str(check) else ''",
        "def f(words, check):\n    return next(word for word in words if word in str(check))",
        "def f(plan):\n    return f'{verify(plan)}'.find('holds') if plan else str(plan.verdict).startswith('holds')",
        "def f(fit):\n    return any('one variance' in note for note in fit.notes)",
        "def f(fit):\n    for note in fit.notes:\n        if note.startswith('no'):\n            return 1",
        "TOLD = re.compile(r'<th scope=\"row\">([^<]*)</th>')",
    ],
)
def test_the_scan_sees_what_checks_and_pages_say(text: str) -> None:
    """As studies read checks, and bundles the hashes of a report, until both asked for values."""
    assert looks(text, set())
    assert not looks("def f(check):\n    return WORD in check.expected.notes or print(str(check))", set())


def test_the_scan_sees_sentences_of_faults() -> None:
    assert looks("found = fault.remedy.replace('a', 'b')", set())
    assert looks("found = 'a' in fault.possible", set())
    assert not looks("print(fault.remedy)", set())


def test_the_scan_follows_a_text_into_another_function() -> None:
    text = "def g():\n  try:\n    h()\n  except DataError as error:\n    f(1, str(error))\n"
    assert looks(text + "def f(a, message):\n    return message.replace('a', 'b')\n", {"DataError"})
    assert not looks(text + "def f(a, message):\n    return print(message)\n", {"DataError"})


def test_the_scan_lets_other_libraries_errors_be() -> None:
    text = "try:\n  h()\nexcept DiscreetError:\n  raise\nexcept Exception as error:\n  a = str(error).splitlines()\n"
    assert not looks(text, {"DiscreetError", *BROAD})
    assert looks(text.replace("except DiscreetError:\n  raise\n", ""), {"DiscreetError", *BROAD})
