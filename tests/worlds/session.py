"""Python's doors: a rehearsal with a seed, which gives the same numbers for the same rows in every kind of frame."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from worlds.frames import IN_MEMORY, arrow
from worlds.way import Walk
from worlds.world import World


def rehearsed(walk: Walk) -> dict[str, str]:
    """What the first release of a world gives from each kind of frame, as a hash or as the words of a refusal."""
    looked_up = any(each.how == "lookup" for each in walk.world.hierarchies)
    return {kind: _given(walk, kind) for kind in IN_MEMORY if not (looked_up and kind in ELSEWHERE)}


ELSEWHERE = ("polars, lazy", "duckdb")
"""Frames of engines of their own, to which no lookup file is brought: they are refused."""


def _given(walk: Walk, kind: str) -> str:
    import discreet as dc

    world, data = walk.world, walk.data
    release, options = world.releases[0], dict(world.releases[0].options)
    made = IN_MEMORY[kind]
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
        return str(error).replace(kind, "")


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
