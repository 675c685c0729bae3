"""What is wrong with a world, and the world made small: fewer rows, columns and terms that show the same fault.

A world is a frozen value whose `repr` makes it again. Its door draws it from a seed (`drawn`), looks at it (`look`,
which raises `Broken` where a promise is) and makes it smaller in every way that it knows (`smaller`).
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from discreet.words.errors import DiscreetError

World = TypeVar("World")
Look = Callable[[World], object]


class Broken(Exception):
    """A promise that a world breaks: `kind` names the promise, the text what was found."""

    def __init__(self, kind: str, said: object = "") -> None:
        super().__init__(f"{kind}: {said}")
        self.kind = kind


@dataclass(frozen=True)
class Refusal:
    """How a request was refused."""

    kind: str
    words: str


@dataclass(frozen=True)
class Fault:
    """What is wrong with a world; another world has the same fault if its `kind` is the same."""

    kind: str
    said: str


@dataclass(frozen=True)
class Found(Generic[World]):
    """A world with a fault, as small as it gets, and the script that repeats it."""

    seed: int
    fault: Fault
    world: World
    script: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.fault.kind}\n{self.fault.said}\n{self.script}"


def agrees(holds: object, kind: str, *facts: object) -> None:
    """Break the world unless it holds."""
    if not holds:
        raise Broken(kind, "; ".join(map(str, facts)))


def answer(ask: Callable[[], Any]) -> Any:
    """What a door gives, or its `Refusal`; one without a subject or a next step is a fault."""
    try:
        return ask()
    except DiscreetError as error:
        for fault in error.faults:
            agrees(fault.about, "a refusal without a subject", error)
            agrees(fault.possible or fault.remedy, "a refusal without a next step", error)
        agrees(error.faults, "a refusal without a fault", repr(error))
        return Refusal(type(error).__name__, str(error))


def refused(given: object) -> bool:
    return isinstance(given, Refusal)


def fault_of(look: Look[World], world: World) -> Fault | None:
    """The promise that a world breaks; whatever is raised and is no refusal of ours breaks one, warnings too."""
    from discreet.models.linear.fit import MixedWarning

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)
        warnings.simplefilter("ignore", MixedWarning)
        try:
            look(world)
        except Broken as broken:
            return Fault(broken.kind, str(broken))
        except Exception as error:
            where = [frame for frame in traceback.extract_tb(error.__traceback__) if "discreet" in frame.filename]
            at = f"{where[-1].filename.rpartition('discreet/')[2]} {where[-1].name}" if where else "the look"
            return Fault(f"{type(error).__name__} in {at}", "".join(traceback.format_exception(error)[-8:]))
    return None


def shrunk(
    world: World, fault: Fault, look: Look[World], smaller: Callable[[World], Iterator[World]], *, looks: int = 250
) -> tuple[World, Fault]:
    """The smallest world that is found with the same fault, and that fault in it."""
    left, changed = looks, True
    while changed and left:
        changed = False
        for each in smaller(world):
            left -= 1
            found = fault_of(look, each)
            if found is not None and found.kind == fault.kind:
                world, fault, changed = each, found, True
                break
            if not left:
                break
    return world, fault


def fewer(count: int) -> Iterator[list[int]]:
    """The rows that are kept: without a half, a quarter, ... and at last without single ones."""
    size = count // 2
    while size:
        for start in range(0, count, size):
            kept = [*range(start), *range(start + size, count)]
            if kept:
                yield kept
        size //= 2


def many(
    draw: Callable[[int], World],
    look: Look[World],
    smaller: Callable[[World], Iterator[World]],
    script: Callable[[World], str],
    seed: int,
    count: int,
    *,
    shrinking: bool = True,
) -> list[Found[World]]:
    """Faults of worlds `seed`, `seed` + 1, ...; the first world of each kind of fault is made small."""
    found: list[Found[World]] = []
    kinds: set[str] = set()
    for at in range(seed, seed + count):
        world = draw(at)
        fault = fault_of(look, world)
        if fault is None:
            continue
        if shrinking and fault.kind not in kinds:
            world, fault = shrunk(world, fault, look, smaller)
        kinds.add(fault.kind)
        found.append(Found(at, fault, world, script(world)))
    return found
