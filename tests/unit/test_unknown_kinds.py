"""No `else` answers for a kind that does not exist yet: the tree is read.

Where a value of a closed vocabulary is compared with one of its words, what happens to every other word must be one of
three things: it is refused (`raise`, `assert_never`), it is passed on by its name, or it meets the next word. A mapping
(`case_of`) says it best; every `match` of words ends in a refusal. The vocabularies are not listed here: they are the
`Literal` types of the tree, wherever an attribute, a parameter or a function has one. Only a condition of a
comprehension may ask for one word: it selects and answers nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeGuard

import pytest

import discreet as dc
import release_doors
from discreet.plan.engine import EngineSection
from discreet.privacy import columns, plain_words
from discreet.privacy.belief import permitted
from discreet.privacy.distance import distance
from discreet.privacy.identification import belief_bounds
from discreet.tables import calibration
from discreet.tables.mechanisms.defaults import default_of
from discreet.words.errors import DiscreetError
from faults_of import about
from source_files import source_files

DATA = {"y": [0.0, 1, 2, 3] * 500, "x": [0.0, 1, 2, 1, 0] * 400}


def words_of(annotation: ast.AST, aliases: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The words of the `Literal` types in an annotation, also by their names; none of a container of them."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return aliases.get(annotation.value, frozenset())
    if isinstance(annotation, ast.Name | ast.Attribute):
        return aliases.get(ast.unparse(annotation).rpartition(".")[2], frozenset())
    if isinstance(annotation, ast.BinOp):
        return words_of(annotation.left, aliases) | words_of(annotation.right, aliases)
    if isinstance(annotation, ast.Subscript):
        named = ast.unparse(annotation.value).rpartition(".")[2]
        if named == "Literal":
            return frozenset(each.value for each in ast.walk(annotation.slice) if is_word(each))
        if named in ("Annotated", "Optional", "Final", "ClassVar"):
            first = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
            return words_of(first, aliases)
    return frozenset()


def is_word(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@dataclass(frozen=True)
class Vocabularies:
    """The closed vocabularies of the tree: of names of types, and of attributes of any class."""

    aliases: dict[str, frozenset[str]]
    attributes: dict[str, list[frozenset[str]]]

    @classmethod
    def of(cls, trees: Iterable[ast.AST]) -> Vocabularies:
        found, own = cls({}, {}), {}
        parts = [[*ast.walk(tree)] for tree in trees]
        for _ in range(3):  # a name of a name of a type
            for at, nodes in enumerate(parts):
                for node in nodes:
                    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).endswith("TypeAlias"):
                        words = frozenset() if node.value is None else words_of(node.value, found.aliases)
                        if words:
                            found.aliases[ast.unparse(node.target)] = words
                            own.setdefault(at, {})[ast.unparse(node.target)] = words
        for at, nodes in enumerate(parts):
            meant = {**found.aliases, **own.get(at, {})}  # one name may stand for other words in another module
            for each in (each for node in nodes if isinstance(node, ast.ClassDef) for each in node.body):
                if isinstance(each, ast.AnnAssign):
                    found._attribute(ast.unparse(each.target), each.annotation, meant)
                elif isinstance(each, ast.FunctionDef) and each.returns is not None:
                    found._attribute(each.name, each.returns, meant)
        return found

    def _attribute(self, name: str, annotation: ast.AST, meant: Mapping[str, frozenset[str]]) -> None:
        if words := words_of(annotation, meant):
            self.attributes.setdefault(name, []).append(words)

    def closed(self, compared: ast.expr, words: frozenset[str], own: Mapping[str, frozenset[str]]) -> bool:
        """Whether a value is of a vocabulary that has these words; `own` are those of the function's names."""
        if isinstance(compared, ast.Name) and (known := own.get(compared.id)):
            return words <= known
        named = compared.attr if isinstance(compared, ast.Attribute) else ast.unparse(compared)
        return any(words <= each for each in self.attributes.get(named, ()))


def names_in(function: ast.FunctionDef | ast.Lambda, known: Vocabularies) -> dict[str, frozenset[str]]:
    """The closed vocabularies of a function's parameters and variables."""
    asked = function.args
    found = {
        each.arg: frozenset() if each.annotation is None else words_of(each.annotation, known.aliases)
        for each in (*asked.posonlyargs, *asked.args, *asked.kwonlyargs)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = words_of(node.annotation, known.aliases)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            of = known.attributes.get(node.value.attr, [])
            found |= {each.id: frozenset().union(*of) for each in node.targets if isinstance(each, ast.Name)}
    return found


def asked_of(tree: ast.AST, known: Vocabularies) -> Iterator[tuple[ast.Compare, bool]]:
    """Comparisons of values of closed vocabularies with words; whether it selects in a comprehension."""

    def inside(node: ast.AST, own: Mapping[str, frozenset[str]], selects: bool) -> Iterator[tuple[ast.Compare, bool]]:
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            own = {**own, **names_in(node, known)}
        if isinstance(node, ast.Compare) and subject(node) is not None:
            words = frozenset(each.value for each in ast.walk(node.comparators[0]) if is_word(each))
            if known.closed(node.left, words, own):
                yield node, selects
        for field, value in ast.iter_fields(node):
            chosen = selects or (isinstance(node, ast.comprehension) and field == "ifs")
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield from inside(each, own, chosen)

    yield from inside(tree, {}, False)


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


def faults(tree: ast.AST, known: Vocabularies) -> Iterator[tuple[int, str]]:
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
    for node, selects in asked_of(tree, known):
        if not selects and id(node) not in good:
            yield node.lineno, ast.unparse(node)


def listed(value: ast.AST | None) -> frozenset[str]:
    """The words that a constant is, or lists, or answers for."""
    if value is not None and is_word(value):
        return frozenset([value.value])
    if isinstance(value, ast.Call) and value.args and ast.unparse(value.func) in ("frozenset", "set", "tuple", "dict"):
        return listed(value.args[0])
    if isinstance(value, ast.Dict):
        each = [frozenset() if key is None else listed(key) for key in value.keys]
    elif isinstance(value, ast.Tuple | ast.List | ast.Set):
        each = [listed(element) if is_word(element) else frozenset() for element in value.elts]
    else:
        return frozenset()
    return frozenset().union(*each) if each and all(each) else frozenset()


def constants(tree: ast.AST) -> dict[str, frozenset[str]]:
    """The names in a module that stand for words, also those within classes and functions."""
    found = {}
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and (words := listed(node.value)):
            found |= {each.id: words for each in targets if isinstance(each, ast.Name)}
    return found


class Plain(ast.NodeTransformer):
    """Another spelling of the same questions: words in place of their names, the value first, one at a time."""

    def __init__(self, names: Mapping[str, frozenset[str]]) -> None:
        self.names = names

    def words(self, node: ast.expr) -> frozenset[str]:
        named = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
        return listed(node) if named is None else self.names.get(named, frozenset())

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) > 1:
            sides = [node.left, *node.comparators]
            parts = zip(sides, node.ops, sides[1:], strict=False)
            each = [ast.copy_location(ast.Compare(a, [op], [b]), node) for a, op, b in parts]
            return ast.copy_location(ast.BoolOp(ast.And(), [self.visit(one) for one in each]), node)
        left, [op], [right] = node.left, node.ops, node.comparators
        if self.words(left) and isinstance(op, ast.Eq | ast.NotEq):
            left, right = right, left
        if isinstance(left, ast.NamedExpr):
            left = left.value
        if (words := self.words(right)) and not is_word(right):
            several: list[ast.expr] = [ast.Constant(word) for word in sorted(words)]
            right = ast.Tuple(several, ast.Load()) if isinstance(op, ast.In | ast.NotIn) else several[0]
        asked = ast.Compare(left, [ast.Eq() if isinstance(op, ast.Is) else op], [right])
        return ast.fix_missing_locations(ast.copy_location(asked, node))

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.Assign]:
        """Values side by side are assigned one by one."""
        self.generic_visit(node)
        several = node.targets[0]
        if not (isinstance(several, ast.Tuple) and isinstance(node.value, ast.Tuple)):
            return node
        if len(several.elts) != len(node.value.elts):
            return node
        pairs = zip(several.elts, node.value.elts, strict=True)
        return [ast.copy_location(ast.Assign([each], value), node) for each, value in pairs]

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        self.generic_visit(node)
        fields = {field: getattr(node, field) for field in ast.FunctionDef._fields if hasattr(node, field)}
        return ast.copy_location(ast.FunctionDef(**fields), node)


def plain(tree: ast.Module, shared: Mapping[str, frozenset[str]]) -> ast.Module:
    found = Plain({**shared, **constants(tree)}).visit(tree)
    assert isinstance(found, ast.Module)
    return found


@cache
def trees() -> list[tuple[str, ast.Module]]:
    found = [(place, ast.parse(path.read_text("utf-8"))) for place, path in source_files()]
    shared = {name: words for _, tree in found for name, words in constants(tree).items() if name.isupper()}
    return [(name, plain(tree, shared)) for name, tree in found]


def test_no_else_answers_for_an_unknown_kind() -> None:
    known = Vocabularies.of(tree for _, tree in trees())
    wrong = [f"{name}:{line}: {text}" for name, tree in trees() for line, text in faults(tree, known)]
    assert not wrong, "\n".join(sorted(wrong))


def open_matches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """`match` of words, or of classes, whose last case neither refuses all others nor passes them on by their name.

    One of classes may have no last case: mypy then refuses a class that is new.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Match):
            patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
            words = [each for each in patterns if isinstance(each, ast.MatchValue) and is_word(each.value)]
            bound = {each.name for each in patterns if isinstance(each, ast.MatchAs) and each.name is not None}
            guards = [case.guard for case in node.cases if case.guard is not None]
            words += [each for guard in guards if passes_or_compares(bound, guard) for each in ast.walk(guard)]
            classes = [each for each in patterns if isinstance(each, ast.MatchClass)]
            last = node.cases[-1]
            rest = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
            good = rest and (ends_in_refusal(last.body) or passes_on(ast.unparse(node.subject), last.body))
            if (words and not good) or (classes and rest and not good):
                yield node.lineno, ast.unparse(node.subject)


def passes_or_compares(names: set[str], guard: ast.expr) -> bool:
    """Whether a guard compares what its case has bound with a word."""
    asked = [subject(each) for each in ast.walk(guard) if isinstance(each, ast.expr)]
    return any(found is not None and found[0] in names for found in asked)


ANSWERING = ("get", "pop", "setdefault")
PARTS = ("startswith", "endswith", "removeprefix", "removesuffix", "lower", "upper", "casefold", "find", "partition")


def defaults(tree: ast.AST, known: Vocabularies) -> Iterator[tuple[int, str]]:
    """Mappings, attributes and parts of a word that have an answer for words that they do not know."""
    names = constants(tree)

    def is_closed(value: ast.expr, words: frozenset[str], own: Mapping[str, frozenset[str]]) -> bool:
        """Whether a value is of a closed vocabulary, of which these words are a part, or all of them."""
        if not isinstance(value, ast.Name | ast.Attribute):
            return False
        mine = own.get(ast.unparse(value))
        every = [mine] if mine else known.attributes.get(value.attr, []) if isinstance(value, ast.Attribute) else []
        return any(words & each for each in every)

    def inside(node: ast.AST, own: Mapping[str, frozenset[str]]) -> Iterator[tuple[int, str]]:
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            own = {**own, **names_in(node, known)}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked, of = node.args, node.func.value
            words = listed(of) or names.get(of.attr if isinstance(of, ast.Attribute) else ast.unparse(of), frozenset())
            passed = len(asked) > 1 and ast.unparse(asked[0]) == ast.unparse(asked[1])
            if node.func.attr in ANSWERING and asked and not passed and is_closed(asked[0], words, own):
                yield node.lineno, ast.unparse(node)
            if node.func.attr in PARTS and own.get(ast.unparse(of)):
                yield node.lineno, ast.unparse(node)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and len(node.args) > 2:
            value = node.args[1]
            if own.get(ast.unparse(value)) or (isinstance(value, ast.Attribute) and value.attr in known.attributes):
                yield node.lineno, ast.unparse(node)
        if isinstance(node, ast.Try | ast.With) and _forgives(node):
            looked = [each for part in node.body for each in ast.walk(part) if isinstance(each, ast.Subscript)]
            for each in looked:
                named = each.value.attr if isinstance(each.value, ast.Attribute) else ast.unparse(each.value)
                if is_closed(each.slice, names.get(named, frozenset()), own):
                    yield node.lineno, ast.unparse(each)
        for each in ast.iter_child_nodes(node):
            yield from inside(each, own)

    yield from inside(tree, {})


def _forgives(node: ast.Try | ast.With) -> bool:
    """Whether a word that is missing in a mapping gets an answer."""
    if isinstance(node, ast.With):
        caught = [each.context_expr for each in node.items if "suppress" in ast.unparse(each.context_expr)]
    else:
        open_ = [each for each in node.handlers if not ends_in_refusal(each.body)]
        caught = [each.type or ast.Name("Exception") for each in open_]
    return any(word in ast.unparse(each) for each in caught for word in ("KeyError", "LookupError", "Exception"))


def test_no_mapping_answers_for_a_word_that_it_does_not_know() -> None:
    known = Vocabularies.of(tree for _, tree in trees())
    wrong = [f"{name}:{line}: {text}" for name, tree in trees() for line, text in defaults(tree, known)]
    assert not wrong, "\n".join(sorted(wrong))
    for asked, found in {
        "{'a': 1}.get(fit.family, 2)": 1,
        "{'a': 1}.get(fit.family)": 1,
        "KINDS = {'a': 1}\nKINDS.get(fit.family, '')": 1,
        "class Kinds:\n    kinds = {'a': 1}\n    def f(self, fit):\n        return self.kinds.pop(fit.family, 2)": 1,
        "kinds = dict({'b': 1})\nkinds.setdefault(fit.family, 2)": 1,
        "KINDS = {'c': 1}\nKINDS.get(fit.family, '')": 0,
        "KINDS = {'a': 1}\ntry:\n    KINDS[fit.family]\nexcept KeyError:\n    1": 1,
        "KINDS = {'a': 1}\ntry:\n    KINDS[fit.family]\nexcept KeyError:\n    raise E": 0,
        "KINDS = {'a': 1}\nwith suppress(KeyError):\n    KINDS[fit.family]": 1,
        "getattr(module, fit.family, 2)": 1,
        "def f(fit):\n    family = fit.family\n    return family.startswith('a')": 1,
        "KINDS.get(fit.family, fit.family)": 0,
        "case_of(fit.family, {})": 0,
    }.items():
        assert len(list(defaults(ast.parse(asked), FAMILIES))) == found


def test_every_match_of_words_refuses_the_others() -> None:
    wrong = [f"{name}:{line}: {text}" for name, tree in trees() for line, text in open_matches(tree)]
    assert not wrong, "\n".join(sorted(wrong))


MATCHES = {
    "case 'a':\n        1\n    case _:\n        2": 1,
    "case 'a' | 'b':\n        1": 1,
    "case 'a' | 'b':\n        1\n    case _:\n        2": 1,
    "case ('a', _):\n        1\n    case _:\n        2": 1,
    "case 'a' as w:\n        1\n    case _:\n        2": 1,
    "case w if w == 'a':\n        1\n    case _:\n        2": 1,
    "case {'family': 'a'}:\n        1\n    case _:\n        2": 1,
    "case Fit(family='a'):\n        1\n    case _:\n        2": 1,
    "case Workers():\n        1\n    case _:\n        2": 1,
    "case Workers():\n        1\n    case _:\n        assert_never(fit)": 0,
    "case 'a' | 'b':\n        1\n    case _:\n        raise E": 0,
}


@pytest.mark.parametrize("cases", MATCHES)
def test_a_match_that_answers_for_the_others_is_found(cases: str) -> None:
    assert len(list(open_matches(ast.parse(f"match fit:\n    {cases}")))) == MATCHES[cases]


FAMILIES = Vocabularies({}, {"family": [frozenset({"binomial", "a", "b"})]})

TYPED = """
Family: TypeAlias = Literal["a", "b"]
Either: TypeAlias = Family | None
class Fit:
    family: Either
    law: Annotated[Literal["c", "d"], Field(default="c")]
    @property
    def kind(self) -> Family: ...
    words: dict[str, Literal["e"]]
"""


def test_vocabularies_are_read_from_types() -> None:
    family, law = frozenset({"a", "b"}), frozenset({"c", "d"})
    found = Vocabularies.of([ast.parse(TYPED)])
    assert found == Vocabularies(
        {"Family": family, "Either": family}, {"family": [family], "law": [law], "kind": [family]}
    )
    own = "def f(x: Family, y: str):\n    z: Either = y\n    w = y.law\n    return {}"
    for asked, closed in {"x == 'a'": 1, "y == 'a'": 0, "z == 'b'": 1, "w == 'c'": 1, "y.kind == 'c'": 0}.items():
        assert len(list(faults(ast.parse(own.format(asked)), found))) == closed, asked


def test_the_vocabularies_of_the_tree_are_found() -> None:
    """Of every room, and also where a type has a name of its own."""
    known = Vocabularies.of(tree for _, tree in trees())
    rooms = {name.partition("/")[0] for name, tree in trees() if Vocabularies.of([tree]).attributes}
    assert {"ledger", "privacy", "plan", "tables", "models", "changes", "desk"} <= rooms
    told = {"kind", "strength", "calibration", "basis", "method", "beyond", "state", "follows", "people"}
    assert told <= known.attributes.keys()


ANSWERS = {
    "an else": "def f(family):\n    if family == 'binomial':\n        return 1\n    else:\n        return 2",
    "the rest of a function": "def f(family):\n    if family == 'binomial':\n        return 1\n    return 2",
    "a choice": "def f(fit):\n    return 1 if fit.family == 'binomial' else 2",
    "a truth": "def f(fit):\n    return fit.family != 'binomial'",
    "a part of a condition": "def f(fit, x):\n    if x and fit.family == 'binomial':\n        return 1\n    return 2",
    "a word behind": "def f(fit):\n    if 'a' == fit.family:\n        return 1\n    return 2",
    "words with a name": "ONES = ('a',)\ndef f(fit):\n    return 1 if fit.family in ONES else 2",
    "a word with a name": "A = 'a'\ndef f(fit):\n    return 1 if fit.family == A else 2",
    "a mapping where there is one": "K = {'a': 1}\ndef f(fit):\n    return K[fit.family] if fit.family in K else 2",
    "an object": "A = 'a'\ndef f(fit):\n    return 1 if fit.family is A else 2",
    "a value with a name": "def f(fit):\n    if (w := fit.family) == 'a':\n        return 1\n    return 2",
    "values side by side": "def f(fit):\n    w, v = fit.family, 2\n    return 1 if w == 'a' else v",
    "two values": "def f(fit, g):\n    return 1 if fit.family == g.family == 'a' else 2",
    "later": "async def f(fit):\n    w = fit.family\n    return 1 if w == 'a' else 2",
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
    assert list(faults(plain(ast.parse(ANSWERS[what]), {}), FAMILIES))


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_is_no_fault(what: str) -> None:
    assert not list(faults(plain(ast.parse(REFUSALS[what]), {}), FAMILIES))


def test_a_family_and_an_engine_that_were_added_in_one_place_alone_are_named() -> None:
    """Not answered as if they were another one."""
    fit = dc.release_mixed("y ~ x", DATA, epsilon=8, public=["x"], bounds=(0, 9), family="poisson", seed=1)
    strange = replace(fit, family="weibull")
    asked: dict[str, Callable[[], object]] = {
        "fitted": lambda: strange.fitted(DATA),
        "tidy": strange.tidy,
        "variances": lambda: strange.variances,
        "an engine": lambda: EngineSection.model_construct(kind="family").is_spark,  # type: ignore[arg-type]
    }
    for what, ask in asked.items():
        with pytest.raises(DiscreetError, check=about("family")):
            ask()
            pytest.fail(what)


@dataclass(frozen=True)
class Unheard:
    """A unit that was added in one place alone."""

    key: str = "unheard"
    alpha: str = "0.1"
    theta: int = 1
    strength: str = "strong"
    exchange: int = 1
    responses: tuple[str, ...] = ()


UNHEARD: Any = Unheard()
DECIDED: dict[str, Callable[[], object]] = {
    "a session": lambda: dc.Session(release_doors.jobs(), unit=UNHEARD, budget=4),
    "a mechanism": lambda: dc.calibrate("polynomial", unit=UNHEARD, epsilon=2),
    "a budget": lambda: dc.Ledger.in_memory().open_budget(dataset="d", unit=UNHEARD, total=dc.Pure(1)),
    "an account": lambda: dc.Account.open(None, dataset="d", unit=UNHEARD, budget=dc.Pure(1)),
    "the default": lambda: default_of(UNHEARD, Fraction(1), cells=1, some=True, plain=False),
    "how far counts move": lambda: calibration.moved(UNHEARD),
    "what is hidden": lambda: columns.protected(UNHEARD),
    "odds": lambda: belief_bounds(UNHEARD, dc.Pure(1)),
    "a belief": lambda: permitted(UNHEARD, 1.0, 10),
    "a distance": lambda: distance(UNHEARD, 1, 3),
    "whom it protects": lambda: plain_words.plain_words(UNHEARD, 1),
    "steps of a job": lambda: plain_words.steps_of_one_job(UNHEARD),
    "several jobs": lambda: plain_words.by_jobs(UNHEARD),
}


@pytest.mark.parametrize("what", DECIDED)
def test_a_unit_that_was_added_in_one_place_alone_is_named(what: str) -> None:
    """It is not answered as if it moved counts by one, hid no column and had the odds of another."""
    with pytest.raises((DiscreetError, AssertionError)) as caught:
        DECIDED[what]()
    assert "Unheard" in str(caught.value) or about("unit")(caught.value)
