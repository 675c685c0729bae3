"""The plan of a world, its schema and what a command is told: TOML by hand, so that no reader of ours writes it."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from worlds.data import Data, data, largest
from worlds.frames import placed, written
from worlds.world import Release, World


def prepared(world: World, folder: Path) -> Data:
    """Write data, lookups, public files and the plan."""
    found = data(world)
    columns = _columns(world)
    here = folder / "data"
    here.mkdir(parents=True)
    path = here / written(found.jobs, columns["jobs"], here, "jobs", world.frame)
    for odd in world.odd:
        if odd.what in SPOILT:
            path.write_bytes(SPOILT[odd.what](path.read_bytes()))
    if found.workplaces is not None:
        written(found.workplaces, columns["workplaces"], here, "listed", world.frame)
    if found.workers is not None:
        written(found.workers, columns["workers"], here, "people", world.frame)
    places = {"source": "jobs"} | {each: TABLES[each] for each in world.apart}
    for name, rows in found.lookups.items():
        written(rows, [*rows[0]], folder, f"lookup-{name}", "csv ,")
    if world.public:
        _sizes(world, found, folder)
    text = "\n".join(_plan(world, {key: placed(folder, name, world.frame) for key, name in places.items()}))
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    (folder / "schema.toml").write_text("\n".join(_schema(world)), encoding="utf-8")
    return found


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "no names": lambda content: content.partition(b"\n")[2],
    "names again": lambda content: content + content.partition(b"\n")[0].removeprefix(codecs.BOM_UTF8) + b"\n",
    "another encoding": lambda content: content[:-2] + b"\xe9" + content[-2:],
    "big-endian": lambda content: codecs.BOM_UTF16_BE + content.decode("utf-8-sig").encode("utf-16-be"),
    "a short line": lambda content: content + b"1\n",
}
"""What is odd about a file of text."""


def _columns(world: World) -> dict[str, list[str]]:
    """The columns of each table in an order of chance: of no row, too."""
    places = [each.name for each in world.attributes]
    places += [up.name for each in world.hierarchies if each.how == "columns" for up in each.above]
    kinds = [each.name for each in world.kinds]
    jobs = [
        world.establishment,
        world.worker,
        *([world.time] if world.quarters else []),
        *(each.name for each in world.amounts),
        *(n for n, _ in world.idle),
    ]
    jobs += [] if "workplaces" in world.apart else places
    jobs += [] if "workers" in world.apart else kinds
    turned = world.rows % max(len(jobs), 1)
    return {
        "jobs": jobs[turned:] + jobs[:turned],
        "workplaces": [*places, world.establishment],
        "workers": [*kinds, world.worker],
    }


TABLES = {"workplaces": "listed", "workers": "people"}
"""What the lists apart are called."""


def source(world: World, folder: Path) -> tuple[str, list[str]]:
    """The file of the jobs, and the options that say which column is what."""
    options = ["--schema", "schema.toml"]
    for each in world.apart:
        options += [f"--{each}", placed(folder, TABLES[each], world.frame)]
    if world.quarters:
        options += ["--quarters", ",".join(map(str, world.quarters)), "--time", world.time]
    if world.declared is True:
        options.append("--allow-multiple")
    elif world.declared:
        options += ["--most-jobs", str(world.declared)]
    return placed(folder, "jobs", world.frame), options


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml(str(key))} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _roles(world: World) -> Iterator[str]:
    yield f"establishment = {toml(world.establishment)}"
    yield f"{'size' if world.counted else 'worker'} = {toml(world.worker)}"
    places = [each.name for each in world.attributes]
    places += [up.name for each in world.hierarchies if each.how == "columns" for up in each.above]
    yield f"workplace_attributes = {toml(places)}"
    if world.idle:
        yield f"unused = {toml(['*'] if world.rest else [name for name, _ in world.idle])}"


def _more_roles(world: World, head: str) -> Iterator[str]:
    yield f"[{head}worker_attributes]"
    yield from (f"{toml(each.name)} = {toml(each.codes)}" for each in world.kinds)
    for each in world.amounts:
        yield f"[{head}magnitudes.{toml(each.name)}]"
        yield from (f"cap = {each.cap}", f"beyond = {toml(each.beyond)}")


def _levels(world: World, lookup: str) -> Iterator[str]:
    for each in world.hierarchies:
        names = [each.finest, *(up.name for up in each.above)]
        yield f"[{lookup}hierarchy.{toml(each.name)}]"
        yield f"levels = {toml(names)}"
        if each.how == "prefix":
            yield f"prefix = {toml(each.prefix)}"
        elif each.how == "lookup":
            yield f"lookup = {toml(f'lookup-{each.name}.csv')}"


def _schema(world: World) -> Iterator[str]:
    yield from _roles(world)
    yield from _more_roles(world, "")
    yield from _levels(world, "")


def _plan(world: World, places: dict[str, str]) -> Iterator[str]:
    yield 'title = "A world"'
    yield "[data]"
    yield from (f"{key} = {toml(place)}" for key, place in places.items())
    if world.declared is not False:
        yield f"allow_multiple = {toml(world.declared)}"
    if world.period:
        yield f"period = {toml(world.period)}"
    if world.quarters:
        yield f"quarters = {toml(world.quarters)}"
        yield f"time = {toml(world.time)}"
    yield "[data.schema]"
    yield from _roles(world)
    yield from _more_roles(world, "data.schema.")
    if world.labels:
        for each in (*world.attributes, *world.kinds):
            yield f"[data.labels.{toml(each.name)}]"
            yield from (f"{toml(_code(code))} = {toml(f'Label {i} <of> & {i}')}" for i, code in enumerate(each.codes))
    yield from _levels(world, "")
    yield "[unit]"
    yield from (f"{key} = {toml(value)}" for key, value in world.unit)
    yield "[budget]"
    yield f"epsilon = {toml(world.budget)}"
    yield 'ledger = "ledger.db"'
    yield 'dataset = "jobs of the world"'
    if world.public:
        yield "[public]"
        yield 'sizes = "sizes.csv"'
    for release in world.releases:
        yield from _release(release)
    yield "[output]"
    yield 'folder = "out"'
    yield f"formats = {toml(world.formats)}"


def _code(code: Any) -> str:
    return str(code).lower() if isinstance(code, bool) else str(code)


def _release(release: Release) -> Iterator[str]:
    yield "[[release]]"
    yield f"name = {toml(release.name)}"
    yield f"kind = {toml(release.kind)}"
    yield f"epsilon = {toml(release.epsilon)}"
    if release.kind in ("counts", "sums"):
        yield f"tables = {toml(release.tables)}"
    else:
        yield f"by = {toml(release.tables[0])}"
    yield from (f"{key} = {toml(value)}" for key, value in release.options)


def _sizes(world: World, found: Data, folder: Path) -> None:
    """Public facts by the first attribute: jobs, and a bound of the largest establishment that is true."""
    name = world.attributes[0].name
    rows, most = [], largest(world, name)
    listed = world.attributes[0].codes
    for i, code in enumerate(listed[: len(listed) // 2 + 1] if "partial" in world.public else listed):
        bound = {"at_most": most.get(_code(code), 1)} if "at_most" in world.public else {}
        rows.append({name: _code(code), "jobs": 10 * (i + 1), **bound})
    written(rows, [*rows[0]], folder, "sizes", "csv ,")


def desk_settings(world: World, folder: Path) -> str:
    """desk.toml with the world as its only source."""
    lines = ['title = "A desk"', "[[source]]", 'name = "jobs"']
    lines += [f"path = {toml(placed(folder, 'jobs', world.frame))}"]
    lines += [f"{each} = {toml(placed(folder, TABLES[each], world.frame))}" for each in world.apart]
    lines += [f"allow_multiple = {toml(world.declared)}"] * (world.declared is not False)
    lines += [f"period = {toml(world.period)}"] * bool(world.period)
    lines += [f"quarters = {toml([*map(str, world.quarters)])}", f"time = {toml(world.time)}"] * bool(world.quarters)
    lines += ['sizes = "sizes.csv"'] * bool(world.public)
    lines += [
        'dataset = "jobs"',
        f"unit = {toml(dict(world.unit))}",
        "unit_fixed = false",
        f"epsilon = {toml(world.budget)}",
    ]
    lines += ["[source.schema]", *_roles(world), *_more_roles(world, "source.schema."), *_levels(world, "source.")]
    return "\n".join(lines) + "\n"
