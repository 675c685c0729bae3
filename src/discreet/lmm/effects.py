"""Effects by the name of their group, and levels by theirs; a wrong name is an error that names others."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NoReturn, TypeVar

from discreet.errors import UnknownName

Term = TypeVar("Term")


class ByGroup(dict[str, Term]):
    """Random terms by the name of their grouping factor."""

    def __missing__(self, group: object) -> NoReturn:
        raise UnknownName(
            f"{group!r} is not a group of this model.",
            f"It has {_some(group, list(self))}." if self else "It has no random effects.",
            "Use one of `effects.keys()`." if self else "Add a term such as (1 | county) to the formula.",
            about="group",
        )


def place(level: object, levels: Sequence[str], group: str) -> int:
    """Where a level is among those of its group."""
    if level not in levels:
        raise UnknownName(
            f"{level!r} is not a level of {group!r}, which has {len(levels):,}.",
            "Levels are text, as in `levels`.",
            f"Use for example {_some(level, levels)}.",
            about="level",
        )
    return levels.index(str(level))


def _some(asked: object, names: Sequence[str]) -> str:
    return " or ".join(map(repr, difflib.get_close_matches(str(asked), names, n=2) or names[:2]))
