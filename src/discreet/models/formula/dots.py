"""The meaning of a dot in a formula: every column without another part, or the old formula in an update."""

from __future__ import annotations

import re
from collections.abc import Iterable

from discreet.words.errors import FormulaError

LONE = r"(?<![\w.`])\.(?![\w.])"


def with_every_column(text: str, columns: Iterable[str], *, beside: Iterable[str] = ()) -> tuple[str, tuple[str, ...]]:
    """R's dot on the right side: every column that has no other part in the model. Also a note on those left out.

    Other parts are those of the response, of groups, of offsets and of columns `beside` the formula, such as weights.
    lme4 takes groups for fixed effects too, so there one writes `. - g`. Within a function a dot stays, and is refused.
    """
    if not isinstance(text, str) or "~" not in text:
        return text, ()
    left, right = text.split("~", 1)
    names, dots = _walk(right)
    if not dots:
        return text, ()
    columns = list(columns)
    response = {name for name, _ in _walk(left)[0]}
    apart = {name for name, part in names if part in ("group", "offset")} | set(beside)
    shown = [c if re.fullmatch(r"[A-Za-z_][\w.]*", c) else f"`{c}`" for c in columns if c not in response | apart]
    for at in reversed(dots):
        before, after = right[:at].rstrip()[-1:], right[at + 1 :].lstrip()[:1]
        whole = len(shown) > 1 and not (before in ("", "+", "(") and after in ("", "+", "-", ")", "|"))
        every = " + ".join(shown) or "1"
        right = f"{right[:at]}{f'({every})' if whole else every}{right[at + 1 :]}"
    said = {name for name, part in names if part == "term"}
    absent = [repr(column) for column in columns if column in apart - response - said]
    has = "has another part" if len(absent) == 1 else "have other parts"
    note = f"the dot leaves out {', '.join(absent)}, which {has} in the model. Add what should be a fixed effect too"
    return f"{left}~{right}", (note,) if absent else ()


def _walk(side: str) -> tuple[list[tuple[str, str]], list[int]]:
    """Columns that a side of a formula names, each with its part in it, and where a dot stands for columns."""
    names: list[tuple[str, str]] = []
    dots, parts = [], ["term"]
    for found in re.finditer(rf"`([^`]+)`|([A-Za-z_][\w.]*)(\s*\()?|[()|]|{LONE}", side):
        quoted, name, opens = found.groups()
        if quoted or (name and not opens):
            names.append((quoted or name, parts[-1]))
        elif name:
            inner = "offset" if name == "offset" else "value"
            parts.append("offset" if parts[-1] == "offset" else inner)
        elif found[0] == "(":
            parts.append(parts[-1])
        elif found[0] == ")":
            parts = parts[:-1] or ["term"]
        elif found[0] == "|":
            parts[-1] = "group" if parts[-1] == "term" else parts[-1]
        elif parts[-1] == "term":
            dots.append(found.start())
    return names, dots


def updated(old: str, new: str) -> str:
    """R's update of a formula: a single dot stands for the old side."""
    if new.count("~") != 1:
        raise FormulaError(
            f"update was asked with {new!r}.",
            "A formula has one ~, and a dot stands for the old side.",
            "Write '. ~ . + z'.",
        )
    sides = zip(old.split("~"), new.split("~"), strict=True)
    return " ~ ".join(re.sub(LONE, before.strip(), after).strip() for before, after in sides)
