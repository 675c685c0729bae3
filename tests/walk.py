"""Which of our files stand between `session.count(...).release(...)` and a written file.

    python tests/walk.py

Five things happen on this walk: data are read, a price is charged, noise is drawn, a hash is fixed, a file is written.
The files on the way are those whose functions are under way when one of them happens, found with a profiler; a reader
who wants to know the order of steps opens these. Beside them are the files in which anything runs at all: constants are
calibrated, intervals computed, amounts compared.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.release.files import write_table

SOURCE = Path(dc.__file__).parent
EFFECTS = {
    ("frames.py", "collect"): "data are read",
    ("ledger/book.py", "charge"): "a price is charged",
    ("noise/source.py", "words"): "noise is drawn",
    ("ledger/book.py", "publish"): "a hash is fixed",
    ("release/files.py", "write_table"): "a file is written",
}


def jobs() -> Any:
    """Two establishments."""
    workplace = np.repeat(["e1", "e2"], [9, 30])
    table = pa.table({"workplace": workplace, "worker": np.arange(len(workplace)), "sex": ["f", "m", "f"] * 13})
    places = {"workplace": ["e1", "e2"], "place": ["north", "south"]}
    return dc.read_jobs(table, workplaces=places, schema=dc.Schema(["place"], {"sex": ["f", "m"]}))


def walk() -> tuple[dict[str, list[str]], set[str]]:
    """The files under way at each effect, from the call inwards; and all files in which something ran."""
    ways: dict[str, list[str]] = {}
    ran: set[str] = set()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event != "call" or not path.is_relative_to(SOURCE) or frame.f_code.co_name == "<module>":
            return
        here = path.relative_to(SOURCE).as_posix()
        ran.add(here)
        effect = EFFECTS.get((here, frame.f_code.co_name))
        if effect is None:
            return
        under_way, caller = [], frame
        while caller is not None and caller.f_code.co_filename != __file__:
            place = Path(caller.f_code.co_filename)
            if place.is_relative_to(SOURCE):
                under_way.append(place.relative_to(SOURCE).as_posix())
            caller = caller.f_back
        ways[effect] = list(dict.fromkeys([*ways.get(effect, []), *reversed(under_way)]))

    table = jobs()
    session = dc.Session(table, unit=dc.Establishments(alpha=0.1), budget=4)
    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(profile)
        try:
            release = session.count(by=["place"]).release(epsilon=2)
            write_table(release.to_arrow(), Path(folder) / "table.parquet")
        finally:
            sys.setprofile(None)
    return ways, ran


def files(ways: dict[str, list[str]]) -> list[str]:
    """All files on the way to any effect."""
    return sorted({name for way in ways.values() for name in way})


if __name__ == "__main__":
    walk()  # what runs only the first time
    found, everything = walk()
    for effect, way in found.items():
        print(f"{effect}: {' > '.join(way)}")
    print(f"{len(files(found))} files on the way, {len(everything)} in which something runs")
