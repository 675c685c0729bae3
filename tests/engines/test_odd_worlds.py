"""Odd worlds on servers: tables of PostgreSQL go the whole way, and Spark gives the same rehearsal as Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from discreet.data import engines
from postgres_server import postgres, postgres_server, postgres_url
from worlds import frames
from worlds.plan import prepared
from worlds.session import given
from worlds.way import Walk, faults
from worlds.world import OF_FILES, World, drawn

__all__ = ["postgres", "postgres_server", "postgres_url"]

SEED, MANY = 39, 8
LONGEST = 63
"""Bytes of a name in PostgreSQL."""


def worlds(*, files: bool) -> Iterator[World]:
    """Worlds whose names a server can have; those that are told by their files are left out."""
    for world in (drawn(SEED, number) for number in count()):
        named = all(len(name.encode()) <= LONGEST for name in columns(world))
        if named and not world.misnamed and (files or not (world.odd or world.quarters)):
            yield replace(world, damaged=False, accidents=())


def columns(world: World) -> Iterator[str]:
    yield from (world.establishment, world.worker, world.time, *world.places)
    yield from (each.name for each in (*world.kinds, *world.amounts))
    yield from (name for name, _ in world.idle)


@pytest.fixture
def server(postgres_url: str) -> Iterator[None]:
    frames.SERVER.append(postgres_url.replace("+psycopg", ""))
    yield
    frames.SERVER.clear()


@pytest.mark.walk
@pytest.mark.postgres
@pytest.mark.parametrize("number", range(MANY))
def test_everything_holds_of_tables_of_postgresql(number: int, server: None, tmp_path: Path) -> None:
    fit = (world for world in worlds(files=True) if not any(odd.what in OF_FILES for odd in world.odd))
    world = replace(next(islice(fit, number, None)), frame="postgresql")
    found = faults(world, keep=tmp_path / "kept")
    assert not found, "\n\n".join([*found, world.script])


@pytest.mark.spark
@pytest.mark.parametrize("number", range(MANY))
def test_spark_gives_the_same_rehearsal(number: int, spark: engines.Engine, tmp_path: Path) -> None:
    fit = (world for world in worlds(files=False) if all(each.how != "lookup" for each in world.hierarchies))
    world, names = next(islice(fit, number, None)), count()
    walk = Walk(world, tmp_path / "w", prepared(world, tmp_path / "w"))

    def on_spark(table: Any) -> Any:
        return spark.read(table, name=f"world_{number}_{next(names)}").to_native()

    assert given(walk, "spark", on_spark) == given(walk, "arrow", lambda table: table)
