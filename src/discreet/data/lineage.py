"""Codes and their parents: the public list of establishments, asked once for each hierarchy.

`derive` adds the levels that are prefixes or looked up; `trace` collects every code of the finest level with all levels
above it, and refuses what is no hierarchy: a code without a parent, and one with two. Workplace attributes are public,
so these errors say which code it is. `Lineage` answers where a cell lies in a coarser table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np

from discreet.arrays import Integers
from discreet.data.frames import as_text, collect, open_frame, require, working
from discreet.data.hierarchy import ORDER, Hierarchy
from discreet.data.schema import Schema
from discreet.words.errors import DataError
from discreet.words.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from discreet.data.frames import Frame

ALIKE = "Two codes that read alike would be two cells."
ZEROS = ", and 1 is another code than 01"
SHOWN = 3
"""Codes that an error names."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lineage:
    """Public: every code of the finest level with its parents.

    Attributes
    ----------
    hierarchies : the declared ones, by name.
    codes : for each hierarchy one row per code of its finest level and one column per level.
    """

    hierarchies: Mapping[str, Hierarchy]
    codes: Mapping[str, pa.Table]

    def __repr__(self) -> str:
        told = ", ".join(f"{name} ({len(table):,} codes)" for name, table in self.codes.items())
        return f"<Lineage of {told or 'nothing'}>"

    @property
    def chains(self) -> tuple[Hierarchy, ...]:
        return tuple(self.hierarchies.values())

    def parents(self, values: Sequence[Any], *, level: str, of: str) -> list[Any]:
        """The parents in `level` of codes of a finer level `of`."""
        name = next(name for name, hierarchy in self.hierarchies.items() if {level, of} <= {*hierarchy.levels})
        table = self.codes[name]
        known = dict(zip(table[of].to_pylist(), table[level].to_pylist(), strict=True))
        return [known[value] for value in values]

    def within(self, keys: pa.Table) -> Lineage:
        """The hierarchies that have a level in this table: its codes, and the levels above."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kept, codes = {}, {}
        for name, hierarchy in self.hierarchies.items():
            level = next((level for level in hierarchy.levels if level in keys.column_names), None)
            if level is None or level == hierarchy.levels[-1]:
                continue
            levels = list(hierarchy.levels)[list(hierarchy.levels).index(level) :]
            table = self.codes[name].select(levels).group_by(levels).aggregate([])
            there = pc.unique(keys[level].combine_chunks())
            table = table.filter(pc.is_in(table[level], value_set=there.cast(table[level].type)))
            kept[name], codes[name] = Hierarchy(levels), table.sort_by(level)
        return Lineage(kept, {name: pa.table(table) for name, table in codes.items()})


def merged(lineages: Iterable[Lineage | None]) -> Lineage | None:
    """The lineage of all tables of a release together: each hierarchy with the most levels."""
    best: dict[str, tuple[Hierarchy, pa.Table]] = {}
    for lineage in lineages:
        for name, hierarchy in ({} if lineage is None else lineage.hierarchies).items():
            assert lineage is not None
            if name not in best or len(best[name][0].levels) < len(hierarchy.levels):
                best[name] = hierarchy, lineage.codes[name]
    if not best:
        return None
    return Lineage({name: pair[0] for name, pair in best.items()}, {name: pair[1] for name, pair in best.items()})


def positions(fine: pa.Table, coarse: pa.Table, lineage: Lineage | None = None) -> Integers:
    """For each row of keys, the row of the coarser keys that contains it; `LookupError` where there is none."""
    import pyarrow.compute as pc

    ours, theirs, size = np.zeros(len(fine), dtype=np.int64), np.zeros(len(coarse), dtype=np.int64), 1
    for name in coarse.column_names:
        column, own = coarse[name].combine_chunks().dictionary_encode(), parent_column(fine, name, lineage)
        rank, words = np.from_dlpack(column.indices).astype(np.int64), own.dictionary
        place = pc.index_in(words.cast(column.dictionary.type), value_set=column.dictionary)
        if place.null_count:
            raise LookupError(f"a cell has a {name} that the coarser table lacks")
        here = np.from_dlpack(place).astype(np.int64)[np.from_dlpack(own.indices)]
        n = len(column.dictionary)
        ours, theirs, size = ours * n + here, theirs * n + rank, size * n
        if size > 2**40:
            found, dense = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
            ours, theirs, size = dense[: len(ours)], dense[len(ours) :], len(found)
    order = np.argsort(theirs)
    at = np.minimum(np.searchsorted(theirs[order], ours), max(len(theirs) - 1, 0))
    if len(ours) and (not len(theirs) or (theirs[order[at]] != ours).any()):
        raise LookupError("a cell lies in no cell of the coarser table")
    return np.asarray(order[at], dtype=np.int64)


def parent_column(keys: pa.Table, name: str, lineage: Lineage | None) -> pa.DictionaryArray:
    """An attribute of every cell: a column of its keys, or the parents of one."""
    import pyarrow as pa

    if name in keys.column_names:
        return keys[name].combine_chunks().dictionary_encode()
    of = _below(name, keys.column_names, lineage)
    own = keys[of].combine_chunks().dictionary_encode()
    assert lineage is not None
    parents = pa.array(lineage.parents(own.dictionary.to_pylist(), level=name, of=of)).dictionary_encode()
    return pa.DictionaryArray.from_arrays(parents.indices.take(own.indices), parents.dictionary)


def _below(level: str, names: Sequence[str], lineage: Lineage | None) -> str:
    """Which of the attributes is a finer level of the same hierarchy."""
    for hierarchy in () if lineage is None else lineage.chains:
        if level in hierarchy.levels:
            finer = hierarchy.levels[: list(hierarchy.levels).index(level)]
            found = [name for name in finer if name in names]
            if found:
                return found[0]
    raise LookupError(f"{level} does not follow from {', '.join(names)}")


def derive(frame: Frame, schema: Schema, send: Callable[..., Frame] | None) -> Frame:
    """The list of establishments with the levels that are no columns of it.

    `send` brings lookups, files of this machine, into the engine of the list, where that is another one.
    """
    import narwhals.stable.v2 as nw

    for name, hierarchy in schema.hierarchy.items():
        if hierarchy.prefix is not None:
            code = nw.col(hierarchy.finest)
            whole = code.str.len_chars() == hierarchy.prefix[0]
            frame = frame.with_columns(
                nw.when(whole).then(code.str.slice(0, n)).alias(level)
                for level, n in zip(hierarchy.levels[1:], hierarchy.prefix[1:], strict=True)
            )
        elif hierarchy.lookup is not None:
            with working(f"look up {name}", frame):
                frame = frame.join(read_lookup(name, hierarchy, send=send), on=hierarchy.finest, how="left")
    return frame


def with_levels(table: pa.Table, schema: Schema) -> pa.Table:
    """A public table by some levels, also with the coarser ones that follow from these by prefix or lookup."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, hierarchy in schema.hierarchy.items():
        own = next((level for level in hierarchy.levels if level in table.column_names), None)
        for i, level in enumerate(hierarchy.levels):
            if own is None or level in table.column_names or level not in hierarchy.derived:
                continue
            if hierarchy.prefix is not None:
                parents = pc.utf8_slice_codeunits(table[own], 0, hierarchy.prefix[i])
            else:
                codes = collect(_lookup(name, hierarchy), step=f"read the lookup of {name!r}")
                known = dict(zip(codes[own].to_pylist(), codes[level].to_pylist(), strict=True))
                parents = pa.array([known.get(code) for code in table[own].to_pylist()], pa.string())
            if not parents.null_count:
                table = table.append_column(level, parents)
    return table


def _lookup(name: str, hierarchy: Hierarchy, send: Callable[..., Frame] | None = None) -> Frame:
    """The lookup file, its codes as text."""
    assert hierarchy.lookup is not None
    levels, file = list(hierarchy.levels), f"the lookup of {name!r}"
    table = open_frame(hierarchy.lookup, name=file, readings=dict.fromkeys(levels, "text"))
    if send is not None:
        table = send(collect(table, step=f"read {file}"), name=file)
    require(table, dict.fromkeys(levels, "label"), name=file)
    return as_text(table, levels).select(*levels)


def read_lookup(name: str, hierarchy: Hierarchy, *, send: Callable[..., Frame] | None = None) -> Frame:
    """The lookup file, after each code was found there once."""
    import narwhals.stable.v2 as nw

    file, about, finest = f"the lookup of {name!r}", f"hierarchy.{name}", hierarchy.finest
    try:
        table = _lookup(name, hierarchy, send).unique()
    except DataError as error:
        raise DataError(*(Fault(about, fault.asked, fault.possible, fault.remedy) for fault in error.faults)) from None
    again = collect(table.group_by(finest).agg(nw.len().alias("__times")), step=f"read {file}")
    twice = [code for code, n in zip(again[finest].to_pylist(), again["__times"].to_pylist(), strict=True) if n > 1]
    if twice:
        raise DataError(
            f"{file.capitalize()} gives {finest} {_some(twice)} more than one parent.",
            ORDER,
            "Correct it.",
            about=about,
        )
    return table


def trace(frame: Frame, schema: Schema, *, name: str) -> Lineage:
    """All codes with their parents, or what is no hierarchy of them."""
    import pyarrow as pa

    codes, faults = {}, []
    for which, hierarchy in schema.hierarchy.items():
        levels = list(hierarchy.levels)
        table = collect(frame.select(*levels).unique(), step=f"codes of {which}")
        faults += list(_gaps(which, hierarchy, table, name))
        codes[which] = table.cast(pa.schema([(level, pa.string()) for level in levels])).sort_by(levels[0])
    if faults:
        raise DataError(*faults)
    return Lineage(dict(schema.hierarchy), codes)


def _gaps(which: str, hierarchy: Hierarchy, table: pa.Table, name: str) -> Iterable[Fault]:
    """Codes without a parent, codes with two, and codes that read like others."""
    about, columns = f"hierarchy.{which}", {level: table[level].to_pylist() for level in hierarchy.levels}
    stated = hierarchy.levels if hierarchy.prefix is None else (hierarchy.finest,)
    for level in stated:
        odd = {code for code in columns[level] if isinstance(code, str) and (not code or code != code.strip())}
        if odd:
            words = f"{level} of {name} has codes with blanks at an end, or empty ones: {_some([*odd])}."
            yield Fault(about, words, ALIKE, "Correct them at the source.")
            return
        written = {code for code in columns[level] if isinstance(code, str)}
        again = [code for code in written if normalize("NFC", code) != code and normalize("NFC", code) in written]
        if again:
            words = f"{level} of {name} has codes that look the same in two Unicode forms: {_some(again)}."
            yield Fault(about, words, ALIKE, "Write all of them in form NFC at the source.")
            return
    if None in columns[hierarchy.finest]:
        return  # the rows are refused
    for below, level in zip(hierarchy.levels, hierarchy.levels[1:], strict=False):
        parents: dict[Any, set[Any]] = {}
        for code, parent in zip(columns[below], columns[level], strict=True):
            parents.setdefault(code, set()).add(parent)
        orphans = [code for code, found in parents.items() if None in found and code is not None]
        torn = [code for code, found in parents.items() if len(found) > 1 and code is not None]
        form = " in this Unicode form" if any(normalize("NFC", str(code)) != str(code) for code in orphans) else ""
        where = f"the lookup lacks it{form}{ZEROS * any(map(str.isdigit, orphans))}" if hierarchy.lookup else "no value"
        if hierarchy.prefix is not None:
            where = f"codes of {hierarchy.finest} have {hierarchy.prefix[0]} characters"
        if orphans:
            yield Fault(
                about,
                f"{below} {_some(orphans)} of {name} has no parent in {level}: {where}.",
                ORDER,
                "Add the parent, or drop the level."
                if hierarchy.prefix is None
                else "Correct the codes, or use a lookup.",
            )
        elif torn:
            yield Fault(
                about,
                f"{below} {_some(torn)} of {name} has more than one parent in {level}.",
                ORDER,
                "Correct the codes, or turn the list round if it begins with the coarsest.",
            )


def _some(codes: Sequence[Any]) -> str:
    listed = sorted(map(str, codes))
    more = f" and {len(listed) - SHOWN:,} more" if len(listed) > SHOWN else ""
    return ", ".join(map(repr, listed[:SHOWN])) + more
