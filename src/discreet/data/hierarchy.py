"""Declared hierarchies: which attribute of a workplace follows from which, from the finest level to the coarsest.

A county lies in one state, a six-digit industry in one sector. So a table by state is a sum of one by county, though
neither has the attributes of the other. Parents are columns of the data, the first characters of a code, or in a lookup
file; all of it is public. Here are names alone: codes and their parents are in `lineage`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from discreet.words.errors import DataError
from discreet.words.faults import Argument, Fault, Sentence
from discreet.words.names import misnamed

ORDER = "Levels go from the finest to the coarsest: a code of each has one parent in the next."


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Levels of which each is a part of the next.

    Attributes
    ----------
    levels : the attributes, from the finest to the coarsest.
    prefix : how many first characters of the finest code make each level's, where parents are prefixes.
    lookup : a file with one column per level, where parents are looked up.

    Examples
    --------
    >>> Hierarchy(["naics6", "naics4", "naics2"], prefix=[6, 4, 2]).derived
    ('naics4', 'naics2')
    """

    levels: Sequence[str]
    prefix: Sequence[int] | None = None
    lookup: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if self.prefix is not None:
            object.__setattr__(self, "prefix", tuple(self.prefix))

    @property
    def derived(self) -> tuple[str, ...]:
        """The levels that are no columns of the data."""
        return () if self.prefix is None and self.lookup is None else tuple(self.levels[1:])

    @property
    def finest(self) -> str:
        """The first level."""
        return self.levels[0]

    def to_dict(self) -> list[str] | dict[str, Any]:
        """The form that `declared` reads, for JSON; only the name of a file is kept."""
        if not self.derived:
            return list(self.levels)
        where = None if self.lookup is None else self.lookup.replace("\\", "/").rpartition("/")[2]
        found = {"levels": list(self.levels), "prefix": self.prefix and list(self.prefix), "lookup": where}
        return {key: value for key, value in found.items() if value is not None}


def declared(given: Mapping[str, Any]) -> dict[str, Hierarchy]:
    """Hierarchies by name, each a list of levels or a table with `levels` and `prefix` or `lookup`."""
    if not isinstance(given, Mapping):
        raise DataError(
            (Argument("hierarchy", given), " declares no levels."),
            "It gives the levels of each hierarchy by its name.",
            ("Use for example ", Argument("hierarchy", {"place": ["county", "state"]}), "."),
            about="hierarchy",
        )
    found: dict[str, Hierarchy] = {}
    faults: list[Fault] = []
    for name, value in given.items():
        hierarchy, wrong = _one(value)
        faults += [Fault(f"hierarchy.{name}", f"The hierarchy {name!r} {words}", *more) for words, *more in wrong]
        if hierarchy is not None and not wrong:
            found[name] = hierarchy
            faults += misnamed(hierarchy.derived, f"hierarchy.{name}", what="Level")
    faults += _shared(found)
    faults += misnamed(map(str, given), "hierarchy", what="Hierarchy")
    if faults:
        raise DataError(*faults)
    return found


def _one(value: object) -> tuple[Hierarchy | None, list[tuple[str, *tuple[Sentence, ...]]]]:
    """One hierarchy as declared, and its faults."""
    if isinstance(value, Hierarchy):
        return value, _wrong(value)
    content = dict(value) if isinstance(value, Mapping) else {"levels": value}
    levels, prefix, lookup = content.pop("levels", None), content.pop("prefix", None), content.pop("lookup", None)
    if content:
        return None, [(f"does not know {', '.join(map(repr, content))}.", "It has levels, prefix and lookup.")]
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        return None, [(f"has no list of levels but {levels!r:.40}.", ORDER, "Use for example ['county', 'state'].")]
    levels = list(levels)
    if not all(isinstance(level, str) and level for level in levels):
        return None, [(f"has levels that are no names: {levels!r:.60}.", ORDER, "Name attributes of workplaces.")]
    whole = isinstance(prefix, list | tuple) and all(type(n) is int for n in prefix)
    if prefix is not None and not (isinstance(prefix, Sequence) and whole):
        return None, [(f"has prefix = {prefix!r:.40}.", "It counts characters, for each level.", "Use [6, 4, 2].")]
    if lookup is not None and not isinstance(lookup, str):
        lookup = str(lookup)
    hierarchy = Hierarchy(levels, prefix, lookup)
    return hierarchy, _wrong(hierarchy)


def _wrong(hierarchy: Hierarchy) -> list[tuple[str, *tuple[Sentence, ...]]]:
    levels, prefix = hierarchy.levels, hierarchy.prefix
    twice = next((level for i, level in enumerate(levels) if level in levels[:i]), None)
    if twice is not None:
        return [(f"comes back to {twice!r}: it goes in a circle.", ORDER, "Name each level once.")]
    if len(levels) < 2:
        return [(f"has {len(levels)} levels.", "It has two or more.", "Add the level above, or leave it out.")]
    if prefix is not None and hierarchy.lookup is not None:
        return [("has a prefix and a lookup.", "Parents come from one of them.", "Leave one out.")]
    if prefix is not None:
        falls = all(one > other for one, other in pairwise(prefix))
        if len(prefix) != len(levels) or not falls or prefix[-1] < 1:
            possible = "It has one number of characters for each level, each smaller than the one before."
            return [(f"has prefix = {list(prefix)} for {len(levels)} levels.", possible, ORDER)]
    return []


def _shared(found: Mapping[str, Hierarchy]) -> list[Fault]:
    """A level of two hierarchies would have two parents."""
    home: dict[str, str] = {}
    faults = []
    for name, hierarchy in found.items():
        for level in hierarchy.levels:
            if level in home:
                faults.append(
                    Fault(
                        f"hierarchy.{name}",
                        f"{level!r} is a level of the hierarchies {home[level]!r} and {name!r}.",
                        "An attribute has one parent at most: two could lead back to each other.",
                        "Join them to one, or leave the level out of one of them.",
                    )
                )
            home.setdefault(level, name)
    return faults


def ancestors(attribute: str, hierarchies: Iterable[Hierarchy]) -> frozenset[str]:
    """The attribute itself and all levels above it."""
    for hierarchy in hierarchies:
        if attribute in hierarchy.levels:
            return frozenset(hierarchy.levels[list(hierarchy.levels).index(attribute) :])
    return frozenset({attribute})


def covers(fine: Iterable[str], coarse: Iterable[str], hierarchies: Iterable[Hierarchy] = ()) -> bool:
    """Whether a table by `coarse` is a sum of one by `fine`: `fine` has each of its attributes, or a level below it."""
    chains = tuple(hierarchies)
    known = {level for attribute in fine for level in ancestors(attribute, chains)}
    return known >= {*coarse}
