"""A whole world as a value: drawn from a seed, and printed as a script that repeats it.

Every field has a plainest value, its default; `shrink` goes there, one field at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields
from math import log1p
from random import Random
from typing import Any, TypeAlias

from worlds import codes, names
from worlds.codes import Code

Options: TypeAlias = tuple[tuple[str, Any], ...]


class Plain:
    """Printed with what is not plain alone."""

    def __repr__(self) -> str:
        told = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if each.default is MISSING or value != each.default:
                told.append(f"{each.name}={value!r}")
        return f"{type(self).__name__}({', '.join(told)})"


@dataclass(frozen=True, repr=False)
class Attribute(Plain):
    """A column of categories. Of workers, the codes are its domain, in this order."""

    name: str
    codes: tuple[Code, ...] = ("P0", "P1")


@dataclass(frozen=True, repr=False)
class Levels(Plain):
    """Levels above an attribute, from the finer to the coarser: columns, looked up, or so many first characters."""

    name: str
    finest: str
    above: tuple[Attribute, ...]
    how: str = "columns"
    prefix: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class Amount(Plain):
    """A column of amounts: whole or not, up to its cap or above it."""

    name: str
    cap: int = 1000
    beyond: str = "refuse"
    whole: bool = True


@dataclass(frozen=True, repr=False)
class Release(Plain):
    """What is asked for. `tables` has one entry for kinds of one table."""

    name: str
    kind: str = "count"
    tables: tuple[tuple[str, ...], ...] = ((),)
    epsilon: str = "2"
    options: Options = ()

    def option(self, key: str, default: Any = None) -> Any:
        return dict(self.options).get(key, default)


@dataclass(frozen=True, repr=False)
class Odd(Plain):
    """A row that is not as the others: what, in which column."""

    what: str
    column: str = ""


@dataclass(frozen=True, repr=False)
class World(Plain):
    """Data and a plan.

    Attributes
    ----------
    sizes : the jobs of every establishment, in the first period.
    counted : rows are numbers of jobs, already counted, and the column `worker` is their size.
    several : the most establishments of one worker, and how this is declared.
    keys : whether keys are text or whole numbers.
    apart : which of workplaces and workers are tables of their own.
    frame : the kind of file.
    quarters, time : of job histories, all quarters in their order and the column that has them.
    idle : columns that no statistic reads, each with what is in it.
    odd : rows that are not as the others.
    publishes : whether what is released is published, too.
    command : whether plans are checked by the command, whose page has advice, or by Python.
    desk, memory : whether the desk is tried, too, and frames in memory.
    forged : whether a copy of the bundle with one thing changed is verified, too.
    damaged : whether a plan, a table and a bundle are damaged by chance.
    accidents : what happens before a run ends well.
    refused : whether the data or names must be refused, as the generator knows.
    """

    rows: int = 0
    establishment: str = "workplace"
    worker: str = "worker"
    attributes: tuple[Attribute, ...] = (Attribute("place"),)
    hierarchies: tuple[Levels, ...] = ()
    kinds: tuple[Attribute, ...] = ()
    amounts: tuple[Amount, ...] = ()
    sizes: tuple[int, ...] = (3, 1)
    counted: bool = False
    several: int = 1
    declared: bool | int = False
    keys: str = "text"
    apart: tuple[str, ...] = ()
    frame: str = "parquet"
    idle: tuple[tuple[str, str], ...] = ()
    rest: bool = False
    odd: tuple[Odd, ...] = ()
    unit: Options = (("kind", "establishments"), ("alpha", "0.1"))
    budget: str = "8"
    releases: tuple[Release, ...] = (Release("jobs", tables=(("place",),)),)
    quarters: tuple[Code, ...] = ()
    time: str = "quarter"
    labels: bool = False
    period: str = ""
    formats: tuple[str, ...] = ("csv", "parquet")
    public: str = ""
    publishes: bool = True
    command: bool = True
    desk: bool = True
    memory: bool = True
    forged: bool = True
    damaged: bool = True
    accidents: tuple[str, ...] = ()
    seed: str = field(default="", compare=False)

    @property
    def script(self) -> str:
        """A program that repeats what happens in this world."""
        return (
            f"# PYTHONPATH=src:tests python this-file.py{f'    # drawn from {self.seed}' if self.seed else ''}\n"
            "from worlds.way import repeat\nfrom worlds.world import *\n\n"
            f"repeat({self!r})\n"
        )

    @property
    def refused(self) -> bool:
        """Whether the rows must be refused."""
        return any(odd.what not in HARMLESS for odd in self.odd)

    @property
    def misnamed(self) -> bool:
        """Whether a name must be refused."""
        used = {
            self.establishment,
            self.worker,
            *(each.name for each in (*self.attributes, *self.kinds, *self.amounts)),
        }
        return bool(used & {*names.ILLEGAL})

    def attribute(self, name: str) -> Attribute:
        above = [level for each in self.hierarchies for level in each.above]
        return next(each for each in (*self.attributes, *self.kinds, *above) if each.name == name)

    @property
    def places(self) -> list[str]:
        """All workplace attributes, those of levels above included."""
        return [each.name for each in self.attributes] + [up.name for each in self.hierarchies for up in each.above]


HARMLESS = ("idle null", "idle nan", "negative zero", "beyond clipped", "1e308 clipped", "one row more")
"""Rows that are odd and have nothing wrong."""

OF_FILES = ("no names", "names again", "another encoding", "big-endian", "a short line")
"""What is odd about a file, and no row's fault."""


IDLE = ("text", "null", "number", "nan", "words", "constant")
"""What is in a column that no statistic reads."""

CHAINS = ("h0", "h1", "Area 1", "area-1", "naïve-北京", "select", "rowid", "quarter", "#", "🐘")
"""What hierarchies are called; two are spelled alike in names of files."""

FRAMES = (
    *("parquet", "parquet", "folder", "duckdb", "sqlite", "csv ,", "csv ;", "csv \t", "csv |"),
    *("csv.gz ,", "csv.zst ,", "csv , utf-8-sig", "csv ; utf-16", "csv , crlf", "csv ; quoted"),
)
ALPHAS = ("0.1", "0.07", "1/3", "0.05", "0.2", "0.001", "0.123456789", "3/7", "1", "10")
EPSILONS = ("2", "1", "4", "0.5", "7/3", "3", "8", "20", "1.23456789", "6", "60")
LEVELS = ("19/20", "0.999999999", "0.999999999", "0.5", "0.9", "2/3")
MECHANISMS = (
    "polynomial",
    "joint-polynomial",
    "joint-rings",
    "ladder",
    "log-laplace",
    "smooth-gamma",
    "staircase",
    "two-sizes",
)


ACCIDENTS = (
    "killed",
    "killed while it draws",
    "interrupted",
    "a full disk",
    "a lock",
    "a clock",
    "two at once",
    "other rows",
    "a moved ledger",
    "a ledger brought back",
    "a server away",
)
TOGETHER = 200
"""Worlds that share a few numbers, so that their noise is calibrated and searched once."""


def drawn(seed: int, number: int) -> World:
    """One world of a seed."""
    said, chance = f"{seed}-{number}", Random(f"{seed}-{number}")
    shared = Random(f"{seed}/{number // TOGETHER}")
    alphas = (shared.choice(ALPHAS), _odd_number(shared, 0.001, 2))
    epsilons = (*shared.sample(EPSILONS, 2), _odd_number(shared, 0.1, 10))
    called = iter(names.some(chance, 30) if chance.random() < 0.7 else [f"c{i}" for i in range(30)])
    attributes = [column(called, codes.some(chance)) for _ in range(chance.choice((0, 1, 1, 2, 2, 3)))]
    hierarchies, chains = [], chance.sample(CHAINS, 3)
    for at, attribute in enumerate(attributes):
        if chance.random() < 0.4:
            attributes[at], levels = _levels(chance, attribute, called, chains.pop())
            hierarchies.append(levels)
    kinds = tuple(column(called, codes.some(chance, 3)) for _ in range(chance.choice((0, 0, 1, 1, 2))))
    counted = chance.random() < 0.25
    several = 1 if counted or chance.random() < 0.8 else chance.randint(2, 4)
    amounts: tuple[Amount, ...] = ()
    if several == 1 and chance.random() < 0.35:
        cap = chance.choice((1, 7, 1000, 250_000, 2**40))
        amounts = (Amount(next(called), cap, chance.choice(("refuse", "clip")), chance.random() < 0.6),)
    apart = tuple(
        each
        for each, likely in (("workplaces", 0.35), ("workers", 0.2 if kinds and not counted else 0))
        if chance.random() < likely
    )
    world = World(
        rows=chance.randrange(10**6),
        establishment=next(called),
        worker=next(called),
        attributes=tuple(chance.sample(attributes, len(attributes))),
        hierarchies=tuple(chance.sample(hierarchies, len(hierarchies))),
        kinds=kinds,
        amounts=amounts,
        sizes=_sizes(chance, counted=counted, empty="workplaces" in apart),
        counted=counted,
        several=several,
        declared=False if several == 1 else chance.choice((True, several, several + 3)),
        keys=chance.choice(("text", "text", "integer")),
        apart=apart,
        frame=chance.choice(FRAMES),
        idle=tuple((next(called), chance.choice(IDLE)) for _ in range(chance.choice((0, 0, 0, 1, 2)))),
        rest=chance.random() < 0.3,
        unit=_unit(chance, alphas, counted=counted, listed="workplaces" in apart),
        labels=chance.random() < 0.3,
        period=chance.choice(("", "", "", "2026", "2026-Q1", "2026-07")),
        formats=chance.choice((("csv", "parquet"), ("csv", "parquet"), ("csv",), ("parquet",), ("parquet", "xlsx"))),
        public=chance.choice(("", "", "sizes", "at_most", "at_most partial")) if attributes else "",
        publishes=chance.random() < 0.2,
        command=chance.random() < 0.08,
        desk=chance.random() < 0.05,
        memory=chance.random() < 0.15,
        forged=chance.random() < 0.25,
        damaged=chance.random() < 0.2,
        accidents=tuple(chance.choices(ACCIDENTS, k=chance.randint(1, 3))) if chance.random() < 0.05 else (),
        seed=said,
    )
    if "utf-16" in world.frame and any(max(each) > "\uffff" for each in _texts(world)):
        world = _with(world, frame="csv ;")
    if several == 1 and not counted and chance.random() < 0.12:
        world = _histories(chance, world, epsilons, next(called))
    else:
        world = _with(world, releases=_releases(chance, epsilons, world))
    world = _with(world, budget=str(sum((_exact(each.epsilon) for each in world.releases), _exact("1/3"))))
    if not world.quarters and chance.random() < (0.5 if world.amounts else 0.2):
        world = _with(world, odd=(_odd(chance, world),))
    return world if chance.random() < 0.97 else _misnamed(chance, world)


def _texts(world: World) -> Iterator[str]:
    """Everything that is written into a file."""
    every = (*world.attributes, *world.kinds, *(up for each in world.hierarchies for up in each.above))
    yield from (world.establishment, world.worker, *(name for name, _ in world.idle))
    yield from (each.name for each in (*every, *world.amounts))
    yield from (codes.spelled(code) for each in every for code in each.codes)


def _odd_number(chance: Random, low: float, high: float) -> str:
    """A number that nobody has thought of, as decimals or as a ratio."""
    of = chance.randint(7, 1000)
    value = chance.uniform(low, high)
    return chance.choice((f"{value:.9f}", f"{max(1, round(value * of))}/{of}"))


def column(called: Iterator[str], found: tuple[Code, ...]) -> Attribute:
    """A column; its name is none of its codes: the first row would be taken for the names."""
    name = next(called)
    return Attribute(name, tuple(code for code in found if codes.spelled(code) != name) or ("P0",))


def _with(world: World, **changes: Any) -> World:
    from dataclasses import replace

    return replace(world, **changes)


def _exact(text: str) -> Any:
    from fractions import Fraction

    return Fraction(text)


def _levels(chance: Random, attribute: Attribute, called: Iterator[str], name: str) -> tuple[Attribute, Levels]:
    how = chance.choice(("columns", "lookup", "prefix"))
    depth = chance.choice((1, 1, 2, 3))
    if how == "prefix":
        digits = depth + chance.randint(1, 3)
        lengths = sorted(chance.sample(range(1, digits), depth), reverse=True)
        finest = tuple(code for code in codes.some(chance, 6, digits=digits) if code != attribute.name) or (
            "x" * digits,
        )
        above = tuple(Attribute(_letters(called), tuple(sorted({str(code)[:n] for code in finest}))) for n in lengths)
        return Attribute(attribute.name, finest), Levels(name, attribute.name, above, how, (digits, *lengths))
    finest, above = codes.some(chance, 6, text=True), ()
    for _ in range(depth):
        above = (*above, column(called, codes.some(chance, 3, text=how == "lookup")))
    finest = tuple(code for code in _alone(finest) if code != attribute.name) or ("P0",)
    return Attribute(attribute.name, finest), Levels(name, attribute.name, above, how)


def _letters(called: Iterator[str]) -> str:
    """A name that is no code of a prefix hierarchy."""
    return next(name for name in called if not {*name} <= {*"0123456789AbÅß-"})


def _alone(found: tuple[Code, ...]) -> list[Code]:
    return [code for code in found if str(code).strip() == str(code)] or ["x"]


def _sizes(chance: Random, *, counted: bool, empty: bool) -> tuple[int, ...]:
    many = chance.choice((1, 2, 3, 5, 8, 13, 21))
    found = [chance.choice((1, 1, 2, 3, 5, 9)) for _ in range(many)]
    if chance.random() < 0.2:
        found[chance.randrange(many)] = chance.choice((10**6, 2**31, 5000)) if counted else 400
    if empty:
        found = [0 if chance.random() < 0.2 else size for size in found]
        found[0] = found[0] or 1
    return tuple(found)


def _unit(chance: Random, alphas: Sequence[str], *, counted: bool, listed: bool) -> Options:
    if chance.random() < (0.2 if listed else 0.02):
        return (("kind", "workers"),)
    if not counted and chance.random() < 0.04:
        return (("kind", "establishment-nodes"), ("theta", chance.choice((1, 5, 1000))))
    more: Options = ()
    if chance.random() < 0.25:
        more = (("strength", "weak"),)
    elif chance.random() < 0.2:
        more = (("substitution", True),)
    return (("kind", "establishments"), ("alpha", chance.choice(alphas)), *more)


def _histories(chance: Random, world: World, epsilons: Sequence[str], time: str) -> World:
    """The same establishments in several quarters, and what is asked of such data."""
    pools = (
        ("2024Q1", "2024Q2", "2024Q3", "2024Q4"),
        ("b", "a", "d", "c"),
        (20241, 20242, 20251, 20252),
        ("1", "01", "2"),
    )
    pool = chance.choice(pools)
    quarters = pool[: chance.randint(3, len(pool))]
    world = _with(world, quarters=quarters, time=time, amounts=(), kinds=(), idle=(), odd=(), apart=_but_workers(world))
    alpha = dict(world.unit).get("alpha", "0.1")
    world = _with(world, unit=(("kind", "establishments"), ("alpha", alpha)), period="", public="")
    found = []
    for i in range(chance.randint(1, 2)):
        by = tuple(chance.sample(world.places, chance.randint(0, min(2, len(world.places)))))
        options: list[tuple[str, Any]] = []
        kind = chance.choice(("flows", "changes"))
        if kind == "flows":
            options.append(("quarter", list(quarters[1 : chance.randint(2, len(quarters) - 1)])))
        else:
            options.append(("quarters", list(quarters[:: chance.randint(1, 2)])))
        if chance.random() < 0.4:
            options.append(("level", chance.choice(LEVELS)))
        if chance.random() < 0.4:
            options.append(("scale_share", chance.choice(("0.1", "1/4"))))
        needed = 12 * log1p(float(_exact(alpha)))
        epsilon = next((each for each in (*epsilons, "20") if float(_exact(each)) > needed), "100")
        found.append(Release(f"r{i}", kind, (by,), epsilon, tuple(options)))
    return _with(world, releases=tuple(found))


def _but_workers(world: World) -> tuple[str, ...]:
    return tuple(each for each in world.apart if each != "workers")


def _releases(chance: Random, epsilons: Sequence[str], world: World) -> tuple[Release, ...]:
    """What is asked for; mostly what can be answered."""
    there = present(world)
    return tuple(
        _release(chance, epsilons, world, f"r{i}", there, sensible=chance.random() < 0.93)
        for i in range(chance.choice((1, 1, 2, 2, 3)))
    )


def _release(
    chance: Random,
    epsilons: Sequence[str],
    world: World,
    name: str,
    there: dict[str, list[Code]],
    *,
    sensible: bool,
) -> Release:
    unit = dict(world.unit)
    whole = unit["kind"] == "establishments"
    amount = (
        chance.choice(world.amounts) if world.amounts and chance.random() < 0.5 and (whole or not sensible) else None
    )
    several = chance.random() < 0.4
    everything = [*world.places, *(each.name for each in world.kinds)]
    add_up = several and chance.random() < 0.4
    tables: list[tuple[str, ...]] = []
    for _ in range(chance.randint(1, 3) if several else 1):
        known = [*tables[0]] if add_up and tables and sensible else everything
        by = tuple(chance.sample(known, chance.randint(0, min(3, len(known)))))
        if by not in tables:
            tables.append(by)
    options: list[tuple[str, Any]] = []
    if chance.random() < 0.5:
        options.append(("level", chance.choice(LEVELS)))
    if chance.random() < 0.35 and (whole or not sensible):
        options.append(("scale_share", chance.choice(("0.1", "0.03", "1/4"))))
    if chance.random() < 0.2:
        options.append(("round_to", 1 if add_up and sensible else chance.choice((1, 5, 100))))
    if chance.random() < 0.15:
        options.append(("suppress", {"below": chance.choice((3, 10))}))
    if chance.random() < 0.15:
        options.append(("non_negative", False))
    if chance.random() < 0.15 and (whole or not sensible):
        options.append(("establishments", True))
    if chance.random() < 0.25 and everything:
        where = chance.choice(everything)
        kept = there.get(where) if sensible else None
        kept = [*(kept or world.attribute(where).codes)]
        options.append(("where", {where: list(chance.sample(kept, chance.randint(1, len(kept))))}))
    if add_up:
        options.append(("add_up", True))
    elif several and chance.random() < 0.3:
        options.append(("measure", "finest"))
    elif not several and chance.random() < 0.2:
        options.append(("mechanism", chance.choice(MECHANISMS)))
    known = [each for each in (tables[0] if sensible else world.places) if each in world.places]
    if known and chance.random() < 0.15:
        options.append(("stratum", chance.choice(known)))
    kind = "count" if amount is None else "sum"
    if amount is not None:
        options.append(("of", amount.name))
    epsilon = chance.choice(epsilons)
    if sensible and whole:
        needed = len(tables) * 4 * log1p(float(_exact(unit["alpha"])))
        epsilon = next((each for each in (epsilon, *epsilons, "20") if float(_exact(each)) > needed), "100")
    return Release(name, kind + "s" * several, tuple(tables), epsilon, tuple(options))


def present(world: World) -> dict[str, list[Code]]:
    """The codes of places that establishments have."""
    from worlds.data import data, parents

    plain = data(world)
    found: dict[str, list[Code]] = {}
    for row in plain.workplaces or plain.jobs:
        whole = dict(row)
        for levels in world.hierarchies:
            whole |= parents(world, levels.name, whole[levels.finest])
        for name in world.places:
            codes = found.setdefault(name, [])
            if not any(
                code is whole[name] or (code == whole[name] and type(code) is type(whole[name])) for code in codes
            ):
                codes.append(whole[name])
    return found


def _odd(chance: Random, world: World) -> Odd:
    found = [Odd("null", world.establishment), Odd("null", world.worker), Odd("no rows")]
    found += [Odd("null", each.name) for each in (*world.attributes, *world.kinds)]
    found += [Odd("outside", each.name) for each in world.kinds]
    if not world.counted and world.several == 1:
        found.append(Odd("twice"))
    if not world.counted and "workers" not in world.apart:
        found += [Odd("one row more")] * 2
    if not world.counted and world.several == 1 and not world.amounts:
        found += [Odd("two periods", name) for name, _ in world.idle] * 2
    if world.frame.startswith("csv ") and "utf-16" not in world.frame:
        found += [Odd(what) for what in OF_FILES]
    if len({*world.attributes}) and "workplaces" not in world.apart:
        found += [Odd("torn", each.name) for each in world.attributes if len(each.codes) > 1]
    found += [Odd("unlisted")] * ("workplaces" in world.apart)
    if world.amounts and chance.random() < 0.6:
        found = []
    for each in world.amounts:
        found += [Odd(what, each.name) for what in ("null", "negative", "negative zero", "nan", "inf", "-inf")]
        clipped = " clipped" if each.beyond == "clip" else ""
        found += [Odd(what + clipped, each.name) for what in ("beyond", "beyond", "beyond", "1e308")]
    found += [
        Odd(what, name) for name, kind in world.idle for what in ("idle null", "idle nan")[: 1 + (kind == "number")]
    ]
    return chance.choice(found)


def _misnamed(chance: Random, world: World) -> World:
    if not world.attributes or world.attributes[0].name in IDLE:
        return world
    return _renamed(world, world.attributes[0].name, chance.choice(names.ILLEGAL))


def _renamed(world: World, old: str, new: str) -> World:
    """The world with another name of a column, wherever it is said."""
    told = repr(world).replace(repr(old), repr(new))
    found = eval(told, {each.__name__: each for each in (World, Attribute, Levels, Amount, Release, Odd)})
    return _with(found, seed=world.seed)
