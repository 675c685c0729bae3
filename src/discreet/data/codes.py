"""Codes: what stands for the categories of an attribute, as text. A code has one spelling, from the reader on.

A column of whole numbers, or of true and false, holds their spelling: 11 is the code "11", and "011" is another one.
What was declared as numbers means these codes. It is kept beside them, because the ledger has what was declared.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import Any, TypeAlias

Label: TypeAlias = str | int | bool
WHOLE = re.compile("-?[1-9][0-9]*|0")


class Codes(tuple[str, ...]):
    """Codes in their order.

    Attributes
    ----------
    declared : the same as they were declared.
    """

    declared: tuple[Label, ...]

    @classmethod
    def of(cls, values: Iterable[Label]) -> Codes:
        """The codes of some values."""
        if isinstance(values, cls):
            return values
        declared = tuple(values)
        found = cls(map(code, declared))
        found.declared = declared
        return found

    def among(self, kept: Container[Label] | None) -> Codes:
        """Those that are `kept`; all of them without such a list."""
        return self if kept is None else Codes.of(value for value in self.declared if code(value) in kept)


def code(value: Label) -> str:
    """The spelling of a value."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def unspelled(column: str, kind: Any, domain: Iterable[str], *, name: str) -> Iterator[str]:
    """What is wrong with a column of this type that is to have these codes: its values cannot be spelled so."""
    import narwhals.stable.v2 as nw

    if kind == nw.String:
        return
    whole = kind.is_integer()
    odd = [value for value in domain if not (WHOLE.fullmatch(value) if whole else value in ("true", "false"))]
    if odd:
        words = f"Column {column!r} of {name} holds {kind}, none of which is spelled {odd[0]!r}."
        yield f"{words} Write the domain as the column is, or the column as text at the source."
