"""Which of our files a reader opens from `session.count(...).release(...)` to a written file.

    python tests/walk.py

Six things happen on this walk: a price is decided, data are read, the price is charged, noise is drawn, a hash is
fixed, a file is written. A profiler finds which functions are under way when each of them first happens. A reader
opens the files of these functions, and of the functions that they call.

What a value does is read by its name (`budget.spend(loss)`, `law.log_density(z)`): methods of frozen dataclasses and
the words of `privacy` are not opened, unless they are under way themselves. The last line counts them too. Before
releases were offers it said 17 opened and 19 with what values do.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

import discreet as dc

SOURCE = Path(dc.__file__).parent
EFFECTS = {
    "a price is decided": ("tables/calibration.py", "part"),
    "data are read": ("data/frames.py", "collect"),
    "the price is charged": ("ledger/book.py", "Ledger.charge"),
    "noise is drawn": ("noise/source.py", "SystemSource.words"),
    "a hash is fixed": ("ledger/book.py", "Ledger.publish"),
    "a file is written": ("results.py", "_write_parquet"),
}
INSIDE = ("<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")

Function: TypeAlias = tuple[str, str]
"""A file below the package, and the name of a function in it."""


class Walk(NamedTuple):
    """The functions under way at each effect, from the call inwards; and every call, with all that were under way."""

    ways: dict[str, tuple[Function, ...]]
    calls: list[tuple[Function, ...]]

    def under_way(self) -> list[str]:
        """The files of functions that are under way when something happens."""
        return _files(function for way in self.ways.values() for function in way)

    def opened(self, *, values: bool = False) -> list[str]:
        """The files that a reader opens; with `values`, also for what values do."""
        under_way = {_plain(way[:i]) for way in self.ways.values() for i in range(len(way) + 1)}
        called = {call[-1] for call in self.calls if _plain(call[:-1]) in under_way}
        opened = {function for function in called if not _is_a_word(function) and (values or not _of_a_value(function))}
        return _files(opened | {function for way in self.ways.values() for function in way})

    def ran(self) -> list[str]:
        """The files in which anything runs."""
        return _files(call[-1] for call in self.calls)


def _files(functions: Any) -> list[str]:
    return sorted({file for file, _ in functions})


def _plain(call: tuple[Function, ...]) -> tuple[Function, ...]:
    """What stands inside a function, such as a comprehension, is part of it."""
    return tuple(function for function in call if not function[1].endswith(INSIDE))


def _is_a_word(function: Function) -> bool:
    return function[0].removeprefix("privacy/") in ("losses.py", "units.py", "guarantee.py")


def _of_a_value(function: Function) -> bool:
    file, name = function
    home = getattr(import_module("discreet." + file.removesuffix(".py").replace("/", ".")), name.split(".")[0], None)
    return isinstance(home, type) and is_dataclass(home) and home.__dataclass_params__.frozen  # type: ignore[attr-defined]


def jobs() -> Any:
    """Two establishments."""
    workplace = np.repeat(["e1", "e2"], [9, 30])
    table = pa.table({"workplace": workplace, "worker": np.arange(len(workplace)), "sex": ["f", "m", "f"] * 13})
    places = {"workplace": ["e1", "e2"], "place": ["north", "south"]}
    return dc.read_jobs(table, workplaces=places, schema=dc.Schema(["place"], {"sex": ["f", "m"]}))


def walk() -> Walk:
    """One release, saved."""
    found = Walk({}, [])

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or frame.f_code.co_name == "<module>":
            return
        stack: list[Function] = []
        place: FrameType | None = frame
        while place is not None and place.f_code.co_filename != __file__:
            if place.f_code.co_filename.startswith(f"{SOURCE}/"):
                stack.append((place.f_code.co_filename[len(f"{SOURCE}/") :], place.f_code.co_qualname))
            elif place is frame:
                return
            place = place.f_back
        call = tuple(reversed(stack))
        found.calls.append(call)
        for effect, (file, name) in EFFECTS.items():
            if call[-1][1] == name and call[-1][0].endswith(file):
                found.ways.setdefault(effect, call)

    session = dc.Session(jobs(), unit=dc.Establishments(alpha=0.1), budget=4)
    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(profile)
        try:
            session.count(by=["place"]).release(epsilon=2).save(Path(folder) / "table.parquet")
        finally:
            sys.setprofile(None)
    return found


if __name__ == "__main__":
    walk()  # what runs only the first time
    found = walk()
    for effect, way in found.ways.items():
        print(f"{effect}: {' > '.join(dict.fromkeys(file for file, _ in way))}")
    print(f"opened: {' '.join(found.opened())}")
    print(f"with what values do: {' '.join(sorted({*found.opened(values=True)} - {*found.opened()}))}")
    counts = (len(files) for files in (found.opened(), found.opened(values=True), found.under_way(), found.ran()))
    print("{} opened, {} with what values do, {} under way, {} in which something runs".format(*counts))
