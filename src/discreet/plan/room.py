"""The room that a plan's tables need in the memory of its engine, from public numbers alone.

Every cell of a drawn table passes through Spark's driver, which ends where it has no room. DuckDB needs none of this:
it spills to the disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from discreet.plan.file import PlanFile
from discreet.plan.kinds.kind import PlannedRelease
from discreet.plan.sizes import PublicSizes
from discreet.tables.cells import LEVELS_PER_PASS
from discreet.tables.query import CountQuery

KEY, NUMBER = 32, 8
"""Bytes of a code and of a number."""

HELD = 8
"""Times that the driver's memory is to hold what passes through it, with room to spare: `local` computes there, too."""

UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def memory_of(text: str) -> int | None:
    """Bytes of a memory as Spark writes it, 512m or 2g; None for what is written otherwise."""
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.strip().lower())
    return None if found is None else int(found[1]) * UNITS[found[2]]


def bytes_of(query: CountQuery) -> int:
    """Bytes of one workplace cell, in the widest pass over its kinds of workers."""
    numbers = 2 * min(query.levels, LEVELS_PER_PASS) + 3
    return KEY * len(query.workplace_by) + NUMBER * numbers


def room_notes(
    file: PlanFile, requests: Sequence[PlannedRelease], public: dict[str, PublicSizes | None]
) -> Iterator[str]:
    """Of every drawn table whether Spark's driver has room for its cells, or for how many it has."""
    engine = file.plan.engine
    memory = memory_of(engine.memory) if engine.is_spark else None
    if memory is None:
        return
    for request in requests:
        for query in request.queries:
            most, by = memory // (HELD * bytes_of(query)), ", ".join(query.by) or "no attribute"
            sizes = public[request.source.name]
            cells = None if sizes is None else sizes.jobs(query)
            if cells is None:
                yield (
                    f"{request.release.name}, by {by}: memory = {engine.memory!r} under [engine] has room for about "
                    f"{most:,} workplace cells. How many there are is not public; with more, write more"
                )
            elif len(cells) > most:
                gigabytes = -(-len(cells) * HELD * bytes_of(query) // 2**30)
                yield (
                    f"{request.release.name}, by {by}: its {len(cells):,} workplace cells may end Spark, which has "
                    f"room for about {most:,}. Write memory = '{gigabytes}g' under [engine]"
                )
