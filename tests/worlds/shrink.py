"""A plainer world with the same fault: every field goes to its plainest value, every list loses what it can."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

from worlds.world import Odd, Release, World

KEPT = ("seed", "rows")
"""What says where a world is from and which rows it has."""

OFF = {"publishes": False, "desk": False, "memory": False, "command": False, "forged": False, "damaged": False}
"""Doors that a plainer world does not go through."""


def shrunk(world: World, fails: Callable[[World], bool], *, most: int = 400) -> World:
    """The plainest world found that fails, after at most so many tries."""
    tries, changed = 0, True
    while changed and tries < most:
        changed = False
        for plainer in plainer_than(world):
            tries += 1
            if tries > most:
                break
            if fits(plainer) and fails(plainer):
                world, changed = plainer, True
                break
    return world


def plainer_than(world: World) -> Iterator[World]:
    """Worlds with one thing less, the largest steps first."""
    for name, value in OFF.items():
        if getattr(world, name) != value:
            yield replace(world, **{name: value})
    for each in fields(world):
        value = getattr(world, each.name)
        if each.name in KEPT or each.name in OFF or value == each.default:
            continue
        if each.default is not MISSING:
            yield replace(world, **{each.name: each.default})
        if isinstance(value, tuple):
            for plainer in _less(value):
                if plainer or each.name not in ("releases", "sizes"):
                    yield replace(world, **{each.name: plainer})


def _less(value: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The tuple without one of its members, and with one of them plainer."""
    for i in range(len(value)):
        yield value[:i] + value[i + 1 :]
    for i, member in enumerate(value):
        for plainer in _plainer(member):
            yield (*value[:i], plainer, *value[i + 1 :])


def _plainer(member: Any) -> Iterator[Any]:
    if is_dataclass(member):
        for each in fields(member):
            inner = getattr(member, each.name)
            if each.default is not MISSING and inner != each.default:
                yield replace(member, **{each.name: each.default})  # type: ignore[type-var]
            if isinstance(inner, tuple):
                yield from (replace(member, **{each.name: less}) for less in _less(inner))  # type: ignore[type-var]
    elif isinstance(member, tuple):
        yield from _less(member)
    elif isinstance(member, int) and not isinstance(member, bool) and member > 1:
        yield from (1, member // 2)


def fits(world: World) -> bool:
    """Whether the parts name each other: a plan that asks for what is gone is another fault."""
    there = {*world.places, *(each.name for each in world.kinds)}
    every = (*world.attributes, *world.kinds, *(up for each in world.hierarchies for up in each.above))
    return (
        all(each.codes for each in every)
        and all(each.above and each.finest in {a.name for a in world.attributes} for each in world.hierarchies)
        and all(each.how != "prefix" or len(each.prefix) == 1 + len(each.above) for each in world.hierarchies)
        and all(_asks(each, there, {amount.name for amount in world.amounts}) for each in world.releases)
        and all(_there(world, odd) for odd in world.odd)
        and len({each.name for each in world.releases}) == len(world.releases)
    )


def _asks(release: Release, there: set[str], amounts: set[str]) -> bool:
    several = release.kind in ("counts", "sums")
    return (
        all({*by} <= there for by in release.tables)
        and (several or len(release.tables) == 1)
        and {*release.option("where", {})} <= there
        and (release.option("stratum") or next(iter(there), None)) in {*there, None}
        and (release.option("of") in amounts) == (release.kind in ("sum", "sums"))
    )


def _there(world: World, odd: Odd) -> bool:
    columns = {world.establishment, world.worker, "", *(name for name, _ in world.idle)}
    columns |= {each.name for each in (*world.attributes, *world.kinds, *world.amounts)}
    return odd.column in columns
