"""Model formulas in lme4's syntax, read into values; nothing here touches data.

``y ~ 1 + age + log(wage) + (1 + age | firm) + (1 | state/county)`` becomes a `Formula`: a response, fixed terms
and random terms. The reader is a recursive descent over tokens and knows only column names, numbers, R's
operators ``+ - * / : ^`` and the functions of `FUNCTIONS`. It never evaluates anything, so a formula from a
plan, a command line or a web form is as safe as a column name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn, TypeAlias

from discreet.models.formula import arithmetic
from discreet.models.formula.arithmetic import MAKERS, Node, with_numbers
from discreet.models.formula.contrasts import CONTRASTS, Contrast
from discreet.words.cases import case_of
from discreet.words.errors import FormulaError, concerning

FUNCTIONS = ("C", "center", "scale", "log", "poly", "bs", "ns", "log_size", "size_class", "lag", *MAKERS, "offset")
DEEPEST = 20  # nested parentheses; keeps hostile text from exhausting the stack
LONGEST = 5_000  # characters
LARGEST_BASIS = 1_000  # columns of one poly or bs; keeps hostile text from exhausting the memory
MOST_PRODUCTS = 2_000  # terms of all products together, before repetitions are dropped
Function: TypeAlias = Literal["", "C", "center", "scale", "log", "poly", "bs", "ns", "log_size", "size_class", "lag"]
NUMERIC: tuple[Function, ...] = ("center", "scale", "log", "poly", "bs", "ns", "log_size", "size_class", "lag")
ONE_COLUMN: tuple[Function, ...] = ("", "C", "center", "scale", "log", "log_size", "size_class", "lag")
"""Functions of numbers alone; functions that make one column, or one for each level."""

ELSEWHERE = {  # what is not a function of columns
    "offset": "offset() is a term of its own",
    "cbind": "a response is one column: a share, with trials as weights, or counts with trials as exposure",
}


@dataclass(frozen=True, slots=True)
class Factor:
    """One column, perhaps through an allowed function: ``wage``, ``log(wage)``, ``poly(wage, 2)``."""

    column: str
    function: Function = ""
    arguments: tuple[tuple[str, float], ...] = ()
    contrast: Contrast = ""
    """The coding of levels of categories: in the text by `C(x, sum)`, or beside it by an option."""

    def coded(self, kinds: Collection[str]) -> bool:
        """Whether it is a category, where those of `kinds` are without a function."""
        return case_of(self.function, dict.fromkeys(NUMERIC, False) | {"": self.column in kinds, "C": True})

    def __str__(self) -> str:
        if not self.function:
            return self.column
        arguments = [f"{name}={value:g}" if name else f"{value:g}" for name, value in self.arguments]
        coding = [self.contrast] if self.contrast and self.coded(()) else []
        return f"{self.function}({', '.join([self.column, *arguments, *coding])})"


# A term is the product of its factors; the empty product is the intercept.
Term: TypeAlias = tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class RandomTerm:
    """``(terms | group)``: one covariance matrix over `terms`, one draw per level of the crossed `group` columns."""

    terms: tuple[Term, ...]
    group: tuple[str, ...]
    nested: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """lme4's name of the grouping factor, such as ``cask:batch``, or ``c:(b:a)`` for ``a/b/c``."""
        *inner, outermost = self.group
        if not self.nested:
            return ":".join(self.group)
        name = outermost
        for depth, column in enumerate(reversed(inner)):
            name = f"{column}:({name})" if depth else f"{column}:{name}"
        return name

    def __str__(self) -> str:
        inside = [":".join(map(str, term)) if term else "1" for term in self.terms]
        return f"({' + '.join(inside if () in self.terms else ['0', *inside])} | {self.name})"


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that has been read. Fixed terms are in R's order: intercept, main effects, interactions.

    `offsets` are columns that are added to the linear predictor as they are.
    """

    text: str
    response: Factor
    fixed: tuple[Term, ...]
    random: tuple[RandomTerm, ...]
    made: tuple[tuple[str, Node], ...] = ()
    """Columns that are made of others, by the name under which terms have them."""
    offsets: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[str, ...]:
        """Every column that the data must have, response first."""
        made = dict(self.made)
        own = [arithmetic.columns(made[name]) if name in made else [name] for name in (*self.columns, *self.offsets)]
        return tuple(dict.fromkeys(name for names in own for name in names))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column the formula mentions, response first."""
        terms = [*self.fixed, *(term for random in self.random for term in random.terms)]
        names = [self.response.column, *(f.column for term in terms for f in term)]
        return tuple(dict.fromkeys([*names, *(g for random in self.random for g in random.group)]))


def lag_name(column: str, lag: int) -> str:
    """The name of a coefficient of an earlier response."""
    return str(Factor(column, "lag", (("", float(lag)),)))


def without_lags(model: Formula) -> tuple[Formula, tuple[int, ...]]:
    """The formula without its terms `lag(y, k)` of the response y, and the k of these, ascending.

    A lag of another column, or one that is multiplied or has a random slope, is refused.
    """
    terms = [*model.fixed, *(term for random in model.random for term in random.terms)]
    found = [(term, factor) for term in terms for factor in term if factor.function == "lag"]
    for term, factor in found:
        if factor.column != model.response.column:
            raise FormulaError(
                f"{factor} is an earlier value of another column than the response {model.response.column!r}.",
                "Earlier responses can be made here; an earlier value of a public column is a public column.",
                "Make that column first, and use it by its name.",
                about="formula",
            )
        if len(term) > 1 or term not in model.fixed:
            raise FormulaError(
                f"{factor} stands in a product or in a random term of {model.text!r}.",
                "An earlier response is a term of its own: its products with other columns are not summed.",
                f"Write + {factor}.",
                about="formula",
            )
    lags = sorted({int(factor.arguments[0][1]) for _, factor in found})
    return replace(model, fixed=tuple(t for t in model.fixed if not any(f.function == "lag" for f in t))), tuple(lags)


def refuse_lags(model: Formula) -> None:
    """Rows of a fit have no order in time."""
    if lags := without_lags(model)[1]:
        raise FormulaError(
            f"lag({model.response.column}, {lags[0]}) was requested from a fit that does not know which rows are "
            f"earlier.",
            "Private releases by noisy sums do, with a series and a time.",
            "Make a column of earlier responses first, and use it by its name.",
            about="formula",
        )


@concerning("formula")
def read_formula(text: str, *, needs_random: bool = True) -> Formula:
    """Read a formula, or raise `FormulaError` that says where reading stopped and why.

    Without `needs_random`, a formula of fixed terms only is read too.
    """
    if not isinstance(text, str):
        raise FormulaError(f"A formula is text, not a {type(text).__name__}.", "Example: 'y ~ x + (1 | g)'.")
    if len(text) > LONGEST:
        raise FormulaError(
            f"The formula has {len(text):,} characters.", f"It may have {LONGEST:,}.", "Leave terms out."
        )
    reader = _Reader(text)
    response = reader.factor()
    possible = dict.fromkeys(("C", "poly", "bs", "ns", "log_size", "size_class", "lag"), False)
    if not case_of(response.function, possible | dict.fromkeys(("", "log", "center", "scale"), True)):
        reader.fail(f"the response is {response}; it must be a numeric column or its log, center or scale")
    reader.expect("~")
    expression = reader.sum(implicit_intercept=True)
    if reader.token:
        reader.fail(f"{reader.token!r} was not expected")
    if needs_random and not expression.random:
        raise FormulaError(
            f"Formula {text!r} has no (... | group) term, so there is nothing to mix.",
            remedy="Add one such as (1 | county), or fit it by ordinary least squares.",
        )
    repeated = [str(t) for i, t in enumerate(expression.random) if t in expression.random[:i]]
    if repeated:
        raise FormulaError(f"Formula {text!r} has the term {repeated[0]} twice.", "One is enough, so drop the other.")
    random, made = tuple(expression.random), with_numbers(reader.made, response.column)
    return Formula(text, response, expression.ordered(reader.seen), random, made, tuple(reader.offsets))


class _Expression:
    """Terms and random terms, so far; a product of the same factors is one term, whatever their order."""

    def __init__(
        self, terms: Iterable[Term] = (), random: Iterable[RandomTerm] = (), *, drops_intercept: bool = False
    ) -> None:
        self.known: dict[frozenset[Factor], Term] = {}
        self.random = list(random)
        self.drops_intercept = drops_intercept
        for term in terms:
            self.add(term)

    @property
    def terms(self) -> list[Term]:
        return list(self.known.values())

    def add(self, term: Term) -> None:
        self.known.setdefault(frozenset(term), term)

    def remove(self, term: Term) -> None:
        self.known.pop(frozenset(term), None)

    def ordered(self, seen: list[Factor]) -> tuple[Term, ...]:
        """R's order: terms by their number of factors, factors of a term as they first appear in the formula."""
        place = {factor: at for at, factor in reversed(list(enumerate(seen)))}
        return tuple(tuple(sorted(term, key=place.__getitem__)) for term in sorted(self.terms, key=len))


_TOKEN = re.compile(
    r"\s*(?P<name>[A-Za-z_][\w.]*|`[^`]+`)|\s*(?P<number>\d+(?:\.\d+)?)|\s*(?P<operator>\|\||\*\*|[<>=!]=|[-+*/:^~|(),=<>&!])"
)


class _Reader:
    """R's precedence, loosest first: ``| + - * / : ^``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.position = 0
        self.depth = 0
        self.products = 0
        self.seen: list[Factor] = []
        self.made: dict[str, Node] = {}
        self.offsets: list[str] = []
        rest = text.rstrip()
        start = 0
        while start < len(rest):
            match = _TOKEN.match(rest, start)
            if not match:
                self.fail(f"{rest[start:].strip()[:12]!r} is not part of the formula language")
            self.tokens.append(match.group(match.lastgroup or 0))
            start = match.end()

    @property
    def token(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.token
        self.position += 1
        return token

    def accept(self, *wanted: str) -> str:
        return self.take() if self.token in wanted else ""

    def expect(self, wanted: str) -> None:
        if not self.accept(wanted):
            self.fail(f"{wanted!r} was expected, not {self.token or 'the end'!r}")

    def fail(self, reason: str) -> NoReturn:
        raise FormulaError(
            f"Formula {self.text!r} cannot be read: {reason}.",
            f"It may use columns, numbers, + - * / : ^, {', '.join(FUNCTIONS)}, comparisons in I() and (... | group).",
            "Example: y ~ x + (1 | g).",
        )

    def sum(self, *, implicit_intercept: bool) -> _Expression:
        total = _Expression([()] if implicit_intercept else [])
        sign = self.accept("+", "-") or "+"
        while True:
            part = self.product()
            if sign == "-":
                if part.random:
                    self.fail("a random term cannot be subtracted")
                for term in part.terms:
                    total.remove(term)
                if part.drops_intercept:
                    total.add(())
            else:
                if part.drops_intercept:
                    total.remove(())
                for term in part.terms:
                    total.add(term)
                total.random.extend(part.random)
            total.drops_intercept |= part.drops_intercept if sign == "+" else () in part.terms
            sign = self.accept("+", "-")
            if not sign:
                return total

    def product(self) -> _Expression:
        left = self.interaction()
        while operator := self.accept("*", "/"):
            right = self.interaction()
            self.fixed_only(left, right, operator)
            inner = left.terms if operator == "*" else [tuple(dict.fromkeys(sum(left.terms, ())))]
            crossed = _Expression(list(left.terms))
            for term in [*(right.terms if operator == "*" else []), *self.crossed(inner, right.terms)]:
                crossed.add(term)
            left = crossed
        return left

    def interaction(self) -> _Expression:
        left = self.power()
        while operator := self.accept(":"):
            right = self.power()
            self.fixed_only(left, right, operator)
            left = _Expression(self.crossed(left.terms, right.terms))
        return left

    def power(self) -> _Expression:
        base = self.atom()
        if operator := self.accept("^", "**"):
            exponent = self.take()
            if not exponent.isdigit() or not 1 <= int(exponent) <= 8:
                self.fail(f"{operator} needs a whole number from 1 to 8")
            self.fixed_only(base, base, operator)
            raised = _Expression(list(base.terms))
            for _ in range(int(exponent) - 1):
                for term in self.crossed(raised.terms, base.terms):
                    raised.add(term)
            return raised
        return base

    def crossed(self, left: list[Term], right: list[Term]) -> list[Term]:
        self.products += len(left) * len(right)
        if self.products > MOST_PRODUCTS:
            self.fail(f"its products have more than {MOST_PRODUCTS:,} terms together")
        return [tuple(dict.fromkeys((*a, *b))) for a in left for b in right]

    def fixed_only(self, left: _Expression, right: _Expression, operator: str) -> None:
        if left.random or right.random or left.drops_intercept or right.drops_intercept:
            self.fail(f"{operator!r} joins fixed terms only")

    def atom(self) -> _Expression:
        if self.accept("("):
            self.depth += 1
            if self.depth > DEEPEST:
                self.fail(f"parentheses are nested more than {DEEPEST} deep")
            before = len(self.seen)
            inside = self.sum(implicit_intercept=False)
            if bar := self.accept("|", "||"):
                if not inside.drops_intercept:
                    inside.add(())
                inside = self.random(inside, self.seen[before:], separate=bar == "||")
                del self.seen[before:]
            self.expect(")")
            self.depth -= 1
            return inside
        if self.token in ("0", "1"):
            return _Expression([()]) if self.take() == "1" else _Expression(drops_intercept=True)
        if self.token in ("|", "||"):
            self.fail("write random terms in parentheses, such as (1 | g)")
        if self.token == "offset" and self.tokens[self.position + 1 : self.position + 2] == ["("]:
            self.take(), self.take()
            node = arithmetic.read(self, "I")[2]
            name = arithmetic.spelled(node)
            if node[0] != "column":
                self.made[name] = node
            self.offsets.append(name)
            return _Expression()
        self.seen.append(self.factor())
        return _Expression([(self.seen[-1],)])

    def random(self, inside: _Expression, seen: list[Factor], *, separate: bool) -> _Expression:
        if inside.random:
            self.fail("a random term cannot stand inside another")
        terms = inside.ordered(seen)
        if not terms:
            self.fail("a random term has nothing before its |")
        nested = [self.crossed_names()]
        while self.accept("/"):
            nested.append(self.crossed_names())
        # a/b/c are the groups c:b:a, b:a and a, finest first, as lme4 expands and names them.
        groups = [
            tuple(name for part in reversed(nested[: depth + 1]) for name in part) for depth in range(len(nested))
        ]
        blocks = [(term,) for term in terms] if separate else [terms]
        found = [RandomTerm(block, group, len(nested) > 1) for group in reversed(groups) for block in blocks]
        return _Expression(random=found)

    def crossed_names(self) -> list[str]:
        names = [self.name()]
        while self.accept(":"):
            names.append(self.name())
        return names

    def name(self) -> str:
        token = self.take()
        if not re.match(r"[A-Za-z_`]", token):
            self.fail(f"a column name was expected, not {token or 'the end'!r}")
        return token.strip("`")

    def factor(self) -> Factor:
        quoted = self.token.startswith("`")
        name = self.name()
        if quoted or not self.accept("("):
            return Factor(name)
        if name not in FUNCTIONS or name == "offset":
            self.fail(ELSEWHERE.get(name, f"function {name!r} is not allowed"))
        if name in MAKERS:
            node = arithmetic.read(self, name)
            self.made[arithmetic.spelled(node)] = node
            return Factor(arithmetic.spelled(node))
        column = self.name()
        if name == "C" and self.accept(","):
            coding = self.name()
            if coding not in CONTRASTS:
                self.fail(f"C({column}, {coding}) is no coding; there are {', '.join(CONTRASTS)}")
            self.expect(")")
            return Factor(column, "C", contrast=coding)  # type: ignore[arg-type]
        arguments: list[tuple[str, float]] = []
        while self.accept(","):
            keyword = self.name() if re.match(r"[A-Za-z_]", self.token) else ""
            if keyword:
                self.expect("=")
            value = self.take()
            if not re.fullmatch(r"\d+(?:\.0+)?", value) or not 1 <= float(value) <= LARGEST_BASIS:
                self.fail(f"argument {value or 'nothing'!r} of {name} is not a number from 1 to {LARGEST_BASIS}")
            arguments.append((keyword or ("df" if name in ("bs", "ns") and not arguments else ""), float(value)))
        self.expect(")")
        if name == "lag" and [keyword for keyword, _ in arguments] != [""]:
            self.fail("lag takes a column and how many periods earlier, such as lag(y, 1)")
        allowed = {"poly": ("", "degree"), "bs": ("df", "degree"), "ns": ("df",), "lag": ("",)}.get(name, ())
        if any(keyword not in allowed for keyword, _ in arguments):
            self.fail(f"{name} takes {' and '.join(filter(None, allowed)) or 'only a column'}")
        return Factor(column, name, tuple(arguments))  # type: ignore[arg-type]
