"""Calls in the prose and tables of the docs fit what they call: the name exists, and takes these keywords."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from source_files import source_files

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / f"{name}.md" for name in ("README", "LIMITATIONS"))]
OTHERS = {
    "C",
    "Gamma",
    "I",
    "VarCorr",
    "anova",
    "beta_family",
    "bs",
    "confint",
    "contest1D",
    "exp",
    "fixef",
    "glmmTMB",
    "hatvalues",
    "lag",
    "lmer",
}
OTHERS |= {"days", "log", "log_size", "ns", "offset", "poly", "residuals", "rint", "size_class", "sqrt"}
"""Functions of R, of formulas and of C that pages name without a prefix."""
FOREIGN = {"np", "pd", "pl", "nw", "sns", "sm"}


class Signature(NamedTuple):
    """What a definition takes; `positional` is None where it takes any number, `keywords` where it takes any."""

    positional: int | None
    keywords: frozenset[str] | None

    def takes(self, call: ast.Call) -> bool:
        given = {keyword.arg for keyword in call.keywords if keyword.arg}
        given_in_place = [one for one in call.args if not (isinstance(one, ast.Constant) and one.value is ...)]
        few = self.positional is None or len(given_in_place) <= self.positional
        return few and (self.keywords is None or given <= self.keywords)


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Signature:
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    if "releases" in map(ast.unparse, node.decorator_list):  # `release.question.releases` adds the data
        names = [names[0], "data", *names[1:]]
    keywords = None if node.args.kwarg else frozenset([*names, *(a.arg for a in node.args.kwonlyargs)])
    return Signature(None if node.args.vararg else len(names), keywords)


def _of_class(node: ast.ClassDef) -> Signature:
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return _of_function(part)
    fields = [
        part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    ]
    inherits = [base for base in node.bases if ast.unparse(base) not in ("NamedTuple", "Protocol", "object")]
    return Signature(None, None) if inherits or not fields else Signature(len(fields), frozenset(fields))


def definitions() -> dict[str, list[Signature]]:
    """Every function, method and class of the package by name."""
    found: dict[str, list[Signature]] = {}
    for _, path in source_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(node.name, []).append(_of_function(node))
            elif isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(_of_class(node))
    return found


def calls(text: str) -> Iterator[ast.Call]:
    """Calls in spans of code that are Python; what another language's span holds does not parse, or is in OTHERS."""
    for line in re.sub(r"```.*?```", "", text, flags=re.S).splitlines():
        for span in re.findall(r"`([^`]+)`", line):
            try:
                tree = ast.parse(span.replace("\\|", "|").strip(), mode="eval")
            except SyntaxError:
                continue
            yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def wrong(call: ast.Call, known: dict[str, list[Signature]]) -> str:
    """Why a call cannot be made, or nothing."""
    first = ast.unparse(call.func).split(".")[0]
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if not name or first in FOREIGN or (name in OTHERS and isinstance(call.func, ast.Name)):
        return ""
    if name not in known:
        return f"{ast.unparse(call)}: there is no {name}"
    return "" if any(one.takes(call) for one in known[name]) else f"{ast.unparse(call)}: {name} does not take that"


@pytest.fixture(scope="module")
def known() -> dict[str, list[Signature]]:
    return definitions()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_call_fits_what_it_calls(page: Path, known: dict[str, list[Signature]]) -> None:
    faults = [why for call in calls(page.read_text()) if (why := wrong(call, known))]
    assert not faults, faults


def test_it_can_fail(known: dict[str, list[Signature]]) -> None:
    assert sum(1 for page in PAGES for _ in calls(page.read_text())) > 40
    for span in (
        "dc.mixed(f, d, reml=False)",
        "change.roc.pauc()",
        "fit.predict(new, levels=1)",
        "Rows(1, 2, 3, 4, 5, 6)",
    ):
        (call,) = calls(f"| `{span}` | so |")
        assert wrong(call, known), span
    for span in ("dc.mixed(f, d, method='ML')", "fit.predict(new, new_levels='zero')", "lmer(f, REML = FALSE)"):
        (call,) = calls(f"text `{span}`")
        assert not wrong(call, known), span
