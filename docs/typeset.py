"""Formulas of the proofs as MathML, made while the site is built: no script, no font and no network.

The proofs stay text that anybody can read and compare: `psi(t) <= epsilon/2`, `e^(-b/2)`, `Σ_i p_i`. Here an indented
block becomes a display of aligned formulas, and a run of mathematics within a sentence a formula in the line. Only the
look changes: every number, letter and sign stands where it stood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx

FOLDER = "proofs/"
_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi . pi rho . sigma tau . phi chi psi omega"
)
GREEK = {name: chr(code) for code, name in enumerate(_NAMES.split(), start=0x3B1) if name != "."}
GREEK |= {name.title(): GREEK[name].upper() for name in ("delta", "lambda", "phi", "psi", "theta", "omega")}
"""Beta and Gamma with a capital are names of laws."""
FUNCTIONS = {
    *(
        "arccos",
        "arcsin",
        "arctan",
        "ceil",
        "cos",
        "cosh",
        "det",
        "diag",
        "exp",
        "expm1",
        "floor",
        "ln",
        "log",
        "log1p",
    ),
    *("max", "min", "rank", "ring", "round", "sign", "sin", "sinh", "sqrt", "sum", "sup", "tan", "tanh", "tr"),
}
SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "->": "→", "-": "−", "*": "·", "...": "…", "sum": "∑", "Σ": "∑"}
OPEN, CLOSE = "([{", ")]}"
BELOW = "₀₁₂₃₄₅₆₇₈₉"
THINGS = ("number", "word", "letter")
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<short>\b(?:e\.g|i\.e)\.)|(?P<number>\d+(?:,\d{3})*(?:\.\d+)?)|(?P<dots>\.\.\.)"
    r"|(?P<word>[A-Za-z]+(?:[A-Za-z]|\d)*(?:-[a-z]{2,})*(?:['’][a-z]+)?)|(?P<letter>[Α-Ωα-ωℓℝℤ]|[₀-₉]+)"
    r"|(?P<sign><=|>=|!=|->|\|\||[-<>=+−*·/^_|‖±≤≥≠→∈∞∝√∑'’×÷½⌊⌋!:])|(?P<bracket>[()\[\]{}])|(?P<other>.)",
    re.DOTALL,
)
RELATIONS = {"<=", ">=", "!=", "->", "<", ">", "=", "≤", "≥", "≠", "→", "∈", "∝"}
SUMS = {"+", "-", "−", "±"}
CERTAIN = {*RELATIONS, *"+^_·/±∞√∑‖×÷", "||"}
ENDLESS = {*CERTAIN - set("∞‖^") - {"||"}, *"-−*:!"}
"""Signs that no formula ends with."""
LONG, WIDE = 24, 40  # characters of a formula that may be cut, and that do not fit a telephone
ARTICLES = {"a", "A", "I"}
"""Letters that are words, unless a sign stands beside them."""


class Token(NamedTuple):
    kind: str
    text: str


def tokens(text: str) -> list[Token]:
    return [Token(str(m.lastgroup), m[0]) for m in TOKEN.finditer(text)]


def is_letter(token: Token) -> bool:
    """A variable: one letter, a Greek letter or its name, or one of these with digits."""
    name = re.sub(r"\d+$", "", token.text)
    return token.kind == "letter" or (token.kind == "word" and (len(name) == 1 or name in GREEK))


# -- one formula ------------------------------------------------------------------------------------------------------


class Formula:
    """A formula being read from the left."""

    def __init__(self, text: str) -> None:
        self.tokens, self.at = tokens(text), 0

    def row(self, until: str = "") -> str:
        """All parts up to a closing bracket, which stays."""
        parts: list[str] = []
        while self.at < len(self.tokens) and not (until and self.tokens[self.at].text == until):
            if self.tokens[self.at].kind == "space":
                self.at += 1
                if parts and self.between():
                    parts.append('<mspace width="0.22em"/>')
                continue
            parts.append(self.scripted())
        return "".join(parts)

    def between(self) -> bool:
        """Whether a space here stands for a product, between two things that are no signs."""
        before, after = self.tokens[self.at - 2], self.tokens[self.at] if self.at < len(self.tokens) else None
        ends = before.kind in THINGS or before.text in (*CLOSE, *"'’")
        return ends and after is not None and (after.kind in THINGS or after.text in OPEN)

    def scripted(self) -> str:
        """A part with its subscript, superscript and primes."""
        base = self.part()
        below = above = ""
        while self.at < len(self.tokens):
            sign = self.tokens[self.at].text
            if sign in ("'", "’"):
                self.at, above = self.at + 1, above + '<mo lspace="0" rspace="0">′</mo>'
            elif sign == "^" and self.hat():
                self.at, base = self.at + 1, f"<mover>{base}<mo>^</mo></mover>"
            elif sign == "^" or (sign == "_" and not below):
                self.at += 1
                operand = self.operand()
                below, above = (operand, above) if sign == "_" else (below, above + operand)
            elif sign[0] in BELOW and not below:
                self.at, below = self.at + 1, f"<mn>{digits(sign)}</mn>"
            else:
                break
        if not (below or above):
            return base
        tag = "msubsup" if below and above else "msub" if below else "msup"
        return f"<{tag}>{base}{''.join(f'<mrow>{one}</mrow>' for one in (below, above) if one)}</{tag}>"

    def hat(self) -> bool:
        """Whether a caret ends here: an estimate, as in `beta^`."""
        after = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else Token("space", " ")
        return after.kind in ("space", "other") or after.text in (*CLOSE, "=", "/", "'", "’")

    def operand(self) -> str:
        """What stands in a script: brackets around it are not shown."""
        sign = ""
        if self.at < len(self.tokens) and self.tokens[self.at].text in ("-", "−", "+"):
            sign = self.part()
        if self.at < len(self.tokens) and self.tokens[self.at].text in ("(", "{"):
            close = CLOSE[OPEN.index(self.tokens[self.at].text)]
            self.at += 1
            inner = self.row(close)
            self.at += 1
            return sign + inner
        return sign + (self.part() if self.at < len(self.tokens) else "")

    def part(self) -> str:
        """One number, letter, name, sign or bracket with what it holds."""
        kind, text = self.tokens[self.at]
        self.at += 1
        if text in OPEN:
            close = CLOSE[OPEN.index(text)]
            inner = self.row(close)
            if self.at < len(self.tokens):
                self.at += 1
                return f"<mrow>{mo(text)}<mrow>{inner}</mrow>{mo(close)}</mrow>"
            return mo(text) + inner
        if text in ("sqrt", "√") and self.at < len(self.tokens):
            return f"<msqrt>{self.operand()}</msqrt>"
        if kind == "number":
            return f"<mn>{text}</mn>"
        if text in RELATIONS | SUMS:
            between = text in RELATIONS or self.follows_a_thing()
            return mo(SIGNS.get(text, text), form="infix" if between else "prefix")
        if text in SIGNS:
            return mo(SIGNS[text])
        if kind == "letter":
            low = text[0] in BELOW
            return f"<msub><mrow></mrow><mn>{digits(text)}</mn></msub>" if low else f"<mi>{text}</mi>"
        if kind == "word":
            return word(text)
        return mo(text) if kind in ("sign", "bracket") or text in ",;" else f"<mtext>{escape(text)}</mtext>"

    def follows_a_thing(self) -> bool:
        """Whether the present sign stands after something that can be added to."""
        before = [token for token in self.tokens[max(0, self.at - 3) : self.at - 1] if token.kind != "space"]
        return bool(before) and (before[-1].kind in THINGS or before[-1].text in (*CLOSE, *"'’|‖∞", "||"))


def digits(text: str) -> str:
    return "".join(str(BELOW.index(digit)) for digit in text)


def word(text: str) -> str:
    """A variable with its digits below, a function, or a word of the sentence; `sigma2` is the square of sigma."""
    name, digits = re.fullmatch(r"(.*?)(\d*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    if text not in FUNCTIONS and (len(name) == 1 or name in GREEK):
        letter = f"<mi>{GREEK.get(name, name)}</mi>"
        tag = "msup" if text == "sigma2" else "msub"
        return f"<{tag}>{letter}<mn>{digits}</mn></{tag}>" if digits else letter
    return f"<mi>{text}</mi>" if text in FUNCTIONS else f"<mtext>{escape(text)}</mtext>"


def mo(sign: str, form: str = "") -> str:
    look = f' form="{form}"' if form else ""
    if sign in ("||", *"()[]{}|‖"):
        look = ' stretchy="false"'
    elif sign == "/":
        look = ' lspace="0.1em" rspace="0.1em"'
    return f"<mo{look}>{escape({'||': '‖'}.get(sign, sign))}</mo>"


def inline(text: str) -> str:
    """A formula within a line; a long one in pieces, so that the line can break where a sign ends one."""
    return "<wbr/>".join(f"<math>{Formula(piece).row()}</math>" for piece in pieces(text))


def pieces(text: str, deep: int = 0) -> list[str]:
    """A formula cut after its signs; what is still too wide for a telephone, also after those within brackets."""
    if len(text) <= (WIDE if deep else LONG) or deep > 3:
        return [text]
    scripts: list[bool] = []  # of each open bracket: whether it is, or is inside, a script or a root, which stay whole
    found = [""]
    for token in tokens(text):
        before = found[-1].rstrip()
        if token.text in OPEN:
            scripts.append(any(scripts) or before.endswith(("^", "_", "^-", "^−", "sqrt", "√")))
        elif token.text in CLOSE and scripts:
            scripts.pop()
        found[-1] += token.text
        outside = len(scripts) <= deep and not any(scripts)
        if outside and before and before[-1] not in "^_([{" and token.text in RELATIONS | SUMS:
            found.append("")
    return [part for piece in found if piece.strip() for part in pieces(piece.strip(), deep + 1)]


def display(text: str) -> str:
    """A block: a row for each line, a column for each part that wide space sets apart."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.strip("\n").splitlines() if line.strip()]
    wide = max(map(len, rows))
    cells = "".join(
        "<mtr>" + "".join(f"<mtd>{Formula(part).row()}</mtd>" for part in row + [""] * (wide - len(row))) + "</mtr>"
        for row in rows
    )
    table = f"<mtable>{cells}</mtable>"
    math = f'<math display="block" displaystyle="true">{table}</math>'
    return f'<div class="formula" tabindex="0" role="group" aria-label="formula">{math}</div>'


# -- formulas within sentences ----------------------------------------------------------------------------------------


def runs(text: str) -> Iterator[tuple[bool, str]]:
    """A sentence in pieces: (whether it is a formula, the piece)."""
    found = tokens(text)
    plain, at = "", 0
    while at < len(found):
        end = reach(found, at)
        if end > at:
            if plain:
                yield False, plain
            yield True, "".join(token.text for token in found[at:end])
            plain, at = "", end
        else:
            plain, at = plain + found[at].text, at + 1
    if plain:
        yield False, plain


def reach(found: list[Token], start: int) -> int:
    """Where the formula that begins at `start` ends; `start` itself where none begins."""
    if found[start].kind in ("space", "short", "other") or found[start].text in (*CLOSE, *"=<>/^_*:!'’·×÷∝⌋"):
        return start
    depth, at, ends = 0, start, [start]
    while at < len(found) and (possible(found, at) or (depth and found[at].text in ",;")):
        text = found[at].text
        depth += (text in OPEN) - (text in CLOSE)
        if depth < 0:
            break
        at += 1
        if not depth and found[at - 1].kind != "space" and found[at - 1].text not in ENDLESS:
            ends.append(at)
    for end in reversed(ends[1:]):
        if is_formula(found[start:end]):
            return end
    return start


def possible(found: list[Token], at: int) -> bool:
    """Whether a token can be part of a formula."""
    token = found[at]
    after = found[at + 1] if at + 1 < len(found) else Token("other", "")
    if token.kind == "word" and not is_letter(token):
        return token.text in FUNCTIONS and (after.text in ("(", "_", "[") or after.kind == "space")
    if token.text in ARTICLES:
        near = [one.text for one in (*found[max(0, at - 2) : at], *found[at + 1 : at + 3]) if one.kind != "space"]
        listed = at > 0 and found[at - 1].text in (*OPEN, " ") and after.text in (",", *CLOSE)
        return listed or any(text in CERTAIN or text in ("'", "-", "−", "|") for text in near)
    if token.kind in ("short", "other"):
        return False
    return not (token.kind == "space" and "\n" in token.text and after.kind not in ("number", "letter", "sign", "word"))


def is_formula(found: list[Token]) -> bool:
    """Whether it has a sign that only formulas have, a Greek letter, or is one letter that is no word."""
    things = [token for token in found if token.kind in ("number", "letter") or is_letter(token)]
    if not things:
        return False
    texts = {token.text for token in found}
    if len(found) == 1:
        return is_letter(found[0]) and found[0].text not in ARTICLES and not re.fullmatch(r"[A-Z]\d+", found[0].text)
    letters = [token for token in things if token.kind != "number"]
    return bool(letters) or bool(texts & (CERTAIN - {"/", "+"}))


# -- the site ---------------------------------------------------------------------------------------------------------


def typeset(app: Sphinx, doctree: nodes.document) -> None:
    """Set the formulas of a page of proofs."""
    if not app.env.docname.startswith(FOLDER):
        return
    for block in list(doctree.findall(nodes.literal_block)):
        if block.get("language") in (None, "none", "default"):
            block.replace_self(nodes.raw("", display(block.astext()), format="html"))
    skipped = (nodes.literal, nodes.literal_block, nodes.title, nodes.reference, nodes.raw, nodes.thead)
    for text in list(doctree.findall(nodes.Text)):
        if any(isinstance(parent, skipped) for parent in parents(text)):
            continue
        pieces = list(runs(str(text)))
        if any(math for math, _ in pieces):
            text.parent.replace(
                text,
                [nodes.raw("", inline(piece), format="html") if math else nodes.Text(piece) for math, piece in pieces],
            )


def parents(node: nodes.Node) -> Iterator[nodes.Node]:
    while (node := node.parent) is not None:
        yield node


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", typeset)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
