"""The meaning of a dot in a formula: every other column, or the old formula in an update."""

from __future__ import annotations

import re
from collections.abc import Iterable

from discreet.errors import FormulaError

LONE = r"(?<![\w.`])\.(?![\w.])"


def with_every_column(text: str, columns: Iterable[str]) -> str:
    """R's dot on the right side: every column that the formula does not name otherwise."""
    if not isinstance(text, str) or "~" not in text or not re.search(LONE, text.split("~", 1)[1]):
        return text
    left, right = text.split("~", 1)
    named = set(re.findall(r"`([^`]+)`|([A-Za-z_][\w.]*)", text))
    known = {name for pair in named for name in pair if name}
    others = [c if re.fullmatch(r"[A-Za-z_][\w.]*", c) else f"`{c}`" for c in columns if c not in known]
    return f"{left}~{re.sub(LONE, ' + '.join(others) or '1', right)}"


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
