"""Code lists of attributes, and identifiers that standards allow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.release.folder import PublishedTable, ReleaseFolder

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class CodeList:
    """The categories of an attribute in the order of publication.

    Attributes
    ----------
    attribute : its column.
    values : the categories, as the tables have them.
    identifiers : the same as identifiers of SDMX, in the same order.
    parents : of each category the one that it is part of, by the attribute of that level.
    """

    attribute: str
    values: tuple[Any, ...]
    identifiers: tuple[str, ...]
    parents: Mapping[str, tuple[Any, ...]]


def code_lists(releases: Sequence[ReleaseFolder], tables: Sequence[tuple[PublishedTable, pa.Table]]) -> list[CodeList]:
    """One list for each attribute of any table, with parents where a release publishes them."""
    found: dict[str, dict[Any, None]] = {}
    for published, table in tables:
        for name in published.attributes:
            values = found.setdefault(name, {})
            values.update(dict.fromkeys(table[name].unique().to_pylist()))
    lineages = [table for release in releases for table in release.parents().values()]
    lists = []
    for name, values in found.items():
        kept = tuple(value for value in values if value is not None)
        above = {
            level: lookup for lineage in lineages for level, lookup in _above(lineage, name).items() if level in found
        }
        parents = {level: tuple(lookup.get(value) for value in kept) for level, lookup in above.items()}
        lists.append(CodeList(name, kept, identifiers(kept), parents))
    return lists


def _above(lineage: pa.Table, level: str) -> dict[str, dict[Any, Any]]:
    """For each code of a level, its parents in the levels above."""
    levels = lineage.column_names
    if level not in levels:
        return {}
    codes = lineage[level].to_pylist()
    above = levels[levels.index(level) + 1 :]
    return {name: dict(zip(codes, lineage[name].to_pylist(), strict=True)) for name in above}


def identifiers(values: Iterable[Any]) -> tuple[str, ...]:
    """Distinct identifiers of letters, digits, _ and - that are as close to the values as possible."""
    taken: set[str] = set()
    found = []
    for value in values:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", str(value)).strip("_") or "X"
        name, number = plain, 2
        while name in taken:
            name, number = f"{plain}_{number}", number + 1
        taken.add(name)
        found.append(name)
    return tuple(found)


def component(name: str) -> str:
    """A column as SDMX spells components: capitals, beginning with a letter."""
    plain = identifiers([name])[0].upper().replace("-", "_")
    return plain if plain[:1].isalpha() else f"C_{plain}"
