"""The rows of a world, and what is true about them, by plain loops.

Every confidential value that is no category holds `MARK` or `NUMBER`: nobody else says these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, nan
from random import Random
from typing import Any, TypeAlias

from worlds.codes import spelled
from worlds.world import OF_FILES, Amount, Odd, Release, World

MARK = "Zaphod"
NUMBER = 731649800000
TOLD = (MARK, str(NUMBER)[:7])
"""What no output holds."""

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Data:
    """Rows of jobs; the lists apart, where a world has them; lookups by the name of their hierarchy."""

    jobs: list[Row]
    workplaces: list[Row] | None
    workers: list[Row] | None
    lookups: Mapping[str, list[Row]]

    @property
    def listed(self) -> set[str]:
        """The columns of the jobs."""
        return {*self.jobs[0]} if self.jobs else set()


def data(world: World) -> Data:
    """The rows of a world, its odd ones included."""
    chance = Random(world.rows)
    places = [_place(world, chance, e) for e in range(len(world.sizes))]
    rows = [*(_counted if world.counted else _single)(world, chance, places)]
    if world.quarters:
        rows = [*_in_quarters(world, chance, rows)]
    for row in rows:
        for name, kind in world.idle:
            row[name] = _idle(kind, chance)
    columns = {name: name for name in _apart(world)}
    listed = workers = None
    if "workplaces" in world.apart:
        listed = [{name: place[name] for name in (world.establishment, *columns)} for place in places]
    if "workers" in world.apart:
        of = {row[world.worker]: row for row in rows}
        names = (world.worker, *(each.name for each in world.kinds))
        workers = [{name: row[name] for name in names} for row in of.values()]
    gone = {*(columns if listed is not None else ()), *(each.name for each in world.kinds if workers is not None)}
    jobs = [{name: value for name, value in row.items() if name not in gone} for row in rows]
    chance.shuffle(jobs)
    found = Data(jobs, listed, workers, _lookups(world))
    for odd in world.odd:
        found = _made_odd(found, world, odd)
    return found


def _apart(world: World) -> Iterator[str]:
    """The columns of an establishment."""
    yield from (each.name for each in world.attributes)
    yield from (up.name for each in world.hierarchies if each.how == "columns" for up in each.above)


def _place(world: World, chance: Random, e: int) -> Row:
    found: Row = {world.establishment: f"{MARK}{e}" if world.keys == "text" else NUMBER + e}
    for each in world.attributes:
        found[each.name] = chance.choice(each.codes)
    for levels in world.hierarchies:
        for name, code in parents(world, levels.name, found[levels.finest]).items():
            if levels.how == "columns":
                found[name] = code
    return found


def parents(world: World, name: str, code: Any) -> Row:
    """Every level above a code of the finest one."""
    levels = next(each for each in world.hierarchies if each.name == name)
    if levels.how == "prefix":
        lengths = levels.prefix[1:]
        return {up.name: str(code)[:n] for up, n in zip(levels.above, lengths, strict=True)}
    found, at = {}, world.attribute(levels.finest).codes.index(code)
    for up in levels.above:
        at %= len(up.codes)
        found[up.name] = up.codes[at]
    return found


def _lookups(world: World) -> dict[str, list[Row]]:
    return {
        each.name: [
            {each.finest: code, **parents(world, each.name, code)} for code in world.attribute(each.finest).codes
        ]
        for each in world.hierarchies
        if each.how == "lookup"
    }


def _single(world: World, chance: Random, places: Sequence[Row]) -> Iterator[Row]:
    """A row for each job; a worker may have several, at different establishments."""
    known: list[Row] = []
    times: Counter[Any] = Counter()
    for place, size in zip(places, world.sizes, strict=True):
        here: set[Any] = set()
        for _ in range(size):
            worker = chance.choice(known) if known and world.several > 1 and chance.random() < 0.5 else None
            if worker is None or worker[world.worker] in here or times[worker[world.worker]] >= world.several:
                number = len(known)
                key = f"{MARK} {number:04}" if world.keys == "text" else NUMBER + 1000 + number
                worker = {world.worker: key} | {each.name: chance.choice(each.codes) for each in world.kinds}
                known.append(worker)
            here.add(worker[world.worker])
            times[worker[world.worker]] += 1
            yield place | worker | {each.name: _amount(each, 1, chance) for each in world.amounts}


def _in_quarters(world: World, chance: Random, rows: Sequence[Row]) -> Iterator[Row]:
    """Each job in some quarters that follow each other; the first row is there in all."""
    many = len(world.quarters)
    for number, row in enumerate(rows):
        begins = chance.randrange(many) if number else 0
        ends = chance.randint(begins, many - 1) if number else many - 1
        yield from ({**row, world.time: quarter} for quarter in world.quarters[begins : ends + 1])


def _counted(world: World, chance: Random, places: Sequence[Row]) -> Iterator[Row]:
    """A row for each kind of worker at an establishment, with their number."""
    for place, size in zip(places, world.sizes, strict=True):
        kinds = [*product(*(each.codes for each in world.kinds))]
        parts = chance.sample(kinds, min(len(kinds), chance.randint(1, 3)))
        cuts = sorted(chance.randint(0, size) for _ in parts[1:])
        for kind, low, high in zip(parts, (0, *cuts), (*cuts, size), strict=True):
            named = dict(zip((each.name for each in world.kinds), kind, strict=True))
            amounts = {each.name: _amount(each, high - low, chance) for each in world.amounts}
            yield place | named | {world.worker: high - low} | amounts


def _amount(amount: Amount, size: int, chance: Random) -> float | int:
    most = min(amount.cap * size, 2**52)
    value = chance.choice((0, most, chance.randint(0, most), chance.randint(0, most)))
    if amount.beyond == "clip" and chance.random() < 0.2 and size:
        value = most + chance.choice((1, most))
    if amount.whole:
        return value
    return value + 0.25 if value < min(most, 2**40) and chance.random() < 0.5 else float(value)


def _idle(kind: str, chance: Random) -> Any:
    match kind:
        case "text":
            return f"{MARK} {chance.random()}"
        case "null":
            return None
        case "number":
            return NUMBER + chance.random()
        case "nan":
            return chance.choice((nan, inf, -inf, 1e308, -0.0))
        case "words":
            return chance.choice((f"{MARK} one", f"{MARK} two"))
        case "constant":
            return MARK
    raise ValueError(kind)


ODD_NUMBERS = {
    "nan": nan,
    "inf": inf,
    "-inf": -inf,
    "1e308": 1e308,
    "1e308 clipped": 1e308,
    "negative": -1,
    "negative zero": -0.0,
}


def _made_odd(found: Data, world: World, odd: Odd) -> Data:
    """One row is not as the others."""
    jobs, table = found.jobs, found.jobs
    for other in (found.workplaces, found.workers):
        if other and odd.column in other[0] and odd.column not in found.listed:
            table = other
    row = table[len(table) // 2] if table else {}
    match odd.what:
        case "null" | "idle null":
            row[odd.column] = None
        case "no rows":
            jobs.clear()
        case "two periods":
            for each in [*jobs]:
                each[odd.column] = "2023Q4"
                jobs.append(each | {odd.column: "2024Q1"})
        case "one row more":
            jobs.append(dict(row) | {world.worker: f"{MARK} more" if world.keys == "text" else NUMBER - 2})
        case what if what in OF_FILES:
            pass
        case "outside":
            row[odd.column] = "nothing declared" if isinstance(row[odd.column], str) else 99
            if isinstance(world.attribute(odd.column).codes[0], bool):
                row[odd.column] = None
        case "twice":
            jobs.append(dict(row) | {world.establishment: jobs[0][world.establishment]})
        case "torn":
            codes = world.attribute(odd.column).codes
            again = dict(row) | {world.worker: f"{MARK} other" if world.keys == "text" else NUMBER - 1}
            again |= {world.worker: 1} if world.counted else {}
            jobs.append(again | {odd.column: codes[codes.index(row[odd.column]) - 1]})
        case "unlisted":
            row[world.establishment] = f"{MARK} nowhere" if world.keys == "text" else NUMBER - 7
        case "beyond" | "beyond clipped":
            size = max(row[world.worker], 1) if world.counted else 1
            row[odd.column] = next(each.cap for each in world.amounts if each.name == odd.column) * size + 1
        case "idle nan":
            row[odd.column] = nan
        case _:
            row[odd.column] = ODD_NUMBERS[odd.what]
    return found


def truth(world: World, release: Release) -> list[dict[tuple[str, ...], int]]:
    """For each table of a release, every cell that it must have, with the true number."""
    plain = data(_sound(world))
    workers = {row[world.worker]: row for row in plain.workers or ()}
    listed = {row[world.establishment]: row for row in (plain.workplaces or plain.jobs)}
    whole = [listed[row[world.establishment]] | workers.get(row[world.worker], {}) | row for row in plain.jobs]
    for row in (*whole, *listed.values()):
        for levels in world.hierarchies:
            row |= parents(world, levels.name, row[levels.finest])
    kept = {name: {*map(spelled, codes)} for name, codes in release.option("where", {}).items()}
    of = next((each for each in world.amounts if each.name == release.option("of")), None)
    kinds = {each.name: [*map(spelled, each.codes)] for each in world.kinds}

    def keeps(row: Row, names: Sequence[str]) -> bool:
        return all(spelled(row[name]) in values for name, values in kept.items() if name in names)

    theta = dict(world.unit).get("theta")
    of_all: Counter[Any] = Counter()
    for row in plain.jobs:
        of_all[row[world.establishment]] += row[world.worker] if world.counted else 1
    if theta is not None:  # larger ones are left out, which intervals are not about
        whole = [row for row in whole if of_all[row[world.establishment]] <= int(theta)]
    found = []
    for by in release.tables:
        outside = [name for name in by if name not in kinds]
        places = {tuple(spelled(row[n]) for n in outside) for row in listed.values() if keeps(row, world.places)}
        inside = [name for name in by if name in kinds]
        domains = [[code for code in kinds[n] if code in kept.get(n, {code})] for n in inside]
        cells: dict[tuple[str, ...], int] = {}
        for place, kind in product(places, product(*domains)):
            named = dict(zip((*outside, *inside), (*place, *kind), strict=True))
            cells[tuple(named[name] for name in by)] = 0
        for row in whole:
            if keeps(row, [*world.places, *kinds]):
                size = row[world.worker] if world.counted else 1
                number = size if of is None else min(round(row[of.name]), of.cap * max(size, 1))
                cells[tuple(spelled(row[name]) for name in by)] += number
        found.append(cells)
    return found


def jobs_in(world: World, release: Release, quarter: Any) -> dict[tuple[str, ...], int]:
    """The jobs of a quarter in every cell of a release of histories."""
    plain = data(_sound(world))
    listed = {row[world.establishment]: dict(row) for row in (plain.workplaces or plain.jobs)}
    for row in listed.values():
        for levels in world.hierarchies:
            row |= parents(world, levels.name, row[levels.finest])
    [by] = release.tables
    place = {key: tuple(spelled(row[name]) for name in by) for key, row in listed.items()}
    found = dict.fromkeys(place.values(), 0)
    for row in plain.jobs:
        found[place[row[world.establishment]]] += row[world.time] == quarter
    return found


def largest(world: World, name: str) -> dict[str, int]:
    """The jobs of the largest establishment by an attribute of places."""
    plain = data(_sound(world))
    listed = {row[world.establishment]: row for row in (plain.workplaces or plain.jobs)}
    jobs: Counter[Any] = Counter()
    for row in plain.jobs:
        jobs[row[world.establishment]] += row[world.worker] if world.counted else 1
    found: dict[str, int] = {}
    for key, many in jobs.items():
        code = spelled(listed[key][name])
        found[code] = max(found.get(code, 1), many)
    return found


def unmet(world: World) -> bool:
    """Whether a release asks for a value of a place that no establishment has."""
    plain = data(_sound(world))
    listed = [{**row} for row in plain.workplaces or plain.jobs]
    for row in listed:
        for levels in world.hierarchies:
            row |= parents(world, levels.name, row[levels.finest])
    asked = [
        (name, code) for each in world.releases for name, codes in each.option("where", {}).items() for code in codes
    ]
    return any(name in world.places and code not in {row[name] for row in listed} for name, code in asked)


COUNTED = ("one row more", "beyond clipped", "1e308 clipped")
"""Odd rows that change a true number."""


def _sound(world: World) -> World:
    from dataclasses import replace

    return replace(world, odd=tuple(odd for odd in world.odd if odd.what in COUNTED))
