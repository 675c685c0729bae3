from __future__ import annotations

import contextlib
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.models.formula.formula import Formula, read_formula
from discreet.words.errors import FormulaError
from faults_of import about


def fixed(text: str) -> list[str]:
    return [":".join(map(str, term)) or "1" for term in read_formula(text).fixed]


def random(text: str) -> list[str]:
    return [str(term) for term in read_formula(text).random]


@pytest.mark.parametrize(
    ("right", "terms"),
    [
        ("1", ["1"]),
        ("x", ["1", "x"]),
        ("0 + x", ["x"]),
        ("x - 1", ["x"]),
        ("x + 0", ["x"]),
        ("a * b", ["1", "a", "b", "a:b"]),
        ("a:b + a", ["1", "a", "a:b"]),
        ("a / b", ["1", "a", "a:b"]),
        ("(a + b) / c", ["1", "a", "b", "a:b:c"]),
        ("(a + b + c)^2 - a:b", ["1", "a", "b", "c", "a:c", "b:c"]),
        ("a*b*c - a:b:c", ["1", "a", "b", "c", "a:b", "a:c", "b:c"]),
        ("a + a", ["1", "a"]),
        ("a:b + b:a", ["1", "a:b"]),
        ("poly(x, 2) + bs(z, df=4) + C(k)", ["1", "poly(x, 2)", "bs(z, df=4)", "C(k)"]),
        ("`two words` + x.y", ["1", "two words", "x.y"]),
    ],
)
def test_fixed_terms_expand_as_in_r(right: str, terms: list[str]) -> None:
    assert fixed(f"y ~ {right} + (1 | g)") == terms


@pytest.mark.parametrize(
    ("term", "expanded"),
    [
        ("(1 | g)", ["(1 | g)"]),
        ("(x | g)", ["(1 + x | g)"]),
        ("(0 + x | g)", ["(0 + x | g)"]),
        ("(x || g)", ["(1 | g)", "(0 + x | g)"]),
        ("(1 | a/b)", ["(1 | b:a)", "(1 | a)"]),
        ("(1 | a/b/c)", ["(1 | c:(b:a))", "(1 | b:a)", "(1 | a)"]),
        ("(1 | a:b)", ["(1 | a:b)"]),
        ("(x*z | g)", ["(1 + x + z + x:z | g)"]),
        ("(1 | g) + (1 | h)", ["(1 | g)", "(1 | h)"]),
    ],
)
def test_random_terms_expand_as_in_lme4(term: str, expanded: list[str]) -> None:
    assert random(f"y ~ {term}") == expanded


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y ~ x", "nothing to mix"),
        ("y ~ 1 | g", "'|' was not expected"),
        ("y ~ x + (1 | g", "')' was expected"),
        ("y ~ (1 | g) + (1 | g)", "twice"),
        ("y ~ x * (1 | g)", "joins fixed terms only"),
        ("y ~ x - (1 | g)", "cannot be subtracted"),
        ("y ~ ((1 | g) | h)", "inside another"),
        ("y ~ (0 | g)", "nothing before"),
        ("y ~ (1 | 3)", "column name was expected"),
        ("~ x + (1 | g)", "column name was expected"),
        ("y", "'~' was expected"),
        ("C(y) ~ (1 | g)", "the response is C(y)"),
        ("y ~ gamma(x) + (1 | g)", "function 'gamma' is not allowed"),
        ("y ~ __import__(os) + (1 | g)", "is not allowed"),
        ("y ~ __import__('os').system('ls') + (1 | g)", "not part of the formula language"),
        ("y ~ os.system(x) + (1 | g)", "function 'os.system' is not allowed"),
        ("y ~ log(x).__class__ + (1 | g)", "not part of the formula language"),
        ("y ~ {open(f)} + (1 | g)", "not part of the formula language"),
        ("y ~ x[0] + (1 | g)", "not part of the formula language"),
        ("y ~ poly(x, z) + (1 | g)", "was expected"),
        *((f"y ~ poly(x, {size}) + (1 | g)", "1 to 1000") for size in ("0", "1001", "9999999999", "2.5")),
        *((f"y ~ bs(x, {k}={v}) + (1 | g)", "1 to 1000") for k in ("df", "degree") for v in ("0", "9999999999", "4.7")),
        ("y ~ log(x, 2) + (1 | g)", "takes only a column"),
        ("y ~ x^99 + (1 | g)", "1 to 8"),
        ("y ~ " + "(" * 500 + "x" + ")" * 500 + " + (1 | g)", "nested more than"),
    ],
)
def test_refusals_say_why(text: str, reason: str) -> None:
    with pytest.raises(FormulaError) as caught:
        read_formula(text)
    assert reason in str(caught.value)


def test_fixed_terms_alone_are_read_when_asked() -> None:
    assert read_formula("y ~ x", needs_random=False).random == ()


@given(st.text(alphabet="yxabg01~+-*/:^|() ,=.`_C{}\"'", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(FormulaError):
        assert isinstance(read_formula(text), Formula)


@pytest.mark.parametrize(
    "text",
    [
        "y ~ (a+b+c+d+e+f+g+h+i+j+k+l+m+n)^7 + (1 | g)",
        "y ~ " + " + ".join(f"x{i}" for i in range(20_000)),
        "y ~ " + "*".join(f"x{i}" for i in range(40)),
    ],
    ids=["power", "length", "product"],
)
def test_a_formula_that_multiplies_out_without_end_is_refused_at_once(text: str) -> None:
    with pytest.raises(FormulaError, check=about("formula")):
        read_formula(text, needs_random=False)


@pytest.mark.parametrize(
    "right",
    [
        "+".join(f"(a*b*c*d*e*f*g*h*i|g{k})" for k in range(18)),
        "*".join(f"a{i}" for i in range(22)) + "+(1|g)",
        "(" + "+".join(f"a{i}" for i in range(30)) + ")^3+(1|g)",
        "+".join("(a+b+c+d)^4" for _ in range(60)) + "+(1|g)",
        "+".join(f"a{i}" for i in range(900)) + "+(1|g)",
    ],
)
def test_a_formula_is_read_or_refused_with_little_work(right: str) -> None:
    calls = 0

    def count(_frame: object, _event: str, _argument: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        read_formula(f"y ~ {right}")
    except FormulaError as error:
        assert "products have more than" in str(error)
    finally:
        sys.setprofile(None)
    assert calls < 400_000


@pytest.mark.parametrize("name", ["ns", "bs"])
def test_splines_take_their_size_in_the_second_place(name: str) -> None:
    """As R does. Red before: "ns takes df"."""
    assert read_formula(f"y ~ {name}(x, 4) + (1 | g)").text != "" and (
        read_formula(f"y ~ {name}(x, 4) + (1 | g)").fixed == read_formula(f"y ~ {name}(x, df=4) + (1 | g)").fixed
    )
