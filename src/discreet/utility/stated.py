"""What published tables state: their numbers, and the level of their intervals, which is never guessed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Vector
from discreet.release.files import MANIFEST
from discreet.release.folder import open_release
from discreet.tables.movement.published import MovementRelease
from discreet.tables.release import CountRelease
from discreet.words.errors import DataError
from discreet.words.faults import Argument

DEEPEST = 3
"""Folders above a file in which its `release.json` is looked for: tables of a release lie in it or below."""


def missed(early: Any, late: Any, level: float | None, *, free: bool) -> float:
    """The largest chance that one of two intervals misses: as both state it, or as the level that is given says."""
    stated = [_stated(each) for each in (early, late)]
    if free and level is None:
        level = min((each for each in stated if each is not None), default=0.95)
    elif not free and level is None and None in stated:
        which = "neither of the tables" if stated == [None, None] else "only one of the tables"
        raise DataError(
            f"The level of the intervals was not given, and {which} has one beside it.",
            "Without it the chance of a false alarm is not known. `release.json` of a release has it.",
            "Give the level of the intervals, such as 0.95, or files that lie in their releases.",
            about="level",
        )
    elif not free and level is not None and any(each not in (None, level) for each in stated):
        told = " and ".join(f"{each:g}" for each in dict.fromkeys(stated) if each is not None)
        raise DataError(
            (Argument("level", level), f" was given, and the intervals were released at {told}."),
            "Published ends hold with the level of their release.",
            "Leave the level out.",
            about="level",
        )
    levels = [level, level] if free or level is not None else stated
    for each in levels:
        if not 0.5 < (each or 0) < 1:
            raise DataError(
                (Argument("level", each), " is no level of two intervals."),
                "Each fails with a chance of 1 - level, both together with the sum of these.",
                "Use the level of the releases, such as 0.95.",
                about="level",
            )
    return sum(1 - float(each or 0) for each in levels)


def _stated(table: Any) -> float | None:
    """The level that a release states, or `release.json` of the folder that a file was released in."""
    if isinstance(table, CountRelease | MovementRelease):
        return float(table.level)
    if not isinstance(table, str | Path):
        return None
    path = Path(table).absolute()
    for folder in path.parents[:DEEPEST]:
        if os.path.isfile(folder / MANIFEST):  # noqa: PTH113
            release = open_release(folder)
            mine = path.relative_to(folder).as_posix() in release.about["files"]
            return float(release.level) if mine and release.level is not None else None
    return None


def numbers_of(column: Sequence[Any], called: str, name: str) -> Vector:
    """The numbers of a column; NaN where there is none."""
    try:
        return np.array([np.nan if each is None else float(each) for each in column])
    except (TypeError, ValueError):
        raise DataError(
            f"Column {called!r} of the {name} table has text in it.",
            "Changes are between numbers.",
            "Give the published table, or name another value.",
            about=name,
        ) from None
