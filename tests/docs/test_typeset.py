"""Formulas of the proofs are set as MathML: nothing is lost, moved or added, and sentences stay sentences."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PROOFS = sorted((DOCS / "proofs").glob("*.md"))


def module() -> Any:
    spec = importlib.util.spec_from_file_location("typeset", DOCS / "typeset.py")
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


typeset = module()


def shown(mathml: str) -> str:
    """The text of a formula, without spaces."""
    return re.sub(r"\s", "", "".join(ElementTree.fromstring(f"<all>{mathml}</all>").itertext()))


def meant(text: str) -> str:
    """The source with its names and signs as they are shown, without the marks of scripts and brackets of any kind."""
    parts = []
    text = re.sub(
        r"(['’]+)(_(?:\w|\([^)]*\)|{[^}]*}))", r"\2\1", text
    )  # a prime and a subscript stand above each other
    for kind, word in typeset.tokens(text):
        name = re.sub(r"\d+$", "", word)
        if kind == "word" and name in typeset.GREEK and word not in typeset.FUNCTIONS:
            word = typeset.GREEK[name] + word[len(name) :]
        elif kind == "letter" and word[0] in typeset.BELOW:
            word = typeset.digits(word)
        else:
            word = {"||": "‖", "'": "′", "’": "′", "sqrt": "", "√": ""}.get(word, typeset.SIGNS.get(word, word))
        parts.append(word)
    return re.sub(r"\s", "", "".join(parts))


def plain(text: str) -> str:
    return re.sub(r"[\^_(){}\[\]]", "", text)


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.stem)
def test_formulas_say_what_the_source_says(proof: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]+`", "", proof.read_text(encoding="utf-8"), flags=re.DOTALL)
    formulas = [piece for is_formula, piece in typeset.runs(text) if is_formula]
    assert len(formulas) > 5
    assert "".join(piece for _, piece in typeset.runs(text)) == text
    for piece in formulas:
        assert plain(shown(typeset.inline(piece))) == plain(meant(piece)), piece
    for block in re.findall(r"(?:^ {4}\S.*\n?)+", text, re.MULTILINE):
        assert plain(shown(typeset.display(block))) == plain(meant(block))


def formulas(sentence: str) -> list[str]:
    return [piece for is_formula, piece in typeset.runs(sentence) if is_formula]


def test_a_long_formula_is_cut_after_its_signs_and_never_in_a_script() -> None:
    long = "P(q_i + nu >= T + rho and so) <= e^(epsilon + b + c + d + e + f + g + h) P(q_i + nu >= T + rho + 1 + 2 + 3)"
    cut = typeset.pieces(long)
    assert "".join(cut).replace(" ", "") == long.replace(" ", "")
    assert any("e^(epsilon + b + c + d + e + f + g + h)" in piece for piece in cut)
    assert len(cut) > 4
    assert typeset.pieces("a <= b") == ["a <= b"]


def test_formulas_are_told_from_words() -> None:
    told = formulas("Put S = max(alpha x, 1), so x' <= 2; a law of Z on R^d.")
    assert told == ["S = max(alpha x, 1)", "x' <= 2", "Z", "R^d"]
    told = formulas("A strong (alpha, epsilon)-employer claim, see (1) and A3; I read a page of 10 %, e.g. here.")
    assert told == ["(alpha, epsilon)"]
    assert formulas("Smooth Gamma and Haney's min are names.") == []


@pytest.mark.parametrize(
    ("source", "mathml"),
    [
        ("e^-b", '<msup><mi>e</mi><mrow><mo form="prefix">−</mo><mi>b</mi></mrow></msup>'),
        ("e^(b/2)", '<msup><mi>e</mi><mrow><mi>b</mi><mo lspace="0.1em" rspace="0.1em">/</mo><mn>2</mn></mrow></msup>'),
        ("x_i^2", "<msubsup><mi>x</mi><mrow><mi>i</mi></mrow><mrow><mn>2</mn></mrow></msubsup>"),
        ("sigma2", "<msup><mi>σ</mi><mn>2</mn></msup>"),
        ("sqrt(p)", "<msqrt><mi>p</mi></msqrt>"),
        ("beta^ = 1", '<mover><mi>β</mi><mo>^</mo></mover><mo form="infix">=</mo><mn>1</mn>'),
    ],
)
def test_scripts_are_raised_and_lowered(source: str, mathml: str) -> None:
    assert typeset.Formula(source).row() == mathml
