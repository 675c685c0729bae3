"""A disk that fails at some call, and at all after it: a run ends in words, and the next one goes on.

What Python asks of a disk fails here. What SQLite, DuckDB and Arrow ask of it does so on real disks (`bench.disks`).
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import discreet
from discreet.ledger import Ledger
from discreet.plan.engine import at_work
from discreet.plan.run import run
from discreet.words.errors import DiscreetError

LOOKS = ("stat", "lstat", "scandir", "listdir", "open")
CHANGES = ("mkdir", "rmdir", "unlink", "remove", "rename", "replace", "link", "chmod", "fsync")
OURS = str(Path(discreet.__file__).parent)
OTHERS = re.compile(r'\[\[release\]\]\nname = "(sexes|margins)".*?\n\n', re.DOTALL)

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")


class Disk:
    """The disk of a folder, which fails from the first call of one of our functions on.

    Of a disk that turns read-only what is there can be read.
    """

    def __init__(self, folder: Path, *, error: int, at: str | None = None) -> None:
        self.folder, self.error, self.at = f"{folder}{os.sep}", error, at
        self.failing, self.callers = False, dict[str, None]()

    def ask(self, place: Any, *, writes: bool) -> None:
        path = Path(f"/proc/self/fd/{place}").readlink() if isinstance(place, int) else os.fspath(place)
        if not f"{path}{os.sep}".startswith(self.folder) or (self.error != errno.EIO and not writes):
            return
        caller = of_ours()
        self.callers[caller] = None
        self.failing = self.failing or caller == self.at
        if self.failing:
            raise OSError(self.error, os.strerror(self.error), path)

    @contextmanager
    def mounted(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in (*LOOKS, *CHANGES):
                patch.setattr(os, name, self.guarded(getattr(os, name), writes=name in CHANGES))
            opened = self.guarded(io.open, writes=False)
            patch.setattr(io, "open", opened)
            patch.setattr(builtins, "open", opened)
            yield

    def guarded(self, function: Any, *, writes: bool) -> Any:
        def asked(place: Any = ".", *more: Any, **named: Any) -> Any:
            self.ask(place, writes=writes or (function.__name__ == "open" and to_write(*more, **named)))
            return function(place, *more, **named)

        return asked


def of_ours() -> str:
    """The function of the package that is at work."""
    frame: Any = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return "" if frame is None else f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"


def to_write(how: str | int | None = None, *more: Any, mode: str | int = "r", **named: Any) -> bool:
    """Whether a file is opened to be written, by what `open` or `os.open` is given."""
    asked = mode if how is None else how
    return bool(set(asked) & set("wax+")) if isinstance(asked, str) else bool(asked & (os.O_WRONLY | os.O_RDWR))


def ended(plan: Path) -> bool:
    """Whether a run ended well; anything but an error of ours is a failure of the test."""
    try:
        run(plan)
    except DiscreetError as error:
        assert error.about
        assert str(error)
        return False
    return True


def finished(plan: Path) -> None:
    """Run to the end: everything is there, and was paid for once."""
    run(plan)
    with Ledger.open(plan.parent / "ledger.db", read_only=True) as ledger:
        assert ledger.verify()
        assert [entry.release for entry in ledger.entries() if entry.kind == "charge"] == ["places"]
    assert {path.name for path in (plan.parent / "out").iterdir()} == {
        "anchors.jsonl",
        "bundle.zip",
        "report.html",
        "places",
    }


@pytest.mark.parametrize("error", [pytest.param(errno.EIO, marks=pytest.mark.walk), errno.EROFS])
def test_a_disk_that_fails_in_any_function(error: int, toys: Callable[[Path], Path], tmp_path: Path) -> None:
    def written(name: str) -> Path:
        plan = toys(tmp_path / name)
        plan.write_text(OTHERS.sub("", plan.read_text(encoding="utf-8")), encoding="utf-8")
        return plan

    plan, whole = written("first"), Disk(tmp_path / "first", error=error)
    with whole.mounted():
        run(plan)
    plan = written("next")
    for caller in whole.callers:
        disk = Disk(plan.parent, error=error, at=caller)
        with disk.mounted():
            well = ended(plan)
        if well:
            finished(plan)
            plan = written(caller)
    finished(plan)


def test_a_disk_that_fails_while_a_plan_is_checked(plan: Path) -> None:
    disk = Disk(plan.parent, error=errno.EIO, at="folder.output_faults")
    with disk.mounted(), pytest.raises(DiscreetError) as raised:
        run(plan)
    assert disk.failing
    assert raised.value.about == "disk"


def test_a_file_that_duckdb_cannot_read_any_more() -> None:
    with pytest.raises(DiscreetError) as raised, at_work():
        raise duckdb.IOException("Could not read from file")
    assert raised.value.about == "disk"
    with pytest.raises(duckdb.ConversionException), at_work():  # another fault is not the disk's
        raise duckdb.ConversionException("Could not convert")
