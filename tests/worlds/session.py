"""Python's doors: a rehearsal with a seed, which gives the same numbers for the same rows in every kind of frame.

A column of a type that few have thought of changes nothing, or is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from random import Random
from typing import Any

from worlds.frames import IN_MEMORY, STRANGE, arrow
from worlds.way import Walk
from worlds.world import World


def rehearsed(walk: Walk) -> dict[str, str]:
    """What the first release of a world gives from each kind of frame, as a hash or as the words of a refusal."""
    looked_up = any(each.how == "lookup" for each in walk.world.hierarchies)
    kinds = [kind for kind in IN_MEMORY if not (looked_up and kind in ELSEWHERE)]
    some = Random(f"frames {walk.world.rows}").sample(kinds, SOME)
    return {kind: given(walk, kind, IN_MEMORY[kind]) for kind in ("arrow", *some)}


def strange(walk: Walk) -> tuple[str, str]:
    """What a column of a strange type is, and what the first release of a world gives with it."""
    chance = Random(f"strange {walk.world.rows}")
    kind, column = chance.choice([*STRANGE]), chance.choice(sorted(walk.data.listed))
    return f"{kind} in {column!r}", given(walk, kind, lambda table: STRANGE[kind](table, column))


SOME = 5
"""Kinds of frames that are compared in a world."""

ELSEWHERE = ("polars, lazy", "duckdb")
"""Frames of engines of their own, to which no lookup file is brought: they are refused."""


REFUSED = "refused: "


def given(walk: Walk, kind: str, made: Callable[[Any], Any]) -> str:
    import discreet as dc

    world, data = walk.world, walk.data
    release, options = world.releases[0], dict(world.releases[0].options)
    try:
        tables = {
            name: made(arrow(rows, [*rows[0]]))
            for name, rows in (("jobs", data.jobs), ("workplaces", data.workplaces), ("workers", data.workers))
            if rows is not None
        }
        jobs = dc.read_jobs(
            tables["jobs"],
            workplaces=tables.get("workplaces"),
            workers=tables.get("workers"),
            schema=schema(walk),
            allow_multiple=world.declared,
        )
        session = dc.Session(jobs, unit=unit(world), budget=dc.Pure("1000"), seed=7)
        where = options.get("where", {})
        by = list(release.tables[0])
        of = options.get("of")
        query = session.count(by=by, where=where) if of is None else session.sum(of, by=by, where=where)
        found = query.release(epsilon=release.epsilon).to_arrow()
        return sha256(repr([found.column_names, found.to_pydict()]).encode()).hexdigest()
    except dc.DiscreetError as error:
        return REFUSED + str(error).replace(kind, "")


def schema(walk: Walk) -> Any:
    import discreet as dc

    return dc.Schema.read(walk.folder / "schema.toml")


def unit(world: World) -> Any:
    import discreet as dc

    told = dict(world.unit)
    kind = told.pop("kind")
    if kind == "establishments":
        return dc.Establishments(told.pop("alpha"), **told)
    return dc.Workers() if kind == "workers" else dc.EstablishmentNodes(**told)
