"""No `else` answers for a kind that does not exist yet: the tree is read.

Where a value of a closed vocabulary is compared with one of its words, what happens to every other word must be one of
three things: it is refused (`raise`, `assert_never`), it is passed on by its name, or it meets the next word. A mapping
(`case_of`) says it best; every `match` of words ends in a refusal. Nothing is excepted.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DiscreetError
from discreet.lmm.families import family
from discreet.lmm.private import generalised
from discreet.plan.engine import EngineSection
from discreet.synthetic.outcomes import before_errors
from faults_of import about

SOURCE = Path(__file__).parents[2] / "src" / "discreet"
DATA = {"y": [0.0, 1, 2, 3] * 500, "x": [0.0, 1, 2, 1, 0] * 400}
DECIDING = ("family", "law.name", "engine.kind")
"""Names, or their ends, of values that decide what is computed."""


def subject(test: ast.expr) -> tuple[str, bool] | None:
    """What a test compares with words, and whether it holds for words that it does not name."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = subject(test.operand)
        return None if inner is None else (inner[0], not inner[1])
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name | ast.Attribute)):
        return None
    words = test.comparators[0]
    listed = words.elts if isinstance(words, ast.Tuple | ast.List | ast.Set) else [words]
    if not listed or not any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in listed):
        return None
    return ast.unparse(test.left), isinstance(test.ops[0], ast.NotEq | ast.NotIn)


def joined(test: ast.expr) -> Iterator[ast.expr]:
    """The parts that `and` and `or` join."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from joined(value)
    else:
        yield test


def decides(name: str, deciding: Sequence[str]) -> bool:
    return any(name == each or name.endswith(f".{each}") for each in deciding)


def ends_in_refusal(body: Sequence[ast.stmt]) -> bool:
    last = body[-1] if body else None
    called = last.value if isinstance(last, ast.Expr) else None
    return isinstance(last, ast.Raise) or (
        isinstance(called, ast.Call) and ast.unparse(called.func).endswith("assert_never")
    )


def passes_on(name: str, nodes: Sequence[ast.AST]) -> bool:
    """Whether the value itself goes on in some expression, other than to be compared with words again."""
    for node in nodes:
        compared = {id(each.left) for each in ast.walk(node) if isinstance(each, ast.Compare)}
        for each in ast.walk(node):
            if isinstance(each, ast.Name | ast.Attribute) and ast.unparse(each) == name and id(each) not in compared:
                return True
    return False


def answered(name: str, rest: Sequence[ast.stmt]) -> bool:
    """Whether statements that a word comes to that nobody named refuse it, pass it on, or ask again."""
    if not rest:
        return False
    first = rest[0]
    if isinstance(first, ast.If) and (found := subject(first.test)) and found[0] == name:
        other = first.body if found[1] else first.orelse or rest[1:]
        return answered(name, other)
    return ends_in_refusal(rest) or passes_on(name, rest)


def faults(tree: ast.AST, deciding: Sequence[str] = DECIDING) -> Iterator[tuple[int, str]]:
    """The lines where an unknown word of a vocabulary gets an answer."""
    good: set[int] = set()
    for node in ast.walk(tree):
        for _, block in ast.iter_fields(node):
            if not (isinstance(block, list) and block and isinstance(block[0], ast.stmt)):
                continue
            for i, statement in enumerate(block):
                if not isinstance(statement, ast.If):
                    continue
                parts = list(joined(statement.test))
                for part in parts:
                    found = subject(part)
                    if found is None:
                        continue
                    other = statement.body if found[1] else statement.orelse or block[i + 1 :]
                    # A request that is refused with a word is not answered for the others.
                    refused = ends_in_refusal(statement.body) and not statement.orelse
                    if refused or (len(parts) == 1 and answered(found[0], other)):
                        good.add(id(part))
        if isinstance(node, ast.IfExp) and (found := subject(node.test)):
            other_value = node.body if found[1] else node.orelse
            if passes_on(found[0], [other_value]):
                good.add(id(node.test))
        if isinstance(node, ast.UnaryOp) and id(node) in good:
            good.add(id(node.operand))
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and id(node) not in good:
            found = subject(node)
            if found is not None and decides(found[0], deciding):
                yield node.lineno, ast.unparse(node)


@cache
def trees() -> list[tuple[str, ast.Module]]:
    return [(path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text("utf-8"))) for path in SOURCE.rglob("*.py")]


def test_no_else_answers_for_an_unknown_kind() -> None:
    wrong = [f"{name}:{line}: {text}" for name, tree in trees() for line, text in faults(tree)]
    assert not wrong, "\n".join(sorted(wrong))


def open_matches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """`match` of words whose last case is not a refusal of all others."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Match):
            words = [case for case in node.cases if isinstance(case.pattern, ast.MatchValue)]
            last = node.cases[-1]
            rest = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
            if words and not (rest and ends_in_refusal(last.body)):
                yield node.lineno, ast.unparse(node.subject)


def test_every_match_of_words_refuses_the_others() -> None:
    wrong = [f"{name}:{line}: {text}" for name, tree in trees() for line, text in open_matches(tree)]
    assert not wrong, "\n".join(sorted(wrong))


ANSWERS = {
    "an else": "def f(family):\n    if family == 'binomial':\n        return 1\n    else:\n        return 2",
    "the rest of a function": "def f(family):\n    if family == 'binomial':\n        return 1\n    return 2",
    "a choice": "def f(fit):\n    return 1 if fit.family == 'binomial' else 2",
    "a truth": "def f(fit):\n    return fit.family != 'binomial'",
    "a part of a condition": "def f(fit, x):\n    if x and fit.family == 'binomial':\n        return 1\n    return 2",
    "a chain of words": "def f(family):\n    if family == 'a':\n        x = 1\n    elif family == 'b':\n        x = 2",
}
REFUSALS = {
    "chain": "def f(family):\n    if family == 'a':\n        return\n    if family == 'b':\n        pass\n    raise E",
    "never": "def f(family):\n    if family == 'a':\n        x = 1\n    else:\n        assert_never(family)",
    "a request": "def f(family, x):\n    if x and family != 'a':\n        raise E\n    return 2",
    "passed on": "def f(family):\n    if family == 'a':\n        return 1\n    return g(family)",
    "written by its name": "def f(fit):\n    return '' if fit.family == 'a' else f'family {fit.family}'",
    "a mapping": "def f(fit):\n    return case_of(fit.family, {'a': 1})",
}


@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_for_the_unknown_is_found(what: str) -> None:
    assert list(faults(ast.parse(ANSWERS[what])))


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_is_no_fault(what: str) -> None:
    assert not list(faults(ast.parse(REFUSALS[what])))


def test_a_family_and_an_engine_that_were_added_in_one_place_alone_are_named() -> None:
    """Not answered as if they were another one."""
    x = np.ones(3)
    fit = dc.release_mixed("y ~ x", DATA, epsilon=8, public=["x"], bounds=(0, 9), family="poisson", seed=1)
    strange = replace(fit, family="gamma")
    asked: dict[str, Callable[[], object]] = {
        "means": lambda: generalised._at("gamma", x, x),
        "fitted": lambda: strange.fitted(DATA),
        "tidy": strange.tidy,
        "variances": lambda: strange.variances,
        "errors": lambda: before_errors("gamma", x, x),
        "a general family": lambda: replace(family("poisson"), name="gamma").shares,  # type: ignore[arg-type]
        "an engine": lambda: EngineSection.model_construct(kind="gamma").is_spark,  # type: ignore[arg-type]
    }
    for what, ask in asked.items():
        with pytest.raises(DiscreetError, check=about("gamma")):
            ask()
            pytest.fail(what)
